// SPDX-License-Identifier: Apache-2.0
/* test_verify_decode - the cache of decoded instructions never changes a result. */
#include "tests/unit/suite.h"

#include <string.h>

#include "editor/verify/base/verify_decode.h"

static uint64_t state = 1;
static unsigned long nr_valid;

static uint32_t rnd(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 32);
}

static const char *hex(const uint8_t *bytes)
{
	static char text[64];

	for (size_t i = 0; i < 16; i++)
		sprintf(text + 3 * i, "%02x ", bytes[i]);
	return text;
}

/* Zydis's operands have no other base than the one that @insn tells, if they have a base at all. */
static void check_base(const uint8_t *bytes, size_t avail, const struct vf_insn *insn)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(vf_full_decoder(), bytes, avail, &z, op)))
		return;
	for (int i = 0; i < z.operand_count; i++) {
		const ZydisDecodedOperand *o = &op[i];
		ZydisRegister base =
			ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->mem.base);
		bool scaled = z.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX ||
			      z.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX;

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    o->visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT ||
		    base < ZYDIS_REGISTER_RAX || base > ZYDIS_REGISTER_R15)
			continue;
		/* Zydis takes "no base" with REX.B and short addresses for a base. */
		if (z.address_width != 64 && base == ZYDIS_REGISTER_R13)
			continue;
		if (!(insn->base & VF_BASE) ||
		    (insn->base & 7) != ((base - ZYDIS_REGISTER_RAX) & 7) ||
		    (!(insn->base & VF_INDEX) && o->mem.index != ZYDIS_REGISTER_NONE) ||
		    (vf_base_disp(insn, bytes) < 0) != (o->mem.disp.value < 0) ||
		    (!scaled && vf_base_disp(insn, bytes) != o->mem.disp.value))
			ck_abort_msg("another base: %s(%zu)", hex(bytes), avail);
	}
}

static void compare(const uint8_t *bytes, size_t avail, uint64_t vaddr)
{
	struct vf_insn a = {0}, b = {0};
	bool known = vf_decode(bytes, avail, vaddr, &a);
	bool anew = vf_decode_anew(bytes, avail, vaddr, &b);

	if (known != anew)
		ck_abort_msg("%s(%zu): %d %d", hex(bytes), avail, known, anew);
	if (!anew)
		return;
	nr_valid++;
	/* Do not use ck_assert() here: each passing assertion writes to a pipe. */
	if (!(a.len == b.len && a.kind == b.kind && a.cc == b.cc && a.disp_off == b.disp_off &&
	      a.rel_off == b.rel_off && a.rel_size == b.rel_size && a.abs_off == b.abs_off &&
	      a.imm_off == b.imm_off && a.imm_size == b.imm_size &&
	      a.eip_relative == b.eip_relative && a.nop == b.nop && a.int3 == b.int3 &&
	      a.lea == b.lea && a.base == b.base && a.disp8_off == b.disp8_off &&
	      a.target == b.target && a.abs == b.abs && a.imm == b.imm))
		ck_abort_msg("differs: %s(%zu)", hex(bytes), avail);
	check_base(bytes, avail, &a);
}

/* Each head with several tails: the second and later ones come from the cache. */
static void compare_tails(uint8_t *bytes, size_t head)
{
	for (int round = 0; round < 3; round++) {
		for (size_t i = head; i < 16; i++)
			bytes[i] = (uint8_t)rnd();
		compare(bytes, 16, rnd());
	}
	compare(bytes, rnd() % 16, rnd());
}

/* A table of jumps is not one if a move between the accumulator and an address of 8 bytes reads it. */
TEST(verify_decode_finds_an_address_of_8_bytes)
{
	static const uint8_t bytes[] = {0x48, 0xa1, 8, 0x20, 0x40, 0, 0, 0, 0, 0};
	struct vf_insn insn;

	for (int cached = 0; cached < 2; cached++) {
		ck_assert(vf_decode(bytes, sizeof(bytes), 0x1000, &insn));
		ck_assert_uint_eq(insn.imm_off, 2);
		ck_assert_uint_eq(insn.imm_size, 8);
		ck_assert_int_eq(insn.imm, 0x402008);
	}
}

TEST(verify_decode_remembers_no_more_than_holds)
{
	static const uint8_t prefixes[][2] = {{0},    {0x66}, {0xf2}, {0xf3},
					      {0x67}, {0xf0}, {0x3e}, {0x66, 0xf3}};
	static const uint8_t rex[] = {0, 0x4d};

	for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
		for (unsigned int k = 0; k < sizeof(rex) * 512 * 64; k++) {
			uint8_t bytes[16], *at = bytes;
			unsigned int op = k / 64 % 512;

			for (int i = 0; i < 2 && prefixes[p][i]; i++)
				*at++ = prefixes[p][i];
			if (rex[k / 64 / 512])
				*at++ = rex[k / 64 / 512];
			if (op >= 256)
				*at++ = 0x0f;
			*at++ = (uint8_t)op;
			/* Every reg and every mod; special values of rm, and an ordinary one. */
			*at++ = (uint8_t)((k & 0x30) << 2 | (k & 7) << 3 | (k >> 3 & 1 ? 5 : 4));
			compare_tails(bytes, (size_t)(at - bytes));
		}
	}
	ck_assert_uint_gt(nr_valid, 1000000);
}

TEST(verify_decode_of_random_bytes)
{
	uint8_t bytes[16];

	for (unsigned int i = 0; i < 1000000; i++) {
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(rnd() >> (i & 7));
		compare(bytes, 16, rnd());
		compare(bytes, i % 16, rnd());
	}
	ck_assert_uint_gt(nr_valid, 500000);
}

TEST(verify_decode_reads_nothing_behind_what_there_is)
{
	static const uint8_t insn[] = {0x48, 0xc7, 0x84, 0x24, 1, 2, 3, 4, 5, 6, 7, 8};
	struct vf_insn out;

	ck_assert(vf_decode(insn, sizeof(insn), 0, &out));
	for (size_t avail = 0; avail < sizeof(insn); avail++) {
		/* Exactly as large, so that sanitizers detect a read beyond it. */
		uint8_t *cut = malloc(avail ? avail : 1);

		ck_assert_ptr_nonnull(cut);
		memcpy(cut, insn, avail);
		ck_assert(!vf_decode(cut, avail, 0, &out));
		free(cut);
	}
}

TEST(verify_decode_tells_3dnow_by_its_end)
{
	/* The same head with a valid operation (pfadd) and an invalid one. */
	static const uint8_t good[16] = {0x0f, 0x0f, 0xc1, 0x9e},
			     bad[16] = {0x0f, 0x0f, 0xc1, 0x01};
	struct vf_insn out;

	for (int i = 0; i < 2; i++) {
		ck_assert(vf_decode(good, 16, 0, &out));
		ck_assert(!vf_decode(bad, 16, 0, &out));
	}
}
