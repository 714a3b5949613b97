// SPDX-License-Identifier: Apache-2.0
/*
 * object_functions - the functions of an object: those of .eh_frame. Decides which sections of
 * code functions may leave: sections that hold nothing but such functions. Called by object_code.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "libprof/base/grow.h"
#include "libprof/elf/eh.h"

static void close_section(struct me_ocode *code, const char *why)
{
	if (!code->closed)
		code->closed = why;
}

/* The encoding that all compilers use in objects: pc-relative, 4 bytes, filled by a relocation. */
#define FDE_ENCODING (MP_EH_PE_PCREL | MP_EH_PE_SDATA4)

static int add_fde(struct me_object *o, const struct mp_eh_cie *cie, const struct mp_eh_fde *fde,
		   uint32_t size, struct mp_err *err)
{
	const struct mp_relobj_section *s = &o->in->sections[o->eh_frame];
	uint32_t r = mp_relobj_reloc_at(s, fde->vaddr + 8), symbol;
	uint64_t start;

	if (cie->fde_enc != FDE_ENCODING || r >= s->nr_relocs ||
	    s->relocs[r].r_offset != fde->vaddr + 8 ||
	    ELF64_R_TYPE(s->relocs[r].r_info) != R_X86_64_PC32)
		return mp_err_set(err, EPERM, "unwind information of an unusual kind");
	symbol = ELF64_R_SYM(s->relocs[r].r_info);
	start = o->in->symbols[symbol].st_value + (uint64_t)s->relocs[r].r_addend;
	if (!mp_relobj_in_code(o->in, symbol) || start > UINT32_MAX || fde->size > UINT32_MAX)
		return mp_err_set(err, EPERM, "unwind information of no code");
	if (mp_grow(o->fdes, o->cap_fdes, o->nr_fdes + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	o->fdes[o->nr_fdes++] = (struct me_ofde){
		.off = (uint32_t)fde->vaddr,
		.size = size,
		.code = o->code_of[o->in->symbols[symbol].st_shndx],
		.cie_off = (uint32_t)cie->vaddr,
		.start = (uint32_t)start,
		/* the raw start is zero or noise, and the relocation's addend counts */
		.len = (uint32_t)fde->size,
		.func = ME_NONE,
	};
	if (cie->signal_frame)
		close_section(&o->codes[o->fdes[o->nr_fdes - 1].code], "a signal frame");
	return 0;
}

static int read_frame(struct me_object *o, struct mp_err *err)
{
	const struct mp_relobj_section *s;
	struct mp_cursor cur, first;
	struct mp_eh_cie cie = {0};
	struct mp_eh_fde fde;
	int rc = 0;

	o->eh_frame = mp_relobj_section(o->in, ".eh_frame");
	if (!o->eh_frame || !o->in->sections[o->eh_frame].data)
		return mp_err_set(err, EPERM, "no unwind information");
	for (uint32_t i = o->eh_frame + 1; i < o->in->nr_sections; i++)
		if (!strcmp(o->in->sections[i].name, ".eh_frame"))
			return mp_err_set(err, EPERM, "two sections .eh_frame");
	s = &o->in->sections[o->eh_frame];
	cur = (struct mp_cursor){.p = s->data, .end = s->data + s->header.sh_size};
	first = cur;
	while (!rc && cur.p < cur.end) {
		uint64_t off = cur.vaddr;
		int got = mp_eh_next(&cur, &first, &cie, &fde);

		if (got < 0)
			return mp_err_set(err, EPERM, "unreadable unwind information");
		if (got == 2)
			rc = add_fde(o, &cie, &fde, (uint32_t)(cur.vaddr - off), err);
	}
	return rc;
}

/* Sections whose contents are bound to code by more than relocations. */
static void close_by_section(struct me_object *o)
{
	for (uint32_t c = 0; c < o->nr_codes; c++) {
		const struct mp_relobj_section *s = &o->in->sections[o->codes[c].section];

		if (strcmp(s->name, ".text") && strncmp(s->name, ".text.", 6))
			close_section(&o->codes[c], "not in a section .text");
		if (s->header.sh_flags & (SHF_WRITE | SHF_LINK_ORDER | SHF_MERGE))
			close_section(&o->codes[c], "in a section with unusual flags");
	}
	for (uint32_t i = 1; i < o->in->nr_sections; i++) {
		const Elf64_Shdr *h = &o->in->sections[i].header;

		if ((h->sh_flags & SHF_LINK_ORDER) && h->sh_link < o->in->nr_sections &&
		    o->code_of[h->sh_link] != ME_NONE)
			close_section(&o->codes[o->code_of[h->sh_link]],
				      "another section is ordered with its section");
	}
}

static int add_function(struct me_object *o, uint32_t fde, struct mp_err *err)
{
	struct me_ofde *f = &o->fdes[fde];
	struct me_ocode *code = &o->codes[f->code];
	uint64_t end = (uint64_t)f->start + f->len;
	uint32_t first = me_object_insn_at(o, f->code, f->start), i;

	if (first == ME_NONE || !f->len) {
		close_section(code, "unwind information that fits no code");
		return 0;
	}
	if (mp_grow(o->funcs, o->cap_funcs, o->nr_funcs + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	for (i = first; i < code->first_insn + code->nr_insns && o->insns[i].off < end; i++) {
		if (o->insns[i].func != ME_NONE)
			close_section(code, "two functions claim the same bytes");
		o->insns[i].func = o->nr_funcs;
	}
	if (me_oinsn_end(&o->insns[i - 1]) != end)
		close_section(code, "unwind information that fits no code");
	o->funcs[o->nr_funcs] = (struct me_ofunc){
		.code = f->code,
		.start = f->start,
		.end = (uint32_t)end,
		.first_insn = first,
		.nr_insns = i - first,
		.fde = fde,
	};
	code->nr_funcs++;
	f->func = o->nr_funcs++;
	return 0;
}

/* Each function has a symbol at its start, and no function's symbol lies elsewhere. */
static void find_symbols(struct me_object *o)
{
	for (uint32_t i = 1; i < o->in->nr_symbols; i++) {
		const Elf64_Sym *symbol = &o->in->symbols[i];
		bool is_func = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC ||
			       ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
		struct me_ofunc *func;
		uint32_t insn;

		if (!mp_relobj_in_code(o->in, i) || ELF64_ST_TYPE(symbol->st_info) == STT_SECTION)
			continue;
		insn = me_object_insn_at(o, o->code_of[symbol->st_shndx], symbol->st_value);
		if (insn == ME_NONE || o->insns[insn].func == ME_NONE) {
			close_section(&o->codes[o->code_of[symbol->st_shndx]],
				      "a symbol outside of functions");
			continue;
		}
		o->insns[insn].flags |= ME_OINSN_TARGET;
		func = &o->funcs[o->insns[insn].func];
		if (is_func &&
		    (func->start != symbol->st_value || symbol->st_size != func->end - func->start))
			close_section(&o->codes[func->code],
				      "symbols and unwind information differ");
		if (is_func && (!func->symbol || ELF64_ST_BIND(symbol->st_info) != STB_LOCAL))
			func->symbol = i;
	}
}

static void close_by_code(struct me_object *o)
{
	const struct mp_relobj_section *frame = &o->in->sections[o->eh_frame];

	for (uint32_t i = 0; i < o->nr_insns; i++) {
		const struct me_oinsn *insn = &o->insns[i];

		/* int3 is padding, too: clang and lld fill with it */
		if (insn->func == ME_NONE && !(insn->flags & ME_OINSN_NOP) &&
		    !(insn->kind == MP_INSN_TRAP && insn->len == 1))
			close_section(&o->codes[insn->code], "code without unwind information");
		if (insn->func == ME_NONE && (insn->flags & ME_OINSN_TARGET))
			close_section(&o->codes[insn->code], "padding that is referred to");
	}
	for (uint32_t f = 0; f < o->nr_funcs; f++) {
		const struct me_ofde *fde = &o->fdes[o->funcs[f].fde];
		uint32_t r = mp_relobj_reloc_at(frame, fde->off + 9);

		if (!o->funcs[f].symbol)
			close_section(&o->codes[o->funcs[f].code], "a function without a symbol");
		/* the only other relocation of an FDE is that of its exception table */
		o->funcs[f].rigid = r < frame->nr_relocs &&
				    frame->relocs[r].r_offset < fde->off + fde->size;
		if (o->funcs[f].rigid && me_object_read_lsda(o, &o->funcs[f]))
			o->funcs[f].rigid = false;
		else if (o->funcs[f].rigid)
			o->funcs[f].whole = "its exception table is not understood";
	}
}

int me_object_functions(struct me_object *o, struct mp_err *err)
{
	int rc = read_frame(o, err);

	if (rc)
		return rc;
	close_by_section(o);
	for (uint32_t i = 0; !rc && i < o->nr_fdes; i++)
		rc = add_function(o, i, err);
	if (rc)
		return rc;
	find_symbols(o);
	close_by_code(o);
	return 0;
}
