// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_open - which files are accepted as a store; read-only media, damage.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "libprof/store/store_paths.h"
#include "tests/unit/files.h"
#include "tests/unit/store_fixture.h"

/* ---- open ---------------------------------------------------------------------------------- */

FIXTURE(setup, teardown);

TEST(store_open_refuses_what_is_no_store)
{
	struct mp_store *store;
	sqlite3 *foreign;
	char junk[8192];

	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, db));
	write_file(db, "", 0);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -ENOENT);
	memset(junk, 'j', sizeof(junk));
	write_file(db, junk, sizeof(junk));
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -EBADMSG);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "not a database"));
	ck_assert_int_eq(mp_store_open(dir, MP_STORE_WRITE, &store, &err), -EBADMSG);
	unlink(db);
	ck_assert_int_eq(sqlite3_open(db, &foreign), SQLITE_OK);
	sqlite3_exec(foreign, "CREATE TABLE t(x)", NULL, NULL, NULL);
	sqlite3_close(foreign);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "not one of Morph's"));
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -EBADMSG);
	snprintf(db, sizeof(db), "%s/no/such/dir.db", dir);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -ENOENT);
}

TEST(store_open_refuses_another_schema)
{
	struct mp_store *store;

	mp_store_close(open_as(MP_STORE_WRITE));
	tamper("PRAGMA user_version = 17");
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -EPROTO);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EPROTO);
	ck_assert_ptr_nonnull(
		strstr(err.msg, "has schema 17, of a Morph before the first release"));
	tamper("PRAGMA user_version = 0");
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EBADMSG);
	tamper("PRAGMA user_version = 77");
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -EPROTO);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EPROTO);
	ck_assert_ptr_nonnull(strstr(err.msg, "schema 77"));
}

TEST(store_open_refuses_a_schema_with_more_in_it)
{
	struct mp_store *store;

	mp_store_close(open_as(MP_STORE_WRITE));
	tamper("CREATE TRIGGER t AFTER INSERT ON module BEGIN DELETE FROM module; END");
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -EBADMSG);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EBADMSG);
	tamper("DROP TRIGGER t");
	mp_store_close(open_as(MP_STORE_WRITE));
}

TEST(store_without_a_name_leaves_no_file)
{
	AUTO(close_store) struct mp_store *store = NULL;

	ok(mp_store_open("", MP_STORE_WRITE, &store, &err));
	put(store, 1, 0);
}

/* Runs @fn as an ordinary user, since permissions do not bind root. Return: exit status. */
static int as_nobody(int (*fn)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(99);
		_exit(fn());
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status), "killed by %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static int read_it(void)
{
	struct mp_store *store;

	if (mp_store_open(db, MP_STORE_READ, &store, &err))
		return 1;
	if (mp_store_check(store, &err))
		return 2;
	mp_store_close(store);
	return 0;
}

static int read_fails(void)
{
	struct mp_store *store;
	int r = mp_store_open(db, MP_STORE_READ, &store, &err);

	return r == -EACCES ? 0 : 1;
}

static int write_fails(void)
{
	struct mp_store *store;
	int r = mp_store_open(db, MP_STORE_WRITE, &store, &err);

	return r == -EACCES ? 0 : 1;
}

static int write_it(void)
{
	struct mp_store *store;

	if (mp_store_open(db, MP_STORE_WRITE, &store, &err))
		return 1;
	mp_store_close(store);
	return 0;
}

TEST(store_of_root_belongs_to_whom_the_directory_belongs)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	struct mp_store *store;
	char name[4200];
	struct stat st;
	size_t i;

	if (geteuid())
		MORPH_SKIP("root alone can make files of others");
	ck_assert_int_eq(chown(dir, 65534, 65534), 0);
	store = open_as(MP_STORE_WRITE);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s%s", db, suffixes[i]);
		ck_assert_int_eq(stat(name, &st), 0);
		ck_assert_msg(st.st_uid == 65534 && st.st_gid == 65534, "%s: of %u", name,
			      st.st_uid);
	}
	mp_store_close(store);
	ck_assert_int_eq(as_nobody(write_it), 0);
	/* An existing file keeps its owner, and a symbolic link is not followed. */
	snprintf(name, sizeof(name), "%s-other", db);
	write_file(name, "x", 1);
	ok(mp_store_make_file(name, &err));
	ck_assert_int_eq(stat(name, &st), 0);
	ck_assert_uint_eq(st.st_uid, 0);
	ck_assert_int_eq(unlink(name), 0);
	unlink(db);
	ck_assert_int_eq(symlink(name, db), 0);
	ck_assert_int_eq(lchown(db, 65534, 65534), 0);
	ck_assert_int_eq(mp_store_make_file(db, &err), -EPERM);
	ck_assert_int_eq(stat(name, &st), -1);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "another user"));
	ck_assert_int_eq(stat(name, &st), -1);
	ck_assert_int_eq(unlink(db), 0);
}

/* SQLite of root makes the -wal file of an idle database as root's, and then gives it away. */
TEST(store_waits_for_files_that_root_is_giving_away)
{
	static const struct timespec moment = {0, 200000000};
	char wal[512];
	pid_t giver;
	int status;

	if (geteuid())
		MORPH_SKIP("root alone can make files of others");
	ck_assert_int_eq(chown(dir, 65534, 65534), 0);
	mp_store_close(open_as(MP_STORE_WRITE));
	snprintf(wal, sizeof(wal), "%s-wal", db);
	write_file(wal, "", 0);
	ck_assert_int_eq(chmod(wal, 0600), 0);
	giver = fork();
	if (!giver) {
		nanosleep(&moment, NULL);
		_exit(!!chown(wal, 65534, 65534));
	}
	ck_assert_int_eq(as_nobody(write_it), 0);
	ck_assert_int_eq(waitpid(giver, &status, 0), giver);
	ck_assert_int_eq(status, 0);
}

TEST(store_reads_where_it_cannot_write)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	struct mp_ip_count count = {0x1000, 5};

	ok(mp_store_add_ip_counts(store, put(store, 1, 0), NOW, &count, 1, &err));
	add_ledger(store, session.key, 5);
	ck_assert_int_eq(chmod(dir, 0555), 0);
	/* The permissions that older versions gave. */
	for (size_t i = 0; i < 3; i++) {
		char name[512];

		snprintf(name, sizeof(name), "%s%s", db, (const char *[]){"", "-wal", "-shm"}[i]);
		ck_assert_int_eq(chmod(name, 0444), 0);
	}
	if (geteuid()) {
		/*
		 * The writer still has -shm open, and an ordinary owner cannot become another
		 * user.
		 */
		mp_store_close(store);
		ck_assert_int_eq(read_it(), 0);
		chmod(dir, 0700);
		return;
	}
	ck_assert_int_eq(as_nobody(read_it), 0); /* while there is a writer */
	ck_assert_int_eq(as_nobody(write_fails), 0);
	mp_store_close(store);
	ck_assert_int_eq(as_nobody(read_it), 0); /* without a writer and -wal */
	ck_assert_int_eq(chmod(db, 0400), 0);
	ck_assert_int_eq(as_nobody(read_fails), 0);
	chmod(dir, 0700);
}

TEST(store_reads_on_a_read_only_file_system)
{
	struct mp_store *store;
	struct mp_session session;
	struct mp_ip_count count = {0x1000, 5};
	char mnt[256];

	snprintf(mnt, sizeof(mnt), "%s/mnt", dir);
	ck_assert_int_eq(mkdir(mnt, 0700), 0);
	if (mount("none", mnt, "tmpfs", 0, "size=4m"))
		MORPH_SKIP("cannot mount a tmpfs: %s", strerror(errno));
	snprintf(db, sizeof(db), "%s/morph %%3f?#.db", mnt);
	store = open_as(MP_STORE_WRITE);
	session = start(store);
	ok(mp_store_add_ip_counts(store, put(store, 1, 0), NOW, &count, 1, &err));
	add_ledger(store, session.key, 5);
	mp_store_close(store);
	ck_assert_int_eq(mount("none", mnt, "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_int_ne(mp_store_open(db, MP_STORE_WRITE, &store, &err), 0);
	umount(mnt);
}

TEST(store_says_when_a_dead_writers_wal_cannot_be_read)
{
	struct mp_store *store;
	char mnt[256], cmd[1024];

	snprintf(mnt, sizeof(mnt), "%s/mnt", dir);
	ck_assert_int_eq(mkdir(mnt, 0700), 0);
	if (mount("none", mnt, "tmpfs", 0, "size=4m"))
		MORPH_SKIP("cannot mount a tmpfs: %s", strerror(errno));
	/* A copy of a database in use has -wal but no -shm. */
	store = open_as(MP_STORE_WRITE);
	put(store, 1, 0);
	snprintf(cmd, sizeof(cmd), "cp %s %s-wal %s", db, db, mnt);
	ck_assert_int_eq(system(cmd), 0);
	mp_store_close(store);
	ck_assert_int_eq(mount("none", mnt, "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
	snprintf(db, sizeof(db), "%s/morph.db", mnt);
	ck_assert_int_ne(mp_store_open(db, MP_STORE_READ, &store, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "a writer was killed"));
	umount(mnt);
}

/* ---- damage -------------------------------------------------------------------------------- */

/* Runs every reader of the store on the current file. */
static int use_everything(void)
{
	struct mp_store *store;
	struct mp_module *modules = NULL;
	struct mp_session *sessions = NULL;
	struct mp_program_activity *programs = NULL;
	size_t nr = 0, n;
	int r = mp_store_open(db, MP_STORE_READ, &store, &err), any;

	if (r)
		return r;
	any = mp_store_list_modules(store, 0, &modules, &nr, &err);
	for (size_t i = 0; !any && i < nr; i++) {
		AUTO_FREE struct mp_ip_count *counts = NULL;
		AUTO_FREE struct mp_edge_count *edges = NULL;

		any = mp_store_read_ip_counts(store, modules[i].key, 0, &counts, &n, &err);
		if (!any)
			any = mp_store_read_edges(store, modules[i].key, 0, &edges, &n, &err);
	}
	mp_store_free_modules(modules, nr);
	r = mp_store_list_sessions(store, &sessions, &n, &err);
	if (!r)
		free(sessions);
	any = any ? any : r;
	r = mp_store_list_activity(store, 0, &programs, &n, &err);
	if (!r)
		free(programs);
	any = any ? any : r;
	r = mp_store_check(store, &err);
	any = any ? any : r;
	mp_store_close(store);
	return any;
}

static void make_sample_store(void)
{
	static struct mp_ip_count counts[3000];
	static struct mp_edge_count edges[3000];
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	struct mp_activity activity = {1, 2, 3, 4};

	for (unsigned int i = 0; i < 5; i++) {
		int64_t module = put(store, i, 1 << 20);

		fill(counts, 3000, 0x1000, 100, i + 1);
		ok(mp_store_add_ip_counts(store, module, NOW + i * DAY, counts, 3000, &err));
		add_ledger(store, session.key, sum(counts, 3000));
		ok(mp_store_add_activity(store, module, NOW, &activity, &err));
		fill_edges(edges, 3000, 0x1000, 100, i + 1);
		ok(mp_store_add_edges(store, module, NOW + i * DAY, edges, 3000, &err));
	}
	mp_store_close(store);
	ck_assert_int_eq(use_everything(), 0);
}

TEST(store_truncated_anywhere_is_an_error)
{
	size_t size;
	AUTO_FREE char *data = NULL;

	make_sample_store();
	data = read_file(db, &size);
	for (size_t cut = 1; cut < size; cut += cut < 200 ? 13 : 777) {
		write_file(db, data, cut);
		ck_assert_int_ne(use_everything(), 0);
		ck_assert_int_ne(err.msg[0], '\0');
	}
}

TEST(store_with_flipped_bits_never_crashes_nor_lies_about_counts)
{
	uint64_t seed = 99;
	size_t size, nr_found = 0;
	uint8_t *data, *copy;

	make_sample_store();
	data = read_file(db, &size);
	copy = malloc(size);
	for (int round = 0; round < 1500; round++) {
		int nr_flips = 1 + round % 4;

		memcpy(copy, data, size);
		for (int i = 0; i < nr_flips; i++)
			copy[next_random(&seed) % size] ^= 1u << next_random(&seed) % 8;
		write_file(db, copy, size);
		nr_found += use_everything() != 0;
	}
	/* Undetected changes hit free space, paths or times; counts have checksums. */
	ck_assert_uint_ge(nr_found, 600);
	free(copy);
	free(data);
}

TEST(store_flipped_count_is_found)
{
	AUTO(close_store) struct mp_store *store = NULL;
	struct mp_ip_count *counts;
	size_t nr;

	make_sample_store();
	/* The last byte of a chunk's data: a count or a distance, so any value is plausible. */
	tamper("UPDATE chunk SET data = substr(data, 1, length(data) - 1) ||"
	       " CASE substr(data, -1) WHEN x'04' THEN x'05' ELSE x'04' END WHERE key = 1");
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_read_ip_counts(store, 1, 0, &counts, &nr, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "checksum"));
}

/* ---- path ---------------------------------------------------------------------------------- */

TEST(store_path_follows_the_documented_order)
{
	char path[256], want[256];

	setenv("MORPH_DB", "/x/y.db", 1);
	ok(mp_store_default_path(path, sizeof(path), false, &err));
	ck_assert_str_eq(path, "/x/y.db");
	unsetenv("MORPH_DB");
	if (geteuid() == 0) {
		ok(mp_store_default_path(path, sizeof(path), false, &err));
		ck_assert_str_eq(path, "/var/lib/morph/morph.db");
		ck_assert_int_eq(chmod(dir, 0777), 0);
		ck_assert_int_eq(seteuid(65534), 0);
	}
	setenv("XDG_STATE_HOME", dir, 1);
	snprintf(want, sizeof(want), "%s/morph/morph.db", dir);
	ok(mp_store_default_path(path, sizeof(path), true, &err));
	ck_assert_str_eq(path, want);
	*strrchr(want, '/') = '\0';
	ck_assert_int_eq(access(want, W_OK), 0);
	setenv("XDG_STATE_HOME", "relative", 1);
	setenv("HOME", dir, 1);
	snprintf(want, sizeof(want), "%s/.local/state/morph/morph.db", dir);
	ok(mp_store_default_path(path, sizeof(path), false, &err));
	ck_assert_str_eq(path, want);
	unsetenv("HOME");
	ck_assert_int_eq(mp_store_default_path(path, sizeof(path), false, &err), -ENOENT);
	setenv("HOME", dir, 1);
	ck_assert_int_eq(mp_store_default_path(path, 10, false, &err), -ENAMETOOLONG);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0); /* teardown removes root's files */
}
