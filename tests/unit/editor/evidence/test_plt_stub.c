// SPDX-License-Identifier: Apache-2.0
/* test_plt_stub - which code counts as a PLT stub, and which branches to it. */
#include "editor/evidence/plt_stub.h"

#include "tests/support/compile.h"
#include "tests/unit/files.h"

/* Each symbol named stub_... has to be a stub, each named other_... must not be one. */
static const char source[] = ".text\n"
			     "stub_plain: jmp *slot(%rip)\n"
			     "stub_bnd: bnd jmp *slot(%rip)\n"
			     "stub_endbr: endbr64; jmp *slot(%rip)\n"
			     "stub_both: endbr64; bnd jmp *slot(%rip)\n"
			     "other_notrack: notrack jmp *slot(%rip)\n"
			     "other_call: call *slot(%rip)\n"
			     "other_absolute: jmp *0x1000\n"
			     "other_register: mov $1, %r11d; jmp *slot(%rip)\n"
			     "other_twice: endbr64; endbr64; jmp *slot(%rip)\n"
			     "other_rex: .byte 0x48; jmp *slot(%rip)\n"
			     "other_direct: jmp stub_plain\n"
			     "other_bad: .byte 0x06\n"
			     "branch_call: call stub_endbr\n"
			     "branch_jump: .byte 0xe9; .long stub_endbr - . - 4\n"
			     "kept_data16: .byte 0x66, 0x66, 0x48; call stub_plain\n"
			     "kept_bnd: bnd call stub_plain\n"
			     "kept_other: call other_notrack\n"
			     "kept_short: jmp kept_other\n"
			     ".section .data.rel, \"awx\", @progbits\n"
			     "other_writable: jmp *slot(%rip)\n"
			     ".data\n"
			     "slot: .quad 0\n"
			     ".globl main\n"
			     ".text\n"
			     "main: ret\n"
			     ".section .note.GNU-stack, \"\", @progbits\n";

static struct mp_elf *open_program(char *path)
{
	char name[256];
	struct mp_elf *elf;
	const char *dir = getenv("TMPDIR");

	snprintf(name, sizeof(name), "%s/morph-stub-%d.s", dir ? dir : "/tmp", (int)getpid());
	write_text(name, source);
	ck_assert_int_eq(compile_run("gcc", "-pie -w -Wl,--no-warn-rwx-segments", name, path), 0);
	unlink(name);
	ck_assert_int_eq(mp_elf_open(path, MP_ELF_ALL, &elf, &err), 0);
	return elf;
}

static uint64_t address_of(const struct mp_elf *elf, const char *name)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (!strcmp(elf->symbols[i].name, name))
			return elf->symbols[i].vaddr;
	ck_abort_msg("no symbol %s", name);
	return 0;
}

TEST(plt_stub_is_a_plain_jump_through_memory)
{
	char path[256];
	struct mp_elf *elf = open_program(path);
	uint64_t slot = address_of(elf, "slot");
	uint32_t nr = 0;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *s = &elf->symbols[i];
		bool stub = !strncmp(s->name, "stub_", 5);

		if (!stub && strncmp(s->name, "other_", 6) != 0)
			continue;
		ck_assert_msg(me_plt_stub_slot(elf, s->vaddr) == (stub ? slot : 0), "%s", s->name);
		nr++;
	}
	ck_assert_uint_eq(nr, 13);
	ck_assert_uint_eq(me_plt_stub_slot(elf, 0), 0);
	ck_assert_uint_eq(me_plt_stub_slot(elf, slot), 0);
	ck_assert_uint_eq(me_plt_stub_slot(elf, UINT64_MAX), 0);
	mp_elf_close(elf);
	unlink(path);
}

TEST(plt_branch_has_five_bytes_and_no_prefix)
{
	char path[256];
	struct mp_elf *elf = open_program(path);
	uint64_t slot = address_of(elf, "slot");

	ck_assert_uint_eq(me_plt_branch_slot(elf, address_of(elf, "branch_call"), false), slot);
	ck_assert_uint_eq(me_plt_branch_slot(elf, address_of(elf, "branch_call"), true), 0);
	ck_assert_uint_eq(me_plt_branch_slot(elf, address_of(elf, "branch_jump"), true), slot);
	ck_assert_uint_eq(me_plt_branch_slot(elf, address_of(elf, "branch_jump"), false), 0);
	for (int jump = 0; jump < 2; jump++) {
		static const char *const kept[] = {"kept_data16", "kept_bnd", "kept_other",
						   "kept_short"};

		for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
			ck_assert_msg(!me_plt_branch_slot(elf, address_of(elf, kept[i]), jump),
				      "%s", kept[i]);
	}
	mp_elf_close(elf);
	unlink(path);
}
