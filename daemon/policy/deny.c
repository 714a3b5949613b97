// SPDX-License-Identifier: Apache-2.0
/*
 * deny - the list of what is left alone, and why; see deny.h. The AppArmor profile of the worker has a line for each
 * pattern (tests/e2e/trust/denied.sh).
 */
#include "daemon/policy/deny.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

struct denial {
	const char *pattern; /* of a path; /usr in front of it may be missing */
	const char *why;
};

static const char loader[] = "it is the loader of the C library, which every program needs";
static const char library[] = "every program needs this library, so the machine does not start "
			      "without it";
static const char systemd[] = "it belongs to systemd, which starts the machine";
static const char boot[] = "the machine does not start, or cannot be repaired, without it";
static const char login[] = "nobody can log in without it";
static const char kernel[] = "it belongs to the kernel";
static const char packages[] = "the package manager would repair everything else";
static const char own[] = "it is a part of Morph";

static const struct denial denials[] = {
	{"/boot/*", kernel},
	{"/usr/lib/modules/*", kernel},
	{"/usr/lib/firmware/*", kernel},
	{"*.ko", kernel},
	{"*/vmlinu[xz]*", kernel},
	{"*/ld-linux*.so*", loader},
	{"*/ld-musl*.so*", loader},
	{"*/ld[-.]*so*", loader},
	{"*/libc.so.6", library},
	{"*/libc-[0-9]*.so", library},
	{"*/libpthread*.so*", library},
	{"*/libselinux.so*", library},
	{"*/libapparmor.so*", library},
	{"*/libcap.so*", library},
	{"*/libcrypt.so*", library},
	{"*/libpam*.so*", login},
	{"*/security/pam_*.so", login},
	{"*/libnss_*.so*", login},
	{"/usr/lib/systemd/*", systemd},
	{"*/libsystemd*.so*", systemd},
	{"*/libudev.so*", systemd},
	{"*/libdbus-1.so*", systemd},
	{"/usr/bin/systemctl", systemd},
	{"/usr/bin/systemd-*", systemd},
	{"/usr/bin/journalctl", systemd},
	{"/usr/bin/loginctl", systemd},
	{"/usr/bin/udevadm", systemd},
	{"/usr/bin/dbus-*", systemd},
	{"/usr/sbin/init", boot},
	{"/usr/bin/sh", boot},
	{"/usr/bin/dash", boot},
	{"/usr/bin/bash", boot},
	{"/usr/bin/busybox", boot},
	{"/usr/bin/mount", boot},
	{"/usr/bin/umount", boot},
	{"/usr/bin/kmod", boot},
	{"/usr/sbin/*fsck*", boot},
	{"/usr/sbin/mount.*", boot},
	{"/usr/sbin/cryptsetup*", boot},
	{"/usr/sbin/*dmsetup*", boot},
	{"/usr/sbin/lvm*", boot},
	{"/usr/sbin/grub*", boot},
	{"/usr/sbin/update-initramfs", boot},
	{"/usr/lib/initramfs-tools/*", boot},
	{"/usr/lib/klibc*", boot},
	{"/usr/sbin/agetty", login},
	{"/usr/sbin/getty", login},
	{"/usr/bin/login", login},
	{"/usr/bin/su", login},
	{"/usr/bin/sudo", login},
	{"/usr/bin/passwd", login},
	{"/usr/sbin/unix_chkpwd", login},
	{"/usr/sbin/sulogin", login},
	{"/usr/bin/dpkg*", packages},
	{"/usr/bin/apt", packages},
	{"/usr/bin/apt-*", packages},
	{"*/libapt-*.so*", packages},
	{"/usr/bin/morph", own},
	{"/usr/bin/morph-*", own},
	{"/usr/sbin/morphd", own},
	{"/usr/sbin/morph-worker", own},
	{"/usr/lib/morph/*", own},
};

static bool matches(const char *pattern, const char *path)
{
	char merged[PATH_MAX];

	if (!fnmatch(pattern, path, 0))
		return true;
	/* A machine whose /bin is not a link to /usr/bin. */
	return snprintf(merged, sizeof(merged), "/usr%s", path) < (int)sizeof(merged) &&
	       !fnmatch(pattern, merged, 0);
}

static bool is_among(char *const *patterns, const char *path)
{
	for (; *patterns; patterns++)
		if (!fnmatch(*patterns, path, 0))
			return true;
	return false;
}

static bool is_listed(const struct md_policy *policy, const char *path, char *why, size_t size)
{
	for (size_t i = 0; i < sizeof(denials) / sizeof(denials[0]); i++)
		if (matches(denials[i].pattern, path)) {
			snprintf(why, size, "left alone: %s", denials[i].why);
			return true;
		}
	for (char **p = policy->excludes; p && *p; p++)
		if (!fnmatch(*p, path, 0)) {
			snprintf(why, size, "left alone: excluded by %.200s in the policy %.300s",
				 *p, policy->dir);
			return true;
		}
	return false;
}

bool md_deny_path(const struct md_policy *policy, const char *path, char *why, size_t size)
{
	if (is_listed(policy, path, why, size))
		return true;
	if (!policy->only || is_among(policy->only, path) || md_policy_rule(policy, path))
		return false;
	snprintf(why, size,
		 "left alone: no rule names it, and `only' in the policy %.300s names other files",
		 policy->dir);
	return true;
}

/* Attributes that give rights, or that sign the contents. */
static bool deny_attributes(int fd, char *why, size_t size)
{
	static const struct denial attributes[] = {
		{"security.capability", "it runs with more rights than its caller (capabilities)"},
		{"security.ima", "it is signed (IMA)"},
		{"security.evm", "it is signed (EVM)"},
	};
	struct statx stx;

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (fgetxattr(fd, attributes[i].pattern, NULL, 0) >= 0) {
			snprintf(why, size, "left alone: %s", attributes[i].why);
			return true;
		}
	if (!statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx) &&
	    (stx.stx_attributes & STATX_ATTR_VERITY)) {
		snprintf(why, size, "left alone: it is signed (fs-verity)");
		return true;
	}
	return false;
}

static bool deny_file(const char *path, char *why, size_t size)
{
	struct stat st;
	bool denied = true;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, &st))
		snprintf(why, size, "left alone: it cannot be read: %s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		snprintf(why, size, "left alone: it is not a regular file");
	else if (st.st_mode & (S_ISUID | S_ISGID))
		snprintf(why, size,
			 "left alone: it runs with another user's rights (set-user-ID or "
			 "set-group-ID)");
	else
		denied = deny_attributes(fd, why, size);
	if (fd >= 0)
		close(fd);
	return denied;
}

bool md_deny(const struct md_policy *policy, const char *path, char *why, size_t size)
{
	return md_deny_path(policy, path, why, size) || deny_file(path, why, size);
}

bool md_deny_processes(const struct md_policy *policy, const char *path, char *why, size_t size)
{
	return is_listed(policy, path, why, size) || deny_file(path, why, size);
}
