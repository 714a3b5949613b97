// SPDX-License-Identifier: Apache-2.0
/* test_deny - files that are left alone whatever a rule says, and the reason. */
#include "tests/unit/suite.h"

#include <sys/stat.h>

#include "daemon/policy/deny.h"

static char *excludes[] = {(char *)"/opt/secret/*", NULL};
static struct md_policy policy = {.dir = (char *)"/etc/morph", .excludes = excludes};

static const struct {
	const char *path, *why; /* NULL: not denied */
} paths[] = {
	{"/usr/bin/perl", NULL},
	{"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", NULL},
	{"/usr/bin/ld", NULL},
	{"/usr/lib/postgresql/15/bin/postgres", NULL},
	{"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", NULL},
	{"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "loader"},
	{"/lib64/ld-linux-x86-64.so.2", "loader"},
	{"/usr/lib/x86_64-linux-gnu/libc.so.6", "every program"},
	{"/usr/lib/systemd/systemd", "systemd"},
	{"/lib/systemd/systemd-journald", "systemd"},
	{"/usr/bin/systemctl", "systemd"},
	{"/bin/systemctl", "systemd"},
	{"/usr/bin/dash", "does not start"},
	{"/bin/mount", "does not start"},
	{"/sbin/e2fsck", "does not start"},
	{"/usr/bin/dpkg", "package manager"},
	{"/usr/sbin/agetty", "log in"},
	{"/boot/vmlinuz-6.1.0-1-amd64", "kernel"},
	{"/usr/lib/modules/6.1/kernel/x.ko", "kernel"},
	{"/usr/lib/debug/boot/vmlinux-6.1", "kernel"},
	{"/usr/sbin/morphd", "Morph"},
	{"/opt/secret/a/b", "excluded by /opt/secret/* in the policy /etc/morph"},
};

TEST_EACH(deny_knows_paths, sizeof(paths) / sizeof(paths[0]))
{
	char why[600] = "";
	bool denied = md_deny_path(&policy, paths[_i].path, why, sizeof(why));

	ck_assert_msg(denied == !!paths[_i].why, "%s: %s", paths[_i].path, why);
	if (denied)
		ck_assert_msg(strstr(why, paths[_i].why), "%s: %s", paths[_i].path, why);
}

TEST(deny_keeps_to_only_but_for_rules)
{
	char *only[] = {(char *)"/usr/bin/perl*", NULL}, *named[] = {(char *)"/opt/db", NULL};
	struct md_rule rule = {.programs = named};
	struct md_policy some = {
		.dir = (char *)"/etc/morph", .only = only, .rules = &rule, .nr_rules = 1};
	char why[600] = "";

	ck_assert(!md_deny_path(&some, "/usr/bin/perl5", why, sizeof(why)));
	ck_assert(!md_deny_path(&some, "/opt/db", why, sizeof(why)));
	ck_assert(md_deny_path(&some, "/opt/db2", why, sizeof(why)));
	ck_assert_msg(strstr(why, "`only' in the policy /etc/morph names other files"), "%s", why);
}

/* A version of a library goes into processes of a program that stays as it is. */
TEST(deny_processes_does_not_ask_for_only)
{
	char *only[] = {(char *)"*.so", NULL}, *excludes[] = {(char *)"/*/sh", NULL};
	const struct md_policy some = {
		.dir = (char *)"/etc/morph", .only = only, .excludes = excludes};
	char why[600] = "", self[4096] = "";

	ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
	ck_assert(md_deny(&some, self, why, sizeof(why)));
	ck_assert_msg(!md_deny_processes(&some, self, why, sizeof(why)), "%s", why);
	ck_assert(md_deny_processes(&some, "/opt/sh", why, sizeof(why)));
	ck_assert_msg(strstr(why, "excluded by"), "%s", why);
	ck_assert(md_deny_processes(&some, "/usr/lib/systemd/systemd-udevd", why, sizeof(why)));
	ck_assert(md_deny_processes(&some, "/nowhere/prog", why, sizeof(why)));
}

static void denies(const char *path, const char *want)
{
	char why[600] = "";

	ck_assert(md_deny(&policy, path, why, sizeof(why)));
	ck_assert_msg(strstr(why, want), "%s", why);
}

TEST(deny_looks_at_the_file)
{
	char path[] = "/tmp/morph-deny-XXXXXX", link[64], why[600];
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(chmod(path, 0755), 0);
	ck_assert(!md_deny(&policy, path, why, sizeof(why)));
	ck_assert_int_eq(chmod(path, 04755), 0);
	denies(path, "set-user-ID");
	ck_assert_int_eq(chmod(path, 02755), 0);
	denies(path, "set-group-ID");
	ck_assert_int_eq(chmod(path, 0755), 0);
	snprintf(link, sizeof(link), "%s.link", path);
	ck_assert_int_eq(symlink(path, link), 0);
	denies(link, "cannot be read");
	unlink(link);
	unlink(path);
	denies(path, "cannot be read");
	denies("/tmp", "not a regular file");
}
