// SPDX-License-Identifier: Apache-2.0
/* modread - reads a file's identity, and checks replies; see modread.h. */
#include "daemon/module/modread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/module/modcache_private.h"
#include "daemon/module/copy_transfers.h"
#include "libprof/base/discard.h"
#include "libprof/elf/elf.h"
#include "libprof/note/edge_table.h"

#define FILE_NUMBER 1 /* the only file number in a reply */

/* ---- reading ------------------------------------------------------------------------------ */

static int copy_segments(const struct mp_elf *elf, struct md_file *file)
{
	uint32_t i, nr = 0;

	file->segments = calloc(MD_MODREAD_SEGMENTS_MAX, sizeof(file->segments[0]));
	if (!file->segments)
		return -ENOMEM;
	for (i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || !p->p_filesz)
			continue;
		if (p->p_vaddr >= MD_VADDR_LIMIT || p->p_filesz >= MD_VADDR_LIMIT - p->p_vaddr ||
		    nr == MD_MODREAD_SEGMENTS_MAX)
			return -EBADMSG;
		file->segments[nr++] = (struct morph_segment){p->p_offset, p->p_vaddr, p->p_filesz};
	}
	file->nr_segments = nr;
	return nr ? 0 : -ENOEXEC;
}

/*
 * Return: true if the hash of the text covers the map note, as in every file that
 * morph-optimize writes. Otherwise somebody could copy another file's text and redirect that
 * file's samples.
 */
static bool map_is_covered_by_hash(const struct mp_elf *elf)
{
	const struct mp_section *note = mp_elf_section(elf, MP_MAP_SECTION);
	uint32_t i;

	for (i = 0; note && i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && note->off >= p->p_offset &&
		    note->off - p->p_offset <= p->p_filesz &&
		    note->size <= p->p_filesz - (note->off - p->p_offset))
			return true;
	}
	return false;
}

/*
 * Reads the table of paths. The hash of the text does not cover it: a copy of the file with
 * another table is a module of its own, and spoils only its own paths. A bad table loses paths
 * and nothing else. Return: 0, -ENOMEM.
 */
static int read_paths(const struct mp_elf *elf, int fd, struct md_module *module)
{
	const struct mp_section *sec = mp_elf_section(elf, MP_PATH_TABLE_SECTION);
	int ret = -EBADMSG;

	if (!sec || sec->type != SHT_PROGBITS || !sec->size || sec->size > MD_PATHS_SIZE_MAX)
		return 0;
	module->path_bytes = malloc(sec->size);
	if (!module->path_bytes)
		return -ENOMEM;
	module->path_size = module->path_come = (uint32_t)sec->size;
	if (pread(fd, module->path_bytes, sec->size, (off_t)sec->off) == (ssize_t)sec->size &&
	    md_path_table_bytes(module->path_bytes, sec->size) <= MD_PATHS_BYTES_MAX)
		ret = mp_path_table_decode("", module->path_bytes, sec->size, &module->paths, NULL);
	if (ret)
		md_module_drop_paths(module);
	return ret == -ENOMEM ? ret : 0;
}

/* On failure, samples in the file stay without a module. */
static int analyse(struct md_modcache *mc, int fd, uint64_t size, bool rows, struct md_file *file)
{
	struct md_module *module;
	struct mp_elf *elf = NULL;
	struct mp_map *map = NULL;
	int ret;

	file->why = MP_UNATTR_UNREADABLE;
	ret = mp_elf_open_sized("", fd, size, &elf, NULL);
	if (!ret)
		ret = copy_segments(elf, file);
	if (ret)
		goto out;
	/* A damaged map would count moved code at wrong addresses. */
	ret = mp_map_read_compact(elf, &map, NULL);
	if (ret && ret != -ENOENT)
		goto out;
	ret = -EBADMSG;
	if (map && (!map_is_covered_by_hash(elf) || map->nr_pieces > MD_MODREAD_PIECES_MAX))
		goto out;
	/* Counters take time, so samples of a version that counts show no time of the original. */
	if (map && mp_elf_section(elf, MP_EDGE_TABLE_SECTION)) {
		mp_map_free(map);
		map = NULL;
	}
	ret = -ENOMEM;
	module = md_modcache_put_module(mc, &elf->id, MP_MODULE_FILE, "", mp_elf_text_size(elf));
	if (!module)
		goto out;
	if (map) {
		ret = md_modcache_set_map(mc, module, map);
		map = NULL;
		if (ret)
			goto out;
		module->map_ends = md_copy_branch_offsets(elf, fd, module->map);
		ret = read_paths(elf, fd, module);
		if (ret)
			goto out;
	}
	if (rows)
		md_module_read_rows(module, elf, fd);
	file->module = module->index;
	file->why = MD_MAPPED;
	ret = 0;
out:
	mp_map_free(map);
	mp_elf_close(elf);
	return ret == -ENOMEM ? ret : 0;
}

static int read_file(int fd, uint64_t size, bool rows, struct md_buf *reply)
{
	struct md_modcache *mc = md_modcache_new();
	struct md_file *file = calloc(1, sizeof(*file));
	int ret = -ENOMEM;

	if (mc && file && (file->path = strdup("")) &&
	    !md_modcache_set_file(mc, FILE_NUMBER, file)) {
		file = md_modcache_file(mc, FILE_NUMBER);
		ret = analyse(mc, fd, size, rows, file);
		if (!ret)
			ret = md_modcache_write_records(mc, file, reply);
		if (!ret)
			ret = md_modcache_write_rows(mc, file, reply);
	} else {
		md_file_free(file);
	}
	md_modcache_free(mc);
	return ret;
}

int md_modread_file(int fd, uint64_t size, struct md_buf *reply)
{
	return read_file(fd, size, false, reply);
}

int md_modread_file_with_rows(int fd, uint64_t size, struct md_buf *reply)
{
	return read_file(fd, size, true, reply);
}

/* ---- believing ---------------------------------------------------------------------------- */

/*
 * Return: false for a record that cannot describe a file of @size bytes, though a recording may
 * have it.
 */
static bool is_of_file(const struct morph_module *r, uint64_t size)
{
	uint64_t text = 0;
	uint32_t i;

	if (r->module != FILE_NUMBER || r->kind != MORPH_MODULE_FILE)
		return false;
	if (r->status)
		return r->status == MORPH_MODULE_UNREADABLE;
	if (!r->nr_segments || r->nr_segments > MD_MODREAD_SEGMENTS_MAX ||
	    r->nr_pieces > MD_MODREAD_PIECES_MAX)
		return false;
	for (i = 0; i < r->nr_segments; i++) {
		if (r->segments[i].off > size || r->segments[i].size > size - r->segments[i].off)
			return false;
		text += r->segments[i].size;
	}
	return text == r->text_size;
}

static bool has_map(const struct md_modcache *mc)
{
	const struct md_file *file = md_modcache_file(mc, FILE_NUMBER);
	const struct md_module *module = md_modcache_module(mc, file->module);

	return module && module->map;
}

static int take_record(const struct morph_record *record, struct md_modcache *into)
{
	const struct morph_module_map *map = (const void *)record;
	const struct morph_module_pieces *packed = (const void *)record;
	const struct morph_module_ends *ends = (const void *)record;
	const struct morph_module_calls *calls = (const void *)record;
	const struct morph_module_paths *paths = (const void *)record;
	const struct morph_module_unwind *unwind = (const void *)record;

	if (record->type == MORPH_REC_MODULE_MAP && map->module == FILE_NUMBER)
		return md_modcache_add_map_record(into, map);
	if (record->type == MORPH_REC_MODULE_PIECES && packed->module == FILE_NUMBER)
		return md_modcache_add_pieces_record(into, packed);
	if (record->type == MORPH_REC_MODULE_ENDS && ends->module == FILE_NUMBER)
		return md_modcache_add_ends_record(into, ends);
	if (record->type == MORPH_REC_MODULE_CALLS && calls->module == FILE_NUMBER && has_map(into))
		return md_modcache_add_calls_record(into, calls);
	if (record->type == MORPH_REC_MODULE_PATHS && paths->module == FILE_NUMBER && has_map(into))
		return md_modcache_add_paths_record(into, paths);
	if (record->type == MORPH_REC_MODULE_UNWIND && unwind->module == FILE_NUMBER)
		return md_modcache_add_unwind_record(into, unwind);
	return -EBADMSG;
}

int md_modread_take(struct md_buf *reply, uint64_t size, struct md_modcache *into)
{
	const struct morph_module *module;
	const struct md_module *known;
	struct morph_record *record;
	const struct md_file *file;
	const void *discarded = NULL;
	size_t pos = 0;
	int ret;

	if (md_record_next(reply->data, reply->size, &pos, &record) ||
	    record->type != MORPH_REC_MODULE)
		return -EBADMSG;
	module = (const void *)record;
	if (!is_of_file(module, size))
		return -EBADMSG;
	ret = md_modcache_add_record(into, module);
	while (!ret) {
		ret = md_record_next(reply->data, reply->size, &pos, &record);
		if (!ret)
			ret = take_record(record, into);
		/* Rows take much memory, and are not to be there twice. */
		if (!ret && record->type == MORPH_REC_MODULE_UNWIND)
			discarded = mp_discard(discarded ? discarded : record, reply->data + pos);
	}
	if (ret != -ENODATA)
		return ret;
	/* Refuse an incomplete map or table. */
	file = md_modcache_file(into, FILE_NUMBER);
	known = md_modcache_module(into, file->module);
	if (known ? known->path_come < known->path_size || known->row_come < known->row_size
		  : !module->status)
		return -EBADMSG;
	return 0;
}
