// SPDX-License-Identifier: Apache-2.0
/*
 * confirm - how a collector asks whether a file is an output of the original that its map note
 * names. morphd and morph-stats start morph-optimize under another name; see editor/confirm.c for
 * the answering side, daemon/confirm.c for the asking side.
 *
 * A collector has rights that a file's author has not, so the collector looks into neither file.
 */
#ifndef MP_CONFIRM_H
#define MP_CONFIRM_H

#include <stdint.h>

#include "libprof/id.h"

/* argv[0]: morph-optimize answers, and does nothing else. */
#define MP_CONFIRM_NAME "morph-optimize: confirm"
/* Descriptors of the answering process. */
#define MP_CONFIRM_ANSWER     1
#define MP_CONFIRM_OUTPUT     3
#define MP_CONFIRM_CANDIDATES 4	 /* the first one; the others follow without a gap */
#define MP_CONFIRM_MAX	      16 /* candidates */

/* Written where a candidate is the original, and verify proved the output. Else nothing is. */
struct mp_confirm_answer {
	struct mp_id output, original;
	uint64_t paths_hash; /* of the output's table of paths; 0: none */
};

#endif
