// SPDX-License-Identifier: Apache-2.0
/* test_insn - kinds, targets and fields of single instructions. */
#include "libprof/insn/insn.h"

#include "tests/unit/suite.h"

#define DECODE(insn, ...)                                                                          \
	({                                                                                         \
		static const uint8_t bytes[] = {__VA_ARGS__};                                      \
		mp_insn_decode(bytes, sizeof(bytes), 0x1000, insn);                                \
	})

TEST(insn_knows_short_and_long_branches)
{
	struct mp_insn i;

	ck_assert_int_eq(DECODE(&i, 0x74, 0x10), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_COND);
	ck_assert_uint_eq(i.cc, 4);
	ck_assert_uint_eq(i.target, 0x1012);
	ck_assert_uint_eq(i.disp_off, 1);
	ck_assert_uint_eq(i.disp_size, 1);
	ck_assert_int_eq(DECODE(&i, 0x0f, 0x8f, 0xfa, 0xff, 0xff, 0xff), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_COND);
	ck_assert_uint_eq(i.cc, 0xf);
	ck_assert_uint_eq(i.target, 0x1000);
	ck_assert_uint_eq(i.disp_off, 2);
	ck_assert_uint_eq(i.disp_size, 4);
	ck_assert_int_eq(DECODE(&i, 0xeb, 0xfe), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_JUMP);
	ck_assert_uint_eq(i.target, 0x1000);
	ck_assert_int_eq(DECODE(&i, 0xe9, 0x00, 0x01, 0x00, 0x00), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_JUMP);
	ck_assert_uint_eq(i.target, 0x1105);
}

TEST(insn_knows_calls_with_padding_prefixes)
{
	struct mp_insn i;

	/* data16 data16 rex.W call __tls_get_addr */
	ck_assert_int_eq(DECODE(&i, 0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_CALL);
	ck_assert_uint_eq(i.len, 8);
	ck_assert_uint_eq(i.disp_off, 4);
	ck_assert_uint_eq(i.target, 0x1008);
	/* addr32 call, as the linker pads a relaxed indirect call */
	ck_assert_int_eq(DECODE(&i, 0x67, 0xe8, 0, 0, 0, 0), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_CALL);
	ck_assert_uint_eq(i.disp_off, 2);
	/* bnd jmp, bnd call, notrack jmp *%rax */
	ck_assert_int_eq(DECODE(&i, 0xf2, 0xe9, 0, 0, 0, 0), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_JUMP);
	ck_assert(i.bnd);
	ck_assert_int_eq(DECODE(&i, 0x3e, 0xff, 0xe0), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_IJUMP);
	ck_assert(i.notrack);
}

TEST(insn_refuses_what_processors_disagree_about)
{
	struct mp_insn i;

	/* 16-bit branches; far transfers; EIP-relative addresses */
	ck_assert_int_eq(DECODE(&i, 0x66, 0xe9, 0, 0, 0, 0), -EILSEQ);
	ck_assert_int_eq(DECODE(&i, 0x66, 0xeb, 0x10), -EILSEQ);
	ck_assert_int_eq(DECODE(&i, 0x66, 0x0f, 0x84, 0, 0, 0, 0), -EILSEQ);
	ck_assert_int_eq(DECODE(&i, 0xff, 0x2c, 0x24), -EILSEQ);
	ck_assert_int_eq(DECODE(&i, 0xff, 0x1c, 0x24), -EILSEQ);
	ck_assert_int_eq(DECODE(&i, 0x67, 0x8b, 0x05, 0, 0, 0, 0), -EILSEQ);
	/* truncated, and invalid */
	ck_assert_int_eq(DECODE(&i, 0xe8, 0, 0), -EILSEQ);
	ck_assert_int_eq(DECODE(&i, 0x06), -EILSEQ);
}

TEST(insn_finds_rip_relative_operands)
{
	struct mp_insn i;

	/* lea 0x10(%rip), %rax */
	ck_assert_int_eq(DECODE(&i, 0x48, 0x8d, 0x05, 0x10, 0, 0, 0), 0);
	ck_assert(i.rip_relative);
	ck_assert_uint_eq(i.target, 0x1017);
	ck_assert_uint_eq(i.disp_off, 3);
	ck_assert_uint_eq(i.disp_size, 4);
	/* movl $0x1, 0x10(%rip): an immediate follows the displacement */
	ck_assert_int_eq(DECODE(&i, 0xc7, 0x05, 0x10, 0, 0, 0, 1, 0, 0, 0), 0);
	ck_assert(i.rip_relative);
	ck_assert_uint_eq(i.target, 0x101a);
	ck_assert_uint_eq(i.imm_off, 6);
	ck_assert_uint_eq(i.imm_size, 4);
	/* movabs 0x402008, %rax: the address stands where others have a constant */
	ck_assert_int_eq(DECODE(&i, 0x48, 0xa1, 8, 0x20, 0x40, 0, 0, 0, 0, 0), 0);
	ck_assert_uint_eq(i.imm_off, 2);
	ck_assert_uint_eq(i.imm_size, 8);
	/* cmpb $1, 0x10(%rip) */
	ck_assert_int_eq(DECODE(&i, 0x80, 0x3d, 0x10, 0, 0, 0, 1), 0);
	ck_assert_uint_eq(i.target, 0x1017);
	/* jmp *0x10(%rip) */
	ck_assert_int_eq(DECODE(&i, 0xff, 0x25, 0x10, 0, 0, 0), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_IJUMP);
	ck_assert(i.rip_relative);
	ck_assert_uint_eq(i.target, 0x1016);
	/* vmovaps 0x10(%rip), %ymm0 */
	ck_assert_int_eq(DECODE(&i, 0xc5, 0xfc, 0x28, 0x05, 0x10, 0, 0, 0), 0);
	ck_assert(i.rip_relative);
	ck_assert_uint_eq(i.target, 0x1018);
	/* mov 0x10(%rbp), %rax and mov 0x1234, %eax are not rip-relative */
	ck_assert_int_eq(DECODE(&i, 0x48, 0x8b, 0x45, 0x10), 0);
	ck_assert(!i.rip_relative);
	ck_assert_int_eq(DECODE(&i, 0x8b, 0x04, 0x25, 0x34, 0x12, 0, 0), 0);
	ck_assert(!i.rip_relative);
	ck_assert_uint_eq(i.mem_disp_off, 3);
}

TEST(insn_tells_ends_apart)
{
	struct mp_insn i;

	ck_assert_int_eq(DECODE(&i, 0xc3), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_RET);
	ck_assert_int_eq(DECODE(&i, 0xf3, 0xc3), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_RET);
	ck_assert_int_eq(DECODE(&i, 0x0f, 0x0b), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_TRAP);
	ck_assert_int_eq(DECODE(&i, 0xcc), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_TRAP);
	ck_assert_int_eq(DECODE(&i, 0x0f, 0x05), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_SYSCALL);
	ck_assert(!mp_insn_ends_block(&i));
	ck_assert_int_eq(DECODE(&i, 0xcd, 0x80), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_SYSCALL);
	ck_assert_int_eq(DECODE(&i, 0xe2, 0xfe), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_LOOP);
	ck_assert_uint_eq(i.target, 0x1000);
	ck_assert_int_eq(DECODE(&i, 0xe3, 0x02), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_LOOP);
	ck_assert_int_eq(DECODE(&i, 0xc7, 0xf8, 0x10, 0, 0, 0), 0);
	ck_assert_uint_eq(i.kind, MP_INSN_LOOP);
	ck_assert_uint_eq(i.target, 0x1016);
	ck_assert_int_eq(DECODE(&i, 0xf3, 0x0f, 0x1e, 0xfa), 0);
	ck_assert(i.endbr64);
	ck_assert_int_eq(DECODE(&i, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0), 0);
	ck_assert(i.nop);
	ck_assert_uint_eq(i.len, 10);
}
