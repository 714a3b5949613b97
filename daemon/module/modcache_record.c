// SPDX-License-Identifier: Apache-2.0
/*
 * modcache_record - reads and writes the records that describe modules: MODULE, MODULE_MAP and
 * others.
 *
 * A recording may come from anybody. No record may give an address a meaning that it cannot
 * have.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/module/modcache_private.h"
#include "libprof/base/grow.h"
#include "libprof/note/map_calls.h"
#include "libprof/note/map_packed.h"

/* Prepares for the pieces of a map: the file is unreadable until all have arrived. */
static int expect_map(struct md_modcache *mc, const struct morph_module *record,
		      const struct mp_id *id, struct md_file *file)
{
	struct md_module *module = md_modcache_find_module(mc, id);

	file->why = MP_UNATTR_UNREADABLE;
	md_modcache_drop_arriving(mc);
	if (module && module->map) {
		file->module = module->index;
		file->why = MD_MAPPED;
		return 0;
	}
	mc->arriving.number = record->module;
	mc->arriving.nr_pieces = record->nr_pieces;
	if (record->nr_pieces > MP_MAP_PIECES_MAX)
		return -EBADMSG;
	mc->arriving.id = *id;
	mc->arriving.text_size = record->text_size;
	mc->arriving.path = strdup(md_module_path(record));
	mc->arriving.map = calloc(1, sizeof(struct mp_map));
	return mc->arriving.path && mc->arriving.map ? 0 : -ENOMEM;
}

int md_modcache_add_record(struct md_modcache *mc, const struct morph_module *record)
{
	const char *path = md_module_path(record);
	struct md_module *module;
	struct md_file *file;
	struct mp_id id = {0};
	uint32_t i;

	if (!record->module || record->module >= MD_NUMBER_MAX ||
	    record->status > MORPH_MODULE_VDSO || record->kind > MORPH_MODULE_KERNEL)
		return -EBADMSG;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->why = md_why_of(record->status);
	file->path = strdup(path);
	file->segments = calloc(record->nr_segments + 1, sizeof(file->segments[0]));
	if (!file->path || !file->segments || md_modcache_set_file(mc, record->module, file)) {
		md_file_free(file);
		return -ENOMEM;
	}
	if (record->status)
		return 0;
	for (i = 0; i < record->nr_segments; i++) {
		const struct morph_segment *s = &record->segments[i];

		if (record->kind == MORPH_MODULE_FILE &&
		    (s->vaddr >= MD_VADDR_LIMIT || s->size >= MD_VADDR_LIMIT - s->vaddr))
			return -EBADMSG;
		file->segments[i] = *s;
	}
	file->nr_segments = record->nr_segments;
	id.text_hash = record->text_hash;
	id.build_id_len = record->build_id_len;
	memcpy(id.build_id, record->build_id, sizeof(id.build_id));
	if (record->nr_pieces)
		return expect_map(mc, record, &id, file);
	module = md_modcache_put_module(
		mc, &id, record->kind == MORPH_MODULE_KERNEL ? MP_MODULE_KERNEL : MP_MODULE_FILE,
		path, record->text_size);
	if (!module)
		return -ENOMEM;
	file->module = module->index;
	if (record->kind == MORPH_MODULE_KERNEL && record->nr_segments == 1)
		mc->kernel = record->module;
	return 0;
}

/* Grow the array as pieces arrive. The announced number of pieces is not trusted. */
static int add_flat(struct md_modcache *mc, const struct mp_map_piece *piece)
{
	struct mp_map *map = mc->arriving.map;
	struct mp_map_piece *pieces = map->pieces;
	uint32_t room = mc->arriving.room;

	if (map->nr_pieces == room) {
		room = 2 * room + 64;
		if (room > mc->arriving.nr_pieces)
			room = mc->arriving.nr_pieces;
		pieces = realloc(pieces, room * sizeof(*pieces));
		if (!pieces)
			return -ENOMEM;
		map->pieces = pieces;
		mc->arriving.room = room;
	}
	pieces[map->nr_pieces] = *piece;
	return 0;
}

static int add_piece(struct md_modcache *mc, const struct mp_map_piece *piece)
{
	struct mp_map *map = mc->arriving.map;
	int ret;

	if (map->nr_pieces == mc->arriving.nr_pieces ||
	    !mp_map_follows(piece, mc->arriving.new_end) || piece->new_vaddr >= MD_VADDR_LIMIT ||
	    piece->old_vaddr >= MD_VADDR_LIMIT)
		return -EBADMSG;
	if (mc->arriving.nr_pieces > MP_MAP_FLAT_MAX && !map->packed) {
		map->packed = mp_map_packed_new();
		if (!map->packed)
			return -ENOMEM;
	}
	ret = map->packed ? mp_map_packed_add(map->packed, piece) : add_flat(mc, piece);
	if (ret)
		return ret;
	mc->arriving.new_end = piece->new_vaddr + piece->new_size;
	map->nr_pieces++;
	return 0;
}

static void learn_original(struct mp_map *map, uint64_t text_hash, uint32_t build_id_len,
			   const uint8_t *build_id)
{
	map->original.text_hash = text_hash;
	map->original.build_id_len = (uint8_t)build_id_len;
	memcpy(map->original.build_id, build_id, sizeof(map->original.build_id));
}

/* Adds the module once its map is complete. */
static int end_map(struct md_modcache *mc)
{
	struct mp_map *map = mc->arriving.map;
	struct md_module *module;
	struct md_file *file;

	if (map->nr_pieces < mc->arriving.nr_pieces)
		return 0;
	if (map->packed)
		mp_map_packed_trim(map->packed);
	module = md_modcache_put_module(mc, &mc->arriving.id, MP_MODULE_FILE, mc->arriving.path,
					mc->arriving.text_size);
	file = md_modcache_file(mc, mc->arriving.number);
	if (!module || !file)
		return -ENOMEM;
	mc->arriving.map = NULL;
	md_modcache_drop_arriving(mc);
	if (md_modcache_set_map(mc, module, map))
		return -ENOMEM;
	file->module = module->index;
	file->why = MD_MAPPED;
	return 0;
}

int md_modcache_add_map_record(struct md_modcache *mc, const struct morph_module_map *record)
{
	uint32_t nr = md_module_map_nr(record), i;
	int ret;

	if (!mc->arriving.map || record->module != mc->arriving.number)
		return 0; /* the module is known already */
	for (i = 0; i < nr; i++) {
		const struct morph_piece *p = &record->pieces[i];

		ret = add_piece(mc, &(struct mp_map_piece){p->new_vaddr, p->new_size, p->old_size,
							   p->old_vaddr});
		if (ret)
			return ret;
	}
	learn_original(mc->arriving.map, record->text_hash, record->build_id_len, record->build_id);
	return end_map(mc);
}

int md_modcache_add_pieces_record(struct md_modcache *mc, const struct morph_module_pieces *record)
{
	struct mp_varint_reader r = {.p = record->bytes, .end = record->bytes + record->nr};
	struct mp_map_cursor at = {0};
	struct mp_map_piece piece;
	uint32_t i;
	int ret;

	if (!mc->arriving.map || record->module != mc->arriving.number)
		return 0; /* the module is known already */
	for (i = 0; i < record->nr_pieces; i++) {
		mp_map_get_piece(&r, &at, &piece);
		ret = r.failed ? -EBADMSG : add_piece(mc, &piece);
		if (ret)
			return ret;
	}
	if (r.p != r.end)
		return -EBADMSG;
	learn_original(mc->arriving.map, record->text_hash, record->build_id_len, record->build_id);
	return end_map(mc);
}

int md_modcache_add_ends_record(struct md_modcache *mc, const struct morph_module_ends *record)
{
	struct md_file *file = md_modcache_file(mc, record->module);
	struct md_module *module = file ? md_modcache_module(mc, file->module) : NULL;
	uint32_t i, nr;

	if (!module || !module->map)
		return 0;
	nr = module->map->nr_pieces;
	if (record->first > nr || record->nr > nr - record->first)
		return -EBADMSG;
	if (!module->map_ends) {
		module->map_ends = malloc(((size_t)nr + 1) * sizeof(module->map_ends[0]));
		if (!module->map_ends)
			return -ENOMEM;
		for (i = 0; i < nr; i++)
			module->map_ends[i] = MORPH_END_UNKNOWN;
	}
	memcpy(module->map_ends + record->first, record->ends,
	       record->nr * sizeof(record->ends[0]));
	return 0;
}

/* Calls of a module that is known already come again, and are not looked at. */
int md_modcache_add_calls_record(struct md_modcache *mc, const struct morph_module_calls *record)
{
	struct md_file *file = md_modcache_file(mc, record->module);
	struct md_module *module = file ? md_modcache_module(mc, file->module) : NULL;
	struct mp_map *map = module ? module->map : NULL;
	const struct mp_map_call *last;

	if (!map || record->first < map->nr_calls)
		return 0;
	if (record->first > map->nr_calls || record->nr > map->nr_pieces - map->nr_calls)
		return -EBADMSG;
	if (mp_resize(map->calls, (size_t)map->nr_calls + record->nr + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < record->nr; i++) {
		const struct morph_module_call *c = &record->calls[i];
		const struct mp_map_call call = {c->first, c->nr, c->back, c->callee};

		last = map->nr_calls ? &map->calls[map->nr_calls - 1] : NULL;
		if (!mp_map_call_follows(map, &call, last ? last->first + last->nr : 0) ||
		    call.back >= MD_VADDR_LIMIT || call.callee >= MD_VADDR_LIMIT)
			return -EBADMSG;
		map->calls[map->nr_calls++] = call;
		mc->map_bytes += sizeof(call);
	}
	return 0;
}

/* Decodes the table once all its parts have arrived, in order. */
int md_modcache_add_paths_record(struct md_modcache *mc, const struct morph_module_paths *record)
{
	struct md_file *file = md_modcache_file(mc, record->module);
	struct md_module *module = file ? md_modcache_module(mc, file->module) : NULL;
	uint8_t *bytes;
	int ret;

	if (!module || !module->map || module->paths)
		return 0;
	if (!record->off) {
		md_module_drop_paths(module);
		if (record->table_size > MD_PATHS_SIZE_MAX)
			return -EBADMSG;
		module->path_size = record->table_size;
	}
	if (record->table_size != module->path_size || record->off != module->path_come)
		return -EBADMSG;
	/* Grow as parts arrive. The announced size is not trusted. */
	bytes = realloc(module->path_bytes, record->off + (size_t)record->nr + 1);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes + record->off, record->bytes, record->nr);
	module->path_bytes = bytes;
	module->path_come += record->nr;
	if (module->path_come < module->path_size)
		return 0;
	ret = -EBADMSG;
	if (md_path_table_bytes(bytes, module->path_size) <= MD_PATHS_BYTES_MAX)
		ret = mp_path_table_decode(module->path, bytes, module->path_size, &module->paths,
					   NULL);
	if (ret)
		md_module_drop_paths(module);
	else
		mc->map_bytes += md_module_bytes(module) - md_map_bytes(module->map);
	return ret;
}

/* The recording's word suffices: it could equally well contain samples of the original. */
int md_modcache_add_output_record(struct md_modcache *mc, const struct morph_module_output *record)
{
	struct md_file *file = md_modcache_file(mc, record->module);
	struct md_module *module = file ? md_modcache_module(mc, file->module) : NULL;

	if (module && module->map)
		module->map_belief = MD_MAP_BELIEVED;
	return 0;
}

static enum morph_module_status status_of(uint8_t why)
{
	size_t i;

	for (i = 0; i <= MORPH_MODULE_VDSO; i++)
		if (md_why_of(i) == why)
			return i;
	return MORPH_MODULE_UNREADABLE;
}

static int write_flat(const struct md_file *file, const struct mp_map *map, struct md_buf *buf)
{
	const uint32_t max = (MORPH_RECORD_SIZE_MAX - sizeof(struct morph_module_map)) /
			     sizeof(struct morph_piece);
	struct morph_module_map *record;
	uint32_t from, nr, i;

	for (from = 0; from < map->nr_pieces; from += nr) {
		nr = map->nr_pieces - from < max ? map->nr_pieces - from : max;
		record = md_record_add(buf, MORPH_REC_MODULE_MAP,
				       sizeof(*record) + nr * sizeof(record->pieces[0]));
		if (!record)
			return -ENOMEM;
		record->module = file->number;
		record->build_id_len = map->original.build_id_len;
		record->text_hash = map->original.text_hash;
		memcpy(record->build_id, map->original.build_id, sizeof(record->build_id));
		for (i = 0; i < nr; i++) {
			const struct mp_map_piece *p = &map->pieces[from + i];

			record->pieces[i] = (struct morph_piece){p->new_vaddr, p->old_vaddr,
								 p->new_size, p->old_size};
		}
	}
	return 0;
}

#define PIECES_AT_ONCE 2048
/* most bytes per piece: 5 for each of two sizes, 10 for each of two addresses */
#define PIECE_BYTES 30

static int add_pieces_record(const struct md_file *file, const struct mp_map *map, uint32_t nr,
			     const struct mp_varint_writer *w, struct md_buf *buf)
{
	struct morph_module_pieces *record =
		md_record_add(buf, MORPH_REC_MODULE_PIECES, sizeof(*record) + w->size);

	if (!record)
		return -ENOMEM;
	record->module = file->number;
	record->build_id_len = map->original.build_id_len;
	record->text_hash = map->original.text_hash;
	memcpy(record->build_id, map->original.build_id, sizeof(record->build_id));
	record->nr_pieces = nr;
	record->nr = (uint32_t)w->size;
	memcpy(record->bytes, w->bytes, w->size);
	return 0;
}

static int write_packed(const struct md_file *file, const struct mp_map *map, struct md_buf *buf)
{
	_Static_assert(PIECES_AT_ONCE * PIECE_BYTES + sizeof(struct morph_module_pieces) <
			       MORPH_RECORD_SIZE_MAX,
		       "so many pieces have room in a record");
	struct mp_varint_writer w = {0};
	struct mp_map_walk walk = {0};
	uint32_t from, nr, i;
	int ret = 0;

	for (from = 0; from < map->nr_pieces && !ret; from += nr) {
		struct mp_map_cursor at = {0};

		nr = map->nr_pieces - from < PIECES_AT_ONCE ? map->nr_pieces - from
							    : PIECES_AT_ONCE;
		w.size = 0;
		for (i = 0; i < nr; i++) {
			const struct mp_map_piece piece = mp_map_next(map, &walk);

			mp_map_put_piece(&w, &at, &piece);
		}
		ret = w.failed ? -ENOMEM : add_pieces_record(file, map, nr, &w, buf);
	}
	free(w.bytes);
	return ret;
}

static int write_map(const struct md_file *file, const struct mp_map *map, struct md_buf *buf)
{
	return map->packed ? write_packed(file, map, buf) : write_flat(file, map, buf);
}

static int write_ends(const struct md_file *file, const struct md_module *module,
		      struct md_buf *buf)
{
	const uint32_t max = (MORPH_RECORD_SIZE_MAX - sizeof(struct morph_module_ends)) /
			     sizeof(module->map_ends[0]) / 2 * 2;
	struct morph_module_ends *record;
	uint32_t from, nr;

	for (from = 0; module->map_ends && from < module->map->nr_pieces; from += nr) {
		nr = module->map->nr_pieces - from < max ? module->map->nr_pieces - from : max;
		record = md_record_add(buf, MORPH_REC_MODULE_ENDS,
				       sizeof(*record) + nr * sizeof(record->ends[0]));
		if (!record)
			return -ENOMEM;
		record->module = file->number;
		record->first = from;
		record->nr = nr;
		memcpy(record->ends, module->map_ends + from, nr * sizeof(record->ends[0]));
	}
	return 0;
}

static int write_calls(const struct md_file *file, const struct mp_map *map, struct md_buf *buf)
{
	const uint32_t max = (MORPH_RECORD_SIZE_MAX - sizeof(struct morph_module_calls)) /
			     sizeof(struct morph_module_call);
	struct morph_module_calls *record;
	uint32_t from, nr;

	for (from = 0; from < map->nr_calls; from += nr) {
		nr = map->nr_calls - from < max ? map->nr_calls - from : max;
		record = md_record_add(buf, MORPH_REC_MODULE_CALLS,
				       sizeof(*record) + nr * sizeof(record->calls[0]));
		if (!record)
			return -ENOMEM;
		record->module = file->number;
		record->first = from;
		record->nr = nr;
		for (uint32_t i = 0; i < nr; i++) {
			const struct mp_map_call *c = &map->calls[from + i];

			record->calls[i] =
				(struct morph_module_call){c->back, c->callee, c->first, c->nr};
		}
	}
	return 0;
}

static int write_paths(const struct md_file *file, const struct md_module *module,
		       struct md_buf *buf)
{
	const uint32_t max = MORPH_RECORD_SIZE_MAX - sizeof(struct morph_module_paths);
	struct morph_module_paths *record;
	uint32_t off, nr;

	for (off = 0; module->paths && off < module->path_size; off += nr) {
		nr = module->path_size - off < max ? module->path_size - off : max;
		record = md_record_add(buf, MORPH_REC_MODULE_PATHS, sizeof(*record) + nr);
		if (!record)
			return -ENOMEM;
		record->module = file->number;
		record->table_size = module->path_size;
		record->off = off;
		record->nr = nr;
		memcpy(record->bytes, module->path_bytes + off, nr);
	}
	return 0;
}

static int write_output(const struct md_file *file, struct md_buf *buf)
{
	struct morph_module_output *record =
		md_record_add(buf, MORPH_REC_MODULE_OUTPUT, sizeof(*record));

	if (!record)
		return -ENOMEM;
	record->module = file->number;
	return 0;
}

int md_modcache_write_output_record(const struct md_modcache *mc, const struct md_module *module,
				    struct md_buf *buf)
{
	for (uint32_t i = 1; i < mc->files_end; i++)
		if (mc->files[i] && mc->files[i]->recorded && mc->files[i]->module == module->index)
			return write_output(mc->files[i], buf);
	return 0;
}

int md_modcache_write_records(const struct md_modcache *mc, const struct md_file *file,
			      struct md_buf *buf)
{
	const struct md_module *module = md_modcache_module(mc, file->module);
	uint32_t nr = file->nr_segments < 1024 ? file->nr_segments : 1024;
	size_t size = sizeof(struct morph_module) + nr * sizeof(struct morph_segment);
	size_t len = strnlen(file->path, 4095);
	struct morph_module *record;

	record = md_record_add(buf, MORPH_REC_MODULE, size + len + 1);
	if (!record)
		return -ENOMEM;
	record->module = file->number;
	record->status = status_of(file->why);
	record->nr_segments = nr;
	if (nr)
		memcpy(record->segments, file->segments, nr * sizeof(file->segments[0]));
	memcpy((char *)record + size, file->path, len);
	if (!module)
		return 0;
	record->kind = module->kind == MP_MODULE_KERNEL ? MORPH_MODULE_KERNEL : MORPH_MODULE_FILE;
	record->text_hash = module->id.text_hash;
	record->text_size = module->text_size;
	record->build_id_len = module->id.build_id_len;
	memcpy(record->build_id, module->id.build_id, sizeof(record->build_id));
	if (!module->map)
		return 0;
	record->nr_pieces = module->map->nr_pieces;
	if (write_map(file, module->map, buf) || write_ends(file, module, buf) ||
	    write_calls(file, module->map, buf))
		return -ENOMEM;
	if (write_paths(file, module, buf))
		return -ENOMEM;
	return module->map_belief == MD_MAP_BELIEVED ? write_output(file, buf) : 0;
}
