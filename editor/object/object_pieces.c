// SPDX-License-Identifier: Apache-2.0
/*
 * object_pieces - fragments and the sections that they get: .text.hot.NAME and
 * .text.unlikely.NAME for hot functions; all others stay in their section in their order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "libprof/base/grow.h"

#define CODE_ALIGN 16

int me_object_add_piece(struct me_object *o, const struct me_piece *piece, struct mp_err *err)
{
	if (mp_grow(o->pieces, o->cap_pieces, o->nr_pieces + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	o->pieces[o->nr_pieces++] = *piece;
	return 0;
}

int me_object_add_fragment(struct me_object *o, uint32_t func, bool cold, uint32_t first_piece,
			   struct mp_err *err)
{
	if (mp_grow(o->fragments, o->cap_fragments, o->nr_fragments + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	o->fragments[o->nr_fragments++] = (struct me_fragment){
		.func = func,
		.cold = cold,
		.out = ME_NONE,
		.first_piece = first_piece,
		.nr_pieces = o->nr_pieces - first_piece,
		.align = cold ? 1 : CODE_ALIGN,
	};
	return 0;
}

static int add_out(struct me_object *o, uint32_t old, bool added, struct mp_err *err)
{
	if (mp_grow(o->outs, o->cap_outs, o->nr_outs + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	o->outs[o->nr_outs++] =
		(struct me_out){.section = old, .old = old, .added = added, .align = 1};
	return 0;
}

static int name_out(struct me_object *o, struct me_out *out, const struct me_fragment *fragment,
		    struct mp_err *err)
{
	const char *name = mp_relobj_symbol_name(o->in, o->funcs[fragment->func].symbol);

	if (asprintf(&out->name, ".text.%s.%s", fragment->cold ? "unlikely" : "hot", name) >= 0)
		return 0;
	out->name = NULL;
	return mp_err_set(err, ENOMEM, "out of memory");
}

/* A function that stays: as it was, at an address with the same alignment. */
static int add_rest(struct me_object *o, uint32_t f, struct mp_err *err)
{
	struct me_ofunc *func = &o->funcs[f];
	const struct me_piece piece = {.first = func->first_insn, .nr = func->nr_insns};
	uint64_t limit = o->in->sections[o->codes[func->code].section].header.sh_addralign;
	uint32_t align = func->start ? func->start & -func->start : 4096;
	int rc = me_object_add_piece(o, &piece, err);

	func->rigid |= func->lsda != NULL;
	func->first_fragment = o->nr_fragments;
	func->nr_fragments = 1;
	if (!rc)
		rc = me_object_add_fragment(o, f, false, o->nr_pieces - 1, err);
	if (rc)
		return rc;
	o->fragments[o->nr_fragments - 1].out = o->codes[func->code].out;
	o->fragments[o->nr_fragments - 1].align = align < limit ? align : (uint32_t)(limit ?: 1);
	return 0;
}

static int section_of_code(struct me_object *o, uint32_t c, struct mp_err *err)
{
	struct me_ocode *code = &o->codes[c];
	int rc;

	code->out = o->nr_outs;
	rc = add_out(o, code->section, false, err);
	if (rc)
		return rc;
	o->outs[code->out].closed = code->closed != NULL;
	o->outs[code->out].align = (uint32_t)o->in->sections[code->section].header.sh_addralign;
	for (uint32_t i = code->first_insn;
	     !code->closed && !rc && i < code->first_insn + code->nr_insns; i++) {
		uint32_t f = o->insns[i].func;

		if (f != ME_NONE && o->funcs[f].first_insn == i && !o->funcs[f].hot)
			rc = add_rest(o, f, err);
	}
	return rc;
}

/* The hot part of a function that is alone in its section stays in this section. */
static int section_of_fragment(struct me_object *o, struct me_fragment *fragment,
			       struct mp_err *err)
{
	const struct me_ofunc *func = &o->funcs[fragment->func];
	const struct me_ocode *code = &o->codes[func->code];
	uint32_t align = fragment->align;
	struct me_out *out;
	int rc = 0;

	fragment->out = code->out;
	if (fragment->cold || code->nr_funcs > 1) {
		fragment->out = o->nr_outs;
		rc = add_out(o, code->section, true, err);
	}
	if (rc)
		return rc;
	out = &o->outs[fragment->out];
	for (uint32_t p = fragment->first_piece; p < fragment->first_piece + fragment->nr_pieces;
	     p++)
		if (1u << o->pieces[p].align_log2 > align)
			align = 1u << o->pieces[p].align_log2;
	out->align = out->align > align ? out->align : align;
	return name_out(o, out, fragment, err);
}

int me_object_sections(struct me_object *o, struct mp_err *err)
{
	uint32_t nr_hot = o->nr_fragments, next = o->in->nr_sections;
	int rc = 0;

	for (uint32_t c = 0; !rc && c < o->nr_codes; c++)
		rc = section_of_code(o, c, err);
	for (uint32_t i = 0; !rc && i < nr_hot; i++)
		rc = section_of_fragment(o, &o->fragments[i], err);
	for (uint32_t i = 0; !rc && i < o->nr_outs; i++)
		if (o->outs[i].added)
			o->outs[i].section = next++;
	me_object_debug_needs(o, &o->lists[0].needed, &o->lists[1].needed);
	for (int i = 0; i < 2; i++)
		if (o->lists[i].needed)
			o->lists[i].section = next++;
	if (!rc && next >= SHN_LORESERVE - o->nr_outs - 16)
		rc = mp_err_set(err, EPERM, "it would have too many sections");
	return rc;
}
