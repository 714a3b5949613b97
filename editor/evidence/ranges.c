// SPDX-License-Identifier: Apache-2.0
#include "editor/evidence/ranges.h"

#include <errno.h>
#include <string.h>

#include "libprof/insn/insn.h"

/* ---- addresses behind code or memory ------------------------------------------------------- */

#define MAX_ENDS 24

/* Addresses at which nothing begins. Whoever names one asks what lies before it. */
struct ends {
	uint64_t vaddr[MAX_ENDS];
	uint32_t nr;
	uint64_t low, high;
	uint32_t nr_others; /* fields that hold such an address, but are no operands */
};

static void add_end(const struct mp_elf *elf, struct ends *ends, uint64_t vaddr)
{
	if (!vaddr || ends->nr == MAX_ENDS || mp_elf_section_at(elf, vaddr))
		return;
	if (!ends->nr || vaddr < ends->low)
		ends->low = vaddr;
	if (!ends->nr || vaddr > ends->high)
		ends->high = vaddr;
	ends->vaddr[ends->nr++] = vaddr;
}

static bool is_end(const struct ends *ends, uint64_t vaddr)
{
	if (vaddr < ends->low || vaddr > ends->high)
		return false;
	for (uint32_t i = 0; i < ends->nr; i++)
		if (ends->vaddr[i] == vaddr)
			return true;
	return false;
}

static bool is_code(const struct mp_section *sec)
{
	return sec->flags & SHF_ALLOC && sec->flags & SHF_EXECINSTR && sec->size;
}

/*
 * What linkers call etext: the end of .fini or, without one, of .text (GNU ld), of the last section with code (lld, mold),
 * of the segment (gold).
 */
static void find_code_ends(const struct mp_elf *elf, struct ends *ends)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];
		uint64_t last = 0, text = 0, fini = 0;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		for (uint32_t k = 0; k < elf->nr_sections; k++) {
			const struct mp_section *sec = &elf->sections[k];
			uint64_t end = sec->vaddr + sec->size;

			if (!is_code(sec) || sec->vaddr - p->p_vaddr >= p->p_memsz)
				continue;
			last = end > last ? end : last;
			text = !strcmp(sec->name, ".text") ? end : text;
			fini = !strcmp(sec->name, ".fini") ? end : fini;
		}
		add_end(elf, ends, fini ? fini : text);
		/* A writable segment ends with its data (_end), not with its code. */
		if (p->p_flags & PF_W)
			continue;
		add_end(elf, ends, last);
		add_end(elf, ends, p->p_vaddr + p->p_memsz);
	}
}

/* Does a direct branch of the function lead to @target? */
static bool is_target(const struct mp_elf *elf, const struct mp_fde *fde, uint64_t target)
{
	struct mp_insn insn = {0};

	for (uint64_t off = 0; off < fde->size; off += insn.len) {
		const uint8_t *bytes = mp_elf_bytes(elf, fde->start + off, fde->size - off);

		if (!bytes || mp_insn_decode(bytes, fde->size - off, fde->start + off, &insn))
			return false;
		if (insn.kind != MP_INSN_OTHER && !insn.rip_relative && insn.target == target)
			return true;
	}
	return false;
}

static bool goes_on(const struct mp_insn *insn)
{
	return insn->kind != MP_INSN_JUMP && insn->kind != MP_INSN_IJUMP &&
	       insn->kind != MP_INSN_RET && insn->kind != MP_INSN_TRAP;
}

/*
 * Is the field at @at the displacement of an operand in memory (@relative), or else a constant or an absolute address? Only
 * where control comes from the start of a function with unwind information, or from a branch in it, it is known where
 * instructions begin. Other code is believed to have such a field, and so is all code behind MAX_OTHERS that proved to be
 * none: the work stays small.
 */
#define MAX_OTHERS 16

static bool is_field(const struct mp_elf *elf, struct ends *ends, uint64_t at, bool relative)
{
	const struct mp_fde *fde = mp_elf_fde_before(elf, at);
	uint64_t from, now;
	struct mp_insn insn;

	if (!fde || at - fde->start >= fde->size || ends->nr_others == MAX_OTHERS)
		return true;
	from = fde->start;
	for (now = from; now <= at; now += insn.len) {
		uint64_t left = fde->start + fde->size - now;
		const uint8_t *bytes = mp_elf_bytes(elf, now, left);

		if (!bytes || mp_insn_decode(bytes, left, now, &insn))
			return true;
		if (!goes_on(&insn))
			from = now + insn.len;
	}
	now -= insn.len;
	if (relative ? insn.rip_relative && at - now == insn.disp_off
		     : (insn.imm_size && at - now == insn.imm_off) ||
			       (insn.mem_disp_off && at - now == insn.mem_disp_off))
		return true;
	ends->nr_others++;
	return from > at || (from != fde->start && !is_target(elf, fde, from));
}

static bool is_operation(uint8_t opcode)
{
	return opcode == 0x81 || opcode == 0xc7;
}

/*
 * Is the field of 4 bytes at @p an operand that names such an end? @at: its address. At least FIELD_BEFORE bytes
 * stand before it.
 */
#define FIELD_BEFORE 7

static bool field_names_end(const struct mp_elf *elf, struct ends *ends, const uint8_t *p,
			    uint64_t at)
{
	bool absolute = p[-1] == 0x25 && (p[-2] & 0xc7) == 0x04;
	int32_t field;

	memcpy(&field, p, sizeof(field));
	if ((p[-1] & 0xc7) == 0x05 && !absolute &&
	    is_end(ends, at + 4 + (uint64_t)(int64_t)field) && is_field(elf, ends, at, true))
		return true;
	if (elf->ehdr.e_type != ET_EXEC || field <= 0 || !is_end(ends, (uint64_t)field) ||
	    !is_field(elf, ends, at, false))
		return false;
	/* mov $, %reg; add $, %eax and its like; push $ */
	if (absolute || (p[-1] & 0xf8) == 0xb8 || (p[-1] & 0xc7) == 0x05 || p[-1] == 0x68)
		return true;
	/* Operations with a constant, on a register or on memory by any form of an address. */
	return is_operation(p[-2]) || is_operation(p[-3]) || is_operation(p[-4]) ||
	       is_operation(p[-6]) || is_operation(p[-7]);
}

/* The filter below asks for so many fields at once, of which each begins a byte behind the one before. */
#define FIELDS 16

typedef uint32_t four_numbers __attribute__((vector_size(16)));
typedef int32_t four_signed __attribute__((vector_size(16)));

/* The four fields at @p, with @more added. */
static inline four_numbers fields_at(const uint8_t *p, four_numbers more)
{
	four_numbers fields;

	memcpy(&fields, p, sizeof(fields));
	return fields + more;
}

/*
 * May one of the FIELDS fields from @p on name an end? Asks only if the lower 32 bits of a value fit: very few do. A
 * number is at most @limit if it is so as a signed one when 2^31 is added to both.
 */
static inline bool may_name_end(const struct ends *ends, const uint8_t *p, uint64_t at, bool fixed)
{
	const uint32_t half = UINT32_C(1) << 31;
	uint64_t span = ends->high - ends->low, all[2];
	uint32_t more = half - (uint32_t)ends->low;
	int32_t limit = (int32_t)((span > UINT32_MAX ? UINT32_MAX : (uint32_t)span) + half);
	four_numbers behind = (four_numbers){4, 8, 12, 16} + ((uint32_t)at + more);
	four_numbers number = (four_numbers){0} + more;
	four_signed above = (four_signed)fields_at(p, behind) > limit;

	above &= (four_signed)fields_at(p + 1, behind + 1) > limit;
	above &= (four_signed)fields_at(p + 2, behind + 2) > limit;
	above &= (four_signed)fields_at(p + 3, behind + 3) > limit;
	if (fixed) {
		above &= (four_signed)fields_at(p, number) > limit;
		above &= (four_signed)fields_at(p + 1, number) > limit;
		above &= (four_signed)fields_at(p + 2, number) > limit;
		above &= (four_signed)fields_at(p + 3, number) > limit;
	}
	memcpy(all, &above, sizeof(all));
	return (all[0] & all[1]) != UINT64_MAX;
}

static bool code_names_end(const struct mp_elf *elf, const struct mp_section *sec,
			   struct ends *ends)
{
	const uint8_t *p = sec->type == SHT_NOBITS ? NULL
						   : mp_elf_bytes(elf, sec->vaddr, sec->size);
	bool found = false, fixed = elf->ehdr.e_type == ET_EXEC;
	uint64_t from = 0;

	for (uint64_t k = FIELD_BEFORE; p && ends->nr && !found && k + 4 <= sec->size;) {
		uint64_t next = k + FIELDS;

		if (next + 3 > sec->size)
			next = sec->size - 3;
		else if (!may_name_end(ends, p + k, sec->vaddr + k, fixed))
			k = next;
		for (; !found && k < next; k++)
			found = field_names_end(elf, ends, p + k, sec->vaddr + k);
		if (k - from >= MP_ELF_READ_AT_ONCE) {
			mp_elf_drop_bytes(elf, p + from, k - from);
			from = k;
		}
	}
	if (p)
		mp_elf_drop_bytes(elf, p + from, sec->size - from);
	return found;
}

static bool data_names_end(const struct mp_elf *elf, const struct mp_section *sec,
			   const struct ends *ends)
{
	const uint8_t *p = mp_elf_bytes(elf, sec->vaddr, sec->size);

	for (uint64_t k = -sec->vaddr & 7; p && k + 8 <= sec->size; k += 8) {
		uint64_t word;

		memcpy(&word, p + k, sizeof(word));
		if (is_end(ends, word))
			return true;
	}
	return false;
}

/* Does an operand, or a word of data, hold one of these addresses? */
static bool names_end(const struct mp_elf *elf, struct ends *ends)
{
	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		const struct mp_section *sec = &elf->sections[i];

		if (is_code(sec) ? code_names_end(elf, sec, ends)
				 : elf->ehdr.e_type == ET_EXEC && sec->type == SHT_PROGBITS &&
					   sec->flags & SHF_ALLOC && data_names_end(elf, sec, ends))
			return true;
	}
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++) {
		const struct mp_reloc *r = &elf->dyn_relocs[i];

		if ((r->type == R_X86_64_RELATIVE || r->type == R_X86_64_64 ||
		     r->type == R_X86_64_GLOB_DAT) &&
		    is_end(ends, r->sym_value + (uint64_t)r->addend))
			return true;
	}
	return false;
}

/* ---- files --------------------------------------------------------------------------------- */

static bool imports(const struct mp_elf *elf, const char *const *names)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		for (uint32_t k = 0; names[k]; k++)
			if (elf->symbols[i].dynamic && elf->symbols[i].shndx == SHN_UNDEF &&
			    elf->symbols[i].name && !strcmp(elf->symbols[i].name, names[k]))
				return true;
	return false;
}

/*
 * The kernel lets the program break begin behind the last segment: a new one would move it. Some programs expect it
 * where their own memory ends: those that were dumped into a file with their heap (.bss is empty then, and the last
 * segment comes from the file as a whole), and those that name this end and move the break themselves.
 */
static bool heap_goes_on(const struct mp_elf *elf)
{
	static const char *const breaks[] = {"sbrk", "brk", NULL};
	const struct mp_section *bss = mp_elf_section(elf, ".bss");
	const Elf64_Phdr *last = NULL;
	struct ends ends = {.nr = 0};

	for (uint32_t i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_LOAD &&
		    (!last || elf->phdrs[i].p_vaddr >= last->p_vaddr))
			last = &elf->phdrs[i];
	if (!last || !(last->p_flags & PF_W))
		return false;
	if (elf->ehdr.e_type == ET_EXEC && bss && !bss->size && last->p_filesz == last->p_memsz)
		return true;
	if (!imports(elf, breaks))
		return false;
	/* The linker may round the end, and programs round it to a page by adding 4095 first. */
	add_end(elf, &ends, last->p_vaddr + last->p_memsz);
	add_end(elf, &ends, (last->p_vaddr + last->p_memsz + 7) & ~UINT64_C(7));
	add_end(elf, &ends, last->p_vaddr + last->p_memsz + 0xfff);
	add_end(elf, &ends, ((last->p_vaddr + last->p_memsz + 7) & ~UINT64_C(7)) + 0xfff);
	return names_end(elf, &ends);
}

int me_ranges_file(const struct mp_elf *elf, struct mp_err *err)
{
	static const char *const counters[] = {"mcount", "_mcount", "__fentry__", NULL};
	/* Such a program hands it the end of its code: to be profiled by time, without mcount. */
	static const char *const timed[] = {"monstartup", NULL};
	struct ends ends = {.nr = 0};

	if (heap_goes_on(elf))
		return mp_err_set(err, EPERM,
				  "its heap begins where its memory ends: a new segment would move "
				  "the program break");
	if (imports(elf, counters))
		return mp_err_set(err, EPERM,
				  "compiled with -pg: gprof counts no calls between copies");
	if (imports(elf, timed))
		return 0;
	find_code_ends(elf, &ends);
	if (names_end(elf, &ends))
		return mp_err_set(err, EPERM,
				  "it asks where its code ends (etext), and copies lie behind");
	return 0;
}

/* ---- functions ----------------------------------------------------------------------------- */

static bool is_c_name(const char *name)
{
	if (!*name || (*name >= '0' && *name <= '9'))
		return false;
	for (; *name; name++)
		if (*name != '_' && !(*name >= '0' && *name <= '9') &&
		    !(*name >= 'a' && *name <= 'z') && !(*name >= 'A' && *name <= 'Z'))
			return false;
	return true;
}

bool me_ranges_section(const struct mp_section *section)
{
	return is_c_name(section->name) && is_code(section);
}

/* Tables of code that is overwritten while the program runs. Their fields need not be aligned. */
static bool lists_patched_code(const char *name)
{
	static const char *const names[] = {"__patchable_function_entries", "xray_instr_map",
					    "xray_fn_idx", "__jump_table", "__mcount_loc"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

struct places {
	const struct mp_cfg *cfg;
	void (*found)(void *ctx, uint64_t vaddr);
	void *ctx;
};

/* A field that names a function's entry may be a pointer. One that names an instruction inside a function is a place. */
static void found_field(const struct places *x, uint64_t vaddr, bool patched)
{
	uint32_t func = mp_cfg_func_at(x->cfg, vaddr);

	if (func != MP_NONE && (patched || x->cfg->funcs[func].vaddr != vaddr))
		x->found(x->ctx, vaddr);
}

/*
 * A field is an address (a word, or what the loader puts there), or a distance from itself: XRay's since version 2 of
 * its map has 8 bytes, that of jump labels 4. A program's own table may have addresses of 4 bytes as well; where
 * relocations tell of them, other passes know these.
 */
static void read_table(const struct places *x, const struct mp_section *sec)
{
	const struct mp_elf *elf = x->cfg->elf;
	bool patched = lists_patched_code(sec->name);
	bool numbers = !patched && elf->ehdr.e_type == ET_EXEC && !elf->relinkable;
	const uint8_t *p = mp_elf_bytes(elf, sec->vaddr, sec->size);

	for (uint64_t k = 0; p && k + 4 <= sec->size; k += patched ? 1 : 4) {
		uint64_t at = sec->vaddr + k, word;
		int32_t half;

		memcpy(&half, p + k, sizeof(half));
		found_field(x, at + (uint64_t)(int64_t)half, patched);
		if (numbers)
			found_field(x, (uint32_t)half, false);
		if (k + sizeof(word) > sec->size)
			continue;
		memcpy(&word, p + k, sizeof(word));
		found_field(x, at + word, patched);
		if (numbers)
			found_field(x, word, false);
		if (patched) {
			const struct mp_reloc *r = mp_elf_dyn_reloc_at(elf, at);

			x->found(x->ctx, r ? r->sym_value + (uint64_t)r->addend : word);
		}
	}
}

void me_ranges_places(const struct mp_cfg *cfg, void (*found)(void *ctx, uint64_t vaddr), void *ctx)
{
	const struct mp_elf *elf = cfg->elf;
	const struct places x = {cfg, found, ctx};

	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		const struct mp_section *sec = &elf->sections[i];
		const struct mp_reloc *relocs;
		uint32_t nr;

		if (!(sec->flags & SHF_ALLOC) || sec->flags & SHF_EXECINSTR ||
		    sec->type == SHT_NOBITS || !is_c_name(sec->name))
			continue;
		read_table(&x, sec);
		if (!lists_patched_code(sec->name))
			continue;
		relocs = mp_elf_relocs_in(elf, sec->vaddr, sec->vaddr + sec->size, &nr);
		for (uint32_t r = 0; r < nr; r++)
			found(ctx, relocs[r].sym_value + (uint64_t)relocs[r].addend);
	}
}
