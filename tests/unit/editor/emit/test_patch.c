// SPDX-License-Identifier: Apache-2.0
/* test_patch - changes in old code and data, and what must stay unchanged. */
#include "tests/unit/suite.h"

#include "tests/unit/edit_fixture.h"

#define START ".globl start\nstart: .cfi_startproc\n hlt\n .cfi_endproc\n"
#define FUNC(name, body)                                                                           \
	".type " name ", @function\n" name ": .cfi_startproc\n" body " .cfi_endproc\n"             \
	".size " name ", .-" name "\n"
#define ASM "-nostdlib -Wl,-e,start"

static void patch(struct fixture *f)
{
	fixture_place(f);
	ck_assert_msg(fixture_patch(f, &err) == 0, "%s", err.msg);
}

/* The instruction at @vaddr must be a patch that leads to @target. */
static void is_jump_to(const struct fixture *f, uint64_t vaddr, uint64_t target)
{
	struct mp_insn insn;

	ck_assert_int_eq(mp_insn_decode(fixture_at(f, vaddr), 5, vaddr, &insn), 0);
	ck_assert_uint_eq(insn.kind, MP_INSN_JUMP);
	ck_assert_uint_eq(insn.len, 5);
	ck_assert_uint_eq(insn.target, target);
}

FIXTURE(NULL, fixture_done);

TEST(patch_jumps_from_old_starts_to_copies)
{
	uint64_t vaddr;

	fixture_build(&f, "assembler", ASM,
		      START FUNC("f", " mov $1, %eax\n add %edi, %eax\n ret\n")
			      FUNC("kept", " mov $1, %eax\n ret\n"));
	fixture_plan_all(&f, "f");
	patch(&f);
	vaddr = fixture_vaddr(&f, "f");
	is_jump_to(&f, vaddr, f.placement.base);
	/* Only five bytes change. */
	ck_assert(!fixture_changed(&f, vaddr + 5, 3));
	ck_assert(!fixture_changed(&f, fixture_vaddr(&f, "kept"), 6));
	ck_assert_uint_eq(f.patches.nr_patches, 1);
	ck_assert_uint_eq(f.patches.patches[0].vaddr, vaddr);
	ck_assert_uint_eq(f.patches.patches[0].size, 5);
}

TEST(patch_leaves_endbr64_where_it_is)
{
	uint64_t vaddr;

	fixture_build(&f, "assembler", ASM,
		      START FUNC("f", " endbr64\n mov $1, %eax\n ret\n")
			      FUNC("g", " endbr64\n xor %eax, %eax\n ret\n"));
	fixture_plan_all(&f, "f");
	fixture_plan_all(&f, "g");
	patch(&f);
	vaddr = fixture_vaddr(&f, "f");
	ck_assert_mem_eq(fixture_at(&f, vaddr), "\xf3\x0f\x1e\xfa", 4);
	is_jump_to(&f, vaddr + 4, f.placement.base);
	ck_assert_uint_eq(f.patches.patches[0].vaddr, vaddr + 4);
	/* Only three bytes follow the endbr64 of g. */
	ck_assert(!fixture_changed(&f, fixture_vaddr(&f, "g"), 7));
	ck_assert_uint_eq(f.patches.nr_patches, 1);
	ck_assert_uint_eq(f.patches.nr_unpatched, 1);
}

TEST(patch_leaves_blocks_below_five_bytes)
{
	/* Blocks of 4, 5 and 1 bytes, then padding that a jump would overwrite. */
	fixture_build(
		&f, "assembler", ASM,
		START FUNC(
			"f",
			" test %edi, %edi\n je 1f\n mov $1, %eax\n1: ret\n") ".fill 16, 1, 0xcc\n");
	fixture_plan_all(&f, "f");
	patch(&f);
	ck_assert_uint_eq(f.patches.nr_patches, 1);
	ck_assert_uint_eq(f.patches.patches[0].vaddr, fixture_block_vaddr(&f, "f", 1));
	ck_assert_uint_eq(f.patches.nr_unpatched, 2);
	ck_assert(!fixture_changed(&f, fixture_block_vaddr(&f, "f", 0), 4));
	ck_assert(!fixture_changed(&f, fixture_block_vaddr(&f, "f", 2), 17));
}

/* Every possible jump target begins a block, so no patch covers one. */
TEST(patch_spans_no_possible_target)
{
	static const char *const sources[] = {
		/* a branch in another function */
		START FUNC("f", " nop\n nop\n.Lin: nop\n mov $1, %eax\n ret\n")
			FUNC("g", " jmp .Lin\n"),
		/* a word of data */
		START FUNC("f",
			   " nop\n nop\n.Lin: nop\n mov $1, %eax\n ret\n") ".data\n.quad .Lin\n",
		/* an operand */
		START FUNC("f", " nop\n nop\n.Lin: nop\n mov $1, %eax\n ret\n")
			FUNC("g", " lea .Lin(%rip), %rax\n ret\n"),
		/* a symbol */
		START FUNC("f", " nop\n nop\n.globl inner\ninner: nop\n mov $1, %eax\n ret\n"),
	};

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		struct fixture f;
		uint32_t func;
		uint64_t vaddr;

		fixture_build(&f, "assembler", ASM, sources[i]);
		func = fixture_func(&f, "f");
		vaddr = fixture_vaddr(&f, "f");
		/* Either the whole function is left alone, or no patch covers the target. */
		if (f.cfg->funcs[func].problem == MP_PROBLEM_NONE) {
			fixture_plan_all(&f, "f");
			patch(&f);
			ck_assert_msg(!fixture_changed(&f, vaddr, 2), "%zu", i);
			for (uint32_t k = 0; k < f.patches.nr_patches; k++)
				ck_assert_uint_ge(f.patches.patches[k].vaddr, vaddr + 2);
		}
		ck_assert_msg(mp_cfg_is_target(f.cfg, vaddr + 2), "%zu", i);
		fixture_free(&f);
	}
}

TEST(patch_leads_calls_and_branches_of_old_code_to_copies)
{
	uint64_t g, h, to;
	struct mp_insn insn;

	fixture_build(&f, "assembler", ASM,
		      START FUNC("f", " mov $1, %eax\n ret\n")
			      FUNC("g", " call f\n test %eax, %eax\n jne.d32 f\n jmp.d32 f\n")
				      FUNC("h", " jmp f\n"));
	fixture_plan_all(&f, "f");
	patch(&f);
	to = f.placement.base;
	g = fixture_vaddr(&f, "g");
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(mp_insn_decode(fixture_at(&f, g), 16, g, &insn), 0);
		ck_assert_uint_eq(insn.target, to);
		g += insn.len + (i == 0 ? 2 : 0);
	}
	/* A short jump cannot reach the copy: it leads to the old start, which jumps on. */
	h = fixture_vaddr(&f, "h");
	ck_assert_int_eq(mp_insn_decode(fixture_at(&f, h), 5, h, &insn), 0);
	ck_assert_uint_eq(insn.target, fixture_vaddr(&f, "f"));
	ck_assert_uint_eq(f.patches.nr_retargeted, 3);
}

TEST(patch_changes_nothing_in_code_that_is_not_understood)
{
	uint64_t g;

	fixture_build(&f, "assembler", ASM,
		      START FUNC("f", " mov $1, %eax\n ret\n") FUNC("g", " call f\n .byte 6\n"));
	ck_assert_uint_ne(f.cfg->funcs[fixture_func(&f, "g")].problem, MP_PROBLEM_NONE);
	fixture_plan_all(&f, "f");
	patch(&f);
	g = fixture_vaddr(&f, "g");
	ck_assert(!fixture_changed(&f, g, 6));
	ck_assert_uint_eq(f.patches.nr_retargeted, 0);
}

#define SWITCH                                                                                     \
	"int f(int x, int y)\n"                                                                    \
	"{\n"                                                                                      \
	"	switch (x) {\n"                                                                          \
	"	case 0: return y * 3;\n"                                                                 \
	"	case 1: return y - 7;\n"                                                                 \
	"	case 2: return y / 5;\n"                                                                 \
	"	case 3: return y ^ 0x55;\n"                                                              \
	"	case 4: return y % 9;\n"                                                                 \
	"	case 5: return y | 3;\n"                                                                 \
	"	case 6: return ~y;\n"                                                                    \
	"	default: return 0;\n"                                                                    \
	"	}\n"                                                                                     \
	"}\n"                                                                                      \
	"void start(void) { for (;;) f(1, 2); }\n"

static const struct mp_table *table_of(const struct fixture *f, const char *name)
{
	for (uint32_t t = 0; t < f->cfg->nr_tables; t++) {
		if (f->cfg->tables[t].func == fixture_func(f, name))
			return &f->cfg->tables[t];
	}
	ck_abort_msg("%s has no table", name);
	return NULL;
}

TEST(patch_leads_relative_table_entries_to_copies)
{
	const struct mp_table *t;

	fixture_build(&f, "c",
		      "-O2 -fno-inline -fPIE -pie -nostdlib -fno-tree-switch-conversion "
		      "-Wl,-e,start",
		      SWITCH);
	t = table_of(&f, "f");
	ck_assert_uint_eq(t->kind, MP_TABLE_REL32);
	ck_assert_uint_eq(t->nr_entries, 7);
	ck_assert(t->private_refs);
	fixture_plan_all(&f, "f");
	patch(&f);
	ck_assert_uint_eq(f.patches.nr_table_entries, 7);
	for (uint32_t i = 0; i < 7; i++) {
		int32_t old, now;
		uint64_t target;

		memcpy(&old, mp_elf_bytes(f.elf, t->vaddr + 4 * i, 4), 4);
		memcpy(&now, fixture_at(&f, t->vaddr + 4 * i), 4);
		target = t->base + (uint64_t)(int64_t)old;
		ck_assert_uint_eq(t->base + (uint64_t)(int64_t)now,
				  me_place_of(f.cfg, &f.placement, target));
		ck_assert_uint_ge(t->base + (uint64_t)(int64_t)now, f.placement.base);
	}
}

TEST(patch_leads_absolute_table_entries_to_copies)
{
	const struct mp_table *t;

	fixture_build(&f, "c",
		      "-O2 -fno-inline -fno-pie -no-pie -static -nostdlib "
		      "-fno-tree-switch-conversion -Wl,-e,start",
		      SWITCH);
	t = table_of(&f, "f");
	ck_assert_uint_eq(t->kind, MP_TABLE_ABS64);
	fixture_plan_all(&f, "f");
	patch(&f);
	for (uint32_t i = 0; i < t->nr_entries; i++) {
		uint64_t old, now;

		memcpy(&old, mp_elf_bytes(f.elf, t->vaddr + 8 * i, 8), 8);
		memcpy(&now, fixture_at(&f, t->vaddr + 8 * i), 8);
		ck_assert_uint_eq(now, me_place_of(f.cfg, &f.placement, old));
		ck_assert_uint_ne(now, old);
	}
	ck_assert_uint_eq(f.patches.nr_table_entries, t->nr_entries);
}

TEST(patch_leaves_entries_whose_block_stays)
{
	const struct mp_table *t;
	uint32_t nr_kept = 0;

	fixture_build(&f, "c",
		      "-O2 -fno-inline -fPIE -pie -nostdlib -fno-tree-switch-conversion "
		      "-Wl,-e,start",
		      SWITCH);
	t = table_of(&f, "f");
	fixture_plan(&f, "f", 0);
	fixture_plan(&f, "f", t->block - f.cfg->funcs[t->func].first_block);
	patch(&f);
	for (uint32_t i = 0; i < t->nr_entries; i++)
		nr_kept += !fixture_changed(&f, t->vaddr + 4 * i, 4);
	ck_assert_uint_eq(nr_kept, t->nr_entries);
	ck_assert_uint_eq(f.patches.nr_table_entries, 0);
}

/* For a word with an R_X86_64_RELATIVE relocation, the addend changes. */
TEST(patch_changes_the_addend_of_relative_relocations)
{
	static const char source[] = "static int g(int x) { return x * 5 + 1; }\n"
				     "int (*volatile p)(int) = g;\n"
				     "void start(void) { for (;;) p(3); }\n";
	const struct mp_reloc *reloc = NULL;
	struct mp_section const *rela;
	uint64_t p, copy, g;
	bool found = false;

	fixture_build(&f, "c", "-O2 -fPIE -pie -nostdlib -Wl,-e,start", source);
	p = fixture_vaddr(&f, "p");
	g = fixture_vaddr(&f, "g");
	for (uint32_t i = 0; i < f.elf->nr_dyn_relocs; i++) {
		if (f.elf->dyn_relocs[i].vaddr == p)
			reloc = &f.elf->dyn_relocs[i];
	}
	ck_assert_ptr_nonnull(reloc);
	ck_assert_uint_eq(reloc->type, R_X86_64_RELATIVE);
	fixture_plan_all(&f, "g");
	fixture_redirect(&f);
	ck_assert_uint_eq(f.plan.redirects.nr_functions, 1);
	patch(&f);
	copy = fixture_copy_of(&f, "g", 0)->new_vaddr;
	rela = mp_elf_section(f.elf, ".rela.dyn");
	ck_assert_ptr_nonnull(rela);
	for (uint64_t off = 0; off < rela->size; off += sizeof(Elf64_Rela)) {
		Elf64_Rela r;

		memcpy(&r, f.image + rela->off + off, sizeof(r));
		if (r.r_offset != p)
			continue;
		found = true;
		ck_assert_uint_eq((uint64_t)r.r_addend, copy);
	}
	ck_assert(found);
	ck_assert_uint_eq(f.patches.nr_pointers, 1);
	/* The loader writes the word, so it changes only if it held the value. */
	if (!memcmp(mp_elf_bytes(f.elf, p, 8), &g, 8))
		ck_assert_mem_eq(fixture_at(&f, p), &copy, 8);
	else
		ck_assert(!fixture_changed(&f, p, 8));
}

TEST(patch_refuses_a_segment_out_of_reach)
{
	fixture_build(&f, "assembler", ASM, START FUNC("f", " mov $1, %eax\n ret\n"));
	fixture_plan_all(&f, "f");
	fixture_place_at(&f, UINT64_C(1) << 33);
	ck_assert_int_eq(fixture_patch(&f, &err), -ERANGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "does not reach"));
}

TEST(patch_leads_a_static_programs_start_up_to_the_new_eh_frame)
{
	const struct mp_section *eh;
	uint32_t nr = 0, now = 0x12345678;

	fixture_build(&f, "c", "-O2 -static", "int main(void) { return 0; }\n");
	eh = mp_elf_section(f.elf, ".eh_frame");
	f.image = malloc(f.elf->size);
	ck_assert_ptr_nonnull(f.image);
	memcpy(f.image, f.elf->data, f.elf->size);
	ck_assert_int_eq(me_patch_eh_frame(f.cfg, f.image, f.elf->size, now, &err), 0);
	for (uint32_t i = 0; i < f.elf->nr_relocs; i++) {
		const struct mp_reloc *r = &f.elf->relocs[i];

		if (r->sym_value + (uint64_t)r->addend - eh->vaddr >= eh->size ||
		    !mp_elf_is_code(f.elf, r->vaddr))
			continue;
		ck_assert_mem_eq(fixture_at(&f, r->vaddr), &now, 4);
		nr++;
	}
	ck_assert_uint_gt(nr, 0);
	/* Too high for a 32-bit field. */
	ck_assert_int_eq(me_patch_eh_frame(f.cfg, f.image, f.elf->size, UINT64_C(1) << 32, &err),
			 -EPERM);
	fixture_free(&f);
	/* Nothing registers .eh_frame here. */
	fixture_build(&f, "assembler", ASM, START);
	ck_assert_int_eq(me_patch_eh_frame(f.cfg, NULL, 0, now, &err), -EPERM);
}

TEST(patch_leaves_the_rest_of_a_cut_call_as_it_was)
{
	uint64_t vaddr;

	fixture_build(&f, "assembler", ASM,
		      START FUNC("f", " mov %rdi, %rax\n call g\n add $1, %eax\n ret\n")
			      FUNC("g", " lea 1(%rdi), %rax\n add $2, %eax\n ret\n"));
	fixture_plan_all(&f, "f");
	fixture_plan_all(&f, "g");
	patch(&f);
	vaddr = fixture_vaddr(&f, "f");
	is_jump_to(&f, vaddr, f.placement.base);
	/* The call was first changed to call g's copy; three bytes of its displacement remain. */
	ck_assert_uint_ge(f.patches.nr_retargeted, 1);
	ck_assert(!fixture_changed(&f, vaddr + 5, 3));
}

TEST(patch_heeds_a_number_that_may_be_an_address)
{
	static const char *const numbers[] = {".quad f + 3", ".long 0, f + 3", ".quad 0"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		char source[1024];
		struct fixture f;

		snprintf(source, sizeof(source), "%s .data\n .balign 8\n %s\n",
			 START FUNC("f", " mov $1, %eax\n add %edi, %eax\n ret\n"), numbers[i]);
		/* Fixed addresses, without relocations. */
		fixture_compile(&f, "assembler", ASM " -no-pie", source);
		fixture_read(&f);
		ck_assert(!f.elf->relinkable);
		fixture_plan_all(&f, "f");
		patch(&f);
		ck_assert_uint_eq(f.patches.nr_patches, i == 2);
		fixture_free(&f);
	}
}
