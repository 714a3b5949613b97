// SPDX-License-Identifier: Apache-2.0
/*
 * contexts - the calling contexts of samples since the last flush, one tree for each program. Called
 * by attribute, which gives samples and their stacks, by call_samples, which gives calls, and by flush.
 *
 * A sample counts for one sample period: no source tells how long its thread ran since its last
 * sample. Nodes name modules by their index in modcache until a flush, since which outputs belong to
 * which originals may be decided later.
 */
#ifndef MD_CONTEXTS_H
#define MD_CONTEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/module/modcache.h"
#include "daemon/module/procmap.h"
#include "daemon/record/record.h"
#include "libprof/context/context_tree.h"

/* Nodes of all trees; beyond that the smallest leaves of the largest tree are folded. */
#define MD_CONTEXTS_NODES_MAX 16384u
#define MD_CONTEXTS_FLUSHES   5 /* flushes in an interval, at most, while the trees are full */
#define MD_CALLS_NODES_MAX    131072u /* the same for sampled calls, which only `morphd run` takes */

struct md_contexts;

/* @max_nodes: of all trees. Return: NULL: no memory. */
struct md_contexts *md_contexts_new(uint32_t max_nodes);
void md_contexts_free(struct md_contexts *contexts);
/* Removes all trees. */
void md_contexts_clear(struct md_contexts *contexts);
/* From now on a sample stands for @period_ns of CPU time. */
void md_contexts_set_period(struct md_contexts *contexts, uint64_t period_ns);

/* Remembers the sample at @ip, whose stack may follow. */
void md_contexts_note_sample(struct md_contexts *contexts, const struct morph_task *task,
			     uint64_t ip);
/*
 * Adds the sample that was noted last, with its callers. Return: false if it is not counted: its
 * program is not known, the sample is of another thread, or there is no memory.
 */
bool md_contexts_add(struct md_contexts *contexts, struct md_procmap *procmap,
		     const struct md_modcache *modcache, const struct morph_stack *stack);
/*
 * Adds a call that a program sampled: @caller is its return address, @function an address in the stub of
 * the function that it entered (note/call_file.h). The call was sampled @nr times, each time for
 * @period calls. @space knows its program. Return: 0, -ENOMEM, -ENOENT: @function is not in a
 * stub of an output whose original is known.
 */
int md_contexts_add_call(struct md_contexts *contexts, const struct md_space *space,
			 const struct md_modcache *modcache, uint64_t caller, uint64_t function,
			 uint64_t nr, uint64_t period);
/*
 * Return: the path of the sample that was added last, outermost first, for measurements. Its modules are
 * indices in modcache.
 */
const struct mp_context_step *md_contexts_last_path(const struct md_contexts *contexts, size_t *nr);
/* Return: samples in all trees. */
uint64_t md_contexts_nr(const struct md_contexts *contexts);
/* Return: true if nodes will soon be folded, unless the trees are given to the store before. */
bool md_contexts_is_nearly_full(const struct md_contexts *contexts);

/* Return: number of trees. */
size_t md_contexts_nr_programs(const struct md_contexts *contexts);
/*
 * md_contexts_tree - the tree number @i in terms of the store: modules by their identity, and code of
 * outputs by its original. *@program: index of the program. @is_named: by index in modcache, set for
 * the modules that the tree names; NULL: not wanted. Return: 0, -ENOMEM, -EBADMSG (a module is gone).
 * Ownership: mp_context_tree_fini(@out).
 */
int md_contexts_tree(const struct md_contexts *contexts, size_t i,
		     const struct md_modcache *modcache, uint32_t *program, bool *is_named,
		     struct mp_context_tree *out);

#endif
