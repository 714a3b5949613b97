// SPDX-License-Identifier: Apache-2.0
/* modcache_internal - what modcache's own files share; nobody else includes it. */
#ifndef MD_MODCACHE_INTERNAL_H
#define MD_MODCACHE_INTERNAL_H

#include "daemon/modcache.h"

#define MD_FILE_BUCKETS 1024
#define MD_NUMBER_MAX	(1u << 20) /* of a MODULE record */
#define MD_VADDR_LIMIT	(UINT64_C(1) << 47)

struct md_modcache {
	struct md_module **modules; /* by index, [0] unused, holes allowed */
	uint32_t end, capacity, nr_modules;
	uint32_t free_from;	/* no hole below */
	struct md_file **files; /* by number, [0] unused, holes allowed */
	uint32_t files_end, files_capacity;
	struct md_file *buckets[MD_FILE_BUCKETS]; /* files of this machine */
	uint32_t nr_keyed;
	uint32_t status_files[MORPH_MODULE_VDSO + 1]; /* numbers of files that are only a reason */
	uint32_t kernel;			      /* number, 0: none */
	uint64_t analysis_ns;
	uint64_t map_bytes;
	struct md_sandbox *sandbox; /* NULL: files are read here */
	char remark[400];
	bool has_remark;
	unsigned int nr_remarks;
	/* An optimised module's map that is still arriving. */
	struct {
		uint32_t number, nr_pieces, room;
		struct mp_id id;
		struct mp_map *map;
		uint64_t new_end; /* of the last piece that came */
		uint64_t text_size;
		char *path;
	} arriving;
};

/* enum mp_unattributed of enum morph_module_status; MD_MAPPED of MORPH_MODULE_KNOWN. */
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
/* Find or add; a module that is known keeps its index and learns the path. */
struct md_module *md_modcache_put_module(struct md_modcache *mc, const struct mp_id *id,
					 enum mp_module_kind kind, const char *path,
					 uint64_t text_size);
/* A new one, whatever else has its id. */
struct md_module *md_modcache_add_module(struct md_modcache *mc, const struct mp_id *id,
					 enum mp_module_kind kind, const char *path,
					 uint64_t text_size);
void md_module_learn_path(struct md_module *module, const char *path);
/* Bytes that a map and its ends take. */
static inline uint64_t md_map_bytes(const struct mp_map *map)
{
	return map ? mp_map_bytes(map) + map->nr_pieces * sizeof(uint32_t) : 0;
}
/* Of a table of paths, as a file has it, and in memory. */
#define MD_PATHS_SIZE_MAX  (8u << 20)
#define MD_PATHS_BYTES_MAX (UINT64_C(48) << 20)
/* Bytes that the table which @bytes begin takes in memory; UINT64_MAX: they are none. */
uint64_t md_path_table_bytes(const uint8_t *bytes, size_t size);
/* All that a module keeps of its map, the ends and the paths. */
uint64_t md_module_bytes(const struct md_module *module);
/* Takes the module's paths, or what of them came. */
void md_module_drop_paths(struct md_module *module);
/* @map becomes @module's. Ownership: @map is taken, also on failure. */
int md_modcache_set_map(struct md_modcache *mc, struct md_module *module, struct mp_map *map);
/* @file becomes the one with @number. Ownership: @file is taken on success. */
int md_modcache_set_file(struct md_modcache *mc, uint32_t number, struct md_file *file);
void md_file_free(struct md_file *file);
/* Find out what @file, open as @fd, is: its module, or why there is none. Return: false where that
 * is our fault, and may be another time. */
bool md_modcache_read_file(struct md_modcache *mc, int fd, struct md_file *file);
void md_modcache_drop_arriving(struct md_modcache *mc);

#endif
