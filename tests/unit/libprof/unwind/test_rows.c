// SPDX-License-Identifier: Apache-2.0
/*
 * test_rows - unwind rows of .eh_frame made by hand and of the machine's own files; hostile tables
 * of rows.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "libprof/unwind/rows.h"
#include "libprof/unwind/rows_compile.h"
#include "tests/support/frames.h"
#include "tests/support/rows_compare.h"
#include "tests/unit/suite.h"

#define RBX 3
#define RSP 4
#define RBP 5
#define R10 10

static struct frames frames;
static struct mp_rows rows;
static void *bytes;
static size_t size;
static uint64_t start; /* of the program */

static void setup(void)
{
	memset(&frames, 0, sizeof(frames));
	bytes = NULL;
	start = 0;
	frames_cie(&frames, false);
}

static void teardown(void)
{
	free(bytes);
}

static void compile(void)
{
	struct mp_cursor cur = frames_cursor(&frames);
	struct mp_err err;

	ck_assert_int_eq(mp_rows_compile(&cur, true, start, NULL, &bytes, &size, &err), 0);
	ck_assert_int_eq(mp_rows_open("made", bytes, size, &rows, &err), 0);
}

static void expect_cfa(uint64_t vaddr, enum mp_row_cfa cfa, unsigned int reg, int off, int add)
{
	const struct mp_row_rule *rule = mp_rows_find(&rows, vaddr);

	ck_assert_msg(rule->cfa == cfa, "0x%lx: kind %u, stop %u", (unsigned long)vaddr, rule->cfa,
		      rule->stop);
	ck_assert_uint_eq(rule->cfa_reg, reg);
	ck_assert_int_eq(rule->cfa_off, off);
	ck_assert_int_eq(rule->cfa_add, add);
}

static void expect_stop(uint64_t vaddr, enum mp_row_stop stop)
{
	const struct mp_row_rule *rule = mp_rows_find(&rows, vaddr);

	ck_assert_uint_eq(rule->cfa, MP_ROW_STOP);
	ck_assert_uint_eq(rule->stop, stop);
	ck_assert_uint_eq(rule->flags, 0);
}

FIXTURE(setup, teardown);

TEST(rows_follow_a_prologue_and_end_with_the_function)
{
	/* push rbp; mov rsp, rbp; ...; leave */
	FRAMES_FDE(&frames, 0x1000, 0x40, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x60, 0x0c, 7, 8);
	compile();
	expect_stop(0xfff, MP_ROW_STOP_NO_ROW);
	expect_cfa(0x1000, MP_ROW_REGISTER, RSP, 8, 0);
	expect_cfa(0x1001, MP_ROW_REGISTER, RSP, 16, 0);
	expect_cfa(0x1003, MP_ROW_REGISTER, RSP, 16, 0);
	expect_cfa(0x1004, MP_ROW_REGISTER, RBP, 16, 0);
	ck_assert_uint_eq(mp_rows_find(&rows, 0x1000)->rbp, MP_ROW_SAME);
	ck_assert_uint_eq(mp_rows_find(&rows, 0x1004)->rbp, MP_ROW_AT_CFA);
	ck_assert_int_eq(mp_rows_find(&rows, 0x1004)->rbp_off, -16);
	ck_assert_int_eq(mp_rows_find(&rows, 0x1004)->ra_off, -8);
	expect_cfa(0x1024, MP_ROW_REGISTER, RSP, 8, 0);
	expect_cfa(0x103f, MP_ROW_REGISTER, RSP, 8, 0);
	expect_stop(0x1040, MP_ROW_STOP_NO_ROW);
	expect_stop(0x1000 + (UINT64_C(1) << 32), MP_ROW_STOP_NO_ROW);
}

TEST(rows_of_equal_rules_are_merged)
{
	FRAMES_FDE(&frames, 0x1000, 0x10, 0);
	FRAMES_FDE(&frames, 0x1010, 0x10, 0x42, 0x83, 2, 0x44, 0x8c, 3); /* rbx, r12 saved */
	compile();
	/* The first row of each FDE, one for the registers that are saved, and the end. */
	ck_assert_uint_eq(rows.nr_rows, 4);
	expect_cfa(0x101f, MP_ROW_REGISTER, RSP, 8, 0);
}

static void expect_entry(uint64_t vaddr, uint64_t start)
{
	uint64_t found = 0;

	ck_assert_int_eq(mp_rows_entry(&rows, vaddr, &found), start != 0);
	ck_assert_msg(found == start, "0x%lx begins at 0x%lx", (unsigned long)vaddr,
		      (unsigned long)found);
}

TEST(rows_know_where_each_function_begins)
{
	FRAMES_FDE(&frames, 0x1000, 0x10, 0);
	FRAMES_FDE(&frames, 0x1010, 0x10, 0);
	FRAMES_FDE(&frames, 0x1020, 0x10, 0);
	FRAMES_FDE(&frames, 0x1040, 0x30000, 0x42, 0x0e, 16, 0x42, 0x0e, 8);
	FRAMES_FDE(&frames, 0x31040, 0x10, 0x0f, 2, 0x31, 0x22); /* not understood */
	compile();
	expect_entry(0xfff, 0);
	expect_entry(0x1000, 0x1000);
	expect_entry(0x100f, 0x1000);
	expect_entry(0x1010, 0x1010);
	expect_entry(0x102f, 0x1020);
	expect_entry(0x1030, 0);
	expect_entry(0x1040, 0x1040);
	expect_entry(0x2abcd, 0x1040);
	expect_entry(0x31045, 0);
	expect_entry(0x31050, 0);
}

TEST(rows_are_sorted_and_cross_pages)
{
	FRAMES_FDE(&frames, 0x38000, 0x20000, 0x42, 0x0e, 16);
	FRAMES_FDE(&frames, 0x10008, 8, 0);
	compile();
	expect_cfa(0x10008, MP_ROW_REGISTER, RSP, 8, 0);
	expect_stop(0x10010, MP_ROW_STOP_NO_ROW);
	expect_stop(0x2abcd, MP_ROW_STOP_NO_ROW);
	expect_cfa(0x38001, MP_ROW_REGISTER, RSP, 8, 0);
	expect_cfa(0x38002, MP_ROW_REGISTER, RSP, 16, 0);
	expect_cfa(0x40000, MP_ROW_REGISTER, RSP, 16, 0);
	expect_cfa(0x57fff, MP_ROW_REGISTER, RSP, 16, 0);
	expect_stop(0x58000, MP_ROW_STOP_NO_ROW);
}

TEST(rows_know_the_expressions_of_compilers)
{
	/* a PLT entry; a realigned frame (rbp - 8, deref); OpenSSL's (rsp + 24, deref, + 8) */
	FRAMES_FDE(&frames, 0x1000, 0x10, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33,
		   0x24, 0x22);
	FRAMES_FDE(&frames, 0x1010, 0x10, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0);
	FRAMES_FDE(&frames, 0x1020, 0x10, 0x0f, 5, 0x77, 24, 0x06, 0x23, 8, 0x86, 3);
	FRAMES_FDE(&frames, 0x1030, 0x10, 0x0c, 10, 0); /* CFA = r10 */
	FRAMES_FDE(&frames, 0x1040, 0x10, 0x0c, 3, 24); /* CFA = rbx + 24 */
	compile();
	expect_cfa(0x1000, MP_ROW_PLT, RSP, 8, 11);
	expect_cfa(0x1010, MP_ROW_DEREF, RBP, -8, 0);
	ck_assert_uint_eq(mp_rows_find(&rows, 0x1010)->rbp, MP_ROW_AT_RBP);
	expect_cfa(0x1020, MP_ROW_DEREF, RSP, 24, 8);
	ck_assert_int_eq(mp_rows_find(&rows, 0x1020)->rbp_off, -24);
	expect_cfa(0x1030, MP_ROW_REGISTER, R10, 0, 0);
	expect_cfa(0x1040, MP_ROW_REGISTER, RBX, 24, 0);
}

/* ---- code that changes to another stack ----------------------------------------------------- */

static const uint8_t *made_code;
static uint64_t made_size;

static const uint8_t *code_at(void *arg, uint64_t vaddr, uint64_t nr)
{
	(void)arg;
	return vaddr - 0x1000 <= made_size && nr <= made_size - (vaddr - 0x1000)
		       ? made_code + (vaddr - 0x1000)
		       : NULL;
}

/* Compiles one FDE of @code with @program, and opens its rows. */
static void compile_code(const uint8_t *code, size_t nr, const uint8_t *program, size_t program_nr)
{
	const struct mp_code_bytes at = {.bytes = code_at};
	struct mp_cursor cur;
	struct mp_err err;

	made_code = code;
	made_size = nr;
	frames_fde(&frames, 0x1000, (uint32_t)nr, program, program_nr);
	cur = frames_cursor(&frames);
	ck_assert_int_eq(mp_rows_compile(&cur, true, start, &at, &bytes, &size, &err), 0);
	ck_assert_int_eq(mp_rows_open("made", bytes, size, &rows, &err), 0);
}

static const struct {
	const char *name;
	uint8_t code[8], nr;
} changes[] = {
	{"mov 0xa0(%rdx), %rsp", {0x48, 0x8b, 0xa2, 0xa0, 0, 0, 0}, 7},
	{"mov (%rsi), %rsp", {0x48, 0x8b, 0x26}, 3},
	{"mov 8(%r9), %rsp", {0x49, 0x8b, 0x61, 8}, 4},
	{"mov 8(%rsp), %rsp", {0x48, 0x8b, 0x64, 0x24, 8}, 5},
	{"mov %rdi, %rsp", {0x48, 0x89, 0xfc}, 3},
	{"mov %r8, %rsp", {0x4c, 0x89, 0xc4}, 3},
	{"mov %rdi, %rsp, the other form", {0x48, 0x8b, 0xe7}, 3},
	{"lea -8(%r10), %rsp", {0x49, 0x8d, 0x62, 0xf8}, 4},
	{"xchg %rsp, (%rdi)", {0x48, 0x87, 0x27}, 3},
	{"xchg %rsp, %rbx", {0x48, 0x87, 0xe3}, 3},
};

TEST_EACH(rows_stop_behind_a_change_of_stacks_that_no_program_tells,
	  sizeof(changes) / sizeof(changes[0]))
{
	uint8_t code[0x20], nr = changes[_i].nr;

	memset(code, 0x90, sizeof(code));
	memcpy(code + 4, changes[_i].code, nr);
	/* rbx is saved behind the change: that says nothing about the stack pointer */
	compile_code(code, sizeof(code), (const uint8_t[]){0x54, 0x83, 2}, 3);
	expect_cfa(0x1000, MP_ROW_REGISTER, RSP, 8, 0);
	expect_cfa(0x1003u + nr, MP_ROW_REGISTER, RSP, 8, 0);
	expect_stop(0x1004u + nr, MP_ROW_STOP_STACK);
	expect_stop(0x101f, MP_ROW_STOP_STACK);
	expect_stop(0x1020, MP_ROW_STOP_NO_ROW);
	expect_entry(0x101f, 0x1000);
}

TEST_EACH(rows_go_on_where_the_program_tells_of_the_change, sizeof(changes) / sizeof(changes[0]))
{
	uint8_t code[0x20], nr = changes[_i].nr;
	const uint8_t program[] = {0x40 + 4 + nr, 0x0e, 48}; /* advance; CFA = rsp + 48 */

	memset(code, 0x90, sizeof(code));
	memcpy(code + 4, changes[_i].code, nr);
	compile_code(code, sizeof(code), program, sizeof(program));
	expect_cfa(0x1003u + nr, MP_ROW_REGISTER, RSP, 8, 0);
	expect_cfa(0x1004u + nr, MP_ROW_REGISTER, RSP, 48, 0);
	expect_cfa(0x101f, MP_ROW_REGISTER, RSP, 48, 0);
}

static const struct {
	const char *name;
	uint8_t code[16];
} others[] = {
	{"sub, lea by rsp, push, pop %r12",
	 {0x48, 0x83, 0xec, 8, 0x48, 0x8d, 0x64, 0x24, 8, 0x41, 0x54, 0x41, 0x5c, 0x90, 0x90}},
	{"r12 instead of rsp",
	 {0x4c, 0x8b, 0x26, 0x49, 0x89, 0xfc, 0x4c, 0x8d, 0x65, 8, 0x90, 0x90}},
	{"from rsp",
	 {0x48, 0x89, 0xe7, 0x48, 0x89, 0x27, 0x48, 0x8b, 0xfc, 0x49, 0x89, 0xe0, 0x90}},
	{"in an operand", {0x48, 0xb8, 0x48, 0x8b, 0x26, 0x48, 0x89, 0xfc, 0x90, 0x90, 0x90}},
};

TEST_EACH(rows_are_not_stopped_by_other_instructions, sizeof(others) / sizeof(others[0]))
{
	uint8_t code[0x20];

	memset(code, 0x90, sizeof(code));
	memcpy(code, others[_i].code, sizeof(others[_i].code));
	/* what is left of the 16 bytes */
	for (int i = 15; !code[i]; i--)
		code[i] = 0x90;
	compile_code(code, sizeof(code), (const uint8_t[]){0}, 1);
	expect_cfa(0x101f, MP_ROW_REGISTER, RSP, 8, 0);
}

TEST(rows_by_rbp_do_not_care_about_rsp)
{
	uint8_t code[0x20];

	memset(code, 0x90, sizeof(code));
	memcpy(code + 8, changes[1].code, changes[1].nr);
	/* CFA = rbp + 16 from 4 on, and by rsp again behind 16 */
	compile_code(code, sizeof(code), (const uint8_t[]){0x44, 0x0c, 6, 16, 0x4c, 0x0c, 7, 8}, 8);
	expect_cfa(0x100f, MP_ROW_REGISTER, RBP, 16, 0);
	expect_cfa(0x101f, MP_ROW_REGISTER, RSP, 8, 0);
	/* In code that cannot be decoded, it is not known where instructions begin. */
	free(bytes);
	memset(&frames, 0, sizeof(frames));
	frames_cie(&frames, false);
	code[0] = 0x06;
	compile_code(code, sizeof(code), (const uint8_t[]){0}, 1);
	expect_stop(0x101f, MP_ROW_STOP_STACK);
}

TEST(rows_of_signal_frames_and_of_the_bottom_are_marked)
{
	FRAMES_FDE(&frames, 0x1000, 0x10, 0x07, 16); /* rip is undefined */
	frames_cie(&frames, true);
	/* CFA = *(rsp + 160), rbp at rsp + 120, rip at rsp + 168 */
	FRAMES_FDE(&frames, 0x1010, 0x10, 0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0,
		   0x10, 16, 3, 0x77, 0xa8, 1);
	FRAMES_FDE(&frames, 0x1020, 0x10, 0);
	compile();
	expect_stop(0x1020, MP_ROW_STOP_PROGRAM); /* no CFA at all */
	ck_assert_uint_eq(mp_rows_find(&rows, 0x1000)->flags & ~MP_ROW_ENTRIES, MP_ROW_BOTTOM);
	expect_cfa(0x1010, MP_ROW_DEREF, RSP, 160, 0);
	ck_assert_uint_eq(mp_rows_find(&rows, 0x1010)->flags & ~MP_ROW_ENTRIES, MP_ROW_SIGNAL);
	ck_assert_uint_eq(mp_rows_find(&rows, 0x1010)->ra, MP_ROW_AT_RSP);
	ck_assert_int_eq(mp_rows_find(&rows, 0x1010)->ra_off, 168);
	ck_assert_int_eq(mp_rows_find(&rows, 0x1010)->rbp_off, 120);
}

TEST(rows_stop_where_nothing_sure_is_known)
{
	FRAMES_FDE(&frames, 0x1000, 0x10, 0x0f, 2, 0x31, 0x22);		       /* lit1 plus */
	FRAMES_FDE(&frames, 0x1010, 0x10, 0x09, 16, 0);			       /* rip in rax */
	FRAMES_FDE(&frames, 0x1020, 0x10, 0xd0);			       /* restore rip */
	FRAMES_FDE(&frames, 0x1030, 0x10, 0x0e, 0xff, 0xff, 0xff, 0xff, 0x7f); /* too large */
	FRAMES_FDE(&frames, 0x1040, 0x10, 0);
	FRAMES_FDE(&frames, 0x1040, 0x18, 0x0e, 16);
	FRAMES_FDE(&frames, 0x1060, 0x10, 0x16, 6, 2, 0x77, 0); /* rbp: a computed value */
	compile();
	expect_stop(0x1000, MP_ROW_STOP_EXPRESSION);
	expect_stop(0x1010, MP_ROW_STOP_RETURN);
	expect_stop(0x1020, MP_ROW_STOP_PROGRAM);
	expect_stop(0x1030, MP_ROW_STOP_RANGE);
	expect_stop(0x1040, MP_ROW_STOP_OVERLAP);
	expect_stop(0x1057, MP_ROW_STOP_OVERLAP);
	expect_stop(0x1058, MP_ROW_STOP_NO_ROW);
	expect_cfa(0x1060, MP_ROW_REGISTER, RSP, 8, 0);
	ck_assert_uint_eq(mp_rows_find(&rows, 0x1060)->rbp, MP_ROW_UNKNOWN);
}

TEST(rows_of_an_inner_fde_end_the_outer_one)
{
	FRAMES_FDE(&frames, 0x1000, 0x40, 0x60, 0x0e, 32);
	FRAMES_FDE(&frames, 0x1010, 0x10, 0x0e, 16);
	compile();
	expect_cfa(0x100f, MP_ROW_REGISTER, RSP, 8, 0);
	expect_cfa(0x1010, MP_ROW_REGISTER, RSP, 16, 0);
	expect_stop(0x1020, MP_ROW_STOP_NO_ROW);
}

static void expect_bottom(uint64_t vaddr)
{
	const struct mp_row_rule *rule = mp_rows_find(&rows, vaddr);

	ck_assert_msg(rule->flags == MP_ROW_BOTTOM, "0x%lx: flags %u, stop %u",
		      (unsigned long)vaddr, rule->flags, rule->stop);
}

/* The dynamic linker's first instructions have no FDE. */
TEST(rows_end_the_stack_at_a_start_without_fde)
{
	FRAMES_FDE(&frames, 0x1000, 0x10, 0);
	FRAMES_FDE(&frames, 0x1050, 0x10, 0);
	start = 0x1018;
	compile();
	expect_stop(0x1017, MP_ROW_STOP_NO_ROW);
	expect_bottom(0x1018);
	expect_bottom(0x104f);
	expect_cfa(0x1050, MP_ROW_REGISTER, RSP, 8, 0);
	expect_stop(0x1060, MP_ROW_STOP_NO_ROW);
}

/* What follows the start at some distance is other code. */
TEST(rows_believe_in_a_start_for_some_bytes_only)
{
	FRAMES_FDE(&frames, 0x1000, 0x10, 0);
	start = 0x1010;
	compile();
	expect_bottom(0x1010);
	expect_bottom(0x108f);
	expect_stop(0x1090, MP_ROW_STOP_NO_ROW);
}

TEST_EACH(rows_of_an_fde_hold_against_the_start, 2)
{
	FRAMES_FDE(&frames, 0x1000, 0x10, 0);
	start = _i ? 0x1008 : UINT64_MAX - 4;
	compile();
	expect_cfa(0x1008, MP_ROW_REGISTER, RSP, 8, 0);
	expect_stop(0x1010, MP_ROW_STOP_NO_ROW);
}

TEST(rows_without_any_fde_are_an_empty_table)
{
	compile();
	ck_assert_uint_eq(rows.nr_rows, 0);
	expect_stop(0x1000, MP_ROW_STOP_NO_ROW);
}

TEST(rows_refuse_a_damaged_section_and_code_beyond_reach)
{
	struct mp_cursor cur;
	struct mp_err err;

	FRAMES_FDE(&frames, 0x1000, 0x10, 0);
	cur = frames_cursor(&frames);
	cur.end -= 4;
	ck_assert_int_eq(mp_rows_compile(&cur, true, start, NULL, &bytes, &size, &err), -EBADMSG);
	ck_assert_ptr_null(bytes);
	/* The start is 32 bits relative, so the section itself must lie high. */
	cur = frames_cursor(&frames);
	cur.vaddr = UINT64_C(1) << 48;
	ck_assert_int_eq(mp_rows_compile(&cur, true, start, NULL, &bytes, &size, &err), -EFBIG);
}

/* ---- the reader ----------------------------------------------------------------------------- */

static int reopen(void)
{
	return mp_rows_open("made", bytes, size, &rows, NULL);
}

/* Sets the @width bytes at @off, expects a refusal, and sets them back. */
static void expect_refusal(size_t off, uint64_t value, size_t width)
{
	uint64_t was = 0;

	memcpy(&was, (uint8_t *)bytes + off, width);
	memcpy((uint8_t *)bytes + off, &value, width);
	ck_assert_msg(reopen() == -EBADMSG, "%llx at %zu is accepted", (unsigned long long)value,
		      off);
	memcpy((uint8_t *)bytes + off, &was, width);
	ck_assert_int_eq(reopen(), 0);
}

TEST(rows_reader_refuses_what_the_compiler_does_not_write)
{
	size_t rule = sizeof(struct mp_rows_head) + MP_NR_ROW_STOP * sizeof(struct mp_row_rule);
	size_t row, pages;

	FRAMES_FDE(&frames, 0x1000, 0x10, 0x42, 0x0e, 16);
	compile();
	pages = (size_t)((const uint8_t *)rows.pages - (const uint8_t *)bytes);
	row = (size_t)((const uint8_t *)rows.rows - (const uint8_t *)bytes);
	ck_assert_uint_eq(rows.nr_rows, 3);
	expect_refusal(0, 0, 4);		     /* another magic */
	expect_refusal(4, MP_ROWS_RULES_MAX + 1, 4); /* sizes */
	expect_refusal(8, UINT32_MAX, 4);
	expect_refusal(12, MP_ROWS_PAGES_MAX + 1, 4);
	expect_refusal(16, 1, 8); /* base */
	expect_refusal(16, MP_ROWS_BASE_END, 8);
	expect_refusal(rule, MP_NR_ROW_CFA, 1); /* kinds */
	expect_refusal(rule + 1, 16, 1);
	expect_refusal(rule + 2, MP_NR_ROW_SAVED, 1);
	expect_refusal(rule + 3, MP_ROW_SAME, 1);
	expect_refusal(rule + 3, MP_ROW_UNKNOWN, 1);
	expect_refusal(rule + 20, 16, 2); /* flags */
	expect_refusal(rule + 22, MP_ROW_STOP_NO_ROW, 2);
	expect_refusal(pages, 1, 4); /* first rows of pages */
	expect_refusal(pages + 4, 2, 4);
	expect_refusal(row + 4, 0x1000, 2);		     /* not ascending */
	expect_refusal(row + 2, rows.nr_rules, 2);	     /* no such rule */
	expect_refusal(row + 10, MP_ROW_STOP_EXPRESSION, 2); /* the end */
	expect_refusal(size - 1, 1, 1);			     /* padding */
	ck_assert_int_eq(mp_rows_open("made", bytes, size - 8, &rows, NULL), -EBADMSG);
	ck_assert_int_eq(mp_rows_open("made", bytes, 8, &rows, NULL), -EBADMSG);
}

/* ---- real files ----------------------------------------------------------------------------- */

static const char *const files[] = {
	"/proc/self/exe",
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib64/ld-linux-x86-64.so.2",
	"/usr/bin/perl",
	"/usr/bin/bash",
	"/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
};

TEST_EACH(rows_of_real_files_are_what_libdw_reads, sizeof(files) / sizeof(files[0]))
{
	struct rows_comparison c;
	struct mp_elf *elf;
	struct mp_err err;

	if (access(files[_i], R_OK))
		MORPH_SKIP("%s is not there", files[_i]);
	ck_assert_msg(!mp_elf_open(files[_i], MP_ELF_FDES, &elf, &err), "%s", err.msg);
	ck_assert_msg(!rows_of_elf(elf, &bytes, &size, &rows, &err), "%s", err.msg);
	ck_assert_int_eq(rows_compare(elf, &rows, &c), 0);
	ck_assert_msg(!c.nr_differ, "%s", c.first);
	ck_assert_uint_gt(c.nr_ranges, 100);
	ck_assert_uint_lt(c.nr_stopped * 1000, c.nr_ranges);
	mp_elf_close(elf);
}

TEST(rows_comparison_sees_one_wrong_rule)
{
	struct rows_comparison c;
	struct mp_row_rule *rule;
	struct mp_elf *elf;

	ck_assert_int_eq(mp_elf_open("/proc/self/exe", MP_ELF_FDES, &elf, NULL), 0);
	ck_assert_int_eq(rows_of_elf(elf, &bytes, &size, &rows, NULL), 0);
	rule = (struct mp_row_rule *)rows.rules;
	while (rule->rbp != MP_ROW_AT_CFA || rule->cfa_reg != RSP)
		ck_assert(++rule < rows.rules + rows.nr_rules);
	rule->rbp_off += 8;
	ck_assert_int_eq(rows_compare(elf, &rows, &c), 0);
	ck_assert_uint_gt(c.nr_differ, 0);
	rule->rbp_off -= 8;
	rule->cfa_off += 8;
	ck_assert_int_eq(rows_compare(elf, &rows, &c), 0);
	ck_assert_uint_gt(c.nr_differ, 0);
	mp_elf_close(elf);
}
