// SPDX-License-Identifier: Apache-2.0
/* defaults - morphd's numbers, with their units and reasons. Those of the sources stand in daemon/source. */
#ifndef MD_MORPHD_DEFAULTS_H
#define MD_MORPHD_DEFAULTS_H

/* ---- what the service may cost ------------------------------------------------------------- */

/* Promised: below 0.3 % of each CPU, in millionths. */
#define MD_COST_PROMISED_PPM 3000
/* A fifth less is used, in per cent, since the cost is known only to a few tenths. */
#define MD_COST_USED_PERCENT 80
/* Nanoseconds in each second of a CPU: 2,400,000. */
#define MD_COST_NS (MD_COST_PROMISED_PPM * 1000u * MD_COST_USED_PERCENT / 100)

/* Samples per second and CPU. Primes, so that no program keeps step with the timer. */
#define MD_RATE_MIN_HZ 11
#define MD_RATE_MAX_HZ 1021
/* The rate if the cost of a sample could not be measured. */
#define MD_RATE_UNMEASURED_HZ 101
/* The rate while the cost is measured. */
#define MD_MEASURING_HZ 4000

/*
 * Cost of morphd itself, in nanoseconds: reading, attributing and storing one sample, and waking ten times in
 * a second. Measured with scripts/bench/bench-source on the machine with the most costly samples.
 */
#define MD_DRAIN_NS 500
#define MD_WAKE_NS  1000000
/* A sample whose next instructions are executed, in morphd and its workers; scripts/bench/bench-service-ways. */
#define MD_WAYS_SAMPLE_NS 6000
/* Most samples of a CPU that the service executes for ways of branches in a second. */
#define MD_WAYS_A_SECOND 64

/* ---- what it does -------------------------------------------------------------------------- */

/* Seconds between two writes to the database: what a crash may lose. */
#define MD_INTERVAL_S 10

#endif
