// SPDX-License-Identifier: Apache-2.0
/*
 * gs_use - searches all executable sections for instructions that use %gs or its base,
 * and for system calls arch_prctl(ARCH_SET_GS, base).
 */
#include "editor/evidence/gs_use.h"

#include <asm/prctl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "libprof/insn/insn.h"

/* The instructions that load number and code of such a call are less than this many bytes apart. */
#define CALL_REACH 64

struct seen {
	uint64_t number, code; /* address of the last instruction with this operand; 0: none yet */
};

/* Does instruction @b have a %gs prefix, write %gs, or read or write its base? */
static bool names_gs(const uint8_t *b, uint32_t len)
{
	const uint8_t *end = b + len;
	bool f3 = false;

	for (; b < end; b++) {
		if (*b == 0x65)
			return true;
		if (*b == 0xf3)
			f3 = true;
		else if (*b != 0x66 && *b != 0xf2 && *b != 0x2e && *b != 0x36 && *b != 0x3e &&
			 *b != 0x26 && *b != 0x64 && *b != 0x67 && *b != 0xf0)
			break;
	}
	if (b < end && (*b & 0xf0) == 0x40)
		b++;
	if (end - b >= 2 && *b == 0x8e) /* mov to a segment register */
		return (b[1] >> 3 & 7) == 5;
	if (end - b < 2 || *b != 0x0f)
		return false;
	if (b[1] == 0xa9 || b[1] == 0xb5) /* pop %gs, lgs */
		return true;
	if (end - b < 3)
		return false;
	/* rdgsbase, wrgsbase, swapgs */
	return (b[1] == 0xae && f3 && b[2] >= 0xc0 && (b[2] & 0x28) == 0x08) ||
	       (b[1] == 0x01 && b[2] == 0xf8);
}

static bool may_call_kernel(struct seen *seen, const uint8_t *b, const struct mp_insn *insn)
{
	uint32_t imm;

	if (insn->imm_size != 4)
		return false;
	memcpy(&imm, b + insn->imm_off, sizeof(imm));
	if (imm == SYS_arch_prctl)
		seen->number = insn->vaddr;
	else if (imm == ARCH_SET_GS)
		seen->code = insn->vaddr;
	else
		return false;
	return seen->number && seen->code &&
	       seen->number - seen->code + CALL_REACH <= 2 * CALL_REACH;
}

static bool is_used_in(const uint8_t *bytes, const struct mp_section *s)
{
	struct seen seen = {0};
	struct mp_insn insn;

	for (uint64_t at = 0; at < s->size; at += insn.len) {
		if (mp_insn_decode(bytes + at, s->size - at, s->vaddr + at, &insn)) {
			insn.len = 1;
			continue;
		}
		if (names_gs(bytes + at, insn.len) || may_call_kernel(&seen, bytes + at, &insn))
			return true;
	}
	return false;
}

bool me_gs_is_used(const struct mp_elf *elf)
{
	bool used = !elf->nr_sections;

	for (uint32_t i = 0; i < elf->nr_symbols && !used; i++)
		used = elf->symbols[i].name && !strcmp(elf->symbols[i].name, "arch_prctl");
	for (uint32_t i = 0; i < elf->nr_sections && !used; i++) {
		const struct mp_section *s = &elf->sections[i];
		const uint8_t *bytes;

		if (!(s->flags & SHF_EXECINSTR) || s->type != SHT_PROGBITS || !s->size)
			continue;
		bytes = mp_elf_bytes(elf, s->vaddr, s->size);
		used = !bytes || is_used_in(bytes, s);
	}
	return used;
}
