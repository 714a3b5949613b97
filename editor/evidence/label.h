// SPDX-License-Identifier: Apache-2.0
/*
 * label - the functions whose labels (GNU C's &&label) may change their values. Called
 * by pointer, which walks over all places that hold addresses.
 *
 * All labels of a function change, or none: comparisons keep their result, and
 * differences made at run time fit the label they are added to. If the assembler
 * computed differences of a function's labels, none of them changes.
 */
#ifndef ME_LABEL_H
#define ME_LABEL_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"

struct me_labels {
	const struct mp_cfg *cfg;
	uint8_t *may_change; /* per function: its labels may change */
};

/* me_labels_init - Return: 0, -ENOMEM. Ownership: me_labels_fini(). */
int me_labels_init(const struct mp_cfg *cfg, struct me_labels *labels);
void me_labels_fini(struct me_labels *labels);

/*
 * me_labels_may_change - may @vaddr change, as a label? True inside (not at the entry of) a
 * function whose labels may change.
 */
bool me_labels_may_change(const struct me_labels *labels, uint64_t vaddr);
/*
 * Unknown code may use @vaddr, or code in [@first, @last]: the labels of the functions
 * there must not change.
 */
void me_labels_forbid(struct me_labels *labels, uint64_t vaddr);
void me_labels_forbid_range(struct me_labels *labels, uint64_t first, uint64_t last);

#endif
