// SPDX-License-Identifier: Apache-2.0
/*
 * test_backup - backups have the exact bytes, are stored once, and are found only if they are
 * certainly right.
 */
#include <check.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "editor/replace/backup.h"
#include "editor/replace/backup_debug.h"
#include "tests/unit/files.h"

static char dir[256], backups[280];
static const struct mp_id id_a = {.build_id = {0xab, 0xcd}, .build_id_len = 2, .text_hash = 7};
static const struct mp_id id_b = {.build_id = {0xab, 0xcd}, .build_id_len = 2, .text_hash = 8};
static const struct mp_id id_none = {.text_hash = 0x1234};
static const struct me_backup_output output_1 = {
	.id = {.build_id = {1}, .build_id_len = 1, .text_hash = 1},
	.digest = {"11111111111111111111111111111111"}};
static const struct me_backup_output output_2 = {
	.id = {.build_id = {2}, .build_id_len = 1, .text_hash = 2},
	.digest = {"22222222222222222222222222222222"}};

static void shell(const char *format, const char *a)
{
	char command[700];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(command, sizeof(command), format, a, a);
#pragma GCC diagnostic pop
	ck_assert_msg(system(command) == 0, "%s", command);
}

static void setup(void)
{
	/* Not in $TMPDIR, because one test accesses it as another user. */
	strcpy(dir, "/tmp/test_backup.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(backups, sizeof(backups), "%s/bk", dir);
}

static void teardown(void)
{
	shell("rm -rf %s", dir);
}

/* Makes an open file with @text, its digest and its attributes. */
static int file(const char *text, struct me_digest *digest, struct me_attributes *attributes)
{
	char name[300];
	int fd;

	snprintf(name, sizeof(name), "%s/file.XXXXXX", dir);
	fd = mkstemp(name);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	me_digest_memory(text, strlen(text), digest);
	ck_assert_int_eq(me_attributes_read(fd, name, attributes, &err), 0);
	attributes->mtime = (struct timespec){1234567890, 42};
	return fd;
}

static void open_backups(struct me_backup *b)
{
	ck_assert_msg(!me_backup_open(b, backups, true, &err), "%s", err.msg);
}

static char *put(const char *text, const char *path, const struct mp_id *id,
		 const struct me_backup_output *output)
{
	AUTO(me_attributes_fini) struct me_attributes attributes = {0};
	struct me_digest digest;
	AUTO(me_backup_close) struct me_backup b = {0};
	char *kept;
	int fd = file(text, &digest, &attributes), rc;

	open_backups(&b);
	rc = me_backup_put(&b, fd, path, id, &digest, &attributes, output, NULL, &kept, &err);
	ck_assert_msg(rc == 0, "%s", err.msg);
	close(fd);
	return kept;
}

/* Return: the bytes that were found, or the error. */
static int find(const struct mp_id *id, const char *path, const struct me_backup_output *output,
		char *text, struct mp_err *err)
{
	AUTO(me_original_fini) struct me_original o = {0};
	AUTO(me_backup_close) struct me_backup b = {0};
	int rc;

	err->msg[0] = '\0';
	ck_assert_msg(!me_backup_open(&b, backups, false, err), "%s", err->msg);
	rc = me_backup_find(&b, id, path, output, &o, err);
	if (!rc) {
		ssize_t n = pread(o.fd, text, 63, 0);

		ck_assert_int_ge(n, 0);
		text[n] = '\0';
		ck_assert_int_eq(o.mtime.tv_sec, 1234567890);
		ck_assert_int_eq(o.mtime.tv_nsec, 42);
	}
	return rc;
}

static void finds(const struct mp_id *id, const char *path, const struct me_backup_output *output,
		  const char *want)
{
	char text[64];
	int rc = find(id, path, output, text, &err);

	ck_assert_msg(rc == 0, "%s", err.msg);
	ck_assert_str_eq(text, want);
}

static void refuses(const struct mp_id *id, const char *path, const struct me_backup_output *output,
		    const char *want)
{
	char text[64];

	ck_assert_int_eq(find(id, path, output, text, &err), -EPERM);
	ck_assert_msg(strstr(err.msg, want) != NULL, "'%s' is not in: %s", want, err.msg);
}

FIXTURE(setup, teardown);

TEST(backup_gives_back_what_was_put)
{
	char *kept = put("original", "/bin/prog", &id_a, &output_1);
	struct stat st;

	ck_assert_ptr_nonnull(strstr(kept, "/bk/abcd/"));
	ck_assert_int_eq(stat(kept, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0400);
	ck_assert_int_eq(st.st_mtim.tv_sec, 1234567890);
	free(kept);
	ck_assert_int_eq(stat(backups, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0700);
	finds(&id_a, "/bin/prog", &output_1, "original");
	/* An output that was moved is still recognised. */
	finds(&id_a, "/opt/prog", &output_1, "original");
	kept = put("no build-id", "/bin/none", &id_none, &output_2);
	ck_assert_ptr_nonnull(strstr(kept, "/bk/text-0000000000001234/"));
	free(kept);
	finds(&id_none, "/bin/none", &output_2, "no build-id");
}

TEST(backup_keeps_copies_once)
{
	free(put("original", "/bin/prog", &id_a, &output_1));
	ck_assert_int_eq(nr_files_below(backups), 2);
	free(put("original", "/opt/copy", &id_a, &output_2));
	ck_assert_int_eq(nr_files_below(backups), 2);
	finds(&id_a, "/bin/prog", &output_1, "original");
	finds(&id_a, "/opt/copy", &output_2, "original");
}

TEST(backup_gives_nothing_for_files_that_it_did_not_make)
{
	static const struct mp_id upgraded = {
		.build_id = {0xee}, .build_id_len = 1, .text_hash = 7};

	refuses(&id_a, "/bin/prog", &output_1, "no backup of its original (build-id abcd)");
	free(put("original", "/bin/prog", &id_a, &output_1));
	refuses(&id_a, "/bin/prog", &output_2, "says that it replaced an original");
	refuses(&id_b, "/bin/prog", &output_1, "no backup"); /* a forged build-id */
	refuses(&upgraded, "/bin/prog", &output_1, "no backup of its original (build-id ee)");
}

TEST(backup_sees_damage)
{
	AUTO_FREE char *kept = put("original", "/bin/prog", &id_a, &output_1);

	shell("chmod u+w %s && printf X | dd of=%s bs=1 conv=notrunc status=none", kept);
	refuses(&id_a, "/bin/prog", &output_1, "is damaged");
	/* Storing the good bytes again repairs it. */
	free(put("original", "/bin/prog", &id_a, &output_1));
	finds(&id_a, "/bin/prog", &output_1, "original");
	shell("truncate -s 3 %s", kept);
	refuses(&id_a, "/bin/prog", &output_1, "is damaged");
	shell("rm -f %s", kept);
	refuses(&id_a, "/bin/prog", &output_1, "is missing");
	free(put("original", "/bin/prog", &id_a, &output_1));
	shell("echo '{' > %s.json", kept);
	refuses(&id_a, "/bin/prog", &output_1, "cannot be read");
	shell("echo '{\"schema\": 2, \"places\": [], \"outputs\": []}' > %s.json", kept);
	refuses(&id_a, "/bin/prog", &output_1, "newer Morph");
	free(put("original", "/bin/prog", &id_a, &output_1));
	finds(&id_a, "/bin/prog", &output_1, "original");
}

/* strip keeps build-id and code: two originals with one id, whose outputs may share an id too. */
TEST(backup_tells_originals_with_one_id_apart)
{
	struct me_backup_output same_id = output_1;

	memset(same_id.digest.hex, '3', 32);
	free(put("with symbols", "/bin/prog", &id_a, &output_1));
	free(put("stripped", "/opt/prog", &id_a, &same_id));
	finds(&id_a, "/elsewhere", &output_1, "with symbols");
	finds(&id_a, "/elsewhere", &same_id, "stripped");
	/* An output that was stripped afterwards is only recognised by its path. */
	memset(same_id.digest.hex, '4', 32);
	finds(&id_a, "/bin/prog", &same_id, "with symbols");
	finds(&id_a, "/opt/prog", &same_id, "stripped");
	refuses(&id_a, "/elsewhere", &same_id, "two originals");
}

TEST(backup_learns_of_further_outputs)
{
	struct me_original o;
	struct me_backup b;

	free(put("original", "/bin/prog", &id_a, &output_1));
	open_backups(&b);
	ck_assert_int_eq(me_backup_find(&b, &id_a, "/bin/prog", &output_1, &o, &err), 0);
	ck_assert_msg(!me_backup_add_output(&b, &o, "/bin/prog", &output_2, NULL, &err), "%s",
		      err.msg);
	/* Adding it repeatedly has no further effect. */
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(me_backup_add_output(&b, &o, "/bin/prog", &output_2, NULL, &err),
				 0);
	me_original_fini(&o);
	me_backup_close(&b);
	finds(&id_a, "/bin/prog", &output_1, "original");
	finds(&id_a, "/bin/prog", &output_2, "original");
	ck_assert_int_eq(nr_files_below(backups), 2);
}

TEST(backup_knows_debug_files_by_place_and_output)
{
	static char path[] = "/dbg/.build-id/12/34\xff.debug";
	struct me_digest digest = {"00000000000000000000000000000000"};
	json_t *record = me_record_new(&id_a, &digest, 1);
	struct me_backup_output a = output_1, b = output_2;
	struct me_backup_debug found;
	const char *id;
	char *other;
	size_t at = 0;

	a.debug = (struct me_backup_debug){path, digest, true};
	b.debug = (struct me_backup_debug){path, digest, false};
	ck_assert_int_eq(me_record_add_output(record, "/p", &output_2, 1), 0);
	ck_assert_int_eq(me_record_add_output(record, "/p", &a, 1), 0);
	ck_assert_int_eq(me_record_add_output(record, "/q", &b, 1), 0);
	/*
	 * The existing debug file, whose name JSON cannot hold as a string, and whether its
	 * directory was created.
	 */
	ck_assert(me_record_next_debug(record, "/p", NULL, &at, &found));
	ck_assert_str_eq(found.path, path);
	ck_assert(found.made_directory && me_digest_equal(&found.digest, &digest));
	free(found.path);
	ck_assert(!me_record_next_debug(record, "/p", NULL, &at, &found));
	at = 0;
	ck_assert(!me_record_next_debug(record, "/p", &a.id, &at, &found));
	at = 0;
	ck_assert(me_record_next_debug(record, "/q", &output_1.id, &at, &found));
	ck_assert(found.made_directory); /* for an earlier output */
	free(found.path);
	at = 0;
	ck_assert(me_record_next_user(record, "/p", path, &at, &other, &id));
	ck_assert_str_eq(other, "/q");
	free(other);
	ck_assert(!me_record_next_user(record, "/p", path, &at, &other, &id));
	me_record_drop_debug(record, "/q", path);
	at = 0;
	ck_assert(!me_record_next_user(record, "/p", path, &at, &other, &id));
	at = 0;
	ck_assert(me_record_next_debug(record, "/p", NULL, &at, &found));
	free(found.path);
	json_decref(record);
}

/* A damaged record must not lead to a file. */
TEST(backup_believes_no_debug_file_without_path_and_digest)
{
	static const char *const damaged[] = {
		"{}",
		"{\"path\": \"/a.debug\"}",
		"{\"path\": \"a.debug\", \"xxh3_128\": \"00000000000000000000000000000000\"}",
		"{\"path_hex\": \"2f6\", \"xxh3_128\": \"00000000000000000000000000000000\"}",
		"{\"path\": \"/a.debug\", \"xxh3_128\": \"0000\"}",
		"[]",
	};
	struct me_digest digest = {"00000000000000000000000000000000"};

	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		json_t *record = me_record_new(&id_a, &digest, 1);
		struct me_backup_debug found;
		size_t at = 0;

		ck_assert_int_eq(me_record_add_output(record, "/p", &output_1, 1), 0);
		json_object_set_new(json_array_get(json_object_get(record, "outputs"), 0), "debug",
				    json_loads(damaged[i], 0, NULL));
		ck_assert_msg(!me_record_next_debug(record, "/p", NULL, &at, &found), "%s",
			      damaged[i]);
		json_decref(record);
	}
}

TEST(backup_forgets_only_the_oldest_outputs)
{
	json_t *record;
	struct me_digest digest = {"00000000000000000000000000000000"};
	struct me_backup_output o = output_1;

	record = me_record_new(&id_a, &digest, 1);
	for (uint64_t i = 1; i <= 300; i++) {
		o.id.text_hash = i;
		ck_assert_int_eq(me_record_add_output(record, "/p", &o, (int64_t)i), 0);
	}
	ck_assert_int_gt(me_record_score(record, "/p", &o), 0);
	o.id.text_hash = 100;
	ck_assert_int_gt(me_record_score(record, "/p", &o), 0);
	o.id.text_hash = 1;
	ck_assert_int_eq(me_record_score(record, "/p", &o), 0);
	ck_assert_uint_eq(json_array_size(json_object_get(record, "outputs")), 256);
	json_decref(record);
}

TEST(backup_record_holds_any_name)
{
	static const char odd[] = "/bin/\xff\xfe\n\"prog";
	char *kept = put("original", odd, &id_a, &output_1);

	free(kept);
	finds(&id_a, odd, &output_1, "original");
}

TEST(backup_refuses_what_changed_meanwhile)
{
	AUTO(me_attributes_fini) struct me_attributes attributes = {0};
	struct me_digest digest, other;
	AUTO(me_backup_close) struct me_backup b = {0};
	char *kept;
	int fd = file("original", &digest, &attributes);

	me_digest_memory("x", 1, &other);
	open_backups(&b);
	ck_assert_int_eq(me_backup_put(&b, fd, "/p", &id_a, &other, &attributes, &output_1, NULL,
				       &kept, &err),
			 -EBUSY);
	ck_assert_ptr_null(kept);
	ck_assert_int_eq(nr_files_below(backups), 0);
	/* Also if these bytes are stored already. */
	free(put("x", "/p", &id_a, &output_1));
	ck_assert_int_eq(me_backup_put(&b, fd, "/p", &id_a, &other, &attributes, &output_1, NULL,
				       &kept, &err),
			 -EBUSY);
	close(fd);
}

TEST(backup_refuses_directories_that_others_may_write)
{
	struct me_backup b;

	ck_assert_int_eq(mkdir(backups, 0700), 0);
	ck_assert_int_eq(chmod(backups, 0770), 0);
	ck_assert_int_eq(me_backup_open(&b, backups, true, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "other users can write"));
	me_backup_close(&b);
	ck_assert_int_eq(chmod(backups, 0755), 0);
	ck_assert_int_eq(me_backup_open(&b, backups, true, &err), 0);
	me_backup_close(&b);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(backups, 1234, 1234), 0);
		ck_assert_int_eq(me_backup_open(&b, backups, true, &err), -EPERM);
		me_backup_close(&b);
		ck_assert_int_eq(chown(backups, 0, 0), 0);
	}
	free(put("original", "/p", &id_a, &output_1));
	shell("chmod 777 %s/abcd", backups);
	refuses(&id_a, "/p", &output_1, "other users can write");
	shell("chmod 700 %s/abcd; chmod 666 %s/abcd/*[!n]", backups);
	refuses(&id_a, "/p", &output_1, "is damaged");
}

TEST(backup_makes_the_last_part_only)
{
	char deep[320];
	struct me_backup b;

	snprintf(deep, sizeof(deep), "%s/a/b", dir);
	ck_assert_int_eq(me_backup_open(&b, deep, true, &err), -ENOENT);
	me_backup_close(&b);
	ck_assert_int_eq(me_backup_open(&b, deep, false, &err), 0);
	ck_assert_int_eq(b.fd, -1);
	me_backup_close(&b);
	snprintf(deep, sizeof(deep), "%s/a//", dir);
	ck_assert_int_eq(me_backup_open(&b, deep, true, &err), 0);
	me_backup_close(&b);
}

/* The default directory is below the state directory and is created. */
TEST(backup_has_a_default_directory)
{
	struct me_backup b;
	struct stat st;
	char want[320];
	int status;
	pid_t pid;

	if (geteuid() == 0)
		ck_assert_int_eq(chown(dir, 1234, 1234), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (geteuid() == 0 && (setgid(1234) || setuid(1234)))
			_exit(9);
		unsetenv("XDG_STATE_HOME");
		setenv("HOME", dir, 1);
		snprintf(want, sizeof(want), "%s/.local/state/morph/backup", dir);
		if (me_backup_open(&b, NULL, true, &err) || strcmp(b.path, want) || b.fd < 0 ||
		    stat(want, &st) || (st.st_mode & 07777) != 0700)
			_exit(1);
		me_backup_close(&b);
		setenv("XDG_STATE_HOME", "relative", 1);
		if (me_backup_open(&b, NULL, false, &err) || strcmp(b.path, want))
			_exit(2);
		me_backup_close(&b);
		setenv("XDG_STATE_HOME", "/nowhere/state", 1);
		if (me_backup_open(&b, NULL, false, &err) || b.fd >= 0 ||
		    strcmp(b.path, "/nowhere/state/morph/backup"))
			_exit(3);
		me_backup_close(&b);
		unsetenv("XDG_STATE_HOME");
		unsetenv("HOME");
		if (!me_backup_open(&b, NULL, true, &err) || !strstr(err.msg, "--backup-dir"))
			_exit(4);
		me_backup_close(&b);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* The owner of a directory above could else have root write anywhere. */
TEST(backup_of_root_follows_no_link_of_another_user_to_a_debug_file)
{
	AUTO(me_attributes_fini) struct me_attributes attributes = {0};
	char path[400], name[300];
	struct me_backup_debug debug = {.path = path};
	int fd;

	if (geteuid())
		MORPH_SKIP("not root");
	fd = file("text", &debug.digest, &attributes);
	shell("mkdir %s/mine %s/other", dir);
	snprintf(name, sizeof(name), "%s/link", dir);
	ck_assert_int_eq(symlink("mine", name), 0);
	snprintf(path, sizeof(path), "%s/link/.debug/1234.debug", dir);
	ck_assert_msg(!me_backup_debug_put(&debug, fd, "/etc/passwd", &err), "%s", err.msg);
	snprintf(path, sizeof(path), "%s/mine/.debug/1234.debug", dir);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(lchown(name, 65534, 65534), 0);
	snprintf(path, sizeof(path), "%s/link/.debug/1234.debug", dir);
	ck_assert_int_eq(me_backup_debug_remove(&debug, &err), -EACCES);
	ck_assert_int_eq(access(path, F_OK), 0);
	shell("rm -r %s/mine/.debug", dir);
	ck_assert_int_eq(me_backup_debug_put(&debug, fd, "/etc/passwd", &err), -EACCES);
	snprintf(path, sizeof(path), "%s/mine/.debug", dir);
	ck_assert_int_eq(access(path, F_OK), -1);
	close(fd);
}
