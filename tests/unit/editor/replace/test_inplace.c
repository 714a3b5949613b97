// SPDX-License-Identifier: Apache-2.0
/* test_inplace - optimise in place, optimise again, restore; and refusals. */
#include "tests/unit/suite.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "editor/replace/inplace.h"
#include "libprof/base/newfile.h"
#include "tests/unit/edit_fixture.h"

static char dir[256], backups[280], prog[280];
static struct me_digest original;

static const char source[] =
	"#include <stdio.h>\n"
	"__attribute__((noinline)) int f(int x) { return x > 3 ? x * 2 : x; }\n"
	"int main(int argc, char **argv) { (void)argv;\n"
	"for (int i = 0; i < 9; i++) argc += f(i);\n"
	"printf(\"%d\\n\", argc); return 0; }\n";

/* @format has three %s. */
static void shell(const char *format, const char *a)
{
	char command[900];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(command, sizeof(command), format, a, a, a);
#pragma GCC diagnostic pop
	ck_assert_msg(system(command) == 0, "%s", command);
}

static void digest_of(const char *path, struct me_digest *out)
{
	int fd = open(path, O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(me_digest_copy(fd, -1, out, NULL), 0);
	close(fd);
}

static bool is_original(void)
{
	struct me_digest now;

	digest_of(prog, &now);
	return me_digest_equal(&now, &original);
}

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");
	struct fixture f;

	snprintf(dir, sizeof(dir), "%s/test_inplace.XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(backups, sizeof(backups), "%s/bk", dir);
	snprintf(prog, sizeof(prog), "%s/prog", dir);
	fixture_compile(&f, "c", "-O1 -Wl,--emit-relocs", source);
	ck_assert_int_eq(rename(f.path, prog), 0);
	digest_of(prog, &original);
}

static void teardown(void)
{
	shell("rm -rf %s # %s %s", dir);
}

static int optimise(uint64_t seed, struct me_inplace_report *done, struct mp_err *err)
{
	struct me_optimize_options o = {
		.input = prog, .all = true, .stress = seed, .stress_seed = seed};
	struct me_inplace_options place = {.backup_dir = backups};
	AUTO(me_optimize_report_fini) struct me_optimize_report report = {0};
	int rc;

	err->msg[0] = '\0';
	rc = me_inplace(&o, &place, &report, done, err);
	ck_assert_ptr_eq(report.in_place, done);
	return rc;
}

static void optimises(uint64_t seed)
{
	struct me_inplace_report done;
	int rc = optimise(seed, &done, &err);

	ck_assert_msg(rc == 0, "%s", err.msg);
	ck_assert_ptr_nonnull(done.backup);
	me_inplace_report_fini(&done);
	ck_assert(!is_original());
	shell("test \"$(%s)\" = 67 # %s %s", prog);
}

static void refused(uint64_t seed, const char *text)
{
	struct me_inplace_report done;
	struct me_digest before, after;

	digest_of(prog, &before);
	ck_assert_int_eq(optimise(seed, &done, &err), -EPERM);
	ck_assert_msg(strstr(err.msg, text) != NULL, "'%s' is not in: %s", text, err.msg);
	ck_assert_ptr_null(done.backup);
	me_inplace_report_fini(&done);
	digest_of(prog, &after);
	ck_assert(me_digest_equal(&before, &after));
}

static int restore(struct mp_err *err)
{
	struct me_inplace_options place = {.backup_dir = backups};
	AUTO(me_inplace_report_fini) struct me_inplace_report done = {0};
	int rc;

	err->msg[0] = '\0';
	rc = me_restore(prog, &place, &done, err);
	return rc;
}

static void not_restored(const char *text)
{
	struct me_digest before, after;

	digest_of(prog, &before);
	ck_assert_int_eq(restore(&err), -EPERM);
	ck_assert_msg(strstr(err.msg, text) != NULL, "'%s' is not in: %s", text, err.msg);
	digest_of(prog, &after);
	ck_assert(me_digest_equal(&before, &after));
}

FIXTURE(setup, teardown);

TEST(inplace_goes_there_and_back)
{
	struct stat before, after;

	ck_assert_int_eq(stat(prog, &before), 0);
	optimises(0);
	ck_assert_msg(!restore(&err), "%s", err.msg);
	ck_assert(is_original());
	ck_assert_int_eq(stat(prog, &after), 0);
	ck_assert_int_eq(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
	ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	ck_assert_int_eq(before.st_mode, after.st_mode);
	not_restored("not an output of Morph");
}

/* A killed worker may have left it; it hinders nobody meanwhile. */
TEST(inplace_removes_the_kept_version_when_it_restores)
{
	char base[MP_NEW_NAME_MAX], kept[sizeof(dir) + sizeof(base)];

	mp_kept_name(strrchr(prog, '/') + 1, base);
	snprintf(kept, sizeof(kept), "%s/%s", dir, base);
	ck_assert(!link(prog, kept));
	optimises(1);
	ck_assert(!access(kept, F_OK));
	ck_assert_msg(!restore(&err), "%s", err.msg);
	ck_assert(is_original());
	ck_assert(access(kept, F_OK));
}

TEST(inplace_works_from_the_original_again)
{
	struct me_inplace_report done;
	struct me_digest there, again;

	optimises(1);
	digest_of(prog, &there);
	optimises(2);
	digest_of(prog, &again);
	ck_assert(!me_digest_equal(&there, &again));
	optimises(1);
	digest_of(prog, &again);
	ck_assert(me_digest_equal(&there, &again)); /* not an output of an output */
	ck_assert_msg(!optimise(1, &done, &err), "%s", err.msg);
	ck_assert(done.unchanged);
	ck_assert(done.was_output);
	ck_assert_ptr_null(done.backup);
	me_inplace_report_fini(&done);
	ck_assert_int_eq(restore(&err), 0);
	ck_assert(is_original());
}

TEST(inplace_restores_no_older_version)
{
	struct fixture f;

	optimises(1);
	/* The file was replaced by a script, another program, or a newer version. */
	shell("printf '#!/bin/sh\\n' > %s.up && mv %s.up %s", prog);
	not_restored("not an output of Morph");
	shell("cp /bin/true %s.up && mv %s.up %s", prog);
	not_restored("not an output of Morph");
	fixture_compile(&f, "c", "-O2 -Wl,--emit-relocs", source);
	ck_assert_int_eq(rename(f.path, prog), 0);
	not_restored("not an output of Morph");
	/* An output of the newer version that was not made in place. */
	digest_of(prog, &original);
	struct me_optimize_options o = {.input = prog, .output = f.path, .all = true};
	struct me_optimize_report report;

	ck_assert_msg(!me_optimize(&o, &report, &err), "%s", err.msg);
	me_optimize_report_fini(&report);
	ck_assert_int_eq(rename(f.path, prog), 0);
	not_restored("there is no backup");
	refused(2, "there is no backup");
}

TEST(inplace_restores_stripped_outputs)
{
	optimises(1);
	shell("strip %s && test \"$(%s)\" = 67 # %s", prog);
	ck_assert_msg(!restore(&err), "%s", err.msg);
	ck_assert(is_original());
}

TEST(inplace_refuses_without_a_good_backup)
{
	optimises(1);
	shell("chmod u+w %s/*/*; for f in %s/*/*; do case $f in *.json) ;; *) "
	      "printf X | dd of=$f bs=1 seek=5000 conv=notrunc status=none ;; esac; done # %s",
	      backups);
	not_restored("is damaged");
	refused(2, "is damaged");
	shell("rm -r %s # %s %s", backups);
	not_restored("there is no backup");
	refused(2, "there is no backup");
}

TEST(inplace_refuses_what_checks_itself)
{
	shell("touch %s/.prog.hmac # %s %s", dir);
	refused(1, ".prog.hmac");
	shell("rm %s/.prog.hmac; echo archive >> %s/prog # %s", dir);
	refused(1, "behind its last section");
	ck_assert_int_eq(access(backups, F_OK), -1);
}
