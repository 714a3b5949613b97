// SPDX-License-Identifier: Apache-2.0
/*
 * call_edges - the callers or the callees of one function. Called by the command query.
 *
 * The samples of an edge are those whose stack has it, each counted once, however often a recursive
 * function takes it.
 */
#ifndef MD_CALL_EDGES_H
#define MD_CALL_EDGES_H

#include "daemon/calls/call_tree.h"

enum md_call_direction {
	MD_CALLERS,
	MD_CALLEES,
};

struct md_call_edge {
	uint32_t node; /* of the caller or callee, one of several; 0: the function itself, or nobody */
	uint64_t samples;
	uint64_t nr_new; /* activations of the called function that are certainly new */
};

struct md_call_edges {
	struct md_call_edge *edges; /* most samples first */
	size_t nr, max;
	uint64_t samples; /* whose stacks have the function */
};

/*
 * @module: the function is in this module; NULL: in any. Return: 0, -ENOMEM. Without such a function, there
 * are no edges. Ownership: free(@out->edges).
 */
int md_call_edges_find(const struct md_calls *calls, const char *function,
		       const struct mp_id *module, enum md_call_direction direction,
		       struct md_call_edges *out);

#endif
