// SPDX-License-Identifier: Apache-2.0
/*
 * verify_vectors - finds the vector registers that instructions of the original name, by
 * prefixes, opcode and ModRM. Called by verify_free_registers for verify_polls.
 */
#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/stubs/verify_vectors.h"

#define ALL 0xff00u

enum {
	REX_R = 4,
	REX_B = 1,
};

/* Opcodes behind 0f with operands in vector registers. A few others are included: then more
 * registers count as named. */
static bool is_vector_opcode(unsigned int op)
{
	return op == 0x38 || op == 0x3a || (op >= 0x10 && op <= 0x17) ||
	       (op >= 0x28 && op <= 0x2f) || (op >= 0x50 && op <= 0x7f) || op == 0xc2 ||
	       (op >= 0xc4 && op <= 0xc6) || op >= 0xd0;
}

/* cvttsd2si, movmskpd, pextrw, pmovmskb: ModRM.reg is a general register. */
static bool is_general_reg(unsigned int op)
{
	return op == 0x2c || op == 0x2d || op == 0x50 || op == 0xc5 || op == 0xd7;
}

/* cvtsi2sd, movd and movq both ways, pinsrw: ModRM.rm is a general register. f3 7e is a movq
 * between vectors. */
static bool is_general_rm(unsigned int op, bool f3)
{
	return op == 0x2a || op == 0x6e || (op == 0x7e && !f3) || op == 0xc4;
}

/* fxsave, xsave, and the instructions that load what these saved. */
static bool is_whole_state(unsigned int op, unsigned int modrm)
{
	unsigned int field = modrm >> 3 & 7;

	if (modrm >> 6 == 3)
		return false;
	if (op == 0xae)
		return field == 0 || field == 1 || (field >= 4 && field <= 6);
	return op == 0xc7 && field >= 3 && field <= 5;
}

static bool is_prefix(unsigned int byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3: return true;
	default: return false;
	}
}

uint32_t vf_vectors_of(const uint8_t *b, size_t avail)
{
	const uint8_t *end = b + avail;
	unsigned int rex = 0, op, modrm;
	uint32_t mask = 0;
	bool f3 = false;

	for (; b < end && is_prefix(*b); b++)
		f3 |= *b == 0xf3;
	if (b < end && (*b & 0xf0) == 0x40)
		rex = *b++;
	if (end - b < 3)
		return 0;
	/* AVX, AVX-512 and XOP are not decoded: they count as naming all. */
	if (*b == 0xc4 || *b == 0xc5 || *b == 0x62 || (*b == 0x8f && b[1] & 0x38))
		return ALL;
	if (*b != 0x0f)
		return 0;
	op = b[1];
	modrm = b[2];
	if (is_whole_state(op, modrm))
		return ALL;
	if (!is_vector_opcode(op))
		return 0;
	if (op == 0x38 || op == 0x3a) {
		if (end - b < 4)
			return ALL;
		modrm = b[3];
	}
	if (rex & REX_R && !is_general_reg(op))
		mask |= 1u << (8 + (modrm >> 3 & 7));
	if (rex & REX_B && modrm >> 6 == 3 && !is_general_rm(op, f3))
		mask |= 1u << (8 + (modrm & 7));
	return mask;
}

uint32_t vf_named_vectors(const struct vf *vf)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < vf->o->nr_sections && mask != ALL; i++) {
		const struct mp_section *sec = &vf->o->sections[i];
		const uint8_t *bytes;
		uint64_t end = sec->vaddr + sec->size;

		if (!(sec->flags & SHF_ALLOC) || !(sec->flags & SHF_EXECINSTR) || !sec->size)
			continue;
		bytes = mp_elf_bytes(vf->o, sec->vaddr, sec->size);
		if (!bytes)
			return ALL;
		for (uint64_t at = vf_bits_next(&vf->old.grid, sec->vaddr, end); at < end;
		     at = vf_bits_next(&vf->old.grid, at + 1, end))
			mask |= vf_vectors_of(bytes + (at - sec->vaddr), end - at);
	}
	return mask;
}
