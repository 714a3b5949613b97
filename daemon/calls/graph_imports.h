// SPDX-License-Identifier: Apache-2.0
/*
 * graph_imports - where calls through a PLT, and through a pointer at a fixed address, lead. Called by
 * call_graph.
 */
#ifndef MD_GRAPH_IMPORTS_H
#define MD_GRAPH_IMPORTS_H

#include "daemon/calls/call_graph.h"

/*
 * md_graph_resolve - finds the function that each direct site calls: one of its module, or the only
 * function that any module exports by the symbol's name. Return: 0, -ENOMEM.
 */
int md_graph_resolve(struct md_call_graph *graph);
/*
 * md_graph_share_targets - adds edges from the other sites to the functions that samples saw behind one
 * site: all sites with one symbol (without a name: with one pointer) call the same functions. Comes
 * after the samples. Return: 0, -ENOMEM.
 */
int md_graph_share_targets(struct md_call_graph *graph);

#endif
