// SPDX-License-Identifier: Apache-2.0
/* program_audit - one test for each function of a program; see program_audit.h. */
#include "libprof/audit/program_audit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct function {
	struct mp_effect_test test;
	enum mp_audit_verdict earlier;
	/* the bounds as last computed, from so many differences */
	double lowest, highest;
	size_t nr_bounds;
};

struct mp_program_audit {
	uint32_t nr_functions;
	double alpha;
	struct mp_window_pairs *pairs;
	struct function functions[];
};

struct mp_program_audit *mp_program_audit_new(uint32_t nr_functions, double alpha)
{
	struct mp_program_audit *audit;

	if (!nr_functions || nr_functions > MP_AUDIT_MAX_FUNCTIONS)
		return NULL;
	audit = calloc(1, sizeof(*audit) + nr_functions * sizeof(audit->functions[0]));
	if (!audit)
		return NULL;
	audit->pairs = mp_window_pairs_new(nr_functions);
	if (!audit->pairs) {
		free(audit);
		return NULL;
	}
	audit->nr_functions = nr_functions;
	audit->alpha = alpha;
	for (uint32_t f = 0; f < nr_functions; f++) {
		mp_effect_init(&audit->functions[f].test, alpha / nr_functions);
		audit->functions[f].lowest = -INFINITY;
		audit->functions[f].highest = INFINITY;
	}
	return audit;
}

void mp_program_audit_free(struct mp_program_audit *audit)
{
	if (!audit)
		return;
	for (uint32_t f = 0; f < audit->nr_functions; f++)
		mp_effect_fini(&audit->functions[f].test);
	mp_window_pairs_free(audit->pairs);
	free(audit);
}

void mp_program_audit_set_earlier(struct mp_program_audit *audit, uint32_t function,
				  enum mp_audit_verdict verdict)
{
	if (function < audit->nr_functions &&
	    (verdict == MP_AUDIT_VERDICT_A || verdict == MP_AUDIT_VERDICT_B))
		audit->functions[function].earlier = verdict;
}

enum mp_audit_verdict mp_program_audit_verdict(const struct mp_program_audit *audit,
					       uint32_t function)
{
	const struct function *f = &audit->functions[function];

	return f->earlier ? f->earlier : mp_effect_verdict(&f->test);
}

int mp_program_audit_add(struct mp_program_audit *audit, const struct mp_audit_record *record,
			 uint32_t *function)
{
	struct mp_pair pair;
	int ret;

	*function = UINT32_MAX;
	if (!mp_window_pairs_add(audit->pairs, record, &pair))
		return 0;
	/* Windows that were under way come after the verdict: they change nothing. */
	if (mp_program_audit_verdict(audit, pair.function) != MP_AUDIT_VERDICT_NONE)
		return 0;
	ret = mp_effect_add(&audit->functions[pair.function].test, &pair);
	if (mp_program_audit_verdict(audit, pair.function) != MP_AUDIT_VERDICT_NONE)
		*function = pair.function;
	return ret;
}

void mp_program_audit_break(struct mp_program_audit *audit)
{
	mp_window_pairs_clear(audit->pairs);
}

void mp_program_audit_effect(struct mp_program_audit *audit, uint32_t function, bool exact,
			     struct mp_audit_effect *out)
{
	struct function *f = &audit->functions[function];
	const struct mp_seq *seq = &f->test.seq;

	if (seq->nr != f->nr_bounds && (exact || seq->nr > f->nr_bounds + f->nr_bounds / 16)) {
		mp_seq_interval(seq, &f->lowest, &f->highest);
		f->nr_bounds = seq->nr;
	}
	memset(out, 0, sizeof(*out));
	out->function = function;
	out->pairs = f->test.nr_pairs;
	memcpy(out->drops, mp_window_pairs_drops(audit->pairs, function), sizeof(out->drops));
	out->estimate = mp_seq_estimate(seq);
	out->lowest = f->lowest;
	out->highest = f->highest;
	out->verdict = mp_program_audit_verdict(audit, function);
	out->earlier = f->earlier != MP_AUDIT_VERDICT_NONE;
	out->decided_at = seq->verdict != MP_SEQ_UNDECIDED ? f->test.nr_pairs : 0;
	memcpy(out->points, f->test.points, sizeof(out->points));
	out->nr_points = f->test.nr_points;
}

uint32_t mp_program_audit_nr_functions(const struct mp_program_audit *audit)
{
	return audit->nr_functions;
}

uint64_t mp_program_audit_foreign(const struct mp_program_audit *audit)
{
	return mp_window_pairs_foreign(audit->pairs);
}
