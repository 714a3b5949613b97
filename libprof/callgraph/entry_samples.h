// SPDX-License-Identifier: Apache-2.0
/*
 * entry_samples - how the sampled activations of each function were entered: by direct calls of the same
 * file, or in another way. Called by the editor, which wants to know how often control arrives at the
 * address that pointers to a function hold.
 *
 * A sample counts for the function that it hit. Its calling context has the call that entered the
 * function; where the stack does not show it, the sample counts for neither.
 */
#ifndef MP_ENTRY_SAMPLES_H
#define MP_ENTRY_SAMPLES_H

#include <stdbool.h>

#include "libprof/cfg/cfg.h"
#include "libprof/context/context_tree.h"

struct mp_entry_samples {
	/* By function; all NULL: no sample has a calling context. */
	double *direct;	 /* samples that a direct call or jump of the file led to */
	double *other;	 /* through a pointer, from another file, or called by the kernel */
	bool *jumped_to; /* another function ends with a direct jump to it */
};

/*
 * mp_entry_samples_add - adds the samples of a program's tree. @module: the number of @cfg's file in
 * trees, see mp_context_module_of(). @samples is zeroed before the first call.
 * Return: 0, -ENOMEM. Ownership: mp_entry_samples_fini(@samples), after an error too.
 */
int mp_entry_samples_add(struct mp_entry_samples *samples, const struct mp_cfg *cfg,
			 uint64_t module, const struct mp_context_tree *tree);
void mp_entry_samples_fini(struct mp_entry_samples *samples);

#endif
