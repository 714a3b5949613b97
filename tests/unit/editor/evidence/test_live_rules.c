// SPDX-License-Identifier: Apache-2.0
/* test_live_rules - what stays as it is in outputs for processes that run already. */
#include "tests/unit/suite.h"

#include "editor/evidence/live/live_rules.h"
#include "editor/evidence/patch_fit.h"
#include "tests/unit/edit_fixture.h"

#define FUNC(name, body)                                                                           \
	".type " name ", @function\n" name ": .cfi_startproc\n" body " .cfi_endproc\n"             \
	".size " name ", .-" name "\n"
#define SHARED "-shared -nostdlib"

FIXTURE(NULL, fixture_done);

static int restrict_to_live(struct fixture *f, struct me_eligible *e)
{
	ck_assert_int_eq(me_eligible_functions(f->cfg, 1, e, &err), 0);
	return me_live_restrict(f->cfg, e, &err);
}

static bool entry_fits(const struct fixture *f, const char *name)
{
	return me_patch_fits(f->cfg, f->cfg->funcs[fixture_func(f, name)].first_block);
}

/* A thread that is in the call would return into the middle of the jump. */
TEST(live_keeps_places_that_calls_return_to)
{
	static const char *const cut[] = {"register", "memory", "behind"};
	AUTO(me_eligible_fini) struct me_eligible e = {0};

	fixture_build(&f, "assembler", SHARED,
		      FUNC("register", " call *%rax\n mov %ebx, %eax\n nop\n nop\n ret\n")
			      FUNC("memory", " call *8(%rax)\n mov %ebx, %eax\n ret\n") FUNC(
				      "behind", " endbr64\n call *%rax\n mov $1, %eax\n ret\n")
				      FUNC("five", " call register\n mov %ebx, %eax\n ret\n")
					      FUNC("none", " mov $1, %eax\n call *%rax\n ret\n"));
	for (size_t i = 0; i < 3; i++)
		ck_assert(entry_fits(&f, cut[i]));
	ck_assert_int_eq(restrict_to_live(&f, &e), 0);
	for (size_t i = 0; i < 3; i++)
		ck_assert_msg(!entry_fits(&f, cut[i]), "%s", cut[i]);
	ck_assert(entry_fits(&f, "five"));
	ck_assert(entry_fits(&f, "none"));
}

#define SWITCH(section)                                                                            \
	FUNC("f", " cmp $3, %edi\n ja 9f\n mov %edi, %edi\n lea tbl(%rip), %rdx\n"                 \
		  " movslq (%rdx,%rdi,4), %rax\n add %rdx, %rax\n jmp *%rax\n"                     \
		  "1: mov $1, %eax\n ret\n2: mov $2, %eax\n ret\n3: mov $3, %eax\n ret\n"          \
		  "4: mov $4, %eax\n ret\n9: xor %eax, %eax\n ret\n")                              \
	".section " section                                                                        \
	"\n.balign 4\ntbl: .long 1b - tbl, 2b - tbl, 3b - tbl, 4b - tbl\n.text\n"

TEST_EACH(live_changes_constant_tables_alone, 2)
{
	AUTO(me_eligible_fini) struct me_eligible e = {0};

	fixture_build(&f, "assembler", SHARED,
		      _i ? SWITCH(".data.rel.ro, \"aw\"") : SWITCH(".rodata"));
	ck_assert_uint_eq(f.cfg->nr_tables, 1);
	ck_assert(f.cfg->tables[0].private_refs);
	ck_assert_int_eq(restrict_to_live(&f, &e), 0);
	ck_assert_int_eq(f.cfg->tables[0].private_refs, !_i);
}

TEST(live_leaves_functions_that_ask_the_loader)
{
	AUTO(me_eligible_fini) struct me_eligible e = {0};
	uint32_t asks, not ;

	fixture_build(
		&f, "assembler", SHARED,
		".globl asks\n" FUNC("asks", " sub $8, %rsp\n call dlsym@plt\n add $8, %rsp\n ret\n") ".globl _dl_find_object\n" FUNC(
			"_dl_find_object", " xor %eax, %eax\n ret\n")
			FUNC("not", " sub $8, %rsp\n call puts@plt\n add $8, %rsp\n ret\n"));
	ck_assert_int_eq(restrict_to_live(&f, &e), 0);
	asks = fixture_func(&f, "asks");
	not = fixture_func(&f, "not");
	ck_assert_uint_eq(e.verdict[asks], ME_REFUSED_ASKED);
	ck_assert_ptr_nonnull(strstr(e.detail[asks], "who calls"));
	ck_assert_uint_eq(e.verdict[fixture_func(&f, "_dl_find_object")], ME_REFUSED_ASKED);
	ck_assert_uint_eq(e.verdict[not ], ME_ELIGIBLE);
}

TEST(live_refuses_a_static_program)
{
	AUTO(me_eligible_fini) struct me_eligible e = {0};

	fixture_build(&f, "assembler", "-nostdlib -static -Wl,-e,f",
		      ".globl f\n" FUNC("f", " ret\n"));
	ck_assert_int_eq(restrict_to_live(&f, &e), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "statically linked"));
}
