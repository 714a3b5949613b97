// SPDX-License-Identifier: Apache-2.0
/* call_graph - reads trees and counts, and solves; see call_graph.h. */
#include "daemon/calls/call_graph.h"

#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

/* ---- growing arrays -------------------------------------------------------------------------- */

uint32_t md_call_graph_site(struct md_call_graph *graph, uint32_t module, uint32_t site)
{
	uint32_t *id = &graph->modules[module].site_ids[site];
	uint32_t nr = graph->graph.nr_sites, max = graph->max_sites;

	if (*id != MP_NONE)
		return *id;
	if (nr == max) {
		max = 2 * max + 256;
		if (mp_resize(graph->sites, max) || mp_resize(graph->graph.sites, max))
			return MP_NONE;
		graph->max_sites = max;
	}
	graph->sites[nr] = (struct md_graph_site){module, site};
	graph->graph.sites[nr] = (struct mp_callgraph_sum){0};
	return *id = graph->graph.nr_sites++;
}

uint32_t md_call_graph_function(struct md_call_graph *graph, uint32_t module, uint32_t function)
{
	uint32_t *id = &graph->modules[module].function_ids[function];
	uint32_t nr = graph->graph.nr_functions, max = graph->max_functions;

	if (*id != MP_NONE)
		return *id;
	if (nr == max) {
		max = 2 * max + 256;
		if (mp_resize(graph->functions, max) || mp_resize(graph->graph.functions, max))
			return MP_NONE;
		graph->max_functions = max;
	}
	graph->functions[nr] = (struct md_graph_function){module, function};
	graph->graph.functions[nr] = (struct mp_callgraph_sum){0};
	return *id = graph->graph.nr_functions++;
}

static uint32_t *find_slot(const struct md_call_graph *graph, uint32_t *slots, uint32_t nr,
			   uint32_t site, uint32_t function)
{
	uint64_t hash = ((uint64_t)site << 32 | function) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t i = (uint32_t)(hash >> 32) & (nr - 1);

	while (slots[i] != MP_NONE && (graph->graph.edges[slots[i]].site != site ||
				       graph->graph.edges[slots[i]].function != function))
		i = (i + 1) & (nr - 1);
	return &slots[i];
}

static bool grow_edges(struct md_call_graph *graph)
{
	uint32_t nr = graph->graph.nr_edges, max = 2 * graph->max_edges + 256;
	uint32_t nr_slots = graph->nr_slots ? 2 * graph->nr_slots : 1024;
	uint32_t *slots = malloc(nr_slots * sizeof(*slots));

	if (!slots || mp_resize(graph->graph.edges, max) || mp_resize(graph->samples, max)) {
		free(slots);
		return false;
	}
	graph->max_edges = max;
	for (uint32_t i = 0; i < nr_slots; i++)
		slots[i] = MP_NONE;
	for (uint32_t i = 0; i < nr; i++)
		*find_slot(graph, slots, nr_slots, graph->graph.edges[i].site,
			   graph->graph.edges[i].function) = i;
	free(graph->slots);
	graph->slots = slots;
	graph->nr_slots = nr_slots;
	return true;
}

uint32_t md_call_graph_edge(struct md_call_graph *graph, uint32_t site, uint32_t function)
{
	uint32_t *slot, nr = graph->graph.nr_edges;

	if (nr == graph->max_edges && !grow_edges(graph))
		return MP_NONE;
	slot = find_slot(graph, graph->slots, graph->nr_slots, site, function);
	if (*slot == MP_NONE) {
		graph->graph.edges[nr] =
			(struct mp_callgraph_edge){.site = site, .function = function};
		graph->samples[nr] = (struct md_graph_samples){0};
		*slot = graph->graph.nr_edges++;
	}
	return *slot;
}

/* ---- places ---------------------------------------------------------------------------------- */

uint32_t md_call_graph_module(const struct md_call_graph *graph, uint64_t id)
{
	for (uint32_t i = 0; id && i < graph->nr_modules; i++)
		if (graph->modules[i].id == id)
			return i;
	return MP_NONE;
}

struct md_graph_function md_call_graph_place(const struct md_call_graph *graph,
					     const struct mp_context_key *key)
{
	struct md_graph_function place = {MP_NONE, MP_NONE};

	if (key->kind <= MP_CONTEXT_FUNCTION)
		place.module = md_call_graph_module(graph, key->module);
	if (place.module != MP_NONE)
		place.function = md_graph_function_at(&graph->modules[place.module],
						      key->vaddr - (key->kind == MP_CONTEXT_CALL));
	return place;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* ---- the solve ------------------------------------------------------------------------------- */

void md_call_graph_fini(struct md_call_graph *graph)
{
	for (size_t i = 0; i < graph->nr_modules; i++)
		md_graph_module_fini(&graph->modules[i]);
	free(graph->modules);
	free(graph->graph.edges);
	free(graph->graph.sites);
	free(graph->graph.functions);
	free(graph->samples);
	free(graph->sites);
	free(graph->functions);
	free(graph->slots);
	free(graph->passings);
	mp_store_free_modules(graph->stored, graph->nr_stored);
	*graph = (struct md_call_graph){0};
}
