// SPDX-License-Identifier: Apache-2.0
/* test_record - records and recordings: they are read back as written, or reported as damaged. */
#include "tests/unit/suite.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/source/perf_decode.h"
#include "daemon/record/recfile.h"
#include "daemon/record/record.h"

static char path[] = "/tmp/morph-test-record.XXXXXX";

static void make_path(void)
{
	int fd;

	strcpy(path, "/tmp/morph-test-record.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void remove_path(void)
{
	unlink(path);
}

static struct morph_samples *add_samples(struct md_buf *buf, uint32_t tgid, uint32_t nr)
{
	struct morph_samples *s;
	uint32_t i;

	s = md_record_add_task(buf, MORPH_REC_SAMPLES, sizeof(*s) + nr * sizeof(s->ips[0]), 1, tgid,
			       tgid);
	for (i = 0; i < nr; i++)
		s->ips[i] = 0x400000 + i;
	return s;
}

TEST(record_walk_returns_what_was_added)
{
	AUTO(md_buf_fini) struct md_buf buf = {0};
	struct morph_record *record;
	struct morph_mmap *mmap;
	size_t pos = 0;

	add_samples(&buf, 7, 3);
	mmap = md_record_add_mmap(&buf, 5, 7, 7, "/bin/x");
	mmap->start = 0x1000;
	mmap->len = 0x1000;
	md_record_add_lost(&buf, 9, 11, MORPH_LOST_RING_FULL, 0);
	ck_assert_int_eq(md_record_next(buf.data, buf.size, &pos, &record), 0);
	ck_assert_uint_eq(record->type, MORPH_REC_SAMPLES);
	ck_assert_uint_eq(md_samples_nr((void *)record), 3);
	ck_assert_uint_eq(md_record_emitted(record), 3);
	ck_assert_int_eq(md_record_next(buf.data, buf.size, &pos, &record), 0);
	ck_assert_str_eq(((struct morph_mmap *)record)->path, "/bin/x");
	ck_assert_uint_eq(record->size % MORPH_RECORD_ALIGN, 0);
	ck_assert_int_eq(md_record_next(buf.data, buf.size, &pos, &record), 0);
	ck_assert_uint_eq(md_record_emitted(record), 11);
	ck_assert_int_eq(md_record_next(buf.data, buf.size, &pos, &record), -ENODATA);
}

TEST(record_of_unknown_type_is_skipped_by_its_size)
{
	AUTO(md_buf_fini) struct md_buf buf = {0};
	struct morph_record *record;
	size_t pos = 0;

	md_record_add(&buf, 999, 48);
	add_samples(&buf, 7, 1);
	ck_assert_int_eq(md_record_next(buf.data, buf.size, &pos, &record), 0);
	ck_assert_uint_eq(record->type, 999);
	ck_assert_int_eq(md_record_next(buf.data, buf.size, &pos, &record), 0);
	ck_assert_uint_eq(record->type, MORPH_REC_SAMPLES);
}

/* Each case makes one record that must be refused. */
TEST_EACH(record_that_does_not_fit_is_refused, 16)
{
	AUTO(md_buf_fini) struct md_buf buf = {0};
	struct morph_record *record;
	struct morph_module_unwind *unwind;
	struct morph_module_paths *paths;
	struct morph_user_stack *stack;
	struct morph_registers *registers;
	struct morph_module *module;
	struct morph_mmap *mmap;
	size_t pos = 0;

	switch (_i) {
	case 0: add_samples(&buf, 7, 3)->task.record.size = 4096; break;
	case 1: add_samples(&buf, 7, 3)->task.record.size = 0; break;
	case 2: add_samples(&buf, 7, 3)->task.record.size = 12; break;
	case 3: add_samples(&buf, 7, 3)->task.record.size = 24; break;
	case 4:
		mmap = md_record_add_mmap(&buf, 5, 7, 7, "/bin/x");
		mmap->len = 0x1000;
		memset(mmap->path, 'x', mmap->task.record.size - sizeof(*mmap));
		break;
	case 5:
		mmap = md_record_add_mmap(&buf, 5, 7, 7, "/bin/x");
		mmap->start = UINT64_MAX - 4;
		mmap->len = 0x1000;
		break;
	case 6:
		mmap = md_record_add_mmap(&buf, 5, 7, 7, "/bin/x");
		mmap->len = 0x1000;
		mmap->build_id_len = 33;
		break;
	case 7:
		module = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*module) + 8);
		module->nr_segments = 0x20000000;
		break;
	case 9:
	case 10:
	case 11:
		registers = md_record_add_task(&buf, MORPH_REC_REGISTERS, sizeof(*registers) + 24,
					       5, 7, 7);
		/*
		 * No register; one that never holds a path's number; too many for the record's
		 * size.
		 */
		registers->registers = _i == 9 ? 0 : _i == 10 ? 1 << MORPH_REG_RSP | 1 : 7;
		break;
	case 12:
	case 13:
		paths = md_record_add(&buf, MORPH_REC_MODULE_PATHS, sizeof(*paths) + 8);
		paths->table_size = 100;
		paths->off = 93;
		paths->nr = _i == 12 ? 8 : 9;
		break;
	case 14:
		unwind = md_record_add(&buf, MORPH_REC_MODULE_UNWIND, sizeof(*unwind) + 8);
		unwind->table_size = 100;
		unwind->off = 96;
		unwind->nr = 8;
		break;
	case 15:
		stack = md_record_add_task(&buf, MORPH_REC_USER_STACK, sizeof(*stack) + 8, 5, 7, 7);
		stack->nr = 9;
		break;
	case 8:
		md_record_add(&buf, MORPH_REC_MODULE_MAP, sizeof(struct morph_module_map) + 8);
		break;
	}
	ck_assert_int_eq(md_record_next(buf.data, buf.size, &pos, &record), -EBADMSG);
	ck_assert_uint_eq(pos, 0);
}

/* 40 chunks with one record of 8,000 samples each. */
#define NR_CHUNKS 40
#define PER_CHUNK 8000

static void write_recording(bool finish)
{
	struct md_recfile_info info = {.start_ns = 1000, .start_s = 1700000000, .rate_hz = 4000};
	struct md_recwriter *writer;
	struct md_buf buf = {0};
	int i;

	strcpy(info.collector, "perf");
	strcpy(info.event, "cpu-clock");
	strcpy(info.why, "a test");
	ck_assert_int_eq(md_recwriter_open(path, &info, &writer, NULL), 0);
	for (i = 0; i < NR_CHUNKS; i++) {
		buf.size = 0;
		add_samples(&buf, i + 1, PER_CHUNK);
		ck_assert_int_eq(md_recwriter_add(writer, (void *)buf.data, NULL), 0);
		ck_assert_int_eq(md_recwriter_flush(writer, NULL), 0);
	}
	md_buf_fini(&buf);
	ck_assert_int_eq(md_recwriter_close(writer, NULL), 0);
	if (!finish) {
		struct stat st;

		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_int_eq(truncate(path, st.st_size - (off_t)sizeof(struct md_chunk_header)),
				 0);
	}
}

static uint64_t read_recording(uint64_t *torn, bool *damaged, bool *whole)
{
	struct md_recreader *reader;
	struct morph_record *record;
	uint64_t nr = 0, t;
	uint8_t *data;
	size_t size, pos;
	bool d;
	int ret;

	*torn = 0;
	*damaged = false;
	ck_assert_int_eq(md_recreader_open(path, &reader, NULL), 0);
	do {
		ret = md_recreader_next(reader, &data, &size, &t, &d, NULL);
		*torn += t;
		*damaged |= d;
		for (pos = 0; !ret && !md_record_next(data, size, &pos, &record);)
			nr += md_record_emitted(record);
	} while (!ret);
	ck_assert_int_eq(ret, -ENODATA);
	*whole = md_recreader_is_whole(reader);
	md_recreader_close(reader);
	return nr;
}

FIXTURE(make_path, remove_path);

TEST(recording_reads_back_whole)
{
	struct md_recreader *reader;
	bool damaged, whole;
	uint64_t torn;

	write_recording(true);
	ck_assert_uint_eq(read_recording(&torn, &damaged, &whole), NR_CHUNKS * PER_CHUNK);
	ck_assert_uint_eq(torn, 0);
	ck_assert(!damaged);
	ck_assert(whole);
	ck_assert_int_eq(md_recreader_open(path, &reader, NULL), 0);
	ck_assert_str_eq(md_recreader_info(reader)->event, "cpu-clock");
	ck_assert_uint_eq(md_recreader_info(reader)->rate_hz, 4000);
	ck_assert_int_eq(md_recreader_info(reader)->start_s, 1700000000);
	md_recreader_close(reader);
}

TEST(recording_whose_writer_was_killed_keeps_its_chunks)
{
	bool damaged, whole;
	uint64_t torn;

	write_recording(false);
	ck_assert_uint_eq(read_recording(&torn, &damaged, &whole), NR_CHUNKS * PER_CHUNK);
	ck_assert_uint_eq(torn, 0);
	ck_assert(!damaged);
	ck_assert(!whole);
}

/* Cut anywhere behind the header: only the chunks before the cut count, and each once. */
TEST(truncated_recording_keeps_what_came_before)
{
	const size_t chunk =
		sizeof(struct md_chunk_header) + sizeof(struct morph_samples) + PER_CHUNK * 8;
	const size_t head = sizeof(struct md_recfile_header);
	size_t cuts[] = {head,
			 head + 1,
			 head + 39,
			 head + 40,
			 head + 41,
			 head + chunk - 1,
			 head + chunk,
			 head + 5 * chunk + 100,
			 head + 39 * chunk + 5000};
	bool damaged, whole;
	uint64_t torn, nr;
	size_t i;

	for (i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		write_recording(true);
		ck_assert_int_eq(truncate(path, cuts[i]), 0);
		nr = read_recording(&torn, &damaged, &whole);
		ck_assert_uint_eq(nr, (cuts[i] - head) / chunk * PER_CHUNK);
		ck_assert(!whole);
		/* A complete header tells exactly how many samples are missing. */
		if ((cuts[i] - head) % chunk >= sizeof(struct md_chunk_header))
			ck_assert_uint_eq(torn, PER_CHUNK);
		ck_assert(damaged == ((cuts[i] - head) % chunk != 0));
	}
}

TEST(flipped_bit_costs_one_chunk_and_is_counted)
{
	const size_t chunk =
		sizeof(struct md_chunk_header) + sizeof(struct morph_samples) + PER_CHUNK * 8;
	bool damaged, whole;
	uint64_t torn, nr;
	uint8_t byte;
	off_t off;
	int fd, k;

	for (k = 0; k < 60; k++) {
		write_recording(true);
		/* The first flips hit a chunk's header, the others its records. */
		off = sizeof(struct md_recfile_header) + 3 * chunk + (k < 40 ? k : k * 977);
		fd = open(path, O_RDWR);
		ck_assert_int_eq(pread(fd, &byte, 1, off), 1);
		byte ^= 1 << k % 8;
		ck_assert_int_eq(pwrite(fd, &byte, 1, off), 1);
		close(fd);
		nr = read_recording(&torn, &damaged, &whole);
		ck_assert(damaged);
		ck_assert(whole);
		ck_assert_uint_eq(nr, (NR_CHUNKS - 1) * PER_CHUNK);
		ck_assert_uint_eq(nr + torn, NR_CHUNKS * PER_CHUNK);
	}
}

TEST_EACH(file_that_is_no_recording_is_refused_by_name, 3)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *message;
	} cases[] = {
		{"", 0, "not a Morph recording"},
		{"SQLite format 3", 15, "not a Morph recording"},
		{"MORPHREC", 8, "cut off in its header"},
	};
	struct md_recreader *reader;
	int fd, ret;

	fd = open(path, O_WRONLY | O_TRUNC);
	ck_assert_int_eq(write(fd, cases[_i].bytes, cases[_i].size), cases[_i].size);
	close(fd);
	ret = md_recreader_open(path, &reader, &err);
	ck_assert_int_eq(ret, -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, path));
	ck_assert_ptr_nonnull(strstr(err.msg, cases[_i].message));
}

TEST(recording_of_a_later_major_version_is_refused)
{
	struct md_recreader *reader;
	uint16_t major = MORPH_ABI_MAJOR + 1;
	int fd;

	write_recording(true);
	fd = open(path, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, &major, 2, 8), 2);
	close(fd);
	ck_assert_int_eq(md_recreader_open(path, &reader, &err), -EPROTO);
	ck_assert_ptr_nonnull(strstr(err.msg, "record format 2."));
}

/* ---- perf's records, made by hand ---------------------------------------------------------- */

struct perf_bytes {
	struct perf_event_header header;
	uint64_t words[64];
};

static void decode_sample_at(struct md_perf_decoder *d, uint32_t ring, uint32_t pid, uint64_t ip,
			     uint64_t time, unsigned int nr_branches)
{
	struct perf_bytes p = {.header = {.type = PERF_RECORD_SAMPLE, .misc = 2}};
	unsigned int i;

	p.words[0] = ip;
	p.words[1] = (uint64_t)pid << 32 | pid;
	p.words[2] = time;
	p.words[3] = ring;
	p.words[4] = nr_branches;
	for (i = 0; i < nr_branches; i++) {
		p.words[5 + 3 * i] = 0x1000 + i;
		p.words[6 + 3 * i] = 0x2000 + i;
	}
	p.header.size = sizeof(p.header) + 32 + (nr_branches ? 8 + 24 * nr_branches : 0);
	md_perf_decode(d, ring, &p.header);
}

FIXTURE(NULL, NULL);

TEST(decoder_gathers_samples_of_a_thread_and_drops_idle)
{
	AUTO(md_perf_decoder_fini) struct md_perf_decoder d = {0};
	struct morph_record *record;
	size_t pos = 0;

	ck_assert_int_eq(md_perf_decoder_init(&d, 2, 4000, false), 0);
	decode_sample_at(&d, 0, 5, 0x400000, 1, 0);
	decode_sample_at(&d, 0, 0, 0xffffffff81000000, 2, 0);
	decode_sample_at(&d, 1, 6, 0x500000, 2, 0);
	decode_sample_at(&d, 0, 5, 0x400001, 3, 0);
	decode_sample_at(&d, 0, 7, 0x600000, 4, 0);
	md_perf_decoder_flush(&d);
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
	ck_assert_uint_eq(((struct morph_task *)record)->tgid, 5);
	ck_assert_uint_eq(md_samples_nr((void *)record), 2);
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
	ck_assert_uint_eq(((struct morph_task *)record)->tgid, 7);
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
	ck_assert_uint_eq(((struct morph_task *)record)->tgid, 6);
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), -ENODATA);
}

TEST(decoder_closes_a_batch_before_the_process_changes)
{
	struct perf_bytes exec = {
		.header = {.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC}};
	AUTO(md_perf_decoder_fini) struct md_perf_decoder d = {0};
	struct morph_record *record;
	const uint16_t expected[] = {MORPH_REC_SAMPLES, MORPH_REC_EXEC, MORPH_REC_COMM,
				     MORPH_REC_SAMPLES};
	size_t pos = 0, i;

	ck_assert_int_eq(md_perf_decoder_init(&d, 1, 4000, false), 0);
	decode_sample_at(&d, 0, 5, 0x400000, 1, 0);
	exec.words[0] = (uint64_t)5 << 32 | 5;
	memcpy(&exec.words[1], "new", 4);
	exec.words[2] = (uint64_t)5 << 32 | 5;
	exec.words[3] = 2;
	exec.header.size = sizeof(exec.header) + 5 * 8;
	md_perf_decode(&d, 0, &exec.header);
	decode_sample_at(&d, 0, 5, 0x500000, 3, 0);
	md_perf_decoder_flush(&d);
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
		ck_assert_uint_eq(record->type, expected[i]);
		if (record->type == MORPH_REC_COMM)
			ck_assert_str_eq(((struct morph_comm *)record)->comm, "new");
	}
}

TEST(decoder_names_no_process_while_mappings_are_looked_up)
{
	AUTO(md_perf_decoder_fini) struct md_perf_decoder d = {0};
	struct morph_record *record;
	const uint32_t expected[] = {5, UINT32_MAX, 5};
	size_t pos = 0, i;

	ck_assert_int_eq(md_perf_decoder_init(&d, 1, 4000, false), 0);
	d.start_ns = 10;
	d.scan_begin_ns = 30;
	d.scan_end_ns = 50;
	decode_sample_at(&d, 0, 5, 0x400000, 9, 0); /* before start_ns */
	decode_sample_at(&d, 0, 5, 0x400000, 10, 0);
	decode_sample_at(&d, 0, 5, 0x400000, 30, 0);
	decode_sample_at(&d, 0, 5, 0x400000, 50, 0);
	md_perf_decoder_flush(&d);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
		ck_assert_uint_eq(((struct morph_task *)record)->tgid, expected[i]);
		ck_assert_uint_eq(md_record_emitted(record), 1);
	}
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), -ENODATA);
}

TEST(decoder_counts_what_the_ring_lost_and_asks_for_a_new_look)
{
	struct perf_bytes lost = {.header = {.type = PERF_RECORD_LOST, .size = 8 + 16 + 24}};
	AUTO(md_perf_decoder_fini) struct md_perf_decoder d = {0};
	struct morph_record *record;
	size_t pos = 0;

	ck_assert_int_eq(md_perf_decoder_init(&d, 1, 4000, false), 0);
	lost.words[1] = 42;
	md_perf_decode(&d, 0, &lost.header);
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
	ck_assert_uint_eq(md_record_emitted(record), 42);
	ck_assert_uint_eq(((struct morph_lost *)record)->flags, MORPH_LOST_STATE);
	ck_assert(d.lost_events);
}

TEST(decoder_keeps_mappings_if_only_samples_were_lost)
{
	struct perf_bytes lost = {.header = {.type = PERF_RECORD_LOST, .size = 8 + 16 + 24}};
	AUTO(md_perf_decoder_fini) struct md_perf_decoder d = {0};
	struct morph_record *record;
	size_t pos = 0;

	ck_assert_int_eq(md_perf_decoder_init(&d, 2, 4000, false), 0);
	d.stages[0].loss = MD_PERF_LOSS_SAMPLES;
	d.stages[1].loss = MD_PERF_LOSS_EVENTS;
	lost.words[1] = 42;
	md_perf_decode(&d, 0, &lost.header);
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
	ck_assert_uint_eq(md_record_emitted(record), 42);
	ck_assert_uint_eq(((struct morph_lost *)record)->flags, 0);
	ck_assert(!d.lost_events);
	md_perf_decode(&d, 1, &lost.header);
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
	ck_assert_uint_eq(md_record_emitted(record), 0);
	ck_assert_uint_eq(((struct morph_lost *)record)->flags, MORPH_LOST_STATE);
	ck_assert(d.lost_events);
}

TEST(decoder_estimates_throttled_samples)
{
	struct perf_bytes p = {.header = {.type = PERF_RECORD_THROTTLE, .size = 8 + 24 + 24}};
	AUTO(md_perf_decoder_fini) struct md_perf_decoder d = {0};
	struct morph_record *record;
	size_t pos = 0;

	ck_assert_int_eq(md_perf_decoder_init(&d, 1, 4000, false), 0);
	p.words[4] = 1000000000;
	md_perf_decode(&d, 0, &p.header);
	p.header.type = PERF_RECORD_UNTHROTTLE;
	p.words[4] = 1500000000;
	md_perf_decode(&d, 0, &p.header);
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
	ck_assert_uint_eq(record->type, MORPH_REC_LOST);
	ck_assert_uint_eq(md_record_emitted(record), 2000);
	ck_assert_uint_eq(((struct morph_lost *)record)->why, MORPH_LOST_THROTTLED);
}

TEST(decoder_keeps_branch_stacks)
{
	AUTO(md_perf_decoder_fini) struct md_perf_decoder d = {0};
	struct morph_record *record;
	struct morph_branches *b;
	size_t pos = 0;

	ck_assert_int_eq(md_perf_decoder_init(&d, 1, 4000, true), 0);
	decode_sample_at(&d, 0, 5, 0x400000, 1, 16);
	md_perf_decoder_flush(&d);
	ck_assert_int_eq(md_record_next(d.out.data, d.out.size, &pos, &record), 0);
	ck_assert_uint_eq(record->type, MORPH_REC_BRANCHES);
	b = (void *)record;
	ck_assert_uint_eq(md_branches_nr(b), 16);
	ck_assert_uint_eq(b->branches[15].from, 0x100f);
	ck_assert_uint_eq(b->branches[15].to, 0x200f);
}

/* As perf writes them: after the branch stack, the ABI and then the registers in perf's order. */
static void decode_registers_at(struct md_perf_decoder *d, uint32_t tid, uint64_t ip, uint64_t time,
				uint32_t nr_branches, uint64_t abi)
{
	static const uint32_t order[] = {0, 3, 1, 2, 6, 7, 5, 8, 9, 10, 11, 12, 13, 14, 15};
	struct {
		struct perf_event_header header;
		uint64_t words[80];
	} p = {.header = {.type = PERF_RECORD_SAMPLE}};
	size_t n = 4, i;

	p.words[0] = ip;
	p.words[1] = tid | (uint64_t)tid << 32;
	p.words[2] = time;
	p.words[3] = 3;
	if (d->has_branches) {
		p.words[n++] = nr_branches;
		n += 3 * nr_branches;
	}
	p.words[n++] = abi;
	for (i = 0; abi && i < sizeof(order) / sizeof(order[0]); i++)
		p.words[n++] = 1000 + order[i];
	p.header.size = sizeof(p.header) + n * sizeof(p.words[0]);
	md_perf_decode(d, 0, &p.header);
}

static const struct morph_registers *next_registers(struct md_perf_decoder *d, size_t *pos)
{
	struct morph_record *record = NULL;

	while (!md_record_next(d->out.data, d->out.size, pos, &record))
		if (record->type == MORPH_REC_REGISTERS)
			return (void *)record;
	return NULL;
}

TEST_EACH(decoder_keeps_the_registers_of_user_code, 2)
{
	AUTO(md_perf_decoder_fini) struct md_perf_decoder d = {0};
	const struct morph_registers *r;
	struct morph_record *record;
	size_t pos = 0;
	uint32_t reg;

	ck_assert_int_eq(md_perf_decoder_init(&d, 1, 4000, _i), 0);
	ck_assert_int_eq(md_perf_decoder_want_registers(&d, MORPH_REGS_PATHS), 0);
	decode_registers_at(&d, 5, 0x400000, 1, 0, 2);
	decode_registers_at(&d, 5, 0xffffffff81000000, 2, 2, 2); /* the kernel */
	decode_registers_at(&d, 5, 0x400001, 3, 2, 1);		 /* 32-bit code */
	decode_registers_at(&d, 5, 0x400002, 4, 2, 0);		 /* no registers */
	decode_registers_at(&d, 5, 0x400003, 5, 2, 2);
	decode_registers_at(&d, 6, 0x500000, 6, 2, 2);
	md_perf_decoder_flush(&d);
	while (!md_record_next(d.out.data, d.out.size, &pos, &record))
		if (record->type == MORPH_REC_SAMPLES)
			break;
	ck_assert_uint_eq(md_samples_nr((void *)record), 5);
	r = next_registers(&d, &pos);
	ck_assert_ptr_nonnull(r);
	ck_assert_uint_eq(r->task.tgid, 5);
	ck_assert_uint_eq(r->task.record.cpu, 3);
	ck_assert_uint_eq(r->registers, MORPH_REGS_PATHS);
	ck_assert_uint_eq(md_registers_nr(r), 2);
	ck_assert_uint_eq(r->entries[0], 0x400000);
	ck_assert_uint_eq(r->entries[md_registers_words(r)], 0x400003);
	ck_assert_uint_eq(md_registers_word(r, MORPH_REG_RSP), 0);
	for (reg = 0; reg < MORPH_NR_REGS; reg++)
		if (reg != MORPH_REG_RSP)
			ck_assert_uint_eq(r->entries[md_registers_word(r, reg)], 1000 + reg);
	r = next_registers(&d, &pos);
	ck_assert_ptr_nonnull(r);
	ck_assert_uint_eq(r->task.tgid, 6);
	ck_assert_uint_eq(md_registers_nr(r), 1);
	ck_assert_ptr_null(next_registers(&d, &pos));
}

TEST(decoder_gives_the_registers_of_every_sample)
{
	AUTO(md_perf_decoder_fini) struct md_perf_decoder d = {0};
	const struct morph_registers *r;
	struct morph_record *record;
	uint64_t nr = 0, nr_samples = 0;
	size_t pos = 0;
	uint32_t i;

	ck_assert_int_eq(md_perf_decoder_init(&d, 1, 4000, false), 0);
	ck_assert_int_eq(md_perf_decoder_want_registers(&d, MORPH_REGS_PATHS), 0);
	for (i = 0; i < 3000; i++)
		decode_registers_at(&d, 5, 0x400000 + i, 1 + i, 0, 2);
	md_perf_decoder_flush(&d);
	while ((r = next_registers(&d, &pos)))
		for (i = 0; i < md_registers_nr(r); i++)
			ck_assert_uint_eq(r->entries[(size_t)i * md_registers_words(r)],
					  0x400000 + nr++);
	ck_assert_uint_eq(nr, 3000);
	for (pos = 0; !md_record_next(d.out.data, d.out.size, &pos, &record);)
		nr_samples += md_record_emitted(record);
	ck_assert_uint_eq(nr_samples, 3000);
	/* A record that is too short. */
	d.out.size = 0;
	decode_sample_at(&d, 0, 5, 0x400000, 1, 0);
	md_perf_decoder_flush(&d);
	pos = 0;
	ck_assert_ptr_null(next_registers(&d, &pos));
}
