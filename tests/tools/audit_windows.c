// SPDX-License-Identifier: Apache-2.0
/*
 * audit_windows - simulates audits inside running programs: invented windows go through the very
 * code that tests those of programs (libprof/audit). Prints a table, as Markdown, of how often an
 * audit is wrong, right and undecided. Called by scripts/bench/bench-inprocess-simulate.
 *
 *	audit-windows [AUDITS [FUNCTIONS [PAIRS [PAIRS_OF_EQUAL]]]]
 *
 * An audit has FUNCTIONS functions with the same noise and effect, and at most PAIRS pairs of
 * windows for each, or PAIRS_OF_EQUAL where both versions are equal, since these audits are the most
 * and never end sooner. An audit is false if any of its functions gets a wrong verdict. Where there is
 * an effect, a tenth of the audits is enough.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/audit/program_audit.h"
#include "tests/support/audits/windows.h"

#define ALPHA 0.01

struct result {
	size_t false_audits;		/* with at least one wrong verdict */
	size_t right, wrong, undecided; /* functions */
	double pairs;			/* sum until the verdict, of right ones */
};

struct setting {
	size_t nr_audits;
	uint32_t nr_functions;
	size_t nr_pairs;
	enum me_noise noise;
	double effect;
};

static bool is_wrong(double effect, enum mp_audit_verdict verdict)
{
	return verdict != MP_AUDIT_VERDICT_NONE &&
	       verdict != (effect > 0	? MP_AUDIT_VERDICT_B
			   : effect < 0 ? MP_AUDIT_VERDICT_A
					: MP_AUDIT_VERDICT_NONE);
}

static void run_function(const struct setting *s, struct mp_program_audit *audit, uint32_t f,
			 uint64_t seed, struct result *result)
{
	struct windows w;
	enum mp_audit_verdict verdict = MP_AUDIT_VERDICT_NONE;
	size_t pair;

	windows_init(&w, s->noise, s->effect, seed);
	for (pair = 0; pair < s->nr_pairs && verdict == MP_AUDIT_VERDICT_NONE; pair++) {
		struct mp_audit_record records[2];
		uint32_t decided;

		windows_pair(&w, f, 1, pair * s->nr_functions + f + 1, records);
		if (mp_program_audit_add(audit, &records[0], &decided) ||
		    mp_program_audit_add(audit, &records[1], &decided))
			exit(1);
		verdict = mp_program_audit_verdict(audit, f);
	}
	if (verdict == MP_AUDIT_VERDICT_NONE) {
		result->undecided++;
	} else if (is_wrong(s->effect, verdict)) {
		result->wrong++;
	} else {
		result->right++;
		result->pairs += (double)pair;
	}
}

static struct result simulate(const struct setting *s)
{
	struct result result = {0};

	for (size_t a = 0; a < s->nr_audits; a++) {
		struct mp_program_audit *audit = mp_program_audit_new(s->nr_functions, ALPHA);
		size_t wrong = result.wrong;

		if (!audit)
			exit(1);
		for (uint32_t f = 0; f < s->nr_functions; f++)
			run_function(s, audit, f,
				     (a * s->nr_functions + f + 1) * 0x632be59bd9b4e019u, &result);
		result.false_audits += result.wrong > wrong;
		mp_program_audit_free(audit);
	}
	return result;
}

static void print_row(const struct setting *s, const struct result *r)
{
	double functions = (double)s->nr_audits * s->nr_functions;

	printf("| %s | %g %% | %zu | %zu | %.2f %% | %.1f %% | ", me_noise_name(s->noise),
	       100 * s->effect, s->nr_audits, r->false_audits,
	       100 * (double)r->false_audits / (double)s->nr_audits,
	       100 * (double)r->right / functions);
	if (r->right)
		printf("%.0f |\n", r->pairs / (double)r->right);
	else
		printf("- |\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const double effects[] = {0, 0.02, -0.02, 0.05};
	size_t nr_equal = argc > 4 ? strtoul(argv[4], NULL, 10) : 2000;
	struct setting s = {
		.nr_audits = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000,
		.nr_functions = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 8,
		.nr_pairs = argc > 3 ? strtoul(argv[3], NULL, 10) : 6000,
	};

	printf("| noise | B is faster by | audits | false | share | functions decided rightly | pairs "
	       "until then |\n|---|---:|---:|---:|---:|---:|---:|\n");
	for (int noise = 0; noise < ME_NR_NOISES; noise++)
		for (size_t e = 0; e < sizeof(effects) / sizeof(effects[0]); e++) {
			struct setting now = s;
			struct result result;

			now.noise = (enum me_noise)noise;
			now.effect = effects[e];
			if (now.effect != 0)
				now.nr_audits = (s.nr_audits + 9) / 10;
			else
				now.nr_pairs = nr_equal;
			result = simulate(&now);
			print_row(&now, &result);
		}
	return 0;
}
