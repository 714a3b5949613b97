// SPDX-License-Identifier: Apache-2.0
/*
 * graph_callbacks - edges that no sample shows, to functions that were passed on. Called by call_graph.
 *
 * Where a call passes the address of a function to a function that itself calls through a register, that
 * register may hold the address:
 *
 *	lea  visit, %rsi; call traverse	   in a caller of traverse()
 *	call *%rbx			   in traverse(): may call visit()
 */
#ifndef MD_GRAPH_CALLBACKS_H
#define MD_GRAPH_CALLBACKS_H

#include "daemon/calls/call_graph.h"

/* Adds the edges. Comes after all that samples show. Return: 0, -ENOMEM. */
int md_graph_add_callbacks(struct md_call_graph *graph);

#endif
