// SPDX-License-Identifier: Apache-2.0
/* annotate_callers - copies the edges that call_edges finds; see annotate_callers.h. */
#include "daemon/stats/annotate_callers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/calls/call_edges.h"

/* A file that cannot be read gives its functions no names; that is no reason to print no code. */
static void ignore(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

static char *copy(const char *text)
{
	return strdup(text ? text : "?");
}

static int add(const struct md_calls *calls, const struct md_call_edge *edge, uint64_t all,
	       struct md_ann_caller *out)
{
	const struct mp_module *module = edge->node ? md_calls_module(calls, edge->node) : NULL;

	*out = (struct md_ann_caller){
		.function = edge->node ? copy(md_calls_name(calls, edge->node)) : NULL,
		.module = module ? copy(module->path) : NULL,
		.samples = edge->samples,
		.share = (double)edge->samples / (double)all,
	};
	return (edge->node && !out->function) || (module && !out->module) ? -ENOMEM : 0;
}

static int add_all(const struct md_calls *calls, const struct md_call_edges *edges,
		   struct md_ann_caller **out, size_t *nr)
{
	int r = 0;

	if (!edges->nr)
		return 0;
	*out = calloc(edges->nr, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (size_t i = 0; i < edges->nr && !r; i++)
		if (edges->edges[i].samples)
			r = add(calls, &edges->edges[i], edges->samples, &(*out)[(*nr)++]);
	return r;
}

int md_annotate_callers(struct mp_store *store, const char *function, const struct mp_id *module,
			int64_t since_s, struct md_ann_caller **out, size_t *nr, struct mp_err *err)
{
	struct md_stats_filter all = {0};
	struct md_call_edges edges = {0};
	struct md_calls calls;
	int r;

	*out = NULL;
	*nr = 0;
	r = md_calls_read(store, &all, since_s, ignore, NULL, &calls, err);
	if (r)
		return r;
	r = md_call_edges_find(&calls, function, module, MD_CALLERS, &edges);
	if (!r)
		r = add_all(&calls, &edges, out, nr);
	free(edges.edges);
	md_calls_fini(&calls);
	return r ? mp_err_code(err, -r) : 0;
}

void md_annotate_callers_free(struct md_ann_caller *callers, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		free(callers[i].function);
		free(callers[i].module);
	}
	free(callers);
}
