// SPDX-License-Identifier: Apache-2.0
/*
 * procmap - knows which module each process had mapped where, at the current time of the
 * stream.
 *
 * One address space per process and exec. After a fork both processes share it until one
 * changes it (copy on write). Never reads files: a mapping comes with its module, or the reason
 * why it has none. Called by attribute.
 */
#ifndef MD_PROCMAP_H
#define MD_PROCMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/store/store.h"

#define MD_MAPPED MP_NR_UNATTR /* md_mapping.why of a mapping that has a module */

/*
 * Ascending, never overlapping:
 *
 *	[start end) +bias module    [start end) why
 *	0x401000 0x4c2000 0 3       0x7f00c000 0x7f00d000 ANONYMOUS
 */
struct md_mapping {
	uint64_t start, end; /* run-time addresses */
	uint64_t bias;	     /* link-time address = run-time address + bias, modulo 2^64 */
	uint32_t module;     /* index in modcache */
	uint8_t why;	     /* MD_MAPPED or enum mp_unattributed */
};

struct md_space;
struct md_procmap;

struct md_procmap *md_procmap_new(void);
void md_procmap_free(struct md_procmap *pm);

/*
 * A new program: removes the old mappings, unless they already belong to @exec_id, which is not
 * 0.
 */
int md_procmap_exec(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id, uint32_t nr_threads);
/* Copies @parent's address space to @child. If @parent is unknown, @child becomes unknown. */
int md_procmap_fork(struct md_procmap *pm, uint32_t child, uint32_t parent);
void md_procmap_add_thread(struct md_procmap *pm, uint32_t tgid);
/* One thread exited. After the last one, the address space is kept for late samples. */
void md_procmap_exit(struct md_procmap *pm, uint32_t tgid);
/* All threads of the process exited. */
void md_procmap_end(struct md_procmap *pm, uint32_t tgid);
/* Adds @nr mappings; each replaces what it overlaps. Return: 0, -ENOMEM (also: too many). */
int md_procmap_map(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id,
		   const struct md_mapping *mappings, size_t nr);
int md_procmap_unmap(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id, uint64_t start,
		     uint64_t end);
/* Forgets everything about all processes. */
void md_procmap_forget(struct md_procmap *pm);

/* Return: NULL: the process, or this exec of it, is not known. Valid until the next change. */
struct md_space *md_procmap_find(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id);
/* The same for whichever program the process ran last. */
struct md_space *md_procmap_find_any(struct md_procmap *pm, uint32_t tgid);
/* Return: NULL: no mapping holds @ip. */
const struct md_mapping *md_space_find(const struct md_space *space, uint64_t ip);

/* Return: the module of the program itself; 0: not known. */
uint32_t md_space_program(const struct md_space *space);
/*
 * Return: true if the program is not known yet: the first file mapped after an exec is the
 * program.
 */
bool md_space_wants_program(const struct md_space *space);
void md_space_set_program(struct md_space *space, uint32_t module);

/* Return: true at the first call for this process. */
bool md_space_is_new(struct md_space *space);

size_t md_procmap_nr_spaces(const struct md_procmap *pm);
/*
 * Calls @fn for the module of each mapping. A module that is mapped several times is reported
 * several times.
 */
void md_procmap_each_module(const struct md_procmap *pm, void (*fn)(void *arg, uint32_t module),
			    void *arg);

#endif
