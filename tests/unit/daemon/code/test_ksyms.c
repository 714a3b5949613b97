// SPDX-License-Identifier: Apache-2.0
/*
 * test_ksyms - kernel functions by address: which symbols are text, and addresses outside of
 * all functions.
 */

#include "daemon/code/ksyms.h"
#include "daemon/code/stats_rows.h"
#include "tests/unit/suite.h"

/* Shifted by address randomisation; unsorted; one address has two names. */
static char text[] = "0000000000000000 A fixed_percpu_data\n"
		     "ffffffffa1000000 T startup_64\n"
		     "ffffffffa1000000 T _stext\n"
		     "ffffffffa1000000 T _text\n"
		     "ffffffffa1000400 T do_work\n"
		     "ffffffffa1000100 t helper\n"
		     "ffffffffa1000400 t __do_work\n"
		     "ffffffffa1000800 D some_data\n"
		     "ffffffffa1001000 T _etext\n"
		     "ffffffffa1002000 T behind_text\n"
		     "ffffffffc0000000 t of_a_module\t[module]\n";
static char hidden[] = "0000000000000000 T _stext\n0000000000000000 T _text\n";

static struct md_ksyms ksyms;

static int read_text(char *from)
{
	FILE *file = fmemopen(from, strlen(from), "r");
	int r;

	ck_assert_ptr_nonnull(file);
	r = md_ksyms_read(file, 0x1000, &ksyms);
	fclose(file);
	return r;
}

static const char *name(uint64_t vaddr)
{
	const struct md_ksym *sym = md_ksyms_at(&ksyms, vaddr);

	return sym ? sym->name : "-";
}

static void tidy(void)
{
	md_ksyms_fini(&ksyms);
}

FIXTURE(NULL, tidy);

TEST(ksyms_are_at_distances_from_text)
{
	ck_assert_int_eq(read_text(text), 0);
	ck_assert_uint_eq(ksyms.nr, 3);
	ck_assert_str_eq(name(UINT64_C(0xffffffff81000000)), "startup_64");
	ck_assert_str_eq(name(UINT64_C(0xffffffff81000100)), "helper");
	ck_assert_str_eq(name(UINT64_C(0xffffffff810003ff)), "helper");
	ck_assert_str_eq(name(UINT64_C(0xffffffff81000fff)), "__do_work");
	ck_assert_str_eq(name(UINT64_C(0xffffffff81001000)), "-");
	ck_assert_str_eq(name(UINT64_C(0xffffffff80ffffff)), "-");
}

TEST(ksyms_that_are_hidden_are_none)
{
	ck_assert_int_eq(read_text(hidden), -EACCES);
	ck_assert_uint_eq(ksyms.nr, 0);
}

TEST(ksyms_make_rows_that_hold_every_sample)
{
	static const struct mp_ip_count counts[] = {
		{.vaddr = UINT64_C(0xffffffff81000100), .count = 5},
		{.vaddr = UINT64_C(0xffffffff81000104), .count = 7},
		{.vaddr = UINT64_C(0xffffffff81000400), .count = 11},
		{.vaddr = UINT64_C(0xffffffff81400000), .count = 2},
		{.vaddr = UINT64_C(0xffffffff81500000), .count = 1},
	};
	static const struct mp_module module = {.path = (char *)"[kernel]"};
	struct md_rows rows = {0};

	ck_assert_int_eq(read_text(text), 0);
	ck_assert_int_eq(md_rows_of_kernel(&rows, &module, &ksyms, false, NULL, counts, 5), 0);
	ck_assert_uint_eq(rows.nr, 3);
	ck_assert_str_eq(rows.rows[0].function, "helper");
	ck_assert_uint_eq(rows.rows[0].samples, 12);
	ck_assert_uint_eq(rows.rows[0].size, 0x300);
	ck_assert_str_eq(rows.rows[1].function, "__do_work");
	ck_assert_ptr_null(rows.rows[2].function);
	ck_assert_uint_eq(rows.rows[2].samples, 3);
	md_rows_free(&rows);
	ck_assert_int_eq(md_rows_of_kernel(&rows, &module, &ksyms, true, "helper", counts, 5), 0);
	ck_assert_uint_eq(rows.nr, 2);
	ck_assert_uint_eq(rows.rows[1].offset, 4);
	ck_assert_uint_eq(rows.rows[1].samples, 7);
	md_rows_free(&rows);
}

TEST(ksyms_of_another_kernel_are_refused)
{
	struct mp_module other = {.kind = MP_MODULE_KERNEL, .path = (char *)"[kernel]"};

	other.id.build_id_len = 20;
	ck_assert_int_eq(md_ksyms_open(&other, &ksyms), -ENOENT);
	other.kind = MP_MODULE_FILE;
	ck_assert_int_eq(md_ksyms_open(&other, &ksyms), -ENOENT);
}
