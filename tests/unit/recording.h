// SPDX-License-Identifier: Apache-2.0
/*
 * recording - records of the running test in @buf, and their recording, for tests of what
 * attribution makes of them. Module @n: file offset 0x1000, linked at 0x401000, 0x3000 bytes.
 */
#ifndef MORPH_TESTS_RECORDING_H
#define MORPH_TESTS_RECORDING_H

#include "daemon/attribute/pipeline.h"
#include "tests/unit/scratch.h"

#define LINKED 0x401000

static char recording[256], db[256];
static struct md_buf buf;

static inline void setup(void)
{
	scratch_make();
	snprintf(recording, sizeof(recording), "%s/recording", dir);
	snprintf(db, sizeof(db), "%s/db", dir);
}

static inline void teardown(void)
{
	md_buf_fini(&buf);
	scratch_remove();
}

static inline void add_module(uint32_t n, uint64_t text_hash, uint32_t nr_pieces)
{
	struct morph_module *r = md_record_add(&buf, MORPH_REC_MODULE, sizeof(*r) + 24 + 8);

	r->module = n;
	r->text_hash = text_hash;
	r->text_size = 0x3000;
	r->nr_pieces = nr_pieces;
	r->nr_segments = 1;
	r->segments[0] = (struct morph_segment){0x1000, LINKED, 0x3000};
	snprintf((char *)&r->segments[1], 8, "/m%u", n);
}

/* Module @n is the copy of the module with @text_hash. */
static inline void add_pieces(uint32_t n, uint64_t text_hash, const struct morph_piece *pieces,
			      size_t nr)
{
	struct morph_module_map *m =
		md_record_add(&buf, MORPH_REC_MODULE_MAP, sizeof(*m) + nr * sizeof(*pieces));

	m->module = n;
	m->text_hash = text_hash;
	memcpy(m->pieces, pieces, nr * sizeof(*pieces));
}

/* Follows the map: the module is an output of the original. */
static inline void add_output(uint32_t n)
{
	struct morph_module_output *r = md_record_add(&buf, MORPH_REC_MODULE_OUTPUT, sizeof(*r));

	r->module = n;
}

/* Process 1 maps module @n. */
static inline void add_map(uint64_t start, uint32_t n)
{
	struct morph_mmap *r = md_record_add_mmap(&buf, 2, 1, 1, "/m");

	r->start = start;
	r->len = 0x3000;
	r->off = 0x1000;
	r->module = n;
}

/* Process 1 begins. */
static inline void begin(void)
{
	struct morph_exec *r = md_record_add_task(&buf, MORPH_REC_EXEC, sizeof(*r), 1, 1, 1);

	r->nr_threads = 1;
}

/* Writes the records to @recording, and opens a replay of it into @db. */
static inline struct md_pipeline *open_replay(uint32_t nr_repeats)
{
	struct md_recfile_info info = {.start_ns = 1, .start_s = 1700000000, .collector = "perf"};
	struct md_source_config config = {.input = recording, .nr_repeats = nr_repeats};
	struct md_pipeline *pl = calloc(1, sizeof(*pl));
	struct md_recwriter *writer;
	struct morph_record *record;
	size_t pos = 0;

	ck_assert_int_eq(md_recwriter_open(recording, &info, &writer, &err), 0);
	while (!md_record_next(buf.data, buf.size, &pos, &record))
		ck_assert_int_eq(md_recwriter_add(writer, record, &err), 0);
	ck_assert_uint_eq(pos, buf.size);
	ck_assert_int_eq(md_recwriter_close(writer, &err), 0);
	ck_assert_ptr_nonnull(pl);
	ck_assert_msg(!md_source_replay.open(&config, &pl->source, &err), "%s", err.msg);
	ck_assert_msg(!mp_store_open(db, MP_STORE_WRITE, &pl->store, &err), "%s", err.msg);
	pl->interval_s = 10;
	ck_assert_msg(!md_pipeline_init(pl, &err), "%s", err.msg);
	return pl;
}

static inline void close_replay(struct md_pipeline *pl)
{
	ck_assert_msg(!mp_store_check(pl->store, &err), "%s", err.msg);
	pl->source->ops->close(pl->source);
	mp_store_close(pl->store);
	md_pipeline_fini(pl);
	free(pl);
}

/* Gives the records of modules in @from to @mc. Return: how many hold parts of path tables. */
static inline uint32_t take_modules(struct md_modcache *mc, const struct md_buf *from)
{
	struct morph_record *record;
	uint32_t nr_paths = 0;
	size_t pos = 0;

	while (!md_record_next(from->data, from->size, &pos, &record)) {
		const void *r = record;

		if (record->type == MORPH_REC_MODULE)
			md_modcache_add_record(mc, r);
		if (record->type == MORPH_REC_MODULE_MAP)
			md_modcache_add_map_record(mc, r);
		if (record->type == MORPH_REC_MODULE_ENDS)
			md_modcache_add_ends_record(mc, r);
		if (record->type == MORPH_REC_MODULE_CALLS)
			ck_assert_int_eq(md_modcache_add_calls_record(mc, r), 0);
		if (record->type != MORPH_REC_MODULE_PATHS)
			continue;
		ck_assert_int_eq(md_modcache_add_paths_record(mc, r), 0);
		nr_paths++;
	}
	ck_assert_uint_eq(pos, from->size);
	return nr_paths;
}

#endif
