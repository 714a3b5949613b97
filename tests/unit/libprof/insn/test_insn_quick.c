// SPDX-License-Identifier: Apache-2.0
/* test_insn_quick - the fast decoder agrees with Zydis on every instruction that it accepts. */
#include "libprof/insn/insn_quick.h"

#include "libprof/insn/decoder.h"
#include "tests/unit/suite.h"

static unsigned long nr_quick, nr_declined;

static const char *hex(const uint8_t *bytes)
{
	static char text[64];

	for (size_t i = 0; i < 16; i++)
		sprintf(text + 3 * i, "%02x ", bytes[i]);
	return text;
}

static int number_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15
		       ? whole - ZYDIS_REGISTER_RAX
		       : MP_INSN_NO_REG;
}

static bool is_in(int number, uint16_t registers)
{
	return number == MP_INSN_NO_REG || registers >> number & 1;
}

/* Zydis knows no register of the instruction that is not in the mask, and the same memory. */
static void compare_operands(const uint8_t *bytes, const struct mp_insn *insn)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	struct mp_insn_operands o;
	ZydisDecodedInstruction z;
	bool same = true;

	if (!mp_insn_operands(bytes, insn, &o)) {
		if (insn->kind == MP_INSN_OTHER)
			ck_abort_msg("operands are not known: %s", hex(bytes));
		return;
	}
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(mp_decoder(), bytes, insn->len, &z, op)))
		ck_abort_msg("Zydis does not accept %s", hex(bytes));
	for (int i = 0; i < z.operand_count; i++) {
		if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
			same &= is_in(number_of(op[i].reg.value), o.registers);
		if (op[i].type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		same &= is_in(number_of(op[i].mem.base), o.registers) &&
			is_in(number_of(op[i].mem.index), o.registers);
		if (op[i].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN)
			same &= o.base == number_of(op[i].mem.base) &&
				o.index == number_of(op[i].mem.index) &&
				o.disp == op[i].mem.disp.value;
	}
	if (!same || z.address_width != 64)
		ck_abort_msg("operands differ from Zydis: %s", hex(bytes));
}

static void compare(const uint8_t *bytes, size_t avail)
{
	struct mp_insn quick, full;

	if (!mp_insn_decode_quick(bytes, avail, 0x401000, &quick)) {
		nr_declined++;
		return;
	}
	nr_quick++;
	/* Do not use ck_assert() here: each passing assertion writes to a pipe. */
	if (mp_insn_decode_full(bytes, avail, 0x401000, &full))
		ck_abort_msg("Zydis does not accept %s (avail %zu)", hex(bytes), avail);
	if (!(quick.vaddr == full.vaddr && quick.len == full.len && quick.kind == full.kind &&
	      quick.cc == full.cc && quick.rip_relative == full.rip_relative &&
	      quick.disp_off == full.disp_off && quick.disp_size == full.disp_size &&
	      quick.imm_off == full.imm_off && quick.imm_size == full.imm_size &&
	      quick.mem_disp_off == full.mem_disp_off && quick.notrack == full.notrack &&
	      quick.bnd == full.bnd && quick.endbr64 == full.endbr64 && quick.nop == full.nop &&
	      quick.target == full.target))
		ck_abort_msg("differs from Zydis: %s: len %u/%u kind %u/%u", hex(bytes), quick.len,
			     full.len, quick.kind, full.kind);
	compare_operands(bytes, &quick);
}

/* Every prefix that is read, every opcode, every ModRM byte, with distinctive operands. */
static void compare_all(const uint8_t *rex, size_t nr_rex)
{
	static const uint8_t prefixes[] = {0, 0x66, 0xf2, 0xf3};
	static const uint8_t sibs[] = {0x00, 0x25, 0x64, 0xcd};

	for (unsigned int op = 0; op < 512; op++) {
		for (size_t k = 0; k < sizeof(prefixes) * nr_rex * 256; k++) {
			uint8_t bytes[32], *p = bytes;
			uint8_t prefix = prefixes[k / 256 % 4], r = rex[k / 256 / 4];
			uint8_t modrm = (uint8_t)k;
			bool sib = modrm < 0xc0 && (modrm & 7) == 4;

			if (prefix)
				*p++ = prefix;
			if (r)
				*p++ = r;
			if (op >= 256)
				*p++ = 0x0f;
			*p++ = (uint8_t)op;
			*p++ = modrm;
			for (size_t s = 0; s < (sib ? sizeof(sibs) : 1); s++) {
				memset(p, 0x91, sizeof(bytes) - (size_t)(p - bytes));
				*p = sib ? sibs[s] : 0x83;
				compare(bytes, 16);
			}
		}
	}
}

TEST(insn_quick_agrees_with_zydis_without_rex)
{
	static const uint8_t rex[] = {0};

	compare_all(rex, sizeof(rex));
	/* The table must accept many instructions and decline others. */
	ck_assert_uint_gt(nr_quick, 100000);
	ck_assert_uint_gt(nr_declined, 100000);
}

TEST(insn_quick_agrees_with_zydis_with_rex)
{
	static const uint8_t rex[] = {0x40, 0x41, 0x44, 0x48, 0x4f};

	compare_all(rex, sizeof(rex));
	ck_assert_uint_gt(nr_quick, 100000);
}

TEST(insn_quick_agrees_with_zydis_on_random_bytes)
{
	uint64_t state = 1;
	uint8_t bytes[32];

	for (unsigned int i = 0; i < 2000000; i++) {
		for (size_t k = 0; k < sizeof(bytes); k += 4) {
			uint32_t r;

			state = state * 6364136223846793005u + 1442695040888963407u;
			r = (uint32_t)(state >> 32);
			memcpy(bytes + k, &r, 4);
		}
		compare(bytes, 16);
	}
	ck_assert_uint_gt(nr_quick, 100000);
}

TEST(insn_quick_reads_nothing_behind_what_there_is)
{
	static const uint8_t insns[][14] = {
		{5, 0xe8, 1, 2, 3, 4},
		{2, 0x74, 5},
		{6, 0x0f, 0x84, 1, 2, 3, 4},
		{10, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8},
		{12, 0x48, 0xc7, 0x84, 0x24, 1, 2, 3, 4, 5, 6, 7, 8},
		{1, 0xc3},
	};
	struct mp_insn insn;

	for (size_t i = 0; i < sizeof(insns) / sizeof(insns[0]); i++) {
		size_t len = insns[i][0];
		/*
		 * Exactly as large as the instruction, so that sanitizers detect a read beyond
		 * it.
		 */
		AUTO_FREE uint8_t *bytes = malloc(len);

		ck_assert_ptr_nonnull(bytes);
		memcpy(bytes, insns[i] + 1, len);
		ck_assert(mp_insn_decode_quick(bytes, len, 0, &insn));
		ck_assert_uint_eq(insn.len, len);
		for (size_t avail = 0; avail < len; avail++) {
			AUTO_FREE uint8_t *cut = malloc(avail + 1);

			ck_assert_ptr_nonnull(cut);
			memcpy(cut, bytes, avail);
			ck_assert(!mp_insn_decode_quick(cut, avail, 0, &insn));
		}
	}
}

TEST(insn_quick_leaves_prefixed_branches_to_zydis)
{
	static const uint8_t insns[][16] = {
		{0x66, 0xe8},
		{0x48, 0xe9},
		{0xf2, 0xe9},
		{0x2e, 0x74},
		{0x3e, 0xff, 0xe0},
		{0xf3, 0xc3},
		{0xf3, 0x0f, 0x1e, 0xc8}, /* rdsspd: only endbr64 is known */
		{0xf0, 0x01},
		{0x64, 0x48, 0x8b, 0x04, 0x25},
		{0x66, 0xff, 0xe0},
		{0x67, 0x8d, 0x05},
		{0x0f, 0x05},
		{0xe2, 0xfe},
		{0xc5, 0xf8, 0x77},
	};
	struct mp_insn insn;

	for (size_t i = 0; i < sizeof(insns) / sizeof(insns[0]); i++)
		ck_assert_msg(!mp_insn_decode_quick(insns[i], 16, 0, &insn), "%zu", i);
}
