// SPDX-License-Identifier: Apache-2.0
/* test_audit_export - the files that an audit writes for other tools, and reads to continue. */
#include <fcntl.h>
#include <math.h>

#include "editor/audit/audit_export.h"
#include "editor/audit/audit_report.h"
#include "editor/base/shell_words.h"
#include "tests/unit/files.h"

#define HEAD "pair,a_ns,b_ns,speedup,metric,a_hash,b_hash\n"
#define ROW1 "1,110,100,1.100000,cpu,00000000000000aa,ffffffffffffffff\n"
#define ROW2 "2,121,100,1.210000,cpu,00000000000000aa,ffffffffffffffff\n"

static char path[] = "/tmp/audit-export.XXXXXX";

static void setup(void)
{
	int fd;

	strcpy(path, "/tmp/audit-export.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	unlink(path);
}

static int read_back(const char *text, struct me_audit_pairs *pairs)
{
	struct mp_err err = {""};
	int rc;

	write_text(path, text);
	rc = me_audit_read_csv(path, pairs, &err);
	ck_assert_int_eq(!rc, !err.msg[0]);
	return rc;
}

static const struct me_metric cpu = {.kind = ME_METRIC_CPU};

static char *printed(void (*print)(const struct me_audit_opts *, const struct me_audit *, FILE *),
		     enum me_audit_verdict verdict, const struct me_metric *metric)
{
	double a[] = {110, 121}, b[] = {100, 100};
	struct me_audit_opts opts = {.a = "a|b`c\n", .b = "new", .metric = *metric};
	struct me_audit audit = {.verdict = verdict,
				 .nr_pairs = 2,
				 .a = {a, 115.5},
				 .b = {b, 100},
				 .lo = -INFINITY,
				 .hi = INFINITY,
				 .a_hash = 0xaa,
				 .b_hash = UINT64_MAX};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	mp_seq_init(&audit.seq, 0.01);
	print(&opts, &audit, out);
	fclose(out);
	return text;
}

FIXTURE(setup, teardown);

TEST(csv_is_read_as_it_was_written)
{
	AUTO_FREE char *text = printed(me_audit_print_csv, ME_AUDIT_UNDECIDED, &cpu);
	AUTO(me_audit_pairs_fini) struct me_audit_pairs pairs = {0};

	ck_assert_str_eq(text, HEAD ROW1 ROW2);
	ck_assert_int_eq(read_back(text, &pairs), 0);
	ck_assert_uint_eq(pairs.nr, 2);
	ck_assert(pairs.a[1] == 121);
	ck_assert(pairs.b[0] == 100);
	ck_assert_str_eq(pairs.unit, "ns");
	ck_assert_uint_eq(pairs.a_hash, 0xaa);
	ck_assert_uint_eq(pairs.b_hash, UINT64_MAX);
	ck_assert_str_eq(pairs.metric, "cpu");
}

/* A pattern may hold what separates cells. */
TEST(csv_of_a_pattern_is_read_as_it_was_written)
{
	AUTO(me_metric_fini) struct me_metric metric = {.unit = "requests/s"};
	AUTO(me_audit_pairs_fini) struct me_audit_pairs pairs = {0};
	AUTO_FREE char *text = NULL;

	ck_assert_int_eq(me_metric_parse(&metric, "/\"tps\", ([0-9,.]+)/", &err), 0);
	text = printed(me_audit_print_csv, ME_AUDIT_UNDECIDED, &metric);
	ck_assert_str_eq(text, "pair,a,b,speedup,metric,a_hash,b_hash,unit\n"
			       "1,110,100,0.909091,\"/\"\"tps\"\", ([0-9,.]+)/\","
			       "00000000000000aa,ffffffffffffffff,requests/s\n"
			       "2,121,100,0.826446,\"/\"\"tps\"\", ([0-9,.]+)/\","
			       "00000000000000aa,ffffffffffffffff,requests/s\n");
	ck_assert_int_eq(read_back(text, &pairs), 0);
	ck_assert_uint_eq(pairs.nr, 2);
	ck_assert_str_eq(pairs.metric, me_metric_name(&metric));
	ck_assert_str_eq(pairs.unit, "requests/s");
}

TEST(csv_of_something_else_is_refused)
{
	static const char *const bad[] = {
		"",
		"pair,a,b\n",
		HEAD "1,110,100,1.1,cpu,aa\n",
		HEAD "1,110,100,1.1,luck,aa,bb\n",
		HEAD "1,0,100,1.1,cpu,aa,bb\n",
		HEAD "2,110,100,1.1,cpu,aa,bb\n",		/* a pair is missing */
		HEAD "1,110,100,1.1,cpu,aa,bb,cc\n",		/* too many cells */
		HEAD ROW1 "2,1,1,1,wall,aa,ffffffffffffffff\n", /* another metric */
		HEAD ROW1 "2,1,1,1,cpu,ab,ffffffffffffffff\n",	/* another program */
		HEAD ROW1 ROW1,
		HEAD "1,nan,100,1.1,cpu,aa,bb\n",
		HEAD "1,1,1e300,1.1,cpu,aa,bb\n",
		HEAD "1,110,100,1.1,/x (1)/,aa,bb\n", /* no time */
		"pair,a,b,speedup,metric,a_hash,b_hash,unit\n1,1,1,1,\"/x,aa,bb,\n",
		"pair,a,b,speedup,metric,a_hash,b_hash,unit\n1,1,1,1,\"/x\"y,aa,bb,\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO(me_audit_pairs_fini) struct me_audit_pairs pairs = {0};

		ck_assert_msg(read_back(bad[i], &pairs) == -EINVAL, "%zu: %s", i, bad[i]);
	}
}

FIXTURE(NULL, NULL);

TEST(markdown_keeps_a_path_in_its_cell)
{
	AUTO_FREE char *text = printed(me_audit_print_markdown, ME_AUDIT_UNDECIDED, &cpu);

	ck_assert_ptr_nonnull(strstr(text, "| A | `a\\|b?c?` | 0.000 | 0.000 | 0.000 | 1 | |\n"));
	ck_assert_ptr_nonnull(strstr(text, "Verdict: undecided, by cpu time, after 2 pairs"));
}

/* Each row has as many cells as the header, even if values are unknown. */
TEST_RANGE(markdown_has_seven_cells_in_each_row, ME_AUDIT_FASTER, ME_AUDIT_DIFFERS + 1)
{
	AUTO_FREE char *text = printed(me_audit_print_markdown, (enum me_audit_verdict)_i, &cpu);
	char *line = strtok(text, "\n");

	for (int row = 0; row < 4; row++, line = strtok(NULL, "\n")) {
		int nr = 0;

		for (const char *c = line; *c; c++)
			nr += *c == '|' && (c == line || c[-1] != '\\');
		ck_assert_msg(nr == 8, "%d: %s", nr, line);
	}
}

TEST(progress_lines_come_as_often_as_they_may)
{
	struct me_audit_lines lines = {.every_s = 1000};
	AUTO(mp_seq_fini) struct mp_seq seq = {0};
	AUTO_FREE char *text = NULL;
	size_t size;

	mp_seq_init(&seq, 0.01);
	lines.out = open_memstream(&text, &size);
	me_audit_progress_line(&seq, &lines);
	me_audit_progress_line(&seq, &lines);
	fflush(lines.out);
	ck_assert_uint_eq(size, 0);
	lines.last_s -= 1000;
	me_audit_progress_line(&seq, &lines);
	me_audit_progress_line(&seq, &lines);
	ck_assert_str_eq(text, "morph-audit: 0 s: warming up\n");
	ck_assert_int_eq(mp_seq_add(&seq, 0), 0);
	lines.last_s -= 1000;
	me_audit_progress_line(&seq, &lines);
	ck_assert_ptr_nonnull(strstr(text, "1 pair: B 1.000 times as fast\n"));
	fclose(lines.out);
}

TEST(words_are_what_the_shell_reads)
{
	char *words[] = {(char *)"sh", (char *)"-c", (char *)"it's \"$HOME\"", (char *)"", NULL};
	AUTO_FREE char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	me_shell_words(out, words);
	fclose(out);
	ck_assert_str_eq(text, " sh -c 'it'\\''s \"$HOME\"' ''");
}
