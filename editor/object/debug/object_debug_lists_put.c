// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_lists_put - writes lists of ranges and locations. Each list gives its own bases,
 * so none counts from the code of a unit, which has no single start any more. Called by
 * object_debug_entry.
 */
#include <errno.h>
#include <string.h>

#include "editor/object/debug/object_debug_private.h"

/* Writes one list. */
struct writer {
	struct me_odebug *d;
	struct me_olists *to;
	enum me_olists_kind kind;
	uint32_t section; /* of the old list */
	uint32_t base;	  /* section of the output from which pairs count; ME_NONE: none */
};

enum me_olists_kind me_odebug_kind(const struct me_ounit *unit, bool locations)
{
	if (unit->version >= 5)
		return locations ? ME_OLISTS_LOCLISTS : ME_OLISTS_RNGLISTS;
	return locations ? ME_OLISTS_LOC : ME_OLISTS_RANGES;
}

static bool has_locations(enum me_olists_kind kind)
{
	return kind == ME_OLISTS_LOC || kind == ME_OLISTS_LOCLISTS;
}

static bool is_version_5(enum me_olists_kind kind)
{
	return kind == ME_OLISTS_RNGLISTS || kind == ME_OLISTS_LOCLISTS;
}

static void put_address(struct writer *w, uint32_t out, uint64_t off)
{
	me_odebug_put_reloc(&w->to->relocs, w->to->bytes.size, w->d->o->outs[out].symbol,
			    R_X86_64_64, off);
	me_bytes_u64(&w->to->bytes, 0);
}

static int put_expr(struct writer *w, const struct me_oentry *e)
{
	struct me_bytes *out = &w->to->bytes;
	int64_t by;

	if (!has_locations(w->kind))
		return 0;
	if (is_version_5(w->kind))
		me_bytes_uleb(out, e->expr_size);
	else
		me_bytes_u16(out, (uint16_t)e->expr_size);
	by = (int64_t)(out->size - e->expr);
	me_bytes_put(out, me_odebug_section(w->d, w->section)->data + e->expr, e->expr_size);
	return me_odebug_put_relocs(w->d, w->section, e->expr, e->expr + e->expr_size, by, true,
				    &w->to->relocs);
}

static int put_pair(struct writer *w, const struct me_ointerval *at, const struct me_oentry *e)
{
	struct me_bytes *out = &w->to->bytes;

	if (w->base != at->out) {
		me_bytes_u64(out, UINT64_MAX);
		put_address(w, at->out, 0);
		w->base = at->out;
	}
	me_bytes_u64(out, at->start);
	me_bytes_u64(out, at->end);
	return put_expr(w, e);
}

/* @more: other entries of the same section follow. */
static int put_entry(struct writer *w, const struct me_ointerval *at, bool more,
		     const struct me_oentry *e)
{
	struct me_bytes *out = &w->to->bytes;
	bool locations = has_locations(w->kind);

	if (w->base != at->out && more) {
		me_bytes_u8(out, locations ? DW_LLE_base_address : DW_RLE_base_address);
		put_address(w, at->out, 0);
		w->base = at->out;
	}
	if (w->base == at->out) {
		me_bytes_u8(out, locations ? DW_LLE_offset_pair : DW_RLE_offset_pair);
		me_bytes_uleb(out, at->start);
		me_bytes_uleb(out, at->end);
	} else {
		me_bytes_u8(out, locations ? DW_LLE_start_length : DW_RLE_start_length);
		put_address(w, at->out, at->start);
		me_bytes_uleb(out, at->end - at->start);
	}
	return put_expr(w, e);
}

static int put_anywhere(struct writer *w, const struct me_oentry *e)
{
	me_bytes_u8(&w->to->bytes, DW_LLE_default_location);
	return put_expr(w, e);
}

static int put_entries(struct writer *w, const struct me_olist *list)
{
	struct me_odebug *d = w->d;
	struct me_ointervals *now = &d->now;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < list->nr; i++) {
		const struct me_oentry *e = &list->entries[i];

		now->nr = 0;
		if (e->anywhere) {
			rc = put_anywhere(w, e);
			continue;
		}
		rc = me_odebug_map_entry(d, e, now);
		for (uint32_t k = 0; !rc && k < now->nr; k++) {
			/* In most lists all code is in one section. */
			bool more = k + 1 < now->nr ? now->list[k + 1].out == now->list[k].out
						    : i + 1 < list->nr;

			rc = is_version_5(w->kind) ? put_entry(w, &now->list[k], more, e)
						   : put_pair(w, &now->list[k], e);
		}
	}
	return rc;
}

int me_odebug_put_list(struct me_odebug *d, const struct me_ounit *unit, enum me_olists_kind kind,
		       const struct me_olist *list, uint64_t *off)
{
	struct writer w = {.d = d,
			   .to = &d->lists[kind],
			   .kind = kind,
			   .section = d->lists[kind].section,
			   .base = ME_NONE};
	int rc = me_odebug_open_lists(d, unit, kind);

	*off = w.to->bytes.size;
	if (!rc)
		rc = put_entries(&w, list);
	if (is_version_5(kind)) {
		me_bytes_u8(&w.to->bytes, DW_RLE_end_of_list);
	} else {
		me_bytes_u64(&w.to->bytes, 0);
		me_bytes_u64(&w.to->bytes, 0);
	}
	if (!rc && (w.to->bytes.failed || w.to->relocs.failed))
		rc = me_odebug_no_memory(d);
	if (!rc && w.to->bytes.size > UINT32_MAX / 2)
		rc = me_odebug_refuse(d, "would become too large");
	return rc;
}

/* ---- contributions of DWARF 5 ---------------------------------------------------------------- */

int me_odebug_open_lists(struct me_odebug *d, const struct me_ounit *unit, enum me_olists_kind kind)
{
	struct me_olists *to = &d->lists[kind];
	const struct mp_relobj_section *s = me_odebug_section(d, to->section);
	bool ranges = kind == ME_OLISTS_RNGLISTS;
	uint64_t base = ranges ? unit->rnglists_base : unit->loclists_base;
	uint32_t nr = 0;

	if (to->open || !is_version_5(kind))
		return 0;
	if (ranges ? unit->has_rnglists_base : unit->has_loclists_base) {
		struct mp_cursor c = mp_cursor_at(s->data, s->header.sh_size, base - 4);

		nr = mp_cursor_u32(&c);
		if (base < 12 || c.bad || nr > (s->header.sh_size - base) / 4)
			return me_odebug_refuse(d, "has a number of no list");
	}
	to->open = true;
	to->header = to->bytes.size;
	me_bytes_u32(&to->bytes, 0);
	me_bytes_u16(&to->bytes, 5);
	me_bytes_u16(&to->bytes, 8); /* bytes of an address; of a segment: 0 */
	me_bytes_u32(&to->bytes, nr);
	to->table = to->bytes.size;
	to->nr_table = nr;
	for (uint32_t i = 0; i < nr; i++)
		me_bytes_u32(&to->bytes, 0);
	return to->bytes.failed ? me_odebug_no_memory(d) : 0;
}

int me_odebug_number_list(struct me_odebug *d, const struct me_ounit *unit,
			  enum me_olists_kind kind, uint64_t index, uint64_t off)
{
	struct me_olists *to = &d->lists[kind];
	int rc = me_odebug_open_lists(d, unit, kind);

	if (!rc && index >= to->nr_table)
		rc = me_odebug_refuse(d, "has a number of no list");
	if (!rc)
		me_bytes_patch_u32(&to->bytes, to->table + 4 * index, (uint32_t)(off - to->table));
	return rc;
}

void me_odebug_close_lists(struct me_odebug *d)
{
	for (int kind = ME_OLISTS_RNGLISTS; kind < ME_OLISTS_NR; kind++) {
		struct me_olists *to = &d->lists[kind];
		size_t end = to->bytes.size;

		if (!to->open)
			continue;
		to->open = false;
		/* Numbers that no entry uses have an empty list. */
		for (uint32_t i = 0; i < to->nr_table && !to->bytes.failed; i++) {
			uint32_t off;

			memcpy(&off, to->bytes.data + to->table + 4 * (size_t)i, sizeof(off));
			if (off)
				continue;
			if (to->bytes.size == end)
				me_bytes_u8(&to->bytes, DW_RLE_end_of_list);
			me_bytes_patch_u32(&to->bytes, to->table + 4 * (size_t)i,
					   (uint32_t)(end - to->table));
		}
		if (to->bytes.failed)
			continue;
		me_bytes_patch_u32(&to->bytes, to->header,
				   (uint32_t)(to->bytes.size - to->header - 4));
	}
}
