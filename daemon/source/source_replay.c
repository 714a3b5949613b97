// SPDX-License-Identifier: Apache-2.0
/*
 * source_replay - a recorded stream as a source, replayed once or several times.
 *
 * Damage becomes a LOST record that also makes attribution forget all address spaces, since the
 * damaged part may have contained mappings.
 */
#include "daemon/source/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Process ids are below this (PID_MAX_LIMIT). Repetition n adds n times this value to them. */
#define PID_LIMIT (1u << 22)

struct replay {
	struct md_source source;
	struct md_recreader *reader;
	struct md_buf lost; /* a batch with a LOST record for damage */
	uint8_t *waiting;   /* a good chunk to give out after @lost */
	size_t waiting_size;
	uint32_t repeat, nr_repeats;
	uint64_t nr_torn;
	bool damaged, unfinished;
	char remark[160];
};

static void replay_close(struct md_source *source)
{
	struct replay *r = (struct replay *)source;

	if (!r)
		return;
	md_recreader_close(r->reader);
	md_buf_fini(&r->lost);
	free(r);
}

static int replay_open(const struct md_source_config *config, struct md_source **out,
		       struct mp_err *err)
{
	struct replay *r;
	int ret;

	if (!config->input)
		return mp_err_set(err, EINVAL,
				  "the replay source needs a recording (--input FILE)");
	r = calloc(1, sizeof(*r));
	if (!r)
		return mp_err_set(err, ENOMEM, "%s: out of memory", config->input);
	r->source.ops = &md_source_replay;
	r->nr_repeats = config->nr_repeats ? config->nr_repeats : 1;
	ret = md_recreader_open(config->input, &r->reader, err);
	if (ret) {
		replay_close(&r->source);
		return ret;
	}
	*out = &r->source;
	return 0;
}

/* Changes process ids for this repetition. Stops at a malformed record, as attribute will. */
static void renumber(uint8_t *data, size_t size, uint32_t base)
{
	struct morph_record *record;
	struct morph_fork *fork;
	size_t pos = 0;

	while (!md_record_next(data, size, &pos, &record)) {
		struct morph_task *task = (void *)record;

		if (!md_record_has_task(record->type))
			continue;
		task->tgid += base;
		task->tid += base;
		if (record->type == MORPH_REC_FORK) {
			fork = (void *)record;
			fork->parent_tgid += base;
			fork->parent_tid += base;
		}
	}
}

/*
 * Gives a LOST record: something is lost, or a repetition begins, so earlier address spaces are
 * invalid.
 */
static int say_lost(struct replay *r, uint64_t nr, struct md_batch *batch, struct mp_err *err)
{
	r->lost.size = 0;
	if (!md_record_add_lost(&r->lost, 0, nr, MORPH_LOST_TORN, MORPH_LOST_STATE))
		return mp_err_set(err, ENOMEM, "replay: out of memory");
	batch->data = r->lost.data;
	batch->size = r->lost.size;
	return 0;
}

static int replay_next(struct md_source *source, int timeout_ms, bool drain, struct md_batch *batch,
		       struct mp_err *err)
{
	struct replay *r = (struct replay *)source;
	bool damaged;
	uint64_t torn;
	int ret;

	(void)timeout_ms;
	(void)drain;
	*batch = (struct md_batch){0};
	if (r->waiting) {
		*batch = (struct md_batch){r->waiting, r->waiting_size};
		r->waiting = NULL;
		return 0;
	}
	if (r->repeat == r->nr_repeats)
		return -ENODATA;
	ret = md_recreader_next(r->reader, &batch->data, &batch->size, &torn, &damaged, err);
	if (ret && ret != -ENODATA)
		return ret;
	if (!ret && r->repeat)
		renumber(batch->data, batch->size, r->repeat * PID_LIMIT);
	if (ret == -ENODATA) {
		r->unfinished |= !md_recreader_is_whole(r->reader);
		r->repeat++;
		md_recreader_rewind(r->reader);
	}
	if (!damaged && !ret)
		return 0;
	r->damaged |= damaged;
	r->nr_torn += torn;
	if (!ret) {
		r->waiting = batch->data;
		r->waiting_size = batch->size;
	}
	return say_lost(r, torn, batch, err);
}

static void replay_describe(const struct md_source *source, struct md_recfile_info *info)
{
	const struct replay *r = (const struct replay *)source;

	*info = *md_recreader_info(r->reader);
}

static const char *replay_remark(const struct md_source *source)
{
	struct replay *r = (struct replay *)source;

	if (r->damaged)
		snprintf(r->remark, sizeof(r->remark),
			 "the recording is damaged: %llu samples are lost in it",
			 (unsigned long long)r->nr_torn);
	else if (r->unfinished)
		snprintf(r->remark, sizeof(r->remark),
			 "the recording has no end: the morphd that wrote it was killed");
	else
		return NULL;
	return r->remark;
}

const struct md_source_ops md_source_replay = {
	.name = "replay",
	.open = replay_open,
	.next = replay_next,
	.describe = replay_describe,
	.remark = replay_remark,
	.close = replay_close,
};
