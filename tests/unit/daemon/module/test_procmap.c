// SPDX-License-Identifier: Apache-2.0
/* test_procmap - address spaces: mappings through exec, fork, remapping and exit. */
#include "tests/unit/suite.h"

#include "daemon/module/procmap.h"

static struct md_procmap *pm;

static void setup(void)
{
	pm = md_procmap_new();
	ck_assert_ptr_nonnull(pm);
}

static void teardown(void)
{
	md_procmap_free(pm);
}

static void map(uint32_t tgid, uint32_t exec_id, uint64_t start, uint64_t end, uint32_t module)
{
	struct md_mapping m = {start, end, -start, module, MD_MAPPED};

	ck_assert_int_eq(md_procmap_map(pm, tgid, exec_id, &m, 1), 0);
}

/* Return: the module at @ip; 0: none; -1: no such process. */
static int64_t at(uint32_t tgid, uint32_t exec_id, uint64_t ip)
{
	struct md_space *space = md_procmap_find(pm, tgid, exec_id);
	const struct md_mapping *m;

	if (!space)
		return -1;
	m = md_space_find(space, ip);
	return m ? m->module : 0;
}

FIXTURE(setup, teardown);

TEST(mapping_holds_its_first_and_last_byte_only)
{
	md_procmap_exec(pm, 1, 0, 1);
	map(1, 0, 0x1000, 0x3000, 5);
	ck_assert_int_eq(at(1, 0, 0xfff), 0);
	ck_assert_int_eq(at(1, 0, 0x1000), 5);
	ck_assert_int_eq(at(1, 0, 0x2fff), 5);
	ck_assert_int_eq(at(1, 0, 0x3000), 0);
	ck_assert_int_eq(at(2, 0, 0x1000), -1);
}

/* Compares with a model that has one entry per page. */
TEST(overlays_agree_with_a_page_by_page_model)
{
	uint32_t model[64] = {0}, seed = 12345, i, k, first, nr, module;

	md_procmap_exec(pm, 1, 0, 1);
	for (i = 0; i < 5000; i++) {
		seed = seed * 1103515245 + 12345;
		first = (seed >> 8) % 60;
		nr = 1 + (seed >> 16) % (64 - first < 12 ? 64 - first : 12);
		module = (seed >> 24) % 5;
		if (module)
			map(1, 0, first * 0x1000, (first + nr) * 0x1000, module);
		else
			md_procmap_unmap(pm, 1, 0, first * 0x1000, (first + nr) * 0x1000);
		for (k = first; k < first + nr; k++)
			model[k] = module;
		for (k = 0; k < 64; k++) {
			ck_assert_int_eq(at(1, 0, k * 0x1000), model[k]);
			ck_assert_int_eq(at(1, 0, k * 0x1000 + 0xfff), model[k]);
		}
	}
}

TEST(split_mapping_keeps_its_bias)
{
	const struct md_mapping *m;

	md_procmap_exec(pm, 1, 0, 1);
	map(1, 0, 0x10000, 0x20000, 1);
	map(1, 0, 0x14000, 0x15000, 2);
	m = md_space_find(md_procmap_find(pm, 1, 0), 0x18010);
	ck_assert_uint_eq(m->module, 1);
	ck_assert_uint_eq(0x18010 + m->bias, 0x8010);
}

TEST(exec_forgets_the_old_program)
{
	md_procmap_exec(pm, 1, 0, 1);
	map(1, 0, 0x1000, 0x2000, 1);
	md_procmap_exec(pm, 1, 0, 1);
	ck_assert_int_eq(at(1, 0, 0x1000), 0);
}

/* A producer in the kernel sees the program's mapping before its exec. */
TEST(numbered_mappings_may_come_before_their_exec)
{
	md_procmap_exec(pm, 1, 3, 1);
	map(1, 3, 0x1000, 0x2000, 1);
	map(1, 4, 0x5000, 0x6000, 2); /* the program */
	md_procmap_exec(pm, 1, 4, 1);
	map(1, 4, 0x8000, 0x9000, 3); /* libc */
	ck_assert_int_eq(at(1, 4, 0x5000), 2);
	ck_assert_int_eq(at(1, 4, 0x8000), 3);
	ck_assert_int_eq(at(1, 4, 0x1000), 0);
	/* A late sample of the old program finds nothing, instead of the new one's mapping. */
	ck_assert_int_eq(at(1, 3, 0x5000), -1);
}

/* /proc showed the new program before its exec arrived. */
TEST(exec_with_a_known_number_keeps_its_mappings)
{
	md_procmap_exec(pm, 1, 4, 3);
	map(1, 4, 0x5000, 0x6000, 2);
	md_procmap_exec(pm, 1, 4, 1);
	ck_assert_int_eq(at(1, 4, 0x5000), 2);
	md_procmap_exec(pm, 1, 5, 1);
	ck_assert_int_eq(at(1, 5, 0x5000), 0);
	ck_assert_int_eq(at(1, 4, 0x5000), -1);
}

TEST(fork_copies_and_then_goes_its_own_way)
{
	md_procmap_exec(pm, 1, 0, 1);
	map(1, 0, 0x1000, 0x2000, 1);
	md_procmap_fork(pm, 2, 1);
	ck_assert_int_eq(at(2, 0, 0x1000), 1);
	map(1, 0, 0x1000, 0x2000, 7);
	map(2, 0, 0x3000, 0x4000, 8);
	ck_assert_int_eq(at(1, 0, 0x1000), 7);
	ck_assert_int_eq(at(2, 0, 0x1000), 1);
	ck_assert_int_eq(at(2, 0, 0x3000), 8);
	ck_assert_int_eq(at(1, 0, 0x3000), 0);
}

TEST(fork_of_an_unknown_process_leaves_no_leftover)
{
	md_procmap_exec(pm, 2, 0, 1);
	map(2, 0, 0x1000, 0x2000, 1);
	md_procmap_fork(pm, 2, 99);
	ck_assert_int_eq(at(2, 0, 0x1000), -1);
}

TEST(process_ends_with_its_last_thread_and_lingers)
{
	uint32_t i;

	md_procmap_exec(pm, 1, 0, 1);
	map(1, 0, 0x1000, 0x2000, 1);
	md_procmap_add_thread(pm, 1);
	md_procmap_exit(pm, 1); /* the main thread may exit first */
	for (i = 0; i < 1000; i++) {
		md_procmap_exec(pm, 1000 + i, 0, 1);
		md_procmap_exit(pm, 1000 + i);
	}
	ck_assert_int_eq(at(1, 0, 0x1000), 1);
	md_procmap_exit(pm, 1);
	ck_assert_int_eq(at(1, 0, 0x1000), 1); /* kept for late samples */
	for (i = 0; i < 1000; i++) {
		md_procmap_exec(pm, 1000 + i, 0, 1);
		md_procmap_exit(pm, 1000 + i);
	}
	ck_assert_int_eq(at(1, 0, 0x1000), -1);
	ck_assert_uint_le(md_procmap_nr_spaces(pm), 256);
}

TEST(reused_process_id_is_not_discarded_with_the_old_process)
{
	uint32_t i;

	md_procmap_exec(pm, 1, 0, 1);
	md_procmap_exit(pm, 1);
	md_procmap_exec(pm, 50, 0, 1);
	md_procmap_fork(pm, 1, 50);
	map(1, 0, 0x1000, 0x2000, 3);
	for (i = 0; i < 1000; i++) {
		md_procmap_exec(pm, 1000 + i, 0, 1);
		md_procmap_exit(pm, 1000 + i);
	}
	ck_assert_int_eq(at(1, 0, 0x1000), 3);
}

TEST(number_of_processes_is_bounded)
{
	uint32_t i;

	for (i = 1; i <= 100000; i++)
		md_procmap_exec(pm, i, 0, 1);
	ck_assert_uint_le(md_procmap_nr_spaces(pm), 16384);
	ck_assert_int_eq(at(100000, 0, 0), 0); /* the newest are kept */
	ck_assert_int_eq(at(1, 0, 0), -1);
}

TEST(page_after_page_of_a_jit_is_one_mapping)
{
	struct md_mapping m = {.why = MP_UNATTR_ANONYMOUS};
	uint64_t page;

	md_procmap_exec(pm, 1, 0, 1);
	/* More pages than an address space may have mappings. */
	for (page = 0; page < 100000; page++) {
		m.start = page * 4096;
		m.end = m.start + 4096;
		ck_assert_int_eq(md_procmap_map(pm, 1, 0, &m, 1), 0);
	}
	ck_assert_uint_eq(md_space_find(md_procmap_find(pm, 1, 0), 0)->end, 100000 * 4096);
}

static void count_module(void *arg, uint32_t module)
{
	((int *)arg)[module]++;
}

TEST(forgetting_leaves_nothing)
{
	int seen[8] = {0};

	md_procmap_exec(pm, 1, 0, 1);
	map(1, 0, 0x1000, 0x2000, 1);
	md_procmap_fork(pm, 2, 1);
	md_procmap_each_module(pm, count_module, seen);
	ck_assert_int_eq(seen[1], 2);
	md_procmap_forget(pm);
	ck_assert_int_eq(at(1, 0, 0x1000), -1);
	ck_assert_uint_eq(md_procmap_nr_spaces(pm), 0);
}
