// SPDX-License-Identifier: Apache-2.0
/*
 * test_audit_ring - windows come out of the file as they were written, each once; what was
 * overwritten, not finished, cut short or made by somebody else is never taken for a window.
 */
#include "libprof/note/audit_ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/suite.h"

#define FUNCTIONS 3
#define TABLE	  4096 /* bytes of the functions, rounded up */
#define SIZE                                                                                       \
	(MP_AUDIT_FILE_HEADER_BYTES + TABLE + MP_AUDIT_NR_RECORDS * sizeof(struct mp_audit_record))
#define SECOND INT64_C(1000000000)

static char path[64];
static char *map;
static struct mp_audit_file_header *header;
static struct mp_audit_function *functions;
static struct mp_audit_record *records;
static struct mp_audit_record out[2 * MP_AUDIT_NR_RECORDS];

static void setup(void)
{
	int fd;

	strcpy(path, "/tmp/morph-ring-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, SIZE), 0);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	close(fd);
	header = (void *)map;
	functions = (void *)(map + MP_AUDIT_FILE_HEADER_BYTES);
	records = (void *)(map + MP_AUDIT_FILE_HEADER_BYTES + TABLE);
	*header = (struct mp_audit_file_header){.magic = {0},
						.version = MP_AUDIT_FILE_VERSION,
						.header_bytes = MP_AUDIT_FILE_HEADER_BYTES,
						.table_hash = 77,
						.nr_functions = FUNCTIONS,
						.nr_records = MP_AUDIT_NR_RECORDS};
	memcpy(header->magic, MP_AUDIT_FILE_MAGIC, 8);
	err.msg[0] = '\0';
}

static void teardown(void)
{
	munmap(map, SIZE);
	unlink(path);
}

/* As the program does: first the number of the next record, last its own. */
static void write_window(uint64_t ticks)
{
	uint64_t number = __atomic_fetch_add(&header->next, 1, __ATOMIC_SEQ_CST);
	struct mp_audit_record *r = &records[number % MP_AUDIT_NR_RECORDS];

	r->ticks = ticks;
	r->rounds = ~ticks;
	r->pair = ticks ^ 0x5555;
	r->function = 1;
	__atomic_store_n(&r->number, number + 1, __ATOMIC_RELEASE);
}

static struct mp_audit_ring open_ring(enum mp_audit_ring_start start)
{
	struct mp_audit_ring ring;

	ck_assert_msg(!mp_audit_ring_open(&ring, path, start, &err), "%s", err.msg);
	return ring;
}

static size_t read_all(struct mp_audit_ring *ring, int64_t now_ns)
{
	size_t nr;

	ck_assert_msg(!mp_audit_ring_read(ring, now_ns, out, 2 * MP_AUDIT_NR_RECORDS, &nr, &err),
		      "%s", err.msg);
	return nr;
}

static void expect_refused(int code, const char *message)
{
	struct mp_audit_ring ring;

	ck_assert_int_eq(mp_audit_ring_open(&ring, path, MP_AUDIT_RING_ALL, &err), -code);
	ck_assert_int_eq(ring.fd, -1);
	ck_assert_msg(strstr(err.msg, message), "%s", err.msg);
}

FIXTURE(setup, teardown);

TEST(ring_gives_each_window_once)
{
	AUTO(mp_audit_ring_close) struct mp_audit_ring ring = open_ring(MP_AUDIT_RING_ALL);
	uint64_t written = 0, read = 0;

	ck_assert_uint_eq(ring.nr_functions, FUNCTIONS);
	ck_assert_uint_eq(ring.table_hash, 77);
	ck_assert_uint_eq(read_all(&ring, 1), 0);
	/* Several times around the ring, in steps that do not divide it. */
	while (written < 5 * MP_AUDIT_NR_RECORDS) {
		size_t nr;

		for (int i = 0; i < 999; i++)
			write_window(written++);
		nr = read_all(&ring, 1);
		ck_assert_uint_eq(nr, 999);
		for (size_t i = 0; i < nr; i++)
			ck_assert_uint_eq(out[i].ticks, read++);
	}
	ck_assert_uint_eq(ring.lost + ring.torn, 0);
}

TEST(ring_counts_what_was_overwritten)
{
	AUTO(mp_audit_ring_close) struct mp_audit_ring ring = open_ring(MP_AUDIT_RING_ALL);
	size_t nr;

	for (uint64_t i = 0; i < 3 * MP_AUDIT_NR_RECORDS + 5; i++)
		write_window(i);
	nr = read_all(&ring, 1);
	ck_assert_uint_eq(nr, MP_AUDIT_NR_RECORDS);
	ck_assert_uint_eq(ring.lost, 2 * MP_AUDIT_NR_RECORDS + 5);
	for (size_t i = 0; i < nr; i++)
		ck_assert_uint_eq(out[i].ticks, 2 * MP_AUDIT_NR_RECORDS + 5 + i);
}

/* The record keeps its old number until its writer is done. */
TEST(ring_does_not_take_an_unfinished_record_for_a_window)
{
	AUTO(mp_audit_ring_close) struct mp_audit_ring ring = open_ring(MP_AUDIT_RING_ALL);

	for (uint64_t i = 0; i < MP_AUDIT_NR_RECORDS + 10; i++)
		write_window(i);
	ck_assert_uint_eq(read_all(&ring, SECOND), MP_AUDIT_NR_RECORDS);
	header->next++; /* a writer was killed here */
	write_window(1000);
	ck_assert_uint_eq(read_all(&ring, 2 * SECOND), 0);
	ck_assert_uint_eq(read_all(&ring, 2 * SECOND + MP_AUDIT_RING_PATIENCE_NS / 2), 0);
	ck_assert_uint_eq(ring.torn, 0);
	ck_assert_uint_eq(read_all(&ring, 2 * SECOND + MP_AUDIT_RING_PATIENCE_NS), 1);
	ck_assert_uint_eq(out[0].ticks, 1000);
	ck_assert_uint_eq(ring.torn, 1);
}

TEST(ring_begins_where_it_is_told)
{
	struct mp_audit_ring all, fresh;

	for (uint64_t i = 0; i < 100; i++)
		write_window(i);
	all = open_ring(MP_AUDIT_RING_ALL);
	fresh = open_ring(MP_AUDIT_RING_FRESH);
	write_window(100);
	ck_assert_uint_eq(read_all(&all, 1), 101);
	ck_assert_uint_eq(read_all(&fresh, 1), 1);
	ck_assert_uint_eq(out[0].ticks, 100);
	mp_audit_ring_close(&all);
	mp_audit_ring_close(&fresh);
}

/* A program that writes faster than the reader reads, and the reader's checks, at the same time. */
static void *write_on(void *arg)
{
	const bool *ends = arg;
	uint64_t i = 0;

	while (!__atomic_load_n(ends, __ATOMIC_RELAXED))
		write_window(i++);
	return NULL;
}

TEST(ring_never_mixes_two_windows)
{
	AUTO(mp_audit_ring_close) struct mp_audit_ring ring = open_ring(MP_AUDIT_RING_ALL);
	bool ends = false;
	uint64_t read = 0, position = 0;
	pthread_t writer;

	ck_assert_int_eq(pthread_create(&writer, NULL, write_on, &ends), 0);
	while (read < 300000) {
		size_t nr = read_all(&ring, 1);

		for (size_t i = 0; i < nr; i++) {
			ck_assert_uint_eq(out[i].rounds, ~out[i].ticks);
			ck_assert_uint_eq(out[i].pair, out[i].ticks ^ 0x5555);
			ck_assert_uint_eq(out[i].number, out[i].ticks + 1);
			ck_assert_uint_gt(out[i].number, position);
			position = out[i].number;
		}
		read += nr;
	}
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_join(writer, NULL), 0);
	ck_assert_uint_eq(read + ring.lost + ring.torn, ring.position);
}

TEST(ring_writes_verdicts_and_nothing_else)
{
	AUTO(mp_audit_ring_close) struct mp_audit_ring ring = open_ring(MP_AUDIT_RING_ALL);
	struct mp_audit_function function;

	functions[1].starts = 5;
	ck_assert_int_eq(mp_audit_ring_decide(&ring, 1, MP_AUDIT_VERDICT_B, &err), 0);
	ck_assert_uint_eq(functions[1].verdict, MP_AUDIT_VERDICT_B);
	ck_assert_uint_eq(functions[0].verdict + functions[2].verdict, 0);
	ck_assert_int_eq(mp_audit_ring_function(&ring, 1, &function, &err), 0);
	ck_assert_uint_eq(function.verdict, MP_AUDIT_VERDICT_B);
	ck_assert_uint_eq(function.starts, 5);
	ck_assert_int_eq(mp_audit_ring_decide(&ring, FUNCTIONS, MP_AUDIT_VERDICT_A, &err), -EINVAL);
	ck_assert_int_eq(mp_audit_ring_function(&ring, FUNCTIONS, &function, &err), -EINVAL);
}

TEST(ring_waits_for_a_file_that_is_not_filled_in)
{
	char longer[80];

	memset(header->magic, 0, 8);
	expect_refused(EAGAIN, "not filled it in yet");
	ck_assert_int_eq(truncate(path, 0), 0);
	expect_refused(EAGAIN, "empty");
	snprintf(longer, sizeof(longer), "%s.x", path);
	ck_assert_int_eq(rename(path, longer), 0);
	expect_refused(ENOENT, "No such file");
	ck_assert_int_eq(rename(longer, path), 0);
}

TEST(ring_refuses_files_that_are_not_one)
{
	const struct mp_audit_file_header good = *header;
	char target[80];

	header->magic[3] = 'x';
	expect_refused(EBADMSG, "not a file of an audit");
	*header = good;
	header->version = 2;
	expect_refused(EBADMSG, "of version 2");
	*header = good;
	header->nr_functions = 0;
	expect_refused(EBADMSG, "0 functions");
	header->nr_functions = MP_AUDIT_MAX_FUNCTIONS + 1;
	expect_refused(EBADMSG, "257 functions");
	header->nr_functions = UINT32_MAX;
	expect_refused(EBADMSG, "4294967295 functions");
	/* One more page of functions than the file has. */
	header->nr_functions = 33;
	expect_refused(EBADMSG, "bytes, and not");
	*header = good;
	header->nr_records = 4;
	expect_refused(EBADMSG, "4 records");
	*header = good;
	ck_assert_int_eq(truncate(path, SIZE - 1), 0);
	expect_refused(EBADMSG, "bytes, and not");
	ck_assert_int_eq(truncate(path, 10), 0);
	expect_refused(EBADMSG, "not a file of an audit");
	snprintf(target, sizeof(target), "%s.real", path);
	ck_assert_int_eq(rename(path, target), 0);
	ck_assert_int_eq(symlink(target, path), 0);
	expect_refused(EPERM, "symbolic link");
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	expect_refused(EPERM, "not a regular file");
	unlink(target);
}

TEST(ring_survives_a_file_that_is_cut_short)
{
	AUTO(mp_audit_ring_close) struct mp_audit_ring ring = open_ring(MP_AUDIT_RING_ALL);
	struct mp_audit_function function;
	struct stat st;
	size_t nr;

	write_window(1);
	ck_assert_int_eq(truncate(path, 4096 + 4096), 0);
	ck_assert_int_eq(mp_audit_ring_read(&ring, 1, out, 10, &nr, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "cut short"));
	ck_assert_int_eq(truncate(path, 0), 0);
	ck_assert_int_eq(mp_audit_ring_read(&ring, 1, out, 10, &nr, &err), -EBADMSG);
	ck_assert_int_eq(mp_audit_ring_function(&ring, 0, &function, &err), -EBADMSG);
	/* A verdict does not make the file longer again. */
	ck_assert_int_eq(mp_audit_ring_decide(&ring, 0, MP_AUDIT_VERDICT_A, &err), -EBADMSG);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
}

TEST(ring_stops_at_numbers_that_go_back)
{
	AUTO(mp_audit_ring_close) struct mp_audit_ring ring = open_ring(MP_AUDIT_RING_ALL);
	size_t nr;

	for (uint64_t i = 0; i < 10; i++)
		write_window(i);
	ck_assert_uint_eq(read_all(&ring, 1), 10);
	header->next = 9;
	ck_assert_int_eq(mp_audit_ring_read(&ring, 1, out, 10, &nr, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "go back"));
	/* A number beyond all is a loss, not an endless loop. */
	header->next = UINT64_MAX;
	ck_assert_int_eq(mp_audit_ring_read(&ring, 1, out, 10, &nr, &err), 0);
	ck_assert_uint_eq(nr, 0);
}

TEST(ring_notices_another_file_at_its_path)
{
	AUTO(mp_audit_ring_close) struct mp_audit_ring ring = open_ring(MP_AUDIT_RING_ALL);
	char other[80];
	int fd;

	ck_assert(!mp_audit_ring_replaced(&ring, path));
	snprintf(other, sizeof(other), "%s.other", path);
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(rename(other, path), 0);
	ck_assert(mp_audit_ring_replaced(&ring, path));
	unlink(path);
	ck_assert(mp_audit_ring_replaced(&ring, path));
}

TEST(ring_of_another_user_is_refused)
{
	int status;
	pid_t pid;

	if (geteuid())
		MORPH_SKIP("only root can become another user");
	ck_assert_int_eq(chmod(path, 0666), 0);
	pid = fork();
	if (!pid) {
		struct mp_audit_ring ring;

		if (setuid(65534))
			_exit(2);
		_exit(mp_audit_ring_open(&ring, path, MP_AUDIT_RING_ALL, &err) == -EPERM &&
				      strstr(err.msg, "another user")
			      ? 0
			      : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
