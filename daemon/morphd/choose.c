// SPDX-License-Identifier: Apache-2.0
/* choose - picks the source and its rate; see choose.h. */
#include "libprof/base/clock.h"
#include "daemon/morphd/choose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#include "daemon/source/perf_event.h"

/* ---- which source ------------------------------------------------------------------------- */

struct candidate {
	const struct md_source_ops *ops;
	bool is_for_all;	 /* always samples the whole machine */
	bool yields_to_branches; /* cannot read branch stacks: gives way to a source that can */
	bool has_stacks;	 /* can tell who called */
	const char *why;	 /* why it is preferred to the next one */
};

/*
 * Best first; Documentation/service.md has the figures. A machine with the kernel module
 * loaded uses it, even where another source could read branch stacks.
 */
static const struct candidate candidates[] = {
	{&md_source_kmod, true, false, true, "wakes no idle CPU"},
	{&md_source_bpf, false, true, true, "cheapest to drain"},
	{&md_source_perf, false, false, true, "works anywhere"},
};

#define NR_CANDIDATES (sizeof(candidates) / sizeof(candidates[0]))

/* Appends a reason to @all, as far as there is room. */
static void add_reason(char *all, size_t size, const char *name, const char *text)
{
	size_t used = strlen(all);

	snprintf(all + used, size - used, "%s%s: %.80s", used ? "; " : "", name, text);
}

int md_choose_source(const struct md_source_config *config, struct md_source **out,
		     struct mp_err *err)
{
	char reasons[sizeof((*out)->choice)] = "";
	bool branches = md_perf_has_branches();
	const struct candidate *c;
	int ret = -ENOTSUP;
	size_t i;

	for (i = 0; i < NR_CANDIDATES; i++) {
		c = &candidates[i];
		/*
		 * The device has only one reader. Leave it to the daemon, which can use all of
		 * its samples.
		 */
		if (c->is_for_all && config->command && !config->is_probe) {
			add_reason(reasons, sizeof(reasons), c->ops->name,
				   "samples the whole machine");
			continue;
		}
		if (config->stacks == MD_STACKS_YES && !c->has_stacks) {
			add_reason(reasons, sizeof(reasons), c->ops->name, "takes no stacks");
			continue;
		}
		if (branches && c->yields_to_branches) {
			add_reason(reasons, sizeof(reasons), c->ops->name,
				   "reads no branch stacks");
			continue;
		}
		ret = c->ops->open(config, out, err);
		if (!ret) {
			add_reason(reasons, sizeof(reasons), c->ops->name, c->why);
			memcpy((*out)->choice, reasons, sizeof(reasons));
			return 0;
		}
		add_reason(reasons, sizeof(reasons), c->ops->name, err->msg);
	}
	return ret;
}

/* ---- what a sample costs ------------------------------------------------------------------ */

#define NR_PAIRS    24
#define INTERVAL_NS UINT64_C(4000000)
#define GAP_MIN_NS  300	   /* a shorter gap is the loop itself */
#define GAP_MAX_NS  100000 /* a longer gap is another program's turn */

/*
 * Cost of morphd itself: reading, attributing and storing one sample, and waking ten times a
 * second. Measured with scripts/bench/bench-source on the machine with the most costly samples.
 */
#define DRAIN_NS 500
#define WAKE_NS	 1000000
/* A sample whose next instructions are executed, in morphd and its workers; scripts/bench/bench-service-ways. */
#define WAYS_SAMPLE_NS 6000

struct tsc {
	double per_ns;
	uint64_t gap_min, gap_max;
};

static void calibrate(struct tsc *tsc)
{
	uint64_t start_ns = mp_now_ns(), start = __rdtsc(), last, now, least = UINT64_MAX;

	do {
		last = __rdtsc();
		now = __rdtsc();
		if (now - last < least)
			least = now - last;
	} while (mp_now_ns() - start_ns < INTERVAL_NS);
	tsc->per_ns = (double)(__rdtsc() - start) / (double)(mp_now_ns() - start_ns);
	tsc->gap_min = GAP_MIN_NS * tsc->per_ns;
	tsc->gap_max = GAP_MAX_NS * tsc->per_ns;
	/* Some hypervisors make each read of the time stamp counter slow. */
	if (tsc->gap_min < 5 * least)
		tsc->gap_min = 5 * least;
}

/* Return: for how long a loop of INTERVAL_NS was interrupted, in ns. */
static double interrupted_ns(const struct tsc *tsc)
{
	uint64_t last = __rdtsc(), end = last + (uint64_t)(INTERVAL_NS * tsc->per_ns);
	uint64_t sum = 0, now;

	for (; last < end; last = now) {
		now = __rdtsc();
		if (now - last > tsc->gap_max)
			end += now - last; /* another program ran: extend the loop by that time */
		else if (now - last > tsc->gap_min)
			sum += now - last;
	}
	return (double)sum / tsc->per_ns;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int measure_pairs(struct md_source *source, double *median_ns, struct mp_err *err)
{
	double with[NR_PAIRS], without;
	struct tsc tsc;
	size_t i;
	int ret;

	calibrate(&tsc);
	for (i = 0; i < NR_PAIRS; i++) {
		without = i % 2 ? 0 : interrupted_ns(&tsc);
		ret = source->ops->pause(source, false, err);
		if (ret)
			return ret;
		with[i] = interrupted_ns(&tsc);
		ret = source->ops->pause(source, true, err);
		if (ret)
			return ret;
		/* Alternate the order of the two, so that a drift cancels out. */
		if (i % 2)
			without = interrupted_ns(&tsc);
		with[i] -= without;
	}
	qsort(with, NR_PAIRS, sizeof(with[0]), compare);
	*median_ns = (with[NR_PAIRS / 2 - 1] + with[NR_PAIRS / 2]) / 2;
	return 0;
}

static int count_samples(struct md_source *source, uint64_t *nr, struct mp_err *err)
{
	struct morph_record *record;
	struct md_batch batch;
	size_t pos;
	int ret;

	*nr = 0;
	do {
		ret = source->ops->next(source, 0, true, &batch, err);
		if (ret)
			return ret;
		for (pos = 0; !md_record_next(batch.data, batch.size, &pos, &record);)
			*nr += md_record_emitted(record);
	} while (batch.size);
	return 0;
}

int md_choose_measure(struct md_source *source, bool ways, struct md_cost *out, struct mp_err *err)
{
	double median_ns, ns;
	uint64_t nr;
	int ret;

	ret = measure_pairs(source, &median_ns, err);
	if (!ret)
		ret = count_samples(source, &nr, err);
	if (ret)
		return ret;
	if (nr < NR_PAIRS)
		return mp_err_set(err, ENODATA, "no samples arrived");
	ns = median_ns * NR_PAIRS / (double)nr;
	/* The loop cannot see shorter interruptions, and no sample is that cheap. */
	out->interrupt_ns = ns < GAP_MIN_NS ? GAP_MIN_NS : ns;
	out->drain_ns = DRAIN_NS;
	out->wake_ns = WAKE_NS / sysconf(_SC_NPROCESSORS_ONLN);
	out->ways_ns = ways ? MD_WAYS_A_SECOND * WAYS_SAMPLE_NS : 0;
	return 0;
}

/* ---- how often ---------------------------------------------------------------------------- */

/* A fifth below the promised 0.3 %, since the cost is known only to a few tenths. */
#define BUDGET_NS 2400000u /* nanoseconds per second */
#define RATE_MIN  11
#define RATE_MAX  1021

static bool is_prime(uint32_t n)
{
	uint32_t d;

	for (d = 2; d * d <= n; d++)
		if (n % d == 0)
			return false;
	return n > 1;
}

uint32_t md_choose_rate(const struct md_cost *cost)
{
	uint64_t each_ns = (uint64_t)cost->interrupt_ns + cost->drain_ns, rate = RATE_MIN;

	if (cost->wake_ns + cost->ways_ns < BUDGET_NS)
		rate = each_ns ? (BUDGET_NS - cost->wake_ns - cost->ways_ns) / each_ns : RATE_MAX;
	if (rate > RATE_MAX)
		rate = RATE_MAX;
	while (rate > RATE_MIN && !is_prime(rate))
		rate--;
	return rate < RATE_MIN ? RATE_MIN : rate;
}

uint32_t md_choose_share_ppm(const struct md_cost *cost, uint32_t rate_hz)
{
	uint64_t each_ns = (uint64_t)cost->interrupt_ns + cost->drain_ns;

	return (each_ns * rate_hz + cost->wake_ns + cost->ways_ns) / 1000;
}

void md_choose_describe(const struct md_cost *cost, uint32_t rate_hz, const char *choice,
			char *text, size_t size)
{
	char ways[64] = "";

	if (cost->ways_ns)
		snprintf(ways, sizeof(ways), ", ways of branches %.2f %%", cost->ways_ns / 1e7);
	snprintf(text, size, "%s%s%u Hz, %.2f %% of each CPU: a sample costs %.1f us%s", choice,
		 choice[0] ? "; " : "", rate_hz, md_choose_share_ppm(cost, rate_hz) / 1e4,
		 ((double)cost->interrupt_ns + cost->drain_ns) / 1e3, ways);
}
