// SPDX-License-Identifier: Apache-2.0
/* defaults - what morph-worker does where morph.conf says nothing: the numbers of morph.conf(5). */
#ifndef MD_POLICY_DEFAULTS_H
#define MD_POLICY_DEFAULTS_H

#include <stdint.h>

#include "libprof/base/defaults.h"

/* ---- which files, and when a round begins -------------------------------------------------- */

#define MD_POLICY_SHARE	   0.02 /* of all samples; less cannot pay for the work */
#define MD_POLICY_ON_SHARE 0.01 /* under `morph on' */
#define MD_POLICY_MIN_SAMPLES                                                                      \
	10000 /* of a file; ten times MP_MIN_SAMPLES, since nobody looks at the result */
/* A round without a gain is tried again: by then there are other samples. */
#define MD_POLICY_RETRY_S (7 * MP_SECONDS_PER_DAY)

/* ---- what work may cost -------------------------------------------------------------------- */

#define MD_POLICY_COST	     0.01		 /* of the CPU time of all CPUs */
#define MD_POLICY_DISK_BYTES (UINT64_C(1) << 30) /* written on a day */
#define MD_POLICY_AUDIT_S    600		 /* the longest audit */

/* ---- when the machine is idle -------------------------------------------------------------- */

#define MD_POLICY_LOAD 0.5  /* of the last minute, for each CPU, to begin */
#define MD_POLICY_BUSY 0.25 /* part of the CPUs that others use for a second, to stop */

/* ---- after a version was put in place ------------------------------------------------------- */

#define MD_POLICY_PROBATION_S MP_SECONDS_PER_DAY /* a day has most of what a machine does */
#define MD_POLICY_WORSE	      0.1		 /* more time for the same work: undone */
#define MD_POLICY_AGE	      0.25 /* of the predicted saving that a fresh version adds: made anew */
#define MD_POLICY_AGE_LOOK_S  MP_SECONDS_PER_DAY /* between two looks at that */
#define MD_POLICY_RETENTION_S                                                                      \
	(30 * MP_SECONDS_PER_DAY) /* profiles and originals that nothing needs */

#endif
