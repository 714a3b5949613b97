// SPDX-License-Identifier: Apache-2.0
/*
 * test_flow - where counters stand in versions for running processes, in which the first instruction of a function is
 * a block of its own, has no jump to its copy, and so also runs in old code.
 */
#include "editor/instrument/flow.h"

#include <stdarg.h>

#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#define ENTER(name, global)                                                                        \
	global "\n.type " name ",@function\n.p2align 4\n" name ":\n.cfi_startproc\n"
#define EXPORTED(name) ENTER(name, ".globl " name)
#define LOCAL(name)    ENTER(name, "")
#define LEAVE(name)    ".cfi_endproc\n.size " name ",.-" name "\n"

#define STRAIGHT "mov %edi,%eax\nadd $1000,%eax\nret\n"
/* Flags go from the first instruction to the block's end. */
#define LOOP "1: sub $1,%edi\nlea 1(%rax),%rax\njns 1b\nret\n"
/* No jump of five bytes fits behind the first instruction: the loop begins too early. */
#define SMALL                                                                                      \
	"xor %eax,%eax\ntest %edi,%edi\nje 2f\n1: add $3,%eax\ndec %edi\njne 1b\nret\n"            \
	"2: mov $7000,%eax\nret\n"

static const char source[] = ".text\n" EXPORTED("straight") STRAIGHT LEAVE("straight") EXPORTED(
	"loop") LOOP LEAVE("loop") EXPORTED("small") SMALL LEAVE("small") LOCAL("local_straight")
	STRAIGHT LEAVE("local_straight") LOCAL("local_loop") LOOP LEAVE("local_loop")
		EXPORTED("user") "call local_straight\ncall local_loop\nret\n" LEAVE(
			"user") ".section .note.GNU-stack,\"\",@progbits\n";

static struct mp_elf *elf;
static struct mp_cfg *cfg;
static struct me_flow flow;

static void make(void)
{
	char command[3 * sizeof(dir) + 100], path[sizeof(dir) + 16];

	scratch_make();
	snprintf(path, sizeof(path), "%s/x.s", dir);
	write_text(path, source);
	snprintf(command, sizeof(command), "gcc -shared -nostdlib -Wl,--build-id -o %s/x.so %s/x.s",
		 dir, dir);
	ck_assert_int_eq(system(command), 0);
	snprintf(path, sizeof(path), "%s/x.so", dir);
	ck_assert_int_eq(mp_elf_open(path, MP_ELF_ALL, &elf, &err), 0);
	ck_assert_int_eq(mp_cfg_build(elf, &(struct mp_cfg_options){.entries = true}, &cfg, &err),
			 0);
}

static void drop(void)
{
	me_flow_fini(&flow);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	scratch_remove();
}

FIXTURE(make, drop);

/* Builds the graph of the function, without counts. */
static void build(const char *name, const struct me_flags *flags)
{
	uint64_t vaddr = 0;
	uint32_t f = 0;

	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (!strcmp(elf->symbols[i].name, name))
			vaddr = elf->symbols[i].vaddr;
	while (f < cfg->nr_funcs && cfg->funcs[f].vaddr != vaddr)
		f++;
	ck_assert_uint_lt(f, cfg->nr_funcs);
	ck_assert(mp_cfg_is_first_insn(cfg, cfg->funcs[f].first_block));
	ck_assert_int_eq(me_flow_build(cfg, flags, NULL, f, false, &flow), 0);
}

#define OUTSIDE flow.nr_blocks

static enum me_flow_place place(uint32_t from, uint32_t to)
{
	for (uint32_t e = 0; e < flow.nr_edges; e++)
		if (flow.edges[e].from == from && flow.edges[e].to == to)
			return (enum me_flow_place)flow.edges[e].place;
	ck_abort_msg("no edge from %u to %u", from, to);
	return ME_FLOW_NOWHERE;
}

/* Old code and the copy come there. */
TEST(flow_counts_entries_behind_the_first_instruction)
{
	for (int i = 0; i < 2; i++) {
		build(i ? "local_straight" : "straight", NULL);
		ck_assert_uint_eq(flow.nr_blocks, 2);
		ck_assert_int_eq(place(OUTSIDE, 0), ME_FLOW_BEHIND_TARGET);
		/* It would count the same. */
		ck_assert_int_eq(place(0, 1), ME_FLOW_NOWHERE);
	}
}

/* In old code, one counter cannot tell entries of the loop from its rounds. The body has a counter of its own. */
TEST(flow_counts_behind_a_loop_head_at_the_entry)
{
	build("loop", NULL);
	ck_assert_uint_eq(flow.nr_blocks, 3);
	ck_assert_int_eq(place(OUTSIDE, 0), ME_FLOW_NOWHERE);
	ck_assert_int_eq(place(0, 1), ME_FLOW_BEFORE_TARGET);
	ck_assert_int_eq(place(1, 0), ME_FLOW_ON_EDGE);
}

TEST(flow_knows_that_nobody_enters_a_local_loop_at_its_old_place)
{
	build("local_loop", NULL);
	ck_assert_int_eq(place(OUTSIDE, 0), ME_FLOW_AT_ENTRY);
	ck_assert_int_eq(place(0, 1), ME_FLOW_BEFORE_TARGET);
}

/* Old code goes on until there is room for a jump. */
TEST(flow_counts_where_old_code_leads_to_copies)
{
	build("small", NULL);
	ck_assert_uint_eq(flow.nr_blocks, 5);
	ck_assert_int_eq(place(OUTSIDE, 0), ME_FLOW_NOWHERE);
	ck_assert_int_eq(place(0, 1), ME_FLOW_NOWHERE);
	/* The loop has another way in, so this edge's count follows from the others'. */
	ck_assert_int_eq(place(1, 2), ME_FLOW_NOWHERE);
	ck_assert_int_eq(place(1, 4), ME_FLOW_BEFORE_TARGET);
}

/* A counter changes flags. */
TEST(flow_counts_nothing_between_flags_and_their_use)
{
	AUTO(me_flags_fini) struct me_flags flags = {0};

	uint8_t *all = malloc(cfg->nr_funcs);

	ck_assert_ptr_nonnull(all);
	memset(all, 1, cfg->nr_funcs);
	ck_assert_int_eq(me_flags_find(cfg, all, false, &flags, &err), 0);
	free(all);
	build("loop", &flags);
	ck_assert_int_eq(place(OUTSIDE, 0), ME_FLOW_NOWHERE);
	ck_assert_int_eq(place(0, 1), ME_FLOW_NOWHERE);
	ck_assert_int_eq(place(1, 0), ME_FLOW_ON_EDGE);
	build("straight", &flags);
	ck_assert_int_eq(place(OUTSIDE, 0), ME_FLOW_BEHIND_TARGET);
}
