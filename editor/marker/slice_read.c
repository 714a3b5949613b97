// SPDX-License-Identifier: Apache-2.0
/*
 * slice_read - the instructions of all functions, and references to markers that are no accesses of
 * known instructions. Called by slice.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/marker/slice_private.h"
#include "libprof/insn/insn.h"

bool me_slice_is_known(const struct mp_func *func)
{
	return func->nr_blocks && func->problem == MP_PROBLEM_NONE;
}

/* The function whose entry is @target; MP_NONE: it is not known what is there. */
uint32_t me_slice_function_at(const struct mp_cfg *cfg, uint64_t target)
{
	uint32_t func = mp_cfg_func_at(cfg, target);

	return func != MP_NONE && cfg->funcs[func].vaddr == target &&
			       me_slice_is_known(&cfg->funcs[func])
		       ? func
		       : MP_NONE;
}

/* Does a jump to @target enter what is no function of this file: a stub of the linker? */
bool me_slice_is_stub(const struct mp_cfg *cfg, uint64_t target)
{
	uint32_t func = mp_cfg_func_at(cfg, target);

	return func == MP_NONE || cfg->funcs[func].problem == MP_PROBLEM_SPECIAL;
}

int me_slice_decode(struct me_slice_finder *f)
{
	const struct mp_cfg *cfg = f->cfg;
	ZydisDecoder decoder;
	uint32_t nr = 0, cap = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		cap += cfg->blocks[b].nr_insns + 1;
	f->insns = calloc((size_t)cap + 1, sizeof(*f->insns));
	if (!f->insns)
		return -ENOMEM;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);

		f->first[b] = nr;
		for (uint32_t off = 0; off < block->size && nr < cap;) {
			struct me_slice_decoded *insn = &f->insns[nr++];
			struct mp_insn m = {0};

			insn->vaddr = block->vaddr + off;
			insn->callee = MP_NONE;
			me_effect_of(&decoder, cfg->elf, f->markers, bytes ? bytes + off : NULL,
				     block->size - off, insn->vaddr, &insn->e);
			if (!bytes ||
			    mp_insn_decode(bytes + off, block->size - off, insn->vaddr, &m)) {
				insn->e.reads = ME_PLACES_ALL;
				insn->e.pure = false;
				insn->len = (uint8_t)(block->size - off);
				break;
			}
			insn->len = m.len;
			insn->kind = m.kind;
			if (m.kind == MP_INSN_CALL)
				insn->callee = me_slice_function_at(cfg, m.target);
			insn->outside = m.kind == MP_INSN_ICALL ||
					(m.kind == MP_INSN_CALL && me_slice_is_stub(cfg, m.target));
			insn->tls = m.kind == MP_INSN_ICALL && m.len == 2 && bytes[off + 1] == 0x10;
			off += m.len;
		}
	}
	f->first[cfg->nr_blocks] = nr;
	return 0;
}

uint32_t me_slice_insn_at(const struct me_slice_finder *f, uint64_t vaddr)
{
	uint32_t b = mp_cfg_block_at(f->cfg, vaddr);

	for (uint32_t i = b == MP_NONE ? 0 : f->first[b]; b != MP_NONE && i < f->first[b + 1]; i++)
		if (vaddr - f->insns[i].vaddr < f->insns[i].len)
			return i;
	return MP_NONE;
}

void me_slice_note_read(struct me_slice_finder *f, uint64_t vaddr, uint64_t size)
{
	for (uint64_t at = vaddr; at < vaddr + size; at++) {
		uint32_t marker = me_marker_at(f->markers, at, 1);

		if (marker != UINT32_MAX)
			f->marker_live[marker] = true;
	}
}

/*
 * A wrong guess of an instruction's length may lead from the byte behind a marker, as that of the C
 * library's start-up code, into its last bytes. No code reads these alone.
 */
static void note_part_read(struct me_slice_finder *f, uint64_t vaddr)
{
	uint32_t marker = me_marker_at(f->markers, vaddr, 1);

	if (marker != UINT32_MAX && (vaddr - f->markers->list[marker].vaddr) % 4 == 0)
		f->marker_live[marker] = true;
}

/* A reference that is no access of an instruction makes its marker one that is read. */
static void judge_reloc(struct me_slice_finder *f, const struct mp_reloc *rel)
{
	uint64_t to = rel->sym_value + (uint64_t)rel->addend;
	uint32_t i;

	if (!me_marker_touches(f->markers, to, 16))
		return;
	i = me_slice_insn_at(f, rel->vaddr);
	if (i != MP_NONE && f->insns[i].e.marker != UINT32_MAX)
		return;
	switch (rel->type) {
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX:
		/* The field counts from the instruction's end: 4 bytes further on, and as many more
		 * as an immediate has. Of a known instruction the operand itself was looked at. */
		for (int k = 0; i == MP_NONE && k < 4; k++)
			note_part_read(f, to + (const uint8_t[]){4, 5, 6, 8}[k]);
		return;
	default: me_slice_note_read(f, to, ME_MARKER_BYTES);
	}
}

void me_slice_find_references(struct me_slice_finder *f)
{
	const struct mp_elf *elf = f->cfg->elf;

	for (uint32_t i = 0; i < elf->nr_relocs; i++)
		judge_reloc(f, &elf->relocs[i]);
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++)
		me_slice_note_read(
			f, elf->dyn_relocs[i].sym_value + (uint64_t)elf->dyn_relocs[i].addend,
			ME_MARKER_BYTES);
}
