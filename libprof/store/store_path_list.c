// SPDX-License-Identifier: Apache-2.0
/* store_path_list - paths of the store in memory; see store_path_list.h. */
#include "libprof/store/store_path_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

void mp_path_list_fini(struct mp_path_list *list)
{
	free(list->paths);
	free(list->bytes);
	*list = (struct mp_path_list){0};
}

int mp_path_list_add(struct mp_path_list *list, const uint8_t *key, uint32_t size, uint64_t count,
		     struct mp_err *err)
{
	if (mp_grow(list->paths, list->max, list->nr + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	if (list->max_bytes - list->nr_bytes < size) {
		size_t max = 2 * list->max_bytes + 4096 + size;
		void *bigger = realloc(list->bytes, max);

		if (!bigger)
			return mp_err_set(err, ENOMEM, "out of memory");
		list->bytes = bigger;
		list->max_bytes = max;
	}
	memcpy(list->bytes + list->nr_bytes, key, size);
	list->nr_bytes += size;
	list->paths[list->nr++] = (struct mp_path_count){.key_size = size, .count = count};
	return 0;
}

void mp_path_list_point(struct mp_path_list *list)
{
	const uint8_t *at = list->bytes;

	for (size_t i = 0; i < list->nr; i++) {
		list->paths[i].key = at;
		at += list->paths[i].key_size;
	}
}

int mp_path_compare_keys(const void *a, const void *b)
{
	const struct mp_path_count *x = a, *y = b;
	uint32_t size = x->key_size < y->key_size ? x->key_size : y->key_size;
	int order = memcmp(x->key, y->key, size);

	return order ? order : (x->key_size > y->key_size) - (x->key_size < y->key_size);
}

int mp_path_list_finish(struct mp_store *store, struct mp_path_list *list,
			struct mp_path_count **out, size_t *nr, struct mp_err *err)
{
	struct mp_path_count *all;
	uint8_t *bytes;
	size_t n = 0;

	*out = NULL;
	*nr = 0;
	if (!list->nr)
		return 0;
	mp_path_list_point(list);
	qsort(list->paths, list->nr, sizeof(*list->paths), mp_path_compare_keys);
	for (size_t i = 0; i < list->nr; i++) {
		if (!n || mp_path_compare_keys(&list->paths[n - 1], &list->paths[i]))
			list->paths[n++] = list->paths[i];
		else if (__builtin_add_overflow(list->paths[n - 1].count, list->paths[i].count,
						&list->paths[n - 1].count))
			return mp_store_damaged(store, "a count beyond 64 bits", err);
	}
	all = malloc(n * sizeof(*all) + list->nr_bytes);
	if (!all)
		return mp_err_set(err, ENOMEM, "out of memory");
	bytes = (uint8_t *)(all + n);
	for (size_t i = 0; i < n; i++) {
		all[i] = list->paths[i];
		all[i].key = memcpy(bytes, all[i].key, all[i].key_size);
		bytes += all[i].key_size;
	}
	*out = all;
	*nr = n;
	return 0;
}
