// SPDX-License-Identifier: Apache-2.0
/*
 * test_stats_rows - counts of this test program's code by function, block and address, and
 * which files are accepted for a module.
 */

#include "daemon/code/stats_rows.h"
#include "tests/unit/suite.h"

/* Has at least two blocks with any compiler. */
__attribute__((noinline, used)) static int victim(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i % 3 ? i : -i;
	return sum;
}

static char self[4096];
static struct mp_module module = {.key = 1, .kind = MP_MODULE_FILE, .path = self};
static struct md_code code;
static struct md_rows rows;
static const struct mp_func *func; /* victim() */

static void setup(void)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct mp_elf *elf;

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	ck_assert_int_eq(mp_elf_open(self, MP_ELF_ID, &elf, &err), 0);
	module.id = elf->id;
	mp_elf_close(elf);
	ck_assert_msg(md_code_open(&module, NULL, true, &code, &err) == 0, "%s", err.msg);
	func = NULL;
	for (uint32_t f = 0; f < code.cfg->nr_funcs; f++)
		if (!strcmp(code.cfg->funcs[f].name, "victim"))
			func = &code.cfg->funcs[f];
	ck_assert_ptr_nonnull(func);
	ck_assert_uint_gt(func->nr_blocks, 1);
	ck_assert_int_eq(victim(3), 3);
}

static void teardown(void)
{
	md_rows_free(&rows);
	md_code_close(&code);
}

FIXTURE(setup, teardown);

TEST(code_is_refused_where_the_file_is_another_one)
{
	struct mp_module other = module;
	struct md_code none;

	other.id.text_hash++;
	ck_assert_int_eq(md_code_open(&other, NULL, true, &none, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.msg, "not the file that was profiled"));
	other = module;
	other.path = (char *)"/no/such/file";
	ck_assert_int_eq(md_code_open(&other, NULL, true, &none, &err), -ENOENT);
	/* The path does not matter if the file's identity is right. */
	ck_assert_int_eq(md_code_open(&other, self, false, &none, &err), 0);
	md_code_close(&none);
	other.kind = MP_MODULE_KERNEL;
	ck_assert_int_eq(md_code_open(&other, self, false, &none, &err), -ENOENT);
}

TEST(rows_of_functions_add_up_what_each_holds)
{
	uint64_t last = func->vaddr + code.cfg->ranges[func->first_range].size - 1;
	struct mp_ip_count counts[] = {{1, 4}, {func->vaddr, 3}, {last, 2}};

	ck_assert_int_eq(md_rows_of_functions(&rows, &module, &code, NULL, counts, 3), 0);
	ck_assert_uint_eq(rows.nr, 2);
	md_rows_sort(&rows, MD_SORT_SAMPLES);
	ck_assert_str_eq(rows.rows[0].function, "victim");
	ck_assert_uint_eq(rows.rows[0].samples, 5);
	ck_assert_uint_eq(rows.rows[0].vaddr, func->vaddr);
	/* Samples outside of all functions form one row, with the first such address. */
	ck_assert_ptr_null(rows.rows[1].function);
	ck_assert_uint_eq(rows.rows[1].samples, 4);
	ck_assert_uint_eq(rows.rows[1].vaddr, 1);
}

TEST(rows_of_blocks_are_scaled_by_length)
{
	const struct mp_block *a = &code.cfg->blocks[func->first_block], *b = a + 1;
	struct mp_ip_count counts[] = {{1, 7}, {a->vaddr, 6}, {b->vaddr, 12}};
	char address[32];

	ck_assert_int_eq(md_rows_of_blocks(&rows, &module, &code, "victim", counts, 3), 0);
	ck_assert_uint_eq(rows.nr, 2);
	md_rows_sort(&rows, MD_SORT_ADDRESS);
	ck_assert_uint_eq(rows.rows[0].offset, 0);
	ck_assert_uint_eq(rows.rows[1].offset, b->vaddr - func->vaddr);
	ck_assert_uint_eq(rows.rows[1].nr_insns, b->nr_insns);
	ck_assert(rows.rows[0].weight == 6.0 / a->nr_insns);
	ck_assert(rows.rows[1].weight == 12.0 / b->nr_insns);
	md_rows_free(&rows);
	/* By any address in it, and by none. */
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)b->vaddr);
	ck_assert_int_eq(md_rows_of_blocks(&rows, &module, &code, address, counts, 3), 0);
	ck_assert_uint_eq(rows.nr, 2);
	md_rows_free(&rows);
	ck_assert_int_eq(md_rows_of_blocks(&rows, &module, &code, NULL, counts, 3), 0);
	ck_assert_uint_eq(rows.nr, 3);
	md_rows_free(&rows);
	ck_assert_int_eq(md_rows_of_blocks(&rows, &module, &code, "nosuch", counts, 3), 0);
	ck_assert_uint_eq(rows.nr, 0);
}

TEST(rows_sort_by_each_key)
{
	const struct {
		enum md_sort by;
		const char *first;
	} cases[] = {
		{MD_SORT_SAMPLES, "b"},
		{MD_SORT_WEIGHT, "c"},
		{MD_SORT_NAME, "a"},
		{MD_SORT_ADDRESS, "d"},
	};
	struct md_row in[] = {
		{.module = &module, .vaddr = 4, .samples = 1, .weight = 1},
		{.module = &module, .vaddr = 3, .samples = 9, .weight = 2},
		{.module = &module, .vaddr = 2, .samples = 5, .weight = 3},
		{.module = &module, .vaddr = 1, .samples = 2, .weight = 2},
	};

	for (int i = 0; i < 4; i++) {
		in[i].function = strdup((char[]){(char)('a' + i), '\0'});
		ck_assert_int_eq(md_rows_add(&rows, &in[i]), 0);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		md_rows_sort(&rows, cases[i].by);
		ck_assert_str_eq(rows.rows[0].function, cases[i].first);
	}
}

TEST(fdata_range_is_that_of_the_address)
{
	uint32_t range = md_code_range_at(&code, func->vaddr + 1);

	ck_assert_uint_eq(range, func->first_range);
	ck_assert_uint_eq(md_code_range_at(&code, 1), MP_NONE);
}
