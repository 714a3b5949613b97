// SPDX-License-Identifier: Apache-2.0
/* compilations - runs both compilations in pairs, and counts samples by region; see
 * compilations.h. */
#include "editor/compilations/compilations.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "editor/audit/run/audit_child.h"
#include "editor/audit/run/audit_compare.h"
#include "editor/audit/run/audit_run.h"
#include "editor/audit/run/audit_slot.h"
#include "editor/base/scratch.h"
#include "editor/compilations/totals.h"
#include "editor/refine/sample_db.h"
#include "editor/refine/tool.h"
#include "libprof/base/clock.h"

struct work {
	const struct me_audit_opts *opts;
	struct me_compilations *out;
	char dir[PATH_MAX], db[PATH_MAX];
	char versions[ME_NR_BUILDS][PATH_MAX]; /* outputs without markers */
	struct mp_id ids[ME_NR_BUILDS];	       /* of these */
	struct me_slot slot;
	bool has_slot;
	char **argv; /* of a sampled run; the program's own begin at @program */
	size_t program;
	struct me_tool morphd;
	char option_db[PATH_MAX + 16], option_rate[32];
	struct me_run reference; /* the old one's first run */
	bool has_reference;
	uint64_t *samples[ME_NR_BUILDS]; /* of one run: per region, and of the whole command */
	uint64_t longest_ns, start_ns;
};

/* ---- preparing ------------------------------------------------------------------------------ */

static int open_dir(struct work *w, struct mp_err *err)
{
	const struct me_audit_opts *o = w->opts;
	int rc;

	snprintf(w->dir, sizeof(w->dir), "%.*s/morph-compilations.XXXXXX", PATH_MAX - 64,
		 o->parent);
	rc = me_scratch_make(w->dir, err);
	if (rc)
		return rc;
	snprintf(w->db, sizeof(w->db), "%.*s/run.db", PATH_MAX - 64, w->dir);
	snprintf(w->versions[ME_OLD], PATH_MAX, "%.*s/old", PATH_MAX - 64, w->dir);
	snprintf(w->versions[ME_NEW], PATH_MAX, "%.*s/new", PATH_MAX - 64, w->dir);
	rc = me_slot_open(&w->slot, w->dir, o->name ? o->name : basename(o->a), NULL, err);
	w->has_slot = !rc;
	return rc;
}

static int make_argv(struct work *w, struct mp_err *err)
{
	size_t nr = 0, i = 0;
	int rc = me_tool_find("morphd", &w->morphd, err);

	if (rc)
		return rc;
	while (w->opts->args && w->opts->args[nr])
		nr++;
	w->argv = calloc(nr + 8, sizeof(*w->argv));
	if (!w->argv)
		return mp_err_set(err, ENOMEM, "out of memory");
	snprintf(w->option_db, sizeof(w->option_db), "--db=%s", w->db);
	snprintf(w->option_rate, sizeof(w->option_rate), "--rate=%d", ME_SAMPLE_DB_HZ);
	w->argv[i++] = w->morphd.path;
	w->argv[i++] = (char *)"run";
	w->argv[i++] = (char *)"--no-kernel";
	w->argv[i++] = w->option_db;
	w->argv[i++] = w->option_rate;
	w->argv[i++] = (char *)"--";
	w->program = i;
	w->argv[i++] = (char *)me_slot_path(&w->slot);
	for (nr = 0; w->opts->args && w->opts->args[nr]; nr++)
		w->argv[i++] = w->opts->args[nr];
	return 0;
}

/* A version without markers, whose code keeps the compiler's order. */
static int leave_markers_out(struct work *w, int b, struct mp_err *err)
{
	struct me_optimize_options o = {.input = w->out->builds[b].path,
					.output = w->versions[b],
					.all = true,
					.remove_markers = true,
					.keeps_nothing = true,
					.nr_threads = 2};
	struct me_optimize_report report = {0};
	struct mp_elf *elf;
	int rc = me_optimize(&o, &report, err);

	w->out->markers[b] = report.markers;
	me_optimize_report_fini(&report);
	if (rc)
		return rc;
	rc = mp_elf_open(w->versions[b], MP_ELF_ID, &elf, err);
	if (rc)
		return rc;
	w->ids[b] = elf->id;
	mp_elf_close(elf);
	return 0;
}

static int put(struct work *w, const char *path, struct mp_err *err)
{
	struct me_program program;
	int rc = me_program_open(&program, path, err);

	if (rc)
		return rc;
	rc = me_slot_put(&w->slot, &program, err);
	me_program_close(&program);
	return rc;
}

static int take_totals(struct work *w, int b, struct mp_err *err)
{
	struct me_regions *regions = &w->out->regions;
	struct me_totals_run run = {.path = me_slot_path(&w->slot),
				    .argv = w->argv + w->program,
				    .stdin_path = w->opts->stdin_path ? w->opts->stdin_path
								      : "/dev/null",
				    .quiet = true,
				    .mask = w->opts->mask};
	struct me_totals totals = {0};
	int rc = put(w, w->out->builds[b].path, err);

	if (!rc)
		rc = me_totals_take(&run, w->out->builds[b].elf, &totals, err);
	for (size_t i = 0; i < totals.nr && !rc; i++) {
		uint32_t marker = me_regions_marker(regions, totals.list[i].name);

		if (marker != MP_NONE)
			regions->markers[marker].total[b] = totals.list[i].value;
	}
	me_totals_fini(&totals);
	for (char *const *file = w->opts->files; file && *file; file++)
		unlink(*file);
	return rc;
}

/* If the totals of a region's markers differ, the compilations did different work there. */
static void find_other_work(struct me_compilations *out)
{
	for (uint32_t i = 0; i < out->regions.nr_markers; i++) {
		const struct me_region_marker *m = &out->regions.markers[i];

		for (int d = 0; !me_compilations_agree(m) && d < ME_NR_DIVISIONS; d++)
			out->tests.list[me_compilations_index(out, d, m->region[d])].work_differs =
				true;
	}
}

static int prepare(struct work *w, struct mp_err *err)
{
	const char *const paths[] = {w->opts->a, w->opts->b};
	struct me_compilations *out = w->out;
	uint32_t nr;
	int rc = 0;

	for (int b = 0; b < ME_NR_BUILDS && !rc; b++)
		rc = me_build_open(paths[b], &out->builds[b], err);
	if (!rc && me_regions_find(out->builds, &out->regions))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (rc)
		return rc;
	nr = out->regions.nr[ME_DIVISION_FUNCTIONS] + out->regions.nr[ME_DIVISION_LOOPS];
	rc = me_region_tests_init(&out->tests, nr, w->opts->alpha, w->opts->indifference);
	for (int b = 0; b < ME_NR_BUILDS; b++) {
		w->samples[b] = calloc((size_t)nr + 1, sizeof(uint64_t));
		if (rc || !w->samples[b])
			return mp_err_set(err, ENOMEM, "out of memory");
	}
	rc = open_dir(w, err);
	if (!rc)
		rc = make_argv(w, err);
	for (int b = 0; b < ME_NR_BUILDS && !rc; b++)
		rc = leave_markers_out(w, b, err);
	for (int b = 0; b < ME_NR_BUILDS && !rc; b++)
		rc = take_totals(w, b, err);
	if (!rc)
		find_other_work(out);
	return rc;
}

/* ---- one sampled run ------------------------------------------------------------------------ */

/* Is the region one of loops, rather than of code outside of marked loops? */
static bool is_loop(const struct me_compilations *out, uint32_t region, const bool *marked)
{
	return region < out->regions.nr[ME_DIVISION_LOOPS] && marked[region];
}

static int count_samples(struct work *w, int b, const struct mp_ip_count *counts, size_t nr,
			 struct mp_err *err)
{
	const struct me_compilations *out = w->out;
	struct me_region_function *functions = out->regions.functions;
	bool *marked = calloc((size_t)out->regions.nr[ME_DIVISION_LOOPS] + 1, sizeof(*marked));

	if (!marked)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < out->regions.nr_markers; i++)
		marked[out->regions.markers[i].region[ME_DIVISION_LOOPS]] = true;
	for (size_t i = 0; i < nr; i++) {
		uint32_t block = mp_cfg_block_at(out->builds[b].cfg, counts[i].vaddr);

		if (block == MP_NONE)
			continue;
		functions[out->regions.function_of[b][out->builds[b].cfg->blocks[block].func]]
			.samples += counts[i].count;
		for (int d = 0; d < ME_NR_DIVISIONS; d++) {
			uint32_t region = out->regions.of_block[d][b][block];

			if (d == ME_DIVISION_FUNCTIONS || is_loop(out, region, marked))
				w->samples[b][me_compilations_index(out, d, region)] +=
					counts[i].count;
		}
	}
	free(marked);
	return 0;
}

static int read_samples(struct work *w, int b, struct mp_err *err)
{
	struct mp_ip_count *counts = NULL;
	struct mp_store *store;
	size_t nr = 0;
	int rc = me_sample_db_open(w->db, &store, err);

	if (rc)
		return rc;
	memset(w->samples[b], 0, ((size_t)w->out->tests.nr + 1) * sizeof(uint64_t));
	rc = me_sample_db_read(store, &w->out->builds[b].elf->id, &counts, &nr, err);
	if (!rc)
		rc = count_samples(w, b, counts, nr, err);
	if (!rc)
		rc = me_sample_db_whole(store, &w->samples[b][w->out->tests.nr], err);
	free(counts);
	mp_store_close(store);
	return rc;
}

static uint64_t timeout_ns(const struct work *w)
{
	if (w->opts->timeout_seconds > 0)
		return (uint64_t)(w->opts->timeout_seconds * (double)ME_NS_PER_SEC);
	return w->longest_ns ? 10 * w->longest_ns + 10 * ME_NS_PER_SEC : 0;
}

static int run_once(struct work *w, int b, struct me_run *run, struct mp_err *err)
{
	const struct me_audit_opts *o = w->opts;
	struct me_run_spec spec = {.path = w->morphd.path,
				   .argv = w->argv,
				   .envp = o->envp,
				   .stdin_path = o->stdin_path,
				   .filter = o->filter,
				   .files = o->files,
				   .with_stderr = o->with_stderr,
				   .timeout_ns = timeout_ns(w),
				   .cpu = o->cpu,
				   .mask = o->mask};
	int rc;

	me_sample_db_remove(w->db);
	rc = me_sample_db_list_output(w->db, &w->ids[b], &w->out->builds[b].elf->id, err);
	if (!rc)
		rc = put(w, w->versions[b], err);
	if (!rc)
		rc = me_run(&spec, run, err);
	w->out->nr_runs++;
	if (!rc && run->wall_ns > w->longest_ns)
		w->longest_ns = run->wall_ns;
	return rc;
}

/* Return: 0; 1: the new one differs; -errno. */
static int checked_run(struct work *w, int b, struct mp_err *err)
{
	char what[sizeof(w->out->difference)];
	struct me_run run, again;
	int rc = run_once(w, b, &run, err);

	if (rc)
		return rc;
	if (!w->has_reference) {
		if (me_run_failed(&run, what, sizeof(what)))
			return mp_err_set(err, EINVAL, "%s: %s", w->opts->a, what);
		w->reference = run;
		w->has_reference = true;
	}
	if (!me_run_differs(&w->reference, &run, true, what, sizeof(what)))
		return read_samples(w, b, err);
	if (b == ME_NEW) {
		memcpy(w->out->difference, what, sizeof(what));
		rc = run_once(w, ME_OLD, &again, err);
		if (rc)
			return rc;
		if (!me_run_differs(&w->reference, &again, true, what, sizeof(what)))
			return 1;
		w->out->difference[0] = '\0';
	}
	return mp_err_set(err, EINVAL, "%s: its runs give different results (%.120s)%s", w->opts->a,
			  what, w->opts->filter ? "" : "; --filter can remove what varies");
}

/* ---- the pairs ------------------------------------------------------------------------------ */

/* A fair coin. The tests are valid only if it decides each pair's order. */
static int coin(void)
{
	unsigned char byte = 0;

	while (getrandom(&byte, 1, 0) != 1)
		;
	return byte & 1;
}

static int run_pair(struct work *w, struct mp_err *err)
{
	int first = w->has_reference ? coin() : ME_OLD, rc = 0;

	for (int i = 0; i < ME_NR_BUILDS && !rc; i++)
		rc = checked_run(w, first ^ i, err);
	return rc;
}

static double seconds(const struct work *w)
{
	return (double)(mp_now_ns() - w->start_ns) / (double)ME_NS_PER_SEC;
}

static bool is_over(const struct work *w)
{
	const struct me_audit_opts *o = w->opts;
	struct me_region_tests *tests = &w->out->tests;

	if (tests->nr_pairs >= o->max_pairs)
		return true;
	if (tests->nr_pairs < o->min_pairs)
		return tests->nr_pairs >= o->pairs_despite_timeout && seconds(w) >= o->max_seconds;
	return seconds(w) >= o->max_seconds || me_region_tests_are_over(tests);
}

static int run_pairs(struct work *w, struct mp_err *err)
{
	struct me_region_tests *tests = &w->out->tests;
	size_t warmup = w->opts->warmup ? w->opts->warmup : 1; /* it chooses what is tested */
	int rc = 0;

	for (size_t i = 0; i < warmup && !rc; i++)
		rc = run_pair(w, err);
	if (rc)
		return rc;
	me_region_tests_choose(tests, w->samples[ME_OLD], w->samples[ME_NEW]);
	if (tests->nr_tested < 2)
		return mp_err_set(
			err, ENODATA,
			"%s: too few samples in any function: give the command more to do",
			w->opts->a);
	do {
		rc = run_pair(w, err);
		if (!rc && me_region_tests_add(tests, w->samples[ME_OLD], w->samples[ME_NEW]))
			rc = mp_err_set(err, ENOMEM, "out of memory");
		if (!rc && w->opts->progress)
			w->opts->progress(&tests->list[tests->nr].seq, w->opts->progress_arg);
	} while (!rc && !is_over(w));
	return rc;
}

static void clean(struct work *w)
{
	if (w->has_slot)
		me_slot_close(&w->slot);
	me_scratch_remove(w->dir);
	free(w->argv);
	free(w->samples[ME_OLD]);
	free(w->samples[ME_NEW]);
}

int me_compilations_run(const struct me_audit_opts *opts, struct me_compilations *out,
			struct mp_err *err)
{
	struct work w = {.opts = opts, .out = out, .start_ns = mp_now_ns()};
	int rc;

	*out = (struct me_compilations){0};
	rc = prepare(&w, err);
	if (!rc)
		rc = run_pairs(&w, err);
	clean(&w);
	if (rc == 1) {
		out->differs = true;
		rc = 0;
	}
	out->nr_pairs = out->tests.nr_pairs;
	out->seconds = seconds(&w);
	if (out->tests.nr_pairs)
		me_region_tests_end(&out->tests);
	return rc;
}

void me_compilations_fini(struct me_compilations *result)
{
	me_region_tests_fini(&result->tests);
	me_regions_fini(&result->regions);
	for (int b = 0; b < ME_NR_BUILDS; b++)
		me_build_close(&result->builds[b]);
}
