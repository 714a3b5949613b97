// SPDX-License-Identifier: Apache-2.0
/*
 * export_order - writes an order of functions for a linker, so that frequent callers lie near
 * their callees. libprof's order computes it; this file decides how each linker is told.
 *
 * lld orders symbols; gold and GNU ld order the sections that -ffunction-sections makes. No
 * linker can tell functions of the same name apart: the name goes where the hottest of them
 * belongs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/export/export.h"
#include "daemon/export/export_symbols.h"

struct order {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	struct md_export_symbols symbols;
	struct mp_order_func *funcs;
	struct mp_order_arc *arcs;
	struct md_export_call *calls;
	size_t nr_calls;
	uint32_t *index, *func; /* from cfg->funcs to @funcs (MP_NONE: not there), and back */
	uint32_t *out;
	uint32_t nr_funcs, nr_arcs;
	bool *written; /* per name: already written */
};

static void order_fini(struct order *o)
{
	md_export_symbols_fini(&o->symbols);
	free(o->funcs);
	free(o->arcs);
	free(o->calls);
	free(o->index);
	free(o->func);
	free(o->out);
	free(o->written);
}

static int order_init(struct order *o, const struct md_export_module *m)
{
	size_t nr = (size_t)m->code->cfg->nr_funcs + 1;

	o->cfg = m->code->cfg;
	o->counts = m->inferred;
	o->funcs = calloc(nr, sizeof(*o->funcs));
	o->index = calloc(nr, sizeof(*o->index));
	o->func = calloc(nr, sizeof(*o->func));
	o->out = calloc(nr, sizeof(*o->out));
	if (md_export_calls(m, &o->calls, &o->nr_calls))
		return -ENOMEM;
	o->arcs = calloc(o->nr_calls + 1, sizeof(*o->arcs));
	if (!o->funcs || !o->index || !o->func || !o->out || !o->arcs)
		return -ENOMEM;
	if (md_export_symbols_init(&o->symbols, m->code->elf))
		return -ENOMEM;
	o->written = calloc((size_t)o->symbols.nr_names + 1, sizeof(*o->written));
	return o->written ? 0 : -ENOMEM;
}

/* A linker moves whole functions, except for cold parts that the compiler split off. */
static void order_collect(struct order *o)
{
	const struct mp_cfg *cfg = o->cfg;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		double weight = 0;

		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
			weight += o->counts->block[b] * cfg->blocks[b].nr_insns;
		o->index[f] = weight > 0 ? o->nr_funcs : MP_NONE;
		if (!(weight > 0))
			continue;
		o->func[o->nr_funcs] = f;
		o->funcs[o->nr_funcs++] = (struct mp_order_func){
			.size = cfg->ranges[func->first_range].size, .weight = weight};
	}
	for (size_t i = 0; i < o->nr_calls; i++) {
		const struct md_export_call *call = &o->calls[i];

		if (o->index[call->caller] == MP_NONE || o->index[call->callee] == MP_NONE)
			continue;
		o->arcs[o->nr_arcs++] = (struct mp_order_arc){
			.caller = o->index[call->caller],
			.callee = o->index[call->callee],
			.offset = call->at - cfg->funcs[call->caller].vaddr,
			.weight = call->count,
		};
	}
}

/*
 * Return: true if no linker's syntax gives the name's characters a meaning. Names of C, C++ and
 * Rust are plain.
 */
static bool is_plain(const char *name)
{
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		if (*p <= ' ' || *p >= 0x7f || strchr("*?[]{}()\\\"',;:#!<>=&|~", *p))
			return false;
	return name[0] != '\0';
}

static void put_name(struct md_export *e, const char *name, bool split)
{
	/*
	 * Section name prefixes that compilers use: normal, hot, startup and unlikely
	 * functions. The cold part of a split function is also in ".text.unlikely." and must
	 * stay there, so leave that prefix out.
	 */
	static const char *const prefixes[] = {".text.", ".text.hot.", ".text.startup.",
					       ".text.unlikely."};
	size_t nr = sizeof(prefixes) / sizeof(prefixes[0]) - split;

	if (e->linker == MD_LINKER_LLD) {
		fprintf(e->out, "%s\n", name);
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		if (e->linker == MD_LINKER_GOLD)
			fprintf(e->out, "%s%s\n", prefixes[i], name);
		else
			fprintf(e->out, "%s*(%s%s)", i ? " " : "\t\t", prefixes[i], name);
	}
	if (e->linker == MD_LINKER_LD)
		putc('\n', e->out);
}

/* Writes the names of a function. Each name is written once in the whole output. */
static void put_function(struct md_export *e, struct order *o, const struct mp_func *func)
{
	bool any = false, shared = false;
	size_t nr;
	const struct md_export_symbol *symbols;

	symbols = md_export_symbols_at(&o->symbols, func->vaddr, &nr);
	for (size_t i = 0; i < nr; i++) {
		/* For lld one symbol suffices: it moves the section with all its symbols. */
		if (!is_plain(symbols[i].symbol->name) || (any && e->linker == MD_LINKER_LLD))
			continue;
		any = true;
		shared |= symbols[i].nr_same > 0;
		if (!o->written[symbols[i].name])
			put_name(e, symbols[i].symbol->name, func->nr_ranges > 1);
		o->written[symbols[i].name] = true;
	}
	e->nr_unnamed += !any;
	e->nr_shared_names += shared;
}

static int order_module(struct md_export *e, const struct md_export_module *m, struct mp_err *err)
{
	struct order o = {0};
	int r = order_init(&o, m);

	if (!r) {
		order_collect(&o);
		r = mp_order_funcs(e->order, o.funcs, o.nr_funcs, o.arcs, o.nr_arcs, o.out);
	}
	if (!r) {
		if (e->linker == MD_LINKER_LD)
			fputs("SECTIONS\n{\n\t.text.morph : {\n", e->out);
		for (uint32_t i = 0; i < o.nr_funcs; i++)
			put_function(e, &o, &o.cfg->funcs[o.func[o.out[i]]]);
		if (e->linker == MD_LINKER_LD)
			fputs("\t}\n}\nINSERT BEFORE .text;\n", e->out);
	}
	order_fini(&o);
	if (!r)
		md_export_count_blocks(e, m);
	return r ? mp_err_code(err, -r) : 0;
}

const struct md_export_format md_export_order = {
	.name = "order",
	.needs = MD_EXPORT_CODE | MD_EXPORT_COUNTS | MD_EXPORT_EDGES | MD_EXPORT_ONE,
	.module = order_module,
};
