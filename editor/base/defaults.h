// SPDX-License-Identifier: Apache-2.0
/* defaults - numbers of morph-optimize and morph-audit, with their units and reasons. */
#ifndef ME_DEFAULTS_H
#define ME_DEFAULTS_H

#include "libprof/base/defaults.h"

/* ---- morph-optimize ------------------------------------------------------------------------ */

/* Lines of the processor's fetch, as a power of two: 64 bytes. */
#define ME_LINE_LOG2 6

/* ---- train and refine ---------------------------------------------------------------------- */

/* Seconds of the first audit: what so many pairs of runs need, but at least two minutes, at most half an hour. */
#define ME_AUDIT_SECONDS     120
#define ME_AUDIT_SECONDS_MAX 1800
#define ME_AUDIT_PAIRS	     16
/* An audit is continued only if there is time for so many pairs. */
#define ME_FURTHER_PAIRS 4
/* Seconds of the search for a faster version, in the same way, by runs. */
#define ME_BUDGET_SECONDS     120.0
#define ME_BUDGET_SECONDS_MAX 1800.0
#define ME_BUDGET_RUNS	      48

/* ---- morph-audit --------------------------------------------------------------------------- */

#define ME_INDIFFERENCE	    0.005 /* a difference of speed below 0.5 % is not worth a verdict */
#define ME_WARMUP_PAIRS	    1	  /* fill the caches of files */
#define ME_MIN_PAIRS	    8	  /* decide with MP_ALPHA if all have the same sign */
#define ME_MAX_PAIRS	    500
#define ME_MAX_SECONDS	    600
#define ME_PROGRESS_SECONDS 60 /* between two lines, where there is no terminal */

#endif
