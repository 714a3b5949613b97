// SPDX-License-Identifier: Apache-2.0
/*
 * object_calls - .llvm.call-graph-profile: how often functions of the object call functions, by
 * which lld orders sections. A weight of 8 bytes for each pair, and two relocations of type
 * R_X86_64_NONE that name the caller and the callee.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

struct arc {
	uint32_t from, to; /* symbols of the output */
	double weight;
};

struct arcs {
	struct arc *arcs;
	uint32_t nr, cap;
	uint32_t *symbols; /* the object's symbols by name */
	uint32_t nr_symbols;
};

static int compare_symbols(const void *a, const void *b, void *obj)
{
	return strcmp(mp_relobj_symbol_name(obj, *(const uint32_t *)a),
		      mp_relobj_symbol_name(obj, *(const uint32_t *)b));
}

static int sort_symbols(const struct mp_relobj *in, struct arcs *arcs)
{
	arcs->symbols = calloc((size_t)in->nr_symbols + 1, sizeof(*arcs->symbols));
	if (!arcs->symbols)
		return -ENOMEM;
	for (uint32_t i = 1; i < in->nr_symbols; i++) {
		unsigned char type = ELF64_ST_TYPE(in->symbols[i].st_info);

		if (type == STT_FUNC || (type == STT_NOTYPE && !in->symbols[i].st_shndx))
			arcs->symbols[arcs->nr_symbols++] = i;
	}
	qsort_r(arcs->symbols, arcs->nr_symbols, sizeof(*arcs->symbols), compare_symbols,
		(void *)in);
	return 0;
}

/* Return: the symbol, or 0. */
static uint32_t symbol_named(const struct mp_relobj *in, const struct arcs *arcs, const char *name)
{
	uint32_t i = mp_search(k, 0, arcs->nr_symbols,
			       strcmp(mp_relobj_symbol_name(in, arcs->symbols[k]), name) < 0);

	return i < arcs->nr_symbols && !strcmp(mp_relobj_symbol_name(in, arcs->symbols[i]), name)
		       ? arcs->symbols[i]
		       : 0;
}

static int compare_arcs(const void *a, const void *b)
{
	const struct arc *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

/* The calls of one function, whose blocks are contiguous. */
static int add_calls(const struct me_object *o, const struct me_object_plan *plan,
		     const struct me_ofunc *func, struct arcs *arcs)
{
	const struct mp_cfg *cfg = plan->cfg;
	const struct mp_func *caller = &cfg->funcs[func->program_func];
	uint32_t end = caller->first_block + caller->nr_blocks;

	for (uint32_t i = mp_cfg_call_from(cfg, 0, cfg->nr_calls, caller->first_block);
	     i < cfg->nr_calls && cfg->calls[i].block < end; i++) {
		const struct mp_call *call = &cfg->calls[i];
		double weight = plan->counts->block[call->block];
		uint32_t to = call->callee == MP_NONE || weight < 1
				      ? 0
				      : symbol_named(o->in, arcs, cfg->funcs[call->callee].name);

		if (!to || to == func->symbol)
			continue;
		if (mp_push(arcs->arcs, arcs->nr, arcs->cap,
			    (struct arc){me_object_symbol(o, func->symbol), me_object_symbol(o, to),
					 weight}))
			return -ENOMEM;
	}
	return 0;
}

static void put_arcs(struct me_object *o, struct arcs *arcs)
{
	if (arcs->nr)
		qsort(arcs->arcs, arcs->nr, sizeof(*arcs->arcs), compare_arcs);
	for (uint32_t i = 0; i < arcs->nr;) {
		const struct arc *arc = &arcs->arcs[i];
		double weight = 0;
		Elf64_Rela r = {.r_offset = o->calls.size};

		for (; i < arcs->nr && !compare_arcs(arc, &arcs->arcs[i]); i++)
			weight += arcs->arcs[i].weight;
		me_bytes_u64(&o->calls, (uint64_t)weight);
		r.r_info = ELF64_R_INFO((uint64_t)arc->from, R_X86_64_NONE);
		me_bytes_put(&o->call_relocs, &r, sizeof(r));
		r.r_info = ELF64_R_INFO((uint64_t)arc->to, R_X86_64_NONE);
		me_bytes_put(&o->call_relocs, &r, sizeof(r));
	}
}

int me_object_calls(struct me_object *o, const struct me_object_plan *plan, struct mp_err *err)
{
	struct arcs arcs = {0};
	int rc = 0;

	if (!plan->counts || !plan->counts->block)
		return 0;
	rc = sort_symbols(o->in, &arcs);
	for (uint32_t f = 0; !rc && f < o->nr_funcs; f++)
		if (o->funcs[f].matched)
			rc = add_calls(o, plan, &o->funcs[f], &arcs);
	if (!rc)
		put_arcs(o, &arcs);
	free(arcs.arcs);
	free(arcs.symbols);
	if (!rc && (o->calls.failed || o->call_relocs.failed))
		rc = -ENOMEM;
	return rc ? mp_err_code(err, -rc) : 0;
}
