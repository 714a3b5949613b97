// SPDX-License-Identifier: Apache-2.0
/*
 * elf_personality_code - recognises a nameless personality routine by its code and its
 * exception tables.
 *
 * A CIE tells that the code is a personality routine; this file finds out of which language. The
 * routine of C++ compares with the class of the compiler's C++ exceptions. The routine of C has no
 * such class, checks the version, returns three codes that the ABI fixes, and reads numbers of
 * variable length. Rust's routine checks the version, too, and calls five functions of the unwinder
 * by name, in a file that holds the paths of Rust's library. Without these names (in a static file)
 * Rust's routine is not recognised.
 *
 * Each exception table of the routine must be readable as one of that language. Called by
 * elf_personality for files without symbols.
 */
#include <string.h>

#include "libprof/base/dwarf_cursor.h"
#include "libprof/elf/elf_private.h"
#include "libprof/insn/insn.h"

/* "GNUCC++" and "CLNGC++", and a byte that marks dependent exceptions. */
#define CLASS_GNU   UINT64_C(0x474e5543432b2b00)
#define CLASS_CLANG UINT64_C(0x434c4e47432b2b00)

enum trait {
	ASKS_CXX = 1 << 0,	/* holds the class of C++ exceptions, or subtracts it */
	ASKS_VERSION = 1 << 1,	/* compares its first parameter with 1 */
	ANSWERS_3 = 1 << 2,	/* _URC_FATAL_PHASE1_ERROR */
	ANSWERS_7 = 1 << 3,	/* _URC_INSTALL_CONTEXT */
	ANSWERS_8 = 1 << 4,	/* _URC_CONTINUE_UNWIND */
	READS_NUMBERS = 1 << 5, /* keeps 7 bits of a byte, and counts by 7 */
	COUNTS_BY_7 = 1 << 6,
	ANSWERS_2 = 1 << 7,   /* _URC_FATAL_PHASE2_ERROR: Rust's returns it, C's does not */
	CALLS_FIRST = 1 << 8, /* calls unwinder[0]; the next bits are for the others */
};

#define OF_C (ASKS_VERSION | ANSWERS_3 | ANSWERS_7 | ANSWERS_8 | READS_NUMBERS | COUNTS_BY_7)

/* The functions that Rust's routine calls. */
static const char *const unwinder[] = {
	"_Unwind_GetLanguageSpecificData",
	"_Unwind_GetIPInfo",
	"_Unwind_GetRegionStart",
	"_Unwind_SetGR",
	"_Unwind_SetIP",
};

#define NR_UNWINDER (sizeof(unwinder) / sizeof(unwinder[0]))
#define OF_RUST	    (ASKS_VERSION | ((1u << NR_UNWINDER) - 1) * CALLS_FIRST)

/* The panic messages of Rust's library name its source files. */
static bool holds_rust_paths(const struct mp_elf *elf)
{
	static const char *const paths[] = {"library/core/src/", "library/std/src/",
					    "library/alloc/src/"};

	for (size_t i = 0; elf->data && i < sizeof(paths) / sizeof(paths[0]); i++)
		if (memmem(elf->data, elf->size, paths[i], strlen(paths[i])))
			return true;
	return false;
}

/* The operand at @slot may be a pointer that the loader sets to a function of the unwinder. */
static unsigned int slot_trait(const struct mp_elf *elf, uint64_t slot)
{
	const struct mp_reloc *reloc = mp_elf_dyn_reloc_at(elf, slot);
	const char *name = reloc && reloc->sym ? mp_elf_dynamic_name(elf, reloc->sym) : NULL;

	for (size_t i = 0; name && i < NR_UNWINDER; i++)
		if (!strcmp(name, unwinder[i]))
			return CALLS_FIRST << i;
	return 0;
}

static unsigned int class_trait(uint64_t value)
{
	uint64_t taken_off = -value;

	value &= ~UINT64_C(0xff);
	taken_off &= ~UINT64_C(0xff);
	return value == CLASS_GNU || value == CLASS_CLANG || taken_off == CLASS_GNU ||
			       taken_off == CLASS_CLANG
		       ? ASKS_CXX
		       : 0;
}

static unsigned int answer_trait(uint8_t answer)
{
	switch (answer) {
	case 2: return ANSWERS_2;
	case 3: return ANSWERS_3;
	case 7: return ANSWERS_7;
	case 8: return ANSWERS_8;
	default: return 0;
	}
}

static unsigned int insn_traits(const uint8_t *p, const struct mp_insn *insn)
{
	unsigned int traits = 0;
	uint64_t value;

	if (insn->imm_size == 8) {
		memcpy(&value, p + insn->imm_off, sizeof(value));
		traits |= class_trait(value);
	}
	if (insn->len == 5 && *p == 0xb8 && !p[2] && !p[3] && !p[4]) /* mov $n, %eax */
		traits |= answer_trait(p[1]);
	if (insn->len > 3 && (*p & 0xf0) == 0x40)
		p++;
	if (insn->len < 3 || p[0] != 0x83 || (p[1] & 0xc0) != 0xc0)
		return traits;
	if (p[1] == 0xff && p[2] == 1)
		traits |= ASKS_VERSION;
	if ((p[1] & 0x38) == 0x20 && p[2] == 0x7f)
		traits |= READS_NUMBERS;
	if ((p[1] & 0x38) == 0x00 && p[2] == 7)
		traits |= COUNTS_BY_7;
	return traits;
}

static unsigned int routine_traits(const struct mp_elf *elf, uint64_t vaddr)
{
	unsigned int traits = 0;

	for (uint32_t i = 0; i < elf->nr_fdes; i++) {
		const struct mp_fde *fde = &elf->fdes[i];
		const uint8_t *bytes;

		if (fde->start != vaddr)
			continue;
		bytes = mp_elf_bytes(elf, fde->start, fde->size);
		for (uint64_t off = 0; bytes && off < fde->size;) {
			struct mp_insn insn;

			if (mp_insn_decode(bytes + off, fde->size - off, vaddr + off, &insn))
				return 0;
			traits |= insn_traits(bytes + off, &insn);
			if (insn.rip_relative)
				traits |= slot_trait(elf, insn.target);
			off += insn.len;
		}
	}
	return traits;
}

/* True if the exception table of @fde is one of C (@plain: call sites alone), or of C++ or Rust. */
static bool reads_as_table(const struct mp_elf *elf, const struct mp_fde *fde, bool plain)
{
	const struct mp_section *sec = mp_elf_section_at(elf, fde->lsda);
	uint64_t room = sec ? sec->size - (fde->lsda - sec->vaddr) : 0, length, last = 0;
	struct mp_cursor c = {.p = mp_elf_bytes(elf, fde->lsda, room), .vaddr = fde->lsda};
	uint8_t encoding;

	if (!room || !c.p)
		return false;
	c.end = c.p + room;
	encoding = (uint8_t)mp_cursor_fixed(&c, 1);
	if (encoding != MP_EH_PE_OMIT)
		mp_cursor_pointer(&c, encoding & 0x0f, 0);
	encoding = (uint8_t)mp_cursor_fixed(&c, 1);
	if (encoding != MP_EH_PE_OMIT && (plain || mp_cursor_uleb(&c) > (uint64_t)(c.end - c.p)))
		return false;
	encoding = (uint8_t)mp_cursor_fixed(&c, 1);
	length = mp_cursor_uleb(&c);
	if (c.bad || length > (uint64_t)(c.end - c.p) || (encoding & 0xf0))
		return false;
	c.end = c.p + length;
	while (c.p < c.end && !c.bad) {
		uint64_t start = mp_cursor_pointer(&c, encoding, 0);
		uint64_t size = mp_cursor_pointer(&c, encoding, 0);
		uint64_t action;

		mp_cursor_pointer(&c, encoding, 0);
		action = mp_cursor_uleb(&c);
		if (start < last || start > fde->size || size > fde->size - start ||
		    (plain && action))
			return false;
		last = start + size;
	}
	return !c.bad;
}

/* True if every exception table of the routine that @of uses is readable. */
static bool tables_read(const struct mp_elf *elf, const struct mp_fde *of, bool plain)
{
	bool any = false;

	for (uint32_t i = 0; i < elf->nr_fdes; i++) {
		const struct mp_fde *fde = &elf->fdes[i];

		if (!fde->lsda || fde->personality != of->personality ||
		    fde->personality_indirect != of->personality_indirect)
			continue;
		if (!reads_as_table(elf, fde, plain))
			return false;
		any = true;
	}
	return any;
}

const char *mp_elf_personality_by_code(const struct mp_elf *elf, const struct mp_fde *of,
				       uint64_t vaddr)
{
	unsigned int traits = routine_traits(elf, vaddr);

	if (traits & ASKS_CXX)
		return tables_read(elf, of, false) ? "__gxx_personality_v0" : NULL;
	if (!(traits & ASKS_VERSION))
		return NULL;
	/* Rust's routine resembles that of C: in a file with Rust's library, do not look for C's. */
	if (holds_rust_paths(elf))
		return (traits & OF_RUST) == OF_RUST && tables_read(elf, of, false)
			       ? "rust_eh_personality"
			       : NULL;
	return (traits & OF_C) == OF_C && !(traits & ANSWERS_2) && tables_read(elf, of, true)
		       ? "__gcc_personality_v0"
		       : NULL;
}

const char *mp_elf_dynamic_name(const struct mp_elf *elf, uint32_t index)
{
	for (uint32_t i = elf->nr_symbols; i-- > 0 && elf->symbols[i].dynamic;) {
		if (elf->symbols[i].index == index)
			return elf->symbols[i].name;
	}
	return NULL;
}
