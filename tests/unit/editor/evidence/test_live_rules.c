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

/* Does a jump fit at the last block of the function? */
static bool last_fits(const struct fixture *f, const char *name)
{
	const struct mp_func *func = &f->cfg->funcs[fixture_func(f, name)];

	return me_patch_fits(f->cfg, func->first_block + func->nr_blocks - 1);
}

/* Its last block is @body. */
#define LAST(name, body) FUNC(name, " test %edi, %edi\n jz 1f\n ret\n1: " body)

/* A thread that is in the call would return into the middle of the jump. */
TEST(live_keeps_places_that_calls_return_to)
{
	static const char *const cut[] = {"register", "memory", "behind"};
	AUTO(me_eligible_fini) struct me_eligible e = {0};

	fixture_build(&f, "assembler", SHARED,
		      LAST("register", " call *%rax\n mov %ebx, %eax\n nop\n nop\n ret\n")
			      LAST("memory", " call *8(%rax)\n mov %ebx, %eax\n ret\n") LAST(
				      "behind", " endbr64\n call *%rax\n mov $1, %eax\n ret\n")
				      LAST("five", " call register\n mov %ebx, %eax\n ret\n")
					      LAST("none", " mov $1, %eax\n call *%rax\n ret\n"));
	for (size_t i = 0; i < 3; i++)
		ck_assert(last_fits(&f, cut[i]));
	ck_assert_int_eq(restrict_to_live(&f, &e), 0);
	for (size_t i = 0; i < 3; i++)
		ck_assert_msg(!last_fits(&f, cut[i]), "%s", cut[i]);
	ck_assert(last_fits(&f, "five"));
	ck_assert(last_fits(&f, "none"));
}

/* Makes the CFG again as outputs for running processes have it. */
static void rebuild_with_entries(struct fixture *f)
{
	const struct mp_cfg_options options = {.entries = true};

	mp_cfg_free(f->cfg);
	ck_assert_int_eq(mp_cfg_build(f->elf, &options, &f->cfg, &err), 0);
}

/*
 * The kernel executes the first instruction as the file has it where somebody has set a breakpoint on it, and
 * goes on behind it: there, the jump begins.
 */
TEST(live_writes_no_jump_over_first_instructions)
{
	static const struct {
		const char *name;
		bool entry, behind; /* does a jump fit there? */
	} want[] = {{"pushes", false, true}, {"long", false, true},   {"short", false, false},
		    {"padded", false, true}, {"marked", true, false}, {"jumps", true, false},
		    {"hops", false, false},  {"inner", false, false}, {"loops", false, true},
		    {"enters", false, false}};
	AUTO(me_eligible_fini) struct me_eligible e = {0};

	fixture_build(
		&f, "assembler", SHARED,
		FUNC("pushes", " push %rbx\n mov $1, %eax\n pop %rbx\n ret\n") FUNC(
			"long", " sub $0x100, %rsp\n mov $1, %eax\n add $0x100, %rsp\n ret\n")
			FUNC("short", " mov $1, %eax\n ret\n int $3\n ret\n") ".balign 16\n" FUNC(
				"padded",
				" mov $1, %eax\n ret\n") ".balign 16\n" FUNC("marked",
									     " endbr64\n mov $1, %eax\n ret\n")
				FUNC("jumps", " .byte 0xe9\n .long long - . - 4\n") FUNC(
					"hops",
					" jmp inner\n") FUNC("inner",
							     " push %rbx\nnamed: mov $1, %eax\n pop %rbx\n ret\n")
					FUNC("loops",
					     " push %rbx\n1: add $1, %eax\n sub $1, %edi\n jnz 1b\n pop %rbx\n ret\n")
						FUNC("enters",
						     " push %rbx\n test %edi, %edi\n jz 1f\n pop %rbx\n ret\n1: ud2\n"));
	rebuild_with_entries(&f);
	ck_assert_int_eq(restrict_to_live(&f, &e), 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		uint32_t first = f.cfg->funcs[fixture_func(&f, want[i].name)].first_block;

		ck_assert_msg(me_patch_fits(f.cfg, first) == want[i].entry, "%s", want[i].name);
		ck_assert_msg(me_patch_fits_behind(f.cfg, first) == want[i].behind, "%s",
			      want[i].name);
		if (want[i].behind)
			ck_assert(me_patch_start(f.cfg, &f.cfg->blocks[first + 1]) ==
				  f.cfg->blocks[first].vaddr + f.cfg->blocks[first].size);
	}
}

/* Without the option, blocks are as in any other output. */
TEST(live_cuts_only_first_instructions_off)
{
	uint32_t nr, whole;

	fixture_build(&f, "assembler", SHARED,
		      FUNC("pushes",
			   " push %rbx\n push %rbp\n mov $1, %eax\n pop %rbp\n pop %rbx\n ret\n")
			      FUNC("marked", " endbr64\n push %rbx\n pop %rbx\n ret\n")
				      FUNC("one", " ret\n"));
	nr = f.cfg->nr_blocks;
	whole = f.cfg->funcs[fixture_func(&f, "pushes")].size;
	ck_assert_uint_eq(f.cfg->funcs[fixture_func(&f, "pushes")].nr_blocks, 1);
	rebuild_with_entries(&f);
	ck_assert_uint_eq(f.cfg->nr_blocks, nr + 1);
	nr = f.cfg->funcs[fixture_func(&f, "pushes")].first_block;
	ck_assert_uint_eq(f.cfg->blocks[nr].size, 1);
	ck_assert_uint_eq(f.cfg->blocks[nr].term, MP_TERM_FALL);
	ck_assert(f.cfg->blocks[nr].flags & MP_BLOCK_ENTRY);
	ck_assert(!(f.cfg->blocks[nr].flags & MP_BLOCK_BEHIND_ENTRY));
	ck_assert_uint_eq(f.cfg->blocks[nr + 1].size, whole - 1);
	ck_assert_uint_eq(f.cfg->blocks[nr + 1].term, MP_TERM_RET);
	ck_assert(f.cfg->blocks[nr + 1].flags & MP_BLOCK_BEHIND_ENTRY);
	ck_assert_uint_eq(mp_cfg_falls_to(f.cfg, nr), nr + 1);
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
