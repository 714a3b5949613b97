// SPDX-License-Identifier: Apache-2.0
/*
 * verify_ranges - finds code that others know by a range of addresses or by a table, which a copy would leave.
 *
 * Three kinds: the program names the end of its code (etext), or the end of its memory, from which it expects the
 * program break to go on; a section with code has a C name, so that linkers define its bounds; a section of data with a
 * C name holds places in code. Called by verify_scan.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/known/verify_cell.h"
#include "editor/verify/known/verify_ranges.h"
#include "editor/verify/read/verify_eh.h"

/* ---- ends ---------------------------------------------------------------------------------- */

static void add_end(struct vf *vf, uint64_t vaddr)
{
	const struct mp_elf *o = vf->o;

	for (uint32_t i = 0; i < o->nr_sections; i++)
		if (o->sections[i].flags & SHF_ALLOC &&
		    vaddr - o->sections[i].vaddr < o->sections[i].size)
			return;
	if (vf->old.nr_ends < VF_ENDS_MAX)
		vf->old.ends[vf->old.nr_ends++] = vaddr;
}

static bool holds_code(const struct mp_section *sec)
{
	return sec->size && sec->flags & SHF_ALLOC && sec->flags & SHF_EXECINSTR;
}

/* etext is the end of .fini or, without one, of .text; of the last section with code; or of a segment with code. */
static void add_code_ends(struct vf *vf, const Elf64_Phdr *ph)
{
	uint64_t reached = ph->p_vaddr, text = 0, fini = 0;

	for (uint32_t i = 0; i < vf->o->nr_sections; i++) {
		const struct mp_section *sec = &vf->o->sections[i];

		if (!holds_code(sec) || sec->vaddr < ph->p_vaddr ||
		    sec->vaddr >= ph->p_vaddr + ph->p_memsz)
			continue;
		if (sec->vaddr + sec->size > reached)
			reached = sec->vaddr + sec->size;
		if (!strcmp(sec->name, ".text"))
			text = sec->vaddr + sec->size;
		if (!strcmp(sec->name, ".fini"))
			fini = sec->vaddr + sec->size;
	}
	if (fini || text)
		add_end(vf, fini ? fini : text);
	/* A writable segment ends with its data (_end), not with its code. */
	if (ph->p_flags & PF_W)
		return;
	add_end(vf, reached);
	add_end(vf, ph->p_vaddr + ph->p_memsz);
}

static const Elf64_Phdr *last_segment(const struct mp_elf *o)
{
	const Elf64_Phdr *last = NULL;

	for (uint32_t i = 0; i < o->nr_phdrs; i++)
		if (o->phdrs[i].p_type == PT_LOAD &&
		    (!last || o->phdrs[i].p_vaddr >= last->p_vaddr))
			last = &o->phdrs[i];
	return last;
}

/* The end of memory, perhaps rounded to 8 by the linker, perhaps with 4095 added, as programs round it to a page. */
#define MEMORY_END (1U << 31)

static uint32_t bit_of(const struct vf *vf, uint64_t vaddr)
{
	uint64_t end = vf->old.memory_end, rounded = (end + 7) & ~7ULL;

	if (!vf_may_be_end(vf, vaddr))
		return 0;
	if (end &&
	    (vaddr == end || vaddr == rounded || vaddr == end + 4095 || vaddr == rounded + 4095))
		return MEMORY_END;
	for (uint32_t i = 0; i < vf->old.nr_ends; i++)
		if (vf->old.ends[i] == vaddr)
			return 1U << i;
	return 0;
}

static bool is_pointer(uint32_t type)
{
	return type == R_X86_64_RELATIVE || type == R_X86_64_64 || type == R_X86_64_GLOB_DAT;
}

/* Words of data: those that the loader fills in, and, in a file with fixed addresses, all others. */
static void note_words(struct vf *vf)
{
	const struct mp_elf *o = vf->o;

	for (uint32_t i = 0; i < o->nr_dyn_relocs; i++)
		if (is_pointer(o->dyn_relocs[i].type))
			vf->old.named_ends |= bit_of(vf, o->dyn_relocs[i].sym_value +
								 (uint64_t)o->dyn_relocs[i].addend);
	for (uint32_t i = 0; o->ehdr.e_type == ET_EXEC && i < o->nr_sections; i++) {
		const struct mp_section *sec = &o->sections[i];
		const uint8_t *p = vf_holds_words(vf, sec) ? mp_elf_bytes(o, sec->vaddr, sec->size)
							   : NULL;

		for (uint64_t k = -sec->vaddr & 7; p && k + 8 <= sec->size; k += 8) {
			uint64_t word;

			memcpy(&word, p + k, sizeof(word));
			vf->old.named_ends |= bit_of(vf, word);
		}
	}
}

void vf_find_ends(struct vf *vf)
{
	const Elf64_Phdr *last = last_segment(vf->o);
	uint64_t high = 0;

	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++)
		if (vf->o->phdrs[i].p_type == PT_LOAD && vf->o->phdrs[i].p_flags & PF_X)
			add_code_ends(vf, &vf->o->phdrs[i]);
	if (last && last->p_flags & PF_W)
		vf->old.memory_end = last->p_vaddr + last->p_memsz;
	vf->old.ends_low = UINT64_MAX;
	for (uint32_t i = 0; i < vf->old.nr_ends; i++) {
		vf->old.ends_low = vf->old.ends[i] < vf->old.ends_low ? vf->old.ends[i]
								      : vf->old.ends_low;
		high = vf->old.ends[i] > high ? vf->old.ends[i] : high;
	}
	vf->old.ends_span = vf->old.nr_ends ? high - vf->old.ends_low : 0;
	note_words(vf);
}

/* Is the field at the instruction's end the constant of a move, of arithmetic with %rax, of a push, or of an
 * operation on a register or on memory? */
static bool is_constant(const uint8_t *p, uint32_t off)
{
	uint8_t before = off ? p[off - 1] : 0;

	if ((before & 0xf8) == 0xb8 || (before & 0xc7) == 0x05 || before == 0x68)
		return true;
	for (uint32_t k = 2; k <= 7 && k <= off; k++)
		if (k != 5 && (p[off - k] == 0x81 || p[off - k] == 0xc7))
			return true;
	return false;
}

void vf_note_end(struct vf *vf, uint64_t at, const struct vf_insn *insn)
{
	uint32_t named = 0;
	const uint8_t *p;

	if (insn->disp_off && insn->disp_off + 4 == insn->len)
		named = bit_of(vf, insn->target);
	if (vf->o->ehdr.e_type == ET_EXEC && insn->imm_size >= 4 &&
	    insn->imm_off + insn->imm_size == insn->len) {
		p = mp_elf_bytes(vf->o, at, insn->len);
		if (p && is_constant(p, insn->imm_off))
			named |= bit_of(vf, (uint64_t)insn->imm);
	}
	if (named)
		__atomic_fetch_or(&vf->old.named_ends, named, __ATOMIC_RELAXED);
}

static bool is_imported(const struct mp_elf *o, const char *name)
{
	for (uint32_t i = 0; i < o->nr_symbols; i++)
		if (o->symbols[i].dynamic && o->symbols[i].shndx == SHN_UNDEF &&
		    o->symbols[i].name && !strcmp(o->symbols[i].name, name))
			return true;
	return false;
}

/* Was the program written into a file with its heap? Then the last segment holds no zeros of its own. */
static bool is_dumped(const struct mp_elf *o)
{
	const Elf64_Phdr *last = last_segment(o);
	const struct mp_section *bss = mp_elf_section(o, ".bss");

	return o->ehdr.e_type == ET_EXEC && last && last->p_flags & PF_W &&
	       last->p_filesz == last->p_memsz && bss && !bss->size;
}

int vf_check_ranges(const struct vf *vf)
{
	const struct mp_elf *o = vf->o;

	/* A program that imports monstartup() hands it this end: to be profiled by time, without mcount. */
	for (uint32_t i = 0; i < vf->old.nr_ends && !is_imported(o, "monstartup"); i++)
		if (vf->old.named_ends >> i & 1)
			return vf_refuse(vf, vf->old.ends[i],
					 "the program asks where its code ends, and copies lie "
					 "behind");
	if (vf->old.named_ends & MEMORY_END && (is_imported(o, "sbrk") || is_imported(o, "brk")))
		return vf_refuse(vf, vf->old.memory_end,
				 "the program break begins elsewhere, and the program names the "
				 "end of its memory");
	if (is_dumped(o))
		return vf_refuse(vf, vf->old.image_end,
				 "the program break begins elsewhere, and a dumped heap ends "
				 "here");
	if (is_imported(o, "mcount") || is_imported(o, "_mcount") || is_imported(o, "__fentry__"))
		return vf_refuse(vf, vf->old.text_start, "gprof's counters leave copies out");
	return 0;
}

/* ---- functions ----------------------------------------------------------------------------- */

/* Linkers define __start_NAME and __stop_NAME for sections with such names. */
static bool has_c_name(const struct mp_section *sec)
{
	static const char first[] = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t len = strlen(sec->name);

	return len && strchr(first, sec->name[0]) &&
	       strspn(sec->name + 1,
		      "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == len - 1;
}

static void mark_section(const struct vf *vf, const struct mp_section *sec)
{
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++)
		if (vf->old.eh.fdes[i].start - sec->vaddr < sec->size)
			vf->old.eh.fdes[i].flags |= VF_FDE_KNOWN;
}

static void mark_place(const struct vf *vf, uint64_t vaddr)
{
	struct vf_fde *fde = vf_is_text(vf, vaddr) ? vf_eh_find(&vf->old.eh, vaddr) : NULL;

	if (fde)
		fde->flags |= VF_FDE_KNOWN;
}

/* A field of a program's own table names @vaddr. If an instruction inside a function is there, the function stays. */
static void mark_inside(const struct vf *vf, uint64_t vaddr)
{
	struct vf_fde *fde = vf_bits_get(&vf->old.grid, vaddr) ? vf_eh_find(&vf->old.eh, vaddr)
							       : NULL;

	if (fde && fde->start != vaddr)
		fde->flags |= VF_FDE_KNOWN;
}

static int64_t signed_at(const uint8_t *p, unsigned int size)
{
	int64_t whole;
	int32_t half;

	if (size == 8) {
		memcpy(&whole, p, sizeof(whole));
		return whole;
	}
	memcpy(&half, p, sizeof(half));
	return half;
}

/* Tables of code that is overwritten: any field of any of their versions may be at any byte. */
static void read_patched(const struct vf *vf, const struct mp_section *sec, const uint8_t *p)
{
	for (uint64_t k = 0; k + 4 <= sec->size; k++) {
		const struct mp_reloc *rel = mp_elf_dyn_reloc_at(vf->o, sec->vaddr + k);

		mark_place(vf, sec->vaddr + k + (uint64_t)signed_at(p + k, 4));
		if (rel)
			mark_place(vf, rel->sym_value + (uint64_t)rel->addend);
		if (k + 8 > sec->size)
			continue;
		mark_place(vf, (uint64_t)signed_at(p + k, 8));
		mark_place(vf, sec->vaddr + k + (uint64_t)signed_at(p + k, 8));
	}
}

/* A field is a distance from itself or, where no relocation tells of addresses, an address. */
static void read_own(const struct vf *vf, const struct mp_section *sec, const uint8_t *p)
{
	bool addresses = vf->o->ehdr.e_type == ET_EXEC && !vf->o->relinkable;

	for (uint64_t k = 0; k + 4 <= sec->size; k += 4) {
		mark_inside(vf, sec->vaddr + k + (uint64_t)signed_at(p + k, 4));
		if (addresses)
			mark_inside(vf, (uint32_t)signed_at(p + k, 4));
		if (k + 8 > sec->size)
			continue;
		mark_inside(vf, sec->vaddr + k + (uint64_t)signed_at(p + k, 8));
		if (addresses)
			mark_inside(vf, (uint64_t)signed_at(p + k, 8));
	}
}

void vf_find_known(const struct vf *vf)
{
	static const char patched[] = " __patchable_function_entries xray_instr_map xray_fn_idx "
				      "__jump_table __mcount_loc ";

	for (uint32_t i = 0; i < vf->o->nr_sections; i++) {
		const struct mp_section *sec = &vf->o->sections[i];
		const uint8_t *p;
		const char *at;

		if (!(sec->flags & SHF_ALLOC) || !has_c_name(sec))
			continue;
		if (holds_code(sec)) {
			mark_section(vf, sec);
			continue;
		}
		p = sec->type == SHT_NOBITS ? NULL : mp_elf_bytes(vf->o, sec->vaddr, sec->size);
		if (!p)
			continue;
		at = strstr(patched, sec->name);
		if (at && at[-1] == ' ' && at[strlen(sec->name)] == ' ')
			read_patched(vf, sec, p);
		else
			read_own(vf, sec, p);
	}
}

#define ROUND 4096

/*
 * Does the instruction before @at put a number into a register that the one at @at compares, all 8 bytes of it? Code
 * that is not optimized compares numbers so.
 */
static bool is_compared(const struct vf *vf, const struct vf_full *f, uint64_t at, uint64_t end)
{
	ZydisRegister whole;
	struct vf_full next;

	if (f->z.mnemonic != ZYDIS_MNEMONIC_MOV || f->op[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    f->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !vf_decode_full(vf, at, end, &next) ||
	    next.z.mnemonic != ZYDIS_MNEMONIC_CMP || next.op[0].size != 64)
		return false;
	whole = ZydisRegisterGetLargestEnclosing(f->z.machine_mode, f->op[0].reg.value);
	for (int i = 0; i < 2; i++)
		if (next.op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && next.op[i].reg.value == whole)
			return true;
	return false;
}

/*
 * Does the operand certainly name an address? In a file with fixed addresses, others are numbers as well, of which few
 * that are compared with 8 bytes equal an address by chance: above all limits, which are round (GCC often has 10 MiB - 1).
 */
static bool is_sure(const struct vf *vf, const struct vf_ref *name, uint64_t to)
{
	const struct vf_fde *user = vf_eh_find(&vf->old.eh, name->insn);
	uint64_t next;
	struct vf_full f;

	if (vf->o->relinkable)
		return true;
	if (!user || !vf_decode_full(vf, name->insn, user->start + user->size, &f))
		return false;
	/* Compilers write numbers of 4 bytes so only if they are addresses, or distances from the GOT. */
	if (f.z.raw.imm[0].size == 64)
		return true;
	for (uint8_t i = 0; i < f.z.operand_count; i++)
		if (f.op[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    f.op[i].mem.base == ZYDIS_REGISTER_RIP &&
		    name->insn + f.z.length + (uint64_t)f.op[i].mem.disp.value == name->to)
			return true;
	next = name->insn + f.z.length;
	return (to + 1) % ROUND > 1 && ((f.z.mnemonic == ZYDIS_MNEMONIC_CMP && f.op[0].size == 64 &&
					 f.op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) ||
					is_compared(vf, &f, next, user->start + user->size));
}

/* Does a direct jump of @from lead inside @to? */
static bool jumps_inside(const struct vf *vf, const struct vf_fde *from, const struct vf_fde *to)
{
	const uint8_t *p = mp_elf_bytes(vf->o, from->start, from->size);
	struct vf_insn insn;

	for (uint64_t k = 0; p && k < from->size; k += insn.len) {
		if (!vf_decode(p + k, from->size - k, from->start + k, &insn))
			return false;
		if ((insn.kind == VF_JCC || insn.kind == VF_JMP) && insn.target != to->start &&
		    insn.target - to->start < to->size)
			return true;
	}
	return false;
}

/* Two functions, and whether one is the other's part for cold code. */
struct pair {
	const struct vf_fde *user, *fde;
	bool one;
	uint64_t read; /* bytes of code that were read for all pairs */
};

/* Bytes of code to read for all pairs: no honest file needs so many. */
#define MAX_READ (UINT64_C(1) << 30)

/* Are both one function, of which one is the part for cold code? Control goes from one into the other. */
static bool are_one(const struct vf *vf, struct pair *pair, const struct vf_fde *user,
		    const struct vf_fde *fde)
{
	if (pair->user == user && pair->fde == fde)
		return pair->one;
	pair->read += user->size + fde->size;
	pair->user = user;
	pair->fde = fde;
	pair->one = pair->read <= MAX_READ &&
		    (jumps_inside(vf, user, fde) || jumps_inside(vf, fde, user));
	return pair->one;
}

/*
 * A handler of faults may ask whether an instruction lies between two places of another function, and go on at one of
 * them, or may know one such place. In a file with fixed addresses operands are numbers as well, of which a single one
 * may be a place by chance: there, mostly, two operands of one function must name such places. Labels of a function
 * that jumps to them, also in its part for cold code, are another check's matter.
 */
int vf_find_bounds(const struct vf *vf)
{
	const struct vf_fde *user = NULL;
	struct pair pair = {0};
	/* For each FDE: the last function that named a place in it, and the first place of these. */
	struct {
		const struct vf_fde *by;
		uint64_t to;
	} *named = calloc((size_t)vf->old.eh.nr_fdes + 1, sizeof(*named)), *last;

	if (!named)
		return -ENOMEM;
	for (size_t i = 0; i < vf->old.names.nr; i++) {
		uint64_t insn = vf->old.names.list[i].insn;
		uint64_t to = vf_named_code(vf, &vf->old.names.list[i]);
		struct vf_fde *fde =
			to && vf_bits_get(&vf->old.grid, to) ? vf_eh_find(&vf->old.eh, to) : NULL;

		if (!user || insn - user->start >= user->size)
			user = vf_eh_find(&vf->old.eh, insn);
		if (!fde || fde == user || fde->start == to || fde->flags & VF_FDE_PLACE)
			continue;
		last = &named[fde - vf->old.eh.fdes];
		if (!user || user->flags & VF_FDE_IJMP ||
		    !is_sure(vf, &vf->old.names.list[i], to)) {
			if (last->by != user) {
				last->by = user;
				last->to = to;
			}
			if (last->to == to)
				continue;
		}
		if (!(fde->flags & VF_FDE_IJMP) || !user || !are_one(vf, &pair, user, fde))
			fde->flags |= VF_FDE_PLACE;
	}
	free(named);
	return 0;
}
