// SPDX-License-Identifier: Apache-2.0
/*
 * import_use - looks at every 4 bytes of code that may lead to a slot or to a stub of a PLT. Where no decoded
 * instruction says that they do not, they count. So none is missed but those by other ways of addressing, which the
 * large code model has.
 */
#include "editor/evidence/import_use.h"

#include <string.h>

#include "editor/evidence/plt_stub.h"
#include "libprof/insn/insn.h"

struct finder {
	const struct mp_cfg *cfg;
	struct me_import_use *out;
};

/* Return: the index in .dynsym of the import @name; 0: there is none. *@several: of two versions, say. */
static uint32_t import_named(const struct mp_elf *elf, const char *name, bool *several)
{
	uint32_t index = 0;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (!sym->dynamic || sym->shndx != SHN_UNDEF || !sym->name ||
		    strcmp(sym->name, name))
			continue;
		*several |= index != 0;
		index = sym->index;
	}
	return index;
}

static void find_slots(const struct mp_elf *elf, const char *name, struct me_import_use *out)
{
	uint32_t import = import_named(elf, name, &out->unknown);

	for (uint32_t i = 0; import && i < elf->nr_dyn_relocs; i++) {
		const struct mp_reloc *rel = &elf->dyn_relocs[i];

		if (rel->sym != import)
			continue;
		if ((rel->type != R_X86_64_GLOB_DAT && rel->type != R_X86_64_JUMP_SLOT) ||
		    out->nr_slots == ME_IMPORT_SLOTS)
			out->unknown = true;
		else
			out->slots[out->nr_slots++] = rel->vaddr;
	}
}

enum field {
	FIELD_UNKNOWN, /* not in a function that can be decoded */
	FIELD_NONE,    /* these bytes hold no address, or another one */
	FIELD_OPERAND, /* a displacement that leads to the address */
	FIELD_NUMBER,  /* an absolute address, or a number */
};

/* Which part of an instruction are the 4 bytes at @field? *@at: the instruction's address. */
static enum field field_of(const struct mp_cfg *cfg, uint64_t field, uint64_t to, uint64_t *at)
{
	uint32_t func = mp_cfg_func_at(cfg, field);
	const struct mp_func *f = func == MP_NONE ? NULL : &cfg->funcs[func];

	for (uint32_t r = 0; f && r < f->nr_ranges; r++) {
		const struct mp_range *range = &cfg->ranges[f->first_range + r];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, range->start, range->size);
		uint64_t end = range->start + range->size;
		struct mp_insn insn = {0};

		if (!bytes || field - range->start >= range->size)
			continue;
		*at = range->start;
		do {
			*at += insn.len;
			if (mp_insn_decode(bytes + (*at - range->start), end - *at, *at, &insn))
				return FIELD_UNKNOWN;
		} while (*at + insn.len <= field);
		if (insn.disp_size == 4 && *at + insn.disp_off == field)
			return insn.target == to ? FIELD_OPERAND : FIELD_NONE;
		return *at + insn.mem_disp_off == field ||
				       (insn.imm_size && *at + insn.imm_off == field)
			       ? FIELD_NUMBER
			       : FIELD_NONE;
	}
	return FIELD_UNKNOWN;
}

/* Return: the stub of a PLT whose jump through @slot stands at @vaddr; 0: there is none. */
static uint64_t stub_around(const struct mp_elf *elf, uint64_t vaddr, uint64_t slot)
{
	static const uint8_t before[] = {5, 4, 1, 0};

	for (size_t i = 0; i < sizeof(before); i++)
		if (me_plt_stub_slot(elf, vaddr - before[i]) == slot)
			return vaddr - before[i];
	return 0;
}

static void add_user(struct finder *f, uint64_t vaddr)
{
	struct me_import_use *out = f->out;
	uint32_t func = mp_cfg_func_at(f->cfg, vaddr);

	if (func == MP_NONE || out->nr_users == ME_IMPORT_SITES)
		out->unknown = true;
	else
		out->users[out->nr_users++] = func;
}

static bool is_of_plt(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_section *sec = mp_elf_section_at(elf, vaddr);

	return sec && !strncmp(sec->name, ".plt", 4);
}

/* The displacement at @field, of the instruction at @at, leads to @slot. 0: the instruction is not known. */
static void add_site(struct finder *f, uint64_t field, uint64_t at, uint64_t slot)
{
	const uint8_t *code = mp_elf_bytes(f->cfg->elf, field - 2, 2);
	struct me_import_use *out = f->out;
	uint32_t func = mp_cfg_func_at(f->cfg, field - 2);
	bool jump = code && code[1] == 0x25;
	uint64_t stub = jump ? stub_around(f->cfg->elf, field - 2, slot) : 0;

	if (!code || code[0] != 0xff || (!jump && code[1] != 0x15) || (!at && !stub) ||
	    out->nr_sites == ME_IMPORT_SITES || out->nr_stubs == ME_IMPORT_SLOTS) {
		out->unknown = true;
		return;
	}
	out->sites[out->nr_sites++] = field - 2;
	/* A function that only jumps there is a stub, too: calls of it may go through the slot. */
	if (stub)
		out->stubs[out->nr_stubs++] = stub;
	/* Linkers give their stubs unwind information, too, as if they were one function. */
	if (!stub || (func != MP_NONE && !is_of_plt(f->cfg->elf, stub)))
		add_user(f, field);
	if (!stub)
		out->unsure |= at != field - 2 || f->cfg->funcs[func].problem != MP_PROBLEM_NONE;
}

/* The 4 bytes at @field may lead to @to, a slot or a stub, or be its address. */
static void look_at(struct finder *f, uint64_t field, uint64_t to, bool is_slot)
{
	uint64_t at = 0;

	switch (field_of(f->cfg, field, to, &at)) {
	case FIELD_UNKNOWN:
		if (is_slot)
			add_site(f, field, 0, to);
		else if (mp_cfg_func_at(f->cfg, field) != MP_NONE)
			add_user(f, field);
		else
			f->out->elsewhere = true;
		return;
	case FIELD_OPERAND:
		if (is_slot)
			add_site(f, field, at, to);
		else
			add_user(f, field);
		return;
	case FIELD_NUMBER:
		if (f->cfg->elf->ehdr.e_type != ET_EXEC)
			return;
		if (is_slot)
			f->out->unknown = true;
		else
			add_user(f, field);
		return;
	case FIELD_NONE: return;
	}
}

/* Looks at all places of code that may lead to one of @to. */
static void scan(struct finder *f, const uint64_t *to, uint32_t nr, bool are_slots)
{
	const struct mp_elf *elf = f->cfg->elf;

	for (uint32_t i = 1; nr && i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];
		const uint8_t *bytes = s->flags & SHF_EXECINSTR && s->type == SHT_PROGBITS
					       ? mp_elf_bytes(elf, s->vaddr, s->size)
					       : NULL;

		for (uint64_t off = 0; bytes && off + 4 <= s->size; off++) {
			int32_t word;

			memcpy(&word, bytes + off, sizeof(word));
			/* The instruction may end in an immediate of up to 4 bytes, behind its displacement. */
			for (uint32_t k = 0; k < nr; k++)
				if (to[k] - (s->vaddr + off + 4 + (uint64_t)(int64_t)word) <= 4 ||
				    (uint32_t)word == to[k])
					look_at(f, s->vaddr + off, to[k], are_slots);
		}
	}
}

void me_import_use_find(const struct mp_cfg *cfg, const char *name, struct me_import_use *out)
{
	struct finder f = {cfg, out};

	*out = (struct me_import_use){0};
	find_slots(cfg->elf, name, out);
	scan(&f, out->slots, out->nr_slots, true);
	scan(&f, out->stubs, out->nr_stubs, false);
	out->unknown |= out->nr_slots && !out->nr_sites;
}
