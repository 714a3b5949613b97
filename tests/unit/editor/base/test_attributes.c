// SPDX-License-Identifier: Apache-2.0
/*
 * test_attributes - all attributes of a file are copied to another one, or an error names the
 * one that cannot be.
 */
#include <check.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "editor/base/attributes.h"
#include "tests/unit/suite.h"

static int one, two;

static int temporary(void)
{
	char path[256];
	const char *dir = getenv("TMPDIR");
	int fd;

	snprintf(path, sizeof(path), "%s/test_attributes.XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	unlink(path);
	return fd;
}

static void setup(void)
{
	one = temporary();
	two = temporary();
}

static void teardown(void)
{
	close(one);
	close(two);
}

static bool has(int fd, const char *name, const char *value)
{
	char buf[128];
	ssize_t n = fgetxattr(fd, name, buf, sizeof(buf));

	return n == (ssize_t)strlen(value) && !memcmp(buf, value, (size_t)n);
}

static void carry_over(void)
{
	AUTO(me_attributes_fini) struct me_attributes a = {0};

	ck_assert_msg(!me_attributes_read(one, "one", &a, &err), "%s", err.msg);
	ck_assert_msg(!me_attributes_apply(&a, two, "two", &err), "%s", err.msg);
}

FIXTURE(setup, teardown);

TEST(attributes_carry_mode_and_extended_attributes)
{
	struct stat st;

	if (fsetxattr(one, "user.colour", "blue", 4, 0))
		MORPH_SKIP("no extended attributes here: %s", strerror(errno));
	ck_assert_int_eq(fsetxattr(one, "user.empty", "", 0, 0), 0);
	ck_assert_int_eq(fchmod(one, 0751), 0);
	carry_over();
	ck_assert_int_eq(fstat(two, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0751);
	ck_assert(has(two, "user.colour", "blue"));
	ck_assert(has(two, "user.empty", ""));
}

TEST(attributes_take_away_what_the_other_has_not)
{
	if (fsetxattr(two, "user.stranger", "x", 1, 0))
		MORPH_SKIP("no extended attributes here: %s", strerror(errno));
	carry_over();
	ck_assert_int_eq(fgetxattr(two, "user.stranger", NULL, 0), -1);
	ck_assert_int_eq(errno, ENODATA);
}

/* Changing the owner removes set-id bits and capabilities, so these are set afterwards. */
TEST(attributes_carry_owner_set_id_bits_and_capabilities)
{
	struct vfs_cap_data cap = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
				   .data = {{.permitted = 1u << CAP_NET_RAW}}};
	struct vfs_cap_data got;
	struct stat st;

	if (geteuid() != 0)
		MORPH_SKIP("not root");
	ck_assert_int_eq(fchown(one, 1234, 2345), 0);
	ck_assert_int_eq(fchmod(one, 06755), 0);
	if (fsetxattr(one, "security.capability", &cap, sizeof(cap), 0))
		MORPH_SKIP("no capabilities of files here: %s", strerror(errno));
	carry_over();
	ck_assert_int_eq(fstat(two, &st), 0);
	ck_assert_uint_eq(st.st_uid, 1234);
	ck_assert_uint_eq(st.st_gid, 2345);
	ck_assert_int_eq(st.st_mode & 07777, 06755);
	ck_assert_int_eq(fgetxattr(two, "security.capability", &got, sizeof(got)), sizeof(cap));
	ck_assert_mem_eq(&got, &cap, sizeof(cap));
}

/* As another user: either everything is kept or there is an error. */
TEST(attributes_name_what_cannot_be_kept)
{
	AUTO(me_attributes_fini) struct me_attributes a = {0};
	int status;
	pid_t pid;

	if (geteuid() != 0)
		MORPH_SKIP("not root");
	ck_assert_int_eq(me_attributes_read(one, "one", &a, &err), 0);
	ck_assert_int_eq(fchown(two, 1234, 1234), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (setgid(1234) || setuid(1234))
			_exit(9);
		_exit(me_attributes_apply(&a, two, "two", &err) == -EACCES &&
				      strstr(err.msg, "two: cannot keep its owner")
			      ? 0
			      : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

TEST(attributes_find_by_name)
{
	struct me_attributes a;

	if (fsetxattr(one, "user.a", "1", 1, 0))
		MORPH_SKIP("no extended attributes here: %s", strerror(errno));
	ck_assert_int_eq(me_attributes_read(one, "one", &a, &err), 0);
	ck_assert_ptr_nonnull(me_attributes_find(&a, "user.a"));
	ck_assert_ptr_null(me_attributes_find(&a, "user."));
	me_attributes_fini(&a);
	ck_assert_int_eq(me_attributes_read(-1, "gone", &a, &err), -EBADF);
	ck_assert_ptr_nonnull(strstr(err.msg, "gone"));
	me_attributes_fini(&a);
}
