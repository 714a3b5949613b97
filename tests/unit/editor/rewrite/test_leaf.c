// SPDX-License-Identifier: Apache-2.0
/* test_leaf - which functions may stand in place of a call, and in which functions calls may be replaced. */
#include "editor/rewrite/leaf.h"
#include "editor/rewrite/stack_walk.h"

#include "tests/support/compile.h"
#include "tests/unit/suite.h"

/* Assembler macros for functions with a frame */
static const char macros[] =
	".macro save reg\n push %\\reg\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %\\reg, 0\n .endm\n"
	".macro back reg\n pop %\\reg\n .cfi_adjust_cfa_offset -8\n .cfi_restore %\\reg\n .endm\n"
	".macro lower n\n sub $\\n, %rsp\n .cfi_adjust_cfa_offset \\n\n .endm\n"
	".macro raise n\n add $\\n, %rsp\n .cfi_adjust_cfa_offset -\\n\n .endm\n"
	".macro cfa n\n .cfi_adjust_cfa_offset \\n\n .endm\n";

/*
 * Each function named leaf_..., saves_... or stack_... may replace a call, each named other_... may not. saves_... uses
 * the stack, but no address in it; in place of a call of stack_..., the stack pointer is lowered.
 */
static const char *const functions[][2] = {
	{"leaf_plain", "lea (%rdi,%rsi), %eax; ret"},
	{"leaf_nothing", "ret"},
	{"leaf_landing", "endbr64; ret"},
	{"leaf_rep", "mov %edi, %eax; rep ret"},
	{"leaf_data", "endbr64; mov data(%rip), %rax; add $1, data(%rip); ret"},
	{"leaf_vector", "movaps %xmm0, %xmm1; pxor %xmm0, %xmm0; cvtsi2sd %edi, %xmm0; ret"},
	{"leaf_frame_pointer", "mov (%rbp), %rax; ret"},
	{"leaf_lock", "lock xadd %eax, (%rdi); ret"},
	{"leaf_string", "mov %rdx, %rcx; rep movsb; ret"},
	{"leaf_branch", "test %edi, %edi; je 1f; inc %eax; 1: ret"},
	{"leaf_two_returns", "test %edi, %edi; je 1f; mov $1, %eax; ret; 1: mov $2, %eax; ret"},
	{"leaf_jump",
	 "endbr64; test %edi, %edi; js 1f; mov $1, %eax; jmp 2f; 1: mov $2, %eax; 2: add %esi, %eax; ret"},
	{"leaf_empty_parts", "test %rdi, %rdi; je 1f; incl (%rdi); jmp 1f; nop; 1: ret"},
	{"leaf_padded", "test %edi, %edi; je 1f; rep ret; .p2align 4; 1: lea (%rsi), %eax; ret"},
	{"leaf_backward", "jmp 2f; 1: ret; 2: test %edi, %edi; je 1b; inc %eax; jmp 1b"},
	{"leaf_near_branches",
	 "cmp $1, %edi; .byte 0x0f, 0x84; .long 1f - . - 4; inc %eax; 1: ret"},
	{"leaf_loop", "1: dec %edi; jne 1b; ret"},
	{"leaf_two_loops", "test %edi, %edi; je 1f; 2: inc %eax; 1: dec %edi; jne 2b; ret"},
	{"leaf_large", ".rept 14; movabs $0x1122334455667788, %rax; .endr; ret"},
	{"leaf_many", ".rept 9; test %edi, %edi; je 1f; inc %eax; 1: nop; .endr; ret"},
	{"leaf_far",
	 "test %edi, %edi; je 1f; .rept 14; movabs $0x1122334455667788, %rax; .endr; 1: ret"},
	{"saves_red_zone", "mov %rdi, -8(%rsp); mov -128(%rsp), %rax; ret"},
	{"saves_register", "save rbx; mov %rdi, %rbx; lea (%rbx,%rsi), %rax; back rbx; ret"},
	{"saves_constant", "push $5; cfa 8; pop %rax; cfa -8; ret"},
	{"saves_frame_pointer", "save rbp; mov %rdi, %rbp; lea 1(%rbp), %rax; back rbp; ret"},
	{"saves_around_branch",
	 "save rbx; test %edi, %edi; je 1f; mov %rsi, %rbx; 1: mov %rbx, %rax; back rbx; ret"},
	{"saves_behind_branch",
	 "test %edi, %edi; je 1f; save rbx; mov %rsi, %rbx; back rbx; 1: ret"},
	{"saves_twice",
	 "save rbx; test %edi, %edi; je 1f; back rbx; ret; 1: cfa 8; .cfi_offset %rbx, -16; back rbx; ret"},
	{"saves_in_frame",
	 "lea -24(%rsp), %rsp; cfa 24; mov %rdi, 8(%rsp); mov 16(%rsp), %rax; lea 24(%rsp), %rsp; cfa -24; ret"},
	{"stack_sum", "lower 24; mov %rdi, 8(%rsp); mov 16(%rsp), %rax; raise 24; ret"},
	{"stack_argument", "mov 8(%rsp), %rax; ret"},
	{"stack_behind_frame", "lower 24; mov 32(%rsp), %rax; mov %rax, 40(%rsp); raise 24; ret"},
	{"stack_address", "lower 24; mov %rsp, %rax; movb $1, (%rax); raise 24; ret"},
	{"stack_address_below", "lea -24(%rsp), %rax; mov %rdi, (%rax); ret"},
	{"stack_vector", "movups %xmm0, -24(%rsp); movups -24(%rsp), %xmm1; ret"},
	{"stack_array", "mov %edi, -64(%rsp,%rsi,4); mov -64(%rsp,%rdx,4), %eax; ret"},
	{"stack_element", "lea -64(%rsp,%rdi,8), %rdx; mov %esi, (%rdx); ret"},
	{"stack_loop",
	 "save rbx; lower 16; 1: mov %rdi, (%rsp); dec %edi; jne 1b; mov (%rsp), %rbx; raise 16; back rbx; ret"},
	{"leaf_tail", "jmp leaf_plain"},
	{"leaf_two_tails", "test %edi, %edi; je 1f; jmp leaf_plain; 1: inc %esi; jmp leaf_jump"},
	{"saves_before_tail", "save rbx; mov %rdi, %rbx; mov %rbx, %rsi; back rbx; jmp leaf_plain"},
	/* The function that is jumped to may take the value. */
	{"stack_below_tail", "mov %rdi, -8(%rsp); jmp leaf_plain"},
	{"stack_call", "lower 8; call leaf_plain; inc %rax; raise 8; ret"},
	{"stack_call_register", "save rbx; call *%rdi; back rbx; ret"},
	{"stack_call_memory", "lower 24; call *data(%rip); call *8(%rdi); raise 24; ret"},
	{"stack_call_and_tail", "save rbx; call leaf_plain; back rbx; jmp leaf_plain"},
	{"stack_call_library",
	 "lower 8; call getpid@plt; call leaf_plain; raise 8; jmp getppid@plt"},
	{"stack_tail_or_return",
	 "lower 8; call leaf_plain; test %eax, %eax; je 1f; raise 8; jmp leaf_plain; 1: cfa 8; inc %eax; raise 8; ret"},
	{"stack_stops", "lower 8; test %edi, %edi; je 1f; raise 8; ret; 1: cfa 8; call abort@plt"},
	{"other_return_half", "lower 8; mov 12(%rsp), %eax; raise 8; ret"},
	{"other_return_part", "movups -4(%rsp), %xmm0; ret"},
	{"other_return_place", "lower 24; lea 24(%rsp), %rax; raise 24; ret"},
	{"other_far_below", "mov -136(%rsp), %rax; ret"},
	{"other_frame",
	 "save rbp; mov %rsp, %rbp; .cfi_def_cfa_register %rbp; mov (%rdi), %eax; pop %rbp; .cfi_def_cfa %rsp, 8; ret"},
	{"other_frame_copy", "save rbp; mov %rsp, %rbp; mov (%rbp), %rax; back rbp; ret"},
	{"other_frame_place", "save rbp; lea 8(%rsp), %rbp; mov (%rbp), %rax; back rbp; ret"},
	{"other_align", "lower 24; and $-32, %rsp; raise 24; ret"},
	{"other_variable", "sub %rdi, %rsp; add %rdi, %rsp; ret"},
	{"other_above", "pop %rax; cfa -8; push %rax; cfa 8; ret"},
	{"other_unbalanced", "push %rax; cfa 8; ret"},
	{"other_two_depths", "test %edi, %edi; je 1f; push %rax; cfa 8; 1: pop %rax; cfa -8; ret"},
	{"other_late_row", "save rbx; pop %rbx; nop; cfa -8; .cfi_restore %rbx; ret"},
	{"other_memory_push", "pushq (%rdi); cfa 8; pop %rax; cfa -8; ret"},
	{"other_short_push", "pushw %ax; cfa 2; popw %ax; cfa -2; ret"},
	{"other_pop_stack", "push %rax; cfa 8; pop %rsp; cfa -8; ret"},
	{"other_set", "mov %rdi, %rsp; ret"},
	{"other_set_place", "lea (%rdi), %rsp; ret"},
	{"other_set_element", "lea -64(%rsp,%rdi), %rsp; ret"},
	{"other_exchange", "xchg %rsp, %rax; xchg %rsp, %rax; ret"},
	{"other_compare", "cmp %rsp, %rdi; sete %al; ret"},
	{"other_bit", "bt %rax, -16(%rsp); setc %al; ret"},
	{"other_short_address", "mov -8(%esp), %rax; ret"},
	{"other_segment", "mov %fs:-8(%rsp), %rax; ret"},
	{"other_enter", "enter $0, $0; leave; ret"},
	{"other_table",
	 ".cfi_personality 0x9b, routine; .cfi_lsda 0x1b, data; save rbx; back rbx; ret"},
	{"other_pop", "ret $8"},
	{"other_bnd", "bnd ret"},
	{"other_return_address", "mov (%rsp), %rax; ret"},
	{"other_stack_pointer", "mov %rsp, %rax; ret"},
	{"other_part", "movzbl %spl, %eax; ret"},
	{"other_index", "lea (%rsp,%rdi), %eax; ret"},
	{"other_push", "push %rbx; pop %rbx; ret"},
	{"other_flags", "pushf; pop %rax; ret"},
	{"other_leave", "leave; ret"},
	{"other_call", "call leaf_plain; ret"},
	{"other_indirect", "call *%rdi; ret"},
	{"other_stack_call", "lower 24; call *8(%rsp); raise 24; ret"},
	{"other_misaligned_call", "lower 16; call leaf_plain; raise 16; ret"},
	{"other_recursion", "lower 8; call other_recursion; raise 8; ret"},
	{"other_deep_tail", "lower 8; jmp leaf_plain"},
	{"other_branch_tail", "lower 8; test %edi, %edi; je leaf_plain; raise 8; ret"},
	{"other_never", "1: jmp 1b"},
	{"other_system_call", "mov $56, %eax; syscall; ret"},
	{"other_trap", "int3; ret"},
	{"other_clock", "rdtsc; ret"},
	{"other_control", "ldmxcsr (%rdi); xsave (%rsi); ret"},
	{"other_shadow", "rdsspq %rax; ret"},
	{"other_transaction", "xend; ret"},
	{"other_self", "lea other_self(%rip), %rax; ret"},
	{"other_middle", "lea 1f(%rip), %rax; 1: ret"},
	{"other_row", ".cfi_adjust_cfa_offset 8; mov %edi, %eax; .cfi_adjust_cfa_offset -8; ret"},
	{"other_wrong_row", ".cfi_def_cfa %rdi, 8; mov %edi, %eax; ret"},
	{"other_signal", ".cfi_signal_frame; mov %edi, %eax; ret"},
	{"other_large", ".rept 210; movabs $0x1122334455667788, %rax; .endr; ret"},
	{"other_loop_to_landing", "endbr64; dec %edi; jne other_loop_to_landing; ret"},
	{"other_branch_out", "test %edi, %edi; je leaf_plain; ret"},
	{"other_branch_push", "test %edi, %edi; je 1f; push %rbx; pop %rax; 1: ret"},
	{"other_branch_pop", "test %edi, %edi; je 1f; ret; 1: ret $8"},
	{"other_branch_trap", "test %edi, %edi; je 1f; ret; 1: ud2"},
	{"other_counter", "jrcxz 1f; inc %eax; 1: ret"},
	{"other_many", ".rept 101; test %edi, %edi; je 1f; inc %eax; 1: nop; .endr; ret"},
	{"other_branch_landing", "test %edi, %edi; je 1f; ret; 1: endbr64; ret"},
	{"caller_plain",
	 "sub $24, %rsp; .cfi_adjust_cfa_offset 24; mov %rdi, 8(%rsp); call leaf_plain; add $24, %rsp; .cfi_adjust_cfa_offset -24; ret"},
	{"caller_push",
	 "push %rbx; .cfi_adjust_cfa_offset 8; call leaf_plain; pop %rbx; .cfi_adjust_cfa_offset -8; ret"},
	{"keeper_reads", "call leaf_plain; mov -8(%rsp), %rax; ret"},
	{"keeper_writes", "movb $1, -100(%rsp); call leaf_plain; ret"},
	{"keeper_names", "lea -8(%rsp), %rdi; call leaf_plain; ret"},
	{"keeper_index", "call leaf_plain; mov (%rsp,%rdi), %rax; ret"},
	{"main", "ret"},
};

static uint32_t function_named(const struct mp_cfg *cfg, const char *name)
{
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (!strcmp(cfg->funcs[f].name, name))
			return f;
	ck_abort_msg("no function %s", name);
}

static struct mp_elf *open_program(char *path)
{
	char name[256];
	struct mp_elf *elf;
	const char *dir = getenv("TMPDIR");
	FILE *f;

	snprintf(name, sizeof(name), "%s/morph-leaf-%d.s", dir ? dir : "/tmp", (int)getpid());
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(macros, f);
	fputs(".data\ndata: .quad 0\nroutine: .quad __gcc_personality_v0\n.text\n", f);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		const char *name = functions[i][0];

		fprintf(f, ".globl %s\n.type %s, @function\n%s:\n.cfi_startproc\n%s\n", name, name,
			name, functions[i][1]);
		fprintf(f, ".cfi_endproc\n.size %s, .-%s\n", name, name);
	}
	fputs(".section .note.GNU-stack, \"\", @progbits\n", f);
	fclose(f);
	ck_assert_int_eq(compile_run("gcc", "-pie -w", name, path), 0);
	unlink(name);
	ck_assert_int_eq(mp_elf_open(path, MP_ELF_ALL, &elf, &err), 0);
	return elf;
}

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

TEST(leaf_knows_which_functions_may_replace_calls)
{
	const struct mp_cfg_options options = {0};
	uint32_t nr[4] = {0};
	char path[256];
	struct mp_elf *elf = open_program(path);
	struct mp_cfg *cfg;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, &err), 0);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const char *name = cfg->funcs[f].name;
		struct me_leaf leaf;

		if (starts_with(name, "leaf_") || starts_with(name, "saves_") ||
		    starts_with(name, "stack_")) {
			ck_assert_msg(me_leaf_find(cfg, f, &leaf), "%s", name);
			ck_assert_msg(leaf.frame == !starts_with(name, "leaf_"), "%s", name);
			ck_assert_msg(leaf.lowers == starts_with(name, "stack_"), "%s", name);
			ck_assert_uint_eq(leaf.func, f);
			ck_assert_msg(leaf.size == 0 || !strstr(name, "nothing"), "%s", name);
			nr[0]++;
		} else if (starts_with(name, "other_")) {
			ck_assert_msg(!me_leaf_find(cfg, f, &leaf), "%s", name);
			nr[1]++;
		} else if (starts_with(name, "caller_")) {
			ck_assert_msg(me_leaf_caller(cfg, f), "%s", name);
			nr[2]++;
		} else if (starts_with(name, "keeper_")) {
			ck_assert_msg(!me_leaf_caller(cfg, f), "%s", name);
			nr[3]++;
		}
	}
	ck_assert_uint_eq(nr[0], 23 + 26);
	ck_assert_uint_eq(nr[1], 37 + 26);
	ck_assert_uint_eq(nr[2], 2);
	ck_assert_uint_eq(nr[3], 4);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(path);
}

TEST(leaf_has_neither_landing_nor_return)
{
	const struct mp_cfg_options options = {0};
	char path[256];
	struct mp_elf *elf = open_program(path);
	struct mp_cfg *cfg;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, &err), 0);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		const struct me_leaf_part *last;
		struct me_leaf leaf;

		if (!starts_with(func->name, "leaf_") || strstr(func->name, "tail"))
			continue;
		ck_assert(me_leaf_find(cfg, f, &leaf));
		last = &leaf.parts[leaf.nr_parts - 1];
		ck_assert_uint_eq(leaf.parts[0].vaddr - func->vaddr,
				  strstr(func->name, "landing") || strstr(func->name, "data") ||
						  strstr(func->name, "jump")
					  ? 4
					  : 0);
		ck_assert_uint_eq(last->end_size, strstr(func->name, "rep") ? 2 : 1);
		ck_assert(strstr(func->name, "backward") ||
			  last->vaddr + last->size + last->end_size - func->vaddr == func->size);
		ck_assert_uint_eq(last->off + last->size, leaf.size);
	}
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(path);
}

/* The parts of a function, and the branches behind them. */
struct shape {
	const char *name;
	uint8_t nr_parts;
	uint8_t next[4], taken[4]; /* equal: the part has no conditional branch */
	uint8_t ends[4];	   /* bytes behind each part */
	uint8_t size;
};

static const struct shape shapes[] = {
	{"leaf_plain", 1, {1}, {1}, {0}, 3},
	{"leaf_branch", 3, {1, 2, 3}, {2, 2, 3}, {2, 0, 0}, 6},
	{"leaf_two_returns", 3, {1, 3, 3}, {2, 3, 3}, {2, 2, 0}, 16},
	{"leaf_jump", 4, {1, 3, 3, 4}, {2, 3, 3, 4}, {2, 2, 0, 0}, 18},
	{"leaf_backward", 4, {1, 2, 3, 4}, {1, 3, 3, 4}, {0, 2, 0, 0}, 6},
	{"leaf_padded", 3, {1, 3, 3}, {2, 3, 3}, {2, 2, 0}, 8},
	{"leaf_near_branches", 3, {1, 2, 3}, {2, 2, 3}, {2, 0, 0}, 7},
	{"leaf_loop", 2, {1, 2}, {0, 2}, {2, 0}, 4},
	{"saves_behind_branch", 3, {1, 2, 3}, {2, 2, 3}, {2, 0, 0}, 9},
};

TEST_EACH(leaf_has_short_branches_between_parts, sizeof(shapes) / sizeof(shapes[0]))
{
	const struct mp_cfg_options options = {0};
	const struct shape *shape = &shapes[_i];
	uint8_t end[ME_LEAF_END_MAX];
	char path[256];
	struct mp_elf *elf = open_program(path);
	struct me_leaf leaf = {0};
	struct mp_cfg *cfg;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, &err), 0);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (!strcmp(cfg->funcs[f].name, shape->name))
			ck_assert(me_leaf_find(cfg, f, &leaf));
	ck_assert_uint_eq(leaf.nr_parts, shape->nr_parts);
	for (uint8_t i = 0; i < leaf.nr_parts; i++) {
		const struct me_leaf_part *part = &leaf.parts[i];
		uint8_t size = me_leaf_end(&leaf, i, 0, end);

		ck_assert_uint_eq(part->next, shape->next[i]);
		ck_assert_uint_eq(part->taken, shape->taken[i]);
		ck_assert_uint_eq(part->branches, shape->taken[i] != shape->next[i]);
		ck_assert_uint_eq(size, shape->ends[i]);
		for (uint8_t k = 0; k < size; k += 2) {
			uint8_t to = end[k] == 0xeb ? part->next : part->taken;
			uint8_t want = to == leaf.nr_parts ? leaf.size : leaf.parts[to].off;

			ck_assert_int_eq(part->off + part->size + k + 2 + (int8_t)end[k + 1], want);
		}
	}
	ck_assert_uint_eq(leaf.size, shape->size);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(path);
}

/* All returns lead to the instruction that raises the stack pointer. */
TEST(leaf_raises_the_stack_pointer_at_its_end)
{
	static const uint8_t raise[] = {0x48, 0x8d, 0x64, 0x24, 0x08};
	const struct mp_cfg_options options = {0};
	uint8_t end[ME_LEAF_END_MAX];
	char path[256];
	struct mp_elf *elf = open_program(path);
	struct mp_cfg *cfg;
	uint32_t nr = 0;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, &err), 0);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct me_leaf_part *last;
		struct me_leaf leaf;

		if (!starts_with(cfg->funcs[f].name, "stack_") ||
		    strstr(cfg->funcs[f].name, "tail") || strstr(cfg->funcs[f].name, "library"))
			continue;
		ck_assert(me_leaf_find(cfg, f, &leaf));
		last = &leaf.parts[leaf.nr_parts - 1];
		ck_assert_uint_eq(leaf.parts[0].off, ME_LEAF_LOWER_SIZE);
		ck_assert_uint_eq(me_leaf_end(&leaf, leaf.nr_parts - 1, 0, end), sizeof(raise));
		ck_assert_mem_eq(end, raise, sizeof(raise));
		ck_assert_uint_eq(last->off + last->size + sizeof(raise), leaf.size);
		nr++;
	}
	ck_assert_uint_eq(nr, 9 + 4);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(path);
}

static int32_t displacement(const uint8_t *field)
{
	int32_t value;

	memcpy(&value, field, sizeof(value));
	return value;
}

/* leaf_two_returns with its first return apart, and leaf_far, whose branch is long where it is. */
TEST(leaf_has_long_branches_between_parts_that_lie_apart)
{
	const struct mp_cfg_options options = {0};
	static const uint8_t order[] = {0, 2, 1};
	uint8_t end[ME_LEAF_END_MAX];
	char path[256];
	struct mp_elf *elf = open_program(path);
	struct me_leaf leaf = {0}, far = {0};
	struct mp_cfg *cfg;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, &err), 0);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		if (!strcmp(cfg->funcs[f].name, "leaf_two_returns"))
			ck_assert(me_leaf_find(cfg, f, &leaf));
		if (!strcmp(cfg->funcs[f].name, "leaf_far"))
			ck_assert(me_leaf_find(cfg, f, &far));
	}
	ck_assert_uint_eq(leaf.nr_near, 3);
	ck_assert(me_leaf_arrange(&leaf, order, 2));
	ck_assert_uint_eq(leaf.nr_near, 2);
	ck_assert_uint_eq(leaf.size, 2 + 6 + 5);
	ck_assert_uint_eq(leaf.apart_size, 5 + 5);
	/* jne, which leads apart, instead of je */
	ck_assert_uint_eq(me_leaf_end(&leaf, 0, 1000, end), 6);
	ck_assert_uint_eq(end[0], 0x0f);
	ck_assert_uint_eq(end[1], 0x85);
	ck_assert_int_eq(displacement(end + 2), 1000 - (2 + 6));
	ck_assert_uint_eq(me_leaf_end(&leaf, 1, 1000, end), 0);
	/* jmp behind the call */
	ck_assert_uint_eq(me_leaf_end(&leaf, 2, 1000, end), 5);
	ck_assert_uint_eq(end[0], 0xe9);
	ck_assert_int_eq(displacement(end + 1), leaf.size - (1000 + 5 + 5));
	/* Out of reach */
	ck_assert_uint_eq(me_leaf_end(&leaf, 2, INT64_C(1) << 32, end), 0);

	ck_assert_uint_eq(far.size, 2 + 6 + 140);
	ck_assert_uint_eq(me_leaf_end(&far, 0, 0, end), 6);
	ck_assert_int_eq(displacement(end + 2), 140);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(path);
}

/* Calls of stubs end parts of their own; so does a jump to a stub, which is a call here. */
TEST(calls_of_stubs_go_through_slots)
{
	const struct mp_cfg_options options = {0};
	uint8_t end[ME_LEAF_END_MAX];
	struct me_leaf leaf;
	char path[256];
	struct mp_elf *elf = open_program(path);
	struct mp_cfg *cfg;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, &err), 0);
	ck_assert(me_leaf_find(cfg, function_named(cfg, "stack_call_library"), &leaf));
	ck_assert_uint_eq(leaf.nr_parts, 1);
	ck_assert(leaf.calls && leaf.parts[0].tails && !leaf.parts[0].via_slot);
	ck_assert(me_leaf_use_slots(cfg, &leaf));
	ck_assert_uint_eq(leaf.nr_parts, 2);
	ck_assert(leaf.parts[0].via_slot && !leaf.parts[0].tails);
	ck_assert_uint_eq(leaf.parts[0].next, 1);
	ck_assert_uint_eq(me_leaf_end(&leaf, 0, 0, end), 6);
	ck_assert(end[0] == 0xff && end[1] == 0x15);
	ck_assert_uint_eq(me_leaf_call_field(&leaf, 0), 2);
	ck_assert_uint_eq(me_leaf_frame_end(&leaf, 0), ME_LEAF_NEVER);
	ck_assert(leaf.parts[1].via_slot && leaf.parts[1].tails);
	ck_assert_uint_eq(leaf.parts[1].vaddr, leaf.parts[0].vaddr + leaf.parts[0].size + 5);
	/* The stack pointer is raised before the call. */
	ck_assert_uint_eq(me_leaf_end(&leaf, 1, 0, end), 11);
	ck_assert(end[0] == 0x48 && end[1] == 0x8d && end[5] == 0xff && end[6] == 0x15);
	ck_assert_uint_eq(me_leaf_call_field(&leaf, 1), 7);
	ck_assert_uint_eq(me_leaf_frame_end(&leaf, 1), 5);
	ck_assert(me_leaf_callee(&leaf.parts[0]) != me_leaf_callee(&leaf.parts[1]));
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(path);
}

/* If the last part tails, each return raises the stack pointer in its own part. */
TEST(returns_are_apart_from_a_last_tail)
{
	const struct mp_cfg_options options = {0};
	uint8_t end[ME_LEAF_END_MAX];
	struct me_leaf leaf;
	char path[256];
	struct mp_elf *elf = open_program(path);
	struct mp_cfg *cfg;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, &err), 0);
	ck_assert(me_leaf_find(cfg, function_named(cfg, "stack_tail_or_return"), &leaf));
	ck_assert_uint_eq(leaf.nr_parts, 3);
	ck_assert(leaf.parts[2].returns && leaf.parts[1].tails);
	/* Raises, calls, and jumps behind the return, which raises as well. */
	ck_assert_uint_eq(me_leaf_end(&leaf, 1, 0, end), 5 + 5 + 2);
	ck_assert_uint_eq(end[11], leaf.parts[2].size + 5);
	ck_assert_uint_eq(me_leaf_end(&leaf, 2, 0, end), 5);
	ck_assert(me_leaf_arrange(&leaf, (const uint8_t[]){0, 2, 1}, 3));
	ck_assert(leaf.parts[1].returns && leaf.parts[2].tails);
	/* Raises, and jumps behind the call. */
	ck_assert_uint_eq(me_leaf_end(&leaf, 1, 0, end), 5 + 2);
	ck_assert_uint_eq(end[6], leaf.parts[2].size + 10);
	ck_assert_uint_eq(me_leaf_end(&leaf, 2, 0, end), 10);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	unlink(path);
}

TEST(files_that_walk_stacks_have_names_that_say_so)
{
	struct mp_symbol symbols[] = {{.name = "puts"}, {.name = NULL}, {.name = "backtrace_full"}};
	struct mp_elf elf = {.symbols = symbols, .nr_symbols = 3};

	ck_assert(!me_walks_stack(&elf));
	symbols[1].name = "backtrace";
	ck_assert(me_walks_stack(&elf));
	symbols[1].name = "_Unwind_Backtrace";
	ck_assert(me_walks_stack(&elf));
	symbols[1].name = "_ULx86_64_step";
	ck_assert(me_walks_stack(&elf));
	symbols[1].name = "_Unwind_Resume";
	ck_assert(!me_walks_stack(&elf));
	elf.nr_symbols = 0;
	ck_assert(me_walks_stack(&elf));
}
