// SPDX-License-Identifier: Apache-2.0
/* stats_calls - prints calling contexts as a tree, and callers and callees; see stats_calls.h. */
#include "daemon/stats/stats_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/calls/call_edges.h"
#include "daemon/code/demangle.h"
#include "daemon/stats/defaults.h"

struct print {
	struct md_cli *cli;
	const struct md_calls_query *query;
	const struct md_calls *calls;
	json_t *rows; /* NULL: text */
	long nr;
	double least;
};

void md_stats_note_file(void *arg, const char *message)
{
	md_cli_note("%s: its functions are not known", message);
	json_array_append_new(arg, mp_json_string(message));
}

/* Return: false after the last row that is wanted. */
static bool has_room(struct print *p)
{
	return !p->query->limit || p->nr++ < p->query->limit;
}

static void put_name(const struct md_calls *calls, uint32_t node)
{
	const struct mp_module *module = md_calls_module(calls, node);
	const char *name = md_calls_name(calls, node);
	char *brief = name ? md_name_brief(name) : NULL;

	md_cli_put_text(brief ? brief : name ? name : "?");
	free(brief);
	if (!module || md_calls_is_program(calls, node))
		return;
	printf("  [");
	md_cli_put_text(basename(module->path));
	putchar(']');
}

static json_t *node_json(const struct print *p, uint32_t node, double percent, uint64_t samples)
{
	const struct mp_module *module = node ? md_calls_module(p->calls, node) : NULL;
	const char *name = node ? md_calls_name(p->calls, node) : NULL;
	json_t *json = json_pack("{s:f, s:I}", "percent", percent, "samples", (json_int_t)samples);
	char id[80];

	json_object_set_new(json, "function", name ? mp_json_string(name) : json_null());
	json_object_set_new(json, "module", module ? mp_json_string(module->path) : json_null());
	json_object_set_new(json, "build_id",
			    module ? json_string(md_stats_format_id(&module->id, id))
				   : json_null());
	return json;
}

/* ---- contexts ------------------------------------------------------------------------------- */

static json_t *context_json(const struct print *p, const uint32_t *path, size_t nr, double percent)
{
	const struct mp_context_node *node = &p->calls->tree.nodes[path[nr - 1]];
	const struct md_calls_entries *entries = &p->calls->entries[path[nr - 1]];
	json_t *json = node_json(p, path[nr - 1], percent, node->total), *names = json_array();

	for (size_t i = 0; i < nr; i++) {
		const char *name = md_calls_name(p->calls, path[i]);

		json_array_append_new(names, mp_json_string(name ? name : "?"));
	}
	json_object_set_new(json, "path", names);
	json_object_set_new(json, "self_samples", json_integer((json_int_t)node->self));
	json_object_set_new(json, "seconds", json_real((double)node->total_ns / 1e9));
	json_object_set_new(json, "certainly_new", json_integer((json_int_t)node->nr_new));
	json_object_set_new(json, "entries", json_real(entries->estimate));
	json_object_set_new(json, "entries_most", json_real(entries->most));
	return json;
}

static void put_context(const struct print *p, uint32_t node, size_t depth, double percent)
{
	const struct mp_context_node *n = &p->calls->tree.nodes[node];
	const struct md_calls_entries *e = &p->calls->entries[node];

	printf("%6.2f%% %12" PRIu64 " %12" PRIu64 " %9" PRIu64 " %9.0f %9.0f  %*s", percent,
	       n->total, n->self, n->nr_new, e->estimate, e->most, (int)(2 * depth), "");
	put_name(p->calls, node);
	putchar('\n');
}

/* Prints the nodes with enough samples, each before its children. */
static void print_contexts(struct print *p)
{
	const struct mp_context_node *nodes = p->calls->tree.nodes;
	uint32_t *path = calloc(p->calls->tree.nr_nodes, sizeof(*path));
	bool wanted = true;
	size_t nr = 0;

	while (path && md_calls_next(p->calls, path, &nr, wanted)) {
		uint32_t node = path[nr - 1];
		double percent = 100.0 * (double)nodes[node].total / (double)nodes[0].total;

		wanted = percent >= p->least;
		if (!wanted)
			continue;
		if (!has_room(p))
			break;
		if (p->rows)
			json_array_append_new(p->rows, context_json(p, path, nr, percent));
		else
			put_context(p, node, nr - 1, percent);
	}
	free(path);
}

/* ---- callers and callees -------------------------------------------------------------------- */

static void print_edges(struct print *p, const struct md_call_edges *edges)
{
	bool callers = p->query->what == MD_CALLS_CALLERS;

	for (size_t i = 0; i < edges->nr; i++) {
		const struct md_call_edge *e = &edges->edges[i];
		double percent = 100.0 * (double)e->samples / (double)edges->samples;
		json_t *json;

		if (percent < p->least)
			continue;
		if (!has_room(p))
			break;
		if (p->rows) {
			json = node_json(p, e->node, percent, e->samples);
			json_object_set_new(json, "certainly_new",
					    json_integer((json_int_t)e->nr_new));
			json_array_append_new(p->rows, json);
			continue;
		}
		printf("%6.2f%% %12" PRIu64 " %12" PRIu64 "  ", percent, e->samples, e->nr_new);
		if (e->node)
			put_name(p->calls, e->node);
		else
			printf(callers ? "(nobody)" : "(itself)");
		putchar('\n');
	}
}

/* ---- the rows ------------------------------------------------------------------------------- */

static int print_rows(struct print *p, const struct md_call_edges *edges, json_t *notes)
{
	static const char *const by[] = {"context", "caller", "callee"};
	json_t *root = NULL;

	if (p->cli->json) {
		root = md_cli_json_new("query");
		p->rows = json_array();
	} else if (edges) {
		printf("   Part      Samples          New  %s  [Module]\n",
		       p->query->what == MD_CALLS_CALLERS ? "Caller" : "Callee");
	} else {
		printf(" Of all      Samples         Self       New   Entries   At most  Calling context  "
		       "[Module]\n");
	}
	if (edges)
		print_edges(p, edges);
	else
		print_contexts(p);
	if (!root)
		return md_cli_finish(MP_EXIT_DONE);
	json_object_set_new(root, "by", json_string(by[p->query->what]));
	json_object_set_new(root, "percent_of",
			    json_string(edges ? "samples below the function"
					      : "all samples with a calling context"));
	json_object_set_new(
		root, "total_samples",
		json_integer((json_int_t)(edges ? edges->samples : p->calls->tree.nodes[0].total)));
	json_object_set_new(root, "period_start_s", json_integer(p->query->start_s));
	json_object_set(root, "notes", notes);
	json_object_set_new(root, "rows", p->rows);
	return md_cli_json_print(root);
}

static int say_nothing_found(const struct print *p)
{
	if (!p->calls->nr_programs)
		md_cli_note("%s: no sample of such a program has a calling context: see morphd(8), "
			    "--stacks",
			    p->cli->path);
	else
		md_cli_note("%s: no calling context has such a function", p->cli->path);
	return MP_EXIT_NO_PROFILE;
}

static int find_and_print(struct print *p, json_t *notes)
{
	struct md_call_edges edges = {0};
	bool contexts = p->query->what == MD_CALLS_CONTEXTS;
	int r = 0;

	if (!contexts)
		r = md_call_edges_find(p->calls, p->query->function, NULL,
				       p->query->what == MD_CALLS_CALLERS ? MD_CALLERS : MD_CALLEES,
				       &edges);
	if (r)
		r = md_cli_fail("out of memory");
	else if (!p->calls->nr_programs || (!contexts && !edges.samples))
		r = say_nothing_found(p);
	else
		r = print_rows(p, contexts ? NULL : &edges, notes);
	free(edges.edges);
	return r;
}

int md_stats_calls(struct md_cli *cli, struct mp_store *store, const struct md_calls_query *query)
{
	struct print p = {.cli = cli, .query = query, .least = query->percent_limit};
	json_t *notes = json_array();
	struct md_calls calls;
	struct mp_err err = {0};
	int r = md_calls_read(store, query->filter, query->since_s, md_stats_note_file, notes,
			      &calls, &err);

	if (p.least < 0)
		p.least = query->what == MD_CALLS_CONTEXTS && !query->limit
				  ? MD_STATS_CONTEXTS_PERCENT
				  : 0;
	p.calls = &calls;
	if (r) {
		r = md_cli_fail("%s", err.msg);
	} else {
		r = find_and_print(&p, notes);
		md_calls_fini(&calls);
	}
	json_decref(notes);
	return r;
}
