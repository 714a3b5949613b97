// SPDX-License-Identifier: Apache-2.0
/*
 * test_cfg - blocks, edges, targets and problems of hand-written hazards and of compiled
 * programs.
 */
#include "libprof/cfg/cfg.h"

#include <inttypes.h>

#include "tests/unit/edit_fixture.h"
#include "tests/unit/suite.h"
#include "tests/support/compile.h"

struct file {
	char path[256];
	struct mp_elf *elf;
	struct mp_cfg *cfg;
};

static struct file *build(const char *cc, const char *flags, const char *sources)
{
	struct file *f = calloc(1, sizeof(*f));

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(compile_run(cc, flags, sources, f->path), 0);
	ck_assert_msg(!mp_elf_open(f->path, MP_ELF_ALL, &f->elf, &err), "%s", err.msg);
	ck_assert_msg(!mp_cfg_build(f->elf, NULL, &f->cfg, &err), "%s", err.msg);
	return f;
}

static void done(struct file *f)
{
	unlink(f->path);
	mp_cfg_free(f->cfg);
	mp_elf_close(f->elf);
	free(f);
}

static const struct mp_func *named(const struct file *f, const char *name)
{
	for (uint32_t i = 0; i < f->cfg->nr_funcs; i++)
		if (!strcmp(f->cfg->funcs[i].name, name))
			return &f->cfg->funcs[i];
	ck_abort_msg("no function %s", name);
	return NULL;
}

static const char *problem_of(const struct file *f, const char *name)
{
	return mp_problem_name((enum mp_problem)named(f, name)->problem);
}

#define HAZARDS "tests/data/hazards.S tests/data/hazards.c"

FIXTURE(NULL, fixture_done);

TEST_EACH(cfg_leaves_hazards_alone_and_says_why, 4)
{
	static const char *const flags[] = {"-O2 -Wl,--emit-relocs", "-O2",
					    "-O2 -static -Wl,--emit-relocs", "-O2 -no-pie"};
	static const struct {
		const char *name;
		enum mp_problem problem;
	} expected[] = {
		{"past_lock", MP_PROBLEM_OFF_GRID},	{"past_lock_known", MP_PROBLEM_MID_ESCAPE},
		{"falls_into", MP_PROBLEM_FALLS_OUT},	{"fallen_into", MP_PROBLEM_NONE},
		{"own_address", MP_PROBLEM_MID_ESCAPE}, {"no_fde", MP_PROBLEM_NO_FDE},
		{"loops", MP_PROBLEM_LOOP_INSN},	{"tight_loop", MP_PROBLEM_NONE},
		{"through_data", MP_PROBLEM_NONE},	{"main", MP_PROBLEM_NONE},
	};
	struct file *f = build("gcc", flags[_i], HAZARDS);

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		ck_assert_msg(named(f, expected[i].name)->problem == expected[i].problem, "%s: %s",
			      expected[i].name, problem_of(f, expected[i].name));
	/* The call in it may not be changed: which instructions the function has is not known. */
	ck_assert(!mp_cfg_block_is_sure(
		f->cfg, mp_cfg_block_at(f->cfg, named(f, "past_lock_known")->vaddr)));
	/* Whatever the reason found first, these must never count as understood. */
	ck_assert_uint_ne(named(f, "slots")->problem, MP_PROBLEM_NONE);
	ck_assert_uint_ne(named(f, "by_difference")->problem, MP_PROBLEM_NONE);
	ck_assert_uint_ne(named(f, "reads_itself")->problem, MP_PROBLEM_NONE);
	ck_assert_uint_ne(named(f, "call_and_constant")->problem, MP_PROBLEM_NONE);
	ck_assert(named(f, "own_address")->flags & MP_FUNC_GET_PC);
	done(f);
}

TEST_EACH(cfg_tells_code_from_a_constant_that_reads_like_it, 2)
{
	struct file *f = build("gcc", _i ? "-O2" : "-O2 -Wl,--emit-relocs", HAZARDS);
	const struct mp_func *func = named(f, "call_and_constant");
	uint32_t nr_calls = 0, nr_sure = 0;

	for (uint32_t i = 0; i < f->cfg->nr_calls; i++) {
		uint32_t b = f->cfg->calls[i].block;

		if (b < func->first_block || b >= func->first_block + func->nr_blocks)
			continue;
		nr_calls++;
		nr_sure += mp_cfg_block_is_sure(f->cfg, b);
		ck_assert_int_eq(mp_cfg_block_is_sure(f->cfg, b), b == func->first_block);
	}
	ck_assert_uint_eq(nr_calls, 2);
	ck_assert_uint_eq(nr_sure, 1);
	done(f);
}

TEST(cfg_splits_block_where_code_without_unwind_information_jumps)
{
	struct file *f = build("gcc", "-O2 -s", HAZARDS);
	struct file *g = build("gcc", "-O2", HAZARDS);
	uint64_t middle = named(g, "entered_in_the_middle")->vaddr + 6;
	uint32_t block = mp_cfg_block_starting(g->cfg, middle);

	ck_assert_uint_ne(block, MP_NONE);
	ck_assert(g->cfg->blocks[block].flags & MP_BLOCK_OTHER_ENTRY);
	ck_assert(mp_cfg_is_target(g->cfg, middle));
	/* In the stripped file, the jump lies in no function. */
	ck_assert_uint_eq(mp_cfg_func_at(f->cfg, named(g, "no_fde")->vaddr), MP_NONE);
	block = mp_cfg_block_starting(f->cfg, middle);
	ck_assert_uint_ne(block, MP_NONE);
	ck_assert(f->cfg->blocks[block].flags & MP_BLOCK_OTHER_ENTRY);
	done(f);
	done(g);
}

#define ASSEMBLY "tests/hazards/code/assembly.S tests/hazards/code/assembly.c"

/* Code that is reached only by computed addresses appears as code that nothing leads to. */
TEST_EACH(cfg_leaves_alone_code_that_nothing_leads_to, 3)
{
	static const char *const flags[] = {"-O1", "-O1 -Wl,--emit-relocs", "-O0 -no-pie"};
	struct file *f = build("gcc", flags[_i], ASSEMBLY);

	ck_assert_str_ne(problem_of(f, "first_slot"), "none");
	/* Padding does not count as such code, nor does code behind a conditional jump. */
	ck_assert_str_eq(problem_of(f, "padded_with_org"), "none");
	ck_assert_str_eq(problem_of(f, "aligned_loop"), "none");
	ck_assert_str_eq(problem_of(f, "shared_tail_b"), "none");
	ck_assert_str_eq(problem_of(f, "main"), "none");
	done(f);
}

/* Compilers leave no unreached code, except behind calls that they expected to return. */
TEST_EACH(cfg_finds_no_unreached_code_that_a_compiler_made, 4)
{
	static const char *const flags[] = {"-w -O2", "-w -O0", "-w -O3 -no-pie", "-w -Os"};
	static const char *const compilers[] = {"gcc", "clang"};

	for (size_t i = 0; i < 2; i++) {
		struct file *f = build(compilers[i], flags[_i], "tests/data/control.c");
		uint32_t nr = 0;

		for (uint32_t k = 0; k < f->cfg->nr_funcs; k++) {
			ck_assert_msg(f->cfg->funcs[k].problem != MP_PROBLEM_UNREACHED, "%s",
				      f->cfg->funcs[k].name);
			nr += f->cfg->funcs[k].problem == MP_PROBLEM_NONE;
		}
		ck_assert_uint_ge(nr, 15);
		done(f);
	}
}

TEST_EACH(cfg_leaves_alone_what_calls_and_does_not_come_back_behind, 2)
{
	struct file *f = build("gcc", _i ? "-O1 -Wl,--emit-relocs" : "-O1", ASSEMBLY);
	struct file *g = build("gcc", _i ? "-w -O0 -fsplit-stack" : "-w -O2 -fsplit-stack -no-pie",
			       "tests/hazards/unwind/splitstack.c");

	ck_assert_str_eq(problem_of(f, "skips_over"), "a call returns to another place");
	ck_assert_str_eq(problem_of(f, "inline_data"), "a call returns to another place");
	ck_assert_str_eq(problem_of(g, "deep"), "a call returns to another place");
	/* Compilers' functions also write to the top of the stack, but within their frame. */
	for (uint32_t i = 0; i < f->cfg->nr_funcs; i++)
		ck_assert(f->cfg->funcs[i].problem != MP_PROBLEM_RETURNS_ELSEWHERE ||
			  !strcmp(f->cfg->funcs[i].name, "skips_over") ||
			  !strcmp(f->cfg->funcs[i].name, "inline_data"));
	done(f);
	done(g);
}

/* A table of self-relative code addresses differs from the table of a switch. */
TEST_EACH(cfg_knows_places_that_a_section_of_the_programs_own_leads_to, 3)
{
	static const char *const flags[] = {"-w -O2 -D_GNU_SOURCE",
					    "-w -O2 -D_GNU_SOURCE -Wl,--emit-relocs",
					    "-w -O0 -D_GNU_SOURCE -no-pie"};
	struct file *f = build("gcc", flags[_i], "tests/hazards/code/skips.c");

	ck_assert_str_eq(problem_of(f, "reads"), "an address in its middle is used as a value");
	ck_assert_str_eq(problem_of(f, "counts"), "an address in its middle is used as a value");
	/* Any word of such a section counts, at any alignment: with fixed addresses, parts of two look like one in main. */
	if (_i != 2)
		ck_assert_str_eq(problem_of(f, "main"), "none");
	done(f);
}

TEST(cfg_finds_resolvers_by_what_the_loader_calls)
{
	struct file *f =
		build("gcc", "-w -O2 -DLIBRARY -shared -fPIC", "tests/hazards/link/ifuncs.c");
	uint32_t nr = 0;

	for (uint32_t i = 0; i < f->cfg->nr_funcs; i++)
		nr += (f->cfg->funcs[i].flags & MP_FUNC_IFUNC) != 0;
	ck_assert_uint_eq(nr, 1);
	ck_assert(named(f, "exported")->flags & MP_FUNC_IFUNC);
	done(f);
	f = build("gcc", "-O2 -s", "tests/data/local_ifunc.c");
	nr = 0;
	for (uint32_t i = 0; i < f->cfg->nr_funcs; i++)
		nr += (f->cfg->funcs[i].flags & MP_FUNC_IFUNC) != 0;
	ck_assert_uint_eq(nr, 1);
	done(f);
}

/* Checks the invariants of the whole graph. */
static void check_whole(const struct file *f)
{
	const struct mp_cfg *cfg = f->cfg;

	for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
		const struct mp_func *func = &cfg->funcs[i];
		uint64_t bytes = 0, insns = 0;

		ck_assert(!i || cfg->funcs[i - 1].vaddr < func->vaddr);
		ck_assert_uint_eq(cfg->ranges[func->first_range].start, func->vaddr);
		for (uint32_t b = 0; b < func->nr_blocks; b++) {
			const struct mp_block *block = &cfg->blocks[func->first_block + b];

			ck_assert_uint_gt(block->size, 0);
			ck_assert_uint_eq(block->func, i);
			ck_assert(!b || block[-1].vaddr + block[-1].size <= block->vaddr);
			bytes += block->size;
			insns += block->nr_insns;
			ck_assert_uint_eq(mp_cfg_block_at(cfg, block->vaddr + block->size - 1),
					  func->first_block + b);
			for (uint64_t a = block->vaddr + 1; a < block->vaddr + block->size; a++)
				ck_assert(!mp_cfg_is_target(cfg, a) || func->problem);
		}
		ck_assert_uint_eq(bytes, func->size);
		ck_assert_uint_eq(insns, func->nr_insns);
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint32_t falls = 0, taken = 0;

		for (uint32_t e = 0; e < block->nr_edges; e++) {
			const struct mp_edge *edge = &cfg->edges[block->first_edge + e];

			ck_assert_uint_eq(edge->from, b);
			ck_assert_uint_eq(cfg->blocks[edge->to].func, block->func);
			falls += edge->kind == MP_EDGE_FALL;
			taken += edge->kind == MP_EDGE_TAKEN || edge->kind == MP_EDGE_JUMP;
			if (edge->kind == MP_EDGE_FALL)
				ck_assert_uint_eq(cfg->blocks[edge->to].vaddr,
						  block->vaddr + block->size);
			if (edge->kind == MP_EDGE_TAKEN || edge->kind == MP_EDGE_JUMP)
				ck_assert_uint_eq(cfg->blocks[edge->to].vaddr,
						  mp_block_target(block));
		}
		ck_assert_uint_le(falls, 1);
		ck_assert_uint_le(taken, 1);
		if (!cfg->funcs[block->func].problem && block->term == MP_TERM_COND)
			ck_assert_uint_eq(falls, 1);
		if (block->term == MP_TERM_JUMP)
			ck_assert(taken == 1 && !falls);
		if (block->term == MP_TERM_RET || block->term == MP_TERM_NORETURN ||
		    block->term == MP_TERM_TAIL)
			ck_assert_uint_eq(block->nr_edges, 0);
	}
	for (uint32_t c = 1; c < cfg->nr_calls; c++)
		ck_assert_uint_le(cfg->calls[c - 1].block, cfg->calls[c].block);
}

TEST_EACH(cfg_keeps_its_invariants, 5)
{
	static const char *const flags[] = {"-w -O2", "-w -O2 -no-pie -s", "-w -O0",
					    "-w -O2 -static", "-w -Os -Wl,--emit-relocs"};
	struct file *f = build("gcc", flags[_i], "tests/data/switches.c");
	struct file *g = build("gcc", flags[_i], HAZARDS);

	check_whole(f);
	check_whole(g);
	done(f);
	done(g);
}

/* Every direct branch that objdump finds leads to a known target. */
TEST_EACH(cfg_knows_every_branch_target_that_objdump_sees, 3)
{
	static const char *const flags[] = {"-w -O2", "-w -O2 -static", "-w -O3 -no-pie"};
	struct file *f = build("gcc", flags[_i], "tests/data/switches.c");
	char command[512], line[512];
	uint64_t seen = 0;
	FILE *p;

	snprintf(command, sizeof(command), "objdump -d --no-show-raw-insn %s", f->path);
	p = popen(command, "r");
	ck_assert_ptr_nonnull(p);
	while (fgets(line, sizeof(line), p)) {
		char mnemonic[32];
		uint64_t from, to;

		if (sscanf(line, " %" SCNx64 ": %31s %" SCNx64 " <", &from, mnemonic, &to) != 3 ||
		    (mnemonic[0] != 'j' && strcmp(mnemonic, "call")) || !strstr(line, " <"))
			continue;
		/* Calls of undefined weak functions lead to 0. */
		if (mp_cfg_func_at(f->cfg, from) == MP_NONE || !to)
			continue;
		ck_assert_msg(mp_cfg_is_target(f->cfg, to), "%s", line);
		if (mp_cfg_func_at(f->cfg, to) != MP_NONE &&
		    f->cfg->funcs[mp_cfg_func_at(f->cfg, to)].problem != MP_PROBLEM_OFF_GRID)
			ck_assert_msg(mp_cfg_block_starting(f->cfg, to) != MP_NONE, "%s", line);
		seen++;
	}
	ck_assert_int_eq(pclose(p), 0);
	ck_assert_uint_gt(seen, 40);
	done(f);
}

TEST_EACH(cfg_joins_cold_part_with_its_function, 2)
{
	/* With symbols and without; without them, only jumps show the relation. */
	static const char *const flags[] = {"-w -O2", "-w -O2 -s"};
	struct file *f = build("gcc", flags[_i], "tests/data/cold.c");
	uint32_t cold = 0;

	for (uint32_t i = 0; i < f->cfg->nr_ranges; i++) {
		const struct mp_range *r = &f->cfg->ranges[i];
		uint32_t block = mp_cfg_block_starting(f->cfg, r->start);

		if (!r->cold)
			continue;
		cold++;
		ck_assert_uint_eq(f->cfg->funcs[r->func].nr_ranges, 2);
		ck_assert_uint_ne(f->cfg->funcs[r->func].vaddr, r->start);
		ck_assert_uint_ne(block, MP_NONE);
		ck_assert(f->cfg->blocks[block].flags & MP_BLOCK_COLD_PART);
		ck_assert_uint_eq(f->cfg->funcs[r->func].problem, MP_PROBLEM_NONE);
	}
	/* Without a name, a part that starts without a frame may be a function of its own. */
	ck_assert_uint_eq(cold, _i ? 1 : 2);
	check_whole(f);
	done(f);
}

TEST(cfg_takes_what_begins_without_a_frame_for_the_function)
{
	struct file *f = build("gcc", "-no-pie -s", "tests/data/cold_first.S");
	uint32_t nr = 0;

	for (uint32_t i = 0; i < f->cfg->nr_funcs; i++) {
		const struct mp_func *func = &f->cfg->funcs[i];
		const struct mp_range *ranges = &f->cfg->ranges[func->first_range];

		if (func->nr_ranges < 2)
			continue;
		nr++;
		ck_assert_uint_eq(func->vaddr, ranges[0].start);
		ck_assert(ranges[0].start > ranges[1].start && !ranges[0].cold && ranges[1].cold);
		ck_assert(func->flags & MP_FUNC_POINTED);
	}
	ck_assert_uint_eq(nr, 1);
	check_whole(f);
	done(f);
}

/* @nr of 200 branches lead to a cold part, and @nr_back of them return from it. */
static bool profiled(uint32_t nr, uint32_t nr_back)
{
	struct mp_block blocks[400] = {0};
	struct mp_edge edges[400] = {0};
	struct mp_cfg cfg = {.blocks = blocks, .nr_blocks = 200 + nr, .edges = edges};

	for (uint32_t b = 0; b < cfg.nr_blocks; b++) {
		bool cold = b >= 200;

		blocks[b].term = !cold		     ? MP_TERM_COND
				 : b < 200 + nr_back ? MP_TERM_JUMP
						     : MP_TERM_TRAP;
		blocks[b].flags = cold ? MP_BLOCK_COLD_PART : 0;
		blocks[b].first_edge = cfg.nr_edges;
		blocks[b].nr_edges = cold ? b < 200 + nr_back : b < nr;
		edges[cfg.nr_edges] = (struct mp_edge){.from = b, .to = cold ? b - 200 : b + 200};
		cfg.nr_edges += blocks[b].nr_edges;
	}
	return mp_cfg_is_profiled(&cfg);
}

TEST(cfg_knows_an_order_that_was_made_by_a_profile)
{
	struct file *f = build("gcc", "-w -O2", "tests/data/cold.c");

	ck_assert(!mp_cfg_is_profiled(f->cfg));
	done(f);
	ck_assert(profiled(40, 40));
	/* Code that ends the program or cleans up is cold even without a profile. */
	ck_assert(!profiled(100, 0));
	ck_assert(!profiled(100, 9));
}

TEST(cfg_ends_block_at_call_that_does_not_return)
{
	struct file *f = build("gcc", "-w -O2", "tests/data/cold.c");
	const struct mp_func *fatal = named(f, "fatal");
	uint32_t calls = 0;

	ck_assert(fatal->flags & MP_FUNC_NORETURN);
	ck_assert(!(named(f, "main")->flags & MP_FUNC_NORETURN));
	for (uint32_t c = 0; c < f->cfg->nr_calls; c++) {
		const struct mp_call *call = &f->cfg->calls[c];

		if (call->callee == MP_NONE || &f->cfg->funcs[call->callee] != fatal)
			continue;
		ck_assert_uint_eq(f->cfg->blocks[call->block].term, MP_TERM_NORETURN);
		calls++;
	}
	ck_assert_uint_ge(calls, 1);
	done(f);
}

TEST(cfg_finds_landing_pads)
{
	struct file *f;
	uint32_t pads = 0;

	if (!compile_has("g++"))
		MORPH_SKIP("no g++");
	f = build("g++", "-w -O2", "tests/data/exceptions.cc");
	for (uint32_t b = 0; b < f->cfg->nr_blocks; b++)
		pads += !!(f->cfg->blocks[b].flags & MP_BLOCK_LANDING_PAD);
	ck_assert_uint_gt(pads, 3);
	check_whole(f);
	done(f);
}

static bool want_main(void *ctx, const struct mp_func *func)
{
	++*(uint32_t *)ctx;
	return !strcmp(func->name, "main");
}

TEST(cfg_makes_blocks_of_wanted_functions_alone)
{
	struct file *f = build("gcc", "-w -O2", "tests/data/switches.c");
	struct mp_cfg_options options = {.want = want_main};
	struct mp_cfg *cfg;
	uint32_t asked = 0;

	options.ctx = &asked;
	ck_assert_int_eq(mp_cfg_build(f->elf, &options, &cfg, &err), 0);
	ck_assert_uint_eq(asked, cfg->nr_funcs);
	for (uint32_t i = 0; i < cfg->nr_funcs; i++)
		ck_assert_int_eq(cfg->funcs[i].nr_blocks > 0, !strcmp(cfg->funcs[i].name, "main"));
	for (uint32_t b = 0; b < f->cfg->nr_blocks; b++)
		ck_assert_int_eq(mp_cfg_is_target(cfg, f->cfg->blocks[b].vaddr),
				 mp_cfg_is_target(f->cfg, f->cfg->blocks[b].vaddr));
	mp_cfg_free(cfg);
	done(f);
}

#define STOCK_FUNC(name, body)                                                                     \
	".type " name ", @function\n" name ": .cfi_startproc\n" body " .cfi_endproc\n"             \
	".size " name ", .-" name "\n"
#define STOCK_START                                                                                \
	".globl start\n" STOCK_FUNC("start", " lea table(%rip), %rax\n hlt\n")                     \
		STOCK_FUNC("f", " mov $1, %eax\n.Lf: mov $2, %ecx\n mov $3, %edx\n ret\n")
#define STOCK "-nostdlib -Wl,-e,start "

static void stock(struct fixture *f, const char *flags, const char *source)
{
	fixture_compile(f, "assembler", flags, source);
	fixture_read(f);
	ck_assert(!f->elf->relinkable);
}

TEST(cfg_takes_words_behind_a_name_for_offsets_without_relocations)
{
	uint64_t at;

	stock(&f, STOCK "-pie",
	      STOCK_START ".section .rodata\n.balign 4\ntable: .long start - table, .Lf - table\n");
	at = fixture_vaddr(&f, "f");
	ck_assert(mp_cfg_is_target(f.cfg, at + 5));
	ck_assert(!mp_cfg_may_be_target(f.cfg, at + 10));
}

TEST(cfg_takes_short_words_for_addresses_where_they_are_fixed)
{
	uint64_t at;

	stock(&f, STOCK "-no-pie",
	      STOCK_START
	      ".section .rodata\n.balign 8\ntable: .quad 0\n .long 7, .Lf + 5, f + 2\n");
	at = fixture_vaddr(&f, "f");
	ck_assert(mp_cfg_is_target(f.cfg, at + 10));
	/*
	 * A number that refers between two instructions is no evidence that code is entered
	 * there.
	 */
	ck_assert(mp_cfg_may_be_target(f.cfg, at + 2));
	ck_assert(!mp_cfg_is_target(f.cfg, at + 2));
	ck_assert(!mp_cfg_may_be_target(f.cfg, at + 5));
	ck_assert_uint_eq(f.cfg->funcs[fixture_func(&f, "f")].problem, MP_PROBLEM_NONE);
}

/* GHC's code lies outside of functions, and C code of its runtime holds addresses of it. */
TEST(cfg_takes_words_behind_a_number_for_offsets)
{
	uint64_t at;

	stock(&f, STOCK "-no-pie",
	      ".globl start\n" STOCK_FUNC("start", " mov $.Lgap, %eax\n hlt\n") STOCK_FUNC(
		      "f",
		      " mov $1, %eax\n.Lf: mov $2, %ecx\n mov $3, %edx\n ret\n") ".balign 4\n.Lgap: .long .Lf - .Lgap, 0\n");
	at = fixture_vaddr(&f, "f");
	ck_assert(mp_cfg_may_be_target(f.cfg, at + 5));
	ck_assert(!mp_cfg_may_be_target(f.cfg, at + 10));
}

/* A loop with a negative index names the end of its array, behind which a table of another function may lie. */
TEST(cfg_leaves_alone_a_function_whose_table_is_named_in_its_middle)
{
	static const char source[] = ".globl start\n" STOCK_FUNC(
		"start", " movzbl table+8(%rip), %eax\n hlt\n")
		STOCK_FUNC(
			"f",
			" lea table(%rip), %rdx\n movslq (%rdx,%rax,4), %rax\n"
			" add %rdx, %rax\n jmp *%rax\n.La: mov $1, %eax\n ret\n"
			".Lb: mov $0x11223344, %eax\n.Lc: ret\n") ".section .rodata\n.balign 4\n"
								  "table: .long .Lb - table, .Lc - table, .La - table, .Lb - table\n";
	const struct mp_func *func;

	fixture_compile(&f, "assembler", "-nostdlib -Wl,-e,start -Wl,--emit-relocs -pie", source);
	fixture_read(&f);
	ck_assert(f.elf->relinkable);
	func = &f.cfg->funcs[fixture_func(&f, "f")];
	ck_assert_int_eq(func->problem, MP_PROBLEM_OFF_GRID);
}

/* A constant outside of functions that can be read as a call of @to. */
#define GAP_CALL(to) ".byte 0xe8\n .long " to " - . - 4\n"

TEST_EACH(cfg_leaves_alone_what_a_gap_leads_into, 10)
{
	static const struct {
		const char *g, *gap, *data; /* body of a function, code behind it, a data word */
		enum mp_problem f;
	} cases[] = {
		/*
		 * Control may come there: by a branch, by several branches in a row, behind a
		 * call, or by a pointer in the program.
		 */
		{" jmp .Lgap\n", ".Lgap: " GAP_CALL("f + 2"), "0", MP_PROBLEM_OFF_GRID},
		{" jmp .Lgap\n", ".quad 0\n.Lgap: jmp 1f\n .quad 0\n1: nop\n" GAP_CALL("f + 2"),
		 "0", MP_PROBLEM_OFF_GRID},
		{" jmp .Lgap\n", ".Lgap: call start\n" GAP_CALL("f + 2"), "0", MP_PROBLEM_OFF_GRID},
		{" ret\n", ".quad 0\n.Lgap: " GAP_CALL("f + 2"), ".Lgap", MP_PROBLEM_OFF_GRID},
		/*
		 * Text that nothing leads to, that only operands refer to, or that follows a
		 * jump.
		 */
		{" ret\n", GAP_CALL("f + 2") ".quad 0\n", "0", MP_PROBLEM_NONE},
		{" lea .Lgap(%rip), %rax\n ret\n", ".Lgap: " GAP_CALL("f + 2"), "0",
		 MP_PROBLEM_NONE},
		{" jmp .Lgap\n", ".Lgap: jmp start\n" GAP_CALL("f + 2"), "0", MP_PROBLEM_NONE},
		/*
		 * This may be a jump past the prefix; in the last case the prefix is part of
		 * the opcode.
		 */
		{" ret\n", GAP_CALL(".Llock + 1"), "0", MP_PROBLEM_OFF_GRID},
		{" ret\n", GAP_CALL(".Lrep + 1"), "0", MP_PROBLEM_OFF_GRID},
		{" ret\n", GAP_CALL(".Lsse + 1"), "0", MP_PROBLEM_NONE},
	};
	char source[1024];

	snprintf(
		source, sizeof(source),
		".globl start\n" STOCK_FUNC("start", " lea table(%%rip), %%rax\n hlt\n") STOCK_FUNC(
			"f", " mov $1, %%eax\n.Llock: lock incl (%%rdi)\n"
			     ".Lrep: rep movsb\n.Lsse: movdqu (%%rsi), %%xmm0\n ret\n")
			STOCK_FUNC(
				"g",
				"%s") "%s.quad 0\n.section .data.rel.ro, \"aw\"\n.balign 8\ntable: .quad %s\n",
		cases[_i].g, cases[_i].gap, cases[_i].data);
	stock(&f, STOCK "-pie", source);
	ck_assert_uint_eq(f.cfg->funcs[fixture_func(&f, "f")].problem, cases[_i].f);
	ck_assert_uint_eq(f.cfg->funcs[fixture_func(&f, "g")].problem, MP_PROBLEM_NONE);
}

TEST_EACH(cfg_follows_a_pointer_over_calls_to_a_tail_call, 10)
{
	static const struct {
		const char *body;
		enum mp_problem g;
	} cases[] = {
		/* A parameter that the callee does not change. */
		{" call f\n cmp $3, %edi\n je 1f\n jmp *%rsi\n1: call f\n ret\n", MP_PROBLEM_NONE},
		/*
		 * On one way a copy of the parameter; on another, the callee's result or a
		 * constant.
		 */
		{" call f\n test %edi, %edi\n je 1f\n mov %rsi, %rax\n1: jmp *%rax\n",
		 MP_PROBLEM_NONE},
		{" test %edi, %edi\n je 1f\n lea f(%rip), %rsi\n1: call f\n jmp *%rsi\n",
		 MP_PROBLEM_NONE},
		/* Behind more tests than the search for tables follows. */
		{" .rept 60\n test %edi, %edi\n je 1f\n inc %edi\n1:\n .endr\n jmp *%rdx\n",
		 MP_PROBLEM_NONE},
		/* In a loop. */
		{"1: call f\n dec %edi\n jne 1b\n jmp *%rsi\n", MP_PROBLEM_NONE},
		/* The frame is still there, so it is no tail call. */
		{" push %rbx\n .cfi_adjust_cfa_offset 8\n call f\n jmp *%rsi\n",
		 MP_PROBLEM_UNRESOLVED_JUMP},
		/* Computed before the call, on the only way or on one of two. */
		{" lea table(%rip), %rsi\n add %rdi, %rsi\n call f\n jmp *%rsi\n",
		 MP_PROBLEM_UNRESOLVED_JUMP},
		{" test %edi, %edi\n je 1f\n add %rdi, %rsi\n1: call f\n jmp *%rsi\n",
		 MP_PROBLEM_UNRESOLVED_JUMP},
		{" test %edi, %edi\n je 1f\n movslq (%rdi), %rsi\n1: call f\n jmp *%rsi\n",
		 MP_PROBLEM_UNRESOLVED_JUMP},
		/* The function's own label. */
		{" lea 1f(%rip), %rsi\n call f\n jmp *%rsi\n1: ret\n", MP_PROBLEM_MID_ESCAPE},
	};
	char source[1024] = STOCK_START ".type g, @function\ng: .cfi_startproc\n";

	strcat(source, cases[_i].body);
	strcat(source, " .cfi_endproc\n.size g, .-g\n.section .rodata\ntable: .quad 0\n");
	stock(&f, STOCK "-pie", source);
	ck_assert_str_eq(mp_problem_name(f.cfg->funcs[fixture_func(&f, "g")].problem),
			 mp_problem_name(cases[_i].g));
}

TEST(cfg_divides_code_that_is_longer_than_a_block_may_be)
{
	/* An instruction of 3 bytes, so that some stand over the limit. */
	const char *source = STOCK_START STOCK_FUNC(
		"g", " .fill 6000000, 3, 0x001f0f\n ret\n") ".section .rodata\ntable: .quad 0\n";
	uint64_t size = 0, nr_insns = 0;
	const struct mp_func *g;

	stock(&f, STOCK "-pie", source);
	g = &f.cfg->funcs[fixture_func(&f, "g")];
	ck_assert_str_eq(mp_problem_name((enum mp_problem)g->problem), "none");
	ck_assert_uint_eq(g->nr_blocks, 2);
	for (uint32_t b = g->first_block; b < g->first_block + g->nr_blocks; b++) {
		const struct mp_block *block = &f.cfg->blocks[b];

		ck_assert_uint_eq(block->vaddr, g->vaddr + size);
		size += block->size;
		nr_insns += block->nr_insns;
	}
	ck_assert_uint_eq(size, 18000001);
	ck_assert_uint_eq(nr_insns, 6000001);
	ck_assert_uint_eq(f.cfg->blocks[g->first_block].term, MP_TERM_FALL);
	ck_assert_uint_eq(f.cfg->blocks[g->first_block].nr_edges, 1);
	ck_assert_uint_eq(f.cfg->blocks[g->first_block + 1].term, MP_TERM_RET);
}
