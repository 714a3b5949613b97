// SPDX-License-Identifier: Apache-2.0
/* test_redirect - which plans give a function the address of its copy. */
#include "tests/unit/suite.h"

#include "tests/unit/edit_fixture.h"

/* A use of data makes the linker write .rela.text, which shows that relocations were kept. @p holds
 * the address of f, which is aligned to 4. */
#define SOURCE                                                                                     \
	".globl start\nstart: .cfi_startproc\n mov p(%rip), %rax\n hlt\n .cfi_endproc\n"           \
	".p2align 4\n .nops 4\n.type f, @function\nf: .cfi_startproc\n test %edi, %edi\n"          \
	" je 1f\n nop\n1: ret\n .cfi_endproc\n.size f, .-f\n"                                      \
	".p2align 4\n.type tail, @function\ntail: .cfi_startproc\n jmp f\n .cfi_endproc\n"         \
	".size tail, .-tail\n.data\np: .quad f\nq: .quad tail\n"

static void build(struct fixture *f)
{
	fixture_build(f, "assembler", "-nostdlib -no-pie -static -Wl,-e,start", SOURCE);
}

static bool redirects(struct fixture *f, const char *name)
{
	fixture_redirect(f);
	return f->plan.redirects.functions[fixture_func(f, name)] != 0;
}

FIXTURE(NULL, fixture_done);

TEST(redirect_follows_the_copy_of_the_entry)
{
	build(&f);
	ck_assert(!redirects(&f, "f"));
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 0);
	fixture_plan(&f, "f", 1);
	ck_assert(!redirects(&f, "f"));
	fixture_plan(&f, "f", 0);
	ck_assert(redirects(&f, "f"));
	ck_assert_uint_eq(f.plan.redirects.nr_functions, 1);
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 1);
	ck_assert_uint_eq(f.plan.redirects.sites[0].vaddr, fixture_vaddr(&f, "p"));
	ck_assert(me_redirects_function(&f.plan.redirects, f.cfg, fixture_vaddr(&f, "f")));
	ck_assert(!me_redirects_function(&f.plan.redirects, f.cfg, fixture_vaddr(&f, "tail")));
}

TEST(redirect_keeps_addresses_whose_copy_would_lose_their_alignment)
{
	struct me_plan_block *entry;

	build(&f);
	entry = fixture_plan(&f, "f", 0);
	for (int offset = 0; offset < 64; offset++) {
		entry->align_offset = (uint8_t)offset;
		ck_assert_int_eq(redirects(&f, "f"), offset % 4 == 0);
	}
}

/* The next copy would have the same address. */
TEST(redirect_keeps_addresses_whose_copy_may_be_empty)
{
	struct me_plan_block *entry;

	build(&f);
	fixture_plan_all(&f, "tail");
	ck_assert(!redirects(&f, "tail"));
	entry = fixture_plan(&f, "f", 0);
	ck_assert(redirects(&f, "f"));
	entry->left_out = 1;
	ck_assert(!redirects(&f, "f"));
}

TEST(redirect_knows_the_alignment_of_an_address)
{
	build(&f);
	/* These lie in no section, which may ask for more. */
	ck_assert_uint_eq(me_pointer_align_log2(f.elf, 0x1), 0);
	ck_assert_uint_eq(me_pointer_align_log2(f.elf, 0x6), 1);
	ck_assert_uint_eq(me_pointer_align_log2(f.elf, 0x8), 3);
	ck_assert_uint_eq(me_pointer_align_log2(f.elf, 0x40), 4);
}
