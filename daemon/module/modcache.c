// SPDX-License-Identifier: Apache-2.0
/* modcache - the tables of modules and files; see modcache.h. */
#include "daemon/module/modcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/module/kernel.h"
#include "daemon/module/modcache_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/varint.h"

/* above this number, modules that no process has mapped are forgotten */
#define MODULES_SWEEP 16384

struct md_modcache *md_modcache_new(void)
{
	struct md_modcache *mc = calloc(1, sizeof(*mc));

	if (mc) {
		mc->end = mc->free_from = 1;
		mc->files_end = 1;
	}
	return mc;
}

void md_module_drop_paths(struct md_module *module)
{
	mp_path_table_free(module->paths);
	free(module->path_bytes);
	module->paths = NULL;
	module->path_bytes = NULL;
	module->path_size = module->path_come = 0;
}

uint64_t md_path_table_bytes(const uint8_t *bytes, size_t size)
{
	struct mp_varint_reader r = {.p = bytes, .end = bytes + size};
	uint64_t nr_funcs, nr_blocks, nr_edges;

	mp_varint_get(&r); /* skip the version */
	nr_funcs = mp_varint_get(&r);
	nr_blocks = mp_varint_get(&r);
	nr_edges = mp_varint_get(&r);
	if (r.failed || nr_funcs > size || nr_blocks > size || nr_edges > size)
		return UINT64_MAX;
	return nr_funcs * sizeof(struct mp_path_func) +
	       nr_blocks * (sizeof(struct mp_path_block) + sizeof(uint32_t)) +
	       nr_edges * sizeof(struct mp_path_edge);
}

uint64_t md_module_bytes(const struct md_module *module)
{
	uint64_t bytes = md_map_bytes(module->map);

	if (module->paths)
		bytes += module->path_size +
			 md_path_table_bytes(module->path_bytes, module->path_size);
	return bytes;
}

static void free_module(struct md_module *module)
{
	if (!module)
		return;
	md_module_drop_paths(module);
	md_module_drop_rows(module);
	if (module->fd >= 0)
		close(module->fd);
	mp_map_free(module->map);
	free(module->map_ends);
	free(module->path);
	free(module);
}

void md_file_free(struct md_file *file)
{
	if (!file)
		return;
	free(file->segments);
	free(file->path);
	free(file);
}

void md_modcache_drop_arriving(struct md_modcache *mc)
{
	mp_map_free(mc->arriving.map);
	free(mc->arriving.path);
	memset(&mc->arriving, 0, sizeof(mc->arriving));
}

void md_modcache_free(struct md_modcache *mc)
{
	uint32_t i;

	if (!mc)
		return;
	for (i = 1; i < mc->end; i++)
		free_module(mc->modules[i]);
	for (i = 1; i < mc->files_end; i++)
		md_file_free(mc->files[i]);
	md_modcache_drop_arriving(mc);
	free(mc->modules);
	free(mc->files);
	free(mc);
}

struct md_module *md_modcache_module(const struct md_modcache *mc, uint32_t index)
{
	return index && index < mc->end ? mc->modules[index] : NULL;
}

size_t md_modcache_nr_modules(const struct md_modcache *mc)
{
	return mc->nr_modules;
}

uint32_t md_modcache_end(const struct md_modcache *mc)
{
	return mc->end;
}

uint64_t md_modcache_analysis_ns(const struct md_modcache *mc)
{
	return mc->analysis_ns;
}

struct md_file *md_modcache_file(const struct md_modcache *mc, uint32_t number)
{
	return number && number < mc->files_end ? mc->files[number] : NULL;
}

const struct md_file *md_modcache_kernel(const struct md_modcache *mc)
{
	return md_modcache_file(mc, mc->kernel);
}

/* ---- modules ------------------------------------------------------------------------------ */

struct md_module *md_modcache_find_module(struct md_modcache *mc, const struct mp_id *id)
{
	uint32_t i;

	for (i = 1; i < mc->end; i++)
		if (mc->modules[i] && mp_id_equal(&mc->modules[i]->id, id))
			return mc->modules[i];
	return NULL;
}

void md_module_learn_path(struct md_module *module, const char *path)
{
	char *copy;

	if (path[0] && strcmp(path, module->path) && (copy = strdup(path))) {
		free(module->path);
		module->path = copy;
	}
}

struct md_module *md_modcache_add_module(struct md_modcache *mc, const struct mp_id *id,
					 enum mp_module_kind kind, const char *path,
					 uint64_t text_size)
{
	struct md_module *module;
	uint32_t index;

	for (index = mc->free_from; index < mc->end && mc->modules[index]; index++)
		;
	if (index > MD_MODULES_MAX)
		return NULL;
	if (mp_grow_zeroed(mc->modules, mc->capacity, index + 1))
		return NULL;
	module = calloc(1, sizeof(*module));
	if (!module || !(module->path = strdup(path))) {
		free(module);
		return NULL;
	}
	module->fd = -1;
	module->id = *id;
	module->kind = kind;
	module->text_size = text_size;
	module->index = index;
	mc->modules[index] = module;
	mc->free_from = index + 1;
	if (index >= mc->end)
		mc->end = index + 1;
	mc->nr_modules++;
	return module;
}

struct md_module *md_modcache_put_module(struct md_modcache *mc, const struct mp_id *id,
					 enum mp_module_kind kind, const char *path,
					 uint64_t text_size)
{
	struct md_module *module = md_modcache_find_module(mc, id);

	if (!module)
		return md_modcache_add_module(mc, id, kind, path, text_size);
	if (text_size)
		module->text_size = text_size;
	md_module_learn_path(module, path);
	return module;
}

/*
 * Finds the original that a map names: a module with this id that is not an optimised one
 * itself.
 */
static struct md_module *find_original(struct md_modcache *mc, const struct mp_id *id)
{
	uint32_t i;

	for (i = 1; i < mc->end; i++)
		if (mc->modules[i] && !mc->modules[i]->map && mp_id_equal(&mc->modules[i]->id, id))
			return mc->modules[i];
	return NULL;
}

/*
 * Gives @map to @module and adds its original as a module. The original's file need not exist
 * here.
 */
int md_modcache_set_map(struct md_modcache *mc, struct md_module *module, struct mp_map *map)
{
	struct md_module *original = find_original(mc, &map->original);

	if (!original)
		original =
			md_modcache_add_module(mc, &map->original, MP_MODULE_FILE, module->path, 0);
	if (!original) {
		mp_map_free(map);
		return -ENOMEM;
	}
	mc->map_bytes += md_map_bytes(map) - md_module_bytes(module);
	md_module_drop_paths(module);
	mp_map_free(module->map);
	free(module->map_ends);
	module->map_ends = NULL;
	module->map = map;
	module->map_belief = MD_MAP_UNDECIDED;
	module->original = original->index;
	return 0;
}

/* ---- files -------------------------------------------------------------------------------- */

/* Stores @file under @number. */
int md_modcache_set_file(struct md_modcache *mc, uint32_t number, struct md_file *file)
{
	if (number >= MD_NUMBER_MAX || mp_grow_zeroed(mc->files, mc->files_capacity, number + 1))
		return -ENOMEM;
	md_file_free(mc->files[number]);
	file->number = number;
	mc->files[number] = file;
	if (number >= mc->files_end)
		mc->files_end = number + 1;
	return 0;
}

_Static_assert(MD_FILE_BUCKETS == 1 << (64 - 54), "bucket_of() shifts for as many buckets");

/* ---- mappings ----------------------------------------------------------------------------- */

#define PAGE_MASK UINT64_C(4095)

size_t md_file_mappings(const struct md_file *file, const struct morph_mmap *mmap,
			struct md_mapping *out, size_t max)
{
	uint64_t from, to, first, last, done = mmap->off;
	size_t nr = 0;
	uint32_t i;

	if (file->why != MD_MAPPED) {
		out[0] = (struct md_mapping){
			.start = mmap->start, .end = mmap->start + mmap->len, .why = file->why};
		return 1;
	}
	/*
	 * The kernel maps whole pages, so the rest of a segment's pages counts as part of it.
	 * If two segments share a page, the first one gets it.
	 */
	for (i = 0; i < file->nr_segments && nr < max; i++) {
		const struct morph_segment *s = &file->segments[i];

		first = s->off & ~PAGE_MASK;
		last = (s->off + s->size + PAGE_MASK) & ~PAGE_MASK;
		if (last <= first)
			continue;
		from = first > done ? first : done;
		to = mmap->off + mmap->len < last ? mmap->off + mmap->len : last;
		if (from >= to)
			continue;
		out[nr].start = mmap->start + (from - mmap->off);
		out[nr].end = mmap->start + (to - mmap->off);
		out[nr].bias = s->vaddr - s->off + mmap->off - mmap->start;
		out[nr].module = file->module;
		out[nr].why = MD_MAPPED;
		nr++;
		done = to;
	}
	/* Executable, but in no segment: it still replaces what was mapped there. */
	if (!nr) {
		out[0] = (struct md_mapping){.start = mmap->start,
					     .end = mmap->start + mmap->len,
					     .why = MP_UNATTR_NO_MAPPING};
		nr = 1;
	}
	return nr;
}

/* ---- forgetting --------------------------------------------------------------------------- */

struct sweep {
	struct md_modcache *mc;
};

static void mark(void *arg, uint32_t index)
{
	struct sweep *sweep = arg;
	struct md_module *module = md_modcache_module(sweep->mc, index);

	if (!module)
		return;
	module->in_use = true;
	if (module->original)
		sweep->mc->modules[module->original]->in_use = true;
}

bool md_modcache_is_sweep_due(const struct md_modcache *mc)
{
	return mc->nr_modules >= MODULES_SWEEP;
}

void md_modcache_sweep(struct md_modcache *mc, const struct md_procmap *pm)
{
	struct sweep sweep = {mc};
	uint32_t i;

	if (!md_modcache_is_sweep_due(mc))
		return;
	for (i = 1; i < mc->end; i++)
		if (mc->modules[i])
			mc->modules[i]->in_use = false;
	/*
	 * Files of this machine can be read again. Files that a recording described cannot: it
	 * does not repeat them.
	 */
	if (mc->nr_keyed)
		md_modcache_forget_files(mc);
	for (i = 1; i < mc->files_end; i++)
		if (mc->files[i])
			mark(&sweep, mc->files[i]->module);
	md_procmap_each_module(pm, mark, &sweep);
	for (i = 1; i < mc->end; i++) {
		if (!mc->modules[i] || mc->modules[i]->in_use)
			continue;
		mc->map_bytes -= md_module_bytes(mc->modules[i]);
		mc->row_bytes -= mc->modules[i]->row_size;
		free_module(mc->modules[i]);
		mc->modules[i] = NULL;
		mc->nr_modules--;
	}
	mc->free_from = 1;
}

void md_modcache_forget_keys(struct md_modcache *mc)
{
	uint32_t i;

	for (i = 1; i < mc->end; i++)
		if (mc->modules[i])
			mc->modules[i]->store_key = 0;
}

void md_module_drop_rows(struct md_module *module)
{
	free(module->row_bytes);
	module->row_bytes = NULL;
	module->row_size = module->row_come = 0;
	module->rows = (struct mp_rows){0};
}

/* Forgets all files. Numbers are reused, so a recording must describe them again. */
void md_modcache_forget_files(struct md_modcache *mc)
{
	struct md_file *kernel = md_modcache_file(mc, mc->kernel);
	uint32_t i;

	for (i = 1; i < mc->files_end; i++) {
		if (mc->files[i] == kernel)
			continue;
		md_file_free(mc->files[i]);
		mc->files[i] = NULL;
	}
	memset(mc->buckets, 0, sizeof(mc->buckets));
	memset(mc->looks, 0, sizeof(mc->looks));
	memset(mc->status_files, 0, sizeof(mc->status_files));
	mc->nr_keyed = 0;
	mc->files_end = mc->kernel + 1;
}
