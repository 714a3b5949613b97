// SPDX-License-Identifier: Apache-2.0
/* object_emit - the bytes of the new sections of code, and their relocations. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/nops.h"
#include "editor/object/object_private.h"

static void put_nops(struct me_bytes *out, uint32_t size)
{
	uint8_t nop[ME_NOP_MAX];

	while (size) {
		unsigned int n = me_nop_put(nop, size);

		me_bytes_put(out, nop, n);
		size -= n;
	}
}

static void put_reloc(struct me_out *out, uint64_t off, uint32_t symbol, uint32_t type,
		      int64_t addend)
{
	const Elf64_Rela r = {off, ELF64_R_INFO((uint64_t)symbol, type), addend};

	me_bytes_put(&out->relocs, &r, sizeof(r));
}

/* The field at @field of the item, @size bytes, gets the distance to the item's target. */
static int put_distance(struct me_object *o, const struct me_item *item, uint32_t field,
			uint32_t size, struct mp_err *err)
{
	struct me_out *from = &o->outs[item->out];
	uint32_t out, off, value = 0;
	int64_t distance;

	if (!me_object_place_of(o, item->to, &out, &off))
		return mp_err_set(err, EPERM, "code leads to padding");
	distance = (int64_t)off - (item->off + item->size);
	if (out != item->out && size == 4)
		put_reloc(from, item->off + field, o->outs[out].symbol, R_X86_64_PC32,
			  (int64_t)off - (item->size - field));
	else if (out != item->out || (size == 1 && (distance < INT8_MIN || distance > INT8_MAX)))
		return mp_err_set(err, EPERM, "a short branch would not reach its target");
	else
		value = (uint32_t)distance;
	if (!from->bytes.failed)
		memcpy(from->bytes.data + item->off + field, &value, size);
	return 0;
}

static int put_copy(struct me_object *o, const struct me_item *item, struct mp_err *err)
{
	const struct me_oinsn *insn = &o->insns[item->insn];
	uint32_t section = o->codes[insn->code].section;
	const struct mp_relobj_section *s = &o->in->sections[section];
	struct me_out *out = &o->outs[item->out];
	int rc = 0;

	me_bytes_put(&out->bytes, s->data + insn->off, insn->len);
	if (item->to != ME_NONE)
		rc = put_distance(o, item, insn->field, insn->field_size, err);
	for (uint32_t r = insn->reloc;
	     !rc && r < s->nr_relocs && s->relocs[r].r_offset < me_oinsn_end(insn); r++) {
		int64_t bias = (int64_t)me_oinsn_end(insn) - (int64_t)s->relocs[r].r_offset;
		Elf64_Rela moved;

		rc = me_object_translate(o, section, &s->relocs[r], bias, &moved, err);
		moved.r_offset = item->off + s->relocs[r].r_offset - insn->off;
		if (!rc)
			me_bytes_put(&out->relocs, &moved, sizeof(moved));
	}
	return rc;
}

static int put_branch(struct me_object *o, const struct me_item *item, struct mp_err *err)
{
	struct me_bytes *bytes = &o->outs[item->out].bytes;
	uint32_t field = item->kind == ME_ITEM_COND && item->far ? 2 : 1;

	if (item->kind == ME_ITEM_JUMP) {
		me_bytes_u8(bytes, item->far ? 0xe9 : 0xeb);
	} else if (item->far) {
		me_bytes_u8(bytes, 0x0f);
		me_bytes_u8(bytes, (uint8_t)(0x80 | item->cc));
	} else {
		me_bytes_u8(bytes, (uint8_t)(0x70 | item->cc));
	}
	if (item->far)
		me_bytes_u32(bytes, 0);
	else
		me_bytes_u8(bytes, 0);
	return put_distance(o, item, field, item->far ? 4 : 1, err);
}

static int put_fragment(struct me_object *o, const struct me_fragment *fragment, struct mp_err *err)
{
	struct me_bytes *bytes = &o->outs[fragment->out].bytes;
	int rc = 0;

	put_nops(bytes, fragment->start - (uint32_t)bytes->size);
	for (uint32_t i = fragment->first_item;
	     !rc && i < fragment->first_item + fragment->nr_items; i++) {
		const struct me_item *item = &o->items[i];

		switch (item->kind) {
		case ME_ITEM_COPY: rc = put_copy(o, item, err); break;
		case ME_ITEM_JUMP:
		case ME_ITEM_COND: rc = put_branch(o, item, err); break;
		case ME_ITEM_PADDING: put_nops(bytes, item->size); break;
		case ME_ITEM_DROPPED: break;
		}
	}
	return rc;
}

int me_object_emit(struct me_object *o, struct mp_err *err)
{
	int rc = 0;

	for (uint32_t f = 0; !rc && f < o->nr_fragments; f++) {
		const struct me_fragment *fragment = &o->fragments[f];

		rc = put_fragment(o, fragment, err);
		if (!o->funcs[fragment->func].hot)
			continue;
		if (fragment->cold)
			o->report->cold_bytes += fragment->end - fragment->start;
		else
			o->report->hot_bytes += fragment->end - fragment->start;
	}
	for (uint32_t i = 0; !rc && i < o->nr_outs; i++)
		if (o->outs[i].bytes.failed || o->outs[i].relocs.failed)
			rc = mp_err_set(err, ENOMEM, "out of memory");
	return rc;
}
