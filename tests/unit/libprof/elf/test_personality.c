// SPDX-License-Identifier: Apache-2.0
// check-all: large static C++ programs
/*
 * test_personality - a personality routine without a name is recognised by its code and its
 * tables together. The reader and verify do so independently.
 */
#include "tests/unit/suite.h"

#include "tests/support/compile.h"
#include "tests/unit/verify_pair.h"

#define STATIC "g++ -w -O2 -static tests/data/exceptions.cc"
#define CXX    "__gxx_personality_v0"
#define C      "__gcc_personality_v0"
#define RUST   "rust_eh_personality"
/* Debian's, not the first in $PATH. */
#define RUSTC "/usr/bin/rustc -O tests/torture/rust/unwind.rs"

/* Loads the negative class of C++ exceptions, as in GCC's runtime. */
static const uint8_t class_move[] = {0x48, 0xb8, 0x00, 0xd5, 0xd4, 0xbc, 0xbc, 0xaa, 0xb1, 0xb8};

static struct mp_elf *read_memory(const uint8_t *bytes, size_t size)
{
	struct mp_elf *elf;

	ck_assert_msg(!mp_elf_open_memory("changed", bytes, size, MP_ELF_ALL, &elf, &err), "%s",
		      err.msg);
	return elf;
}

static uint32_t nr_named(const struct mp_elf *elf, const char *name)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < elf->nr_fdes; i++)
		nr += elf->fdes[i].personality_name &&
		      !strncmp(elf->fdes[i].personality_name, name, strlen(name));
	return nr;
}

/* Builds the static program. Return: the opened file, and its bytes in *@bytes. */
static struct mp_elf *build(const char *flags, uint8_t **bytes)
{
	struct mp_elf *elf;
	char path[256];

	ck_assert_int_eq(compile_run("g++", flags, "tests/data/exceptions.cc", path), 0);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	unlink(path);
	*bytes = malloc(elf->size);
	ck_assert_ptr_nonnull(*bytes);
	memcpy(*bytes, elf->data, elf->size);
	return elf;
}

static uint8_t *at(const struct mp_elf *elf, uint8_t *bytes, uint64_t vaddr)
{
	uint64_t off;

	ck_assert(mp_elf_vaddr_to_off(elf, vaddr, &off));
	return bytes + off;
}

/* Changes the class of exceptions wherever the code contains it. */
static uint32_t change_class(uint8_t *bytes, size_t size)
{
	uint8_t *p = bytes;
	uint32_t nr = 0;

	while ((p = memmem(p, size - (size_t)(p - bytes), class_move, sizeof(class_move)))) {
		p[6] ^= 1;
		nr++;
	}
	return nr;
}

TEST(personality_without_a_name_is_what_it_is_with_one)
{
	if (!compile_has("g++"))
		MORPH_SKIP("no g++");

	struct mp_elf *with, *without;
	uint8_t *bytes, *stripped;

	with = build("-w -O2 -static", &bytes);
	without = build("-w -O2 -static -s", &stripped);
	ck_assert_uint_eq(with->nr_fdes, without->nr_fdes);
	ck_assert_uint_gt(nr_named(with, CXX), 10);
	ck_assert_uint_gt(nr_named(with, C), 1);
	for (uint32_t i = 0; i < with->nr_fdes; i++) {
		const char *a = with->fdes[i].personality_name;
		const char *b = without->fdes[i].personality_name;

		ck_assert_uint_eq(!a, !b);
		ck_assert(!a || !strncmp(a, b, strlen(b)));
	}
	mp_elf_close(with);
	mp_elf_close(without);
	free(bytes);
	free(stripped);
}

TEST(personality_that_asks_for_another_class_is_not_known)
{
	if (!compile_has("g++"))
		MORPH_SKIP("no g++");

	struct mp_elf *elf, *changed;
	uint8_t *bytes;

	elf = build("-w -O2 -static -s", &bytes);
	if (!change_class(bytes, elf->size))
		MORPH_SKIP("the runtime has the class elsewhere");
	changed = read_memory(bytes, elf->size);
	ck_assert_uint_eq(nr_named(changed, CXX), 0);
	ck_assert_uint_eq(nr_named(changed, C), nr_named(elf, C));
	mp_elf_close(changed);
	mp_elf_close(elf);
	free(bytes);
}

/* Among many tables, one is not a table of C++, or of C. */
TEST_EACH(personality_with_a_table_of_another_kind_is_not_known, 2)
{
	if (!compile_has("g++"))
		MORPH_SKIP("no g++");

	const char *name = _i ? C : CXX;
	struct mp_elf *elf, *changed;
	uint8_t *bytes, *table = NULL;

	elf = build("-w -O2 -static -s", &bytes);
	for (uint32_t i = 0; i < elf->nr_fdes && !table; i++)
		if (elf->fdes[i].lsda && elf->fdes[i].personality_name &&
		    !strcmp(elf->fdes[i].personality_name, name))
			table = at(elf, bytes, elf->fdes[i].lsda);
	ck_assert_ptr_nonnull(table);
	ck_assert_uint_eq(table[0], 0xff);
	/* The encoding of call sites follows the position of the types, if there are types. */
	table += 2;
	while (table[-1] != 0xff && *table++ & 0x80)
		;
	ck_assert_uint_eq(*table, 1);
	*table = 0x31;
	changed = read_memory(bytes, elf->size);
	ck_assert_uint_eq(nr_named(changed, name), 0);
	ck_assert_uint_gt(nr_named(changed, _i ? CXX : C), 0);
	mp_elf_close(changed);
	mp_elf_close(elf);
	free(bytes);
}

/* Original and output agree, but the routine is unknown: verify must notice itself. */
TEST(verify_asks_the_routine_itself_for_what_it_is)
{
	if (!compile_has("g++"))
		MORPH_SKIP("no g++");

	struct mp_elf *original, *output;
	uint8_t *bytes;
	struct pair p;
	int rc;

	pair_build_stock(&p, STATIC, 1);
	ck_assert_uint_gt(p.report.nr_landing_pads, 10);
	bytes = malloc(p.original->size);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, p.original->data, p.original->size);
	if (!change_class(bytes, p.original->size))
		MORPH_SKIP("the runtime has the class elsewhere");
	ck_assert_uint_gt(change_class(p.bytes, p.size), 0);
	original = read_memory(bytes, p.original->size);
	output = read_memory(p.bytes, p.size);
	/* The map names the original's id. */
	original->id = p.original->id;
	rc = me_verify(original, output, NULL, &err);
	ck_assert_int_eq(rc, -EBADMSG);
	ck_assert_msg(strstr(err.msg, "unknown personality"), "%s", err.msg);
	mp_elf_close(original);
	mp_elf_close(output);
	free(bytes);
	pair_free(&p);
}

/* ---- Rust -------------------------------------------------------------------------------- */

static struct mp_elf *build_rust(const char *flags)
{
	const char *dir = getenv("TMPDIR");
	char path[256], line[512];
	struct mp_elf *elf;

	snprintf(path, sizeof(path), "%s/morph-rust-%d", dir ? dir : "/tmp", (int)getpid());
	snprintf(line, sizeof(line), RUSTC " %s -o %s", flags, path);
	ck_assert_msg(system(line) == 0, "%s", line);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	unlink(path);
	return elf;
}

TEST(personality_of_rust_is_known_by_what_it_calls)
{
	if (access("/usr/bin/rustc", X_OK))
		MORPH_SKIP("no rustc");

	struct mp_elf *with = build_rust(""), *without = build_rust("-C link-arg=-s");
	struct mp_elf *alone = build_rust("-C target-feature=+crt-static -C link-arg=-s");

	ck_assert_uint_gt(nr_named(with, RUST), 100);
	ck_assert_uint_eq(nr_named(without, RUST), nr_named(with, RUST));
	ck_assert_uint_eq(nr_named(without, C) + nr_named(without, CXX), 0);
	/*
	 * If the unwinder is part of the file, it has no names, so Rust's routine cannot be
	 * told from C's.
	 */
	ck_assert_uint_eq(nr_named(alone, RUST) + nr_named(alone, C), 0);
	mp_elf_close(with);
	mp_elf_close(without);
	mp_elf_close(alone);
}

TEST(personality_that_calls_something_else_is_not_rusts)
{
	if (access("/usr/bin/rustc", X_OK))
		MORPH_SKIP("no rustc");

	static const char name[] = "_Unwind_GetRegionStart";
	struct mp_elf *elf = build_rust("-C link-arg=-s"), *changed;
	uint8_t *bytes = malloc(elf->size), *p;

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, elf->data, elf->size);
	p = memmem(bytes, elf->size, name, sizeof(name));
	ck_assert_ptr_nonnull(p);
	p[8] = 'S';
	changed = read_memory(bytes, elf->size);
	ck_assert_uint_eq(nr_named(changed, RUST), 0);
	mp_elf_close(changed);
	mp_elf_close(elf);
	free(bytes);
}

#define FROM_START 0x4b
#define FROM_FIELD 0x1b

/*
 * Changes the base in the table of copy @fde to the other form, with the same value. Return:
 * false: not possible.
 */
static bool change_base(struct pair *p, const struct mp_fde *fde)
{
	uint64_t from = fde->start - (fde->lsda + 1);
	uint8_t *table = pair_at(p, fde->lsda);
	uint32_t value;

	if (*table == 0xff)
		return false;
	memcpy(&value, table + 1, sizeof(value));
	ck_assert(*table == FROM_START || *table == FROM_FIELD);
	value += *table == FROM_START ? (uint32_t)from : -(uint32_t)from;
	memcpy(table + 1, &value, sizeof(value));
	*table = *table == FROM_START ? FROM_FIELD : FROM_START;
	return true;
}

/*
 * Two versions of Rust's library interpret a base relative to its field differently. LLVM's C++
 * runtime has no base relative to the function.
 */
TEST_EACH(verify_wants_the_base_that_every_version_reads_alike, 3)
{
	if (_i ? access("/usr/bin/rustc", X_OK) : !compile_has("g++"))
		MORPH_SKIP("no compiler");

	static const char *const commands[] = {STATIC, RUSTC " -C link-arg=-Wl,--emit-relocs",
					       RUSTC " -C link-arg=-s"};
	uint32_t nr = 0;
	struct pair p;

	pair_build_as_it_is(&p, commands[_i], 1);
	ck_assert_uint_gt(p.report.nr_landing_pads, 10);
	for (uint32_t i = 0; i < p.good->nr_fdes && nr < 20; i++) {
		const struct mp_fde *fde = &p.good->fdes[i];

		if (!fde->lsda || fde->start < mp_elf_section(p.good, ".morph.text")->vaddr)
			continue;
		ck_assert_uint_ne(*pair_at(&p, fde->lsda), _i ? FROM_FIELD : FROM_START);
		if (!change_base(&p, fde))
			continue;
		pair_refused(&p, "landing pad base");
		nr++;
	}
	ck_assert_uint_eq(nr, 20);
	pair_free(&p);
}
