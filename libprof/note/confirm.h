// SPDX-License-Identifier: Apache-2.0
/*
 * confirm - the protocol by which a collector asks whether a file is an output of the
 * original that its map note names. morphd and morph-stats start morph-optimize under
 * another name: see daemon/module/ask_confirm.c for the asking side, editor/cli/answer_confirm.c for the
 * answering side. A collector has rights that a file's author has not, so the collector
 * reads neither file.
 */
#ifndef MP_CONFIRM_H
#define MP_CONFIRM_H

#include <stdint.h>

#include "libprof/elf/id.h"

/* With this argv[0] morph-optimize answers, and does nothing else. */
#define MP_CONFIRM_NAME "morph-optimize: confirm"
/* Descriptors of the answering process. */
#define MP_CONFIRM_ANSWER     1
#define MP_CONFIRM_OUTPUT     3
#define MP_CONFIRM_CANDIDATES 4	 /* first candidate; the others follow without a gap */
#define MP_CONFIRM_MAX	      16 /* candidates */

/* The answer. It is written only if a candidate is the original and verify proved the output. */
struct mp_confirm_answer {
	struct mp_id output, original;
	uint64_t paths_hash; /* hash of the output's table of paths; 0: it has none */
};

#endif
