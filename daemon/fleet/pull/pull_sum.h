// SPDX-License-Identifier: Apache-2.0
/*
 * pull_sum - adds up counts, edges and paths of many hosts, one chunk of text at a time, so that memory does not grow
 * with the number of hosts. Checks each row, and decides which are left out. Called by pull.
 */
#ifndef MD_FLEET_PULL_SUM_H
#define MD_FLEET_PULL_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/base/ip_count.h"
#include "libprof/elf/elf.h"
#include "libprof/note/path_key.h"
#include "libprof/store/fleet/store_fleet.h"

/* A host's weight, in these units: the server caps hosts that have more samples than most. */
#define MD_PULL_WHOLE 65536

/* One row, as the server has it. */
struct md_pull_row {
	int64_t chunk, total;
	int32_t last_day, weight, host; /* @host: a number, above 0 */
	bool exact;
	const uint8_t *data;
	size_t size;
};

/* Checks the fields that rows of all kinds have, but not the bytes of @row->data. */
static inline bool md_pull_row_is_sound(const struct md_pull_row *row, size_t bytes_max)
{
	return row->data && row->size && row->size <= bytes_max && row->total > 0 &&
	       row->weight > 0 && row->weight <= MD_PULL_WHOLE && row->last_day >= 0;
}

struct md_pull_sum;

/*
 * @elf: the module's file, or NULL. With it, addresses outside of its code are left out.
 * @confirmed: at no address, and for no transfer, does a host count with more than the host with the next
 * most. So a host that invents counts adds nothing where no other host has any.
 */
int md_pull_sum_new(enum mp_fleet_kind kind, const struct mp_elf *elf, bool confirmed,
		    struct md_pull_sum **out, struct mp_err *err);
void md_pull_sum_free(struct md_pull_sum *sum);
/*
 * Adds a row; chunks must ascend, and in each of them the hosts. A row that is not sound counts as bad and changes nothing
 * else. Return: 0, -EPROTO (chunks out of order), -EOVERFLOW, -ENOMEM.
 */
int md_pull_sum_add(struct md_pull_sum *sum, const struct md_pull_row *row, struct mp_err *err);

struct md_pull_result {
	union { /* as the kind says; the keys of paths lie behind them. Ownership: free() */
		void *entries;
		struct mp_ip_count *counts;
		struct mp_edge_count *edges;
		struct mp_path_count *paths;
	};
	size_t nr;
	uint64_t total;
	bool exact;	  /* all rows were, and nothing was left out of them */
	int32_t last_day; /* of all rows; -1: there are none */
	uint64_t nr_rows, nr_bad;
	uint64_t outside;  /* counts of addresses outside of the file's code, not capped */
	uint64_t left_out; /* counts for which there was no room */
};
/* The sums, each rounded to the nearest. Return: 0, -EOVERFLOW, -ENOMEM. */
int md_pull_sum_finish(struct md_pull_sum *sum, struct md_pull_result *out, struct mp_err *err);

#endif
