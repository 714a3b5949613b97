// SPDX-License-Identifier: Apache-2.0
/*
 * last_paths - remembers the code addresses of each thread's last stack. Called by contexts.
 *
 * A walker compares slots and return addresses. It cannot see that a call from the same place entered
 * another function, as a call through a pointer does. The last path tells.
 */
#ifndef MD_LAST_PATHS_H
#define MD_LAST_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/record/record.h"

/* Threads whose hashes collide, and paths beyond the bytes, are forgotten. */
#define MD_LAST_PATHS_THREADS 1024
#define MD_LAST_PATHS_BYTES   (1u << 19)

struct md_last_paths;

/* Return: NULL: no memory. */
struct md_last_paths *md_last_paths_new(void);
void md_last_paths_free(struct md_last_paths *paths);

/*
 * md_last_paths_inner - the address that lay just inside of the outermost @nr_old addresses of @task's last
 * path. @ips: the thread's path now, innermost first. *@is_sample: that address was the sampled one.
 * Return: 0 if no path is known, if it was not complete, or if its outermost addresses were others.
 */
uint64_t md_last_paths_inner(const struct md_last_paths *paths, const struct morph_task *task,
			     const uint64_t *ips, size_t nr, size_t nr_old, bool *is_sample);
/* Remembers a complete path. @nr 0: forgets the thread's last one. */
void md_last_paths_put(struct md_last_paths *paths, const struct morph_task *task,
		       const uint64_t *ips, size_t nr);

#endif
