// SPDX-License-Identifier: Apache-2.0
/*
 * test_plan_file - a plan in a file gives the output of the run that saved it. A changed one is refused, or gives an
 * output that verifies and behaves like the original. With MORPH_LONG=1 there are 10,000 changed plans, else some hundreds;
 * SEED in the environment: others.
 */
#include "tests/unit/files.h"

#include <sys/stat.h>

#include "editor/optimize/optimize.h"
#include "editor/optimize/plan_file.h"
#include "tests/support/plan_mutate.h"
#include "tests/unit/edit_fixture.h"

static char out_path[300], plan_path[300], again_path[300];

static void build(struct fixture *f, const char *language, const char *flags, const char *file)
{
	char root[256], source[512];

	ck_assert_ptr_nonnull(getcwd(root, sizeof(root)));
	snprintf(source, sizeof(source), "#include \"%s/tests/data/%s\"\n", root, file);
	fixture_compile(f, language, flags, source);
	fixture_read(f);
	snprintf(out_path, sizeof(out_path), "%s.out", f->path);
	snprintf(again_path, sizeof(again_path), "%s.again", f->path);
	snprintf(plan_path, sizeof(plan_path), "%s.plan", f->path);
}

static struct rewrite_bytes read_bytes(const char *path)
{
	struct rewrite_bytes b;

	b.data = read_file(path, &b.size);
	return b;
}

static bool equal(const char *a, const char *b)
{
	struct rewrite_bytes x = read_bytes(a), y = read_bytes(b);
	bool same = x.size == y.size && !memcmp(x.data, y.data, x.size);

	free(x.data);
	free(y.data);
	return same;
}

static char *run(const char *path, int *status)
{
	char *text = malloc(1 << 16), command[400];
	FILE *p;
	size_t n;

	snprintf(command, sizeof(command), "timeout 60 %s 2>&1", path);
	p = popen(command, "r");
	ck_assert(text && p);
	n = fread(text, 1, (1 << 16) - 1, p);
	text[n] = '\0';
	*status = pclose(p);
	return text;
}

static int optimize(struct me_optimize_options options, struct mp_err *err)
{
	AUTO(me_optimize_report_fini) struct me_optimize_report r = {0};
	int rc;

	options.all = true;
	options.nr_threads = 1;
	rc = me_optimize(&options, &r, err);
	return rc;
}

/* Saves a plan with slots, clones and calls that are replaced, and makes the output by it. */
static void save(const struct fixture *f, uint64_t seed)
{
	struct me_optimize_options o = {.input = f->path,
					.output = out_path,
					.stress = seed,
					.stress_seed = seed,
					.save_plan = plan_path,
					.layout = {.slots = true, .inline_leaves = true}};

	ck_assert_msg(!optimize(o, &err), "%s", err.msg);
	o = (struct me_optimize_options){.input = f->path, .output = again_path, .plan = plan_path};
	ck_assert_msg(!optimize(o, &err), "%s", err.msg);
	ck_assert_msg(equal(out_path, again_path), "the plan gives another output, seed %d",
		      (int)seed);
}

static const struct {
	const char *language, *flags, *file;
} programs[] = {
	{"c", "-O2 -fno-pie -no-pie -Wl,--emit-relocs", "control.c"},
	{"c", "-O2 -s", "switches.c"},
	{"c++", "-O2", "exceptions.cc"},
	{"c", "-O2 -static-pie -fPIE", "leaf.c"},
	{"c", "-O2 -g -Wl,--emit-relocs", "leaf_calls.c"},
};
#define NR_PROGRAMS (sizeof(programs) / sizeof(programs[0]))

static void clean(struct fixture *f)
{
	unlink(out_path);
	unlink(again_path);
	unlink(plan_path);
	fixture_free(f);
}

TIMEOUT(7200);

TEST(plan_gives_the_same_output)
{
	for (size_t i = 0; i < NR_PROGRAMS; i++) {
		struct fixture f;

		build(&f, programs[i].language, programs[i].flags, programs[i].file);
		for (uint64_t seed = 0; seed < 4; seed++)
			save(&f, seed);
		clean(&f);
	}
}

/* What became of changed plans. */
struct tally {
	uint32_t refused, unproved, written;
};

static void try_mutant(const struct fixture *f, const char *want, int want_status,
		       struct tally *tally)
{
	const struct me_optimize_options o = {
		.input = f->path, .output = out_path, .plan = plan_path};
	struct mp_err err = {""};
	int status, rc = optimize(o, &err);
	struct stat st;
	char *text;

	if (rc) {
		ck_assert_msg(rc == -EBADMSG || rc == -EPERM || rc == -ENODATA, "%d: %s", rc,
			      err.msg);
		ck_assert(err.msg[0] && !strchr(err.msg, '\n'));
		ck_assert_msg(stat(out_path, &st) && errno == ENOENT, "refused, but written: %s",
			      err.msg);
		tally->refused += rc != -EPERM;
		tally->unproved += rc == -EPERM;
		return;
	}
	text = run(out_path, &status);
	ck_assert_str_eq(text, want);
	ck_assert_int_eq(status, want_status);
	free(text);
	unlink(out_path);
	tally->written++;
}

TEST(changed_plan_is_refused_or_does_the_same)
{
	const char *is_long = getenv("MORPH_LONG"), *seed_text = getenv("SEED");
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : 1;
	uint32_t nr = is_long && *is_long == '1' ? 10000 : 400;
	struct tally tally = {0};

	for (size_t i = 0; i < NR_PROGRAMS; i++) {
		struct rewrite_bytes plan;
		uint8_t *movable;
		struct fixture f;
		int want_status;
		char *want;

		build(&f, programs[i].language, programs[i].flags, programs[i].file);
		movable = rewrite_movable(f.cfg);
		ck_assert_ptr_nonnull(movable);
		save(&f, seed + i);
		plan = read_bytes(plan_path);
		unlink(out_path);
		want = run(f.path, &want_status);
		for (uint32_t k = 0; k < nr / NR_PROGRAMS; k++) {
			struct mp_varint_writer mutant;

			ck_assert(plan_mutate(f.cfg, movable, plan.data, plan.size,
					      seed << 32 | i << 24 | k, &mutant));
			write_file(plan_path, mutant.bytes, mutant.size);
			free(mutant.bytes);
			try_mutant(&f, want, want_status, &tally);
		}
		free(want);
		free(movable);
		free(plan.data);
		clean(&f);
	}
	printf("of %u changed plans, %u were refused, %u by verify, %u gave outputs that do the same\n",
	       nr, tally.refused, tally.unproved, tally.written);
	ck_assert_uint_gt(tally.refused, nr / 10);
	ck_assert_uint_gt(tally.written, nr / 10);
}

/* Return: what me_plan_file_read() says of the bytes. */
static int read_plan(const struct fixture *f, const uint8_t *movable, const uint8_t *data,
		     size_t size)
{
	struct me_plan_file file;
	struct mp_err err = {""};
	int rc = me_plan_file_read(f->cfg, movable, data, size, &file, &err);

	ck_assert(!rc == !err.msg[0]);
	if (!rc)
		me_plan_file_fini(&file);
	return rc;
}

TEST(damaged_plan_is_refused)
{
	struct rewrite_bytes plan;
	struct fixture f, other;
	uint8_t *movable, *none, *longer;

	build(&other, "c", "-O1", "switches.c");
	save(&other, 1);
	plan = read_bytes(plan_path);
	clean(&other);
	build(&f, "c", "-O2", "switches.c");
	movable = rewrite_movable(f.cfg);
	ck_assert_int_eq(read_plan(&f, movable, plan.data, plan.size), -EBADMSG);
	free(plan.data);
	save(&f, 3);
	plan = read_bytes(plan_path);
	ck_assert_int_eq(read_plan(&f, movable, plan.data, plan.size), 0);
	for (size_t size = 0; size < plan.size; size++)
		ck_assert_int_eq(read_plan(&f, movable, plan.data, size), -EBADMSG);
	longer = calloc(1, plan.size + 1);
	ck_assert_ptr_nonnull(longer);
	memcpy(longer, plan.data, plan.size);
	ck_assert_int_eq(read_plan(&f, movable, longer, plan.size + 1), -EBADMSG);
	free(longer);
	/* On a host where these functions may not move. */
	none = calloc(1, f.cfg->nr_funcs + 1);
	ck_assert_int_eq(read_plan(&f, none, plan.data, plan.size), -EBADMSG);
	free(none);
	plan.data[8]++; /* the format */
	ck_assert_int_eq(read_plan(&f, movable, plan.data, plan.size), -EBADMSG);
	free(plan.data);
	free(movable);
	clean(&f);
}

/* A block that control repeats may have clones behind clones: not so many that the output has any size. */
TEST(plan_with_more_clones_than_code_is_refused)
{
	struct me_plan plan = {0};
	uint32_t loop = MP_NONE, most;
	uint64_t bytes = 0;
	struct fixture f;
	uint8_t *movable;

	fixture_compile(
		&f, "c", "-O1 -w",
		"volatile int v[64];\n"
		"__attribute__((noinline)) int repeat(int n)\n"
		"{\n"
		"	int sum = 0;\n"
		"	do { v[0] = n; v[1] = n; v[2] = n; v[3] = n; sum += v[4]; } while (--n);\n"
		"	return sum;\n"
		"}\n"
		"int main(int argc, char **argv) { return repeat(argc + 2); }\n");
	fixture_read(&f);
	movable = rewrite_movable(f.cfg);
	ck_assert_ptr_nonnull(movable);
	for (uint32_t b = 0; b < f.cfg->nr_blocks; b++) {
		const struct mp_block *block = &f.cfg->blocks[b];

		bytes += block->size;
		for (uint32_t e = 0; e < block->nr_edges; e++)
			if (f.cfg->edges[block->first_edge + e].to == b && movable[block->func] &&
			    !(block->flags & MP_BLOCK_ENTRY))
				loop = b;
	}
	ck_assert_uint_ne(loop, MP_NONE);
	most = (uint32_t)(ME_NR_ZONES * bytes / f.cfg->blocks[loop].size);
	plan.blocks = calloc(most + 3, sizeof(*plan.blocks));
	ck_assert_ptr_nonnull(plan.blocks);
	plan.blocks[0].block = f.cfg->funcs[f.cfg->blocks[loop].func].first_block;
	ck_assert_uint_ne(plan.blocks[0].block, loop);
	for (plan.nr_blocks = 1; plan.nr_blocks < most + 2; plan.nr_blocks++)
		plan.blocks[plan.nr_blocks] =
			(struct me_plan_block){.block = loop, .clone = plan.nr_blocks > 1};
	ck_assert_msg(!me_plan_check(f.cfg, movable, &plan, &err), "%s", err.msg);
	plan.blocks[plan.nr_blocks++] = (struct me_plan_block){.block = loop, .clone = true};
	ck_assert_int_eq(me_plan_check(f.cfg, movable, &plan, &err), -EBADMSG);
	free(plan.blocks);
	free(movable);
	fixture_free(&f);
}
