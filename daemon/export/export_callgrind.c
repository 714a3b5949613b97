// SPDX-License-Identifier: Apache-2.0
/*
 * export_callgrind - callgrind's format for callgrind_annotate and KCachegrind: samples per
 * instruction with source lines, and calls with their counts.
 *
 * Samples do not say which caller caused them. As gprof does (Graham, Kessler, McKusick, 1982),
 * the inclusive cost of a function is divided among its callers by the number of calls.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/export/export.h"
#include "daemon/export/export_callcost.h"
#include "daemon/export/export_calls.h"
#include "daemon/export/export_source.h"
#include "libprof/base/search.h"

struct callgrind {
	uint64_t total;
};

/* State of the output: the format writes only what differs from the line before. */
struct writer {
	struct md_export *e;
	const struct md_export_module *m;
	struct md_export_source source;
	struct md_callcost cost;
	const char *file; /* file of the current cost lines; "???": not known */
};

static struct md_line line_at(struct writer *w, uint64_t vaddr)
{
	struct md_line line;

	if (md_export_source_line(&w->source, vaddr, &line))
		return line;
	return (struct md_line){.file = "???"};
}

static void put_function(struct writer *w, uint32_t f)
{
	char buf[32];
	struct md_line line;

	w->file = NULL;
	if (f == MP_NONE) {
		w->file = "???";
		md_export_put_callgrind(w->e->out, "fl", w->file);
		md_export_put_callgrind(w->e->out, "fn", "???");
		return;
	}
	line = line_at(w, w->m->code->cfg->funcs[f].vaddr);
	w->file = line.file;
	md_export_put_callgrind(w->e->out, "fl", line.file);
	md_export_put_callgrind(w->e->out, "fn", md_export_source_name(&w->source, f, buf));
}

/* Writes "0xADDRESS LINE". If the file changes (inlined code), writes the new file first. */
static void put_position(struct writer *w, uint64_t vaddr, const char *function_file)
{
	struct md_line line = line_at(w, vaddr);

	if (!line.line && w->file)
		line.file = w->file;
	if (!w->file || strcmp(line.file, w->file)) {
		md_export_put_callgrind(w->e->out, strcmp(line.file, function_file) ? "fi" : "fe",
					line.file);
		w->file = line.file;
	}
	fprintf(w->e->out, "0x%" PRIx64 " %d", vaddr, line.line);
}

static void put_call(struct writer *w, const struct md_export_call *call, const char *function_file)
{
	const struct mp_func *callee = &w->m->code->cfg->funcs[call->callee];
	uint64_t count = md_export_scaled(call->count);
	struct md_line target = line_at(w, callee->vaddr), line;
	char buf[32];

	md_export_put_callgrind(w->e->out, "cfi", target.file);
	md_export_put_callgrind(w->e->out, "cfn",
				md_export_source_name(&w->source, call->callee, buf));
	/* The line after "calls=" refers to the current file, so change that file first. */
	line = line_at(w, call->at);
	if (line.line && strcmp(line.file, w->file)) {
		md_export_put_callgrind(w->e->out, strcmp(line.file, function_file) ? "fi" : "fe",
					line.file);
		w->file = line.file;
	}
	fprintf(w->e->out, "calls=%" PRIu64 " 0x%" PRIx64 " %d\n", count, callee->vaddr,
		target.line);
	fprintf(w->e->out, "0x%" PRIx64 " %d %" PRIu64 "\n", call->at, line.line,
		md_callcost_of(&w->cost, call));
}

/* Writes the calls of function @f. */
static void put_calls(struct writer *w, uint32_t f, const char *function_file)
{
	size_t low = mp_search(i, 0, w->cost.nr_calls, w->cost.calls[i].caller < f);

	for (; low < w->cost.nr_calls && w->cost.calls[low].caller == f; low++)
		put_call(w, &w->cost.calls[low], function_file);
}

/* Orders counts by function, so that samples of a cold part join those of its function. */
struct at {
	uint32_t func;
	size_t count;
};

static int compare_at(const void *a, const void *b)
{
	const struct at *x = a, *y = b;

	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return (x->count > y->count) - (x->count < y->count);
}

static int put_costs(struct writer *w)
{
	const struct md_export_module *m = w->m;
	struct at *at = malloc((m->nr_counts + 1) * sizeof(*at));
	const char *function_file = "???";
	struct callgrind *state = w->e->state;

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_counts; i++)
		at[i] = (struct at){
			m->code ? mp_cfg_func_at(m->code->cfg, m->counts[i].vaddr) : MP_NONE, i};
	qsort(at, m->nr_counts, sizeof(*at), compare_at);
	for (size_t i = 0; i < m->nr_counts; i++) {
		const struct mp_ip_count *count = &m->counts[at[i].count];

		if (!i || at[i].func != at[i - 1].func) {
			if (i && at[i - 1].func != MP_NONE)
				put_calls(w, at[i - 1].func, function_file);
			put_function(w, at[i].func);
			function_file = w->file;
		}
		put_position(w, count->vaddr, function_file);
		fprintf(w->e->out, " %" PRIu64 "\n", count->count);
		state->total += count->count;
		w->e->nr_written += count->count;
	}
	if (m->nr_counts && at[m->nr_counts - 1].func != MP_NONE)
		put_calls(w, at[m->nr_counts - 1].func, function_file);
	free(at);
	return 0;
}

/* ---- the format ---------------------------------------------------------------------------- */

static int callgrind_begin(struct md_export *e, struct mp_err *err)
{
	e->state = calloc(1, sizeof(struct callgrind));
	if (!e->state)
		return mp_err_set(err, ENOMEM, "out of memory");
	fputs("# callgrind format\nversion: 1\ncreator: morph-stats\n"
	      "positions: instr line\nevent: Samples : Samples of the processor's place\n"
	      "events: Samples\n",
	      e->out);
	return 0;
}

static int callgrind_module(struct md_export *e, const struct md_export_module *m,
			    struct mp_err *err)
{
	struct writer w = {.e = e, .m = m};
	int r = md_export_source_init(&w.source, m);

	if (m->code && !r) {
		uint64_t *samples = md_export_func_samples(m);

		r = samples ? md_callcost_init(&w.cost, m, samples) : -ENOMEM;
		free(samples);
	}
	if (!r) {
		putc('\n', e->out);
		md_export_put_callgrind(e->out, "ob", m->module->path);
		r = put_costs(&w);
	}
	md_callcost_fini(&w.cost);
	md_export_source_fini(&w.source);
	return r ? mp_err_code(err, -r) : 0;
}

static int callgrind_end(struct md_export *e, struct mp_err *err)
{
	const struct callgrind *state = e->state;

	(void)err;
	fprintf(e->out, "\ntotals: %" PRIu64 "\n", state->total);
	return 0;
}

static void callgrind_drop(struct md_export *e)
{
	free(e->state);
	e->state = NULL;
}

const struct md_export_format md_export_callgrind = {
	.name = "callgrind",
	.needs = MD_EXPORT_CODE | MD_EXPORT_COUNTS | MD_EXPORT_EDGES,
	.begin = callgrind_begin,
	.module = callgrind_module,
	.end = callgrind_end,
	.drop = callgrind_drop,
	.calls = md_export_calls_callgrind,
	.wants_graph = true,
};
