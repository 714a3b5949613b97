// SPDX-License-Identifier: Apache-2.0
/*
 * test_rows_give - the rows of this process's own files go to a source that walks stacks itself:
 * sound, by the identity of the mapping, and each file once for each source.
 */
#include "daemon/attribute/rows_give.h"

#include "daemon/attribute/stack_walk.h"
#include "daemon/module/modcache_private.h"
#include "daemon/source/row_slabs.h"
#include "libprof/unwind/rows_laid.h"
#include "tests/support/kmod_walk.h"
#include "tests/support/process/own_files.h"
#include "tests/support/rows_compare.h"
#include "tests/unit/suite.h"

static struct md_modcache *modcache;
static struct md_rows_give give;
static struct md_source source;
static int nr_files, nr_vdso, answer;

/* Checks what the kernel module would get. */
static int take(struct md_source *from, const struct md_source_rows *rows)
{
	ck_assert_ptr_eq(from, &source);
	ck_assert_uint_ge(rows->nr_segments, 1);
	if (rows->rows) {
		size_t size;
		AUTO_FREE void *bytes = mp_rows_flatten(rows->rows, &size);

		ck_assert_ptr_nonnull(bytes);
		ck_assert_int_eq(kmod_rows_check(bytes, size), 0);
	}
	if (rows->mmap)
		ck_assert_uint_ne(rows->mmap->ino, 0);
	nr_files += rows->mmap != NULL;
	nr_vdso += !rows->mmap;
	return answer;
}

static const struct md_source_ops takes = {
	.name = "takes", .give_rows = take, .rows_full = "no room"};
static const struct md_source_ops takes_none = {.name = "takes-none"};

/* ---- a source that keeps rows where morphd can read them ---- */

static struct md_row_slabs slabs;
static int nr_laid, nr_found;

static int add_slab(void *arg, uint32_t nr, uint8_t *at)
{
	(void)arg;
	(void)nr;
	(void)at;
	return 0;
}

static int keep(struct md_source *from, const struct md_source_rows *rows)
{
	struct md_wire_file file;
	int ret = 0;

	(void)from;
	ck_assert_ptr_nonnull(rows->laid);
	if (answer)
		return answer;
	if (rows->rows && md_row_slabs_find(&slabs, rows->rows, &file)) {
		nr_found++;
	} else if (rows->rows) {
		ret = md_row_slabs_add(&slabs, rows->rows, true, &file, rows->laid);
		nr_laid++;
	}
	return ret;
}

static const struct md_source_ops keeps = {
	.name = "keeps", .give_rows = keep, .rows_full = "no room"};

static void setup(void)
{
	modcache = md_modcache_new();
	ck_assert_ptr_nonnull(modcache);
	md_modcache_want_rows(modcache);
	source = (struct md_source){.ops = &takes, .has_stacks = true};
	memset(&give, 0, sizeof(give));
	nr_files = nr_vdso = answer = 0;
	md_rows_give_start(&give, &source, NULL);
}

static void teardown(void)
{
	md_modcache_free(modcache);
}

struct given {
	uint32_t flags;
	int nr_said;
};

static int give_one(struct morph_record *record, struct md_file *file, void *arg)
{
	struct morph_mmap *mmap = (void *)record;
	struct given *given = arg;

	if (!file)
		return 0;
	mmap->task.flags |= given->flags;
	given->nr_said += md_rows_give_file(&give, &source, modcache, file, mmap) != NULL;
	return 0;
}

/* Gives all files that this process has mapped. Return: number of messages. */
static int give_all(uint32_t flags)
{
	struct given given = {.flags = flags};

	ck_assert_int_eq(own_files_each(modcache, give_one, &given), 0);
	return given.nr_said;
}

FIXTURE(setup, teardown);

TEST(rows_of_each_file_are_given_once)
{
	int nr;

	ck_assert_int_eq(give_all(0), 0);
	nr = nr_files;
	ck_assert_int_ge(nr, 3); /* this program, libc, the loader */
	ck_assert_uint_eq(give.nr, (uint64_t)nr);
	ck_assert_uint_gt(give.bytes, 10000);
	ck_assert_int_eq(give_all(0), 0);
	ck_assert_int_eq(nr_files, nr);
}

TEST(rows_are_given_again_under_an_identity_with_a_generation)
{
	give_all(0);
	nr_files = 0;
	give_all(MORPH_MMAP_GENERATION);
	ck_assert_int_ge(nr_files, 1);
}

TEST(rows_are_given_again_to_the_next_source)
{
	struct md_stack_walk *walk = md_stack_walk_new();
	int nr;

	give_all(0);
	nr = nr_files;
	nr_files = 0;
	md_rows_give_start(&give, &source, md_stack_walk_vdso(walk));
	ck_assert_int_eq(nr_vdso, 1);
	give_all(0);
	ck_assert_int_eq(nr_files, nr);
	md_stack_walk_free(walk);
}

TEST(rows_are_given_to_no_source_that_makes_no_walks)
{
	source.ops = &takes_none;
	give_all(0);
	source.ops = &takes;
	source.has_stacks = false;
	give_all(0);
	ck_assert_int_eq(nr_files, 0);
	source.has_stacks = true;
	give_all(0);
	ck_assert_int_ge(nr_files, 3);
}

TEST(a_full_source_is_reported_once)
{
	answer = -ENOSPC;
	ck_assert_int_eq(give_all(0), 1);
	ck_assert_uint_eq(give.nr, 0);
}

TEST(rows_are_kept_once_and_outlive_their_source)
{
	struct md_modcache *other = md_modcache_new(), *kept;
	const struct md_module *module, *same;
	uint32_t nr = 0;

	ck_assert_ptr_nonnull(other);
	md_modcache_want_rows(other);
	slabs = (struct md_row_slabs){.add = add_slab};
	slabs.memory = calloc(MD_WIRE_SLABS, MD_WIRE_SLAB);
	ck_assert_ptr_nonnull(slabs.memory);
	source.ops = &keeps;
	nr_laid = nr_found = 0;
	ck_assert_int_eq(give_all(0), 0);
	ck_assert_int_ge(nr_laid, 3);
	ck_assert_int_eq(nr_found, 0);
	give_all(MORPH_MMAP_GENERATION);
	ck_assert_int_ge(nr_found, nr_laid);
	for (uint32_t i = 1; (module = md_modcache_module(modcache, i)); i++) {
		ck_assert(!module->rows.nr_rows || module->rows.laid == slabs.memory);
		ck_assert(!module->rows.nr_rows || !module->row_bytes);
	}
	md_modcache_gather_rows(modcache);
	memset(slabs.memory, 0xff, (size_t)MD_WIRE_SLABS * MD_WIRE_SLAB);
	free(slabs.memory);
	/* The same files, read anew. */
	source.ops = &takes;
	md_rows_give_start(&give, &source, NULL);
	kept = modcache;
	modcache = other;
	give_all(0);
	modcache = kept;
	for (uint32_t i = 1; (module = md_modcache_module(modcache, i)); i++) {
		same = md_modcache_module(other, i);
		ck_assert_ptr_nonnull(same);
		ck_assert(!module->rows.nr_rows || module->rows.laid == module->row_bytes);
		ck_assert_uint_eq(module->row_size, same->row_size);
		ck_assert(!module->row_size ||
			  !memcmp(module->row_bytes, same->row_bytes, same->row_size));
		nr += module->rows.nr_rows > 0;
	}
	ck_assert_uint_eq(nr, (uint32_t)nr_laid);
	/* The next source gets them. */
	nr_files = 0;
	give_all(0);
	ck_assert_int_ge(nr_files, nr_laid);
	md_modcache_free(other);
}

TEST(rows_that_a_source_refuses_stay_with_morphd)
{
	const struct md_module *module;

	slabs = (struct md_row_slabs){.add = add_slab};
	slabs.memory = calloc(MD_WIRE_SLABS, MD_WIRE_SLAB);
	ck_assert_ptr_nonnull(slabs.memory);
	source.ops = &keeps;
	answer = -EPERM;
	give_all(0);
	free(slabs.memory);
	for (uint32_t i = 1; (module = md_modcache_module(modcache, i)); i++)
		ck_assert(!module->rows.nr_rows || module->rows.laid == module->row_bytes);
}

/* The reader has no file in memory, only a descriptor: it reads code piece by piece. */
TEST(rows_of_the_reader_are_those_of_the_whole_file)
{
	const struct md_module *module;
	uint32_t nr = 0, nr_changes = 0;

	give_all(0);
	for (uint32_t i = 1; (module = md_modcache_module(modcache, i)); i++) {
		struct mp_rows rows;
		struct mp_elf *elf;
		void *bytes, *laid;
		size_t size;

		if (!module->row_size || mp_elf_open(module->path, MP_ELF_FDES, &elf, &err))
			continue;
		ck_assert_int_eq(rows_of_elf(elf, &bytes, &size, &rows, &err), 0);
		ck_assert_int_eq(mp_rows_lay(&rows, &laid, &size), 0);
		ck_assert_uint_eq(size, module->row_size);
		ck_assert_mem_eq(laid, module->row_bytes, size);
		free(laid);
		for (uint32_t r = 0; r < rows.nr_rows; r++)
			nr_changes += rows.rules[rows.rows[r].number].stop == MP_ROW_STOP_STACK;
		free(bytes);
		mp_elf_close(elf);
		nr++;
	}
	ck_assert_uint_ge(nr, 3);
	ck_assert_uint_gt(nr_changes, 0); /* swapcontext() of libc */
}
