// SPDX-License-Identifier: Apache-2.0
/* totals - what became of the samples, as text or JSON; see totals.h. */
#include "daemon/morphd/totals.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "libprof/cli/json.h"

/* Schema of the JSON of --json; it grows if a field changes its meaning. */
#define JSON_SCHEMA 1

struct cost {
	double total_s, analysis_s, flush_s;
	uint64_t nr_here; /* samples that reached this process */
	struct rusage usage;
};

static void cost_fill(const struct md_pipeline *pl, struct cost *c)
{
	c->total_s = pl->time_ns / 1e9;
	c->analysis_s = md_modcache_analysis_ns(pl->at.modcache) / 1e9;
	c->flush_s = pl->flush.time_ns / 1e9;
	c->nr_here = pl->total.emitted - md_ledger_lost(&pl->total);
	getrusage(RUSAGE_SELF, &c->usage);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_ledger(const struct mp_ledger *ledger)
{
	int i;

	for (i = 0; i < MP_NR_UNATTR; i++)
		printf("  %-18s %12" PRIu64 "\n", mp_unattributed_name(i), ledger->unattributed[i]);
	for (i = 0; i < MP_NR_LOST; i++)
		printf("  %-18s %12" PRIu64 "\n", mp_lost_name(i), ledger->lost[i]);
}

static void print_branches(const struct md_branch_ledger *b)
{
	printf("branches seen        %12" PRIu64 "\n", b->seen);
	printf("  counted            %12" PRIu64 "\n", b->counted);
	printf("  in the kernel      %12" PRIu64 "\n", b->kernel);
	printf("  between modules    %12" PRIu64 "\n", b->cross_module);
	printf("  in no module       %12" PRIu64 "\n", b->unmapped);
	printf("  no memory          %12" PRIu64 "\n", b->table_full);
	printf("not in the original  %12" PRIu64 "\n", b->untranslated);
}

static uint64_t nr_with_registers(const struct mp_ledger *ledger)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < MP_NR_PATH_FATES; i++)
		sum += ledger->paths[i];
	return sum;
}

static void print_paths(const struct mp_ledger *ledger)
{
	int i;

	printf("with path numbers    %12" PRIu64 "\n", nr_with_registers(ledger));
	for (i = 0; i < MP_NR_PATH_FATES; i++)
		printf("  %-18s %12" PRIu64 "\n", mp_path_fate_name(i), ledger->paths[i]);
}

static void print_ways(const struct md_ways_ledger *w)
{
	printf("for ways of branches %12" PRIu64 "\n", w->samples);
	printf("  left out           %12" PRIu64 "\n", w->dropped);
	printf("ways of branches     %12" PRIu64 "\n", w->ways);
	printf("  failed             %12" PRIu64 "\n", w->failed);
}

static uint64_t nr_stacks(const struct mp_ledger *ledger)
{
	uint64_t sum = 0;

	for (int i = 0; i < MP_NR_WALK_STOP; i++)
		sum += ledger->stacks[i];
	return sum;
}

static void print_stacks(const struct md_pipeline *pl)
{
	printf("with a stack         %12" PRIu64 "\n", nr_stacks(&pl->total));
	for (int i = 0; i < MP_NR_WALK_STOP; i++)
		printf("  %-18s %12" PRIu64 "\n", mp_walk_stop_name(i), pl->total.stacks[i]);
	printf("callers              %12" PRIu64 "\n", pl->at.nr_frames);
}

static void print_text(const struct md_pipeline *pl, const struct cost *c)
{
	const struct mp_ledger *t = &pl->total;
	const struct md_branch_ledger *b = &pl->at.branches;

	printf("samples emitted      %12" PRIu64 "\n", t->emitted);
	printf("  attributed         %12" PRIu64 "\n", t->attributed);
	print_ledger(t);
	if (b->seen)
		print_branches(b);
	if (nr_with_registers(t))
		print_paths(t);
	if (pl->at.ways)
		print_ways(&pl->at.ways->ledger);
	if (nr_stacks(t))
		print_stacks(pl);
	printf("modules sampled      %12zu\n", md_pipeline_nr_modules(pl));
	printf("processes sampled    %12" PRIu64 "\n", pl->at.nr_processes);
	printf("addresses at a flush %12" PRIu64 "\n", pl->max_addresses);
	printf("bytes per sample     %12.2f\n", c->nr_here ? (double)pl->nr_bytes / c->nr_here : 0);
	printf("samples per batch    %12.2f\n",
	       pl->nr_batches ? (double)c->nr_here / pl->nr_batches : 0);
	printf("seconds              %12.3f\n", c->total_s);
	printf("  analysing modules  %12.3f\n", c->analysis_s);
	printf("  writing counts     %12.3f in %" PRIu64 " transactions\n", c->flush_s,
	       pl->flush.nr);
	printf("samples per second   %12.0f\n", c->total_s > 0 ? c->nr_here / c->total_s : 0);
	printf("max resident KiB     %12ld\n", c->usage.ru_maxrss);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

/* Six digits, as microseconds. */
static void set_seconds(json_t *object, const char *key, double seconds)
{
	json_object_set_new(object, key, json_real(round(seconds * 1e6) / 1e6));
}

static json_t *reasons_json(const struct mp_ledger *t)
{
	json_t *reasons = json_object();

	for (int i = 0; i < MP_NR_UNATTR; i++)
		set(reasons, mp_unattributed_name(i), t->unattributed[i]);
	for (int i = 0; i < MP_NR_LOST; i++)
		set(reasons, mp_lost_name(i), t->lost[i]);
	set(reasons, "all", md_ledger_unattributed(t) + md_ledger_lost(t));
	return reasons;
}

static json_t *paths_json(const struct mp_ledger *t)
{
	json_t *paths = json_object();

	for (int i = 0; i < MP_NR_PATH_FATES; i++)
		set(paths, mp_path_fate_name(i), t->paths[i]);
	return paths;
}

static json_t *ways_json(const struct md_ways_ledger *w)
{
	json_t *ways = json_object();

	set(ways, "samples", w->samples);
	set(ways, "left_out", w->dropped);
	set(ways, "ways", w->ways);
	set(ways, "failed", w->failed);
	return ways;
}

static json_t *stacks_json(const struct mp_ledger *t)
{
	json_t *stacks = json_object();

	for (int i = 0; i < MP_NR_WALK_STOP; i++)
		set(stacks, mp_walk_stop_name(i), t->stacks[i]);
	return stacks;
}

static void set_cost(json_t *root, const struct md_pipeline *pl, const struct cost *c)
{
	set_seconds(root, "seconds", c->total_s);
	set_seconds(root, "analysis_seconds", c->analysis_s);
	set_seconds(root, "flush_seconds", c->flush_s);
	set(root, "flushes", pl->flush.nr);
	set_seconds(root, "cpu_seconds",
		    c->usage.ru_utime.tv_sec + c->usage.ru_stime.tv_sec +
			    (c->usage.ru_utime.tv_usec + c->usage.ru_stime.tv_usec) / 1e6);
	set(root, "max_rss_kib", (uint64_t)c->usage.ru_maxrss);
}

static int print_json(const struct md_pipeline *pl, const struct cost *c, const char *command)
{
	static const struct md_ways_ledger none = {0};
	const struct mp_ledger *t = &pl->total;
	json_t *root = mp_json_new(JSON_SCHEMA, command);
	int ret;

	set(root, "emitted", t->emitted);
	set(root, "attributed", t->attributed);
	set(root, "unattributed", md_ledger_unattributed(t));
	set(root, "lost", md_ledger_lost(t));
	json_object_set_new(root, "reasons", reasons_json(t));
	set(root, "modules", md_pipeline_nr_modules(pl));
	set(root, "processes", pl->at.nr_processes);
	set(root, "addresses", pl->max_addresses);
	set(root, "records", pl->nr_records);
	set(root, "batches", pl->nr_batches);
	set(root, "bytes", pl->nr_bytes);
	set(root, "recorded_bytes", pl->writer ? md_recwriter_size_bytes(pl->writer) : 0);
	set(root, "branches", pl->at.branches.seen);
	set(root, "branches_counted", pl->at.branches.counted);
	json_object_set_new(root, "paths", paths_json(t));
	json_object_set_new(root, "ways", ways_json(pl->at.ways ? &pl->at.ways->ledger : &none));
	json_object_set_new(root, "stacks", stacks_json(t));
	set(root, "stack_frames", pl->at.nr_frames);
	set_cost(root, pl, c);
	ret = mp_json_is_whole(root) ? json_dumpf(root, stdout, JSON_REAL_PRECISION(15)) : -1;
	json_decref(root);
	return ret || putchar('\n') == EOF ? -1 : 0;
}

int md_totals_print(const struct md_pipeline *pl, bool json, const char *command,
		    struct mp_err *err)
{
	struct cost cost;

	cost_fill(pl, &cost);
	if (!json) {
		print_text(pl, &cost);
		return 0;
	}
	errno = 0;
	if (print_json(pl, &cost, command))
		return mp_err_set(err, errno ? errno : EIO, "standard output: %s",
				  strerror(errno ? errno : EIO));
	return 0;
}
