// SPDX-License-Identifier: Apache-2.0
/* pipeline - the daemon's main loop; see pipeline.h. */
#include "libprof/base/clock.h"
#include "daemon/attribute/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_MS	      100
#define REFUSED_SAID  10 /* refused outputs that get a message */
#define BATCHES_CLOCK 8	 /* of a replay: batches between two reads of the clock */
/* Registers wait so long for further samples of their files, each of which takes a process. */
#define WAYS_WAIT_NS INT64_C(60000000000)

uint64_t md_ledger_lost(const struct mp_ledger *ledger)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < MP_NR_LOST; i++)
		sum += ledger->lost[i];
	return sum;
}

uint64_t md_ledger_unattributed(const struct mp_ledger *ledger)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < MP_NR_UNATTR; i++)
		sum += ledger->unattributed[i];
	return sum;
}

static void add_ledger(struct mp_ledger *to, const struct mp_ledger *from)
{
	size_t i;

	to->emitted += from->emitted;
	to->attributed += from->attributed;
	for (i = 0; i < MP_NR_UNATTR; i++)
		to->unattributed[i] += from->unattributed[i];
	for (i = 0; i < MP_NR_LOST; i++)
		to->lost[i] += from->lost[i];
	for (i = 0; i < MP_NR_PATH_FATES; i++)
		to->paths[i] += from->paths[i];
	for (i = 0; i < MP_NR_WALK_STOP; i++)
		to->stacks[i] += from->stacks[i];
	to->contexts += from->contexts;
	to->calls += from->calls;
}

static void warn(struct md_pipeline *pl, const char *message)
{
	if (pl->warn && message && message[0])
		pl->warn(pl->arg, message);
}

static void step(struct md_pipeline *pl)
{
	if (pl->step)
		pl->step(pl->arg);
}

/* ---- recording ---------------------------------------------------------------------------- */

/* Writes the description of @file to the recording, before the first record that refers to it. */
static int record_file(struct md_pipeline *pl, struct md_file *file, struct mp_err *err)
{
	struct morph_record *record;
	struct md_buf buf = {0};
	size_t pos = 0;
	int ret;

	if (!pl->writer || file->recorded)
		return 0;
	ret = md_modcache_write_records(pl->at.modcache, file, &buf);
	if (ret)
		mp_err_set(err, -ret, "out of memory");
	while (!ret && !md_record_next(buf.data, buf.size, &pos, &record))
		ret = md_recwriter_add(pl->writer, record, err);
	md_buf_fini(&buf);
	file->recorded = !ret;
	return ret;
}

/* Looks up the file of a live source's mapping at once, since it may be deleted soon. */
static int resolve(struct md_pipeline *pl, struct morph_mmap *mmap, struct mp_err *err)
{
	struct md_module *module;
	struct md_file *file;
	int64_t mapped_ns = 0;

	if (mmap->task.time_ns)
		mapped_ns = mmap->task.time_ns + mp_clock_ns(CLOCK_REALTIME) -
			    mp_clock_ns(CLOCK_MONOTONIC);
	if (md_modcache_resolve(pl->at.modcache, mmap, mapped_ns, &file))
		return mp_err_set(err, ENOMEM, "out of memory");
	warn(pl, md_modcache_remark(pl->at.modcache));
	warn(pl, md_rows_give_file(&pl->rows_give, pl->source, pl->at.modcache, file, mmap));
	mmap->module = file->number;
	module = md_modcache_module(pl->at.modcache, file->module);
	if (module) {
		mmap->build_id_len = module->id.build_id_len;
		memcpy(mmap->build_id, module->id.build_id, sizeof(mmap->build_id));
		md_outputs_check_module(pl->outputs, module);
	}
	/* One batch may need thousands of files. */
	step(pl);
	return record_file(pl, file, err);
}

/* Takes decisions about outputs, and writes them to the recording. */
static int take_outputs(struct md_pipeline *pl, int timeout_ms, struct mp_err *err)
{
	struct morph_record *record;
	struct md_module *module;
	struct md_buf buf = {0};
	struct mp_err said;
	size_t pos;
	int ret = 0;

	while (!ret &&
	       (module = md_outputs_next_decision(pl->outputs, pl->at.modcache, timeout_ms))) {
		if (module->map_belief == MD_MAP_REFUSED && pl->nr_refused++ < REFUSED_SAID) {
			mp_err_set(&said, 0,
				   "%s: its original is not known here: its samples are counted "
				   "for this file",
				   module->path);
			warn(pl, said.msg);
		}
		if (module->map_belief != MD_MAP_BELIEVED || !pl->writer)
			continue;
		pos = buf.size = 0;
		ret = md_modcache_write_output_record(pl->at.modcache, module, &buf);
		if (ret)
			mp_err_set(err, -ret, "out of memory");
		while (!ret && !md_record_next(buf.data, buf.size, &pos, &record))
			ret = md_recwriter_add(pl->writer, record, err);
	}
	md_buf_fini(&buf);
	return ret;
}

/* At the end of a run, waits for all pending answers about outputs. */
static int settle_outputs(struct md_pipeline *pl, struct mp_err *err)
{
	int ret = 0;

	while (!ret && md_outputs_wait_ms(pl->outputs)) {
		ret = take_outputs(pl, POLL_MS, err);
		step(pl);
	}
	return ret;
}

/* ---- flushing ----------------------------------------------------------------------------- */

static int64_t stream_time_s(const struct md_pipeline *pl)
{
	struct md_recfile_info info;

	if (pl->source->ops->is_live)
		return mp_clock_ns(CLOCK_REALTIME) / 1000000000;
	pl->source->ops->describe(pl->source, &info);
	if (pl->at.last_time_ns <= info.start_ns)
		return info.start_s;
	return info.start_s + (int64_t)((pl->at.last_time_ns - info.start_ns) / 1000000000);
}

bool md_pipeline_is_temporary(int ret)
{
	return ret == -ENOSPC || ret == -EBUSY || ret == -ENOMEM;
}

static void note_modules(struct md_pipeline *pl)
{
	const struct md_sample_table *counts = &pl->at.samples;
	uint32_t module;
	uint8_t bit;
	size_t i;

	if (counts->nr_used > pl->max_addresses)
		pl->max_addresses = counts->nr_used;
	for (i = 0; i < counts->nr_slots; i++) {
		if (!counts->slots[i].key)
			continue;
		module = md_sample_table_module(counts->slots[i].key);
		bit = 1u << module % 8;
		pl->nr_sampled += !(pl->sampled[module / 8] & bit);
		pl->sampled[module / 8] |= bit;
	}
}

size_t md_pipeline_nr_modules(const struct md_pipeline *pl)
{
	return pl->nr_sampled;
}

/* Samples that wait name modules, so these must not be forgotten before. */
static void run_ways(struct md_pipeline *pl, bool last)
{
	int64_t now = mp_clock_ns(CLOCK_MONOTONIC);
	struct mp_err said;

	if (!pl->at.ways ||
	    (!last && !md_ways_is_due(pl->at.ways) && !md_modcache_is_sweep_due(pl->at.modcache) &&
	     now - pl->ways_ns < WAYS_WAIT_NS))
		return;
	md_ways_run(pl->at.ways, pl->at.modcache, last, &said);
	warn(pl, said.msg);
	pl->ways_ns = now;
}

static int flush(struct md_pipeline *pl, int64_t when_s, bool last, struct mp_err *err)
{
	struct mp_ledger delta;
	int ret = 0;

	if (pl->polls && md_path_requests_take(pl->polls, &pl->at, last))
		return mp_err_set(err, ENOMEM, "no memory for paths that were polled");
	if (pl->calls && md_call_samples_take(pl->calls, &pl->at, last))
		return mp_err_set(err, ENOMEM, "no memory for calls that were sampled");
	run_ways(pl, last);
	delta = pl->at.ledger;
	md_outputs_check_list(pl->outputs, pl->at.modcache);
	md_outputs_save(pl->outputs);
	note_modules(pl);
	if (pl->writer) {
		ret = md_recwriter_flush(pl->writer, err);
		if (ret)
			return ret;
	}
	if (pl->store)
		ret = md_flush_write(&pl->flush, &pl->at, when_s, err);
	else
		md_attribute_clear(&pl->at);
	if (!pl->store)
		md_sample_owner_clear(pl->flush.owner);
	if (ret)
		return ret;
	add_ledger(&pl->total, &delta);
	md_modcache_sweep(pl->at.modcache, pl->at.procmap);
	if (pl->flushed)
		pl->flushed(pl->arg);
	return 0;
}

/* Flushes. On a temporary failure, reports it and keeps the counts for the next flush. */
static int flush_or_keep(struct md_pipeline *pl, int64_t when_s, struct mp_err *err)
{
	int ret = flush(pl, when_s, false, err);

	if (!ret || !md_pipeline_is_temporary(ret))
		return ret;
	warn(pl, err->msg);
	return 0;
}

/* ---- records ------------------------------------------------------------------------------ */

static void count_lost(struct md_pipeline *pl, uint64_t nr, enum mp_lost why)
{
	pl->at.ledger.emitted += nr;
	pl->at.ledger.lost[why] += nr;
}

static int take_record(struct md_pipeline *pl, struct morph_record *record, struct mp_err *err)
{
	struct morph_mmap *mmap = (void *)record;
	int ret = 0;

	if (record->type == MORPH_REC_MMAP && pl->source->ops->is_live)
		ret = resolve(pl, mmap, err);
	if (record->type == MORPH_REC_USER_STACK) {
		record = pl->stacks ? md_stack_walk(pl->stacks, &pl->at, (const void *)record)
				    : NULL;
		if (!record)
			return 0; /* the sample itself was counted before */
	}
	if (!ret && pl->writer)
		ret = md_recwriter_add(pl->writer, record, err);
	if (ret)
		return ret;
	if (!md_attribute_record(&pl->at, record))
		return pl->at.lacks_module ? mp_err_code(err, ENOMEM) : 0;
	/* A table is full: flush. If that fails, count the record as lost. */
	ret = flush_or_keep(pl, stream_time_s(pl), err);
	if (ret)
		return ret;
	if (md_attribute_record(&pl->at, record)) {
		count_lost(pl, md_record_emitted(record), MP_LOST_NO_MEMORY);
		if (record->type == MORPH_REC_BRANCHES) {
			pl->at.branches.seen += md_branches_nr((const void *)record);
			pl->at.branches.table_full += md_branches_nr((const void *)record);
		}
		if (record->type == MORPH_REC_REGISTERS)
			pl->at.ledger.paths[MP_PATH_NO_MEMORY] +=
				md_registers_nr((const void *)record);
	}
	return 0;
}

static int take_batch(struct md_pipeline *pl, const struct md_batch *batch, struct mp_err *err)
{
	struct morph_record *record;
	size_t pos = 0;
	int ret;

	pl->nr_bytes += batch->size;
	while (!(ret = md_record_next(batch->data, batch->size, &pos, &record))) {
		pl->nr_records++;
		if (!md_sample_owner_record(pl->flush.owner, record))
			continue; /* belongs to a process that was not selected */
		pl->nr_batches += record->type == MORPH_REC_SAMPLES;
		ret = take_record(pl, record, err);
		if (ret)
			return ret;
	}
	if (ret == -EBADMSG) {
		/*
		 * The chunk's checksum was right, so it was written like this. The number of
		 * lost samples is unknown.
		 */
		count_lost(pl, 1, MP_LOST_TORN);
		md_procmap_forget(pl->at.procmap);
		warn(pl, "a malformed record: the rest of its chunk is skipped");
	}
	return 0;
}

/* Return: 0, -ENOMEM. */
static int start_stacks(struct md_pipeline *pl)
{
	if (!pl->stacks) {
		md_modcache_want_rows(pl->at.modcache);
		pl->stacks = md_stack_walk_new();
		if (!pl->stacks)
			return -ENOMEM;
	}
	md_rows_give_start(&pl->rows_give, pl->source, md_stack_walk_vdso(pl->stacks));
	return 0;
}

/* A recording's files may not be on this machine. Return: 0, -errno. */
static int start_ways(struct md_pipeline *pl, uint32_t rate_hz, struct mp_err *err)
{
	pl->at.no_paths = pl->wants_ways && pl->source->ops->is_live;
	pl->at.ways_a_day = pl->ways_a_day;
	pl->at.ways_share = pl->ways_a_second && rate_hz > pl->ways_a_second
				    ? MD_WAYS_SHARE_ALL * pl->ways_a_second / rate_hz
				    : 0;
	pl->ways_ns = mp_clock_ns(CLOCK_MONOTONIC);
	if (pl->at.no_paths)
		return pl->at.ways ? 0 : md_ways_new(&pl->at.ways, err);
	md_ways_free(pl->at.ways);
	pl->at.ways = NULL;
	return 0;
}

static int start_session(struct md_pipeline *pl, struct mp_err *err)
{
	struct mp_session *session = &pl->flush.session;
	struct md_recfile_info info;
	const char *remark = NULL;
	struct md_file *kernel;
	size_t used;
	int ret;

	md_modcache_set_sandbox(pl->at.modcache, pl->sandbox);
	if (pl->source->has_stacks && start_stacks(pl))
		return mp_err_set(err, ENOMEM, "out of memory");
	md_source_describe(pl->source, &info);
	ret = start_ways(pl, info.rate_hz, err);
	if (ret)
		return ret;
	if (info.rate_hz)
		md_contexts_set_period(pl->at.contexts,
				       (1000000000 + info.rate_hz / 2) / info.rate_hz);
	if (pl->source->has_kernel) {
		ret = md_modcache_resolve_kernel(pl->at.modcache, pl->source->kernel_base, &kernel,
						 &remark);
		if (ret)
			return mp_err_set(err, -ret, "out of memory");
		warn(pl, remark);
		ret = record_file(pl, kernel, err);
		if (ret)
			return ret;
	}
	if (!pl->store)
		return 0;
	pl->flush.store = pl->store;
	snprintf(session->collector, sizeof(session->collector), "%s", pl->source->ops->name);
	if (pl->source->ops->is_live)
		snprintf(session->why, sizeof(session->why), "%s", info.why);
	else
		snprintf(session->why, sizeof(session->why), "a recording by %s: %.120s",
			 info.collector, info.why);
	used = strlen(session->why);
	if (pl->unconfined)
		snprintf(session->why + used, sizeof(session->why) - used,
			 "; files are read without a sandbox: %s", pl->unconfined);
	snprintf(session->event, sizeof(session->event), "%s", info.event);
	session->rate_hz = info.rate_hz;
	return md_flush_start(&pl->flush, stream_time_s(pl), err);
}

/* Return: file name of the program of a process, from its mappings; NULL: not known. */
static const char *program_of(void *arg, const struct morph_task *task)
{
	struct md_pipeline *pl = arg;
	struct md_space *space = md_procmap_find(pl->at.procmap, task->tgid, task->exec_id);
	uint32_t program = space ? md_space_program(space) : 0;
	const struct md_module *module = program ? md_modcache_module(pl->at.modcache, program)
						 : NULL;

	return module ? basename(module->path) : NULL;
}

int md_pipeline_init(struct md_pipeline *pl, struct mp_err *err)
{
	int ret = md_attribute_init(&pl->at);

	pl->outputs = md_outputs_new(&pl->store);
	if (!ret && !pl->outputs)
		ret = -ENOMEM;
	if (!ret) {
		pl->flush.owner = md_sample_owner_new(pl->source->ops->is_live, pl->selection,
						      program_of, pl);
		ret = pl->flush.owner ? 0 : -ENOMEM;
	}
	return ret ? mp_err_set(err, -ret, "out of memory") : start_session(pl, err);
}

int md_pipeline_change(struct md_pipeline *pl, struct md_source *source, struct mp_err *err)
{
	pl->source = source;
	md_procmap_forget(pl->at.procmap);
	return start_session(pl, err);
}

static int drain(struct md_pipeline *pl, struct mp_err *err)
{
	struct md_batch batch;
	int ret;

	do {
		ret = pl->source->ops->next(pl->source, 0, true, &batch, err);
		if (ret)
			return ret == -ENODATA ? 0 : ret;
		ret = take_batch(pl, &batch, err);
	} while (!ret && batch.size);
	return ret;
}

/* Flushes come earlier where trees of calling contexts would soon lose nodes, but not all the time. */
static bool is_flush_due(const struct md_pipeline *pl, int64_t since_ns)
{
	double interval_ns = pl->interval_s * 1e9;

	if (md_contexts_is_nearly_full(pl->at.contexts))
		interval_ns /= MD_CONTEXTS_FLUSHES;
	return (double)since_ns >= interval_ns;
}

int md_pipeline_run(struct md_pipeline *pl, struct mp_err *err)
{
	int64_t began = mp_clock_ns(CLOCK_MONOTONIC), last_flush = began, now = began;
	bool is_live = pl->source->ops->is_live;
	int64_t when_s = stream_time_s(pl), before_s;
	struct md_batch batch;
	unsigned int turn = 0;
	int ret;

	for (;;) {
		ret = pl->source->ops->next(pl->source, POLL_MS, false, &batch, err);
		if (ret == -ENODATA)
			break;
		if (!ret)
			ret = take_batch(pl, &batch, err);
		if (!ret)
			ret = take_outputs(pl, 0, err);
		if (ret)
			goto out;
		if (pl->at.ways && md_ways_is_due(pl->at.ways))
			run_ways(pl, false);
		step(pl);
		before_s = when_s;
		when_s = stream_time_s(pl);
		if (is_live || ++turn % BATCHES_CLOCK == 0)
			now = mp_clock_ns(CLOCK_MONOTONIC);
		/*
		 * Counts are kept by day, so flush at midnight. Counts of an undecided output
		 * wait for its answer.
		 */
		if ((is_flush_due(pl, now - last_flush) && !md_outputs_wait_ms(pl->outputs)) ||
		    when_s / MP_SECONDS_PER_DAY != before_s / MP_SECONDS_PER_DAY) {
			ret = flush_or_keep(pl, before_s, err);
			if (ret)
				goto out;
			last_flush = now;
		}
		if (pl->should_stop && pl->should_stop(pl->arg)) {
			/* A recording that was stopped early has nothing to drain. */
			ret = is_live ? drain(pl, err) : 0;
			if (ret)
				goto out;
			break;
		}
	}
	ret = settle_outputs(pl, err);
	if (!ret)
		ret = flush(pl, stream_time_s(pl), true, err);
out:
	pl->time_ns += mp_clock_ns(CLOCK_MONOTONIC) - began;
	return ret;
}

void md_pipeline_fini(struct md_pipeline *pl)
{
	md_outputs_free(pl->outputs);
	pl->outputs = NULL;
	md_stack_walk_free(pl->stacks);
	pl->stacks = NULL;
	md_attribute_fini(&pl->at);
	md_sample_owner_free(pl->flush.owner);
	pl->flush.owner = NULL;
}
