// SPDX-License-Identifier: Apache-2.0
/*
 * modcache - modules by identity, and the files that lead to them.
 *
 * A file (a device and inode at one time, or a MODULE record of a recording) gives a
 * module and the way from file offsets to link-time addresses; two copies of a file
 * give one module. It opens files only when asked to (md_modcache_resolve), and has them read
 * by modread.
 */
#ifndef MD_MODCACHE_H
#define MD_MODCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/procmap.h"
#include "daemon/record.h"
#include "libprof/id.h"
#include "libprof/map.h"
#include "libprof/path_table.h"
#include "libprof/store.h"

#define MD_MODULES_MAX 65535 /* an index has 16 bits in the table of counts */

/*
 * Anybody may write a map note that names any original. A map counts only once it is known that the
 * module is an output of that original; until then, samples count for the module itself.
 */
enum md_belief {
	MD_MAP_UNDECIDED,
	MD_MAP_BELIEVED,
	MD_MAP_REFUSED,
};

struct md_module {
	struct mp_id id;
	enum mp_module_kind kind;
	char *path; /* last one seen */
	uint64_t text_size;
	struct mp_map *map;	     /* of its note; see md_module_map(). NULL: it has none */
	enum md_belief belief;	     /* in @map */
	int fd;			     /* with @map: the file, to be confirmed; -1: nothing to do */
	uint8_t nr_asked;	     /* files of this module that were to be confirmed */
	uint32_t *map_ends;	     /* of md_moved_ends(); NULL: not known */
	struct mp_path_table *paths; /* with @map, and numbers its paths; NULL: not */
	uint8_t *path_bytes;	     /* what @paths was made of, or what of it came so far */
	uint32_t path_size, path_come;
	uint32_t index;
	uint32_t original; /* index of the original that @map names; 0: none */
	int64_t store_key; /* 0: not asked for yet */
	bool in_use;	   /* mark of md_modcache_sweep() */
};

/* The map by which samples of @module count for @module->original. NULL: for @module itself. */
static inline const struct mp_map *md_module_map(const struct md_module *module)
{
	return module->belief == MD_MAP_BELIEVED ? module->map : NULL;
}

/* What one file turned out to be. */
struct md_file {
	uint32_t number; /* in MMAP and MODULE records */
	uint32_t module; /* index, 0: none */
	uint8_t why;	 /* enum mp_unattributed where there is none */
	bool recorded;	 /* its MODULE record is in the recording */
	uint32_t nr_segments;
	struct morph_segment *segments;
	/* key, for files of this machine */
	uint64_t dev, ino, generation;
	int64_t mtime_ns, ctime_ns;
	char *path;
	struct md_file *next;
};

struct md_modcache;
struct md_sandbox;

struct md_modcache *md_modcache_new(void);
void md_modcache_free(struct md_modcache *mc);

/* By index. NULL where there is none. */
struct md_module *md_modcache_module(const struct md_modcache *mc, uint32_t index);
/* Modules known now, and files ever looked into. */
size_t md_modcache_nr_modules(const struct md_modcache *mc);
/* Highest index + 1. */
uint32_t md_modcache_end(const struct md_modcache *mc);
/* Time spent in finding, reading and hashing files, or in reading MODULE records. */
uint64_t md_modcache_analysis_ns(const struct md_modcache *mc);

/* By number. NULL where no MODULE record or resolved file has it. */
struct md_file *md_modcache_file(const struct md_modcache *mc, uint32_t number);

/* From now on files are read in @sandbox (the caller's), not here. NULL: here. */
void md_modcache_set_sandbox(struct md_modcache *mc, struct md_sandbox *sandbox);
/* What is to be said of a file that was just resolved, once; NULL: nothing. Valid until the next
 * md_modcache_resolve(). */
const char *md_modcache_remark(struct md_modcache *mc);

/*
 * md_modcache_resolve - look on this machine for the file of @mmap; never fails but for memory.
 * @mapped_ns: unix time of the mapping, 0 where it was found mapped just now.
 */
int md_modcache_resolve(struct md_modcache *mc, const struct morph_mmap *mmap, int64_t mapped_ns,
			struct md_file **out);
/*
 * The running kernel, or why its samples stay without (*@remark, NULL: nothing to say).
 * @base: where samples have its _text; 0: at its run-time address.
 */
int md_modcache_resolve_kernel(struct md_modcache *mc, uint64_t base, struct md_file **out,
			       const char **remark);
/* Take a recording's word. Return: 0, -ENOMEM, -EBADMSG. */
int md_modcache_declare(struct md_modcache *mc, const struct morph_module *record);
int md_modcache_declare_map(struct md_modcache *mc, const struct morph_module_map *record);
int md_modcache_declare_pieces(struct md_modcache *mc, const struct morph_module_pieces *record);
int md_modcache_declare_ends(struct md_modcache *mc, const struct morph_module_ends *record);
int md_modcache_declare_paths(struct md_modcache *mc, const struct morph_module_paths *record);
int md_modcache_declare_output(struct md_modcache *mc, const struct morph_module_output *record);
/* The kernel's file if one was resolved or declared, else NULL. */
const struct md_file *md_modcache_kernel(const struct md_modcache *mc);

/* Add the MODULE (and MODULE_MAP or MODULE_PIECES, MODULE_ENDS, MODULE_PATHS) records of @file to @buf.
 * Return: 0 or -ENOMEM. */
int md_modcache_describe(const struct md_modcache *mc, const struct md_file *file,
			 struct md_buf *buf);

/* Add a MODULE_OUTPUT record to @buf, if a recording has a file of @module. Return: 0 or -ENOMEM. */
int md_modcache_describe_output(const struct md_modcache *mc, const struct md_module *module,
				struct md_buf *buf);

/*
 * md_file_mappings - the mappings that [start, start + len) of the file at @off makes.
 * Return: how many (at most @max).
 */
size_t md_file_mappings(const struct md_file *file, const struct morph_mmap *mmap,
			struct md_mapping *out, size_t max);

/* When many have come and gone: forget files, and modules that nobody in @pm has mapped. To be
 * called only while no count is pending. */
void md_modcache_sweep(struct md_modcache *mc, const struct md_procmap *pm);
/* Store keys from a transaction that was rolled back mean nothing. */
void md_modcache_forget_keys(struct md_modcache *mc);

#endif
