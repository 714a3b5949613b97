// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_cfi - verify's reader of unwind programs gives the same rows as libdw, for every
 * row of real files.
 */
#include "tests/unit/suite.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_eh.h"

static const char *const files[] = {
	"/proc/self/exe",
	"/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
};

/*
 * Finds the offset from the CFA at which @reg is saved, by libdw. Return: false: it is not
 * saved.
 */
static bool saved_at(Dwarf_Frame *frame, int reg, int64_t *off)
{
	Dwarf_Op mem[3], *ops;
	size_t nops;

	ck_assert_int_eq(dwarf_frame_register(frame, reg, mem, &ops, &nops), 0);
	if (!nops || ops[nops - 1].atom == DW_OP_stack_value || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	ck_assert_uint_le(nops, 2);
	*off = nops == 2 ? (int64_t)ops[1].number : 0;
	return true;
}

static void compare_row(const struct vf_row *row, Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	size_t nops;
	int64_t off;

	ck_assert_int_eq(dwarf_frame_cfa(frame, &ops, &nops), 0);
	if (row->cfa.kind == VF_RULE_OFFSET) {
		ck_assert_uint_eq(nops, 1);
		ck_assert_int_eq(ops[0].atom, DW_OP_bregx);
		ck_assert_uint_eq(ops[0].number, row->cfa_reg);
		ck_assert_int_eq((int64_t)ops[0].number2, row->cfa.off);
	}
	for (int reg = 0; reg <= 16; reg++) {
		bool saved;

		if (row->reg[reg].kind == VF_RULE_EXPR || row->reg[reg].kind == VF_RULE_VAL_EXPR)
			continue;
		saved = saved_at(frame, reg, &off);
		ck_assert_msg(saved == (row->reg[reg].kind == VF_RULE_OFFSET),
			      "register %d at %#llx", reg, (unsigned long long)row->loc);
		if (saved)
			ck_assert_int_eq(off, row->reg[reg].off);
	}
}

TEST_EACH(verify_cfi_gives_the_rows_of_libdw, sizeof(files) / sizeof(files[0]))
{
	struct vf vf = {0};
	struct vf_eh eh = {0};
	struct vf_rows rows = {0};
	struct mp_err err = {""};
	struct mp_elf *elf;
	uint64_t nr_rows = 0;
	Dwarf_CFI *cfi;
	Elf *e;
	int fd;

	if (access(files[_i], R_OK))
		MORPH_SKIP("%s is not there", files[_i]);
	elf_version(EV_CURRENT);
	ck_assert_msg(mp_elf_open(files[_i], MP_ELF_ALL, &elf, &err) == 0, "%s", err.msg);
	fd = open(files[_i], O_RDONLY);
	e = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cfi = dwarf_getcfi_elf(e);
	ck_assert_ptr_nonnull(cfi);
	vf.o = vf.n = elf;
	vf.err = &err;
	ck_assert_msg(vf_eh_read(&vf, elf, false, &eh) == 0, "%s", err.msg);
	ck_assert_uint_gt(eh.nr_fdes, 10);
	for (uint32_t i = 0; i < eh.nr_fdes; i++) {
		ck_assert_int_eq(vf_rows_build(&eh, &eh.fdes[i], &rows), 0);
		for (uint32_t k = 0; k < rows.nr; k++) {
			Dwarf_Frame *frame;

			/* A row behind the function's end has no meaning. */
			if (rows.row[k].loc >= eh.fdes[i].start + eh.fdes[i].size)
				continue;
			ck_assert_int_eq(dwarf_cfi_addrframe(cfi, rows.row[k].loc, &frame), 0);
			compare_row(&rows.row[k], frame);
			free(frame);
			nr_rows++;
		}
	}
	ck_assert_uint_gt(nr_rows, eh.nr_fdes);
	free(rows.row);
	vf_eh_fini(&eh);
	dwarf_cfi_end(cfi);
	elf_end(e);
	close(fd);
	mp_elf_close(elf);
}

/* Rows in which the program counter has a part are other ones in a copy. */
TEST(verify_cfi_notes_rows_that_read_the_program_counter)
{
	static const struct {
		uint8_t program[8], size;
		bool reads;
	} programs[] = {
		{{DW_CFA_def_cfa, 7, 16}, 3, false},
		{{DW_CFA_def_cfa, 16, 8}, 3, true},
		{{DW_CFA_register, 16, 3}, 3, false},
		{{DW_CFA_register, 3, 16}, 3, true},
		{{DW_CFA_val_expression, 3, 2, DW_OP_breg7, 8}, 5, false},
		{{DW_CFA_val_expression, 3, 2, DW_OP_breg16, 0}, 5, true},
		{{DW_CFA_val_expression, 3, 1, DW_OP_reg16}, 4, true},
		{{DW_CFA_val_expression, 3, 2, DW_OP_regx, 16}, 5, true},
	};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct vf_cie cie = {.code_align = 1, .data_align = -8, .ra = 16};
		struct vf_fde fde = {.start = 0x1000,
				     .size = 16,
				     .insns = programs[i].program,
				     .insns_len = programs[i].size};
		struct vf_eh eh = {.cies = &cie, .nr_cies = 1};
		struct vf_rows rows = {0};
		const uint8_t first[] = {DW_CFA_def_cfa, 7, 8};

		cie.insns = first;
		cie.insns_len = sizeof(first);
		ck_assert_int_eq(vf_rows_build(&eh, &fde, &rows), 0);
		ck_assert_msg((rows.ambiguous || vf_row_reads_pc(&rows.row[0])) ==
				      programs[i].reads,
			      "program %zu", i);
		free(rows.row);
	}
}
