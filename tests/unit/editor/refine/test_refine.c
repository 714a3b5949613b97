// SPDX-License-Identifier: Apache-2.0
/*
 * test_refine - the engine with simulated versions: what was planted is named and left where it was, no
 * version is kept that no audit found faster, and the time is kept.
 */
#include <math.h>

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
	/* The functions that the layout makes slow. */
	uint32_t slow[2];
	size_t nr_slow;
	double slowness;
	bool stuck;   /* they are slow even where the original has them */
	double gain;  /* of all other functions by the layout: 1.05 is 5 % */
	bool differs; /* the output of refined versions differs */
	int sample_rc, make_rc;
	struct {
		char name[32];
		struct me_wishes wishes;
	} versions[NR_VERSIONS];
	size_t nr_versions, nr_sampled, nr_audits;
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
	bool slow = false, stays = false;

	if (!wishes)
		return time;
	for (size_t i = 0; i < w->nr_slow; i++)
		slow |= w->slow[i] == func;
	for (size_t i = 0; i < wishes->nr; i++)
		if (wishes->list[i].vaddr == funcs[func].vaddr) {
			ck_assert_uint_eq(wishes->list[i].kind, ME_ADJUST_STAY);
			stays = true;
		}
	if (slow && (!stays || w->stuck))
		return time * w->slowness;
	return stays ? time : time / w->gain;
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

static int fake_make(void *arg, const struct me_wishes *wishes, const char *name,
		     struct mp_err *err)
{
	struct world *w = arg;

	if (w->make_rc && w->nr_versions)
		return mp_err_set(err, -w->make_rc, "simulated");
	ck_assert_uint_lt(w->nr_versions, NR_VERSIONS);
	snprintf(w->versions[w->nr_versions].name, sizeof(w->versions[0].name), "%s", name);
	ck_assert_int_eq(me_wishes_copy(&w->versions[w->nr_versions++].wishes, wishes), 0);
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

static void fake_say(void *arg, const char *what)
{
	(void)arg;
	(void)what;
}

/* Refines version "final" in the world @w. The caller frees @report. */
static void refine(struct world *w, double budget_s, struct me_refine_report *report)
{
	struct me_runner runner = {.arg = w,
				   .now_s = fake_now,
				   .make = fake_make,
				   .sample = fake_sample,
				   .audit = fake_audit,
				   .say = fake_say};
	struct me_refine_options o = {.runner = &runner,
				      .funcs = funcs,
				      .nr_funcs = NR_FUNCS,
				      .version = "final",
				      .alpha = 0.01,
				      .budget_s = budget_s,
				      .run_s = w->run_s,
				      .seed = 7};
	struct me_wishes none = {0};

	for (uint32_t f = 0; f < NR_FUNCS; f++)
		funcs[f] = (struct me_refine_func){"f", 0x401000 + 0x100 * f};
	fake_make(w, &none, "final", &err);
	fake_audit(w, NULL, "final", me_refine_alpha(o.alpha), 100, &o.first, &err);
	if (w->differs)
		snprintf(o.first.verdict, sizeof(o.first.verdict), "undecided");
	ck_assert_int_eq(me_refine(&o, report, &err), 0);
	/* No more than the promise was spent. */
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
			      .gain = 1.05};
}

TEST(planted_slowness_is_named_first_and_repaired)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct me_refine_report report;
		struct world w = a_world(seed);

		w.slow[0] = (uint32_t)(seed % 8);
		w.nr_slow = 1;
		refine(&w, 120, &report);
		ck_assert_uint_ge(report.nr_culprits, 1);
		ck_assert_uint_eq(report.culprits[0].found.func, w.slow[0]);
		ck_assert(report.culprits[0].moved && !report.culprits[0].suspect);
		ck_assert_int_eq(report.best, ME_REFINE_SECOND);
		ck_assert_double_gt(report.estimate.speedup, 1.02);
		ck_assert_double_gt(time_of(&w, NULL), time_of(&w, ME_REFINE_SECOND_NAME));
		ck_assert_uint_eq(report.wishes.nr, 1);
		fini(&w, &report);
	}
}

TEST(all_that_are_slow_stay)
{
	struct me_refine_report report;
	struct world w = a_world(3);

	w.slow[0] = 2;
	w.slow[1] = 5;
	w.nr_slow = 2;
	refine(&w, 120, &report);
	ck_assert_int_eq(report.best, ME_REFINE_SECOND);
	ck_assert_uint_eq(report.nr_culprits, 2);
	ck_assert_uint_eq(report.wishes.nr, 2);
	fini(&w, &report);
}

TEST(nothing_is_changed_where_nothing_is_slow)
{
	unsigned int named = 0;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct me_refine_report report;
		struct world w = a_world(seed);

		w.gain = 1;
		refine(&w, 120, &report);
		named += report.nr_culprits > 0;
		ck_assert_int_eq(report.best, ME_REFINE_ORIGINAL);
		ck_assert_int_eq(report.undecided, ME_REFINE_FIRST);
		fini(&w, &report);
	}
	ck_assert_uint_le(named, 3);
}

TEST(faster_version_without_culprits_is_kept)
{
	struct me_refine_report report;
	struct world w = a_world(5);

	refine(&w, 120, &report);
	ck_assert_int_eq(report.best, ME_REFINE_FIRST);
	ck_assert_int_eq(report.undecided, ME_REFINE_ORIGINAL);
	ck_assert_uint_eq(w.nr_audits, 1);
	ck_assert_uint_eq(report.wishes.nr, 0);
	fini(&w, &report);
}

TEST(faster_version_is_replaced_only_by_one_that_beats_it)
{
	struct me_refine_report report;
	struct world w = a_world(13);

	/* One function of thirty is slower, and all others together outweigh it. */
	w.slow[0] = 3;
	w.nr_slow = 1;
	w.slowness = 1.5;
	w.gain = 1.2;
	refine(&w, 120, &report);
	ck_assert_str_eq(report.verdict.verdict, "faster");
	ck_assert(!report.against_original);
	ck_assert_int_eq(report.best, ME_REFINE_SECOND);
	ck_assert_double_eq_tol(report.estimate.speedup,
				time_of(&w, NULL) / time_of(&w, ME_REFINE_SECOND_NAME), 1e-9);
	ck_assert_double_eq_tol(report.estimate.alpha, 0.01, 1e-12);
	fini(&w, &report);

	w = a_world(14);
	w.slow[0] = 3;
	w.nr_slow = 1;
	w.slowness = 1.5;
	w.gain = 1.2;
	w.stuck = true;
	refine(&w, 120, &report);
	ck_assert_uint_ge(report.nr_culprits, 1);
	ck_assert_int_eq(report.best, ME_REFINE_FIRST);
	fini(&w, &report);
}

TEST(slower_version_is_never_kept)
{
	struct me_refine_report report;
	struct world w = a_world(6);

	w.slow[0] = 0;
	w.nr_slow = 1;
	w.stuck = true;
	refine(&w, 300, &report);
	ck_assert_int_eq(report.best, ME_REFINE_ORIGINAL);
	ck_assert_int_eq(report.undecided, ME_REFINE_ORIGINAL);
	fini(&w, &report);
}

TEST(version_with_other_output_ends_it)
{
	struct me_refine_report report;
	struct world w = a_world(8);

	w.slow[0] = 1;
	w.nr_slow = 1;
	w.differs = true;
	refine(&w, 120, &report);
	ck_assert_int_eq(report.best, ME_REFINE_ORIGINAL);
	ck_assert_str_eq(report.end, "a version's output differs");
	fini(&w, &report);
}

TEST(time_is_kept)
{
	static const double budgets[] = {0, 1, 5, 10, 20, 60};

	for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
		struct me_refine_report report;
		struct world w = a_world(10 + i);

		w.slow[0] = 1;
		w.nr_slow = 1;
		refine(&w, budgets[i], &report);
		/* A run that has begun ends. */
		ck_assert_double_le(report.seconds, budgets[i] + w.run_s);
		if (budgets[i] < 5)
			ck_assert_uint_eq(w.nr_sampled, 0);
		if (budgets[i] >= 20)
			ck_assert_int_eq(report.best, ME_REFINE_SECOND);
		fini(&w, &report);
	}
}

TEST(suspects_stay_where_the_whole_is_slower)
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
		refine(&w, 120, &report);
		ck_assert_int_eq(report.best, ME_REFINE_ORIGINAL);
		ck_assert_uint_ge(report.nr_culprits, 1);
		ck_assert_uint_le(report.nr_culprits, ME_REFINE_SUSPECTS);
		for (size_t i = 0; i < report.nr_culprits; i++)
			repaired += report.culprits[i].found.func == 0;
		fini(&w, &report);
	}
	ck_assert_uint_ge(repaired, 8);
}

TEST(version_that_cannot_be_made_ends_it)
{
	struct me_refine_report report;
	struct world w = a_world(12);

	w.slow[0] = 1;
	w.nr_slow = 1;
	w.make_rc = -EPERM;
	refine(&w, 120, &report);
	ck_assert_int_eq(report.best, ME_REFINE_ORIGINAL);
	ck_assert_str_eq(report.end, "a version could not be made or run: simulated");
	fini(&w, &report);
	w = a_world(12);
	w.slow[0] = 1;
	w.nr_slow = 1;
	w.make_rc = -ENODATA;
	refine(&w, 120, &report);
	ck_assert_str_eq(report.end, "nothing is left to move");
	fini(&w, &report);
}

TEST(machine_without_samples_is_told)
{
	struct me_refine_report report;
	struct world w = a_world(11);

	w.sample_rc = -ENOTSUP;
	refine(&w, 120, &report);
	ck_assert_int_eq(report.best, ME_REFINE_FIRST);
	ck_assert_str_eq(report.end, "no samples can be taken here");
	fini(&w, &report);
}

TEST(wishes_are_read_as_they_were_written)
{
	static const char text[] = "0x401136:loop=0 0x4012c0:stay 0x4012d0:order=original";
	struct me_wishes wishes, other;
	char *again;

	ck_assert_int_eq(me_wishes_parse(text, &wishes, &err), 0);
	ck_assert_uint_eq(wishes.nr, 3);
	again = me_wishes_format(&wishes);
	ck_assert_str_eq(again, text);
	free(again);
	ck_assert_int_eq(me_wishes_copy(&other, &wishes), 0);
	ck_assert_int_eq(me_wishes_replace(&other, &(struct me_adjust){.vaddr = 0x401136,
								       .kind = ME_ADJUST_END}),
			 0);
	again = me_wishes_format(&other);
	ck_assert_str_eq(again, "0x4012c0:stay 0x4012d0:order=original 0x401136:end");
	free(again);
	me_wishes_fini(&wishes);
	me_wishes_fini(&other);
	ck_assert_int_eq(me_wishes_parse("", &wishes, &err), 0);
	ck_assert_uint_eq(wishes.nr, 0);
	ck_assert_int_eq(me_wishes_parse("main:stay", &wishes, &err), -EINVAL);
	ck_assert_int_eq(me_wishes_parse("0x401136:jump", &wishes, &err), -EINVAL);
	ck_assert_int_eq(me_wishes_parse("0x:stay", &wishes, &err), -EINVAL);
}
