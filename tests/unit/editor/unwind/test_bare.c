// SPDX-License-Identifier: Apache-2.0
/*
 * test_bare - functions without unwind information: leaves that agree with their symbol move,
 * their copies have no unwind information either, and verify checks both.
 */
#include "tests/unit/suite.h"

#include "tests/unit/edit_fixture.h"
#include "tests/unit/verify_pair.h"

#define FUNC(name, body)                                                                           \
	".type " name ", @function\n" name ": .cfi_startproc\n" body " .cfi_endproc\n"             \
	".size " name ", .-" name "\n"
#define LINK "-nostdlib -pie -Wl,-e,start "

FIXTURE(NULL, fixture_done);

TEST_EACH(bare_leaves_are_understood, 17)
{
	static const struct {
		const char *body; /* of h */
		bool good;
	} cases[] = {
		{" mov $1, %eax\n ret\n", true},
		{" push %rbx\n1: dec %edi\n jne 1b\n pop %rbx\n ret\n", true},
		{" test %edi, %edi\n je 1f\n ret\n1: jmp 2f\n nop\n2: ret\n", true},
		/* A second name of the same bytes. */
		{".globl h2\n.type h2, @function\nh2: ret\n.size h2, 1\n", true},
		/* It calls or jumps to other code. */
		{" call f\n ret\n", false},
		{" call *%rax\n ret\n", false},
		{" jmp f\n ret\n", false},
		{" test %edi, %edi\n je f\n ret\n", false},
		{" jmp *%rax\n ret\n", false},
		{" syscall\n ret\n", false},
		{" test %edi, %edi\n je 1f\n ret\n1: ud2\n", false},
		/* It does not end where its symbol ends, or never returns. */
		{" test %edi, %edi\n je 1f\n ret\n1: mov $1, %eax\n", false},
		{"1: jmp 1b\n", false},
		/* Data in the code; a label whose address is taken; a jump into an instruction. */
		{" jmp 1f\n .quad 0x0606060606060606\n1: ret\n", false},
		{" lea 1f(%rip), %rax\n nop\n1: ret\n", false},
		{" je 1f + 1\n1: lock incl (%rdi)\n ret\n", false},
		/* Another symbol begins inside it. */
		{" nop\n.type h2, @function\nh2: ret\n.size h2, 1\n", false},
	};
	char source[1024] = ".globl start\n" FUNC("start", " hlt\n")
		FUNC("f", " mov $1, %eax\n ret\n") ".type h, @function\nh:\n";
	const struct mp_func *func;

	strcat(source, cases[_i].body);
	strcat(source, ".size h, .-h\n.balign 16\n" FUNC("g", " ret\n"));
	fixture_compile(&f, "assembler", LINK, source);
	fixture_read(&f);
	func = &f.cfg->funcs[fixture_func(&f, "h")];
	ck_assert(func->flags & MP_FUNC_BARE);
	ck_assert_msg((func->problem == MP_PROBLEM_NONE) == cases[_i].good, "%s: %s",
		      cases[_i].body, mp_problem_name(func->problem));
}

static const struct mp_symbol *symbol_of(const struct mp_elf *elf, const char *name)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (!strcmp(elf->symbols[i].name, name))
			return &elf->symbols[i];
	ck_abort_msg("no symbol %s", name);
	return NULL;
}

static uint32_t nr_pieces_of(const struct pair *p, const char *name)
{
	const struct mp_symbol *sym = symbol_of(p->original, name);
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		nr += p->map->pieces[i].old_vaddr - sym->vaddr < sym->size;
	return nr;
}

/* With and without relocations, in several orders: there are copies, but no FDE covers them. */
TEST_EACH(bare_copies_have_no_unwind_information, 4)
{
	const struct mp_symbol *leaf;
	AUTO(pair_free) struct pair p = {0};

	pair_build_as_it_is(&p,
			    _i & 1 ? "gcc " LINK "-Wl,--emit-relocs tests/data/bare.S"
				   : "gcc " LINK "tests/data/bare.S",
			    (uint64_t)_i);
	leaf = symbol_of(p.original, "leaf");
	ck_assert_uint_ge(nr_pieces_of(&p, "leaf"), 2);
	ck_assert_uint_eq(nr_pieces_of(&p, "calls"), 0);
	ck_assert_uint_eq(nr_pieces_of(&p, "leaves"), 0);
	ck_assert_uint_gt(nr_pieces_of(&p, "after"), 0);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		uint64_t at = p.map->pieces[i].new_vaddr;
		bool bare = p.map->pieces[i].old_vaddr - leaf->vaddr < leaf->size, covered = false;

		for (uint32_t k = 0; k < p.good->nr_fdes; k++)
			covered |= at - p.good->fdes[k].start < p.good->fdes[k].size;
		ck_assert_int_eq(covered, !bare);
	}
}

/* The leaf's symbol overlaps the next function: nothing says where the leaf ends. */
TEST(verify_wants_a_symbol_that_overlaps_nothing)
{
	const struct mp_symbol *leaf;
	struct mp_elf *original;
	const Elf64_Shdr *sections;
	AUTO_FREE uint8_t *bytes = NULL;
	AUTO(pair_free) struct pair p = {0};
	int rc;

	pair_build_as_it_is(&p, "gcc " LINK "tests/data/bare.S", 2);
	leaf = symbol_of(p.original, "leaf");
	bytes = malloc(p.original->size);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, p.original->data, p.original->size);
	sections = (const Elf64_Shdr *)(bytes + p.original->ehdr.e_shoff);
	for (uint32_t i = 0; i < p.original->ehdr.e_shnum; i++) {
		Elf64_Sym *syms = (Elf64_Sym *)(bytes + sections[i].sh_offset);

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		ck_assert_uint_eq(syms[leaf->index].st_value, leaf->vaddr);
		syms[leaf->index].st_size += 64;
	}
	ck_assert_int_eq(mp_elf_open_memory("original", bytes, p.original->size, MP_ELF_ALL,
					    &original, &err),
			 0);
	original->id = p.original->id;
	rc = me_verify(original, p.good, NULL, &err);
	ck_assert_int_eq(rc, -EBADMSG);
	ck_assert_msg(strstr(err.msg, "FDE") || strstr(err.msg, "not understood") ||
			      strstr(err.msg, "function"),
		      "%s", err.msg);
	mp_elf_close(original);
}
