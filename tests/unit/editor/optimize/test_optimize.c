// SPDX-License-Identifier: Apache-2.0
/*
 * test_optimize - from a file to a verified output with the same behaviour, and every reason to
 * fail.
 */
#include "tests/unit/suite.h"

#include <sys/stat.h>

#include "editor/optimize/optimize.h"
#include "libprof/store/store.h"
#include "libprof/store/store_paths.h"
#include "libprof/base/varint.h"
#include "tests/unit/edit_fixture.h"

static const char *const links[] = {
	"-no-pie -fno-pie",
	"-pie -fPIE",
	"-static",
	"-static-pie -fPIE",
};
#define NR_LINKS (sizeof(links) / sizeof(links[0]))

static char out_path[300];

static void build(struct fixture *f, const char *flags)
{
	char root[256], source[512];

	ck_assert_ptr_nonnull(getcwd(root, sizeof(root)));
	snprintf(source, sizeof(source), "#include \"%s/tests/data/control.c\"\n", root);
	fixture_build(f, "c", flags, source);
	snprintf(out_path, sizeof(out_path), "%s.out", f->path);
	unlink(out_path);
}

static bool exists(const char *path)
{
	struct stat st;

	return !stat(path, &st);
}

/* Runs @path. Return: its output; *@status: its exit status. Ownership: free(). */
static char *run(const char *path, int *status)
{
	char *text = malloc(1 << 16);
	FILE *p = popen(path, "r");
	size_t n;

	ck_assert(text && p);
	n = fread(text, 1, (1 << 16) - 1, p);
	text[n] = '\0';
	*status = pclose(p);
	return text;
}

static void does_the_same(const struct fixture *f)
{
	int want_status, status;
	char *want = run(f->path, &want_status), *text = run(out_path, &status);

	ck_assert_str_eq(text, want);
	ck_assert_int_eq(status, want_status);
	ck_assert_uint_gt(strlen(want), 10);
	free(want);
	free(text);
}

FIXTURE(NULL, fixture_done);

TEST(optimize_writes_programs_that_do_the_same)
{
	for (size_t i = 0; i < NR_LINKS; i++) {
		char flags[128];
		struct fixture f;

		snprintf(flags, sizeof(flags), "-O2 %s", links[i]);
		build(&f, flags);
		for (uint64_t seed = 0; seed < 6; seed++) {
			struct me_optimize_options options = {.input = f.path,
							      .output = out_path,
							      .all = true,
							      .stress = seed,
							      .stress_seed = seed};
			AUTO(me_optimize_report_fini) struct me_optimize_report r = {0};
			int rc = me_optimize(&options, &r, &err);

			ck_assert_msg(rc == 0, "%s: %s", links[i], err.msg);
			does_the_same(&f);
			ck_assert_uint_gt(r.nr_moved, 10);
		}
		unlink(out_path);
		fixture_free(&f);
	}
}

TEST(optimize_accounts_for_every_function)
{
	struct me_optimize_report r;
	uint32_t refused = 0, problems = 0;
	struct stat st;

	build(&f, "-O2 -no-pie");
	struct me_optimize_options options = {.input = f.path, .output = out_path, .all = true};

	ck_assert_int_eq(me_optimize(&options, &r, &err), 0);
	for (int i = 0; i < ME_NR_REFUSALS; i++)
		refused += r.refused[i];
	for (int i = 0; i < MP_NR_PROBLEMS; i++)
		problems += r.problems[i];
	ck_assert_uint_eq(r.nr_considered, r.nr_funcs);
	ck_assert_uint_eq(r.nr_considered, r.nr_moved + refused + r.nr_not_worth);
	ck_assert_uint_eq(problems, r.refused[ME_REFUSED_PROBLEM]);
	ck_assert_uint_eq(r.nr_left_alone, refused);
	for (uint32_t i = 0; i < r.nr_left_alone; i++) {
		ck_assert_ptr_nonnull(r.left_alone[i].why);
		if (i)
			ck_assert_uint_gt(r.left_alone[i].vaddr, r.left_alone[i - 1].vaddr);
	}
	/* Blocks are cut behind calls through slots. */
	ck_assert_uint_ge(r.verified.nr_pieces, r.nr_blocks);
	ck_assert_uint_le(r.verified.nr_pieces - r.nr_blocks, r.emitted.nr_via_slot);
	ck_assert_uint_eq(r.verified.nr_via_slot, r.emitted.nr_via_slot);
	ck_assert_uint_eq(r.emitted.patches.nr_patches, r.verified.nr_patches);
	ck_assert_uint_eq(r.emitted.patches.nr_patches + r.emitted.patches.nr_unpatched,
			  r.nr_blocks);
	ck_assert_uint_eq(r.old_size, f.elf->size);
	ck_assert_int_eq(stat(out_path, &st), 0);
	ck_assert_uint_eq(r.new_size, (uint64_t)st.st_size);
	ck_assert_uint_gt(r.peak_rss_bytes, 0);
	ck_assert(!r.has_prediction);
	me_optimize_report_fini(&r);
	unlink(out_path);
}

/* Stores samples in the first block of @func. */
static void put_profile(const struct fixture *f, const char *db, const char *func, uint64_t samples)
{
	struct mp_ip_count count = {.vaddr = fixture_vaddr(f, func), .count = samples};
	struct mp_store *store;
	int64_t key;

	unlink(db);
	ck_assert_msg(mp_store_open(db, MP_STORE_WRITE, &store, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(mp_store_begin(store, &err), 0);
	ck_assert_int_eq(mp_store_put_module(store, &f->elf->id, MP_MODULE_FILE, f->path, 4096,
					     1000000, &key, &err),
			 0);
	ck_assert_int_eq(mp_store_add_ip_counts(store, key, 1000000, &count, 1, &err), 0);
	ck_assert_int_eq(mp_store_commit(store, &err), 0);
	mp_store_close(store);
}

/* Optimises by samples and a path in main, with @estimator. */
static void follow_paths(const struct fixture *f, const char *db, enum mp_estimator estimator,
			 struct me_optimize_report *r)
{
	struct me_optimize_options options = {.input = f->path,
					      .output = out_path,
					      .db = db,
					      .min_samples = MP_MIN_SAMPLES,
					      .estimator = estimator,
					      .layout = {.block_order = ME_ORDER_PH,
							 .function_order = MP_ORDER_PH}};

	ck_assert_msg(me_optimize(&options, r, &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(r->samples, 5000);
}

TEST(optimize_follows_paths_of_the_store)
{
	struct mp_varint_writer w = {0};
	struct me_optimize_report r;
	struct mp_store *store;
	struct mp_module module;
	struct mp_path_count paths[2];
	char db[320];

	build(&f, "-O2 -no-pie");
	snprintf(db, sizeof(db), "%s.db", f.path);
	put_profile(&f, db, "main", 5000);
	mp_varint_put(&w, 0);
	mp_varint_put_signed(&w, (int64_t)fixture_vaddr(&f, "main"));
	/* One path into main, and one along an edge that this file does not have. */
	paths[0] = (struct mp_path_count){w.bytes, (uint32_t)w.size, 700};
	paths[1] = (struct mp_path_count){(const uint8_t *)"\x10\x10", 2, 11};
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), 0);
	ck_assert_int_eq(mp_store_find_module(store, &f.elf->id, &module, &err), 0);
	ck_assert_int_eq(mp_store_begin(store, &err), 0);
	ck_assert_int_eq(mp_store_add_paths(store, module.key, 1000000, paths, 2, &err), 0);
	ck_assert_int_eq(mp_store_commit(store, &err), 0);
	mp_store_close(store);
	free(module.path);
	free(w.bytes);
	follow_paths(&f, db, MP_ESTIMATE_PATHS, &r);
	ck_assert_uint_eq(r.paths, 711);
	ck_assert_uint_eq(r.paths_strange, 11);
	ck_assert_uint_eq(r.inference.nr_by_paths, 1);
	me_optimize_report_fini(&r);
	does_the_same(&f);
	unlink(out_path);
	follow_paths(&f, db, MP_ESTIMATE_POISSON, &r);
	ck_assert_uint_eq(r.paths, 0);
	ck_assert_uint_eq(r.inference.nr_by_paths, 0);
	me_optimize_report_fini(&r);
	unlink(out_path);
	unlink(db);
}

TEST(optimize_moves_what_has_samples)
{
	struct me_optimize_report r;
	struct mp_elf *out;
	char db[320];

	build(&f, "-O2 -no-pie");
	snprintf(db, sizeof(db), "%s.db", f.path);
	put_profile(&f, db, "biased", 5000);
	struct me_optimize_options options = {.input = f.path,
					      .output = out_path,
					      .db = db,
					      .min_samples = MP_MIN_SAMPLES,
					      .layout = {.block_order = ME_ORDER_PH,
							 .function_order = MP_ORDER_PH}};

	ck_assert_msg(me_optimize(&options, &r, &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(r.samples, 5000);
	ck_assert_uint_eq(r.samples_moved, 5000);
	ck_assert_uint_ge(r.nr_moved, 1);
	ck_assert_uint_lt(r.nr_moved, r.nr_funcs);
	ck_assert(r.has_prediction);
	me_optimize_report_fini(&r);
	does_the_same(&f);
	ck_assert_int_eq(mp_elf_open(out_path, MP_ELF_ALL, &out, &err), 0);
	ck_assert_ptr_nonnull(mp_elf_section(out, ".morph.text"));
	mp_elf_close(out);
	unlink(out_path);

	/* Samples from before the period, too few, none at all, no store. */
	options.since_s = 1000000 + 10 * 86400;
	ck_assert_int_eq(me_optimize(&options, &r, &err), -ENODATA);
	me_optimize_report_fini(&r);
	options.since_s = 0;
	options.min_samples = 5001;
	ck_assert_int_eq(me_optimize(&options, &r, &err), -ENODATA);
	ck_assert_ptr_nonnull(strstr(err.msg, "5000 samples"));
	me_optimize_report_fini(&r);
	options.min_samples = 1;
	options.db = "/nowhere/morph.db";
	ck_assert_int_eq(me_optimize(&options, &r, &err), -ENODATA);
	me_optimize_report_fini(&r);
	ck_assert(!exists(out_path));
	unlink(db);
	strcat(db, "-wal");
	unlink(db);
	strcpy(db + strlen(db) - 3, "shm");
	unlink(db);
	strcpy(db + strlen(db) - 4, ".lock");
	unlink(db);
}

TEST(optimize_dry_run_keeps_nothing)
{
	struct me_optimize_report r;
	char dir[] = "/tmp/morph-dry-XXXXXX";

	build(&f, "-O2 -no-pie");
	struct me_optimize_options options = {.input = f.path, .all = true};

	ck_assert_ptr_nonnull(mkdtemp(dir));
	setenv("TMPDIR", dir, 1);
	ck_assert_msg(me_optimize(&options, &r, &err) == 0, "%s", err.msg);
	ck_assert_uint_gt(r.verified.nr_pieces, 0);
	ck_assert_uint_gt(r.new_size, 0);
	me_optimize_report_fini(&r);
	/* rmdir() fails if the directory is not empty. */
	ck_assert_int_eq(rmdir(dir), 0);
}

TEST(optimize_refuses_its_own_output)
{
	struct me_optimize_report r;
	char again[320];

	build(&f, "-O2");
	snprintf(again, sizeof(again), "%s.again", f.path);
	struct me_optimize_options options = {.input = f.path, .output = out_path, .all = true};

	ck_assert_int_eq(me_optimize(&options, &r, &err), 0);
	me_optimize_report_fini(&r);
	options.input = out_path;
	options.output = again;
	ck_assert_int_eq(me_optimize(&options, &r, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, out_path));
	ck_assert_ptr_nonnull(strstr(err.msg, "already optimised"));
	me_optimize_report_fini(&r);
	ck_assert(!exists(again));
	unlink(out_path);
}

TEST(optimize_finds_nothing_to_move_in_an_empty_program)
{
	struct me_optimize_report r;

	fixture_build(&f, "assembler", "-nostdlib -Wl,-e,start",
		      ".globl start\nstart: .cfi_startproc\n mov d(%rip), %eax\n hlt\n"
		      " .cfi_endproc\n.data\nd: .quad 0\n");
	snprintf(out_path, sizeof(out_path), "%s.out", f.path);
	struct me_optimize_options options = {.input = f.path, .output = out_path, .all = true};

	ck_assert_int_eq(me_optimize(&options, &r, &err), -ENODATA);
	ck_assert(r.nothing_to_move);
	ck_assert_uint_eq(r.nr_left_alone, 1);
	me_optimize_report_fini(&r);
	ck_assert(!exists(out_path));
}

TEST(optimize_fails_on_files_that_are_none)
{
	static const char *const inputs[] = {"/nowhere/prog", "/dev/null", "/etc/passwd", "/tmp"};

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		struct me_optimize_options options = {
			.input = inputs[i], .output = "/tmp/morph-none", .all = true};
		struct me_optimize_report r;
		struct mp_err err = {""};
		int rc = me_optimize(&options, &r, &err);

		ck_assert_msg(rc < 0 && rc != -ENODATA && rc != -EPERM, "%s: %d", inputs[i], rc);
		ck_assert_msg(strstr(err.msg, inputs[i]) != NULL, "'%s' names no %s", err.msg,
			      inputs[i]);
		me_optimize_report_fini(&r);
		ck_assert(!exists("/tmp/morph-none"));
	}
}
