// SPDX-License-Identifier: Apache-2.0
/*
 * graph_callbacks - functions that calls pass on, and edges to them that no sample shows. Called by call_graph
 * and graph_jumps.
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

/* A call passes @passed on to @to. */
struct md_graph_passing {
	struct md_graph_function to, passed;
};

/*
 * Finds what direct calls and tail calls pass on to functions that call through a register. Comes after
 * md_graph_resolve(). Return: 0, -ENOMEM.
 */
int md_graph_find_passed(struct md_call_graph *graph);
/* Return: does a direct call pass @passed on to @to? @passed.function MP_NONE: any function. */
bool md_graph_is_passed_to(const struct md_call_graph *graph, struct md_graph_function to,
			   struct md_graph_function passed);

/* Adds the edges. Comes after all that samples show. Return: 0, -ENOMEM. */
int md_graph_add_callbacks(struct md_call_graph *graph);

#endif
