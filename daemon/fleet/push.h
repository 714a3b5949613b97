// SPDX-License-Identifier: Apache-2.0
/*
 * push - sends the counts that the fleet's server lacks. Decides when to connect again, when to wait,
 * and what an answer of the server means. libprof/store/fleet decides which rows are lacking. A push
 * may be killed at any moment; the next one continues.
 */
#ifndef MD_FLEET_PUSH_H
#define MD_FLEET_PUSH_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/fleet/file_names.h"
#include "libprof/base/err.h"
#include "libprof/store/fleet/store_fleet.h"

struct md_push_options {
	const char *database; /* libpq's conninfo */
	struct md_file_names names;
	uint8_t machine[MP_FLEET_MACHINE_BYTES]; /* this machine, in the local store only */
	uint64_t bytes_per_s;			 /* 0: no limit */
	size_t batch_bytes;			 /* at most, of counts in one transaction */
	double first_wait_s, give_up_s;
};

struct md_push_report {
	size_t nr_batches, nr_rows, nr_modules;
	uint64_t nr_bytes;   /* of counts */
	size_t nr_too_large; /* rows that no server takes */
	size_t nr_epochs;    /* that began, because the server knows another copy of the store */
	size_t nr_waits;
	size_t nr_refused; /* modules whose counts the server takes for damaged; the others were sent */
	char refused[512]; /* why the last of them was */
};

/*
 * md_push_run - sends everything. @store: writable. Return: 0; -EAGAIN: the server is gone or does not
 * take more for now, try later; -EACCES: not enrolled, or banned; -EPERM: no TLS; -errno.
 */
int md_push_run(const struct md_push_options *options, struct mp_store *store,
		struct md_push_report *report, struct mp_err *err);

#endif
