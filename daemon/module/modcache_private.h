// SPDX-License-Identifier: Apache-2.0
/* modcache_private - what modcache's own files share. No other file may include it. */
#ifndef MD_MODCACHE_PRIVATE_H
#define MD_MODCACHE_PRIVATE_H

#include "daemon/module/modcache.h"

#define MD_FILE_BUCKETS 1024
#define MD_NR_LOOKS	256
#define MD_NUMBER_MAX	(1u << 20) /* limit of the number in a MODULE record */
#define MD_VADDR_LIMIT	(UINT64_C(1) << 47)

/* The result of a search for the file of a mapping, to be used again for a second. */
struct md_look {
	uint64_t dev, ino, path_hash;
	uint32_t generation;
	uint32_t number; /* of the file; 0: no look */
	uint64_t at_ns;
};

struct md_modcache {
	struct md_module **modules; /* by index; [0] is unused, and others may be NULL */
	uint32_t end, capacity, nr_modules;
	uint32_t free_from;	/* no free index below this one */
	struct md_file **files; /* by number; [0] is unused, and others may be NULL */
	uint32_t files_end, files_capacity;
	struct md_file *buckets[MD_FILE_BUCKETS]; /* files of this machine */
	uint32_t nr_keyed;
	struct md_look looks[MD_NR_LOOKS]; /* by device and inode */
	/* numbers of files that only stand for a reason */
	uint32_t status_files[MORPH_MODULE_VDSO + 1];
	uint32_t kernel; /* number; 0: none */
	uint64_t analysis_ns;
	uint64_t map_bytes;
	uint64_t row_bytes; /* of all modules */
	bool wants_rows;
	struct md_sandbox *sandbox; /* NULL: files are read in this process */
	char remark[400];
	bool has_remark;
	unsigned int nr_remarks;
	/* the map of an optimised module, while its records arrive */
	struct {
		uint32_t number, nr_pieces, room;
		struct mp_id id;
		struct mp_map *map;
		uint64_t new_end; /* end of the last piece received */
		uint64_t text_size;
		char *path;
	} arriving;
};

/* Maps enum morph_module_status to enum mp_unattributed, and MORPH_MODULE_KNOWN to MD_MAPPED. */
static inline uint8_t md_why_of(uint32_t status)
{
	static const uint8_t why[] = {
		[MORPH_MODULE_KNOWN] = MD_MAPPED,
		[MORPH_MODULE_ANONYMOUS] = MP_UNATTR_ANONYMOUS,
		[MORPH_MODULE_DELETED] = MP_UNATTR_DELETED,
		[MORPH_MODULE_REPLACED] = MP_UNATTR_REPLACED,
		[MORPH_MODULE_NAMESPACE] = MP_UNATTR_NAMESPACE,
		[MORPH_MODULE_UNREADABLE] = MP_UNATTR_UNREADABLE,
		[MORPH_MODULE_VDSO] = MP_UNATTR_VDSO,
	};

	return status <= MORPH_MODULE_VDSO ? why[status] : MP_UNATTR_UNREADABLE;
}

struct md_module *md_modcache_find_module(struct md_modcache *mc, const struct mp_id *id);
/* Finds or adds a module. A known module keeps its index and gets the path. */
struct md_module *md_modcache_put_module(struct md_modcache *mc, const struct mp_id *id,
					 enum mp_module_kind kind, const char *path,
					 uint64_t text_size);
/* Adds a new module even if another one has its id. */
struct md_module *md_modcache_add_module(struct md_modcache *mc, const struct mp_id *id,
					 enum mp_module_kind kind, const char *path,
					 uint64_t text_size);
void md_module_learn_path(struct md_module *module, const char *path);
/* Return: memory for a map and its ends. */
static inline uint64_t md_map_bytes(const struct mp_map *map)
{
	return map ? mp_map_bytes(map) + map->nr_pieces * sizeof(uint32_t) : 0;
}
/* Largest table of paths, in the file and in memory. */
#define MD_PATHS_SIZE_MAX  (8u << 20)
#define MD_PATHS_BYTES_MAX (UINT64_C(48) << 20)
/* Return: memory needed by the table that begins with @bytes; UINT64_MAX: not a table. */
uint64_t md_path_table_bytes(const uint8_t *bytes, size_t size);
/* Return: memory for the module's map, ends and paths. */
uint64_t md_module_bytes(const struct md_module *module);
/* Removes the module's paths, complete or not. */
void md_module_drop_paths(struct md_module *module);
/* Most bytes of unwind rows: of one file, and of all modules together. */
#define MD_ROWS_SIZE_MAX (32u << 20)
#define MD_ROWS_MAX	 (UINT64_C(128) << 20)
/* Removes the module's unwind rows, complete or not. */
void md_module_drop_rows(struct md_module *module);
/* Compiles the rows of @elf, open with MP_ELF_ID as @fd. Without rows, nothing changes. */
void md_module_read_rows(struct md_module *module, const struct mp_elf *elf, int fd);
/* Moves the rows of @from, which another modcache owns, to @module, if there is room. */
void md_modcache_adopt_rows(struct md_modcache *mc, struct md_module *module,
			    struct md_module *from);
/* Sets @module's map. Ownership: takes @map, also on failure. */
int md_modcache_set_map(struct md_modcache *mc, struct md_module *module, struct mp_map *map);
/* Forgets all files of this machine: they are read again when they are mapped. */
void md_modcache_forget_files(struct md_modcache *mc);
/* Stores @file under @number. Ownership: takes @file on success. */
int md_modcache_set_file(struct md_modcache *mc, uint32_t number, struct md_file *file);
void md_file_free(struct md_file *file);
/*
 * Finds the module of @file, open as @fd, or the reason why there is none. Return: false:
 * failed for a reason that is not the file's, so another try may succeed.
 */
bool md_modcache_read_file(struct md_modcache *mc, int fd, struct md_file *file);
void md_modcache_drop_arriving(struct md_modcache *mc);

#endif
