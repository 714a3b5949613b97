// SPDX-License-Identifier: Apache-2.0
/*
 * graph_modules - the modules of a call graph: code, inferred counts, call sites, and what their PLTs
 * lead to. Called by call_graph.
 */
#ifndef MD_GRAPH_MODULES_H
#define MD_GRAPH_MODULES_H

#include "daemon/code/stats_code.h"
#include "libprof/callgraph/call_sites.h"
#include "libprof/context/context_tree.h"
#include "libprof/infer/counts.h"

/* A function of a module of the graph. */
struct md_graph_function {
	uint32_t module;   /* index */
	uint32_t function; /* index in the module's CFG; MP_NONE: not known */
};

struct md_graph_module {
	const struct mp_module *module;
	uint64_t id; /* as trees name it */
	struct md_code code;
	struct mp_counts counts;
	struct mp_call_sites sites;
	bool is_open;	   /* its code can be read */
	bool has_counts;   /* and counts are known */
	bool is_clocked;   /* a clock of calls sampled calls of its functions */
	bool *has_samples; /* by function: a block of it has a count */
	/* By function: samples in the trees of the graph's programs, and in the trees of all programs. */
	double *self, *self_of_all;
	double *scale;		/* by function: from the module's counts to those of the graph */
	uint32_t *function_ids; /* by function: index in the graph; MP_NONE: none yet */
	uint32_t *site_ids;	/* by site */
	/* By site: the function that it calls, if the code tells (graph_imports). */
	struct md_graph_function *targets;
	struct md_graph_function *pointed; /* of other modules, to which its data may point */
	uint32_t nr_pointed;
};

/* Opens a module's code. @note: gets a message if it cannot be read. Return: 0, -ENOMEM. */
int md_graph_module_open(struct md_graph_module *m, const char *binary,
			 void (*note)(void *arg, const char *message), void *arg,
			 struct mp_err *err);
/* Infers counts, and finds all call sites. Return: 0, -errno. */
int md_graph_module_count(struct md_graph_module *m, struct mp_store *store, int64_t since_s,
			  struct mp_err *err);
/* Return: are the counts executions, and not samples for each instruction? */
static inline bool md_graph_module_is_executed(const struct md_graph_module *m)
{
	return m->has_counts && (m->counts.exact || m->counts.unsampled);
}
/* Adds the module's samples in trees and the instructions that it executed. */
void md_graph_module_add_executed(const struct md_graph_module *m, double *samples, double *insns);
/* Scales counts to those of the graph's programs. @unit: samples for each count and instruction. */
void md_graph_module_scale(struct md_graph_module *m, double unit);
void md_graph_module_fini(struct md_graph_module *m);

/* Return: index of the function at @vaddr, or MP_NONE. */
uint32_t md_graph_function_at(const struct md_graph_module *m, uint64_t vaddr);
/* Return: index of the site whose call returns to @next, or MP_NONE. */
uint32_t md_graph_site_before(const struct md_graph_module *m, uint64_t next);
/* Return: index of the first site at or behind @vaddr. */
uint32_t md_graph_first_site(const struct md_graph_module *m, uint64_t vaddr);
#endif
