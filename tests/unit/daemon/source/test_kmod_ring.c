// SPDX-License-Identifier: Apache-2.0
/*
 * test_kmod_ring - rings in plain memory, written correctly and incorrectly; kmod_merge, which
 * makes one stream of several rings; pidmap.
 */
#include "daemon/source/kmod_merge.h"

#include <pthread.h>
#include <sched.h>

#include "tests/unit/suite.h"

#define RING_BYTES 4096
#define NR_RINGS   3

/* The module's side of a ring. */
struct writer {
	struct morph_tail tail;
	struct morph_head head;
	uint64_t open; /* start of the open batch */
	uint8_t data[RING_BYTES] __attribute__((aligned(8)));
};

static struct writer writers[NR_RINGS];
static struct md_kmod_ring ring; /* reads writers[0] */
static struct md_kmod_merge m;
static struct md_buf out;

static void reset(struct writer *w, uint32_t cpu)
{
	memset(w, 0, sizeof(*w));
	w->head.ring_bytes = RING_BYTES;
	w->head.cpu = cpu;
}

static struct md_kmod_ring reader_of(struct writer *w)
{
	struct md_kmod_ring r;

	ck_assert_int_eq(md_kmod_ring_init(&r, &w->tail, &w->head, w->data, RING_BYTES, &err), 0);
	return r;
}

static void setup(void)
{
	reset(&writers[0], 0);
	ring = reader_of(&writers[0]);
	out = (struct md_buf){0};
}

static void teardown(void)
{
	md_buf_fini(&out);
}

static uint8_t *place(struct writer *w, uint64_t pos)
{
	return w->data + pos % RING_BYTES;
}

/* Like the module: a record that does not fit before the ring's end follows a PAD. */
static void *reserve(struct writer *w, uint32_t size)
{
	uint32_t left = RING_BYTES - w->head.head % RING_BYTES;

	if (size > left) {
		*(struct morph_record *)place(w, w->head.head) =
			(struct morph_record){left, MORPH_REC_PAD, 0};
		w->head.head += left;
	}
	ck_assert_uint_le(w->head.head + size - w->tail.tail, RING_BYTES);
	return place(w, w->head.head);
}

static struct morph_task *put_task(struct writer *w, uint16_t type, uint32_t size, uint64_t time_ns,
				   uint32_t tgid, uint32_t exec_id)
{
	struct morph_task *task = reserve(w, size);

	memset(task, 0, size);
	*task = (struct morph_task){
		.record = {size, type, w->head.cpu},
		.time_ns = time_ns,
		.tgid = tgid,
		.tid = tgid,
		.exec_id = exec_id,
	};
	w->head.head += size;
	return task;
}

static void put_exec(struct writer *w, uint64_t time_ns, uint32_t tgid, uint32_t exec_id)
{
	struct morph_exec *exec =
		(void *)put_task(w, MORPH_REC_EXEC, sizeof(*exec), time_ns, tgid, exec_id);

	exec->nr_threads = 1;
}

static void put_fork(struct writer *w, uint64_t time_ns, uint32_t child, uint32_t parent)
{
	struct morph_fork *fork =
		(void *)put_task(w, MORPH_REC_FORK, sizeof(*fork), time_ns, child, 1);

	fork->parent_tgid = fork->parent_tid = parent;
}

static struct morph_file *put_file(struct writer *w, uint64_t time_ns, uint32_t number,
				   const char *path)
{
	uint32_t size = (sizeof(struct morph_file) + strlen(path) + 8) / 8 * 8;
	struct morph_file *file = (void *)put_task(w, MORPH_REC_FILE, size, time_ns, 0, 0);

	file->number = number;
	file->flags = MORPH_MMAP_GENERATION;
	file->ino = 100 + number;
	file->build_id_len = 1;
	file->build_id[0] = number;
	strcpy(file->path, path);
	return file;
}

/*
 * One mapping of two pages, from the file's fourth page on; its file number is in the low bits
 * of @start.
 */
static struct morph_space *put_space(struct writer *w, uint64_t time_ns, uint32_t tgid,
				     uint32_t exec_id, uint64_t start)
{
	struct morph_space *space = (void *)put_task(w, MORPH_REC_SPACE,
						     sizeof(*space) + sizeof(space->maps[0]),
						     time_ns, tgid, exec_id);

	space->task.flags = MORPH_SPACE_NEW;
	space->nr_threads = 3;
	space->maps[0] = (struct morph_space_map){start, 2, 4};
	return space;
}

static void put_lost(struct writer *w, uint64_t time_ns, uint64_t nr, uint32_t flags)
{
	struct morph_lost *lost = reserve(w, sizeof(*lost));

	*lost = (struct morph_lost){
		.record = {sizeof(*lost), MORPH_REC_LOST, w->head.cpu},
		.time_ns = time_ns,
		.nr = nr,
		.flags = flags,
	};
	w->head.head += sizeof(*lost);
}

static void open_batch(struct writer *w, uint64_t time_ns, uint32_t tgid, uint32_t exec_id)
{
	put_task(w, MORPH_REC_SAMPLES, sizeof(struct morph_samples), time_ns, tgid, exec_id);
	w->open = w->head.head - sizeof(struct morph_samples);
}

static void add_sample(struct writer *w, uint64_t ip)
{
	memcpy(place(w, w->head.head), &ip, sizeof(ip));
	((struct morph_record *)place(w, w->open))->size += sizeof(ip);
	w->head.head += sizeof(ip);
}

static void put_samples(struct writer *w, uint64_t time_ns, uint32_t tgid, uint32_t exec_id,
			uint32_t nr)
{
	uint32_t i;

	reserve(w, sizeof(struct morph_samples) + nr * 8);
	open_batch(w, time_ns, tgid, exec_id);
	for (i = 0; i < nr; i++)
		add_sample(w, time_ns + i);
}

/* ---- one ring ------------------------------------------------------------------------------- */

static void take_all(void)
{
	while (ring.next.time_ns != UINT64_MAX)
		ck_assert_msg(md_kmod_ring_take(&ring, &out, &err) == 0, "%s", err.msg);
}

static void read_all(void)
{
	out.size = 0;
	ck_assert_msg(md_kmod_ring_refresh(&ring, &err) == 0, "%s", err.msg);
	take_all();
	md_kmod_ring_release(&ring);
}

/* Expects a record of @type at *@pos; for samples, @nr of them from @ip on. */
static struct morph_task *expect_in(struct md_buf *buf, size_t *pos, uint16_t type, uint64_t ip,
				    uint32_t nr)
{
	struct morph_record *record;
	struct morph_samples *samples;
	uint32_t i;

	ck_assert_int_eq(md_record_next(buf->data, buf->size, pos, &record), 0);
	ck_assert_uint_eq(record->type, type);
	samples = (void *)record;
	if (type == MORPH_REC_SAMPLES) {
		ck_assert_uint_eq(md_samples_nr(samples), nr);
		for (i = 0; i < nr; i++)
			ck_assert_uint_eq(samples->ips[i], ip + i);
	}
	return &samples->task;
}

static struct morph_task *expect(size_t *pos, uint16_t type, uint64_t ip, uint32_t nr)
{
	return expect_in(&out, pos, type, ip, nr);
}

static void expect_end(size_t pos)
{
	ck_assert_uint_eq(pos, out.size);
}

FIXTURE(setup, teardown);

TEST(ring_gives_records_as_they_were_written)
{
	struct writer *w = &writers[0];
	size_t pos = 0;

	put_exec(w, 10, 5, 1);
	put_samples(w, 20, 5, 1, 3);
	put_fork(w, 30, 6, 5);
	read_all();
	ck_assert_uint_eq(expect(&pos, MORPH_REC_EXEC, 0, 0)->tgid, 5);
	ck_assert_uint_eq(expect(&pos, MORPH_REC_SAMPLES, 20, 3)->time_ns, 20);
	ck_assert_uint_eq(expect(&pos, MORPH_REC_FORK, 0, 0)->tgid, 6);
	expect_end(pos);
	ck_assert_uint_eq(w->tail.tail, w->head.head);
}

TEST(open_batch_goes_on_under_the_same_header)
{
	struct writer *w = &writers[0];
	struct morph_task *task;
	size_t pos = 0;

	open_batch(w, 100, 5, 7);
	read_all();
	expect_end(0); /* no sample yet */
	add_sample(w, 1);
	add_sample(w, 2);
	read_all();
	expect(&pos, MORPH_REC_SAMPLES, 1, 2);
	expect_end(pos);
	ck_assert_uint_eq(w->tail.tail, 0); /* the module still writes to this batch */
	read_all();
	expect_end(0);
	add_sample(w, 3);
	read_all();
	pos = 0;
	task = expect(&pos, MORPH_REC_SAMPLES, 3, 1);
	ck_assert_uint_eq(task->time_ns, 100);
	ck_assert_uint_eq(task->tgid, 5);
	ck_assert_uint_eq(task->exec_id, 7);
	expect_end(pos);
	add_sample(w, 4);
	put_exec(w, 200, 5, 8);
	read_all();
	pos = 0;
	expect(&pos, MORPH_REC_SAMPLES, 4, 1);
	expect(&pos, MORPH_REC_EXEC, 0, 0);
	expect_end(pos);
	ck_assert_uint_eq(w->tail.tail, w->head.head);
}

TEST(batch_that_was_read_whole_is_passed_when_something_follows)
{
	struct writer *w = &writers[0];
	size_t pos = 0;

	put_samples(w, 100, 5, 1, 2);
	read_all();
	ck_assert_uint_eq(w->tail.tail, 0);
	put_samples(w, 200, 6, 1, 2);
	read_all();
	expect(&pos, MORPH_REC_SAMPLES, 200, 2);
	expect_end(pos);
	ck_assert_uint_eq(w->tail.tail, sizeof(struct morph_samples) + 16);
}

/* The record's size includes a sample that the head does not cover yet. */
TEST(sample_beyond_the_head_is_left_for_later)
{
	struct writer *w = &writers[0];
	size_t pos = 0;

	put_samples(w, 100, 5, 1, 3);
	w->head.head -= 8;
	memset(place(w, w->head.head), 0xee, 8);
	read_all();
	expect(&pos, MORPH_REC_SAMPLES, 100, 2);
	expect_end(pos);
	memcpy(place(w, w->head.head), &(uint64_t){102}, 8);
	w->head.head += 8;
	read_all();
	pos = 0;
	expect(&pos, MORPH_REC_SAMPLES, 102, 1);
	expect_end(pos);
}

TEST(pads_are_skipped_down_to_the_smallest)
{
	struct writer *w = &writers[0];
	uint64_t end;
	size_t pos;

	/* 8 to 40 bytes are left before the ring's end, too few for an EXEC. */
	for (end = RING_BYTES - 8; end > RING_BYTES - 40; end -= 8) {
		reset(w, 0);
		w->head.head = w->tail.tail = end;
		ring = reader_of(w);
		put_exec(w, 10, 5, 1);
		ck_assert_uint_eq(w->head.head, RING_BYTES + sizeof(struct morph_exec));
		read_all();
		pos = 0;
		expect(&pos, MORPH_REC_EXEC, 0, 0);
		expect_end(pos);
		ck_assert_uint_eq(w->tail.tail, w->head.head);
	}
}

TEST(pad_alone_is_nothing_but_is_given_back)
{
	struct writer *w = &writers[0];

	*(struct morph_record *)w->data = (struct morph_record){8, MORPH_REC_PAD, 0};
	w->head.head = 8;
	read_all();
	expect_end(0);
	ck_assert_uint_eq(w->tail.tail, 8);
}

TEST(batch_up_to_the_rings_end_needs_nothing_behind_it)
{
	struct writer *w = &writers[0];
	size_t pos = 0;

	w->head.head = w->tail.tail = RING_BYTES - sizeof(struct morph_samples) - 16;
	ring = reader_of(w);
	put_samples(w, 100, 5, 1, 2);
	ck_assert_uint_eq(w->head.head, RING_BYTES);
	read_all();
	expect(&pos, MORPH_REC_SAMPLES, 100, 2);
	expect_end(pos);
	ck_assert_uint_eq(w->tail.tail, RING_BYTES);
	put_samples(w, 200, 5, 1, 1);
	read_all();
	pos = 0;
	expect(&pos, MORPH_REC_SAMPLES, 200, 1);
	expect_end(pos);
}

TEST(later_types_are_skipped_by_their_size)
{
	struct writer *w = &writers[0];
	size_t pos = 0;

	put_task(w, MORPH_REC_MODULE_CALLS + 1, 64, 10, 5, 1);
	put_task(w, 999, 8, 0, 0, 0);
	put_exec(w, 20, 5, 1);
	read_all();
	expect(&pos, MORPH_REC_EXEC, 0, 0);
	expect_end(pos);
}

/* Reads the ring in pieces of all sizes, many times around: each sample arrives once. */
TEST(ring_is_read_around_without_loss)
{
	struct writer *w = &writers[0];
	uint32_t seed = 12345, i, nr;
	uint64_t put = 0, seen = 0, events = 0, seen_events = 0, time_ns = 1;
	struct morph_record *record;
	size_t pos;

	for (i = 0; i < 20000; i++) {
		seed = seed * 1103515245 + 12345;
		nr = 1 + (seed >> 16) % 20;
		if (RING_BYTES - (w->head.head - w->tail.tail) < 2 * (32 + 20 * 8)) {
			/* no room */
		} else if (seed >> 28 < 4) {
			put_exec(w, time_ns++, 5, 1);
			events++;
		} else if (seed >> 28 < 12 || w->open == UINT64_MAX ||
			   w->open + ((struct morph_record *)place(w, w->open))->size !=
				   w->head.head ||
			   RING_BYTES - w->head.head % RING_BYTES < 20 * 8 ||
			   !(w->head.head % RING_BYTES)) {
			put_samples(w, time_ns++, 5, 1, nr);
			put += nr;
		} else {
			for (; nr; nr--, put++)
				add_sample(w, put);
		}
		if (seed % 3)
			continue;
		read_all();
		for (pos = 0; !md_record_next(out.data, out.size, &pos, &record);) {
			seen += md_record_emitted(record);
			seen_events += record->type == MORPH_REC_EXEC;
		}
	}
	read_all();
	for (pos = 0; !md_record_next(out.data, out.size, &pos, &record);) {
		seen += md_record_emitted(record);
		seen_events += record->type == MORPH_REC_EXEC;
	}
	ck_assert_uint_gt(w->head.head, 50 * RING_BYTES);
	ck_assert_uint_eq(seen, put);
	ck_assert_uint_eq(seen_events, events);
}

/* ---- rubbish -------------------------------------------------------------------------------- */

/* Each case makes a ring that must be refused, with one line that names the CPU. */
TEST_EACH(rubbish_is_refused, 18)
{
	struct writer *w = &writers[0];
	struct morph_mmap *mmap;
	struct morph_record *r;
	int ret;

	put_exec(w, 10, 5, 1);
	r = (struct morph_record *)place(w, w->head.head);
	*r = (struct morph_record){64, MORPH_REC_EXEC, 0};
	w->head.head += 64;
	switch (_i) {
	case 0: r->size = 0; break;
	case 1: r->size = 4; break;
	case 2: r->size = 63; break;
	case 3: r->size = 128; break;		   /* beyond the head */
	case 4: r->size = 65528; break;		   /* beyond the ring's end */
	case 5: r->type = MORPH_REC_MODULE; break; /* only morphd may write this type */
	case 6: r->size = 16; break;		   /* too short for an EXEC */
	case 7: *r = (struct morph_record){24, MORPH_REC_SAMPLES, 0}; break;
	case 8: w->head.head = 3 * RING_BYTES; break; /* further than the ring's size */
	case 9: w->head.head += 4; break;
	case 10:
		mmap = (struct morph_mmap *)put_task(w, MORPH_REC_MMAP, sizeof(*mmap) + 8, 20, 5,
						     1);
		mmap->len = 4096;
		memset(mmap->path, 'x', 8); /* not terminated */
		break;
	case 11:
		mmap = (struct morph_mmap *)put_task(w, MORPH_REC_MMAP, sizeof(*mmap) + 8, 20, 5,
						     1);
		mmap->len = 4096;
		mmap->build_id_len = 33;
		break;
	case 12: put_file(w, 20, MORPH_NR_FILES, "/bin/x"); break;
	case 13: put_file(w, 20, 1, "/bin/x")->path[7] = 'x'; break; /* not terminated */
	case 14: put_file(w, 20, 1, "/bin/x")->build_id_len = 33; break;
	case 15: put_space(w, 20, 5, 1, 0x400000)->maps[0].nr_pages = 0; break;
	case 16: put_space(w, 20, 5, 1, 0x400000)->maps[0].start = -8192; break;
	case 17: put_space(w, 20, 5, 1, 0x400000)->task.record.size -= 8; break;
	}
	ret = md_kmod_ring_refresh(&ring, &err);
	while (!ret && ring.next.time_ns != UINT64_MAX)
		ret = md_kmod_ring_take(&ring, &out, &err);
	ck_assert_int_eq(ret, -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "/dev/morphmon: CPU 0's ring is malformed"));
	ck_assert_ptr_null(strchr(err.msg, '\n'));
}

/* The head moves back, or an open batch shrinks. */
TEST_EACH(what_was_read_cannot_be_taken_back, 2)
{
	struct writer *w = &writers[0];

	put_samples(w, 10, 5, 1, 3);
	read_all();
	if (_i) {
		w->head.head -= 8;
	} else {
		((struct morph_record *)w->data)->size -= 8;
		put_exec(w, 20, 5, 1);
	}
	ck_assert_int_eq(md_kmod_ring_refresh(&ring, &err), -EBADMSG);
}

TEST(memory_that_is_no_ring_is_refused)
{
	struct writer *w = &writers[0];
	struct md_kmod_ring r;

	w->head.ring_bytes = 8192;
	ck_assert_int_eq(md_kmod_ring_init(&r, &w->tail, &w->head, w->data, RING_BYTES, &err),
			 -EBADMSG);
	w->head.ring_bytes = 4104;
	ck_assert_int_eq(md_kmod_ring_init(&r, &w->tail, &w->head, w->data, 4104, &err), -EBADMSG);
}

/* Any memory gives an error or valid records, and an end. */
TEST_EACH(any_bytes_end_in_records_or_an_error, 500)
{
	struct writer *w = &writers[0];
	struct morph_record *record;
	uint32_t seed = _i + 1, i;
	size_t pos = 0;
	int ret;

	for (i = 0; i < RING_BYTES; i++) {
		seed = seed * 1103515245 + 12345;
		w->data[i] = seed >> 16;
	}
	/* Plausible headers, so that parsing goes on for a while. */
	for (i = 0; i < RING_BYTES; i += 8 << seed % 5) {
		seed = seed * 1103515245 + 12345;
		*(struct morph_record *)(w->data + i) =
			(struct morph_record){(seed >> 8) % 200 / 8 * 8, (seed >> 20) % 16, 0};
	}
	w->head.head = (seed >> 4) % (RING_BYTES + 1) & ~7u;
	ret = md_kmod_ring_refresh(&ring, &err);
	while (!ret && ring.next.time_ns != UINT64_MAX)
		ret = md_kmod_ring_take(&ring, &out, &err);
	md_kmod_ring_release(&ring);
	ck_assert_uint_le(w->tail.tail, w->head.head);
	while (!(ret = md_record_next(out.data, out.size, &pos, &record)))
		;
	ck_assert_int_eq(ret, -ENODATA);
}

/* ---- a writer on another CPU ------------------------------------------------------------------ */

#define NR_RACED 300000

static void publish(struct writer *w, uint64_t bytes)
{
	__atomic_store_n(&w->head.head, w->head.head + bytes, __ATOMIC_RELEASE);
}

/*
 * Writes batches of up to 50 numbered samples, updating the size before the head like the
 * module.
 */
static void *race(void *arg)
{
	struct writer *w = arg;
	struct morph_samples *batch;
	struct morph_record *record;
	uint64_t ip = 0, left, need, nr;

	while (ip < NR_RACED) {
		left = RING_BYTES - w->head.head % RING_BYTES;
		/* Room for the batch, and for a PAD before it if needed. */
		need = sizeof(*batch) + 400;
		if (left < need)
			need += left;
		while (RING_BYTES - w->head.head +
			       __atomic_load_n(&w->tail.tail, __ATOMIC_ACQUIRE) <
		       need)
			sched_yield();
		if (left < sizeof(*batch) + 400) {
			record = (struct morph_record *)place(w, w->head.head);
			*record = (struct morph_record){left, MORPH_REC_PAD, 0};
			publish(w, left);
		}
		batch = (struct morph_samples *)place(w, w->head.head);
		*batch = (struct morph_samples){
			.task = {.record = {sizeof(*batch), MORPH_REC_SAMPLES, 0}, .time_ns = ip}};
		publish(w, sizeof(*batch));
		for (nr = 1 + ip % 50; nr && ip < NR_RACED; nr--) {
			__atomic_store_n(&batch->ips[md_samples_nr(batch)], ip++, __ATOMIC_RELAXED);
			__atomic_store_n(&batch->task.record.size, batch->task.record.size + 8,
					 __ATOMIC_RELAXED);
			publish(w, 8);
		}
	}
	return NULL;
}

TEST(reader_sees_each_sample_once_while_they_are_written)
{
	struct morph_record *record;
	struct morph_samples *samples;
	uint64_t next = 0, nr_wrong = 0;
	pthread_t thread;
	size_t pos;
	uint32_t i;
	int ret = 0;

	ck_assert_int_eq(pthread_create(&thread, NULL, race, &writers[0]), 0);
	while (!ret && next < NR_RACED) {
		out.size = 0;
		ret = md_kmod_ring_refresh(&ring, &err);
		while (!ret && ring.next.time_ns != UINT64_MAX)
			ret = md_kmod_ring_take(&ring, &out, &err);
		md_kmod_ring_release(&ring);
		for (pos = 0; !md_record_next(out.data, out.size, &pos, &record);) {
			samples = (struct morph_samples *)record;
			for (i = 0; i < md_samples_nr(samples); i++)
				nr_wrong += samples->ips[i] != next++;
		}
		if (!out.size)
			sched_yield();
	}
	ck_assert_msg(ret == 0, "%s", err.msg);
	ck_assert_uint_eq(nr_wrong, 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(next, NR_RACED);
}

/* ---- several rings ---------------------------------------------------------------------------- */

static void setup_merge(void)
{
	uint32_t i;

	ck_assert_int_eq(md_kmod_merge_init(&m, 0, 0), 0);
	for (i = 0; i < NR_RINGS; i++) {
		reset(&writers[i], i);
		ring = reader_of(&writers[i]);
		ck_assert_int_eq(md_kmod_merge_add_ring(&m, &ring), 0);
	}
}

static void setup_command(void)
{
	setup_merge();
	m.command = 5;
	m.is_waiting = true;
	m.waiting_exec_id = 1;
	ck_assert_int_eq(md_pidmap_put(&m.command_processes, 5, 0), 0);
}

static void teardown_merge(void)
{
	md_kmod_merge_fini(&m);
}

static void give(uint64_t limit_ns)
{
	m.out.size = 0;
	ck_assert_int_eq(md_kmod_merge_refresh(&m, &err), 0);
	ck_assert_int_eq(md_kmod_merge_run(&m, limit_ns, &err), 0);
	md_kmod_merge_release(&m);
}

static struct morph_task *merged(size_t *pos, uint16_t type, uint32_t tgid, uint64_t ip,
				 uint32_t nr)
{
	struct morph_task *task = expect_in(&m.out, pos, type, ip, nr);

	if (md_record_has_task(type))
		ck_assert_uint_eq(task->tgid, tgid);
	return task;
}

static void merged_end(size_t pos)
{
	ck_assert_uint_eq(pos, m.out.size);
}

FIXTURE(setup_merge, teardown_merge);

TEST(merge_orders_the_records_of_all_cpus)
{
	size_t pos = 0;

	put_exec(&writers[0], 10, 5, 1);
	put_exec(&writers[0], 40, 6, 1);
	put_samples(&writers[1], 20, 5, 1, 2);
	put_exec(&writers[1], 50, 7, 1);
	put_samples(&writers[2], 30, 5, 1, 2);
	give(1000);
	merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	merged(&pos, MORPH_REC_SAMPLES, 5, 20, 2);
	merged(&pos, MORPH_REC_SAMPLES, 5, 30, 2);
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	merged(&pos, MORPH_REC_EXEC, 7, 0, 0);
	merged_end(pos);
	ck_assert_uint_eq(m.nr_samples, 4);
}

TEST(merge_puts_what_happened_first_at_one_and_the_same_moment)
{
	size_t pos = 0;

	put_samples(&writers[0], 10, 5, 1, 1);
	put_exec(&writers[1], 10, 5, 1);
	give(1000);
	merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	merged(&pos, MORPH_REC_SAMPLES, 5, 10, 1);
	merged_end(pos);
}

TEST(merge_holds_back_what_others_may_still_precede)
{
	size_t pos = 0;

	put_exec(&writers[0], 10, 5, 1);
	put_exec(&writers[0], 30, 6, 1);
	give(20);
	merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	merged_end(pos);
	ck_assert(md_kmod_merge_is_pending(&m));
	ck_assert_uint_eq(writers[0].tail.tail, sizeof(struct morph_exec));
	put_exec(&writers[1], 25, 7, 1);
	give(30);
	pos = 0;
	merged(&pos, MORPH_REC_EXEC, 7, 0, 0);
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	merged_end(pos);
	ck_assert(!md_kmod_merge_is_pending(&m));
}

/*
 * The open batch still counts at its first sample's time: its process's mappings cannot have
 * changed since, or the batch would have ended.
 */
TEST(merge_sorts_what_an_open_batch_still_gets_by_its_first_sample)
{
	size_t pos = 0;

	put_samples(&writers[0], 10, 5, 1, 2);
	give(15);
	merged(&pos, MORPH_REC_SAMPLES, 5, 10, 2);
	merged_end(pos);
	add_sample(&writers[0], 77);
	put_exec(&writers[1], 20, 5, 2);
	give(100);
	pos = 0;
	merged(&pos, MORPH_REC_SAMPLES, 5, 77, 1);
	merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	merged_end(pos);
	ck_assert_uint_eq(m.nr_samples, 3);
}

TEST(merge_keeps_a_stack_behind_its_sample)
{
	struct morph_stack *stack;
	size_t pos = 0;

	put_samples(&writers[0], 10, 5, 1, 1);
	stack = (void *)put_task(&writers[0], MORPH_REC_STACK, sizeof(*stack) + 16, 30, 5, 1);
	stack->ips[0] = 0x1234;
	put_exec(&writers[1], 20, 6, 1);
	give(25);
	merged(&pos, MORPH_REC_SAMPLES, 5, 10, 1);
	merged(&pos, MORPH_REC_STACK, 5, 0, 0);
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	merged_end(pos);
	ck_assert_uint_eq(m.nr_samples, 1);
}

TEST(merge_keeps_registers_behind_their_sample)
{
	struct morph_registers *r;
	size_t pos = 0;

	put_samples(&writers[0], 10, 5, 1, 1);
	r = (void *)put_task(&writers[0], MORPH_REC_REGISTERS, sizeof(*r) + 16, 30, 5, 1);
	r->registers = 1 << 11;
	put_exec(&writers[1], 20, 6, 1);
	give(25);
	merged(&pos, MORPH_REC_SAMPLES, 5, 10, 1);
	merged(&pos, MORPH_REC_REGISTERS, 5, 0, 0);
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	merged_end(pos);
	ck_assert_uint_eq(m.nr_samples, 1);
}

TEST(merge_gives_a_batch_at_a_time)
{
	uint64_t given = 0, put = 0;
	struct morph_record *record;
	size_t pos;
	int ret, i;

	/* More records than one batch holds, from a ring that is filled repeatedly. */
	m.out.size = 0;
	for (i = 0; i < 200; i++) {
		put_samples(&writers[0], i + 1, 5, 1, 400);
		put_exec(&writers[0], i + 1, 5, 1);
		put += 400;
		ck_assert_int_eq(md_kmod_merge_refresh(&m, &err), 0);
		ret = md_kmod_merge_run(&m, UINT64_MAX - 1, &err);
		md_kmod_merge_release(&m);
		ck_assert_int_eq(ret, m.out.size >= MD_KMOD_BATCH_BYTES);
		if (!ret)
			continue;
		ck_assert_uint_lt(m.out.size, MD_KMOD_BATCH_BYTES + MORPH_RECORD_SIZE_MAX);
		for (pos = 0; !md_record_next(m.out.data, m.out.size, &pos, &record);)
			given += md_record_emitted(record);
		m.out.size = 0;
		ck_assert_int_eq(md_kmod_merge_run(&m, UINT64_MAX - 1, &err), 0);
		md_kmod_merge_release(&m);
	}
	for (pos = 0; !md_record_next(m.out.data, m.out.size, &pos, &record);)
		given += md_record_emitted(record);
	ck_assert_uint_eq(given, put);
}

TEST(merge_passes_on_what_is_malformed)
{
	put_exec(&writers[1], 10, 5, 1);
	((struct morph_record *)writers[1].data)->size = 7;
	ck_assert_int_eq(md_kmod_merge_refresh(&m, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "CPU 1's ring"));
}

/* ---- what is said late ------------------------------------------------------------------------ */

static struct morph_mmap *expect_mmap(size_t *pos, uint32_t tgid, const char *path)
{
	struct morph_mmap *mmap = (void *)merged(pos, MORPH_REC_MMAP, tgid, 0, 0);

	ck_assert_str_eq(mmap->path, path);
	return mmap;
}

TEST(space_is_an_exec_and_its_mappings)
{
	struct morph_space *space;
	struct morph_mmap *mmap;
	struct morph_exec *exec;
	size_t pos = 0;

	put_file(&writers[0], 10, 7, "/bin/x");
	put_space(&writers[0], 20, 5, 3, 0x400000 | 7 | MORPH_SPACE_PROGRAM);
	put_samples(&writers[0], 21, 5, 3, 2);
	space = put_space(&writers[0], 30, 5, 3, 0x500000 | 8);
	space->task.flags = 0;
	space = put_space(&writers[0], 40, 5, 3, 0x600000 | 7 | MORPH_SPACE_VDSO);
	space->task.flags = 0;
	give(1000);
	exec = (void *)merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	ck_assert_uint_eq(exec->nr_threads, 3);
	ck_assert_uint_eq(exec->task.exec_id, 3);
	ck_assert_uint_eq(exec->task.flags, 0);
	mmap = expect_mmap(&pos, 5, "/bin/x");
	ck_assert_uint_eq(mmap->task.exec_id, 3);
	ck_assert_uint_eq(mmap->task.flags, MORPH_MMAP_PROGRAM | MORPH_MMAP_GENERATION);
	ck_assert_uint_eq(mmap->start, 0x400000);
	ck_assert_uint_eq(mmap->len, 0x2000);
	ck_assert_uint_eq(mmap->off, 0x4000);
	ck_assert_uint_eq(mmap->ino, 107);
	ck_assert_uint_eq(mmap->build_id[0], 7);
	merged(&pos, MORPH_REC_SAMPLES, 5, 21, 2);
	/* A second mapping; for a file that was never described, nothing is invented. */
	mmap = expect_mmap(&pos, 5, "");
	ck_assert_uint_eq(mmap->start, 0x500000);
	ck_assert_uint_eq(mmap->ino, 0);
	ck_assert_uint_eq(expect_mmap(&pos, 5, "[vdso]")->ino, 0);
	merged_end(pos);
}

TEST(file_number_is_its_rings_and_the_last_one_that_was_said)
{
	size_t pos = 0;

	put_file(&writers[0], 10, 7, "/bin/x");
	put_file(&writers[1], 11, 7, "/bin/y");
	put_space(&writers[0], 20, 5, 3, 0x400000 | 7);
	put_space(&writers[1], 21, 6, 3, 0x400000 | 7);
	put_file(&writers[0], 22, 7, "/bin/z");
	put_space(&writers[0], 23, 8, 3, 0x400000 | 7);
	give(1000);
	merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	expect_mmap(&pos, 5, "/bin/x");
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	expect_mmap(&pos, 6, "/bin/y");
	merged(&pos, MORPH_REC_EXEC, 8, 0, 0);
	expect_mmap(&pos, 8, "/bin/z");
	merged_end(pos);
}

static void put_program_samples(struct writer *w, uint64_t time_ns, uint32_t tgid, uint32_t exec_id,
				uint32_t number)
{
	put_samples(w, time_ns, tgid, exec_id, 1);
	((struct morph_task *)place(w, w->open))->flags = number + 1;
}

/* Once per program until the process exits, unless its mappings were sent. */
TEST(samples_name_the_program_of_a_process_that_nothing_was_said_of)
{
	struct writer *w = &writers[0];
	struct morph_mmap *mmap;
	size_t pos = 0;
	int i;

	put_file(w, 10, 7, "/bin/x");
	put_program_samples(w, 20, 5, 3, 7);
	put_program_samples(w, 30, 5, 3, 7);
	put_program_samples(w, 40, 5, 4, 7); /* exec */
	put_task(w, MORPH_REC_EXIT, sizeof(struct morph_exit), 50, 5, 4);
	put_program_samples(w, 60, 5, 4, 7); /* another process with the same numbers */
	put_space(w, 70, 6, 1, 0x400000 | 7);
	put_program_samples(&writers[1], 65, 6, 1, 9); /* opened before and continued */
	give(60);
	for (i = 0; i < 4; i++) {
		if (i != 1) {
			ck_assert_uint_eq(merged(&pos, MORPH_REC_EXEC, 5, 0, 0)->exec_id,
					  i ? 4 : 3);
			mmap = expect_mmap(&pos, 5, "/bin/x");
			ck_assert_uint_eq(mmap->task.flags, MORPH_MMAP_PROGRAM |
								    MORPH_MMAP_NOWHERE |
								    MORPH_MMAP_GENERATION);
		}
		ck_assert_uint_eq(
			merged(&pos, MORPH_REC_SAMPLES, 5, 20 + i * 10 + (i == 3) * 10, 1)->flags,
			0);
		if (i == 2)
			merged(&pos, MORPH_REC_EXIT, 5, 0, 0);
	}
	merged_end(pos);
	give(70);
	pos = 0;
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	expect_mmap(&pos, 6, "");
	merged(&pos, MORPH_REC_SAMPLES, 6, 65, 1);
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	expect_mmap(&pos, 6, "/bin/x");
	merged_end(pos);
	add_sample(&writers[1], 66);
	give(80);
	pos = 0;
	merged(&pos, MORPH_REC_SAMPLES, 6, 66, 1);
	merged_end(pos);
}

/* A loss invalidates what is known of processes, but not the meaning of file numbers. */
TEST(program_is_named_again_after_a_loss)
{
	size_t pos = 0;

	put_file(&writers[0], 10, 7, "/bin/x");
	put_program_samples(&writers[0], 20, 5, 3, 7);
	give(20);
	put_program_samples(&writers[0], 40, 5, 3, 7);
	m.out.size = 0;
	ck_assert_int_eq(md_kmod_merge_refresh(&m, &err), 0);
	ck_assert_int_eq(md_kmod_merge_set_lost(&m, 2, 30), 0);
	ck_assert_int_eq(md_kmod_merge_run(&m, 1000, &err), 0);
	merged(&pos, MORPH_REC_LOST, 0, 0, 0);
	merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	expect_mmap(&pos, 5, "/bin/x");
	merged(&pos, MORPH_REC_SAMPLES, 5, 40, 1);
	merged_end(pos);
}

/* ---- /proc ------------------------------------------------------------------------------------ */

static void see(uint32_t tgid, uint32_t exec_id, uint64_t time_ns)
{
	struct morph_exec *exec;

	exec = md_record_add_task(&m.scan, MORPH_REC_EXEC, sizeof(*exec), time_ns, tgid, tgid);
	ck_assert_ptr_nonnull(exec);
	exec->task.exec_id = exec_id;
	exec->task.flags = MORPH_EXEC_FOUND;
	exec->nr_threads = 1;
}

TEST(first_look_comes_before_everything_and_hides_samples_from_before)
{
	struct morph_task *task;
	size_t pos = 0;

	m.drop_hidden_samples = true;
	put_samples(&writers[0], 10, 5, 3, 2); /* open, and continued after the scan */
	put_samples(&writers[1], 11, 6, 3, 2);
	md_kmod_merge_begin_scan(&m, 0, 0);
	see(5, 3, 100);
	see(6, 3, 110);
	ck_assert_int_eq(md_kmod_merge_end_scan(&m, 120), 0);
	add_sample(&writers[0], 77);
	put_samples(&writers[1], 130, 6, 3, 2);
	give(1000);
	task = merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	ck_assert_uint_eq(task->flags, MORPH_EXEC_FOUND);
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	merged(&pos, MORPH_REC_SAMPLES, 5, 77, 1);
	merged(&pos, MORPH_REC_SAMPLES, 6, 130, 2);
	merged_end(pos);
	/* The module did take these samples. */
	ck_assert_uint_eq(m.nr_samples, 7);
}

/* Events before a process was read are included in the scan; later ones are not. */
TEST(records_from_before_the_look_are_in_it)
{
	size_t pos = 0;

	put_exec(&writers[0], 50, 5, 4);  /* included in the scan; replaced later */
	put_exec(&writers[0], 105, 5, 5); /* after the process was read */
	put_fork(&writers[1], 60, 6, 5);
	put_fork(&writers[1], 115, 7, 6); /* a child that did not exist yet */
	md_kmod_merge_begin_scan(&m, 0, 0);
	see(5, 4, 100);
	see(6, 4, 110);
	ck_assert_int_eq(md_kmod_merge_end_scan(&m, 120), 0);
	put_exec(&writers[2], 200, 6, 5);
	give(1000);
	merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	ck_assert_uint_eq(merged(&pos, MORPH_REC_EXEC, 5, 0, 0)->time_ns, 105);
	merged(&pos, MORPH_REC_FORK, 7, 0, 0);
	ck_assert_uint_eq(merged(&pos, MORPH_REC_EXEC, 6, 0, 0)->time_ns, 200);
	merged_end(pos);
}

TEST(lost_events_are_said_before_all_else_and_once)
{
	struct morph_lost *lost;
	size_t pos = 0;

	put_samples(&writers[1], 10, 5, 1, 1);
	put_lost(&writers[0], 20, 3, MORPH_LOST_STATE);
	m.out.size = 0;
	ck_assert_int_eq(md_kmod_merge_refresh(&m, &err), 0);
	ck_assert_int_eq(md_kmod_merge_set_lost(&m, 2, 30), 0);
	ck_assert_int_eq(md_kmod_merge_set_lost(&m, 2, 30), 0);
	ck_assert_int_eq(md_kmod_merge_run(&m, 1000, &err), 0);
	lost = (struct morph_lost *)merged(&pos, MORPH_REC_LOST, 0, 0, 0);
	ck_assert_uint_eq(lost->flags, MORPH_LOST_STATE);
	ck_assert_uint_eq(lost->nr, 0);
	merged(&pos, MORPH_REC_SAMPLES, 5, 10, 1);
	lost = (struct morph_lost *)merged(&pos, MORPH_REC_LOST, 0, 0, 0);
	ck_assert_uint_eq(lost->flags, 0);
	ck_assert_uint_eq(lost->nr, 3);
	merged_end(pos);
	ck_assert(m.wants_scan);
	ck_assert_uint_eq(m.nr_lost, 3);
}

TEST(later_look_stands_at_its_time_and_names_no_process_meanwhile)
{
	size_t pos = 0;

	put_samples(&writers[0], 10, 5, 3, 2);
	ck_assert_int_eq(md_kmod_merge_set_lost(&m, 1, 15), 0);
	give(50);
	md_kmod_merge_begin_scan(&m, 100, 1);
	put_samples(&writers[1], 105, 6, 3, 2);
	see(5, 3, 110);
	see(6, 3, 120);
	ck_assert_int_eq(md_kmod_merge_end_scan(&m, 130), 0);
	add_sample(&writers[1], 88);
	give(90);
	merged_end(0); /* the stream has not reached its time */
	ck_assert(md_kmod_merge_is_pending(&m));
	give(1000);
	merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	merged(&pos, MORPH_REC_EXEC, 6, 0, 0);
	merged(&pos, MORPH_REC_SAMPLES, UINT32_MAX, 105, 2);
	merged(&pos, MORPH_REC_SAMPLES, 6, 88, 1);
	merged_end(pos);
	ck_assert(!m.wants_scan);
}

TEST(look_that_something_was_lost_after_is_made_again)
{
	struct morph_lost *lost;
	size_t pos = 0;

	md_kmod_merge_begin_scan(&m, 100, 1);
	see(5, 3, 110);
	ck_assert_int_eq(md_kmod_merge_end_scan(&m, 130), 0);
	m.out.size = 0;
	ck_assert_int_eq(md_kmod_merge_refresh(&m, &err), 0);
	ck_assert_int_eq(md_kmod_merge_set_lost(&m, 2, 150), 0);
	ck_assert_int_eq(md_kmod_merge_run(&m, 150, &err), 0);
	lost = (struct morph_lost *)merged(&pos, MORPH_REC_LOST, 0, 0, 0);
	ck_assert_uint_eq(lost->flags, MORPH_LOST_STATE);
	merged_end(pos);
	ck_assert(m.wants_scan);
	ck_assert_uint_eq(m.scan.size, 0);
}

/* ---- a command ---------------------------------------------------------------------------------- */

FIXTURE(setup_command, teardown_merge);

TEST(command_is_seen_from_its_exec_on_with_its_children)
{
	size_t pos = 0;

	put_samples(&writers[0], 10, 5, 1, 2); /* still a copy of this program */
	put_samples(&writers[1], 11, 8, 1, 2); /* another process */
	put_exec(&writers[0], 20, 5, 2);
	put_samples(&writers[0], 21, 5, 2, 2);
	put_fork(&writers[0], 30, 6, 5);
	put_fork(&writers[1], 31, 9, 8);
	put_samples(&writers[1], 32, 6, 2, 1);
	put_fork(&writers[1], 33, 7, 6);
	put_samples(&writers[2], 34, 7, 2, 1);
	put_samples(&writers[2], 35, 9, 2, 1);
	give(1000);
	merged(&pos, MORPH_REC_EXEC, 5, 0, 0);
	merged(&pos, MORPH_REC_SAMPLES, 5, 21, 2);
	merged(&pos, MORPH_REC_FORK, 6, 0, 0);
	merged(&pos, MORPH_REC_SAMPLES, 6, 32, 1);
	merged(&pos, MORPH_REC_FORK, 7, 0, 0);
	merged(&pos, MORPH_REC_SAMPLES, 7, 34, 1);
	merged_end(pos);
	ck_assert_uint_eq(m.nr_samples, 9);
}

TEST(process_of_a_command_that_ended_is_still_its_own_until_its_number_comes_again)
{
	size_t pos = 0;

	m.is_waiting = false;
	put_fork(&writers[0], 10, 6, 5);
	put_task(&writers[0], MORPH_REC_EXIT, sizeof(struct morph_exit), 20, 6, 1);
	put_samples(&writers[0], 21, 6, 1, 1);
	put_fork(&writers[0], 30, 6, 8);
	put_samples(&writers[0], 31, 6, 1, 1);
	give(1000);
	merged(&pos, MORPH_REC_FORK, 6, 0, 0);
	merged(&pos, MORPH_REC_EXIT, 6, 0, 0);
	merged(&pos, MORPH_REC_SAMPLES, 6, 21, 1);
	merged_end(pos);
}

/* ---- pidmap -------------------------------------------------------------------------------------- */

FIXTURE(NULL, NULL);

TEST(pidmap_agrees_with_an_array)
{
	static uint64_t model[5000];
	struct md_pidmap map = {0};
	uint32_t seed = 1, i, pid;
	uint64_t value;

	memset(model, 0, sizeof(model));
	ck_assert(!md_pidmap_get(&map, 1, NULL));
	md_pidmap_remove(&map, 1);
	md_pidmap_clear(&map);
	for (i = 1; i < 60000; i++) {
		seed = seed * 1103515245 + 12345;
		pid = 1 + (seed >> 12) % 4999;
		if (seed >> 30) {
			ck_assert_int_eq(md_pidmap_put(&map, pid, i), 0);
			model[pid] = i;
		} else {
			md_pidmap_remove(&map, pid);
			model[pid] = 0;
		}
		pid = 1 + (seed >> 8) % 4999;
		ck_assert_int_eq(md_pidmap_get(&map, pid, &value), model[pid] != 0);
		if (model[pid])
			ck_assert_uint_eq(value, model[pid]);
	}
	for (pid = 1; pid < 5000; pid++)
		ck_assert_int_eq(md_pidmap_get(&map, pid, NULL), model[pid] != 0);
	md_pidmap_clear(&map);
	for (pid = 1; pid < 5000; pid++)
		ck_assert(!md_pidmap_get(&map, pid, NULL));
	md_pidmap_fini(&map);
}
