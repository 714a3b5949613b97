// SPDX-License-Identifier: Apache-2.0
/*
 * pull_paths - adds up paths of many hosts, one chunk of text at a time. Checks each row, and decides
 * which are left out. Called by pull.
 */
#ifndef MD_FLEET_PULL_PATHS_H
#define MD_FLEET_PULL_PATHS_H

#include "daemon/fleet/pull/pull_sum.h"
#include "libprof/note/path_key.h"

struct md_pull_paths;

/* @elf: as for md_pull_sum_new(). Return: NULL: no memory. */
struct md_pull_paths *md_pull_paths_new(const struct mp_elf *elf);
void md_pull_paths_free(struct md_pull_paths *paths);
/*
 * Adds a row; chunks must ascend. A row that is not sound counts as bad and changes nothing else. Return:
 * 0, -EPROTO (chunks out of order), -ENOMEM.
 */
int md_pull_paths_add(struct md_pull_paths *paths, const struct md_pull_row *row,
		      struct mp_err *err);

struct md_pull_paths_result {
	struct mp_path_count *paths; /* their keys lie behind them. Ownership: free() */
	size_t nr;
	uint64_t total;
	int32_t last_day; /* of all rows; -1: there are none */
	uint64_t nr_rows, nr_bad;
	uint64_t outside;  /* counts of paths with blocks outside of the file's code, not capped */
	uint64_t left_out; /* counts of paths for which there was no room, not capped */
};
/* The sums, each rounded to the nearest. Return: 0, -EOVERFLOW, -ENOMEM. */
int md_pull_paths_finish(struct md_pull_paths *paths, struct md_pull_paths_result *out,
			 struct mp_err *err);

#endif
