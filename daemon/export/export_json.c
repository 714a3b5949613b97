// SPDX-License-Identifier: Apache-2.0
/*
 * export_json - writes all that is known of the modules as one JSON object: samples by address,
 * edge counts, functions with blocks, inferred counts and edges. Documentation/json.md lists the
 * fields.
 *
 * Writes directly instead of building the object in memory: a large program has millions of
 * edges.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/export/export.h"
#include "libprof/cli/json.h"

struct json {
	uint64_t nr_modules;
};

static const char *const term_names[] = {
	[MP_TERM_FALL] = "fall",
	[MP_TERM_COND] = "cond",
	[MP_TERM_JUMP] = "jump",
	[MP_TERM_TAIL] = "tail",
	[MP_TERM_TABLE] = "table",
	[MP_TERM_INDIRECT_TAIL] = "indirect-tail",
	[MP_TERM_UNRESOLVED] = "unresolved",
	[MP_TERM_RET] = "ret",
	[MP_TERM_TRAP] = "trap",
	[MP_TERM_NORETURN] = "noreturn",
};

static const char *const edge_names[] = {
	[MP_EDGE_FALL] = "fall",
	[MP_EDGE_TAKEN] = "taken",
	[MP_EDGE_JUMP] = "jump",
	[MP_EDGE_TABLE] = "table",
};

/* Paths and names may hold any bytes, but JSON only UTF-8. Return: 0, -ENOMEM. */
static int put_string(FILE *out, const char *text)
{
	json_t *string = mp_json_string(text);
	int r = string ? json_dumpf(string, out, JSON_ENCODE_ANY) : -1;

	json_decref(string);
	return r && !ferror(out) ? -ENOMEM : 0;
}

static int put_head(struct md_export *e, const struct md_export_module *m)
{
	static const char *const kinds[] = {
		[MP_MODULE_FILE] = "file",
		[MP_MODULE_KERNEL] = "kernel",
		[MP_MODULE_VDSO] = "vdso",
	};
	const struct mp_module *module = m->module;
	char hex[2 * MP_BUILD_ID_MAX + 1];
	int r;

	mp_id_format_build_id(&module->id, hex);
	fputs("{\"path\": ", e->out);
	r = put_string(e->out, module->path);
	fprintf(e->out,
		", \"kind\": \"%s\",\n  \"build_id\": \"%s\", \"text_hash\": \"%016" PRIx64
		"\", \"text_size\": %" PRIu64 ",\n  \"samples\": %" PRIu64
		", \"transfers\": %" PRIu64 ", \"first_s\": %" PRId64 ", \"last_s\": %" PRId64
		",\n  \"code\": %s, \"why\": ",
		kinds[module->kind], hex, module->id.text_hash, module->text_size,
		module->nr_samples, module->nr_transfers, module->first_s, module->last_s,
		m->code ? "true" : "false");
	if (m->code)
		fputs("null", e->out);
	else
		r = r ? r : put_string(e->out, m->why ? m->why : "");
	return r;
}

static void put_seen(struct md_export *e, const struct md_export_module *m)
{
	fputs(",\n  \"addresses\": [", e->out);
	for (size_t i = 0; i < m->nr_counts; i++)
		fprintf(e->out, "%s[\"0x%" PRIx64 "\", %" PRIu64 "]", i ? ",\n    " : "\n    ",
			m->counts[i].vaddr, m->counts[i].count);
	fputs("],\n  \"edges\": [", e->out);
	for (size_t i = 0; i < m->nr_edges; i++)
		fprintf(e->out,
			"%s[\"0x%" PRIx64 "\", \"0x%" PRIx64 "\", %" PRIu64 ", %" PRIu64 "]",
			i ? ",\n    " : "\n    ", m->edges[i].from, m->edges[i].to,
			m->edges[i].count, m->edges[i].mispredicted);
	putc(']', e->out);
}

static void put_block(struct md_export *e, const struct md_export_module *m, uint32_t b)
{
	const struct mp_cfg *cfg = m->code->cfg;
	const struct mp_block *block = &cfg->blocks[b];

	fprintf(e->out,
		"{\"address\": \"0x%" PRIx64 "\", \"size\": %u, \"instructions\": %u, "
		"\"samples\": %" PRIu64 ", \"count\": %.6g, \"ends\": \"%s\", \"to\": [",
		block->vaddr, block->size, block->nr_insns, m->profile->block_samples[b],
		m->inferred->block[b], term_names[block->term]);
	for (uint32_t i = 0; i < block->nr_edges; i++) {
		const struct mp_edge *edge = &cfg->edges[block->first_edge + i];

		fprintf(e->out, "%s[\"0x%" PRIx64 "\", \"%s\", %.6g]", i ? ", " : "",
			cfg->blocks[edge->to].vaddr, edge_names[edge->kind],
			m->inferred->edge[block->first_edge + i]);
	}
	fputs("]}", e->out);
}

/* All calls; @next advances from function to function. */
struct calls {
	struct md_export_call *calls;
	size_t nr, next;
};

static int put_function(struct md_export *e, const struct md_export_module *m, uint32_t f,
			uint64_t samples, bool first, struct calls *calls)
{
	const struct mp_cfg *cfg = m->code->cfg;
	const struct mp_func *func = &cfg->funcs[f];
	bool any = false;
	int r;

	fprintf(e->out, "%s{\"name\": ", first ? "\n    " : ",\n    ");
	r = put_string(e->out, func->name);
	fprintf(e->out,
		", \"address\": \"0x%" PRIx64 "\", \"size\": %" PRIu64 ", \"samples\": %" PRIu64
		",\n     \"problem\": ",
		func->vaddr, func->size, samples);
	if (func->problem == MP_PROBLEM_NONE)
		fputs("null", e->out);
	else
		r = r ? r : put_string(e->out, mp_problem_name(func->problem));
	fputs(", \"ranges\": [", e->out);
	for (uint32_t i = func->first_range; i < func->first_range + func->nr_ranges; i++)
		fprintf(e->out, "%s[\"0x%" PRIx64 "\", %" PRIu64 "]",
			i > func->first_range ? ", " : "", cfg->ranges[i].start,
			cfg->ranges[i].size);
	fputs("],\n     \"blocks\": [", e->out);
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		if (b > func->first_block)
			fputs(",\n       ", e->out);
		put_block(e, m, b);
	}
	fputs("],\n     \"calls\": [", e->out);
	for (; calls->next < calls->nr && calls->calls[calls->next].caller <= f; calls->next++) {
		const struct md_export_call *c = &calls->calls[calls->next];

		if (c->caller < f)
			continue;
		fprintf(e->out, "%s[\"0x%" PRIx64 "\", \"0x%" PRIx64 "\", %.6g]", any ? ", " : "",
			c->at, cfg->funcs[c->callee].vaddr, c->count);
		any = true;
	}
	fputs("]}", e->out);
	return r;
}

static int put_functions(struct md_export *e, const struct md_export_module *m)
{
	const struct mp_cfg *cfg = m->code->cfg;
	uint64_t *samples = md_export_func_samples(m);
	struct calls calls = {0};
	bool first = true;
	int r = 0;

	if (!samples || md_export_calls(m, &calls.calls, &calls.nr)) {
		free(samples);
		return -ENOMEM;
	}
	fputs(",\n  \"functions\": [", e->out);
	for (uint32_t f = 0; f < cfg->nr_funcs && !r; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		bool runs = samples[f] > 0;

		for (uint32_t b = func->first_block;
		     b < func->first_block + func->nr_blocks && !runs; b++)
			runs = m->inferred->block[b] > 0;
		if (!runs)
			continue;
		r = put_function(e, m, f, samples[f], first, &calls);
		first = false;
	}
	fprintf(e->out, "],\n  \"samples_outside\": %" PRIu64, samples[cfg->nr_funcs]);
	free(samples);
	free(calls.calls);
	return r;
}

static int json_begin(struct md_export *e, struct mp_err *err)
{
	e->state = calloc(1, sizeof(struct json));
	if (!e->state)
		return mp_err_set(err, ENOMEM, "out of memory");
	fprintf(e->out,
		"{\"schema\": %d, \"command\": \"export\", \"since_s\": %" PRId64
		", \"sample_ns\": %" PRIu64 ", \"modules\": [",
		MD_EXPORT_JSON_SCHEMA, e->since_s, e->period_ns);
	return 0;
}

static int json_module(struct md_export *e, const struct md_export_module *m, struct mp_err *err)
{
	struct json *state = e->state;
	int r;

	fputs(state->nr_modules++ ? ",\n " : "\n ", e->out);
	r = put_head(e, m);
	put_seen(e, m);
	if (m->code && !r)
		r = put_functions(e, m);
	else
		fputs(",\n  \"functions\": []", e->out);
	putc('}', e->out);
	e->nr_written += m->module->nr_samples;
	return r ? mp_err_code(err, -r) : 0;
}

static int json_end(struct md_export *e, struct mp_err *err)
{
	(void)err;
	fputs("\n]}\n", e->out);
	return 0;
}

static void json_drop(struct md_export *e)
{
	free(e->state);
	e->state = NULL;
}

const struct md_export_format md_export_json = {
	.name = "json",
	.needs = MD_EXPORT_CODE | MD_EXPORT_COUNTS | MD_EXPORT_EDGES,
	.begin = json_begin,
	.module = json_module,
	.end = json_end,
	.drop = json_drop,
};
