// SPDX-License-Identifier: Apache-2.0
/*
 * store_process - samples by the name, unit and user of processes: they tell who used the machine,
 * and not only which programs ran. Kept by day like activity. At most MP_PROCESS_ROWS_DAY rows a
 * day; all further processes share one row, MP_PROCESS_OTHERS.
 */
#ifndef MP_STORE_PROCESS_H
#define MP_STORE_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/store/store.h"

#define MP_PROCESS_ROWS_DAY 2048
#define MP_PROCESS_OTHERS   "(others)"
#define MP_UID_UNKNOWN	    UINT32_MAX

struct mp_process {
	char name[16]; /* as the kernel has it; "": not known */
	char unit[64]; /* "nginx.service", "/docker/0123..."; "": not known */
	uint32_t uid;  /* or MP_UID_UNKNOWN */
	uint64_t nr;   /* samples */
};

/* Adds to the day of @when_s. Return: 0, -EINVAL (a time before 1970), -errno of the store. */
int mp_store_add_processes(struct mp_store *store, int64_t when_s,
			   const struct mp_process *processes, size_t nr, struct mp_err *err);
/* Sums since @since_s (0: all), most samples first. Ownership: free(*@out). */
int mp_store_list_processes(struct mp_store *store, int64_t since_s, struct mp_process **out,
			    size_t *nr, struct mp_err *err);
/* For qsort() of struct mp_process: most samples first, then by name, unit and user. */
int mp_process_compare(const void *a, const void *b);
/* For mp_store_merge(): adds all of @in to @out. */
int mp_store_merge_processes(struct mp_store *out, struct mp_store *in, struct mp_err *err);

#endif
