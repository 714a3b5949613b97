// SPDX-License-Identifier: Apache-2.0
/*
 * object_frame - .eh_frame of the output: the old CIEs, the old FDEs of code that stays, and one
 * FDE for each fragment, whose rows begin as they are at the fragment's first instruction.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "editor/unwind/cfi_put.h"
#include "libprof/elf/eh.h"
#include "libprof/unwind/cfi.h"

struct frame {
	struct me_object *o;
	const struct mp_relobj_section *s;
	struct mp_cfi_rules rules;
	struct mp_cfi_table table;
	uint32_t *cie_at; /* offset of an old CIE -> its new offset + 1 */
};

/* The old relocations of [from, to) of the section, @by bytes further. */
static int put_relocs(struct frame *f, uint64_t from, uint64_t to, uint64_t at, struct mp_err *err)
{
	int rc = 0;

	for (uint32_t r = mp_relobj_reloc_at(f->s, from);
	     !rc && r < f->s->nr_relocs && f->s->relocs[r].r_offset < to; r++) {
		Elf64_Rela moved;
		uint32_t symbol = ELF64_R_SYM(f->s->relocs[r].r_info);
		const struct mp_relobj *in = f->o->in;

		/* Apart from closed code, nothing here leads to code but by its symbol. */
		if (mp_relobj_in_code(in, symbol) &&
		    !f->o->codes[f->o->code_of[in->symbols[symbol].st_shndx]].closed &&
		    ELF64_ST_TYPE(in->symbols[symbol].st_info) == STT_SECTION)
			rc = mp_err_set(err, EPERM, "unwind information refers to code");
		moved = f->s->relocs[r];
		moved.r_info = ELF64_R_INFO((uint64_t)me_object_symbol(f->o, symbol),
					    ELF64_R_TYPE(moved.r_info));
		moved.r_offset += at - from;
		me_bytes_put(&f->o->frame_relocs, &moved, sizeof(moved));
	}
	return rc;
}

/* Rows of the fragment, from that of the CIE on. */
static void put_program(struct frame *f, const struct mp_eh_cie *cie,
			const struct me_fragment *fragment)
{
	const struct me_object *o = f->o;
	const struct mp_cfi_row *row = &f->table.initial;
	uint32_t func_start = o->funcs[fragment->func].start, at = fragment->start;

	for (uint32_t i = fragment->first_item; i < fragment->first_item + fragment->nr_items;
	     i++) {
		const struct me_item *item = &o->items[i];
		const struct mp_cfi_line *line;

		if (!item->size)
			continue;
		line = &f->table.lines[mp_cfi_line_at(&f->table,
						      o->insns[item->row].off - func_start)];
		if (!memcmp(&line->row, row, sizeof(*row)))
			continue;
		me_cfi_put_advance(&f->o->frame, item->off - at);
		me_cfi_put_change(&f->o->frame, &f->rules, cie, row, &line->row);
		at = item->off;
		row = &line->row;
	}
}

/* A new exception table, to which the FDE at @at refers by the old one's symbol. */
static int put_lsda(struct frame *f, const struct mp_eh_fde *fde,
		    const struct me_fragment *fragment, uint64_t at, struct mp_err *err)
{
	Elf64_Rela r = f->s->relocs[mp_relobj_reloc_at(f->s, fde->vaddr + 17)];
	uint64_t off;
	int rc = me_object_put_lsda(f->o, fragment, &off, err);

	r.r_offset = at + 17;
	r.r_info = ELF64_R_INFO((uint64_t)me_object_symbol(f->o, ELF64_R_SYM(r.r_info)),
				ELF64_R_TYPE(r.r_info));
	r.r_addend = (int64_t)(off - f->o->funcs[fragment->func].lsda->value);
	me_bytes_put(&f->o->frame_relocs, &r, sizeof(r));
	return rc;
}

static int put_fragment(struct frame *f, const struct mp_eh_cie *cie, const struct mp_eh_fde *fde,
			const struct me_fragment *fragment, struct mp_err *err)
{
	struct me_bytes *out = &f->o->frame;
	uint64_t at = out->size, aug = fde->vaddr + 16;
	uint64_t aug_end = (uint64_t)(fde->program - f->s->data);
	const Elf64_Rela start = {
		at + 8, ELF64_R_INFO((uint64_t)f->o->outs[fragment->out].symbol, R_X86_64_PC32),
		fragment->start};
	int rc;

	me_bytes_u32(out, 0);
	me_bytes_u32(out, (uint32_t)(at + 4 - (f->cie_at[cie->vaddr] - 1)));
	me_bytes_u32(out, 0);
	me_bytes_u32(out, fragment->end - fragment->start);
	me_bytes_put(out, f->s->data + aug, aug_end - aug);
	me_bytes_put(&f->o->frame_relocs, &start, sizeof(start));
	rc = f->o->funcs[fragment->func].lsda && !f->o->funcs[fragment->func].rigid
		     ? put_lsda(f, fde, fragment, at, err)
		     : put_relocs(f, aug, aug_end, at + 16, err);
	put_program(f, cie, fragment);
	me_bytes_align(out, 8); /* DW_CFA_nop is 0 */
	if (!out->failed)
		me_bytes_patch_u32(out, at, (uint32_t)(out->size - at - 4));
	return rc;
}

/* An FDE of code that stays. Its distance to the CIE is another one. */
static int put_same(struct frame *f, const struct mp_eh_cie *cie, const struct mp_eh_fde *fde,
		    uint64_t end, struct mp_err *err)
{
	struct me_bytes *out = &f->o->frame;
	uint64_t at = out->size;

	me_bytes_put(out, f->s->data + fde->vaddr, end - fde->vaddr);
	if (!out->failed)
		me_bytes_patch_u32(out, at + 4, (uint32_t)(at + 4 - (f->cie_at[cie->vaddr] - 1)));
	return put_relocs(f, fde->vaddr, end, at, err);
}

static int put_fde(struct frame *f, const struct mp_eh_cie *cie, const struct mp_eh_fde *fde,
		   uint64_t end, const struct me_ofde *known, struct mp_err *err)
{
	const struct me_object *o = f->o;
	struct mp_eh_fde at_zero = *fde;
	int rc = 0;

	if (!f->cie_at[cie->vaddr])
		return mp_err_set(err, EPERM, "an FDE stands before its CIE");
	if (o->codes[known->code].closed)
		return put_same(f, cie, fde, end, err);
	at_zero.start = 0;
	rc = mp_cfi_expand(&f->rules, cie, &at_zero, &f->table);
	if (rc == -ENOMEM)
		return mp_err_code(err, ENOMEM);
	if (rc || !f->table.nr)
		return mp_err_set(err, EPERM, "unreadable unwind information");
	for (uint32_t i = 0; !rc && i < o->funcs[known->func].nr_fragments; i++)
		rc = put_fragment(f, cie, fde,
				  &o->fragments[o->funcs[known->func].first_fragment + i], err);
	return rc;
}

static int put_entries(struct frame *f, struct mp_err *err)
{
	struct mp_cursor cur = {.p = f->s->data, .end = f->s->data + f->s->header.sh_size};
	const struct mp_cursor first = cur;
	struct mp_eh_cie cie = {0};
	struct mp_eh_fde fde;
	uint32_t nr = 0;
	int rc = 0;

	while (!rc && cur.p < cur.end) {
		uint64_t off = cur.vaddr;
		int got = mp_eh_next(&cur, &first, &cie, &fde);

		if (got == 2) {
			rc = put_fde(f, &cie, &fde, cur.vaddr, &f->o->fdes[nr++], err);
			continue;
		}
		if (got == 1)
			f->cie_at[off] = (uint32_t)f->o->frame.size + 1;
		rc = put_relocs(f, off, cur.vaddr, f->o->frame.size, err);
		me_bytes_put(&f->o->frame, f->s->data + off, cur.vaddr - off);
	}
	return rc;
}

int me_object_frame(struct me_object *o, struct mp_err *err)
{
	struct frame f = {.o = o, .s = &o->in->sections[o->eh_frame]};
	int rc = 0;

	o->extras = calloc(o->in->nr_sections, sizeof(*o->extras));
	f.cie_at = calloc(f.s->header.sh_size + 1, sizeof(*f.cie_at));
	if (!f.cie_at || !o->extras || mp_cfi_rules_init(&f.rules))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (!rc)
		rc = put_entries(&f, err);
	if (!rc && (o->frame.failed || o->frame_relocs.failed))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	mp_cfi_rules_fini(&f.rules);
	mp_cfi_table_fini(&f.table);
	free(f.cie_at);
	return rc;
}
