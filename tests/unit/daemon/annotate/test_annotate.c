// SPDX-License-Identifier: Apache-2.0
/*
 * test_annotate - annotates this test program's own code with given counts: which instruction a
 * sample belongs to, sums, hot marks, names, source lines, and the map of an optimised file.
 */

#include "daemon/annotate/annotate.h"
#include "daemon/annotate/annotate_find.h"
#include "tests/unit/suite.h"

__attribute__((noinline, used)) static int annotated_victim(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i % 3 ? i : -i;
	return sum;
}

static char self[4096];
static struct md_code code;
static struct md_names names;
static struct md_debuginfo *debug;
static struct md_annotation a;
static uint64_t victim; /* its link-time address */

static void setup(void)
{
	struct mp_module module = {.kind = MP_MODULE_FILE, .path = self};
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct mp_elf *elf;

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	ck_assert_int_eq(mp_elf_open(self, MP_ELF_ID, &elf, &err), 0);
	module.id = elf->id;
	mp_elf_close(elf);
	ck_assert_msg(md_code_open(&module, NULL, true, &code, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(md_debuginfo_open(self, &debug, &err), 0);
	ck_assert_int_eq(md_names_build(code.elf, debug, &names), 0);
	victim = 0;
	for (size_t i = 0; i < names.nr; i++)
		if (!strcmp(names.names[i].name, "annotated_victim"))
			victim = names.names[i].vaddr;
	ck_assert_uint_ne(victim, 0);
	ck_assert_int_eq(annotated_victim(3), 3);
}

static void teardown(void)
{
	md_annotation_fini(&a);
	md_names_fini(&names);
	md_debuginfo_close(debug);
	md_code_close(&code);
	debug = NULL;
}

static void annotate(const struct mp_ip_count *counts, size_t nr, const struct mp_map *map)
{
	struct md_ann_request request = {.code = &code,
					 .vaddr = victim,
					 .names = &names,
					 .debug = debug,
					 .map = map,
					 .counts = counts,
					 .nr_counts = nr};

	md_annotation_fini(&a);
	ck_assert_msg(md_annotate(&request, &a, &err) == 0, "%s", err.msg);
}

TEST(counts_are_summed_over_half_open_ranges)
{
	const struct mp_ip_count counts[] = {{10, 1}, {12, 2}, {20, 4}, {UINT64_MAX, 8}};

	ck_assert_uint_eq(md_sample_table_at(counts, 4, 12), 2);
	ck_assert_uint_eq(md_sample_table_at(counts, 4, 11), 0);
	ck_assert_uint_eq(md_sample_table_in(counts, 4, 10, 10), 3);
	ck_assert_uint_eq(md_sample_table_in(counts, 4, 10, 11), 7);
	ck_assert_uint_eq(md_sample_table_in(counts, 4, 11, 0), 0);
	ck_assert_uint_eq(md_sample_table_in(counts, 4, UINT64_MAX, 1), 8);
	ck_assert_uint_eq(md_sample_table_in(NULL, 0, 0, 100), 0);
}

TEST(counts_through_a_map_are_the_originals)
{
	struct mp_map_piece pieces[] = {
		{.new_vaddr = 100, .new_size = 10, .old_vaddr = 10, .old_size = 8},
		{.new_vaddr = 120, .new_size = 5, .old_vaddr = 50, .old_size = 0},
	};
	struct mp_map map = {.pieces = pieces, .nr_pieces = 2};
	const struct mp_ip_count counts[] = {{10, 1}, {17, 2}, {18, 4}, {50, 8}, {115, 16}};

	ck_assert_ptr_eq(md_map_piece(&map, 109), &pieces[0]);
	ck_assert_ptr_null(md_map_piece(&map, 110));
	ck_assert_ptr_null(md_map_piece(&map, 99));
	/* A piece, the gap behind it, and added code, which has no samples. */
	ck_assert_uint_eq(md_sample_table_mapped(&map, counts, 5, 100, 25), 1 + 2 + 16);
}

FIXTURE(setup, teardown);

TEST(annotation_covers_the_function_without_gaps)
{
	uint64_t at = victim;

	annotate(NULL, 0, NULL);
	ck_assert_str_eq(a.name, "annotated_victim");
	ck_assert_uint_gt(a.nr_insns, 4);
	for (size_t i = 0; i < a.nr_insns; i++) {
		ck_assert_uint_eq(a.insns[i].vaddr, at);
		ck_assert_str_ne(a.insns[i].text, "(bad)");
		ck_assert_uint_lt(a.insns[i].block, a.nr_blocks);
		ck_assert(!a.insns[i].hot);
		at += a.insns[i].len;
	}
	ck_assert_uint_eq(at, victim + a.func->size);
	ck_assert_uint_eq(a.samples, 0);
	ck_assert(!a.counted);
	for (uint32_t i = 0; i < a.nr_blocks; i++)
		ck_assert_uint_eq(a.blocks[i].nr_insns, a.blocks[i].block->nr_insns);
}

TEST(annotation_gives_samples_to_their_instructions)
{
	struct mp_ip_count counts[4];
	uint64_t sum = 0;

	annotate(NULL, 0, NULL);
	/* Counts in another function, inside an instruction, and at the last instruction. */
	counts[0] = (struct mp_ip_count){victim - 1, 1000};
	counts[1] = (struct mp_ip_count){victim, 3};
	counts[2] = (struct mp_ip_count){a.insns[2].vaddr + a.insns[2].len - 1, 50};
	counts[3] = (struct mp_ip_count){a.insns[a.nr_insns - 1].vaddr, 7};
	annotate(counts, 4, NULL);
	ck_assert_uint_eq(a.samples, 60);
	ck_assert_uint_eq(a.insns[0].samples, 3);
	ck_assert_uint_eq(a.insns[2].samples, 50);
	ck_assert_uint_eq(a.insns[a.nr_insns - 1].samples, 7);
	ck_assert(a.insns[2].hot);
	ck_assert(!a.insns[0].hot);
	ck_assert(a.insns[a.nr_insns - 1].hot);
	ck_assert(a.counted);
	for (uint32_t i = 0; i < a.nr_blocks; i++) {
		sum += a.blocks[i].samples;
		ck_assert_double_ge(a.blocks[i].count, 0);
		ck_assert_double_le(a.blocks[i].taken, 1);
	}
	ck_assert_uint_eq(sum, 60);
}

TEST(annotation_knows_this_file_and_its_lines)
{
	size_t nr = 0;

	if (!md_debuginfo_has_lines(debug))
		MORPH_SKIP("built without -g");
	annotate(NULL, 0, NULL);
	ck_assert(a.has_lines);
	for (size_t i = 0; i < a.nr_insns; i++) {
		if (!a.insns[i].line.file)
			continue;
		nr++;
		ck_assert_ptr_nonnull(strstr(a.insns[i].line.file, "test_annotate.c"));
		ck_assert_int_lt(a.insns[i].line.line, 40);
	}
	ck_assert_uint_gt(nr, 0);
}

TEST(annotation_of_copies_counts_each_sample_once)
{
	struct mp_ip_count counts[1] = {{0x10, 9}};
	struct mp_map_piece pieces[2];
	struct mp_map map = {.pieces = pieces, .nr_pieces = 2};

	/* The first two instructions are two copies of one original at 0x10. */
	annotate(NULL, 0, NULL);
	for (int i = 0; i < 2; i++)
		pieces[i] = (struct mp_map_piece){.new_vaddr = a.insns[i].vaddr,
						  .new_size = a.insns[i].len,
						  .old_vaddr = 0x10,
						  .old_size = a.insns[i].len};
	annotate(counts, 1, &map);
	ck_assert_uint_eq(a.insns[0].samples, 9);
	ck_assert_uint_eq(a.insns[1].samples, 9);
	ck_assert_uint_eq(a.insns[1].original, 0x10);
	ck_assert_uint_eq(a.samples, 9);
	ck_assert(!a.counted);
	/* An instruction that was added to a copy has no original. */
	pieces[0].old_size = 0;
	annotate(counts, 1, &map);
	ck_assert(a.insns[0].added);
	ck_assert_uint_eq(a.insns[0].samples, 0);
}

static void parses_as(const char *text, const char *address, int want, const char *name,
		      uint64_t vaddr)
{
	struct md_ann_function w;

	ck_assert_int_eq(md_ann_function_parse(text, address, &w), want);
	if (want)
		return;
	ck_assert_int_eq(w.name != NULL, name != NULL);
	if (name)
		ck_assert_str_eq(w.name, name);
	ck_assert_int_eq(w.has_vaddr, vaddr != 0);
	ck_assert_uint_eq(w.vaddr, vaddr);
	free(w.name);
}

FIXTURE(NULL, NULL);

TEST(wish_is_a_name_an_address_or_both)
{
	parses_as("main", NULL, 0, "main", 0);
	parses_as("0x1234", NULL, 0, NULL, 0x1234);
	parses_as("main@0x1234", NULL, 0, "main", 0x1234);
	parses_as("func@0x1234", NULL, 0, NULL, 0x1234);
	parses_as("main", "0x1234", 0, "main", 0x1234);
	parses_as(NULL, "0x1234", 0, NULL, 0x1234);
	parses_as("printf@@GLIBC_2.2.5", NULL, 0, "printf@@GLIBC_2.2.5", 0);
	parses_as("0xg", NULL, 0, "0xg", 0);
	parses_as("main@0xg", NULL, -EINVAL, NULL, 0);
	parses_as("main", "1234", -EINVAL, NULL, 0);
	parses_as("0x1", "0x2", -EINVAL, NULL, 0);
	parses_as("", NULL, -EINVAL, NULL, 0);
	parses_as("0x11112222333344445", NULL, 0, "0x11112222333344445", 0);
}

FIXTURE(setup, teardown);

TEST(find_names_each_function_once)
{
	struct mp_ip_count counts[1] = {{victim, 5}};
	struct md_ann_source source = {.path = self, .counts = counts, .nr_counts = 1};
	struct md_ann_candidates found = {0};
	struct md_ann_function w = {.name = "annotated_victim"};

	ck_assert_int_eq(md_ann_find(&source, 3, &w, &found, &err), 0);
	md_ann_candidates_sort(&found);
	ck_assert_uint_eq(found.nr, 1);
	ck_assert_uint_eq(found.all[0].vaddr, victim);
	ck_assert_uint_eq(found.all[0].samples, 5);
	ck_assert_uint_eq(found.all[0].source, 3);
	md_ann_candidates_fini(&found);
	/* The name exists, but not at this address. */
	w.has_vaddr = true;
	w.vaddr = victim - 1;
	ck_assert_int_eq(md_ann_find(&source, 0, &w, &found, &err), 0);
	ck_assert_uint_eq(found.nr, 0);
	md_ann_candidates_fini(&found);
}
