// SPDX-License-Identifier: Apache-2.0
/* trying - the blocks of a trial; see trying.h. */
#include "daemon/worker/trying.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/everyday/meter.h"
#include "daemon/worker/running.h"
#include "libprof/base/clock.h"
#include "libprof/note/edge_table.h"
#include "libprof/trial/trial_state.h"

void md_trying_free(struct md_trying *t)
{
	if (!t)
		return;
	mp_trial_free(t->trial);
	free(t);
}

/* The hash of the table of counters of a metered version, which its files of counts name. */
static int read_table(struct md_task *task, enum md_variant variant, uint64_t *hash, uint32_t *nr)
{
	struct md_work_path path = md_work_path(&task->dir, md_variant_name(variant));
	struct mp_edge_table *table = NULL;
	struct mp_elf *elf = NULL;
	int ret = mp_elf_open(path.text, MP_ELF_SYMBOLS, &elf, task->err);

	if (!ret)
		ret = mp_meter_table_read(elf, &table, task->err);
	if (!ret) {
		*hash = table->hash;
		*nr = table->nr_counters;
	}
	mp_edge_table_free(table);
	mp_elf_close(elf);
	return ret;
}

static int open_versions(struct md_task *task, struct md_trying *t)
{
	const enum md_variant metered[2] = {MD_METERED_ORIGINAL, MD_METERED_NEW},
			      plain[2] = {MD_ORIGINAL,
					  md_running_is(&task->dir) ? MD_NEW_RUNNING : MD_NEW};
	uint32_t nr = 0;
	int ret = 0;

	for (int v = 0; v < 2; v++)
		t->version[v] = t->metered ? metered[v] : plain[v];
	for (int v = 0; t->metered && !ret && v < 2; v++) {
		t->dir[v] = md_variant_counts(&task->dir, t->version[v]);
		ret = read_table(task, t->version[v], &t->table_hash[v], &nr);
		t->nr_counters = nr;
		if (!ret && nr != mp_trial_config(t->trial)->nr_counters)
			ret = mp_err_set(task->err, EBADMSG, "%s counts at %u places, not %zu",
					 md_variant_words(t->version[v]), nr,
					 mp_trial_config(t->trial)->nr_counters);
	}
	return ret;
}

int md_trying_new(struct md_task *task, struct md_trying **out)
{
	struct md_trying *t = calloc(1, sizeof(*t));
	struct mp_meter meter;
	int ret;

	*out = NULL;
	if (!t)
		return mp_err_code(task->err, ENOMEM);
	t->order = -1;
	t->metered = md_meter_load(md_work_path(&task->dir, "meter").text, &meter);
	ret = mp_trial_load(md_work_path(&task->dir, "trial").text, &t->trial, task->err);
	if (!ret && mp_trial_drawn(t->trial) >= 0)
		mp_trial_abandon(t->trial);
	if (!ret)
		ret = open_versions(task, t);
	/* Processes of files that an earlier worker put there would go on to count, but nobody watches their time. */
	for (int v = 0; t->metered && !ret && v < 2; v++)
		ret = md_count_dir_make(t->dir[v].text, md_running_is(&task->dir), task->err);
	if (ret)
		md_trying_free(t);
	else
		*out = t;
	return ret;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int version_now(const struct md_trying *t)
{
	return t->block ? !t->order : t->order;
}

enum md_variant md_trying_version(const struct md_trying *t)
{
	return t->version[version_now(t)];
}

static int read_counts(struct md_task *task, const struct md_trying *t, uint64_t *counts)
{
	int v = version_now(t);

	memset(counts, 0, MP_TRIAL_NR_COUNTERS * sizeof(*counts));
	return t->metered ? md_count_dir_read(t->dir[v].text, t->table_hash[v], counts,
					      t->nr_counters, task->err)
			  : 0;
}

/* Only the first read after a loss tells of it, so each read notes it for the pair. */
static int read_done(struct md_task *task, const struct md_live *live, struct md_done *done)
{
	int ret = md_live_done(task->worker, live, md_trying_version(live->trying), done);

	live->trying->incomplete |= done->incomplete;
	return ret ? mp_err_set(task->err, -ret, "the time of processes: %s", strerror(-ret)) : 0;
}

/* A single user's bad work may crash whatever runs, and the test of the trial wants as many pairs with crashes. */
#define CRASHES 3

int md_trying_does_harm(struct md_task *task, const struct md_live *live)
{
	const struct md_trying *t = live->trying;
	struct mp_trial_result pairs;
	uint64_t crashes[2] = {0};
	int ret = 0;

	for (int v = 0; !ret && v < 2; v++)
		ret = md_live_crashes(task->worker, live, t->version[v], &crashes[v]);
	if (ret)
		return mp_err_set(task->err, -ret, "the time of processes: %s", strerror(-ret));
	if (crashes[1] < task->job->before_crashes + CRASHES || crashes[0])
		return 0;
	/* Those of the original that an earlier worker saw. */
	mp_trial_result(t->trial, &pairs);
	return !pairs.crashes[0];
}

static int draw(struct md_task *task, struct md_trying *t)
{
	unsigned char byte;

	if (getrandom(&byte, 1, 0) != 1)
		return mp_err_set(task->err, errno, "no random bits: %s", strerror(errno));
	t->order = mp_trial_draw(t->trial, byte & 1);
	if (t->order < 0)
		return mp_err_set(task->err, -t->order, "the trial has ended");
	t->block = 0;
	t->part = mp_trial_nr_pairs(t->trial) < MD_SHORT_PAIRS ? MD_SHORT_BLOCK_PART : 1;
	t->incomplete = false;
	memset(t->blocks, 0, sizeof(t->blocks));
	/* A worker that is killed finds that a pair had begun. */
	return mp_trial_save(t->trial, md_work_path(&task->dir, "trial").text, task->err);
}

int md_trying_draw(struct md_task *task, struct md_live *live)
{
	return live->trying->order < 0 ? draw(task, live->trying) : 0;
}

int md_trying_drop(struct md_task *task, struct md_trying *t)
{
	if (t->order < 0)
		return 0;
	t->order = -1;
	mp_trial_abandon(t->trial);
	return mp_trial_save(t->trial, md_work_path(&task->dir, "trial").text, task->err);
}

int md_trying_begin(struct md_task *task, struct md_live *live)
{
	struct md_trying *t = live->trying;
	int ret = read_done(task, live, &t->before);

	if (!ret)
		ret = read_counts(task, t, t->counts_before);
	t->begun_s = mp_now_s();
	return ret;
}

int md_trying_is_over(struct md_task *task, const struct md_live *live, double cost_rate)
{
	const struct md_trying *t = live->trying;
	double past_s = mp_now_s() - t->begun_s;
	double pace = task->worker->pace;
	struct md_done done;
	int ret;

	/* Swaps, too, keep the limit of what all work may cost; half of it is for them. */
	if (past_s < MD_BLOCK_S * t->part * pace || past_s < 2 * t->swap_s / cost_rate)
		return 0;
	if (past_s >= MD_BLOCK_MAX_S * pace)
		return 1;
	ret = read_done(task, live, &done);
	return ret ? ret : done.run_s - t->before.run_s >= MD_BLOCK_CPU_S * t->part;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void measure(struct md_trying *t, const struct md_done *done, const uint64_t *counts)
{
	struct mp_trial_block *b = &t->blocks[version_now(t)];
	double user_s = done->user_s - t->before.user_s,
	       system_s = done->system_s - t->before.system_s;

	b->cpu_s = t->metered ? done->run_s - t->before.run_s : user_s;
	for (uint32_t i = 0; i < t->nr_counters; i++)
		b->counts[i] = since(counts[i], t->counts_before[i]);
	if (!t->metered)
		b->counts[0] = (uint64_t)(1e6 * system_s);
	b->processes = since(done->processes, t->before.processes);
	b->crashes = since(done->crashes, t->before.crashes);
}

static int add_pair(struct md_task *task, struct md_trying *t)
{
	int ret = 0;

	if (t->incomplete)
		mp_trial_abandon(t->trial);
	else
		ret = mp_trial_add_pair(t->trial, t->blocks);
	/* Work without time: too short for the kernel's clock. */
	if (ret == -EINVAL) {
		mp_trial_abandon(t->trial);
		ret = 0;
	}
	t->order = -1;
	if (ret)
		return mp_err_set(task->err, -ret, "the trial: %s", strerror(-ret));
	return mp_trial_save(t->trial, md_work_path(&task->dir, "trial").text, task->err);
}

int md_trying_end(struct md_task *task, struct md_live *live)
{
	struct md_trying *t = live->trying;
	uint64_t counts[MP_TRIAL_NR_COUNTERS];
	struct md_done done;
	int ret = read_done(task, live, &done);

	if (!ret)
		ret = read_counts(task, t, counts);
	if (ret)
		return ret;
	measure(t, &done, counts);
	if (!t->block) {
		t->block = 1;
		return 0;
	}
	return add_pair(task, t);
}
