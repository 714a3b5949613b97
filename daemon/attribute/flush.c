// SPDX-License-Identifier: Apache-2.0
/* flush - writes counts into the store; see flush.h. */
#include "libprof/base/clock.h"
#include "daemon/attribute/flush.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/module/copy_transfers.h"
#include "libprof/base/grow.h"
#include "libprof/store/contexts/store_contexts.h"
#include "libprof/store/jobs/store_crashes.h"
#include "libprof/store/store_copies.h"
#include "libprof/store/store_paths.h"
#include "libprof/store/store_ways.h"

int md_flush_start(struct md_flush *flush, int64_t now_s, struct mp_err *err)
{
	int ret = mp_store_begin(flush->store, err);

	if (ret)
		return ret;
	flush->session.start_s = flush->session.last_s = now_s;
	ret = mp_store_start_session(flush->store, &flush->session, err);
	if (ret) {
		mp_store_rollback(flush->store);
		return ret;
	}
	return mp_store_commit(flush->store, err);
}

static int compare_counts(const void *a, const void *b)
{
	const struct md_sample_slot *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* Return: the key in the original for an address of moved code, else @key. */
static uint64_t original_key(const struct md_modcache *mc, uint64_t key)
{
	const struct md_module *module = md_modcache_module(mc, md_sample_table_module(key));
	const struct mp_map *map = module ? md_module_map(module) : NULL;

	if (!map)
		return key;
	return md_sample_table_key(module->original,
				   mp_map_original(map, md_sample_table_vaddr(key)));
}

/* Makes a list of the table's counts, sorted by key, and adds up equal keys. */
static struct md_sample_slot *sorted_counts(const struct md_attribute *at, size_t *nr)
{
	struct md_sample_slot *list = malloc((at->samples.nr_used + 1) * sizeof(*list));
	size_t i, n = 0, kept = 0;

	if (!list)
		return NULL;
	for (i = 0; i < at->samples.nr_slots; i++) {
		if (!at->samples.slots[i].key)
			continue;
		list[n].key = original_key(at->modcache, at->samples.slots[i].key);
		list[n++].nr = at->samples.slots[i].nr;
	}
	qsort(list, n, sizeof(*list), compare_counts);
	for (i = 0; i < n; i++) {
		if (kept && list[kept - 1].key == list[i].key)
			list[kept - 1].nr += list[i].nr;
		else
			list[kept++] = list[i];
	}
	*nr = kept;
	return list;
}

/* Sets the module's key in the store, once per module. */
static int put_module(struct md_flush *flush, struct md_module *module, int64_t when_s,
		      struct mp_err *err)
{
	struct mp_module known = {.path = NULL};
	const char *path = module->path;
	uint64_t text_size = module->text_size;
	int ret;

	if (module->store_key)
		return 0;
	/* The original may be known only by its id. The store may know its path and size. */
	if (!text_size && !mp_store_find_module(flush->store, &module->id, &known, NULL)) {
		path = known.path;
		text_size = known.text_size;
	}
	ret = mp_store_put_module(flush->store, &module->id, module->kind, path, text_size, when_s,
				  &module->store_key, err);
	free(known.path);
	return ret;
}

static int write_counts(struct md_flush *flush, const struct md_attribute *at, int64_t when_s,
			struct mp_err *err)
{
	struct mp_ip_count *ips = NULL;
	struct md_sample_slot *list;
	size_t nr = 0, from, to;
	int ret = 0;

	list = sorted_counts(at, &nr);
	ips = malloc((nr + 1) * sizeof(*ips));
	if (!list || !ips) {
		ret = mp_err_set(err, ENOMEM, "no memory for writing counts");
		goto out;
	}
	for (from = 0; from < nr && !ret; from = to) {
		uint32_t index = md_sample_table_module(list[from].key);
		struct md_module *module = md_modcache_module(at->modcache, index);

		for (to = from; to < nr && md_sample_table_module(list[to].key) == index; to++) {
			ips[to - from].vaddr = md_sample_table_vaddr(list[to].key);
			ips[to - from].count = list[to].nr;
		}
		if (!module) {
			ret = mp_err_set(err, EBADMSG, "counts without a module: not written");
			break;
		}
		ret = put_module(flush, module, when_s, err);
		if (!ret)
			ret = mp_store_add_ip_counts(flush->store, module->store_key, when_s, ips,
						     to - from, err);
	}
out:
	free(list);
	free(ips);
	return ret;
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Return: the believed map of the module with the samples of @key, or NULL. */
static const struct mp_map *map_of(const struct md_modcache *mc, uint64_t key)
{
	const struct md_module *module = md_modcache_module(mc, md_sample_table_module(key));

	return module ? md_module_map(module) : NULL;
}

/* The counts of outputs, by their own addresses, sorted. Return: NULL: no memory. */
static struct md_sample_slot *counts_of_outputs(const struct md_attribute *at, size_t *nr)
{
	struct md_sample_slot *list = malloc((at->samples.nr_used + 1) * sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < at->samples.nr_slots; i++)
		if (at->samples.slots[i].key && map_of(at->modcache, at->samples.slots[i].key))
			list[n++] = at->samples.slots[i];
	if (n)
		qsort(list, n, sizeof(*list), compare_counts);
	*nr = n;
	return list;
}

static int write_copies(struct md_flush *flush, const struct md_attribute *at, int64_t when_s,
			struct mp_err *err)
{
	size_t nr = 0, from, to;
	struct md_sample_slot *list = counts_of_outputs(at, &nr);
	struct mp_copy_count *counts = malloc((nr + 1) * sizeof(*counts));
	int ret = list && counts ? 0 : mp_err_set(err, ENOMEM, "no memory for writing counts");

	for (from = 0; from < nr && !ret; from = to) {
		uint32_t index = md_sample_table_module(list[from].key);
		struct md_module *output = md_modcache_module(at->modcache, index);
		struct md_module *original = md_modcache_module(at->modcache, output->original);

		for (to = from; to < nr && md_sample_table_module(list[to].key) == index; to++) {
			uint64_t vaddr = md_sample_table_vaddr(list[to].key);

			counts[to - from] = (struct mp_copy_count){
				vaddr, mp_map_original(output->map, vaddr), list[to].nr};
		}
		ret = put_module(flush, output, when_s, err);
		if (!ret)
			ret = put_module(flush, original, when_s, err);
		if (!ret)
			ret = mp_store_add_copies(flush->store, output->store_key,
						  original->store_key, when_s, counts, to - from,
						  err);
	}
	free(list);
	free(counts);
	return ret;
}

/* ---- edges -------------------------------------------------------------------------------- */

struct edge_list {
	struct md_edge *edges;
	size_t nr, max;
	uint32_t module; /* module of the edges that are being added */
	uint64_t times;	 /* count of the edge that is being added */
	bool failed;
};

static void add_edge(void *arg, uint64_t from, uint64_t to)
{
	struct edge_list *list = arg;

	if (mp_grow(list->edges, list->max, list->nr + 1)) {
		list->failed = true;
		return;
	}
	list->edges[list->nr++] =
		(struct md_edge){md_sample_table_key(list->module, from), to, list->times};
}

static void add_transfer(struct edge_list *list, const struct md_module *module,
			 const struct md_edge *edge, uint64_t *nr_moved)
{
	uint64_t from = md_sample_table_vaddr(edge->from), to = edge->to;

	list->times = edge->nr;
	list->module = md_sample_table_module(edge->from);
	if (module && md_module_map(module)) {
		list->module = module->original;
		if (md_copy_translate_branch(module->map, module->map_ends, &from, &to) !=
		    MD_COPY_TAKEN) {
			*nr_moved += edge->nr;
			return;
		}
	}
	add_edge(list, from, to);
}

static int compare_edges(const void *a, const void *b)
{
	const struct md_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

/* Lists all edges, translated to the originals, sorted and added up. */
static int list_edges(const struct md_attribute *at, struct edge_list *list, uint64_t *nr_moved)
{
	size_t i, kept = 0;

	for (i = 0; i < at->taken_branches.nr_slots; i++) {
		const struct md_edge *edge = &at->taken_branches.slots[i];

		if (edge->from)
			add_transfer(list,
				     md_modcache_module(at->modcache,
							md_sample_table_module(edge->from)),
				     edge, nr_moved);
	}
	for (i = 0; i < at->straight_runs.nr_slots; i++) {
		const struct md_edge *run = &at->straight_runs.slots[i];
		const struct md_module *module =
			md_modcache_module(at->modcache, md_sample_table_module(run->from));

		if (!run->from || !module || !md_module_map(module))
			continue;
		list->times = run->nr;
		list->module = module->original;
		*nr_moved += run->nr * md_copy_translate_run(module->map, module->map_ends,
							     md_sample_table_vaddr(run->from),
							     run->to, add_edge, list);
	}
	if (list->failed)
		return -ENOMEM;
	if (list->nr)
		qsort(list->edges, list->nr, sizeof(*list->edges), compare_edges);
	for (i = 0; i < list->nr; i++) {
		if (kept && !compare_edges(&list->edges[kept - 1], &list->edges[i]))
			list->edges[kept - 1].nr += list->edges[i].nr;
		else
			list->edges[kept++] = list->edges[i];
	}
	list->nr = kept;
	return 0;
}

static int write_edges(struct md_flush *flush, struct md_attribute *at, int64_t when_s,
		       uint64_t *nr_moved, struct mp_err *err)
{
	struct edge_list list = {0};
	struct mp_edge_count *edges = NULL;
	size_t from, to;
	int ret;

	*nr_moved = 0;
	if (!at->taken_branches.nr_used && !at->straight_runs.nr_used)
		return 0;
	ret = list_edges(at, &list, nr_moved);
	edges = malloc((list.nr + 1) * sizeof(*edges));
	if (ret || !edges) {
		ret = mp_err_set(err, ENOMEM, "no memory for writing edges");
		goto out;
	}
	for (from = 0; from < list.nr && !ret; from = to) {
		uint32_t index = md_sample_table_module(list.edges[from].from);
		struct md_module *module = md_modcache_module(at->modcache, index);

		for (to = from;
		     to < list.nr && md_sample_table_module(list.edges[to].from) == index; to++)
			edges[to - from] = (struct mp_edge_count){
				.from = md_sample_table_vaddr(list.edges[to].from),
				.to = list.edges[to].to,
				.count = list.edges[to].nr};
		if (!module) {
			ret = mp_err_set(err, EBADMSG, "edges without a module: not written");
			break;
		}
		ret = put_module(flush, module, when_s, err);
		if (!ret)
			ret = mp_store_add_edges(flush->store, module->store_key, when_s, edges,
						 to - from, err);
	}
out:
	free(list.edges);
	free(edges);
	return ret;
}

/* ---- ways of branches --------------------------------------------------------------------- */

/* The ways in @edges, which are of one module and sorted. Return: their number. */
static size_t take_ways(const struct md_edge *edges, size_t nr, struct mp_way_count *ways)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t vaddr = md_sample_table_vaddr(edges[i].from);

		if (!kept || ways[kept - 1].vaddr != vaddr)
			ways[kept++] = (struct mp_way_count){.vaddr = vaddr};
		if (edges[i].to)
			ways[kept - 1].taken += edges[i].nr;
		else
			ways[kept - 1].fell += edges[i].nr;
	}
	return kept;
}

static int write_ways(struct md_flush *flush, struct md_attribute *at, int64_t when_s,
		      struct mp_err *err)
{
	const struct md_edges *counts = at->ways ? &at->ways->counts : NULL;
	struct mp_way_count *ways;
	struct md_edge *list;
	size_t nr = 0, from, to;
	int ret = 0;

	if (!counts || !counts->nr_used)
		return 0;
	list = malloc(counts->nr_used * sizeof(*list));
	ways = malloc(counts->nr_used * sizeof(*ways));
	if (!list || !ways)
		ret = mp_err_set(err, ENOMEM, "no memory for writing ways");
	for (size_t i = 0; i < counts->nr_slots && !ret; i++)
		if (counts->slots[i].from)
			list[nr++] = counts->slots[i];
	if (nr)
		qsort(list, nr, sizeof(*list), compare_edges);
	for (from = 0; from < nr && !ret; from = to) {
		uint32_t index = md_sample_table_module(list[from].from);
		struct md_module *module = md_modcache_module(at->modcache, index);

		for (to = from; to < nr && md_sample_table_module(list[to].from) == index;)
			to++;
		ret = module ? put_module(flush, module, when_s, err)
			     : mp_err_set(err, EBADMSG, "ways without a module: not written");
		if (!ret)
			ret = mp_store_add_ways(flush->store, module->store_key, when_s, ways,
						take_ways(list + from, to - from, ways), err);
	}
	free(list);
	free(ways);
	return ret;
}

/* ---- paths -------------------------------------------------------------------------------- */

static int write_paths(struct md_flush *flush, struct md_attribute *at, int64_t when_s,
		       struct mp_err *err)
{
	struct mp_path_count *counts = NULL;
	struct md_path *paths = NULL;
	uint8_t *keys = NULL;
	size_t nr = 0, from, to;
	int ret;

	if (!at->paths.counts.nr_used)
		return 0;
	ret = md_paths_list(&at->paths, at->modcache, &paths, &nr, &keys);
	if (ret == -EBADMSG)
		return mp_err_set(err, EBADMSG, "paths without a module: not written");
	counts = malloc((nr + 1) * sizeof(*counts));
	if (ret || !counts) {
		ret = mp_err_set(err, ENOMEM, "no memory for writing paths");
		goto out;
	}
	for (from = 0; from < nr && !ret; from = to) {
		struct md_module *module = md_modcache_module(at->modcache, paths[from].module);

		for (to = from; to < nr && paths[to].module == paths[from].module; to++)
			counts[to - from] = paths[to].count;
		if (!module) {
			ret = mp_err_set(err, EBADMSG, "paths without a module: not written");
			break;
		}
		ret = put_module(flush, module, when_s, err);
		if (!ret)
			ret = mp_store_add_paths(flush->store, module->store_key, when_s, counts,
						 to - from, err);
	}
out:
	free(counts);
	free(paths);
	free(keys);
	return ret;
}

/* ---- calling contexts --------------------------------------------------------------------- */

/* A module may be on stacks without a sample of its own. The names of its frames need its path. */
static int put_named(struct md_flush *flush, const struct md_attribute *at, const bool *is_named,
		     int64_t when_s, struct mp_err *err)
{
	int ret = 0;

	for (uint32_t i = 1; i < md_modcache_end(at->modcache) && !ret; i++)
		if (is_named[i])
			ret = put_module(flush, md_modcache_module(at->modcache, i), when_s, err);
	return ret;
}

static int write_contexts(struct md_flush *flush, const struct md_attribute *at,
			  const struct md_contexts *contexts, enum mp_context_table table,
			  int64_t when_s, struct mp_err *err)
{
	bool *is_named = calloc(md_modcache_end(at->modcache), sizeof(*is_named));
	int ret = is_named ? 0 : mp_err_set(err, ENOMEM, "no memory for writing contexts");

	for (size_t i = 0; i < md_contexts_nr_programs(contexts) && !ret; i++) {
		struct mp_context_tree tree;
		struct md_module *module;
		uint32_t program;

		ret = md_contexts_tree(contexts, i, at->modcache, &program, is_named, &tree);
		if (ret) {
			mp_err_set(err, -ret, "calling contexts: %s", strerror(-ret));
			break;
		}
		module = md_modcache_module(at->modcache, program);
		if (module && md_module_map(module))
			module = md_modcache_module(at->modcache, module->original);
		ret = module ? put_module(flush, module, when_s, err)
			     : mp_err_set(err, EBADMSG, "calling contexts without a program");
		if (!ret)
			ret = mp_store_add_contexts(flush->store, table, module->store_key, when_s,
						    &tree, err);
		mp_context_tree_fini(&tree);
	}
	if (!ret)
		ret = put_named(flush, at, is_named, when_s, err);
	free(is_named);
	return ret;
}

/* ---- the rest ----------------------------------------------------------------------------- */

static int write_activity(struct md_flush *flush, const struct md_attribute *at, int64_t when_s,
			  struct mp_err *err)
{
	uint32_t i;
	int ret = 0;

	for (i = 1; i < at->nr_activity && !ret; i++) {
		const struct mp_activity *a = &at->activity[i];
		struct md_module *module = md_modcache_module(at->modcache, i);

		if (!module || !(a->app | a->lib | a->kernel | a->other))
			continue;
		if (md_module_map(module))
			module = md_modcache_module(at->modcache, module->original);
		ret = put_module(flush, module, when_s, err);
		if (!ret)
			ret = mp_store_add_activity(flush->store, module->store_key, when_s, a,
						    err);
	}
	return ret;
}

static int write_crashes(struct md_flush *flush, const struct md_attribute *at, int64_t when_s,
			 struct mp_err *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < at->nr_crashes && !ret; i++) {
		struct md_module *module = md_modcache_module(at->modcache, at->crashes[i].module);

		if (module && md_module_map(module))
			module = md_modcache_module(at->modcache, module->original);
		if (!module)
			continue;
		ret = put_module(flush, module, when_s, err);
		if (!ret)
			ret = mp_store_add_crash(flush->store, module->store_key, when_s,
						 at->crashes[i].signal, err);
	}
	return ret;
}

static int write_processes(struct md_flush *flush, int64_t when_s, struct mp_err *err)
{
	const struct mp_process *processes;
	size_t nr = flush->owner ? md_sample_owner_list(flush->owner, &processes) : 0;

	return nr ? mp_store_add_processes(flush->store, when_s, processes, nr, err) : 0;
}

int md_flush_write(struct md_flush *flush, struct md_attribute *at, int64_t when_s,
		   struct mp_err *err)
{
	uint64_t began = mp_now_ns(), nr_moved = 0;
	int ret;

	if (!at->ledger.emitted && !at->taken_branches.nr_used && !at->straight_runs.nr_used &&
	    !at->paths.counts.nr_used && !at->nr_crashes && !at->ledger.contexts &&
	    !at->ledger.calls)
		return 0;
	if (!md_attribute_is_conserved(at))
		return mp_err_set(err, EBADMSG, "samples do not add up: not written");
	ret = mp_store_begin(flush->store, err);
	if (ret)
		return ret;
	/* morph-worker may have dropped modules of files that are gone: their keys mean nothing now. */
	if (mp_store_was_changed(flush->store))
		md_modcache_forget_keys(at->modcache);
	ret = write_counts(flush, at, when_s, err);
	if (!ret)
		ret = write_copies(flush, at, when_s, err);
	if (!ret)
		ret = write_edges(flush, at, when_s, &nr_moved, err);
	if (!ret)
		ret = write_ways(flush, at, when_s, err);
	if (!ret)
		ret = write_paths(flush, at, when_s, err);
	if (!ret)
		ret = write_contexts(flush, at, at->contexts, MP_CONTEXTS, when_s, err);
	if (!ret)
		ret = write_contexts(flush, at, at->calls, MP_CALLS, when_s, err);
	if (!ret)
		ret = write_activity(flush, at, when_s, err);
	if (!ret)
		ret = write_crashes(flush, at, when_s, err);
	if (!ret)
		ret = write_processes(flush, when_s, err);
	if (!ret)
		ret = mp_store_add_ledger(flush->store, flush->session.key, when_s, &at->ledger,
					  err);
	if (!ret)
		ret = mp_store_commit(flush->store, err);
	else
		mp_store_rollback(flush->store);
	if (ret) {
		md_modcache_forget_keys(at->modcache);
		return ret;
	}
	flush->time_ns += mp_now_ns() - began;
	flush->nr++;
	at->branches.untranslated += nr_moved;
	md_attribute_clear(at);
	if (flush->owner)
		md_sample_owner_clear(flush->owner);
	return 0;
}
