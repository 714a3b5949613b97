// SPDX-License-Identifier: Apache-2.0
/*
 * test_stale - matches functions and blocks of two builds that differ in one point, and carries
 * counts over.
 */
#include "libprof/stale/stale.h"

#include "tests/unit/files.h"
#include "tests/support/compile.h"

/* A build: its code and its fingerprint. */
struct build {
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct mp_fingerprint print;
};

#define FUNC(name, body)                                                                           \
	".globl " name "\n.hidden " name "\n.type " name ", @function\n" name                      \
	":\n.cfi_startproc\n" body ".cfi_endproc\n.size " name ", .-" name "\n.p2align 4\n"

/* Five blocks: a test, a start, a loop, an end, another end. */
#define LOOP(constant, more)                                                                       \
	"test %edi, %edi\njz 1f\nxor %eax, %eax\n2: add %edi, %eax\ndec %edi\njnz 2b\n" more       \
	"imul $" constant ", %eax, %eax\nret\n1: mov $7, %eax\nret\n"
/* The same with other registers. */
#define LOOP_RENAMED                                                                               \
	"test %esi, %esi\njz 1f\nxor %ecx, %ecx\n2: add %esi, %ecx\ndec %esi\njnz 2b\n"            \
	"imul $3, %ecx, %ecx\nret\n1: mov $7, %ecx\nret\n"
#define SHIFTS "shl $3, %rdi\ncmp %rsi, %rdi\nja 1f\nsar $2, %rdi\n1: lea 5(%rdi), %rax\nret\n"
#define SMALL  "lea 1(%rdi), %eax\nret\n"

/* @stripped: there are no names, only code. */
static void build(struct build *b, const char *source, bool stripped)
{
	char path[256], text[256];

	snprintf(text, sizeof(text), "%s/morph-stale-%d.s",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
	write_text(text, source);
	ck_assert_int_eq(compile_run("gcc", stripped ? "-nostdlib -shared -s" : "-nostdlib -shared",
				     text, path),
			 0);
	unlink(text);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &b->elf, &err), "%s", err.msg);
	ck_assert_msg(!mp_cfg_build(b->elf, NULL, &b->cfg, &err), "%s", err.msg);
	ck_assert_int_eq(mp_fingerprint_make(b->cfg, NULL, 0, NULL, 0, &b->print, &err), 0);
	unlink(path);
}

static void build_fini(struct build *b)
{
	mp_fingerprint_fini(&b->print);
	mp_cfg_free(b->cfg);
	mp_elf_close(b->elf);
}

struct pair {
	struct build a, b;
	struct mp_stale_match match;
};

static void pair_init(struct pair *p, const char *old_source, const char *new_source, bool stripped)
{
	build(&p->a, old_source, stripped);
	build(&p->b, new_source, stripped);
	ck_assert_int_eq(mp_stale_match(&p->a.print, &p->b.print, &p->match, &err), 0);
}

static void pair_fini(struct pair *p)
{
	mp_stale_match_fini(&p->match);
	build_fini(&p->a);
	build_fini(&p->b);
}

static uint32_t func_named(const struct build *b, const char *name)
{
	for (uint32_t f = 0; f < b->cfg->nr_funcs; f++)
		if (!strcmp(b->cfg->funcs[f].name, name))
			return f;
	ck_abort_msg("no function %s", name);
}

/* Return: block @n of function @f, as numbered in the fingerprint. */
static uint32_t block_of(const struct build *b, uint32_t f, uint32_t n)
{
	ck_assert_uint_lt(n, b->print.funcs[f].nr_kept);
	return b->print.funcs[f].first_block + n;
}

static void expect_block(const struct pair *p, uint32_t from, uint32_t n, uint32_t to, uint32_t m)
{
	ck_assert_uint_eq(p->match.block_to[block_of(&p->a, from, n)], block_of(&p->b, to, m));
	ck_assert_uint_eq(p->match.block_of[block_of(&p->b, to, m)], block_of(&p->a, from, n));
}

TEST(stale_finds_all_of_what_only_moved)
{
	AUTO(pair_fini) struct pair p = {0};

	pair_init(&p, FUNC("f", LOOP("3", "")) FUNC("g", SHIFTS) FUNC("h", SMALL),
		  FUNC("new", "xor %edx, %edx\nmul %ecx\nret\n") FUNC("f", LOOP("3", ""))
			  FUNC("g", SHIFTS) FUNC("h", SMALL),
		  true);
	ck_assert_uint_eq(p.a.print.nr_funcs, 3);
	ck_assert_uint_eq(p.b.print.nr_funcs, 4);
	for (uint32_t f = 0; f < 3; f++) {
		ck_assert_uint_eq(p.match.func_to[f], f + 1);
		ck_assert_uint_eq(p.match.how[f], MP_STALE_CODE);
		for (uint32_t n = 0; n < p.a.print.funcs[f].nr_kept; n++)
			expect_block(&p, f, n, f + 1, n);
	}
	ck_assert_uint_eq(p.match.func_of[0], MP_NONE);
}

TEST(stale_knows_nothing_of_an_inserted_block)
{
	AUTO(pair_fini) struct pair p = {0};
	uint32_t f, g;

	pair_init(&p, FUNC("f", LOOP("3", "")),
		  FUNC("f", LOOP("3", "cmp $9, %eax\njb 3f\nshr $2, %eax\n3: ")), false);
	f = func_named(&p.a, "f");
	g = func_named(&p.b, "f");
	ck_assert_uint_eq(p.match.how[f], MP_STALE_NAME);
	ck_assert_uint_eq(p.a.print.funcs[f].nr_kept, 5);
	ck_assert_uint_eq(p.b.print.funcs[g].nr_kept, 7);
	for (uint32_t n = 0; n < 3; n++)
		expect_block(&p, f, n, g, n);
	expect_block(&p, f, 3, g, 5);
	expect_block(&p, f, 4, g, 6);
	ck_assert_uint_eq(p.match.block_of[block_of(&p.b, g, 3)], MP_NONE);
	ck_assert_uint_eq(p.match.block_of[block_of(&p.b, g, 4)], MP_NONE);
}

TEST(stale_sees_through_constants_and_registers)
{
	static const char *const changed[] = {FUNC("f", LOOP("1000", "")), FUNC("f", LOOP_RENAMED)};

	for (int i = 0; i < 2; i++) {
		AUTO(pair_fini) struct pair p = {0};

		pair_init(&p, FUNC("e", SHIFTS) FUNC("f", LOOP("3", "")), changed[i], true);
		ck_assert_uint_eq(p.match.func_to[0], MP_NONE);
		ck_assert_uint_eq(p.match.func_to[1], 0);
		for (uint32_t n = 0; n < 5; n++)
			expect_block(&p, 1, n, 0, n);
	}
}

TEST(stale_finds_functions_that_changed_places)
{
	AUTO(pair_fini) struct pair p = {0};

	pair_init(&p, FUNC("f", LOOP("3", "")) FUNC("g", SHIFTS) FUNC("h", SMALL),
		  FUNC("h", SMALL) FUNC("g", SHIFTS) FUNC("f", LOOP("3", "")), true);
	for (uint32_t f = 0; f < 3; f++)
		ck_assert_uint_eq(p.match.func_to[f], 2 - f);
}

TEST(stale_tells_the_same_code_apart_by_its_place)
{
	AUTO(pair_fini) struct pair p = {0};

	/* The same code three times; the second one changes. */
	pair_init(&p,
		  FUNC("a", SMALL) FUNC("f", LOOP("3", "")) FUNC("b", SMALL) FUNC("g", SHIFTS)
			  FUNC("c", SMALL),
		  FUNC("a", SMALL) FUNC("f", LOOP("3", "")) FUNC("b", "lea 2(%rdi), %eax\nret\n")
			  FUNC("g", SHIFTS) FUNC("c", SMALL),
		  true);
	for (uint32_t f = 0; f < 5; f++)
		ck_assert_uint_eq(p.match.func_to[f], f);
	ck_assert_uint_eq(p.match.how[2], MP_STALE_PLACE);
}

TEST(stale_follows_calls_to_a_function_that_moved_and_changed)
{
	static const char call[] = "push %rbx\nmov %edi, %ebx\ncall callee\nadd %ebx, %eax\n"
				   "pop %rbx\nret\n";
	char old_source[4096], new_source[4096];
	AUTO(pair_fini) struct pair p = {0};
	uint32_t callee;

	/* The callee moves to the other side of two functions that are recognised by their code. */
	snprintf(old_source, sizeof(old_source), "%s%s%s%s", FUNC("callee", LOOP("3", "")),
		 FUNC("g", SHIFTS), FUNC("caller", "BODY"), FUNC("twin", LOOP("3", "")));
	snprintf(new_source, sizeof(new_source), "%s%s%s%s", FUNC("g", SHIFTS),
		 FUNC("caller", "BODY"), FUNC("twin", LOOP("3", "")),
		 FUNC("callee", LOOP("4", "cmp $9, %eax\njb 3f\nshr $2, %eax\n3: ")));
	for (int i = 0; i < 2; i++) {
		char *text = i ? new_source : old_source, *at = strstr(text, "BODY"), rest[4096];

		ck_assert_ptr_nonnull(at);
		strcpy(rest, at + 4);
		strcpy(at, call);
		strcat(at, rest);
	}
	pair_init(&p, old_source, new_source, true);
	callee = p.match.func_to[0];
	ck_assert_uint_eq(p.match.func_to[2], 1);
	ck_assert_uint_eq(callee, 3);
	ck_assert_uint_eq(p.match.how[0], MP_STALE_CALL);
}

TEST(stale_does_not_find_what_was_inlined)
{
	static const struct mp_ip_count none = {0};
	struct mp_stale_counts carried;
	struct mp_ip_count counts[2];
	AUTO(pair_fini) struct pair p = {0};

	pair_init(
		&p,
		FUNC("inner", "imul %edi, %edi\nbswap %edi\nret\n") FUNC(
			"outer", "test %esi, %esi\njz 1f\ncall inner\n1: mov %edi, %eax\nret\n"),
		FUNC("outer",
		     "test %esi, %esi\njz 1f\nimul %edi, %edi\nbswap %edi\n1: mov %edi, %eax\nret\n"),
		false);
	ck_assert_uint_eq(p.match.func_to[func_named(&p.a, "inner")], MP_NONE);
	ck_assert_uint_eq(p.match.func_to[func_named(&p.a, "outer")], 0);
	expect_block(&p, func_named(&p.a, "outer"), 0, 0, 0);
	expect_block(&p, func_named(&p.a, "outer"), 2, 0, 2);
	counts[0] = (struct mp_ip_count){p.a.cfg->funcs[0].vaddr, 30};
	counts[1] = (struct mp_ip_count){p.a.cfg->funcs[1].vaddr, 12};
	ck_assert_int_eq(mp_stale_carry(&p.match, counts, 2, NULL, 0, &carried, &err), 0);
	ck_assert_uint_eq(carried.stats.samples, 42);
	ck_assert_uint_eq(carried.stats.samples_matched, 12);
	ck_assert_uint_eq(carried.stats.nr_funcs, 2);
	ck_assert_uint_eq(carried.stats.nr_funcs_matched, 1);
	ck_assert_uint_eq(carried.nr_counts, 1);
	ck_assert_uint_eq(carried.counts[0].vaddr, p.b.cfg->funcs[0].vaddr);
	mp_stale_counts_fini(&carried);
	ck_assert_int_eq(mp_stale_carry(&p.match, &none, 0, NULL, 0, &carried, &err), 0);
	ck_assert_uint_eq(carried.nr_counts, 0);
	mp_stale_counts_fini(&carried);
}

TEST(stale_renamed_functions_need_the_same_code)
{
	AUTO(pair_fini) struct pair p = {0};

	pair_init(&p, FUNC("old_name", SHIFTS) FUNC("f", LOOP("3", "")),
		  FUNC("new_name", SHIFTS) FUNC("other", LOOP("4", "")), false);
	ck_assert_uint_eq(p.match.func_to[0], 0);
	ck_assert_uint_eq(p.match.func_to[1], MP_NONE);
}

/* ---- carrying ------------------------------------------------------------------------------- */

TEST(stale_carries_samples_and_transfers)
{
	struct mp_stale_counts carried;
	const struct mp_print_block *a, *b;
	struct mp_ip_count counts[3];
	struct mp_edge_count edges[2];
	struct pair p;
	uint32_t f, g;

	/* The loop gets one more instruction; all code moves. */
	pair_init(&p, FUNC("f", LOOP("3", "")) FUNC("g", SHIFTS),
		  FUNC("g", SHIFTS) FUNC("f", "test %edi, %edi\njz 1f\nxor %eax, %eax\n"
					      "2: add %edi, %eax\nrol $3, %eax\ndec %edi\njnz 2b\n"
					      "imul $3, %eax, %eax\nret\n1: mov $7, %eax\nret\n"),
		  false);
	f = func_named(&p.a, "f");
	g = func_named(&p.b, "f");
	for (uint32_t n = 0; n < 5; n++)
		expect_block(&p, f, n, g, n);
	a = &p.a.print.blocks[block_of(&p.a, f, 0)];
	b = &p.b.print.blocks[block_of(&p.b, g, 0)];
	counts[0] = (struct mp_ip_count){a[0].vaddr, 5};
	counts[1] = (struct mp_ip_count){a[2].vaddr, 30};
	counts[2] = (struct mp_ip_count){a[2].vaddr + 2, 60};
	/* The back edge of the loop, and the return to a caller in another module. */
	edges[0] = (struct mp_edge_count){a[2].vaddr + a[2].term_off, a[2].vaddr, 17, 2};
	edges[1] = (struct mp_edge_count){a[3].vaddr + a[3].term_off, 0x10, 4, 0};
	ck_assert_int_eq(mp_stale_carry(&p.match, counts, 3, edges, 2, &carried, &err), 0);
	ck_assert_uint_eq(carried.nr_counts, 2);
	ck_assert_uint_eq(carried.counts[0].vaddr, b[0].vaddr);
	ck_assert_uint_eq(carried.counts[0].count, 5);
	ck_assert_uint_eq(carried.counts[1].vaddr, b[2].vaddr);
	/* 90 samples of three instructions become 120 of four. */
	ck_assert_uint_eq(carried.counts[1].count, 120);
	ck_assert_uint_eq(carried.stats.samples, 95);
	ck_assert_uint_eq(carried.stats.samples_matched, 95);
	ck_assert_uint_eq(carried.stats.nr_blocks, 3);
	ck_assert_uint_eq(carried.stats.nr_blocks_matched, 3);
	ck_assert_uint_eq(carried.nr_edges, 2);
	ck_assert_uint_eq(carried.edges[0].from, b[2].vaddr + b[2].term_off);
	ck_assert_uint_eq(carried.edges[0].to, b[2].vaddr);
	ck_assert_uint_eq(carried.edges[0].count, 17);
	ck_assert_uint_eq(carried.edges[0].mispredicted, 2);
	ck_assert_uint_eq(carried.edges[1].from, b[3].vaddr + b[3].term_off);
	ck_assert_uint_eq(carried.edges[1].to, 0);
	ck_assert_uint_eq(carried.nr_unknown, 0);
	mp_stale_counts_fini(&carried);
	pair_fini(&p);
}

TEST(stale_lists_blocks_that_the_old_build_has_not)
{
	AUTO(mp_stale_counts_fini) struct mp_stale_counts carried = {0};
	struct mp_profile *profile;
	struct mp_ip_count count;
	AUTO(pair_fini) struct pair p = {0};
	uint32_t f, nr = 0;

	pair_init(&p, FUNC("f", LOOP("3", "")) FUNC("g", SHIFTS),
		  FUNC("f", LOOP("3", "cmp $9, %eax\njb 3f\nshr $2, %eax\n3: ")) FUNC("g", SHIFTS)
			  FUNC("new", SMALL),
		  false);
	f = func_named(&p.b, "f");
	count = (struct mp_ip_count){p.a.cfg->funcs[0].vaddr, 100};
	ck_assert_int_eq(mp_stale_carry(&p.match, &count, 1, NULL, 0, &carried, &err), 0);
	ck_assert_uint_eq(carried.nr_unknown, 2);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_uint_eq(carried.unknown[i],
				  p.b.print.blocks[block_of(&p.b, f, 3 + i)].vaddr);
	ck_assert_int_eq(
		mp_profile_build(p.b.cfg, carried.counts, carried.nr_counts, &profile, &err), 0);
	ck_assert_int_eq(mp_profile_set_unknown(profile, p.b.cfg, carried.unknown,
						carried.nr_unknown, &err),
			 0);
	for (uint32_t b = 0; b < p.b.cfg->nr_blocks; b++)
		nr += profile->block_unknown[b];
	ck_assert_uint_eq(nr, 2);
	mp_profile_free(profile);
	/* A sample of the new build makes a block known. */
	count = (struct mp_ip_count){carried.unknown[1], 1};
	ck_assert_int_eq(mp_profile_build(p.b.cfg, &count, 1, &profile, &err), 0);
	ck_assert_int_eq(mp_profile_set_unknown(profile, p.b.cfg, carried.unknown,
						carried.nr_unknown, &err),
			 0);
	ck_assert_uint_eq(profile->block_unknown[mp_cfg_block_at(p.b.cfg, carried.unknown[0])], 1);
	ck_assert_uint_eq(profile->block_unknown[mp_cfg_block_at(p.b.cfg, carried.unknown[1])], 0);
	mp_profile_free(profile);
}
