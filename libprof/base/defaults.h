// SPDX-License-Identifier: Apache-2.0
/*
 * defaults - numbers that several programs share, with their units and reasons. Each program has its own in
 * a defaults.h, too.
 */
#ifndef MP_DEFAULTS_H
#define MP_DEFAULTS_H

#include <limits.h>

/* A path, and what Morph puts before or behind it: the root of a process, the names of its own files. */
#define MP_PATH_ROOM (PATH_MAX + 304)

#define MP_SECONDS_PER_DAY 86400

/* Samples of a file. Fewer say too little about single branches, and about where a program spends its time. */
#define MP_MIN_SAMPLES 1000

/* Chance of a wrong verdict of an audit: few audits are ever wrong, and a pair of runs more is cheap. */
#define MP_ALPHA 0.01

/*
 * Days whose counts the store keeps apart; older ones are added up. A week has all kinds of a machine's days.
 * What a program does now, and what it did before a change, is therefore asked of so many days.
 */
#define MP_KEEP_DAYS 7

/*
 * Samples per second of CPU time of `morphd run': a command is sampled for a short time, and costs 2 % more
 * at most.
 */
#define MP_RUN_RATE_HZ 4000

#endif
