// SPDX-License-Identifier: Apache-2.0
/*
 * trial - decides from everyday use which of two versions of a program is faster: 0, the original,
 * or 1, the new one. Both carry the same meter (meter_choose.h), and their behaviour is the same.
 * It runs nothing and reads no clock. Called by morph-worker, and by the simulations that check its
 * promise.
 *
 * Time is cut into pairs of blocks. A fair coin says which version the first block of a pair runs;
 * the second one runs the other version. The pair's difference is
 *
 *	d = log(CPU time of block 0 / its work) - log(CPU time of block 1 / its work)
 *
 * where a block's work is the weighted sum of its counters. It is above 0 if the new version is
 * faster.
 *
 * Why this is valid. Suppose that the versions are equally fast. Then the coin decides only which
 * name each of the two blocks gets. Nothing in them depends on it, whoever used the program for
 * what. Exchanging the names turns d into -d, exactly: a function of one block minus the same
 * function of another is antisymmetric, so a mean of ratios that is biased, few processes or a poor
 * meter cannot favour one version. So d and -d are equally likely, whatever the noise, the work,
 * its drift and its mix, and this is what sequential_test.h needs. A poor meter only adds noise. If
 * each process of the new version takes e^-x times as long, d is shifted by x, so the interval is
 * right, too. If the factor differs between kinds of work, the interval is about the typical pair
 * of blocks.
 *
 * The weights of the meter come from a version that counts, and from one hour. So each pair's work is weighted by what
 * the earlier pairs say: the least squares of all their blocks, both versions together, with the number of processes
 * as one more counter. They are fixed before the pair's coin, and the same for both blocks, so exchanging the names
 * still turns d into -d.
 *
 * A meter that misses what a kind of work costs errs alike in both blocks of a pair if both do this kind; if not, its
 * error is in d. So d counts the less, the more the shares of the counters differ between the blocks; by how much, the
 * earlier pairs say (mp_seq_add_noisy()). This rule, too, is the same for both names.
 *
 * A pair is dropped as a whole, by a rule that does not look at how much time was taken: if one of
 * its blocks has less work, or fewer processes, than the floors, or no time at all. This rule, too,
 * is the same for both names.
 *
 * When a trial ends. The first verdict is final:
 * - FASTER, SLOWER: by sequential_test.h at @alpha.
 * - EQUAL_SPEED: the interval lies within +-0.5 %.
 * - MUCH_SLOWER: the new version takes over 10 % more CPU time, at 99.9 %. Such harm ends a trial
 *   before the test at a small @alpha would.
 * - CRASHES: processes of the new version crash more often, at 99.9 %. Two tests ask that. One bets
 *   by sequential_test.h on the difference of the parts of processes that crashed; it assumes the
 *   coin only, and needs about ten pairs with crashes. As long as no process of the original has
 *   crashed in the trial, three such pairs may be enough: the chance that all crashes are on the
 *   new version's processes must be below 0.1 %, if each process crashes by itself. Crashes that
 *   belong together, of one user's bad work, may so end a trial; this only keeps the original.
 * - UNDECIDED: all pairs are used up.
 * Only FASTER puts the new version in the place of the original. The promise: if it is not faster,
 * FASTER comes with probability @alpha / 2 at most. Any other way to end a trial, by any rule and
 * at any time, also by hand, only takes chances of FASTER away. So each of them is allowed, and
 * needs no part of @alpha.
 *
 * Unlike work. The coin makes the work alike in both versions, except for what follows the version:
 * an attribution of processes that goes wrong, a counter in a loop that waits, a user who looks at
 * which version runs. Then each counter's share of the work tells. A share's difference within a
 * pair is antisymmetric, too, so the same test finds out whether it lies beyond half a hundredth of
 * the work, at MP_TRIAL_UNLIKE_ALPHA for all counters together. FASTER, SLOWER and EQUAL_SPEED
 * are withheld from then on, as long as a tenth of that evidence is there (MP_TRIAL_DOUBT_ALPHA),
 * and in the first MP_TRIAL_LIKE_PAIRS pairs.
 *
 * Assumed: the coin is fair and nobody foresees it; a block's CPU time and counts are of the same
 * processes, and a process belongs to the version that it started with; what happens in the second
 * block of a pair does not depend on which version the first one had (nobody reacts to the version,
 * queues and caches are left alike).
 */
#ifndef MP_TRIAL_H
#define MP_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MP_TRIAL_NR_COUNTERS = 8,  /* at most */
	MP_TRIAL_MAX_PAIRS = 20000 /* at most, dropped ones included */
};

/* Within this, versions are equal: log of 0.5 %. */
#define MP_TRIAL_EQUAL 0.005
/* A new version that takes this much longer does harm: 10 %. */
#define MP_TRIAL_HARM 0.10
/* Chance that MUCH_SLOWER, and that CRASHES, is claimed of a version that is not so. */
#define MP_TRIAL_HARM_ALPHA 0.001
/*
 * A counter's share of the work that differs by more than this is unlike: half a hundredth of all
 * work.
 */
#define MP_TRIAL_UNLIKE 0.005
/* Chance that work is called unlike that is alike. */
#define MP_TRIAL_UNLIKE_ALPHA 0.01
/* Work that differs in all pairs is found out within fewer. Before, there is no verdict about times. */
#define MP_TRIAL_LIKE_PAIRS 16
/* Chance that like work is ever in doubt. Each doubt delays a verdict for some pairs. */
#define MP_TRIAL_DOUBT_ALPHA 0.1

enum mp_trial_verdict {
	MP_TRIAL_RUNNING,
	MP_TRIAL_FASTER,
	MP_TRIAL_SLOWER,
	MP_TRIAL_EQUAL_SPEED,
	MP_TRIAL_MUCH_SLOWER,
	MP_TRIAL_CRASHES,
	MP_TRIAL_UNDECIDED,
	MP_NR_TRIAL_VERDICTS
};
/* "running", "faster", "slower", "equal", "much slower", "crashes", "undecided" */
const char *mp_trial_verdict_name(enum mp_trial_verdict verdict);

struct mp_trial_config {
	double alpha; /* chance of any false verdict about times; see mp_trial_alpha() */
	/*
	 * The meter. Without one: one counter of weight 1, whose unit may be anything, such as
	 * samples.
	 */
	size_t nr_counters;
	double weights[MP_TRIAL_NR_COUNTERS]; /* above 0 */
	double least_work;	  /* of each block, in the unit of the weights; 0: above 0 */
	uint64_t least_processes; /* of each block */
	uint32_t max_pairs;	  /* dropped ones included; at most MP_TRIAL_MAX_PAIRS */
};

/* What one version did in its block. */
struct mp_trial_block {
	double cpu_s;
	uint64_t counts[MP_TRIAL_NR_COUNTERS];
	uint64_t processes; /* that ended, or that ran */
	uint64_t crashes;   /* of these; at most @processes */
};

/* What is known so far. */
struct mp_trial_result {
	enum mp_trial_verdict verdict;
	uint32_t nr_pairs, nr_dropped; /* that count; that do not */
	/*
	 * Times as fast as the original; above 1: the new version is faster. The bounds hold at 1 -
	 * alpha after every pair; they are 0 and INFINITY while there are too few pairs.
	 */
	double speedup, lowest, highest;
	bool withheld; /* a verdict about times, because the work may differ */
	int unlike;    /* the first counter whose share of the work was found to differ; -1: none */
	/* By how much its share is larger in the new version's blocks, estimated; part of the work. */
	double unlike_shift;
	/* Sums over the pairs that count; of processes and crashes: over all. */
	double cpu_s[2], work[2];
	uint64_t processes[2], crashes[2];
};

struct mp_trial;

/*
 * mp_trial_new - Return: 0; -EINVAL: a number of @config makes no sense; -ENOMEM. Ownership:
 * mp_trial_free(*@out).
 */
int mp_trial_new(const struct mp_trial_config *config, struct mp_trial **out);
void mp_trial_free(struct mp_trial *t);
/*
 * mp_trial_draw - which version runs in the first block of the next pair. @coin: a fair random bit
 * that nobody knew before. If a pair was drawn already and is neither added nor abandoned, its
 * order stays, whatever @coin is. Return: 0 or 1; -EALREADY: the trial has ended.
 */
int mp_trial_draw(struct mp_trial *t, bool coin);
/*
 * mp_trial_drawn - Return: the version in the first block of the pair that was drawn; -1: none was
 * drawn.
 */
int mp_trial_drawn(const struct mp_trial *t);
/*
 * mp_trial_abandon - the drawn pair will not be complete: the machine slept, the worker was killed.
 * Its reason must not depend on what was measured. It is dropped and counted.
 */
void mp_trial_abandon(struct mp_trial *t);
/*
 * mp_trial_add_pair - the drawn pair is complete. @blocks[0]: the original's, whichever ran first.
 * Return: 0: it counts, or it was dropped; -EINVAL: no pair was drawn, or the blocks are no such
 * numbers: a CPU time that is negative or not finite, a count above 2^53, more crashes than
 * processes. The pair is still drawn then. -EALREADY: the trial has ended. -ENOMEM: the trial may
 * be used for nothing more; load it again.
 */
int mp_trial_add_pair(struct mp_trial *t, const struct mp_trial_block blocks[2]);
enum mp_trial_verdict mp_trial_verdict(const struct mp_trial *t);
/* The number of pairs that count. */
uint32_t mp_trial_nr_pairs(const struct mp_trial *t);
/* mp_trial_result - all that is known. It takes tenths of a second after thousands of pairs. */
void mp_trial_result(const struct mp_trial *t, struct mp_trial_result *out);
const struct mp_trial_config *mp_trial_config(const struct mp_trial *t);

/*
 * mp_trial_alpha - the alpha of the @k-th trial (from 1) that ever began on a machine, of whatever
 * program. It falls slowly at first, as most machines try some ten programs: MP_ALPHA * 10 / ((k +
 * 9) * (k + 10)). All of them together add up to MP_ALPHA, since 10 / ((k + 9) * (k + 10)) = 10 /
 * (k + 9) - 10 / (k + 10). So of all trials that a machine ever makes, any claims something false
 * of times with probability MP_ALPHA at most. @k 0 counts as 1.
 */
double mp_trial_alpha(uint64_t k);

#endif
