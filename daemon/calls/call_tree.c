// SPDX-License-Identifier: Apache-2.0
/* call_tree - from call sites to functions; see call_tree.h. */
#include "daemon/calls/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/originals.h"
#include "libprof/context/context_age.h"
#include "libprof/store/contexts/store_contexts.h"

static bool to_function(void *arg, struct mp_context_key *key, struct mp_context_key *above)
{
	(void)above;
	md_call_names_to_function(arg, key);
	return false;
}

/* ---- entries -------------------------------------------------------------------------------- */

static uint64_t function_at(void *arg, const struct mp_context_key *key)
{
	struct mp_context_key function = *key;

	md_call_names_to_function(arg, &function);
	return function.vaddr;
}

/* Adds the entries of call sites, at the nodes of @tree, to those of the functions below @program. */
static int sum_entries(struct md_calls *calls, uint32_t program, const struct mp_context_tree *tree,
		       const struct mp_context_entries *of_sites, uint32_t *nodes)
{
	nodes[0] = program;
	/* A node's number is above its parent's. All functions are there. */
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		struct mp_context_key key = mp_context_key_of(tree, i);
		int r;

		if (!tree->nodes[i].total)
			continue;
		md_call_names_to_function(calls->names, &key);
		r = mp_context_child(&calls->tree, nodes[tree->nodes[i].parent], &key, &nodes[i]);
		if (r)
			return r;
		calls->entries[nodes[i]].estimate += of_sites[i].estimate;
		calls->entries[nodes[i]].most += of_sites[i].most;
	}
	return 0;
}

/* Estimates the entries of a program's nodes, whose functions lie below @program from node @from on. */
static int add_entries(struct md_calls *calls, uint32_t program, uint32_t from,
		       const struct mp_context_tree *tree)
{
	const struct mp_context_facts facts = {.function = function_at, .arg = calls->names};
	uint32_t *nodes = calloc(tree->nr_nodes, sizeof(*nodes));
	struct mp_context_entries *of_sites = NULL;
	struct mp_context_rate *rates = NULL;
	struct md_calls_entries *bigger;
	int r = nodes ? mp_context_rates(tree, &facts, &rates) : -ENOMEM;

	if (!r)
		r = mp_context_entries(tree, rates, &of_sites);
	if (!r) {
		bigger = reallocarray(calls->entries, calls->tree.nr_nodes, sizeof(*bigger));
		r = bigger ? 0 : -ENOMEM;
	}
	if (!r) {
		memset(bigger + from, 0, (calls->tree.nr_nodes - from) * sizeof(*bigger));
		calls->entries = bigger;
		r = sum_entries(calls, program, tree, of_sites, nodes);
	}
	free(of_sites);
	free(rates);
	free(nodes);
	return r;
}

/* ---- programs ------------------------------------------------------------------------------- */

static int add_program(struct md_calls *calls, struct mp_store *store,
		       const struct mp_module *module, int64_t since_s, struct mp_err *err)
{
	const struct mp_context_key key = {mp_context_module_of(&module->id), 0, MP_CONTEXT_AT};
	struct mp_context_tree tree;
	uint32_t program, from = calls->entries ? calls->tree.nr_nodes : 0;
	int r = mp_context_tree_init(&tree);

	if (r)
		return mp_err_code(err, -r);
	r = mp_store_read_contexts(store, MP_CONTEXTS, module->key, since_s, &tree, err);
	if (!r) {
		r = mp_context_child(&calls->tree, 0, &key, &program);
		if (!r)
			r = mp_context_add_tree(&calls->tree, program, &tree, to_function,
						calls->names);
		if (!r)
			r = add_entries(calls, program, from, &tree);
		if (r)
			mp_err_code(err, -r);
		calls->nr_programs++;
	}
	mp_context_tree_fini(&tree);
	return r;
}

/* Return: the modules' entry of a key in the store, if the filter wants it; else NULL. */
static const struct mp_module *wanted(const struct md_calls *calls, int64_t key,
				      const struct md_stats_filter *filter, const struct mp_id *id)
{
	for (size_t i = 0; i < calls->nr_modules; i++) {
		const struct mp_module *m = &calls->modules[i];

		if (m->key != key)
			continue;
		return md_stats_filter_matches(filter, m) && (!id || mp_id_equal(id, &m->id))
			       ? m
			       : NULL;
	}
	return NULL;
}

static int add_programs(struct md_calls *calls, struct mp_store *store,
			const struct md_stats_filter *filter, const struct mp_id *id,
			int64_t since_s, struct mp_err *err)
{
	struct mp_context_program *programs = NULL;
	size_t nr = 0;
	int r = mp_store_list_contexts(store, MP_CONTEXTS, since_s, &programs, &nr, err);

	for (size_t i = 0; i < nr && !r; i++) {
		const struct mp_module *m = wanted(calls, programs[i].module, filter, id);

		if (m)
			r = add_program(calls, store, m, since_s, err);
	}
	free(programs);
	return r;
}

int md_calls_read(struct mp_store *store, const struct md_stats_filter *filter, int64_t since_s,
		  void (*note)(void *arg, const char *message), void *arg, struct md_calls *out,
		  struct mp_err *err)
{
	struct mp_id id = {0};
	int r;

	*out = (struct md_calls){0};
	r = mp_context_tree_init(&out->tree) ? mp_err_set(err, ENOMEM, "out of memory") : 0;
	if (!r)
		r = mp_store_list_modules(store, 0, &out->modules, &out->nr_modules, err);
	if (!r && filter->binary)
		r = md_original_id(filter->binary, &id, err);
	if (!r) {
		out->names =
			md_call_names_new(out->modules, out->nr_modules, filter->binary, note, arg);
		r = out->names ? 0 : mp_err_set(err, ENOMEM, "out of memory");
	}
	if (!r)
		r = add_programs(out, store, filter, filter->binary ? &id : NULL, since_s, err);
	if (!r)
		r = md_call_names_failed(out->names, err);
	if (r)
		md_calls_fini(out);
	return r;
}

void md_calls_fini(struct md_calls *calls)
{
	md_call_names_free(calls->names);
	mp_store_free_modules(calls->modules, calls->nr_modules);
	mp_context_tree_fini(&calls->tree);
	free(calls->entries);
	*calls = (struct md_calls){0};
}

const struct mp_module *md_calls_module(const struct md_calls *calls, uint32_t node)
{
	const struct mp_context_key key = mp_context_key_of(&calls->tree, node);

	return md_call_names_module(calls->names, key.module);
}

const char *md_calls_name(const struct md_calls *calls, uint32_t node)
{
	const struct mp_context_key key = mp_context_key_of(&calls->tree, node);
	const struct mp_module *module;

	if (!md_calls_is_program(calls, node))
		return md_call_names_get(calls->names, &key);
	module = md_call_names_module(calls->names, key.module);
	return module ? basename(module->path) : "(unknown program)";
}

bool md_calls_next(const struct md_calls *calls, uint32_t *path, size_t *nr, bool down)
{
	const struct mp_context_node *nodes = calls->tree.nodes;

	if (!*nr || (down && nodes[path[*nr - 1]].first)) {
		path[*nr] = nodes[*nr ? path[*nr - 1] : 0].first;
		*nr += path[*nr] != 0;
		return *nr;
	}
	while (*nr && !nodes[path[*nr - 1]].next)
		--*nr;
	if (*nr)
		path[*nr - 1] = nodes[path[*nr - 1]].next;
	return *nr;
}

int md_calls_each_path(const struct md_calls *calls,
		       int (*fn)(void *arg, const uint32_t *path, size_t nr), void *arg)
{
	uint32_t *path = calloc(calls->tree.nr_nodes, sizeof(*path));
	size_t nr = 0;
	int r = path ? 0 : -ENOMEM;

	while (!r && md_calls_next(calls, path, &nr, true))
		if (calls->tree.nodes[path[nr - 1]].self)
			r = fn(arg, path, nr);
	free(path);
	return r;
}
