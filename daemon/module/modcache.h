// SPDX-License-Identifier: Apache-2.0
/*
 * modcache - knows modules by identity, and the files that lead to them. Called by attribute
 * and pipeline.
 *
 * A file (device and inode at one time, or a MODULE record of a recording) gives a module, and
 * a translation of file offsets to link-time addresses. Two copies of a file give one module.
 * Opens files only in md_modcache_resolve(); modread reads them.
 */
#ifndef MD_MODCACHE_H
#define MD_MODCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/module/procmap.h"
#include "daemon/record/record.h"
#include "libprof/elf/id.h"
#include "libprof/note/map.h"
#include "libprof/note/path_table.h"
#include "libprof/store/store.h"
#include "libprof/unwind/rows.h"

#define MD_MODULES_MAX 65535 /* the table of counts has 16 bits for an index */

/*
 * Anybody can write a map note that names any original. A map is used only after the module was
 * confirmed as an output of that original. Until then its samples count for the module itself.
 */
enum md_map_belief {
	MD_MAP_UNDECIDED,
	MD_MAP_BELIEVED,
	MD_MAP_REFUSED,
};

struct md_module {
	struct mp_id id;
	enum mp_module_kind kind;
	char *path; /* the last one seen */
	uint64_t text_size;
	struct mp_map *map;	       /* from its note; NULL: none. Use md_module_map(). */
	enum md_map_belief map_belief; /* state of @map */
	int fd;			       /* with @map: the file that is to be confirmed; -1: none */
	uint8_t nr_asked;	     /* files of this module for which confirmation was requested */
	uint32_t *map_ends;	     /* from md_copy_branch_offsets(); NULL: not known */
	struct mp_path_table *paths; /* with @map, if the file numbers its paths; else NULL */
	uint8_t *path_bytes;	     /* source of @paths, possibly still incomplete */
	uint32_t path_size, path_come;
	struct mp_rows rows; /* for walking stacks; without rows if they were not asked for */
	uint8_t *row_bytes; /* source of @rows, possibly still incomplete; NULL: a source keeps them */
	uint32_t row_size, row_come;
	uint32_t index;
	uint32_t original; /* index of the original that @map names; 0: none */
	int64_t store_key; /* 0: not known yet */
	bool in_use;	   /* mark of md_modcache_sweep() */
	/* samples that may have shown ways of branches on this day (of the stream's clock) */
	uint32_t nr_for_ways, day_for_ways;
};

/*
 * Return: the map that translates samples of @module to @module->original; NULL: count for
 * @module itself.
 */
static inline const struct mp_map *md_module_map(const struct md_module *module)
{
	return module->map_belief == MD_MAP_BELIEVED ? module->map : NULL;
}

/* A file, and the module that it was found to be. */
struct md_file {
	uint32_t number; /* as in MMAP and MODULE records */
	uint32_t module; /* index; 0: none */
	uint8_t why;	 /* enum mp_unattributed if there is no module */
	bool recorded;	 /* the recording has its MODULE record */
	/* of rows_give: the session whose source has its rows; without and with a generation */
	uint8_t rows_given[2];
	uint32_t nr_segments;
	struct morph_segment *segments;
	/* key for files of this machine */
	uint64_t dev, ino, generation;
	int64_t mtime_ns, ctime_ns;
	uint64_t unchanged_ns; /* monotonic: then it was as it had been read; 0: not known */
	uint64_t gone_ns;      /* monotonic: then it could not be opened for a mapping; 0: never */
	char *path;
	struct md_file *next;
};

struct md_modcache;
struct md_sandbox;

struct md_modcache *md_modcache_new(void);
void md_modcache_free(struct md_modcache *mc);

/* Return: the module with this index, or NULL. */
struct md_module *md_modcache_module(const struct md_modcache *mc, uint32_t index);
/* Return: number of modules known now. */
size_t md_modcache_nr_modules(const struct md_modcache *mc);
/* Return: highest index + 1. */
uint32_t md_modcache_end(const struct md_modcache *mc);
/* Return: time spent in finding, reading and hashing files, and in reading MODULE records. */
uint64_t md_modcache_analysis_ns(const struct md_modcache *mc);

/* Return: the file with this number, or NULL if no MODULE record or resolved file has it. */
struct md_file *md_modcache_file(const struct md_modcache *mc, uint32_t number);

/*
 * md_modcache_open_module - opens a file of @module on this machine, if it is unchanged. *@out: the
 * file, with its segments. Return: a descriptor for reading, which the caller closes; -ENOENT.
 */
int md_modcache_open_module(const struct md_modcache *mc, uint32_t module,
			    const struct md_file **out);

/* From now on files are read in @sandbox, which the caller owns; NULL: in this process. */
void md_modcache_set_sandbox(struct md_modcache *mc, struct md_sandbox *sandbox);
/* From now on unwind rows are read with each file. */
void md_modcache_want_rows(struct md_modcache *mc);
/*
 * Return: a message about the file that was just resolved, given once; NULL: none. Valid until
 * the next md_modcache_resolve().
 */
const char *md_modcache_remark(struct md_modcache *mc);

/*
 * md_modcache_resolve - find the file of @mmap on this machine. Fails only for lack of memory.
 * @mapped_ns: unix time of the mapping; 0: the mapping exists now.
 */
int md_modcache_resolve(struct md_modcache *mc, const struct morph_mmap *mmap, int64_t mapped_ns,
			struct md_file **out);
/*
 * Finds the running kernel. *@remark says why its samples stay unattributed; NULL: nothing to
 * say. @base: address of _text in samples; 0: its run-time address.
 */
int md_modcache_resolve_kernel(struct md_modcache *mc, uint64_t base, struct md_file **out,
			       const char **remark);
/* Takes over records of a recording. Return: 0, -ENOMEM, -EBADMSG. */
int md_modcache_add_record(struct md_modcache *mc, const struct morph_module *record);
int md_modcache_add_map_record(struct md_modcache *mc, const struct morph_module_map *record);
int md_modcache_add_pieces_record(struct md_modcache *mc, const struct morph_module_pieces *record);
int md_modcache_add_ends_record(struct md_modcache *mc, const struct morph_module_ends *record);
int md_modcache_add_calls_record(struct md_modcache *mc, const struct morph_module_calls *record);
int md_modcache_add_paths_record(struct md_modcache *mc, const struct morph_module_paths *record);
int md_modcache_add_unwind_record(struct md_modcache *mc, const struct morph_module_unwind *record);
int md_modcache_add_output_record(struct md_modcache *mc, const struct morph_module_output *record);
/* Return: the kernel's file if it was resolved or declared, else NULL. */
const struct md_file *md_modcache_kernel(const struct md_modcache *mc);

/*
 * Adds the MODULE record of @file, and its MODULE_MAP or MODULE_PIECES, MODULE_ENDS,
 * MODULE_CALLS and MODULE_PATHS, to @buf. Return: 0 or -ENOMEM.
 */
int md_modcache_write_records(const struct md_modcache *mc, const struct md_file *file,
			      struct md_buf *buf);

/* Adds the MODULE_UNWIND records of @file's module, if it has rows. Return: 0 or -ENOMEM. */
int md_modcache_write_rows(const struct md_modcache *mc, const struct md_file *file,
			   struct md_buf *buf);

/*
 * md_module_lay_rows - from now on @module has its rows at @laid, where a source keeps them, and no bytes
 * of its own. md_modcache_gather_rows() must be called before that source is closed, if @module is used
 * afterwards.
 */
void md_module_lay_rows(struct md_module *module, const struct mp_rows *laid);
/* md_modcache_gather_rows - copies all rows that a source keeps. Without memory, rows are lost. */
void md_modcache_gather_rows(struct md_modcache *mc);

/*
 * Adds a MODULE_OUTPUT record to @buf if a recording has a file of @module. Return: 0 or
 * -ENOMEM.
 */
int md_modcache_write_output_record(const struct md_modcache *mc, const struct md_module *module,
				    struct md_buf *buf);

/*
 * md_file_mappings - the mappings that [start, start + len) of the file at @off makes. Return:
 * how many (at most @max).
 */
size_t md_file_mappings(const struct md_file *file, const struct morph_mmap *mmap,
			struct md_mapping *out, size_t max);

/*
 * If there are many modules: forgets files, and modules that no process in @pm has mapped. Call
 * only while no counts are pending.
 */
void md_modcache_sweep(struct md_modcache *mc, const struct md_procmap *pm);
/* Return: true if md_modcache_sweep() would do something. */
bool md_modcache_is_sweep_due(const struct md_modcache *mc);
/* Forgets store keys, which a rolled-back transaction made invalid. */
void md_modcache_forget_keys(struct md_modcache *mc);

#endif
