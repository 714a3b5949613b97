// SPDX-License-Identifier: Apache-2.0
/*
 * trials - what earlier refinements found out about a file on this kind of machine, and what this
 * one adds. Decides what is known to be good. Called by the commands train and refine.
 */
#ifndef ME_TRIALS_H
#define ME_TRIALS_H

#include "editor/refine/refine.h"
#include "libprof/elf/id.h"

/* The kind of processor, as the kernel names it. @out: 128 bytes. */
void me_trials_machine(char *out);

/*
 * me_trials_read - from the store @db. @good: the adjustments of the last version that an audit found
 * faster, unless a later audit did not. Without a store it is empty. Return: 0, -ENOMEM, or the
 * store's -errno. Ownership: me_wishes_fini(@good).
 */
int me_trials_read(const char *db, const struct mp_id *original, struct me_wishes *good,
		   struct mp_err *err);

/*
 * me_trials_write - adds both audits: @first is that of the version with the adjustments @wishes. Return: 0, the store's -errno.
 */
int me_trials_write(const char *db, const struct mp_id *original,
		    const struct me_refine_func *funcs, size_t nr_funcs,
		    const struct me_wishes *wishes, const struct me_verdict *first,
		    const struct me_refine_report *report, struct mp_err *err);

#endif
