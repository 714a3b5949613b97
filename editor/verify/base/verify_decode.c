// SPDX-License-Identifier: Apache-2.0
/*
 * verify_decode - decodes one instruction for verify, from Zydis's raw fields.
 *
 * Shares nothing with libprof/insn/insn, so that two independent readings of the same bytes must
 * agree. Called by all parts of verify.
 */
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_head.h"

const ZydisDecoder *vf_full_decoder(void)
{
	static _Thread_local ZydisDecoder dec;
	static _Thread_local bool ready;

	if (!ready) {
		ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		ready = true;
	}
	return &dec;
}

bool vf_decode_full(const struct vf *vf, uint64_t at, uint64_t end, struct vf_full *f)
{
	const uint8_t *b = at < end ? mp_elf_bytes(vf->o, at, end - at) : NULL;

	return b &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(vf_full_decoder(), b, end - at, &f->z, f->op));
}

/* Minimal mode gives lengths and raw fields, which suffice here, at half the cost. */
static const ZydisDecoder *decoder(void)
{
	static _Thread_local ZydisDecoder dec;
	static _Thread_local bool ready;

	if (!ready) {
		ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		ZydisDecoderEnableMode(&dec, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
		ready = true;
	}
	return &dec;
}

static void decode_memory(const ZydisDecodedInstruction *z, uint64_t vaddr, struct vf_insn *insn)
{
	insn->base = z->raw.modrm.rm == 4 ? VF_BASE | VF_INDEX | z->raw.sib.base
					  : VF_BASE | z->raw.modrm.rm;
	if (z->raw.modrm.rm == 4 && z->raw.sib.index == 4 && !z->raw.rex.X &&
	    z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		insn->base &= (uint8_t)~VF_INDEX;
	if (z->raw.disp.size == 8)
		insn->disp8_off = z->raw.disp.offset;
	if (z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5) {
		insn->disp_off = z->raw.disp.offset;
		insn->target = vaddr + z->length + (uint64_t)z->raw.disp.value;
		for (unsigned int i = 0; i < z->raw.prefix_count; i++)
			insn->eip_relative |= z->raw.prefixes[i].value == 0x67;
	} else if (z->raw.disp.size == 32) {
		/* A base register may hold anything, even the index into a table at this
		 * address. */
		insn->abs_off = z->raw.disp.offset;
		insn->abs = z->raw.disp.value;
	}
}

static uint8_t one_byte_kind(const ZydisDecodedInstruction *z, struct vf_insn *insn)
{
	uint8_t op = z->opcode;

	if (op >= 0x70 && op <= 0x7f) {
		insn->cc = op & 15;
		return VF_JCC;
	}
	switch (op) {
	case 0xe9:
	case 0xeb: return VF_JMP;
	case 0xe8: return VF_CALL;
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3: return VF_ODD;
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcf:
	case 0xf4: return VF_STOP;
	case 0xcc: insn->int3 = true; return VF_OTHER;
	case 0x90: insn->nop = z->mnemonic == ZYDIS_MNEMONIC_NOP; return VF_OTHER;
	case 0x8d: insn->lea = true; return VF_OTHER;
	case 0xc7: return z->mnemonic == ZYDIS_MNEMONIC_XBEGIN ? VF_ODD : VF_OTHER;
	case 0xff:
		if (z->raw.modrm.reg == 2 || z->raw.modrm.reg == 3)
			return VF_ICALL;
		if (z->raw.modrm.reg == 4 || z->raw.modrm.reg == 5)
			return z->raw.modrm.mod == 3 ? VF_IJMP_REG : VF_IJMP_MEM;
		return VF_OTHER;
	default: return VF_OTHER;
	}
}

static uint8_t two_byte_kind(const ZydisDecodedInstruction *z, struct vf_insn *insn)
{
	uint8_t op = z->opcode;

	if (op >= 0x80 && op <= 0x8f) {
		insn->cc = op & 15;
		return VF_JCC;
	}
	switch (op) {
	case 0x07: /* sysret */
	case 0x35: /* sysexit */
	case 0x0b:
	case 0xb9:
	case 0xff: return VF_STOP;
	case 0x1f: insn->nop = true; return VF_OTHER;
	default: return VF_OTHER;
	}
}

static bool decode(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct vf_insn *insn,
		   ZydisDecodedInstruction *decoded)
{
	ZydisDecodedInstruction z;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder(), NULL, bytes, avail, &z)))
		return false;
	*decoded = z;
	*insn = (struct vf_insn){.len = z.length};
	if (z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY) {
		if (z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
			insn->kind = one_byte_kind(&z, insn);
		else if (z.opcode_map == ZYDIS_OPCODE_MAP_0F)
			insn->kind = two_byte_kind(&z, insn);
	}
	if ((z.attributes & ZYDIS_ATTRIB_HAS_MODRM) && z.raw.modrm.mod != 3)
		decode_memory(&z, vaddr, insn);
	for (int i = 0; i < 2; i++) {
		if (!z.raw.imm[i].size)
			continue;
		if (z.raw.imm[i].is_relative) {
			insn->rel_off = z.raw.imm[i].offset;
			insn->rel_size = z.raw.imm[i].size / 8;
			insn->target = vaddr + z.length + (uint64_t)z.raw.imm[i].value.s;
			if (insn->kind != VF_JCC && insn->kind != VF_JMP && insn->kind != VF_CALL)
				insn->kind = VF_ODD;
		} else if (!insn->imm_size) {
			insn->imm_off = z.raw.imm[i].offset;
			insn->imm_size = z.raw.imm[i].size / 8;
			insn->imm = z.raw.imm[i].value.s;
		}
	}
	/* A move between the accumulator and an address of 8 bytes names it as a constant would. */
	if (!(z.attributes & ZYDIS_ATTRIB_HAS_MODRM) && z.raw.disp.size == 64) {
		insn->imm_off = z.raw.disp.offset;
		insn->imm_size = 8;
		insn->imm = z.raw.disp.value;
	}
	/* Do not follow 16-bit relative branches: they truncate rip, and compilers emit none.
	 * Some processors treat every relative branch with prefix 0x66 as 16-bit. */
	for (unsigned int i = 0; insn->rel_size && i < z.raw.prefix_count; i++)
		if (z.raw.prefixes[i].value == 0x66 && !z.raw.rex.W)
			insn->kind = VF_ODD;
	if (insn->rel_size == 2)
		insn->kind = VF_ODD;
	return true;
}

bool vf_decode_anew(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct vf_insn *insn)
{
	ZydisDecodedInstruction z;

	return decode(bytes, avail, vaddr, insn, &z);
}

/* A cache of Zydis's answers. */
struct known {
	uint64_t head; /* the first bytes, before displacement and immediate */
	uint8_t size;  /* bytes in @head; 0: free */
	bool imm_signed;
	uint8_t form[offsetof(struct vf_insn,
			      target)]; /* the fields before @target; later ones are values */
};

/* Two entries fit in a cache line. */
_Static_assert(sizeof(struct known) == 32, "known instructions have grown");

enum {
	KNOWN_LOG2 = 14
};

static struct known *known_slot(uint64_t head)
{
	static _Thread_local struct known known[1 << KNOWN_LOG2];

	return &known[vf_head_index(head, KNOWN_LOG2)];
}

static int64_t read_signed(const uint8_t *p, uint8_t size, bool is_signed)
{
	unsigned int unused = 64 - 8 * size;
	uint64_t v = 0;

	memcpy(&v, p, size);
	return is_signed ? (int64_t)(v << unused) >> unused : (int64_t)v;
}

static bool known_find(const struct known *k, uint64_t head, const uint8_t *bytes, size_t avail,
		       uint64_t vaddr, struct vf_insn *insn)
{
	if (!k->size || (head & vf_head_mask(k->size)) != k->head)
		return false;
	memset(insn, 0, sizeof(*insn));
	memcpy(insn, k->form, sizeof(k->form));
	if (insn->len > avail)
		return false;
	if (insn->disp_off)
		insn->target =
			vaddr + insn->len + (uint64_t)read_signed(bytes + insn->disp_off, 4, true);
	else if (insn->rel_size)
		insn->target = vaddr + insn->len +
			       (uint64_t)read_signed(bytes + insn->rel_off, insn->rel_size, true);
	if (insn->abs_off)
		insn->abs = read_signed(bytes + insn->abs_off, 4, true);
	if (insn->imm_size)
		insn->imm = read_signed(bytes + insn->imm_off, insn->imm_size, k->imm_signed);
	return true;
}

static void known_put(struct known *k, uint64_t head, const ZydisDecodedInstruction *z,
		      const struct vf_insn *insn)
{
	uint8_t size = vf_head_size(z);

	/* 3DNow! has its opcode at the end; moves of control registers have no memory operand,
	 * whatever modrm says. */
	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    (z->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT && z->opcode_map != ZYDIS_OPCODE_MAP_0F) ||
	    (insn->disp_off && insn->rel_size) ||
	    (insn->target && !insn->disp_off && !insn->rel_size))
		return;
	if (!size)
		return;
	k->size = size;
	k->head = head & vf_head_mask(size);
	memcpy(k->form, insn, sizeof(k->form));
	k->imm_signed = z->raw.imm[z->raw.imm[0].is_relative].is_signed;
}

bool vf_decode(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct vf_insn *insn)
{
	ZydisDecodedInstruction z;
	struct known *k;
	uint64_t head;

	if (!avail)
		return false;
	head = vf_head_read(bytes, avail);
	k = known_slot(head);
	if (known_find(k, head, bytes, avail, vaddr, insn))
		return true;
	if (!decode(bytes, avail, vaddr, insn, &z))
		return false;
	known_put(k, head, &z, insn);
	return true;
}

size_t vf_nop_len(const uint8_t *p, size_t avail)
{
	static const uint8_t nops[][VF_NOP_MAX] = {
		{0x90},
		{0x66, 0x90},
		{0x0f, 0x1f, 0x00},
		{0x0f, 0x1f, 0x40},
		{0x0f, 0x1f, 0x44},
		{0x66, 0x0f, 0x1f, 0x44},
		{0x0f, 0x1f, 0x80},
		{0x0f, 0x1f, 0x84},
		{0x66, 0x0f, 0x1f, 0x84},
	};

	for (size_t len = 1; len <= VF_NOP_MAX && len <= avail; len++)
		if (!memcmp(p, nops[len - 1], len))
			return len;
	return 0;
}

unsigned int vf_may_name(const struct vf *vf, const struct vf_insn *insn, uint64_t to[3])
{
	bool fixed = vf->o->ehdr.e_type == ET_EXEC;
	unsigned int nr = 0;

	if (insn->disp_off)
		to[nr++] = insn->target;
	if (fixed && insn->abs_off)
		to[nr++] = (uint64_t)insn->abs;
	if (fixed ? insn->imm_size >= 4 : insn->imm_size == 8)
		to[nr++] = (uint64_t)insn->imm;
	return nr;
}
