// SPDX-License-Identifier: Apache-2.0
/* graph_edges - the edges that trees and code show. Called by call_graph. */
#ifndef MD_GRAPH_EDGES_H
#define MD_GRAPH_EDGES_H

#include "daemon/calls/graph_tails.h"

/* Adds the samples of a program's tree. @called: a clock of calls sampled them. Return: 0, -ENOMEM. */
int md_graph_add_tree(struct md_call_graph *graph, const struct md_graph_tails *tails,
		      const struct mp_context_tree *tree, bool called);
/* Adds the edges of direct calls and tail calls that ran. Return: 0, -ENOMEM. */
int md_graph_add_direct(struct md_call_graph *graph);

#endif
