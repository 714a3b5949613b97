// SPDX-License-Identifier: Apache-2.0
/* compilations_report - writes a comparison of compilations in words. */
#include "editor/compilations/compilations_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/compilations/compilations_rows.h"
#include "libprof/base/text.h"

/* Names of a region that are shown at most. */
#define NAMES_MAX 6

static void put_name(FILE *out, const char *name, size_t len)
{
	char text[256];

	snprintf(text, sizeof(text), "%.*s", (int)(len < 250 ? len : 250), name);
	mp_text_put(out, text);
}

static const char *base_of(const char *path, int len, int *base_len)
{
	const char *slash = memrchr(path, '/', (size_t)len);

	*base_len = slash ? len - (int)(slash + 1 - path) : len;
	return slash ? slash + 1 : path;
}

static void put_marker(FILE *out, const struct me_region_marker *m)
{
	const char *file;
	int len;

	if (!m->placed) {
		mp_text_put(out, m->name);
		return;
	}
	file = base_of(m->place.file, m->place.file_len, &len);
	put_name(out, file, (size_t)len);
	fprintf(out, ":%d ", m->place.line);
	put_name(out, m->place.function, (size_t)m->place.function_len);
	if (m->place.function_len == 1 && m->place.function[0] == '-') {
		fputc(' ', out);
		mp_text_put(out, m->name);
	}
}

static void put_markers(FILE *out, const struct me_compilations *r,
			const struct me_compilations_row *row)
{
	unsigned int nr = 0;

	if (row->marker != MP_NONE)
		put_marker(out, &r->regions.markers[row->marker]);
	for (uint32_t i = 0; i < r->regions.nr_markers; i++) {
		const struct me_region_marker *m = &r->regions.markers[i];

		if (m->region[ME_DIVISION_LOOPS] != row->region || i == row->marker ||
		    !(m->total[ME_OLD] + m->total[ME_NEW]))
			continue;
		if (nr++ < NAMES_MAX) {
			fputs(nr == 1 && row->marker == MP_NONE ? "" : ", ", out);
			put_marker(out, m);
		}
	}
	if (nr > NAMES_MAX)
		fprintf(out, ", %u more", nr - NAMES_MAX);
}

static void put_functions(FILE *out, const struct me_compilations *r,
			  const struct me_compilations_row *row)
{
	unsigned int nr = 0;

	if (row->function != MP_NONE)
		mp_text_put(out, r->regions.functions[row->function].name);
	for (uint32_t i = 0; i < r->regions.nr_functions; i++) {
		const struct me_region_function *f = &r->regions.functions[i];

		if (f->region[ME_DIVISION_FUNCTIONS] != row->region || i == row->function)
			continue;
		if (nr++ < NAMES_MAX) {
			fputs(nr == 1 ? " with " : ", ", out);
			mp_text_put(out, f->name);
		}
	}
	if (nr > NAMES_MAX)
		fprintf(out, ", %u more", nr - NAMES_MAX);
}

/* Nothing or, for a region that was tested, the estimate and its bounds. */
static void put_effect(FILE *out, const struct me_region_test *c)
{
	if (!c->tested)
		fprintf(out, "%24s", "");
	else if (isfinite(c->lowest) && isfinite(c->highest))
		fprintf(out, "%7.3f (%6.3f to %6.3f)", exp(mp_seq_estimate(&c->seq)),
			exp(c->lowest), exp(c->highest));
	else
		fprintf(out, "%7.3f %16s", exp(mp_seq_estimate(&c->seq)), "(too few pairs)");
}

static void put_row(FILE *out, const struct me_compilations *r, int division,
		    const struct me_compilations_row *row)
{
	bool round = division == ME_DIVISION_LOOPS;
	const struct me_region_test *c = row->result;

	fprintf(out, "  %-10s %5.1f %% ",
		c->tested ? me_region_verdict_name(c->verdict) : "other work", 100 * row->share);
	for (int b = 0; b < ME_NR_BUILDS; b++) {
		if (round && row->marker != MP_NONE)
			fprintf(out, "%10.3f", row->round_ns[b]);
		else if (round)
			fprintf(out, "%10s", "-");
		else
			fprintf(out, "%10.2f", 1e3 * row->seconds[b]);
	}
	fputs("  ", out);
	put_effect(out, c);
	fputs("  ", out);
	if (round)
		put_markers(out, r, row);
	else
		put_functions(out, r, row);
	fputc('\n', out);
}

static int put_division(FILE *out, const struct me_compilations *r, int division)
{
	static const char *const titles[] = {
		[ME_DIVISION_FUNCTIONS] =
			"functions, with what either compilation inlined; ms of a run",
		[ME_DIVISION_LOOPS] = "loops; ns of a round",
	};
	struct me_compilations_row *rows;
	size_t nr;
	int rc = me_compilations_rows(r, division, &rows, &nr);

	if (rc)
		return rc;
	if (nr)
		fprintf(out, "\n%s\n  %-10s %7s %9s %9s  %24s\n", titles[division], "new is",
			"time", "old", "new", "times as fast");
	for (size_t i = 0; i < nr; i++)
		put_row(out, r, division, &rows[i]);
	free(rows);
	return 0;
}

static void put_other_work(FILE *out, const struct me_compilations *r)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->regions.nr_markers; i++) {
		const struct me_region_marker *m = &r->regions.markers[i];

		if (me_compilations_agree(m))
			continue;
		if (!nr)
			fputs("\nother work: rounds of the old and of the new compilation\n", out);
		if (nr++ >= 20)
			continue;
		fprintf(out, "  %12" PRIu64 " %12" PRIu64 "  ", m->total[ME_OLD], m->total[ME_NEW]);
		put_marker(out, m);
		fputc('\n', out);
	}
	if (nr > 20)
		fprintf(out, "  and %" PRIu32 " more\n", nr - 20);
}

static void put_builds(FILE *out, const struct me_compilations *r)
{
	static const char *const names[] = {"old", "new"};
	const struct me_region_test *whole = &r->tests.list[r->tests.nr];

	for (int b = 0; b < ME_NR_BUILDS; b++) {
		const struct me_markers_report *m = &r->markers[b];

		fprintf(out, "  %s %9.2f ms  ", names[b],
			1e3 * me_compilations_seconds(r, whole->samples[b]));
		mp_text_put(out, r->builds[b].path);
		fprintf(out,
			": %" PRIu32 " markers, %" PRIu32 " of %" PRIu32 " accesses left out\n",
			m->nr_markers, m->nr_removed, m->nr_accesses);
	}
}

static void put_verdict(FILE *out, const struct me_compilations *r)
{
	uint32_t nr[ME_NR_DIVISIONS] = {0};

	for (uint32_t i = 0; i < r->tests.nr; i++)
		if (r->tests.list[i].tested && r->tests.list[i].verdict == ME_REGION_SLOWER)
			nr[i < r->regions.nr[ME_DIVISION_FUNCTIONS] ? ME_DIVISION_FUNCTIONS
								    : ME_DIVISION_LOOPS]++;
	fprintf(out, "\n%s: the new compilation as a whole",
		me_region_verdict_name(r->tests.list[r->tests.nr].verdict));
	if (nr[ME_DIVISION_FUNCTIONS] + nr[ME_DIVISION_LOOPS])
		fprintf(out, "; slower: %" PRIu32 " function%s and %" PRIu32 " loop%s",
			nr[ME_DIVISION_FUNCTIONS], nr[ME_DIVISION_FUNCTIONS] == 1 ? "" : "s",
			nr[ME_DIVISION_LOOPS], nr[ME_DIVISION_LOOPS] == 1 ? "" : "s");
	else
		fputs("; no function and no loop was shown to be slower", out);
	fputc('\n', out);
}

void me_compilations_print(const struct me_compilations *r, FILE *out)
{
	const struct me_region_test *whole = &r->tests.list[r->tests.nr];

	if (r->differs) {
		fprintf(out, "output differs: %s\n", r->difference);
		return;
	}
	fprintf(out, "user time of one run, without markers, mean of %zu pair%s, in %.1f s\n\n",
		r->nr_pairs, r->nr_pairs == 1 ? "" : "s", r->seconds);
	put_builds(out, r);
	fputs("\n  new is ", out);
	put_effect(out, whole);
	fprintf(out, " times as fast\n  %g %% of all intervals together are right\n",
		100 * (1 - r->tests.alpha));
	if (put_division(out, r, ME_DIVISION_FUNCTIONS) || put_division(out, r, ME_DIVISION_LOOPS))
		fputs("out of memory\n", out);
	put_other_work(out, r);
	put_verdict(out, r);
}

bool me_compilations_is_better(const struct me_compilations *r)
{
	for (uint32_t i = 0; i < r->tests.nr; i++)
		if (r->tests.list[i].tested && r->tests.list[i].verdict == ME_REGION_SLOWER)
			return false;
	return !r->differs && r->tests.list[r->tests.nr].verdict == ME_REGION_FASTER;
}
