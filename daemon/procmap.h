// SPDX-License-Identifier: Apache-2.0
/*
 * procmap - which module each process had mapped where, now in the stream's time.
 *
 * One address space per process and exec; fork shares it until one side
 * changes (the list is copied on write). It never looks at files: a mapping comes
 * with its module, or with the reason why it has none. Called by attribute.
 */
#ifndef MD_PROCMAP_H
#define MD_PROCMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/store.h"

#define MD_MAPPED MP_NR_UNATTR /* md_mapping.why: it has a module */

/*
 * Ascending, never overlapping:
 *
 *	[start end) +bias module    [start end) why
 *	0x401000 0x4c2000 0 3       0x7f00c000 0x7f00d000 ANONYMOUS
 */
struct md_mapping {
	uint64_t start, end; /* run-time addresses */
	uint64_t bias;	     /* link-time address = run-time address + bias, modulo 2^64 */
	uint32_t module;     /* modcache's index */
	uint8_t why;	     /* MD_MAPPED or enum mp_unattributed */
};

struct md_space;
struct md_procmap;

struct md_procmap *md_procmap_new(void);
void md_procmap_free(struct md_procmap *pm);

/* A new program: the old mappings go, unless they are of @exec_id already (which is not 0). */
int md_procmap_exec(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id, uint32_t nr_threads);
/* The process @child is a copy of @parent. An unknown parent leaves the child unknown. */
int md_procmap_fork(struct md_procmap *pm, uint32_t child, uint32_t parent);
void md_procmap_add_thread(struct md_procmap *pm, uint32_t tgid);
/* One thread less; after the last one the space lingers for samples that come late. */
void md_procmap_exit(struct md_procmap *pm, uint32_t tgid);
/* The same of all its threads. */
void md_procmap_end(struct md_procmap *pm, uint32_t tgid);
/* Add @nr mappings, each hiding what it overlaps. Return: 0, -ENOMEM (also: too many). */
int md_procmap_map(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id,
		   const struct md_mapping *mappings, size_t nr);
int md_procmap_unmap(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id, uint64_t start,
		     uint64_t end);
/* Nothing known of any process holds any longer. */
void md_procmap_forget(struct md_procmap *pm);

/* Return: NULL where the process, or this exec of it, is not known. Valid until the next change. */
struct md_space *md_procmap_find(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id);
/* Return: NULL where no mapping holds @ip. */
const struct md_mapping *md_space_find(const struct md_space *space, uint64_t ip);

/* The module of the program itself, 0: not known. */
uint32_t md_space_program(const struct md_space *space);
/* True where the program is still to be told: the first file mapped after an exec is it. */
bool md_space_wants_program(const struct md_space *space);
void md_space_set_program(struct md_space *space, uint32_t module);

/* True the first time it is called for this process. */
bool md_space_is_new(struct md_space *space);

size_t md_procmap_nr_spaces(const struct md_procmap *pm);
/* Calls @fn for every module that some process has mapped, repeatedly if mapped repeatedly. */
void md_procmap_each_module(const struct md_procmap *pm, void (*fn)(void *arg, uint32_t module),
			    void *arg);

#endif
