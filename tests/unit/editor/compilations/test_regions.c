// SPDX-License-Identifier: Apache-2.0
/*
 * test_regions - which parts of two compilations are one region. The compilers' freedoms are written
 * into the source, so that the tests do not depend on what a compiler chooses to do.
 */
#include "tests/unit/files.h"

#include "editor/compilations/regions.h"

static char dir[200];
static struct me_build builds[ME_NR_BUILDS];
static struct me_regions regions;

/* FUSED: two loops are one. INLINED: a function's body is where it was called. MOVED: an increment
 * is outside of its loop. CLONED: a compiler's name of a part of a function. */
static const char source[] =
	"#include \"editor/marker/plugin/morph_marker.h\"\n"
	"#define KEEP __attribute__((noinline, noclone, noipa))\n"
	"volatile long sink, n = 10;\n"
	"KEEP long apart(long m) { long s = 0;\n"
	"#ifdef FUSED\n"
	"	for (long i = 0; i < m; i++) { MORPH_MARKER(first); s += sink; MORPH_MARKER(second); s ^= sink; }\n"
	"#else\n"
	"	for (long i = 0; i < m; i++) { MORPH_MARKER(first); s += sink; }\n"
	"	for (long i = 0; i < m; i++) { MORPH_MARKER(second); s ^= sink; }\n"
	"#endif\n"
	"	return s; }\n"
	"static inline __attribute__((always_inline)) long body(long m) { long s = 0;\n"
	"	for (long i = 0; i < m; i++) { MORPH_MARKER(inside); s += sink; } return s; }\n"
	"#ifdef INLINED\n"
	"KEEP long calls(long m) { sink++; return body(m) + 1; }\n"
	"#else\n"
	"KEEP long called(long m) { return body(m); }\n"
	"KEEP long calls(long m) { sink++; return called(m) + 1; }\n"
	"#endif\n"
	"KEEP long alone(long m) { long s = 0;\n"
	"#ifdef MOVED\n"
	"	MORPH_MARKER(lonely); for (long i = 0; i < m; i++) s += sink;\n"
	"#else\n"
	"	for (long i = 0; i < m; i++) { MORPH_MARKER(lonely); s += sink; }\n"
	"#endif\n"
	"	return s; }\n"
	"#ifdef CLONED\n"
	"long part(long m) __asm__(\"part.constprop.0\");\n"
	"#endif\n"
	"KEEP long part(long m) { return m * sink; }\n"
	"int main(void) { return (int)(apart(n) + calls(n) + alone(n) + part(n)) & 1; }\n";

static void open_build(int b, const char *flags)
{
	static char paths[ME_NR_BUILDS][256];
	char line[1024];

	snprintf(paths[b], sizeof(paths[b]), "%s/build%d", dir, b);
	snprintf(line, sizeof(line), "gcc -O1 -I. %s -Wl,--emit-relocs -o %s %s/source.c", flags,
		 paths[b], dir);
	ck_assert_msg(system(line) == 0, "%s", line);
	ck_assert_msg(me_build_open(paths[b], &builds[b], &err) == 0, "%s", err.msg);
}

static void find(const char *old, const char *new)
{
	const char *tmp = getenv("TMPDIR");
	char path[256];

	snprintf(dir, sizeof(dir), "%s/morph-regions-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/source.c", dir);
	write_text(path, source);
	open_build(ME_OLD, old);
	open_build(ME_NEW, new);
	ck_assert_int_eq(me_regions_find(builds, &regions), 0);
}

static void done(void)
{
	char path[300];

	me_regions_fini(&regions);
	for (int b = 0; b < ME_NR_BUILDS; b++) {
		unlink(builds[b].path);
		me_build_close(&builds[b]);
	}
	snprintf(path, sizeof(path), "%s/source.c", dir);
	unlink(path);
	rmdir(dir);
}

static const struct me_region_marker *marker(const char *name)
{
	uint32_t i = me_regions_marker(&regions, name);

	ck_assert_msg(i != MP_NONE, "%s", name);
	return &regions.markers[i];
}

/* Return: NULL: neither compilation has the function. */
static const struct me_region_function *function(const char *name)
{
	for (uint32_t i = 0; i < regions.nr_functions; i++)
		if (!strcmp(regions.functions[i].name, name))
			return &regions.functions[i];
	return NULL;
}

TEST(equal_compilations_have_a_region_for_each_loop_and_function)
{
	static const char *const names[] = {"first", "second", "inside", "lonely"};

	find("", "");
	ck_assert_uint_eq(regions.nr_markers, 4);
	ck_assert_uint_eq(me_regions_marker(&regions, "missing"), MP_NONE);
	for (int i = 0; i < 4; i++) {
		const struct me_region_marker *m = marker(names[i]);

		ck_assert(m->placed);
		for (int k = 0; k < i; k++)
			ck_assert_uint_ne(m->region[ME_DIVISION_LOOPS],
					  marker(names[k])->region[ME_DIVISION_LOOPS]);
		for (int b = 0; b < ME_NR_BUILDS; b++) {
			ck_assert_uint_ge(m->nr_inside[b], 1);
			ck_assert_uint_eq(m->nr_outside[b], 0);
		}
	}
	/* A loop belongs to its function in the division of functions, and not in that of loops. */
	ck_assert_uint_eq(marker("first")->region[ME_DIVISION_FUNCTIONS],
			  function("apart")->region[ME_DIVISION_FUNCTIONS]);
	ck_assert_uint_ne(marker("first")->region[ME_DIVISION_LOOPS],
			  function("apart")->region[ME_DIVISION_LOOPS]);
	ck_assert_uint_ne(function("calls")->region[ME_DIVISION_FUNCTIONS],
			  function("called")->region[ME_DIVISION_FUNCTIONS]);
	done();
}

TEST(loops_that_one_compiler_joined_are_one_region_in_both)
{
	find("", "-DFUSED");
	ck_assert_uint_eq(marker("first")->region[ME_DIVISION_LOOPS],
			  marker("second")->region[ME_DIVISION_LOOPS]);
	ck_assert_uint_ne(marker("first")->region[ME_DIVISION_LOOPS],
			  marker("inside")->region[ME_DIVISION_LOOPS]);
	done();
	find("-DFUSED", "");
	ck_assert_uint_eq(marker("first")->region[ME_DIVISION_LOOPS],
			  marker("second")->region[ME_DIVISION_LOOPS]);
	done();
}

TEST(a_function_that_one_compiler_inlined_is_one_region_with_its_caller)
{
	find("", "-DINLINED");
	ck_assert(function("called")->present[ME_OLD] && !function("called")->present[ME_NEW]);
	ck_assert_uint_eq(function("called")->region[ME_DIVISION_FUNCTIONS],
			  function("calls")->region[ME_DIVISION_FUNCTIONS]);
	ck_assert_uint_ne(function("alone")->region[ME_DIVISION_FUNCTIONS],
			  function("calls")->region[ME_DIVISION_FUNCTIONS]);
	/* Its loop is compared as a loop all the same. */
	ck_assert_uint_ne(marker("inside")->region[ME_DIVISION_LOOPS],
			  function("calls")->region[ME_DIVISION_LOOPS]);
	done();
}

TEST(a_marker_outside_of_loops_gets_the_only_unmarked_loop_of_its_function)
{
	const struct me_file_loops *loops = &builds[ME_NEW].loops;
	uint32_t region, nr = 0;

	find("", "-DMOVED");
	region = marker("lonely")->region[ME_DIVISION_LOOPS];
	ck_assert_uint_ne(region, function("alone")->region[ME_DIVISION_LOOPS]);
	for (uint32_t b = 0; b < builds[ME_NEW].cfg->nr_blocks; b++) {
		const struct mp_func *f =
			&builds[ME_NEW].cfg->funcs[builds[ME_NEW].cfg->blocks[b].func];
		bool in_loop = loops->of_block[b] != MP_NONE && !strcmp(f->name, "alone");

		nr += in_loop;
		if (in_loop)
			ck_assert_uint_eq(regions.of_block[ME_DIVISION_LOOPS][ME_NEW][b], region);
	}
	ck_assert_uint_ge(nr, 1);
	done();
}

TEST(names_that_compilers_append_do_not_count)
{
	find("", "-DCLONED");
	ck_assert_ptr_null(function("part.constprop.0"));
	ck_assert(function("part")->present[ME_OLD] && function("part")->present[ME_NEW]);
	done();
}
