// SPDX-License-Identifier: Apache-2.0
/* last_paths - one table, direct-mapped by thread; see last_paths.h. */
#include "daemon/context/last_paths.h"

#include <stdlib.h>
#include <string.h>

struct path {
	uint32_t tgid, tid, exec_id;
	size_t nr, max;
	uint64_t *ips; /* innermost first */
};

struct md_last_paths {
	struct path paths[MD_LAST_PATHS_THREADS];
	size_t bytes; /* of all addresses */
};

struct md_last_paths *md_last_paths_new(void)
{
	return calloc(1, sizeof(struct md_last_paths));
}

void md_last_paths_free(struct md_last_paths *paths)
{
	for (size_t i = 0; paths && i < MD_LAST_PATHS_THREADS; i++)
		free(paths->paths[i].ips);
	free(paths);
}

static size_t slot_of(uint32_t tid)
{
	_Static_assert(MD_LAST_PATHS_THREADS == 1u << (32 - 22), "one slot for each hash");
	return (tid * 0x9e3779b1u) >> 22;
}

uint64_t md_last_paths_inner(const struct md_last_paths *paths, const struct morph_task *task,
			     const uint64_t *ips, size_t nr, size_t nr_old, bool *is_sample)
{
	const struct path *last = &paths->paths[slot_of(task->tid)];

	if (last->tid != task->tid || last->tgid != task->tgid || last->exec_id != task->exec_id ||
	    nr_old > nr || nr_old >= last->nr)
		return 0;
	/* If a record was lost, the walker compared with another stack. */
	for (size_t i = 1; i <= nr_old; i++)
		if (last->ips[last->nr - i] != ips[nr - i])
			return 0;
	*is_sample = nr_old + 1 == last->nr;
	return last->ips[last->nr - nr_old - 1];
}

void md_last_paths_put(struct md_last_paths *paths, const struct morph_task *task,
		       const uint64_t *ips, size_t nr)
{
	struct path *path = &paths->paths[slot_of(task->tid)];

	path->nr = 0;
	if (path->max < nr || path->max > 4 * nr + 64) {
		paths->bytes -= path->max * sizeof(*ips);
		free(path->ips);
		*path = (struct path){0};
		if (!nr || nr * sizeof(*ips) > MD_LAST_PATHS_BYTES - paths->bytes)
			return;
		path->ips = calloc(nr, sizeof(*ips));
		if (!path->ips)
			return;
		path->max = nr;
		paths->bytes += nr * sizeof(*ips);
	}
	path->tgid = task->tgid;
	path->tid = task->tid;
	path->exec_id = task->exec_id;
	path->nr = nr;
	if (nr)
		memcpy(path->ips, ips, nr * sizeof(*ips));
}
