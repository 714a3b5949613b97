// SPDX-License-Identifier: Apache-2.0
/*
 * label - which functions' labels (GNU C's &&label) may change their value, and every place that
 * holds one.
 *
 * Of one function all change or none: labels that are compared with one another stay equal or
 * different, and what is subtracted at run time fits what it is added to. Where the assembler made
 * differences of them, all stay. Used by pointer alone, which walks all that holds addresses.
 */
#ifndef ME_LABEL_H
#define ME_LABEL_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg.h"

struct me_labels {
	const struct mp_cfg *cfg;
	uint8_t *may; /* per function: its labels may change */
};

/* Return: 0, -ENOMEM. Ownership: me_labels_fini(). */
int me_labels_init(const struct mp_cfg *cfg, struct me_labels *labels);
void me_labels_fini(struct me_labels *labels);

/* A place, not its entry, of a function that is barred by nothing yet: such an address may change. */
bool me_labels_hold(const struct me_labels *labels, uint64_t vaddr);
/* Somebody who cannot be told may know @vaddr, or what starts in [@first, @last]. */
void me_labels_bar(struct me_labels *labels, uint64_t vaddr);
void me_labels_bar_range(struct me_labels *labels, uint64_t first, uint64_t last);

#endif
