// SPDX-License-Identifier: Apache-2.0
/*
 * test_place - forms, lengths and addresses of branches, for orders of the blocks of one
 * function.
 */
#include "tests/unit/suite.h"

#include "tests/unit/edit_fixture.h"

#define ASM "-nostdlib -Wl,-e,start"

/*
 * f has four blocks: 0 ends in a branch to 2, 1 in a jump to 3, 2 falls into 3, 3 returns.
 * @gap1 and @gap2: sizes of 1 and 2 without their branches.
 */
static void build_diamond(struct fixture *f, int gap1, int gap2)
{
	char source[1024];

	snprintf(source, sizeof(source),
		 ".globl start\nstart:\n .cfi_startproc\n hlt\n .cfi_endproc\n"
		 ".p2align 4\n.type f, @function\nf:\n .cfi_startproc\n"
		 " test %%edi, %%edi\n je 2f\n .fill %d, 1, 0x90\n jmp 3f\n"
		 "2: .fill %d, 1, 0x90\n3: ret\n .cfi_endproc\n.size f, .-f\n",
		 gap1, gap2);
	fixture_build(f, "assembler", ASM, source);
	ck_assert_uint_eq(f->cfg->funcs[fixture_func(f, "f")].nr_blocks, 4);
}

static void plan_order(struct fixture *f, const char *order)
{
	f->plan.nr_blocks = 0;
	for (; *order; order++)
		fixture_plan(f, "f", (uint32_t)(*order - '0'));
}

FIXTURE(NULL, fixture_done);

TEST(place_keeps_branches_in_the_original_order)
{
	const struct me_copy *c;

	build_diamond(&f, 10, 10);
	plan_order(&f, "0123");
	fixture_place_at(&f, 0x500000);
	c = f.placement.copies;
	ck_assert(c[0].branch && !c[0].invert && !c[0].jump && c[0].falls);
	ck_assert_uint_eq(me_copy_branch_target(f.cfg, &c[0]), fixture_block_vaddr(&f, "f", 2));
	ck_assert_uint_eq(c[0].body_size, 2);
	ck_assert_uint_eq(c[0].new_size, 4);
	ck_assert(c[1].jump && !c[1].branch && !c[1].falls);
	ck_assert_uint_eq(me_copy_jump_target(f.cfg, &c[1]), fixture_block_vaddr(&f, "f", 3));
	ck_assert(!c[2].jump && c[2].falls);
	ck_assert(!c[3].jump && !c[3].branch && !c[3].falls);
	ck_assert_uint_eq(c[3].body_size, 1);
	ck_assert_uint_eq(c[0].new_vaddr, 0x500000);
	ck_assert_uint_eq(c[1].new_vaddr, 0x500004);
	ck_assert_uint_eq(c[2].new_vaddr, 0x500010);
	ck_assert_uint_eq(c[3].new_vaddr, 0x50001a);
	ck_assert_uint_eq(f.placement.end, 0x50001b);
	ck_assert_uint_eq(f.placement.nr_inverted + f.placement.nr_jumps_added +
				  f.placement.nr_jumps_dropped,
			  0);
}

TEST(place_fills_up_the_plans_pages)
{
	build_diamond(&f, 10, 10);
	plan_order(&f, "0123");
	fixture_place_at(&f, 0x600000);
	ck_assert_uint_eq(f.placement.text_end, f.placement.end);
	f.plan.page_log2 = 21;
	fixture_place_at(&f, 0x600000);
	ck_assert_uint_eq(f.placement.end, 0x60001b);
	ck_assert_uint_eq(f.placement.text_end, 0x800000);
}

TEST(place_moves_a_run_that_would_lie_in_one_line_too_many)
{
	build_diamond(&f, 10, 10);
	plan_order(&f, "0123");
	f.plan.line_log2 = 4;
	fixture_place_at(&f, 0x500008);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x50000c); /* not requested */
	f.plan.blocks[1].run = 1;
	f.plan.blocks[1].heat = 10;
	fixture_place_at(&f, 0x500008);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500010);
	fixture_place_at(&f, 0x50000c); /* not needed */
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500010);
	fixture_place_at(&f, 0x500000); /* 12 bytes from offset 4: just fits */
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500004);
	f.plan.blocks[1].run = 2; /* 22 bytes need two lines, and use two here */
	fixture_place_at(&f, 0x500000);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500004);
	fixture_place_at(&f, 0x500008); /* here they would use three */
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500010);
	f.plan.line_log2 = 0;
	fixture_place_at(&f, 0x500008);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x50000c);
}

TEST(place_moves_what_falls_into_a_loop_with_the_loop)
{
	/* 0 takes 4 bytes, 1 takes 12, 2 takes 10, 3 takes 1; 2 falls into 3. */
	build_diamond(&f, 10, 10);
	plan_order(&f, "0123");
	f.plan.line_log2 = 4;
	f.plan.blocks[1].loop = 1;
	fixture_place_at(&f, 0x500008);
	ck_assert_uint_eq(f.placement.copies[0].new_vaddr, 0x500008); /* a loop that never runs */
	f.plan.blocks[1].heat = 10;
	fixture_place_at(&f, 0x500000); /* just fits */
	ck_assert_uint_eq(f.placement.copies[0].new_vaddr, 0x500000);
	fixture_place_at(&f, 0x500008); /* from 0xc on it needs two lines */
	ck_assert_uint_eq(f.placement.copies[0].new_vaddr, 0x50000c);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500010);
	/* Two loops that do not fit both: the hotter one counts. */
	f.plan.blocks[0].loop = 1;
	f.plan.blocks[0].heat = 5;
	fixture_place_at(&f, 0x500001);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr % 16, 0);
	f.plan.blocks[0].loop = 2;
	f.plan.blocks[0].heat = 20;
	fixture_place_at(&f, 0x500001);
	ck_assert_uint_eq(f.placement.copies[0].new_vaddr, 0x500010);
	/* The addresses that a function may have are those that its alignment allows. */
	f.plan.blocks[0].loop = 0;
	f.plan.blocks[0].align_log2 = 3;
	fixture_place_at(&f, 0x500001);
	ck_assert_uint_eq(f.placement.copies[0].new_vaddr, 0x500010);
	f.plan.line_log2 = 0;
	fixture_place_at(&f, 0x500001);
	ck_assert_uint_eq(f.placement.copies[0].new_vaddr, 0x500008);
}

TEST(place_pads_a_loop_that_is_worth_it)
{
	/* 2 takes 10 bytes and falls into 3; 1 jumps, so that 2 may lie anywhere. */
	build_diamond(&f, 10, 15);
	plan_order(&f, "0123");
	f.plan.line_log2 = 4;
	f.plan.blocks[2].loop = 1;
	f.plan.blocks[2].heat = 10;
	f.plan.blocks[3].loop = 1;
	f.plan.blocks[3].heat = 1;
	fixture_place_at(&f, 0x500000);
	ck_assert_uint_eq(f.placement.copies[2].new_vaddr, 0x500010);
	ck_assert_uint_eq(f.placement.copies[3].new_vaddr, 0x50001f);
	/* Behind 0, control falls into 1. */
	f.plan.blocks[1].loop = 1;
	f.plan.blocks[1].heat = f.plan.blocks[0].heat = 10;
	f.plan.blocks[0].loop = 1;
	f.plan.blocks[0].align_log2 = 3;
	fixture_place_at(&f, 0x500008);
	ck_assert_uint_eq(f.placement.copies[0].new_vaddr, 0x500010);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500014); /* just fits */
	f.plan.blocks[0].align_log2 = 4;
	f.plan.blocks[0].align_offset = 2;
	fixture_place_at(&f, 0x500008);
	ck_assert_uint_eq(f.placement.copies[0].new_vaddr, 0x500012);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500016); /* two lines */
	f.plan.blocks[1].pad = 1;
	fixture_place_at(&f, 0x500008);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500020);
}

TEST(place_puts_a_block_at_an_offset_in_its_line)
{
	const struct me_copy *c;

	build_diamond(&f, 10, 10);
	plan_order(&f, "0123");
	f.plan.blocks[0].align_log2 = f.plan.blocks[2].align_log2 = 6;
	f.plan.blocks[0].align_offset = 17;
	f.plan.blocks[2].align_offset = 50;
	for (uint64_t base = 0x500000; base < 0x500040; base++) {
		fixture_place_at(&f, base);
		c = f.placement.copies;
		ck_assert_uint_eq(c[0].new_vaddr % 64, 17);
		ck_assert_uint_lt(c[0].new_vaddr - base, 64);
		ck_assert_uint_eq(c[1].new_vaddr, c[0].new_vaddr + 4);
		ck_assert_uint_eq(c[2].new_vaddr, c[0].new_vaddr + 33);
	}
	/* The block behind it moves along; a block that is there already does not. */
	ck_assert_uint_eq(c[3].new_vaddr, c[2].new_vaddr + 10);
	f.plan.blocks[1].align_log2 = 6;
	f.plan.blocks[1].align_offset = 21;
	fixture_place_at(&f, 0x500000);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500015);
	/* In a line of its own, even where the offset would fit behind the block before it. */
	f.plan.blocks[2].new_line = true;
	fixture_place_at(&f, 0x500000);
	ck_assert_uint_eq(f.placement.copies[2].new_vaddr, 0x500072);
	f.plan.blocks[2].align_log2 = f.plan.blocks[2].align_offset = 0;
	fixture_place_at(&f, 0x500000);
	ck_assert_uint_eq(f.placement.copies[2].new_vaddr, 0x500040);
}

TEST(place_inverts_a_branch_whose_target_follows)
{
	const struct me_copy *c;

	build_diamond(&f, 10, 10);
	plan_order(&f, "0231");
	fixture_place_at(&f, 0x500000);
	c = f.placement.copies;
	ck_assert(c[0].invert && c[0].falls && !c[0].jump);
	ck_assert_uint_eq(me_copy_branch_target(f.cfg, &c[0]), fixture_block_vaddr(&f, "f", 1));
	ck_assert_uint_eq(f.placement.nr_inverted, 1);
	ck_assert_uint_eq(f.placement.nr_jumps_added, 0);
}

TEST(place_drops_a_jump_to_what_follows)
{
	const struct me_copy *c;

	build_diamond(&f, 10, 10);
	plan_order(&f, "0213");
	fixture_place_at(&f, 0x500000);
	c = f.placement.copies;
	ck_assert(!c[2].jump && c[2].falls);
	ck_assert_uint_eq(c[2].new_size, 10);
	ck_assert_uint_eq(f.placement.nr_jumps_dropped, 1);
	/* Block 2 no longer falls into 3. */
	ck_assert(c[1].jump && !c[1].falls);
	ck_assert_uint_eq(me_copy_jump_target(f.cfg, &c[1]), fixture_block_vaddr(&f, "f", 3));
	ck_assert_uint_eq(f.placement.nr_jumps_added, 1);
}

TEST(place_makes_an_empty_copy_of_a_lone_jump_to_what_follows)
{
	const struct me_copy *c;

	build_diamond(&f, 0, 10);
	plan_order(&f, "0213");
	fixture_place_at(&f, 0x500000);
	c = f.placement.copies;
	ck_assert_uint_eq(c[2].body_size, 0);
	ck_assert_uint_eq(c[2].new_size, 0);
	ck_assert(c[2].falls);
	ck_assert_uint_eq(c[2].new_vaddr, c[3].new_vaddr);
	ck_assert_uint_eq(me_place_of(f.cfg, &f.placement, fixture_block_vaddr(&f, "f", 1)),
			  c[3].new_vaddr);
}

TEST(place_gives_the_single_branch_to_the_likelier_successor)
{
	uint64_t taken, fall;
	const struct me_copy *c;

	build_diamond(&f, 10, 10);
	taken = fixture_block_vaddr(&f, "f", 2);
	fall = fixture_block_vaddr(&f, "f", 1);
	for (int favour = 0; favour < 2; favour++) {
		plan_order(&f, "03");
		f.plan.blocks[0].favour_fall = (uint8_t)favour;
		fixture_place_at(&f, 0x500000);
		c = f.placement.copies;
		ck_assert(c[0].branch && c[0].jump && !c[0].falls);
		ck_assert_int_eq(c[0].invert, favour);
		ck_assert_uint_eq(me_copy_branch_target(f.cfg, &c[0]), favour ? fall : taken);
		ck_assert_uint_eq(me_copy_jump_target(f.cfg, &c[0]), favour ? taken : fall);
		/* Both lead to old code, far away. */
		ck_assert_uint_eq(c[0].new_size, 2 + 6 + 5);
		ck_assert_uint_eq(f.placement.nr_jumps_added, 1);
	}
	/* If a successor follows, there is nothing to favour. */
	plan_order(&f, "0123");
	f.plan.blocks[0].favour_fall = 1;
	fixture_place_at(&f, 0x500000);
	ck_assert(!f.placement.copies[0].invert);
}

/* Forward: from the end of the branch over block 1 (its bytes and a jump) and block 2's padding. */
TEST(place_lengthens_a_forward_branch_beyond_127_bytes)
{
	for (int over = 0; over < 2; over++) {
		struct fixture f;

		build_diamond(&f, 125 + over, 10);
		plan_order(&f, "0123");
		fixture_place_at(&f, 0x500000);
		/* 125 bytes and a jump of two: 127. */
		ck_assert_int_eq(f.placement.copies[0].long_branch, over);
		ck_assert_uint_eq(f.placement.copies[0].new_size, over ? 8 : 4);
		ck_assert(!f.placement.copies[1].long_jump);
		fixture_free(&f);
	}
}

TEST(place_lengthens_a_backward_jump_beyond_128_bytes)
{
	for (int over = 0; over < 2; over++) {
		struct fixture f;

		/* Order 2, 3, 1: the jump at the end of 1 goes back over 1 and 3. */
		build_diamond(&f, 125 + over, 10);
		plan_order(&f, "0231");
		fixture_place_at(&f, 0x500000);
		/* ret, 125 bytes, the jump: 128 back. */
		ck_assert_int_eq(f.placement.copies[3].long_jump, over);
		ck_assert_uint_eq(f.placement.copies[3].new_size, 125 + over + (over ? 5 : 2));
		fixture_free(&f);
	}
}

TEST(place_counts_padding_in_the_reach_of_branches)
{
	const struct me_copy *c;

	build_diamond(&f, 122, 10);
	plan_order(&f, "0123");
	fixture_place_at(&f, 0x500000);
	ck_assert(!f.placement.copies[0].long_branch);
	f.plan.blocks[2].align_log2 = 6;
	fixture_place_at(&f, 0x50003c);
	c = f.placement.copies;
	/* A short branch would end at 0x500040, and 0x5000bc rounds up to 0x5000c0: 128 bytes. */
	ck_assert_uint_eq(c[2].new_vaddr, 0x5000c0);
	ck_assert(c[0].long_branch);
	ck_assert(c[2].new_vaddr % 64 == 0);
}

TEST(place_grows_one_branch_because_another_grew)
{
	char source[1024];
	const struct me_copy *c;

	/*
	 * The first branch just reaches its target if the second one, inside its range, is
	 * short.
	 */
	snprintf(source, sizeof(source),
		 ".globl start\nstart: .cfi_startproc\n hlt\n .cfi_endproc\n"
		 ".type f, @function\nf: .cfi_startproc\n test %%edi, %%edi\n je 1f\n"
		 " test %%esi, %%esi\n je 2f\n .fill 122, 1, 0x90\n"
		 "1: .fill 8, 1, 0x90\n2: ret\n .cfi_endproc\n.size f, .-f\n");
	fixture_build(&f, "assembler", ASM, source);
	ck_assert_uint_eq(f.cfg->funcs[fixture_func(&f, "f")].nr_blocks, 5);
	plan_order(&f, "01234");
	fixture_place_at(&f, 0x500000);
	c = f.placement.copies;
	ck_assert(c[1].long_branch);
	ck_assert(c[0].long_branch);
	for (uint32_t i = 1; i < 5; i++)
		ck_assert_uint_eq(c[i].new_vaddr, c[i - 1].new_vaddr + c[i - 1].new_size);
}

TEST(place_adds_a_jump_behind_a_call_whose_return_address_lies_elsewhere)
{
	const struct me_copy *c;

	fixture_build(&f, "assembler", ASM,
		      ".globl start\nstart: .cfi_startproc\n hlt\n .cfi_endproc\n"
		      ".type f, @function\nf: .cfi_startproc\n1: call start\n"
		      "2: dec %edi\n jne 2b\n jmp 1b\n .cfi_endproc\n.size f, .-f\n");
	fixture_plan(&f, "f", 0);
	fixture_plan(&f, "f", 2);
	fixture_plan(&f, "f", 1);
	fixture_place(&f);
	c = f.placement.copies;
	ck_assert(c[0].jump && !c[0].falls && !c[0].branch);
	ck_assert_uint_eq(c[0].body_size, 5);
	ck_assert_uint_eq(c[0].new_size, 7);
	ck_assert_uint_eq(me_copy_jump_target(f.cfg, &c[0]), fixture_block_vaddr(&f, "f", 1));
	ck_assert(c[2].branch && c[2].jump);
}

TEST(place_keeps_the_alignment_of_entries_that_pointers_hold)
{
	uint32_t g, odd;

	fixture_build(&f, "assembler", ASM,
		      ".globl start\nstart: .cfi_startproc\n hlt\n .cfi_endproc\n"
		      ".p2align 5\n.type g, @function\ng: .cfi_startproc\n nop\n nop\n ret\n"
		      " .cfi_endproc\n.size g, .-g\n"
		      ".p2align 3\n.type h, @function\nh: .cfi_startproc\n ret\n .cfi_endproc\n"
		      ".size h, .-h\n.type odd, @function\nodd: .cfi_startproc\n ret\n"
		      " .cfi_endproc\n.size odd, .-odd\n");
	g = fixture_func(&f, "g");
	odd = fixture_func(&f, "odd");
	fixture_plan(&f, "odd", 0);
	fixture_plan(&f, "g", 0);
	fixture_plan(&f, "h", 0);
	fixture_place_at(&f, 0x500000);
	/* Nothing refers to their addresses: no padding. */
	ck_assert_uint_eq(f.placement.end, 0x500005);
	f.plan.redirects.functions[g] = f.plan.redirects.functions[odd] = 1;
	f.plan.redirects.functions[fixture_func(&f, "h")] = 1;
	fixture_place_at(&f, 0x500001);
	ck_assert_uint_eq(f.placement.copies[0].new_vaddr, 0x500001);
	ck_assert_uint_eq(f.placement.copies[1].align_log2, 5);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500020);
	ck_assert_uint_eq(f.placement.copies[2].new_vaddr, 0x500028);
	/* The plan may request more. */
	f.plan.blocks[1].align_log2 = 6;
	fixture_place_at(&f, 0x500001);
	ck_assert_uint_eq(f.placement.copies[1].new_vaddr, 0x500040);
}

TEST(place_says_where_the_warm_zone_begins)
{
	build_diamond(&f, 10, 10);
	plan_order(&f, "0231");
	fixture_place_at(&f, 0x500000);
	ck_assert_uint_eq(f.placement.first_warm, 4);
	f.plan.blocks[2].zone = f.plan.blocks[3].zone = ME_ZONE_WARM;
	fixture_place_at(&f, 0x500000);
	ck_assert_uint_eq(f.placement.first_warm, 2);
}

TEST(place_leads_what_was_not_copied_to_old_code)
{
	uint64_t one;

	build_diamond(&f, 10, 10);
	plan_order(&f, "02");
	fixture_place_at(&f, 0x500000);
	one = fixture_block_vaddr(&f, "f", 1);
	ck_assert_uint_eq(me_place_of(f.cfg, &f.placement, one), one);
	ck_assert_uint_eq(me_place_of(f.cfg, &f.placement, one + 1), one + 1);
	ck_assert_uint_eq(me_place_of(f.cfg, &f.placement, 0x12345678), 0x12345678);
	ck_assert_uint_eq(me_place_of(f.cfg, &f.placement, fixture_vaddr(&f, "f")), 0x500000);
}

/* Loads of control words in the second of two consecutive blocks and in a third one, at any start address in a page. */
TEST(place_keeps_loads_of_control_words_from_sharing_a_slot)
{
	struct me_control_loads found, third;
	int nr_padded = 0;

	fixture_build(&f, "assembler", ASM,
		      ".globl start\nstart:\n .cfi_startproc\n hlt\n .cfi_endproc\n"
		      ".type f, @function\nf:\n .cfi_startproc\n test %edi, %edi\n je 2f\n"
		      " fldcw -4(%rsp)\n fistpl -8(%rsp)\n fld %st(0)\n fldcw (%r9)\n"
		      " movl $0x6cd9, %eax\n ldmxcsr (%r12)\n vldmxcsr 4(%rsp)\n fnstcw (%rsp)\n"
		      " stmxcsr (%rsp)\n ret\n2: fldcw -4(%rsp)\n ret\n .cfi_endproc\n"
		      ".size f, .-f\n");
	me_control_loads_find(f.cfg, f.cfg->funcs[fixture_func(&f, "f")].first_block, &found);
	ck_assert_uint_eq(found.nr, 0);
	me_control_loads_find(f.cfg, f.cfg->funcs[fixture_func(&f, "f")].first_block + 1, &found);
	ck_assert_uint_eq(found.nr, 4);
	ck_assert_uint_eq(found.at[0], 0);
	ck_assert_uint_eq(found.at[1], 10);
	ck_assert_uint_eq(found.at[2], 18);
	ck_assert_uint_eq(found.at[3], 23);
	me_control_loads_find(f.cfg, f.cfg->funcs[fixture_func(&f, "f")].first_block + 2, &third);
	ck_assert_uint_eq(third.nr, 1);
	plan_order(&f, "012");
	for (uint64_t base = 0x500000; base < 0x501000; base++) {
		uint32_t taken = 0, slot;

		fixture_place_at(&f, base);
		nr_padded +=
			f.placement.copies[0].new_vaddr != base ||
			f.placement.copies[2].new_vaddr !=
				f.placement.copies[1].new_vaddr + f.placement.copies[1].new_size;
		ck_assert_uint_eq(f.placement.copies[1].new_vaddr,
				  f.placement.copies[0].new_vaddr + 4);
		if (base > 0x500f00)
			continue; /* they do not lie in one page */
		for (uint8_t k = 0; k < found.nr; k++) {
			slot = me_control_load_slot(f.placement.copies[1].new_vaddr + found.at[k]);
			ck_assert(!(taken >> slot & 1));
			taken |= UINT32_C(1) << slot;
		}
		slot = me_control_load_slot(f.placement.copies[2].new_vaddr);
		ck_assert(!(taken >> slot & 1));
	}
	/* Only where needed: ten pairs, of which each shares a slot at about one in 32 addresses. */
	ck_assert_int_gt(nr_padded, 0);
	ck_assert_int_lt(nr_padded, 4096 / 2);
}

/* Pairs of addresses in a page whose loads were mispredicted, and others, on AMD's Zen 4. */
TEST(place_knows_the_slots_of_loads)
{
	static const struct {
		uint64_t a, b;
		bool shared;
	} pairs[] = {
		{0x2b5, 0x7bf, true},  {0xa13, 0xce6, true},  {0x268, 0x97b, true},
		{0x072, 0x701, true},  {0x4c4, 0xe51, true},  {0x3a3, 0x05c, true},
		{0x2df, 0x5ac, true},  {0x53f, 0xa14, true},  {0x81f, 0x965, true},
		{0x1bf, 0x678, true},  {0x73c, 0xa6e, true},  {0xd22, 0xbd7, true},
		{0x145, 0xecb, false}, {0x070, 0xcdb, false}, {0x751, 0x15f, false},
		{0xe1b, 0x684, false}, {0xa7e, 0x9f5, false}, {0x6b2, 0xeec, false},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		ck_assert_uint_lt(me_control_load_slot(pairs[i].a), ME_CONTROL_LOAD_SLOTS);
		ck_assert_int_eq(me_control_load_slot(pairs[i].a) ==
					 me_control_load_slot(pairs[i].b),
				 pairs[i].shared);
	}
}
