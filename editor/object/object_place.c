// SPDX-License-Identifier: Apache-2.0
/*
 * object_place - what stands where in the new sections. Branches begin with their short form and
 * get the long one until all reach their targets; between sections they are long. Sizes of
 * branches only grow, so this ends.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/object/object_private.h"
#include "libprof/base/grow.h"

static int add_item(struct me_object *o, const struct me_item *item, struct mp_err *err)
{
	if (mp_grow(o->items, o->cap_items, o->nr_items + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	o->items[o->nr_items++] = *item;
	return 0;
}

static bool has_forms(const struct me_oinsn *insn)
{
	return insn->to != ME_NONE && insn->reloc == ME_NONE && !(insn->flags & ME_OINSN_FIXED) &&
	       (insn->kind == MP_INSN_JUMP || insn->kind == MP_INSN_COND);
}

/* One instruction as it is; branches that have two forms keep the long one in functions that are
 * whole. */
static struct me_item copy_of(const struct me_object *o, uint32_t i)
{
	const struct me_oinsn *insn = &o->insns[i];
	const struct me_ofunc *func = &o->funcs[insn->func];
	struct me_item item = {
		.insn = i, .to = insn->to, .row = i, .size = insn->len, .cc = insn->cc};

	if (has_forms(insn) && !func->rigid) {
		item.kind = insn->kind == MP_INSN_JUMP ? ME_ITEM_JUMP : ME_ITEM_COND;
		item.far = (!func->hot || func->whole) && insn->field_size == 4;
	}
	return item;
}

/* The last instruction of a piece, and the jump that it may need. @next: what follows. */
static int add_end(struct me_object *o, const struct me_ofunc *func, uint32_t i, uint32_t next,
		   struct mp_err *err)
{
	const struct me_oinsn *insn = &o->insns[i];
	uint32_t fall = i + 1 < func->first_insn + func->nr_insns ? i + 1 : ME_NONE;
	struct me_item item = copy_of(o, i);
	int rc;

	if (item.kind == ME_ITEM_JUMP && item.to == next) {
		item.kind = ME_ITEM_DROPPED;
		item.size = 0;
	} else if (item.kind == ME_ITEM_COND && fall != ME_NONE && item.to == next &&
		   fall != next) {
		item.cc ^= 1;
		item.to = fall;
		fall = next;
	}
	if (insn->kind == MP_INSN_JUMP || insn->kind == MP_INSN_IJUMP ||
	    insn->kind == MP_INSN_RET || insn->kind == MP_INSN_TRAP)
		fall = ME_NONE;
	rc = add_item(o, &item, err);
	if (!rc && fall != ME_NONE && fall != next)
		rc = add_item(
			o,
			&(struct me_item){
				.insn = ME_NONE, .to = fall, .row = fall, .kind = ME_ITEM_JUMP},
			err);
	return rc;
}

static int add_piece_items(struct me_object *o, const struct me_fragment *fragment, uint32_t p,
			   struct mp_err *err)
{
	const struct me_piece *piece = &o->pieces[p];
	const struct me_ofunc *func = &o->funcs[fragment->func];
	uint32_t last = piece->first + piece->nr - 1;
	uint32_t next = p + 1 < fragment->first_piece + fragment->nr_pieces ? o->pieces[p + 1].first
									    : ME_NONE;
	int rc = 0;

	if (piece->align_log2 && p > fragment->first_piece)
		rc = add_item(o,
			      &(struct me_item){.insn = ME_NONE,
						.to = ME_NONE,
						.row = piece->first,
						.kind = ME_ITEM_PADDING,
						.align_log2 = piece->align_log2,
						.align_offset = piece->align_offset},
			      err);
	for (uint32_t i = piece->first; !rc && i <= last; i++) {
		const struct me_item item = copy_of(o, i);

		if (!piece->clone)
			o->insns[i].item = o->nr_items;
		rc = i < last ? add_item(o, &item, err) : add_end(o, func, i, next, err);
	}
	return rc;
}

/* Gives all items their places. */
static void place_items(struct me_object *o)
{
	for (uint32_t i = 0; i < o->nr_outs; i++)
		o->outs[i].size = 0;
	for (uint32_t f = 0; f < o->nr_fragments; f++) {
		struct me_fragment *fragment = &o->fragments[f];
		struct me_out *out = &o->outs[fragment->out];
		uint32_t at = (out->size + fragment->align - 1) / fragment->align * fragment->align;

		fragment->start = at;
		for (uint32_t i = fragment->first_item;
		     i < fragment->first_item + fragment->nr_items; i++) {
			struct me_item *item = &o->items[i];

			item->out = fragment->out;
			item->off = at;
			if (item->kind == ME_ITEM_JUMP)
				item->size = item->far ? 5 : 2;
			else if (item->kind == ME_ITEM_COND)
				item->size = item->far ? 6 : 2;
			else if (item->kind == ME_ITEM_PADDING)
				item->size = (uint8_t)((item->align_offset - at) &
						       ((1u << item->align_log2) - 1));
			at += item->size;
		}
		fragment->end = out->size = at;
	}
}

/* Return: true if a branch became longer. */
static bool lengthen(struct me_object *o, const struct me_fragment *fragment)
{
	bool changed = false;

	for (uint32_t i = fragment->first_item; i < fragment->first_item + fragment->nr_items;
	     i++) {
		struct me_item *item = &o->items[i];
		uint32_t out, off;
		int64_t distance;

		if ((item->kind != ME_ITEM_JUMP && item->kind != ME_ITEM_COND) || item->far)
			continue;
		/* A target that was left out is refused by emit. */
		if (!me_object_place_of(o, item->to, &out, &off))
			continue;
		distance = (int64_t)off - (item->off + item->size);
		if (out == fragment->out && distance >= INT8_MIN && distance <= INT8_MAX)
			continue;
		item->far = changed = true;
	}
	return changed;
}

bool me_object_place_of(const struct me_object *o, uint32_t insn, uint32_t *out, uint32_t *off)
{
	const struct me_oinsn *i = &o->insns[insn];

	if (o->codes[i->code].closed) {
		*out = o->codes[i->code].out;
		*off = i->off;
		return true;
	}
	if (i->item == ME_NONE)
		return false;
	*out = o->items[i->item].out;
	*off = o->items[i->item].off;
	return true;
}

int me_object_place(struct me_object *o, struct mp_err *err)
{
	bool changed = true;
	int rc = 0;

	for (uint32_t f = 0; !rc && f < o->nr_fragments; f++) {
		struct me_fragment *fragment = &o->fragments[f];

		fragment->first_item = o->nr_items;
		for (uint32_t p = fragment->first_piece;
		     !rc && p < fragment->first_piece + fragment->nr_pieces; p++)
			rc = add_piece_items(o, fragment, p, err);
		fragment->nr_items = o->nr_items - fragment->first_item;
	}
	while (!rc && changed) {
		changed = false;
		place_items(o);
		for (uint32_t f = 0; f < o->nr_fragments; f++)
			changed |= lengthen(o, &o->fragments[f]);
	}
	return rc;
}
