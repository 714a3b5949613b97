// SPDX-License-Identifier: Apache-2.0
/* flush - counts into the store; see flush.h. */
#include "daemon/flush.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

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
	const struct md_count *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* Moved code counts for where it came from. */
static uint64_t original_key(const struct md_modcache *mc, uint64_t key)
{
	const struct md_module *module = md_modcache_module(mc, md_counts_module(key));

	if (!module || !module->map)
		return key;
	return md_counts_key(module->original, mp_map_original(module->map, md_counts_vaddr(key)));
}

/* The table as a sorted list, at the head of which equal keys are one. */
static struct md_count *sorted_counts(const struct md_attribute *at, size_t *nr)
{
	struct md_count *list = malloc((at->counts.nr_used + 1) * sizeof(*list));
	size_t i, n = 0, kept = 0;

	if (!list)
		return NULL;
	for (i = 0; i < at->counts.nr_slots; i++) {
		if (!at->counts.slots[i].key)
			continue;
		list[n].key = original_key(at->modcache, at->counts.slots[i].key);
		list[n++].nr = at->counts.slots[i].nr;
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

/* The store's key of @module, asked for once. */
static int put_module(struct md_flush *flush, struct md_module *module, int64_t when_s,
		      struct mp_err *err)
{
	struct mp_module known = {.path = NULL};
	const char *path = module->path;
	uint64_t text_size = module->text_size;
	int ret;

	if (module->store_key)
		return 0;
	/* An original that was only heard of: the store may have met its file. */
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
	struct md_count *list;
	size_t nr = 0, from, to;
	int ret = 0;

	list = sorted_counts(at, &nr);
	ips = malloc((nr + 1) * sizeof(*ips));
	if (!list || !ips) {
		ret = mp_err_set(err, ENOMEM, "no memory for writing counts");
		goto out;
	}
	for (from = 0; from < nr && !ret; from = to) {
		uint32_t index = md_counts_module(list[from].key);
		struct md_module *module = md_modcache_module(at->modcache, index);

		for (to = from; to < nr && md_counts_module(list[to].key) == index; to++) {
			ips[to - from].vaddr = md_counts_vaddr(list[to].key);
			ips[to - from].count = list[to].nr;
		}
		if (!module) {
			ret = mp_err_set(err, EBADMSG, "counts of no module: not written");
			break;
		}
		ret = put_module(flush, module, when_s, err);
		if (!ret)
			ret = mp_store_add_counts(flush->store, module->store_key, when_s, ips,
						  to - from, err);
	}
out:
	free(list);
	free(ips);
	return ret;
}

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
		if (module->original)
			module = md_modcache_module(at->modcache, module->original);
		ret = put_module(flush, module, when_s, err);
		if (!ret)
			ret = mp_store_add_activity(flush->store, module->store_key, when_s, a,
						    err);
	}
	return ret;
}

int md_flush_write(struct md_flush *flush, struct md_attribute *at, int64_t when_s,
		   struct mp_err *err)
{
	uint64_t began = now_ns();
	int ret;

	if (!at->ledger.emitted)
		return 0;
	if (!md_attribute_is_conserved(at))
		return mp_err_set(err, EBADMSG, "samples do not add up: not written");
	ret = mp_store_begin(flush->store, err);
	if (ret)
		return ret;
	ret = write_counts(flush, at, when_s, err);
	if (!ret)
		ret = write_activity(flush, at, when_s, err);
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
	flush->time_ns += now_ns() - began;
	flush->nr++;
	md_attribute_clear(at);
	return 0;
}
