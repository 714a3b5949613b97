// SPDX-License-Identifier: Apache-2.0
/* rows_compare - states each rule as libdw's operations, and compares them; see rows_compare.h. */
#include "tests/support/rows_compare.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/elf/eh.h"
#include "libprof/unwind/rows_compile.h"

#define RBP 6
#define RIP 16

static const uint8_t dwarf_number[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

int rows_of_elf(const struct mp_elf *elf, void **bytes, size_t *size, struct mp_rows *rows,
		struct mp_err *err)
{
	struct mp_cursor frames;
	struct mp_code_bytes code = mp_code_bytes_of(elf);
	bool sized;
	int ret;

	if (!mp_eh_frame_find(elf, &frames, &sized))
		return mp_err_set(err, ENOENT, "%s: no .eh_frame", elf->path);
	ret = mp_rows_compile(&frames, sized, elf->start, &code, bytes, size, err);
	return ret ? ret : mp_rows_open(elf->path, *bytes, *size, rows, err);
}

static bool is_breg(const Dwarf_Op *op, int reg, int64_t off)
{
	if (op->atom == DW_OP_bregx)
		return op->number == (Dwarf_Word)reg && (int64_t)op->number2 == off;
	return op->atom == DW_OP_breg0 + reg && (int64_t)op->number == off;
}

static bool is_plt(const Dwarf_Op *ops, size_t nr, int reg, const struct mp_row_rule *rule)
{
	static const uint8_t rest[] = {DW_OP_lit15, DW_OP_and, 0,	  DW_OP_ge,
				       DW_OP_lit3,  DW_OP_shl, DW_OP_plus};

	if (nr != 9 || !is_breg(&ops[0], reg, rule->cfa_off) || !is_breg(&ops[1], RIP, 0))
		return false;
	for (size_t i = 0; i < sizeof(rest); i++)
		if (ops[i + 2].atom != (rest[i] ? rest[i] : DW_OP_lit0 + rule->cfa_add))
			return false;
	return true;
}

static bool same_cfa(const struct mp_row_rule *rule, const Dwarf_Op *ops, size_t nr)
{
	int reg = dwarf_number[rule->cfa_reg];

	switch (rule->cfa) {
	case MP_ROW_REGISTER: return nr == 1 && is_breg(ops, reg, rule->cfa_off);
	case MP_ROW_DEREF:
		return nr == (rule->cfa_add ? 3 : 2) && is_breg(ops, reg, rule->cfa_off) &&
		       ops[1].atom == DW_OP_deref &&
		       (!rule->cfa_add || (ops[2].atom == DW_OP_plus_uconst &&
					   (int64_t)ops[2].number == rule->cfa_add));
	case MP_ROW_PLT: return is_plt(ops, nr, reg, rule);
	default: return false;
	}
}

/* @mem: the array that libdw was given, which tells "undefined" from "same value". */
static bool same_saved(uint8_t saved, int32_t off, const Dwarf_Op *ops, size_t nr,
		       const Dwarf_Op *mem)
{
	bool value = nr && ops[nr - 1].atom == DW_OP_stack_value;

	switch (saved) {
	case MP_ROW_SAME: return !nr && !ops;
	case MP_ROW_AT_CFA:
		return !value && nr == (off ? 2 : 1) && ops[0].atom == DW_OP_call_frame_cfa &&
		       (!off ||
			(ops[1].atom == DW_OP_plus_uconst && (int64_t)ops[1].number == off));
	/* libdw begins an expression with the CFA, which the expression finds on its stack. */
	case MP_ROW_AT_RSP:
	case MP_ROW_AT_RBP:
		return nr == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
		       is_breg(&ops[1], saved == MP_ROW_AT_RSP ? 7 : RBP, off);
	default: return (!nr && ops == mem) || value || nr;
	}
}

static bool same_rule(const struct mp_row_rule *rule, Dwarf_Frame *frame, bool signal)
{
	Dwarf_Op rbp_mem[3], ra_mem[3], *rbp, *ra, *cfa;
	size_t nr_rbp, nr_ra, nr_cfa;

	if (dwarf_frame_register(frame, RBP, rbp_mem, &rbp, &nr_rbp) ||
	    dwarf_frame_register(frame, RIP, ra_mem, &ra, &nr_ra) ||
	    dwarf_frame_cfa(frame, &cfa, &nr_cfa))
		return false;
	if (signal != !!(rule->flags & MP_ROW_SIGNAL))
		return false;
	if (rule->flags & MP_ROW_BOTTOM || (!nr_ra && ra == ra_mem))
		return rule->flags & MP_ROW_BOTTOM && !nr_ra && ra == ra_mem;
	return same_cfa(rule, cfa, nr_cfa) &&
	       same_saved(rule->ra, rule->ra_off, ra, nr_ra, ra_mem) &&
	       same_saved(rule->rbp, rule->rbp_off, rbp, nr_rbp, rbp_mem);
}

static void differ(struct rows_comparison *c, const char *path, uint64_t vaddr,
		   const struct mp_row_rule *rule, const char *what)
{
	if (!c->nr_differ++)
		snprintf(c->first, sizeof(c->first),
			 "%s: 0x%" PRIx64 ": %s; the row has cfa %u reg %u off %d, stop %u", path,
			 vaddr, what, rule->cfa, rule->cfa_reg, rule->cfa_off, rule->stop);
}

/* Goes back from @end to the first address at which the rows say the same as before it. */
static uint64_t before_change(const struct mp_rows *rows, uint64_t start, uint64_t end)
{
	while (end > start && mp_rows_find(rows, end - 1)->stop == MP_ROW_STOP_STACK)
		end--;
	return end;
}

/* Compares at @start, where libdw's @frame begins, and at each row before @end. */
static void compare_range(const struct mp_elf *elf, const struct mp_rows *rows, Dwarf_Frame *frame,
			  bool signal, uint64_t start, uint64_t end, struct rows_comparison *c)
{
	const struct mp_row_rule *rule = mp_rows_find(rows, start);
	uint64_t told = before_change(rows, start, end);

	c->nr_ranges++;
	c->nr_bytes += end - start;
	if (told < end && told > start) {
		c->nr_stopped++;
		c->stopped_bytes[MP_ROW_STOP_STACK] += end - told;
		end = told;
	}
	if (rule->cfa == MP_ROW_STOP && !(rule->flags & MP_ROW_BOTTOM)) {
		c->nr_stopped++;
		c->stopped_bytes[rule->stop] += end - start;
		if (rule->stop == MP_ROW_STOP_NO_ROW)
			differ(c, elf->path, start, rule, "there is an FDE");
	} else if (!same_rule(rule, frame, signal)) {
		differ(c, elf->path, start, rule, "another rule");
	}
	if (mp_rows_find(rows, end - 1) != rule)
		differ(c, elf->path, end - 1, rule, "a row of its own");
}

static void compare_gap(const struct mp_elf *elf, const struct mp_rows *rows, uint64_t from,
			uint64_t to, struct rows_comparison *c)
{
	const struct mp_row_rule *rule;
	uint64_t start = elf->start;

	c->nr_gaps++;
	if (start >= from && start < to) {
		rule = mp_rows_find(rows, start);
		if (!(rule->flags & MP_ROW_BOTTOM) || mp_rows_find(rows, to - 1) != rule)
			differ(c, elf->path, start, rule, "the program starts there");
		if (start == from)
			return;
		to = start;
	}
	rule = mp_rows_find(rows, from);
	if (rule->stop != MP_ROW_STOP_NO_ROW || mp_rows_find(rows, to - 1)->stop != rule->stop)
		differ(c, elf->path, from, rule, "there is no FDE");
}

static int compare_fde(const struct mp_elf *elf, const struct mp_rows *rows, Dwarf_CFI *cfi,
		       uint64_t start, uint64_t end, struct rows_comparison *c)
{
	Dwarf_Addr from, to;
	Dwarf_Frame *frame;
	bool signal;

	for (uint64_t at = start; at < end; at = to) {
		if (dwarf_cfi_addrframe(cfi, at, &frame))
			return -EIO;
		dwarf_frame_info(frame, &from, &to, &signal);
		if (to > end || to <= at)
			to = end;
		compare_range(elf, rows, frame, signal, at, to, c);
		free(frame);
	}
	return 0;
}

int rows_compare(const struct mp_elf *elf, const struct mp_rows *rows, struct rows_comparison *out)
{
	int fd = open(elf->path, O_RDONLY | O_CLOEXEC), ret = -EIO;
	uint64_t end = 0;
	Dwarf_CFI *cfi;
	Elf *libelf;

	*out = (struct rows_comparison){0};
	elf_version(EV_CURRENT);
	libelf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	cfi = libelf ? dwarf_getcfi_elf(libelf) : NULL;
	if (cfi)
		ret = 0;
	for (uint32_t i = 0; i < elf->nr_fdes && !ret; i++) {
		const struct mp_fde *fde = &elf->fdes[i];

		if (end && fde->start > end)
			compare_gap(elf, rows, end, fde->start, out);
		ret = compare_fde(elf, rows, cfi, fde->start, fde->start + fde->size, out);
		end = fde->start + fde->size;
	}
	if (cfi)
		dwarf_cfi_end(cfi);
	elf_end(libelf);
	if (fd >= 0)
		close(fd);
	return ret;
}
