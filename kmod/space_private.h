/* SPDX-License-Identifier: GPL-2.0 */
/*
 * space_private - a process's mappings as the module keeps them, and their memory. Included by
 * space.c and space_pool.c only.
 */
#ifndef MORPH_SPACE_PRIVATE_H
#define MORPH_SPACE_PRIVATE_H

#include <linux/types.h>

struct morph_mapped;

/* A process with more mappings, such as a JIT compiler, reports all further ones at once. */
#define NR_MAPS_MAX 128
#define NR_MAPS_MIN 7

struct map {
	u64 start, end, off;
	struct morph_mapped *file;
};

/* Forked processes share it until one of them changes it. Oldest first. */
struct maps {
	atomic_t nr_users;
	u32 nr, room;
	struct map map[];
};

struct space {
	struct hlist_node node;
	u32 tgid, exec_id;
	u32 generation;
	u32 nr_reported;  /* number of the first of @maps that the reader has */
	bool is_begun;	  /* a SPACE record of this exec_id was written */
	bool is_reported; /* the reader may know this process: report its end */
	bool is_overfull; /* too many mappings: report all further ones at once */
	struct maps *maps;
	struct morph_mapped *program;
};

/* The first two return NULL without memory. New mappings have one user. */
struct space *morph_space_alloc(void);
struct maps *morph_maps_alloc(u32 room);
void morph_space_put_back(struct space *space);
/* Frees @maps, which may be NULL, with its last user. */
void morph_maps_put(struct maps *maps);
/* Context: nobody allocates or frees spaces any more. */
void morph_space_pools_free(void);
/* @to must have room, and no mappings. */
void morph_maps_copy(struct maps *to, const struct maps *from);

#endif
