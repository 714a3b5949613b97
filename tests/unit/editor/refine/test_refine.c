// SPDX-License-Identifier: Apache-2.0
/*
 * test_refine - the engine with simulated versions: what was planted is named and repaired, no
 * version is kept that no audit found faster, nothing is tried twice, and the time is kept.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "editor/refine/alternatives.h"
#include "editor/refine/refine.h"
#include "tests/unit/suite.h"

enum {
	NR_FUNCS = 30,
	NR_VERSIONS = 64
};

/* A machine on which versions are lists of adjustments, and time passes as the test says. */
struct world {
	double now_s, run_s;
	uint64_t random;
	/* The function that the layout makes slow, and the ways that repair it. */
	uint32_t slow[2];
	size_t nr_slow;
	double slowness;
	unsigned int repairs;  /* bit 1 << enum me_adjust_kind */
	double gain;	       /* of all other functions by the layout: 1.05 is 5 % */
	bool harmful;	       /* every adjusted function is slower, wherever it lies */
	bool differs;	       /* the output of refined versions differs */
	int sample_rc, row_rc; /* row_rc: of making a version that is only sampled */
	struct {
		char name[32];
		struct me_wishes wishes;
	} versions[NR_VERSIONS];
	size_t nr_versions, nr_made, nr_sampled, nr_audits, nr_alive;
	double alpha_spent;
};

static struct me_refine_func funcs[NR_FUNCS];

static double uniform(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return ((double)(w->random >> 11) + 0.5) / 9007199254740992.0;
}

static double gaussian(struct world *w)
{
	return sqrt(-2 * log(uniform(w))) * cos(2 * M_PI * uniform(w));
}

static const struct me_wishes *wishes_of(struct world *w, const char *name)
{
	for (size_t i = w->nr_versions; i-- > 0;)
		if (!strcmp(w->versions[i].name, name))
			return &w->versions[i].wishes;
	ck_abort_msg("%s: was never made", name);
	return NULL;
}

static double time_of_function(struct world *w, const struct me_wishes *wishes, uint32_t func)
{
	double time = 1000.0 / (func + 1);
	bool slow = false, adjusted = false;

	if (!wishes)
		return time;
	for (size_t i = 0; i < w->nr_slow; i++)
		slow |= w->slow[i] == func;
	for (size_t i = 0; i < wishes->nr; i++)
		if (wishes->list[i].vaddr == funcs[func].vaddr) {
			slow &= !(w->repairs >> wishes->list[i].kind & 1);
			adjusted = wishes->list[i].kind != ME_ADJUST_STAY;
		}
	if (slow || (adjusted && w->harmful))
		return time * w->slowness;
	return time / w->gain;
}

static double time_of(struct world *w, const char *name)
{
	const struct me_wishes *wishes = name ? wishes_of(w, name) : NULL;
	double sum = 0;

	for (uint32_t f = 0; f < NR_FUNCS; f++)
		sum += time_of_function(w, wishes, f);
	return sum;
}

static double fake_now(void *arg)
{
	return ((struct world *)arg)->now_s;
}

static int fake_make(void *arg, const struct me_wishes *wishes, bool may_be_kept, const char *name,
		     struct mp_err *err)
{
	struct world *w = arg;

	if (w->row_rc && !may_be_kept)
		return mp_err_set(err, -w->row_rc, "simulated");
	ck_assert_uint_lt(w->nr_versions, NR_VERSIONS);
	snprintf(w->versions[w->nr_versions].name, sizeof(w->versions[0].name), "%s", name);
	ck_assert_int_eq(me_wishes_copy(&w->versions[w->nr_versions++].wishes, wishes), 0);
	w->nr_made++;
	w->nr_alive++;
	return 0;
}

static int fake_sample(void *arg, const char *name, struct me_sampled *out, struct mp_err *err)
{
	struct world *w = arg;
	const struct me_wishes *wishes = name ? wishes_of(w, name) : NULL;
	double speed = exp(0.03 * gaussian(w));

	if (w->sample_rc)
		return mp_err_set(err, -w->sample_rc, "simulated");
	for (uint32_t f = 0; f < NR_FUNCS; f++) {
		double mean = time_of_function(w, wishes, f) * speed;

		out->counts[f] = (uint64_t)fmax(0, round(mean + sqrt(mean) * gaussian(w)));
		out->whole += out->counts[f];
		if (out->moved)
			out->moved[f] = true;
	}
	w->now_s += w->run_s;
	w->nr_sampled++;
	return 0;
}

/* An audit that is right where the difference is above 2 %, and takes twelve pairs. */
static int fake_audit(void *arg, const char *a, const char *b, double alpha, double limit_s,
		      struct me_verdict *out, struct mp_err *err)
{
	struct world *w = arg;
	double speedup = time_of(w, a) / time_of(w, b);
	const char *verdict = speedup > 1.02 ? "faster" : speedup < 0.98 ? "slower" : "undecided";

	(void)err;
	ck_assert_double_gt(limit_s, 0);
	w->nr_audits++;
	w->alpha_spent += alpha;
	w->now_s += fmin(limit_s, 24 * w->run_s);
	*out = (struct me_verdict){.speedup = speedup,
				   .lowest = speedup * 0.99,
				   .highest = speedup * 1.01,
				   .alpha = alpha,
				   .nr_pairs = 12};
	snprintf(out->verdict, sizeof(out->verdict), "%s", w->differs ? "output differs" : verdict);
	return 0;
}

static void fake_drop(void *arg, const char *name)
{
	(void)wishes_of(arg, name);
	((struct world *)arg)->nr_alive--;
}

static void fake_say(void *arg, const char *what)
{
	(void)arg;
	(void)what;
}

/* Refines version "final" in the world @w. The caller frees @report. */
static void refine(struct world *w, const struct me_wishes *tried, double budget_s,
		   struct me_refine_report *report)
{
	struct me_runner runner = {.arg = w,
				   .now_s = fake_now,
				   .make = fake_make,
				   .sample = fake_sample,
				   .audit = fake_audit,
				   .drop = fake_drop,
				   .say = fake_say};
	struct me_refine_options o = {.runner = &runner,
				      .funcs = funcs,
				      .nr_funcs = NR_FUNCS,
				      .version = "final",
				      .alpha = 0.01,
				      .budget_s = budget_s,
				      .run_s = w->run_s,
				      .make_s = 0.01,
				      .seed = 7};
	struct mp_err err = {""};
	struct me_wishes none = {0};

	for (uint32_t f = 0; f < NR_FUNCS; f++)
		funcs[f] = (struct me_refine_func){"f", 0x401000 + 0x100 * f};
	if (tried)
		o.tried = *tried;
	fake_make(w, &none, true, "final", &err);
	fake_audit(w, NULL, "final", me_refine_first_alpha(o.alpha), 100, &o.first, &err);
	if (w->differs)
		snprintf(o.first.verdict, sizeof(o.first.verdict), "undecided");
	ck_assert_int_eq(me_refine(&o, report, &err), 0);
	/* Only what may be kept is still there; no more than the promise was spent. */
	ck_assert_uint_le(w->nr_alive, 1 + ME_REFINE_ROUNDS);
	ck_assert_double_le(w->alpha_spent, o.alpha + 1e-12);
}

static void fini(struct world *w, struct me_refine_report *report)
{
	for (size_t i = 0; i < w->nr_versions; i++)
		me_wishes_fini(&w->versions[i].wishes);
	me_refine_report_fini(report);
}

static struct world a_world(uint64_t seed)
{
	return (struct world){.run_s = 0.5,
			      .random = seed * 0x9e3779b97f4a7c15u | 1,
			      .slowness = 5,
			      .gain = 1.05,
			      .repairs = 1u << ME_ADJUST_STAY};
}

START_TEST(planted_slowness_is_named_first_and_repaired)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct me_refine_report report;
		struct world w = a_world(seed);

		w.slow[0] = (uint32_t)(seed % 8);
		w.nr_slow = 1;
		if (seed % 2)
			w.repairs |= 1u << ME_ADJUST_LOOP;
		refine(&w, NULL, 120, &report);
		ck_assert_uint_ge(report.nr_rounds, 1);
		ck_assert_uint_ge(report.rounds[0].nr_culprits, 1);
		ck_assert_uint_eq(report.rounds[0].culprits[0].found.func, w.slow[0]);
		ck_assert(report.rounds[0].culprits[0].moved);
		ck_assert_str_ne(report.best, "");
		ck_assert_double_gt(report.estimate.speedup, 1.02);
		ck_assert_double_gt(time_of(&w, NULL), time_of(&w, report.best));
		ck_assert_uint_eq(report.wishes.nr, 1);
		ck_assert(w.repairs >> report.wishes.list[0].kind & 1);
		fini(&w, &report);
	}
}
END_TEST

START_TEST(several_are_repaired_in_one_round)
{
	struct me_refine_report report;
	struct world w = a_world(3);

	w.slow[0] = 2;
	w.slow[1] = 5;
	w.nr_slow = 2;
	w.repairs |= 1u << ME_ADJUST_ORIGINAL;
	refine(&w, NULL, 120, &report);
	ck_assert_str_eq(report.best, "refined-1");
	ck_assert_uint_eq(report.rounds[0].nr_culprits, 2);
	ck_assert(report.rounds[0].culprits[0].changed && report.rounds[0].culprits[1].changed);
	ck_assert(report.rounds[0].screened);
	ck_assert_uint_eq(report.wishes.nr, 2);
	fini(&w, &report);
}
END_TEST

START_TEST(nothing_is_changed_where_nothing_is_slow)
{
	unsigned int named = 0;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct me_refine_report report;
		struct world w = a_world(seed);

		w.gain = 1;
		refine(&w, NULL, 120, &report);
		named += report.rounds[0].nr_culprits > 0;
		ck_assert_str_eq(report.best, "");
		ck_assert_str_eq(report.undecided, "final");
		fini(&w, &report);
	}
	ck_assert_uint_le(named, 1);
}
END_TEST

START_TEST(faster_version_without_culprits_is_kept)
{
	struct me_refine_report report;
	struct world w = a_world(5);

	refine(&w, NULL, 120, &report);
	ck_assert_str_eq(report.best, "final");
	ck_assert_str_eq(report.undecided, "");
	ck_assert_uint_eq(report.nr_rounds, 1);
	ck_assert_uint_eq(w.nr_audits, 1);
	ck_assert_uint_eq(report.wishes.nr, 0);
	fini(&w, &report);
}
END_TEST

START_TEST(slower_version_is_never_kept)
{
	struct me_refine_report report;
	struct world w = a_world(6);

	/* Nothing repairs it. */
	w.slow[0] = 0;
	w.nr_slow = 1;
	w.repairs = 0;
	refine(&w, NULL, 300, &report);
	ck_assert_str_eq(report.best, "");
	ck_assert_str_eq(report.undecided, "");
	fini(&w, &report);
}
END_TEST

START_TEST(version_with_other_output_ends_it)
{
	struct me_refine_report report;
	struct world w = a_world(8);

	w.slow[0] = 1;
	w.nr_slow = 1;
	w.differs = true;
	refine(&w, NULL, 120, &report);
	ck_assert_str_eq(report.best, "");
	ck_assert_str_eq(report.end, "a version's output differs");
	ck_assert_uint_eq(report.nr_rounds, 1);
	fini(&w, &report);
}
END_TEST

START_TEST(what_was_tried_is_not_tried_again)
{
	static const uint8_t kinds[] = {ME_ADJUST_LOOP, ME_ADJUST_ORIGINAL, ME_ADJUST_STAY};
	struct me_refine_report report;
	struct world w = a_world(9);
	struct me_wishes tried = {0};

	w.slow[0] = 1;
	w.nr_slow = 1;
	for (size_t i = 0; i < 2; i++)
		ck_assert_int_eq(me_wishes_add(&tried, &(struct me_adjust){.vaddr = 0x401100,
									   .kind = kinds[i]}),
				 0);
	refine(&w, &tried, 120, &report);
	ck_assert_uint_eq(report.rounds[0].nr_tried, 3);
	for (size_t i = 0; i < 2; i++)
		ck_assert(!me_wishes_have(&tried, &report.rounds[0].tried[i].wish));
	/* To leave it where it was is always possible. */
	ck_assert_uint_eq(report.rounds[0].tried[2].wish.kind, ME_ADJUST_STAY);
	ck_assert_str_eq(report.best, "refined-1");
	me_wishes_fini(&tried);
	fini(&w, &report);
}
END_TEST

START_TEST(time_is_kept)
{
	static const double budgets[] = {0, 1, 5, 10, 20, 60};

	for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
		struct me_refine_report report;
		struct world w = a_world(10 + i);
		double before;

		w.slow[0] = 1;
		w.nr_slow = 1;
		refine(&w, NULL, budgets[i], &report);
		before = report.seconds;
		/* A run that has begun ends. */
		ck_assert_double_le(before, budgets[i] + w.run_s);
		if (budgets[i] < 5)
			ck_assert_uint_eq(w.nr_sampled + report.nr_rounds, 0);
		if (budgets[i] >= 20) {
			ck_assert_str_eq(report.best, "refined-1");
			ck_assert(report.rounds[0].screened == (budgets[i] > 30));
		}
		fini(&w, &report);
	}
}
END_TEST

START_TEST(suspects_are_tried_where_the_whole_is_slower)
{
	unsigned int repaired = 0;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct me_refine_report report;
		struct world w = a_world(seed);

		/* The first audit sees it; the samples of so few runs cannot be sure. */
		w.slow[0] = 0;
		w.nr_slow = 1;
		w.slowness = 1.09;
		w.gain = 1;
		refine(&w, NULL, 120, &report);
		ck_assert_str_eq(report.best, "");
		ck_assert_uint_ge(report.rounds[0].nr_culprits, 1);
		ck_assert_uint_le(report.rounds[0].nr_culprits, ME_DESIGN_FACTORS);
		for (size_t i = 0; i < report.rounds[0].nr_culprits; i++)
			if (report.rounds[0].culprits[i].found.func == 0)
				repaired += report.rounds[0].culprits[i].changed;
		fini(&w, &report);
	}
	ck_assert_uint_ge(repaired, 8);
}
END_TEST

START_TEST(function_is_left_where_it_was_if_other_places_cannot_be_made)
{
	struct me_refine_report report;
	struct world w = a_world(12);

	w.slow[0] = 1;
	w.nr_slow = 1;
	w.row_rc = -EPERM;
	refine(&w, NULL, 120, &report);
	ck_assert_str_eq(report.best, "refined-1");
	ck_assert(!report.rounds[0].screened);
	ck_assert_uint_eq(report.wishes.list[0].kind, ME_ADJUST_STAY);
	fini(&w, &report);
}
END_TEST

START_TEST(machine_without_samples_is_told)
{
	struct me_refine_report report;
	struct world w = a_world(11);

	w.sample_rc = -ENOTSUP;
	refine(&w, NULL, 120, &report);
	ck_assert_str_eq(report.best, "final");
	ck_assert_str_eq(report.end, "no samples can be taken here");
	fini(&w, &report);
}
END_TEST

START_TEST(wishes_are_read_as_they_were_written)
{
	static const char text[] = "0x401136:loop=0 0x4012c0:stay 0x4012d0:order=original";
	struct me_wishes wishes, other;
	struct mp_err err = {""};
	char *again;

	ck_assert_int_eq(me_wishes_parse(text, &wishes, &err), 0);
	ck_assert_uint_eq(wishes.nr, 3);
	again = me_wishes_format(&wishes);
	ck_assert_str_eq(again, text);
	free(again);
	ck_assert_int_eq(me_wishes_copy(&other, &wishes), 0);
	ck_assert(me_wishes_equal(&wishes, &other));
	ck_assert_int_eq(me_wishes_replace(&other, &(struct me_adjust){.vaddr = 0x401136,
								       .kind = ME_ADJUST_END}),
			 0);
	ck_assert(!me_wishes_equal(&wishes, &other));
	ck_assert_uint_eq(other.nr, 3);
	me_wishes_fini(&wishes);
	me_wishes_fini(&other);
	ck_assert_int_eq(me_wishes_parse("", &wishes, &err), 0);
	ck_assert_uint_eq(wishes.nr, 0);
	ck_assert_int_eq(me_wishes_parse("main:stay", &wishes, &err), -EINVAL);
	ck_assert_int_eq(me_wishes_parse("0x401136:jump", &wishes, &err), -EINVAL);
	ck_assert_int_eq(me_wishes_parse("0x:stay", &wishes, &err), -EINVAL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("refine");
	TCase *tc = tcase_create("refine");

	tcase_add_test(tc, planted_slowness_is_named_first_and_repaired);
	tcase_add_test(tc, several_are_repaired_in_one_round);
	tcase_add_test(tc, nothing_is_changed_where_nothing_is_slow);
	tcase_add_test(tc, faster_version_without_culprits_is_kept);
	tcase_add_test(tc, slower_version_is_never_kept);
	tcase_add_test(tc, version_with_other_output_ends_it);
	tcase_add_test(tc, what_was_tried_is_not_tried_again);
	tcase_add_test(tc, time_is_kept);
	tcase_add_test(tc, suspects_are_tried_where_the_whole_is_slower);
	tcase_add_test(tc, function_is_left_where_it_was_if_other_places_cannot_be_made);
	tcase_add_test(tc, machine_without_samples_is_told);
	tcase_add_test(tc, wishes_are_read_as_they_were_written);
	suite_add_tcase(s, tc);
	return s;
}

MORPH_SUITE_MAIN(suite)
