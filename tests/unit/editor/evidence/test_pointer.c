// SPDX-License-Identifier: Apache-2.0
/* test_pointer - either all places that hold a function's address change, or none does. */
#include "tests/unit/suite.h"

#include "tests/unit/edit_fixture.h"

/* A use of data makes the linker write .rela.text, which shows that relocations were kept. */
#define START                                                                                      \
	".globl start\nstart: .cfi_startproc\n mov d(%rip), %eax\n hlt\n .cfi_endproc\n"           \
	".data\nd: .quad 0\n.text\n"
#define FUNC(name, body)                                                                           \
	".type " name ", @function\n" name ": .cfi_startproc\n" body " .cfi_endproc\n"             \
	".size " name ", .-" name "\n"
#define G     FUNC("g", " mov $1, %eax\n ret\n")
#define FIXED "-nostdlib -no-pie -static -Wl,-e,start"
#define PIE   "-nostdlib -pie -Wl,-e,start"

/* Copies f and g, and lets redirect decide about g's address. */
static void find(struct fixture *f, const char *flags, const char *source)
{
	fixture_build(f, "assembler", flags, source);
	for (uint32_t i = 0; i < f->elf->nr_symbols; i++) {
		const struct mp_symbol *s = &f->elf->symbols[i];
		uint32_t func = mp_cfg_func_at(f->cfg, s->vaddr);

		if (s->dynamic || s->type != STT_FUNC || func == MP_NONE ||
		    f->cfg->funcs[func].vaddr != s->vaddr || f->cfg->funcs[func].problem)
			continue;
		fixture_plan_all(f, s->name);
	}
	fixture_redirect(f);
}

static bool redirected(const struct fixture *f)
{
	return f->plan.redirects.functions[fixture_func(f, "g")] != 0;
}

static const struct me_site *site_at(const struct fixture *f, uint64_t vaddr)
{
	for (uint32_t i = 0; i < f->plan.redirects.nr_sites; i++) {
		if (f->plan.redirects.sites[i].vaddr == vaddr)
			return &f->plan.redirects.sites[i];
	}
	return NULL;
}

FIXTURE(NULL, fixture_done);

TEST(pointer_finds_words_of_data)
{
	static const char *const links[] = {FIXED, PIE};

	for (size_t i = 0; i < 2; i++) {
		const struct me_site *site;
		struct fixture f;

		find(&f, links[i], START G ".data\np: .quad g\nq: .quad 7\nr: .quad g\n");
		ck_assert(redirected(&f));
		ck_assert_uint_eq(f.plan.redirects.nr_functions, 1);
		ck_assert_uint_eq(f.plan.redirects.nr_sites, 2);
		site = site_at(&f, fixture_vaddr(&f, "p"));
		ck_assert_ptr_nonnull(site);
		ck_assert_uint_eq(site->kind, ME_SITE_WORD);
		ck_assert_uint_eq(site->target, fixture_vaddr(&f, "g"));
		ck_assert_ptr_nonnull(site_at(&f, fixture_vaddr(&f, "r")));
		ck_assert_ptr_null(site_at(&f, fixture_vaddr(&f, "q")));
		fixture_free(&f);
	}
}

TEST(pointer_finds_operands)
{
	const struct me_site *site;
	uint64_t at;

	find(&f, FIXED,
	     START G FUNC("f", " mov $g, %edi\n mov $g, %rsi\n lea g(%rip), %rdx\n"
			       " cmp $g, %rax\n ret\n"));
	ck_assert(redirected(&f));
	at = fixture_vaddr(&f, "f");
	site = site_at(&f, at + 1);
	ck_assert_ptr_nonnull(site);
	ck_assert_uint_eq(site->kind, ME_SITE_ABS32);
	site = site_at(&f, at + 5 + 3);
	ck_assert_ptr_nonnull(site);
	ck_assert_uint_eq(site->kind, ME_SITE_ABS32);
	site = site_at(&f, at + 12 + 3);
	ck_assert_ptr_nonnull(site);
	ck_assert_uint_eq(site->kind, ME_SITE_REL32);
}

TEST(pointer_finds_a_lea_without_relocation)
{
	uint32_t nr;
	uint64_t field;

	/*
	 * g is local and in the same section, so the assembler computed the distance without a
	 * relocation.
	 */
	find(&f, PIE, START G FUNC("f", " lea g(%rip), %rdx\n ret\n"));
	field = fixture_vaddr(&f, "f") + 3;
	mp_elf_relocs_in(f.elf, field, field + 4, &nr);
	ck_assert_uint_eq(nr, 0);
	ck_assert(redirected(&f));
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 1);
	ck_assert_uint_eq(f.plan.redirects.sites[0].vaddr, field);
	ck_assert_uint_eq(f.plan.redirects.sites[0].kind, ME_SITE_REL32);
}

TEST(pointer_counts_no_function_whose_address_stands_nowhere)
{
	find(&f, PIE, START G FUNC("f", " call g\n jmp.d32 g\n"));
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 0);
	ck_assert_uint_eq(f.plan.redirects.nr_functions, 0);
}

/* One reference that cannot be changed prevents all changes. */
TEST(pointer_changes_nothing_where_one_reference_must_stay)
{
	static const struct {
		const char *what, *flags, *source;
	} cases[] = {
		{"movabs", FIXED,
		 START G FUNC("f", " movabs $g, %rax\n ret\n") ".data\np: .quad g\n"},
		{"code read as data", FIXED,
		 START G ".section .text.f, \"ax\"\n" FUNC(
			 "f", " mov g(%rip), %eax\n ret\n") ".data\np: .quad g\n"},
		{"compared in memory", FIXED,
		 START G FUNC("f", " cmpb $1, g+1(%rip)\n ret\n") ".data\np: .quad g\n"},
		{"an offset in data", PIE,
		 START G ".section .rodata\no: .long g-.\n.data\np: .quad g\n"},
		{"an operand of code that does not decode", FIXED,
		 START G FUNC("f", " mov $g, %edi\n .byte 6\n ret\n") ".data\np: .quad g\n"},
		{"a lea in code that does not decode", PIE,
		 START G FUNC("f", " lea g(%rip), %rdi\n .byte 6\n ret\n") ".data\np: .quad g\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		find(&f, cases[i].flags, cases[i].source);
		ck_assert_msg(!redirected(&f), "%s", cases[i].what);
		ck_assert_msg(f.plan.redirects.nr_sites == 0, "%s: %u sites", cases[i].what,
			      f.plan.redirects.nr_sites);
		fixture_free(&f);
	}
}

TEST(pointer_changes_exported_functions_with_their_symbols)
{
	/* The loader sets p to g's dynamic symbol, so p itself is not changed. */
	find(&f, "-nostdlib -shared",
	     START ".globl g\n" G FUNC("f", " ret\n") ".data\np: .quad g\nq: .quad f\n");
	ck_assert(f.cfg->funcs[fixture_func(&f, "g")].flags & MP_FUNC_EXPORTED);
	ck_assert(redirected(&f));
	ck_assert_uint_eq(f.plan.redirects.nr_functions, 2);
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 1);
	ck_assert_uint_eq(f.plan.redirects.sites[0].vaddr, fixture_vaddr(&f, "q"));
	ck_assert(me_redirects_function(&f.plan.redirects, f.cfg, fixture_vaddr(&f, "g")));
	ck_assert(!me_redirects_function(&f.plan.redirects, f.cfg, fixture_vaddr(&f, "g") + 1));
	fixture_free(&f);
	/* In a program, no other module can replace the function. */
	find(&f, PIE " -rdynamic", START ".globl g\n" G ".data\np: .quad g\n");
	ck_assert(f.cfg->funcs[fixture_func(&f, "g")].flags & MP_FUNC_EXPORTED);
	ck_assert(redirected(&f));
	ck_assert_ptr_nonnull(site_at(&f, fixture_vaddr(&f, "p")));
}

TEST(pointer_keeps_functions_that_others_can_name)
{
	/* A symbol plus an offset gives an address inside the function. */
	find(&f, "-nostdlib -shared", START ".globl g\n" G ".data\np: .quad g\nq: .quad g+1\n");
	ck_assert(!redirected(&f));
	fixture_free(&f);
	/* A symbol of another type at this address. */
	find(&f, "-nostdlib -shared",
	     START ".globl g, o\n.type o, @object\no:\n" G ".data\np: .quad g\n");
	ck_assert(!redirected(&f));
	fixture_free(&f);
	/* The address of the entry is in the ELF header. */
	fixture_build(&f, "assembler", "-nostdlib -pie -Wl,-e,g",
		      ".globl g\n" G ".data\np: .quad g\n");
	f.cfg->funcs[fixture_func(&f, "g")].problem = MP_PROBLEM_NONE;
	fixture_plan_all(&f, "g");
	fixture_redirect(&f);
	ck_assert(!redirected(&f));
}

TEST(pointer_keeps_functions_that_are_not_copied)
{
	fixture_build(&f, "assembler", PIE,
		      START G FUNC("f", " ret\n") ".data\np: .quad g\nq: .quad f\n");
	fixture_plan_all(&f, "f");
	fixture_redirect(&f);
	ck_assert(!redirected(&f));
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 1);
	ck_assert_uint_eq(f.plan.redirects.sites[0].vaddr, fixture_vaddr(&f, "q"));
}

TEST(pointer_changes_entries_of_the_got)
{
	uint64_t got;

	/*
	 * Without relaxation the address comes from the GOT, whose entry has a RELATIVE
	 * relocation. The load's relocation names g but is no lea: nothing changes.
	 */
	find(&f, PIE " -Wl,--no-relax",
	     START G FUNC("f", " mov g@GOTPCREL(%rip), %rax\n call *%rax\n ret\n"));
	got = mp_elf_section(f.elf, ".got") ? mp_elf_section(f.elf, ".got")->vaddr : 0;
	ck_assert_uint_ne(got, 0);
	if (redirected(&f)) {
		ck_assert_uint_eq(f.plan.redirects.nr_sites, 1);
		ck_assert_uint_eq(mp_elf_section_at(f.elf, f.plan.redirects.sites[0].vaddr)->vaddr,
				  got);
	} else {
		ck_assert_uint_eq(f.plan.redirects.nr_sites, 0);
	}
	fixture_free(&f);
	/* Relaxed to a lea: the instruction counts, not the type of the relocation. */
	find(&f, PIE, START G FUNC("f", " mov g@GOTPCREL(%rip), %rax\n call *%rax\n ret\n"));
	if (redirected(&f))
		ck_assert_uint_eq(f.plan.redirects.sites[0].kind, ME_SITE_REL32);
	fixture_free(&f);
	/*
	 * In a program with fixed addresses a function in the GOT stays, since not all uses are
	 * known.
	 */
	find(&f, FIXED " -Wl,--no-relax",
	     START G FUNC("f",
			  " mov g@GOTPCREL(%rip), %rax\n call *%rax\n ret\n") ".data\np: .quad g\n");
	ck_assert(!redirected(&f));
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 0);
}

TEST(pointer_changes_nothing_where_the_program_asks_for_the_texts_end)
{
	find(&f, FIXED, START G FUNC("f", " mov $etext, %eax\n ret\n") ".data\np: .quad g\n");
	ck_assert(!redirected(&f));
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 0);
	fixture_free(&f);
	find(&f, FIXED, START G FUNC("f", " mov $edata, %eax\n ret\n") ".data\np: .quad g\n");
	ck_assert(redirected(&f));
}

TEST(pointer_finds_nothing_without_the_linkers_account)
{
	fixture_compile(&f, "assembler", PIE, START G ".data\np: .quad g\n");
	fixture_read(&f);
	ck_assert(!f.elf->relinkable);
	fixture_plan_all(&f, "g");
	fixture_redirect(&f);
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 0);
	ck_assert_uint_eq(f.plan.redirects.nr_functions, 0);
}

/* Functions of a stock shared object that are known only by dynamic symbols. */
TEST(pointer_moves_what_only_dynamic_symbols_know)
{
	static const char *const known[] = {"plain", "called", "filled"};
	static const char *const kept[] = {"operand", "word", "offset", "local", "read"};

	fixture_compile(
		&f, "assembler", "-nostdlib -shared",
		".globl plain, called, operand, word, offset, filled, read\n"
		".protected operand, word, offset, read\n" FUNC("plain", " mov $1, %eax\n ret\n") FUNC(
			"called", " mov $2, %eax\n ret\n") FUNC("operand", " mov $3, %eax\n ret\n")
			FUNC("word", " mov $4, %eax\n ret\n") FUNC("offset", " mov $5, %eax\n ret\n") FUNC(
				"filled", " mov $6, %eax\n ret\n") FUNC("local",
									" mov $7, %eax\n ret\n")
				FUNC("read", " mov $8, %eax\n ret\n") FUNC(
					"user",
					" call called@PLT\n lea operand(%rip), %rax\n"
					" lea table(%rip), %rcx\n mov read(%rip), %edx\n call local\n ret\n") ".set alias, word\n.section .data\n .quad alias, filled\n"
													      ".section .rodata\ntable: .long offset - table, 7\n");
	fixture_read(&f);
	ck_assert(!f.elf->relinkable);
	for (uint32_t i = 0; i < f.cfg->nr_funcs; i++)
		if (*f.cfg->funcs[i].name && !f.cfg->funcs[i].problem)
			fixture_plan_all(&f, f.cfg->funcs[i].name);
	/* Nothing of a function moves whose bytes code reads. */
	ck_assert_int_eq(f.cfg->funcs[fixture_func(&f, "read")].problem, MP_PROBLEM_READ);
	fixture_redirect(&f);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		ck_assert_msg(f.plan.redirects.functions[fixture_func(&f, known[i])], "%s",
			      known[i]);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		ck_assert_msg(!f.plan.redirects.functions[fixture_func(&f, kept[i])], "%s",
			      kept[i]);
	ck_assert_uint_eq(f.plan.redirects.nr_functions, 3);
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 0);
}

TEST(pointer_sites_ascend_and_are_found_by_address)
{
	find(&f, FIXED,
	     START G FUNC("f",
			  " mov $g, %edi\n lea g(%rip), %rax\n ret\n") ".data\n.quad g, f, g\n");
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 5);
	for (uint32_t i = 0; i < f.plan.redirects.nr_sites; i++) {
		uint64_t vaddr = f.plan.redirects.sites[i].vaddr;

		if (i)
			ck_assert_uint_gt(vaddr, f.plan.redirects.sites[i - 1].vaddr);
		ck_assert_uint_eq(me_redirects_lower_bound(&f.plan.redirects, vaddr), i);
		ck_assert_uint_eq(me_redirects_lower_bound(&f.plan.redirects, vaddr + 1), i + 1);
	}
	ck_assert_uint_eq(me_redirects_lower_bound(&f.plan.redirects, 0), 0);
}

/* Every address stays consistent: in data, in old code, in copies. */
TEST(pointer_leaves_every_function_with_one_address)
{
	struct mp_insn insn;
	uint64_t copy, word, at;

	find(&f, FIXED,
	     START G FUNC("f", " lea g(%rip), %rax\n ret\n nop\n nop\n")
		     FUNC("old", " lea g(%rip), %rax\n .byte 0xff, 0xe0\n") ".data\np: .quad g\n");
	fixture_place(&f);
	ck_assert_int_eq(fixture_copy(&f, &err), 0);
	ck_assert_int_eq(fixture_patch(&f, &err), 0);
	copy = fixture_copy_of(&f, "g", 0)->new_vaddr;
	memcpy(&word, fixture_at(&f, fixture_vaddr(&f, "p")), 8);
	at = fixture_vaddr(&f, "old");
	ck_assert_int_eq(mp_insn_decode(fixture_at(&f, at), 7, at, &insn), 0);
	if (redirected(&f)) {
		ck_assert_uint_eq(word, copy);
		/* f's old start may be a jump; its copy has the operand. */
		ck_assert_uint_eq(fixture_insn(&f, fixture_copy_of(&f, "f", 0)->new_vaddr).target,
				  copy);
	} else {
		ck_assert_uint_eq(word, fixture_vaddr(&f, "g"));
	}
}

/*
 * A program can compute a function's address from an offset and the address that it is relative
 * to.
 */
TEST(pointer_keeps_functions_that_offsets_in_data_lead_to)
{
	static const char *const offsets[] = {
		".section .rodata\nt: .long 0, g - t\n",
		".section .rodata\nt: .long 0, 0, g - .\n",
		".section .rodata\nt: .long g - t, g - t, 0\n",
		".section .rodata\nt: .long 0, 0\nu: .quad g - t\n",
	};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		char source[1024];
		struct fixture f;

		snprintf(source, sizeof(source), "%s%s%s.data\np: .quad g\n", START, G, offsets[i]);
		find(&f, PIE, source);
		ck_assert_msg(!redirected(&f), "%s", offsets[i]);
		ck_assert_uint_eq(f.plan.redirects.nr_sites, 0);
		fixture_free(&f);
	}
}

/* A label at a function's start may mark the bound of a range of code. */
TEST(pointer_keeps_functions_that_a_label_names_too)
{
	find(&f, PIE, START G ".data\np: .quad g\n");
	ck_assert(redirected(&f));
	fixture_free(&f);
	find(&f, PIE, START "first:\n" G ".data\np: .quad g\n");
	ck_assert(!redirected(&f));
	ck_assert_uint_eq(f.plan.redirects.nr_sites, 0);
}

/* A jump that is not understood still shows its table, whose labels are no functions. */
TEST(pointer_knows_the_table_of_a_jump_that_it_does_not_understand)
{
	static const struct {
		const char *code;
		bool is_switch;
	} users[] = {
		{" lea t(%rip), %rdx\n movslq (%rdx,%rax,4), %rax\n mov %rax, 8(%rsp)\n"
		 " add 8(%rsp), %rdx\n jmp *%rdx\n",
		 true},
		/* This code may compute any address from what it reads. */
		{" lea t(%rip), %rdx\n movslq (%rdx,%rax,4), %rax\n add %rdx, %rax\n ret\n", false},
		/* The base of the table is not known. */
		{" lea t+8(%rip), %rdx\n movslq (%rdx,%rax,4), %rax\n mov %rax, 8(%rsp)\n"
		 " add 8(%rsp), %rdx\n jmp *%rdx\n",
		 false},
	};

	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		char source[2048];
		struct fixture f;

		snprintf(source, sizeof(source), "%s%s%s%s%s%s", START, G,
			 ".section .text.f, \"ax\"\n.type f, @function\nf: .cfi_startproc\n",
			 users[i].code, ".L1: ret\n.L2: nop\n ret\n .cfi_endproc\n.size f, .-f\n",
			 ".section .rodata\n.zero 4096\nt: .long .L1 - t, .L2 - t\n"
			 ".data\np: .quad g\n");
		find(&f, PIE, source);
		ck_assert(!users[i].is_switch || f.cfg->funcs[fixture_func(&f, "f")].problem ==
							 MP_PROBLEM_UNRESOLVED_JUMP);
		ck_assert_msg(redirected(&f) == users[i].is_switch, "case %zu", i);
		fixture_free(&f);
	}
}
