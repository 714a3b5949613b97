// SPDX-License-Identifier: Apache-2.0
/*
 * pull_tree - adds up trees of calling contexts of many hosts, one row at a time. Checks each row, and
 * decides which are left out. Memory does not grow with the number of hosts: where the sum has too many
 * nodes, its smallest leaves are folded. Called by pull.
 *
 * Samples are added in units of 2^-16, as the weights of hosts are, and rounded at the end. What is cut off
 * at one node is given to the next one, in the order of the tree. So the sum of all is rounded to the nearest,
 * and each node, and each part of the tree, is off by less than one sample. Without capped hosts nothing is
 * rounded. Time and certainly new activations are rounded down for each row of a capped host.
 */
#ifndef MD_FLEET_PULL_TREE_H
#define MD_FLEET_PULL_TREE_H

#include "daemon/fleet/pull/pull_sum.h"
#include "libprof/context/context_tree.h"

/* Nodes beyond which the sum is folded to half of them: some 20 MiB of memory. */
#define MD_PULL_NODES_MAX (1u << 17)

struct md_pull_tree {
	enum mp_fleet_kind kind;
	struct mp_context_tree sum;
	struct mp_context_tree row; /* the memory of the row that is being added */
	uint64_t nr_new;	    /* more than any node of the sum has */
	int32_t last_day;
	uint64_t nr_rows, nr_bad;
};

/* Return: 0, -ENOMEM. Ownership: md_pull_tree_fini(@tree), in any case. */
int md_pull_tree_init(struct md_pull_tree *tree, enum mp_fleet_kind kind, struct mp_err *err);
void md_pull_tree_fini(struct md_pull_tree *tree);
/* Adds a row. One that is not sound counts as bad and changes nothing else. Return: 0, -ENOMEM. */
int md_pull_tree_add(struct md_pull_tree *tree, const struct md_pull_row *row, struct mp_err *err);
/* Rounds the sum. Nothing may be added afterwards. Return: 0, -ENOMEM. */
int md_pull_tree_finish(struct md_pull_tree *tree, struct mp_err *err);

#endif
