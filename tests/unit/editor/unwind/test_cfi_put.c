// SPDX-License-Identifier: Apache-2.0
/*
 * test_cfi - hand-written call-frame programs: their meaning, writing rows as programs, and
 * refusals.
 */
#include "editor/unwind/cfi_put.h"

#include "tests/unit/suite.h"

/* def_cfa rsp + 8; rip at cfa - 8 */
static const uint8_t initial[] = {0x0c, 7, 8, 0x90, 1};

static const struct mp_eh_cie cie = {
	.code_align = 1,
	.data_align = -8,
	.ra_reg = 16,
	.fde_enc = MP_EH_PE_PCREL | MP_EH_PE_SDATA4,
	.program = initial,
	.program_size = sizeof(initial),
};

static struct mp_cfi_rules rules;
static struct mp_cfi_table table;

static int expand(const uint8_t *program, size_t size)
{
	struct mp_eh_fde fde = {.start = 0x1000,
				.size = 0x1000,
				.program = program,
				.program_vaddr = 0x5000,
				.program_size = size};

	return mp_cfi_expand(&rules, &cie, &fde, &table);
}

#define EXPAND(...) expand((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static const struct mp_cfi_row *row_at(uint64_t off)
{
	return &table.lines[mp_cfi_line_at(&table, off)].row;
}

static const struct mp_cfi_rule *cfa_at(uint64_t off)
{
	return &rules.rules[row_at(off)->cfa];
}

static const struct mp_cfi_rule *reg_at(uint64_t off, int reg)
{
	return &rules.rules[row_at(off)->regs[reg]];
}

static void setup(void)
{
	ck_assert_int_eq(mp_cfi_rules_init(&rules), 0);
}

static void teardown(void)
{
	mp_cfi_rules_fini(&rules);
	mp_cfi_table_fini(&table);
}

FIXTURE(setup, teardown);

TEST(cfi_follows_a_prologue_and_an_early_return)
{
	/* push rbx at 1; remember; pop at 0x40; ret; restore at 0x42 */
	ck_assert_int_eq(
		EXPAND(0x41, 0x0e, 16, 0x83, 2, 0x0a, 0x02, 0x3f, 0x0e, 8, 0xc3, 0x42, 0x0b), 0);
	ck_assert_int_eq(cfa_at(0)->off, 8);
	ck_assert_int_eq(reg_at(0, 16)->off, -8);
	ck_assert_int_eq(reg_at(0, 3)->kind, MP_CFI_UNSPECIFIED);
	ck_assert_int_eq(cfa_at(1)->off, 16);
	ck_assert_int_eq(reg_at(0x3f, 3)->off, -16);
	ck_assert_int_eq(cfa_at(0x40)->off, 8);
	ck_assert_int_eq(reg_at(0x41, 3)->kind, MP_CFI_UNSPECIFIED);
	ck_assert(!memcmp(row_at(0x42), row_at(1), sizeof(struct mp_cfi_row)));
	ck_assert_uint_eq(table.nr, 4);
}

TEST(cfi_args_size_is_no_part_of_the_remembered_state)
{
	rules.for_walking = true;
	ck_assert_int_eq(EXPAND(0x0a, 0x41, 0x2e, 32, 0x0e, 48, 0x41, 0x0b), 0);
	ck_assert_uint_eq(row_at(0)->args_size, 0);
	ck_assert_uint_eq(row_at(1)->args_size, 32);
	ck_assert_int_eq(cfa_at(2)->off, 8);
	ck_assert_uint_eq(row_at(2)->args_size, 32);
	rules.for_walking = false;
	ck_assert_int_eq(EXPAND(0x0a, 0x41, 0x2e, 32, 0x0e, 48, 0x41, 0x2e, 0, 0x0b), 0);
}

/* A copy's row would mean something else to some of them. */
TEST(cfi_refuses_what_unwinders_read_differently)
{
	ck_assert_int_eq(EXPAND(0x0a, 0x41, 0x2e, 32, 0x0e, 48, 0x41, 0x0b), -EOPNOTSUPP);
	ck_assert_int_eq(EXPAND(0x0d, 0), -EOPNOTSUPP);	 /* LLVM takes register 0 for none */
	ck_assert_int_eq(EXPAND(0x0d, 17), -EOPNOTSUPP); /* libgcc has no such column */
	ck_assert_int_eq(EXPAND(0xd0), -EOPNOTSUPP); /* restore of a register that the CIE saves */
	ck_assert_int_eq(EXPAND(0x2f, 3, 2), -EOPNOTSUPP);
}

TEST(cfi_reads_addresses_relative_to_their_place)
{
	/* set_loc at 0x5000: the operand at 0x5001 leads to 0x1020 */
	uint32_t rel = 0x1020 - 0x5001;

	ck_assert_int_eq(EXPAND(0x01, (uint8_t)rel, (uint8_t)(rel >> 8), (uint8_t)(rel >> 16),
				(uint8_t)(rel >> 24), 0x0e, 24),
			 0);
	ck_assert_int_eq(cfa_at(0x1f)->off, 8);
	ck_assert_int_eq(cfa_at(0x20)->off, 24);
}

TEST(cfi_refuses_what_is_not_understood_in_full)
{
	static const struct {
		uint8_t bytes[8], size;
	} bad[] = {
		{{0x3f}, 1},		 /* unknown */
		{{0x2d}, 1},		 /* for another architecture */
		{{0x0b}, 1},		 /* restore without remember */
		{{0x0e}, 1},		 /* truncated */
		{{0x0e, 0x80}, 2},	 /* truncated in a number */
		{{0x07, 40}, 2},	 /* no such register */
		{{0xd0}, 1},		 /* restores rip, for which the CIE has a rule */
		{{0x0f, 2, 0x80, 0}, 4}, /* CFA relative to rip */
		{{0x0f, 9, 0x03, 0, 0, 0, 0, 0}, 8}, /* an address, truncated */
		{{0x0f, 1, 0x97}, 3},		     /* needs an object's address */
		{{0x0f, 2, 0x77, 8, 0x0e, 16}, 6},   /* changes an expression partly */
		{{0x16, 3, 5, 0x70, 0}, 5},	     /* the expression reaches beyond the end */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(expand(bad[i].bytes, bad[i].size) == -EOPNOTSUPP, "case %zu", i);
	/* A valid program of this kind. */
	ck_assert_int_eq(EXPAND(0x0f, 2, 0x77, 8), 0);
}

TEST(cfi_a_row_written_is_the_row_read)
{
	AUTO(me_bytes_fini) struct me_bytes out = {0};
	struct mp_cfi_row want;
	/* every kind of rule; factored offsets of both signs */
	static const uint8_t program[] = {
		0x0f, 3,    0x77, 8,	0x06,	       /* cfa: [rsp + 8] */
		0x83, 2,    0x05, 12,	200,  1,       /* rbx, r12 saved */
		0x11, 6,    0x7d,		       /* rbp at cfa + 24 */
		0x14, 13,   4,	  0x15, 14,   0x7e,    /* values cfa - 32, cfa + 16 */
		0x07, 1,    0x08, 2,	0x09, 4,    5, /* undefined, same, in another register */
		0x10, 15,   2,	  0x76, 0x70,	       /* saved at rbp - 16 */
		0x16, 11,   2,	  0x75, 0,	       /* is rdi */
		0x2e, 0x90, 1,
	};
	static const uint8_t others[][8] = {{0x0e, 32},	  {0x0d, 6}, {0x0c, 6, 16},
					    {0x12, 7, 2}, {0x83, 3}, {0}};

	ck_assert_int_eq(expand(program, sizeof(program)), 0);
	want = *row_at(0);
	/* From the CIE's row and from several others to this row, and back. */
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct mp_cfi_row from;

		ck_assert_int_eq(expand(others[i], sizeof(others[i])), 0);
		from = *row_at(0);
		out.size = 0;
		me_cfi_put_change(&out, &rules, &cie, &table.initial, &from);
		me_cfi_put_advance(&out, 0x20);
		me_cfi_put_change(&out, &rules, &cie, &from, &want);
		me_cfi_put_advance(&out, 0x300);
		me_cfi_put_change(&out, &rules, &cie, &want, &from);
		ck_assert_int_eq(expand(out.data, out.size), 0);
		ck_assert(!memcmp(row_at(0x1f), &from, sizeof(from)));
		ck_assert(!memcmp(row_at(0x20), &want, sizeof(want)));
		ck_assert(!memcmp(row_at(0x31f), &want, sizeof(want)));
		ck_assert(!memcmp(row_at(0x320), &from, sizeof(from)));
	}
}

TEST(cfi_advances_over_every_distance)
{
	static const uint64_t deltas[] = {1, 0x3f, 0x40, 0xff, 0x100, 0xffff, 0x10000, 0x12345678};

	for (size_t i = 0; i < sizeof(deltas) / sizeof(deltas[0]); i++) {
		struct mp_eh_fde fde = {.size = UINT32_MAX};
		AUTO(me_bytes_fini) struct me_bytes out = {0};

		me_cfi_put_advance(&out, deltas[i]);
		me_bytes_u8(&out, 0x0e);
		me_bytes_u8(&out, 64);
		fde.program = out.data;
		fde.program_size = out.size;
		ck_assert_int_eq(mp_cfi_expand(&rules, &cie, &fde, &table), 0);
		ck_assert_int_eq(cfa_at(deltas[i] - 1)->off, 8);
		ck_assert_int_eq(cfa_at(deltas[i])->off, 64);
	}
}

TEST(cfi_trims_padding_but_no_operand)
{
	static const uint8_t padded[] = {0x41, 0x0e, 16, 0, 0, 0}, zero[] = {0x41, 0x2e, 0, 0, 0},
			     loc[] = {0x01, 1, 0, 0, 0}, unknown[] = {0x3f, 0, 0};
	bool set_loc;

	ck_assert_uint_eq(me_cfi_program_end(&cie, padded, sizeof(padded), &set_loc), 3);
	ck_assert(!set_loc);
	ck_assert_uint_eq(me_cfi_program_end(&cie, zero, sizeof(zero), &set_loc), 3);
	ck_assert_uint_eq(me_cfi_program_end(&cie, loc, sizeof(loc), &set_loc), 5);
	ck_assert(set_loc);
	ck_assert_uint_eq(me_cfi_program_end(&cie, unknown, sizeof(unknown), &set_loc), 3);
}
