// SPDX-License-Identifier: Apache-2.0
/*
 * map - writes and reads the note that tells the origin of moved code.
 * Documentation/abi.md has the format; a block takes about four bytes. The editor writes
 * the note; attribution reads it, out of files that may come from anybody.
 */
#include "libprof/note/map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"
#include "libprof/note/map_calls.h"
#include "libprof/note/map_packed.h"
#include "libprof/base/varint.h"
#include "libprof/note/note_frame.h"

#define MAP_VERSION 1

static int check(const struct mp_map *map, struct mp_err *err)
{
	uint64_t end = 0;
	uint32_t next = 0;

	if (map->nr_pieces > MP_MAP_PIECES_MAX)
		return mp_err_set(err, EINVAL, "map: %u pieces of moved code, the limit is %u",
				  map->nr_pieces, MP_MAP_PIECES_MAX);
	for (uint32_t i = 0; i < map->nr_pieces; i++) {
		if (!mp_map_follows(&map->pieces[i], end))
			return mp_err_set(err, EINVAL, "map: pieces overlap or are out of order");
		end = map->pieces[i].new_vaddr + map->pieces[i].new_size;
	}
	for (uint32_t i = 0; i < map->nr_calls; i++) {
		if (!mp_map_call_follows(map, &map->calls[i], next))
			return mp_err_set(err, EINVAL, "map: calls overlap or are out of order");
		next = map->calls[i].first + map->calls[i].nr;
	}
	return map->original.build_id_len > MP_BUILD_ID_MAX
		       ? mp_err_set(err, EINVAL, "map: the original's build-id is too long")
		       : 0;
}

static void pad(struct mp_varint_writer *w)
{
	static const uint8_t zero[4];

	mp_varint_put_bytes(w, zero, -w->size & 3);
}

/* Begins a note. Return: offset of its descriptor. */
static size_t begin_note(struct mp_varint_writer *w, uint32_t type)
{
	const Elf64_Nhdr nhdr = {.n_namesz = sizeof(MP_MAP_NOTE_NAME), .n_type = type};

	mp_varint_put_bytes(w, &nhdr, sizeof(nhdr));
	mp_varint_put_bytes(w, MP_MAP_NOTE_NAME, sizeof(MP_MAP_NOTE_NAME));
	pad(w);
	return w->size;
}

static void end_note(struct mp_varint_writer *w, size_t desc)
{
	const size_t name = (sizeof(MP_MAP_NOTE_NAME) + 3) & ~(size_t)3;
	uint32_t size;

	mp_frame_put_checksum(w, desc);
	size = (uint32_t)(w->size - desc);
	if (!w->failed)
		memcpy(w->bytes + desc - name - sizeof(Elf64_Nhdr) + offsetof(Elf64_Nhdr, n_descsz),
		       &size, sizeof(size));
	pad(w);
}

int mp_map_encode(const struct mp_map *map, uint8_t **out, size_t *size, struct mp_err *err)
{
	struct mp_varint_writer w = {0};
	struct mp_map_cursor at = {0};
	size_t desc;
	int ret;

	*out = NULL;
	ret = check(map, err);
	if (ret)
		return ret;
	desc = begin_note(&w, MP_MAP_NOTE_TYPE);
	mp_varint_put(&w, MAP_VERSION);
	mp_varint_put_bytes(&w, &map->original.build_id_len, 1);
	mp_varint_put_bytes(&w, map->original.build_id, map->original.build_id_len);
	mp_varint_put_bytes(&w, &map->original.text_hash, sizeof(map->original.text_hash));
	mp_varint_put(&w, map->nr_pieces);
	for (uint32_t i = 0; i < map->nr_pieces; i++)
		mp_map_put_piece(&w, &at, &map->pieces[i]);
	end_note(&w, desc);
	if (map->nr_calls) {
		desc = begin_note(&w, MP_MAP_CALLS_NOTE_TYPE);
		mp_map_put_calls(&w, map);
		end_note(&w, desc);
	}
	if (w.failed) {
		free(w.bytes);
		return mp_err_set(err, ENOMEM, "map: out of memory");
	}
	if (w.size > MP_ELF_MAX_MAP_NOTE) {
		free(w.bytes);
		return mp_err_set(err, EINVAL, "map: the notes take %zu bytes, the limit is %u",
				  w.size, MP_ELF_MAX_MAP_NOTE);
	}
	*out = w.bytes;
	*size = w.size;
	return 0;
}

/* Return: 0, -EBADMSG, or what @take returned. */
static int get_pieces(struct mp_varint_reader *r, uint32_t nr, mp_map_take *take, void *arg)
{
	struct mp_map_cursor at = {0};
	int ret = 0;

	for (uint32_t i = 0; !ret && i < nr; i++) {
		uint64_t end = at.new_end;
		struct mp_map_piece piece;

		mp_map_get_piece(r, &at, &piece);
		if (r->failed || !mp_map_follows(&piece, end))
			return -EBADMSG;
		ret = take(arg, &piece);
	}
	return ret;
}

static int add_flat(void *arg, const struct mp_map_piece *piece)
{
	struct mp_map_piece **to = arg;

	*(*to)++ = *piece;
	return 0;
}

static int add_packed(void *arg, const struct mp_map_piece *piece)
{
	return mp_map_packed_add(arg, piece);
}

/* Return: 0, -EBADMSG, -ENOMEM. */
static int store_pieces(struct mp_varint_reader *r, struct mp_map *map, bool compact)
{
	struct mp_map_piece *to;
	int ret;

	if (compact && map->nr_pieces > MP_MAP_FLAT_MAX) {
		map->packed = mp_map_packed_new();
		if (!map->packed)
			return -ENOMEM;
		ret = get_pieces(r, map->nr_pieces, add_packed, map->packed);
		if (!ret)
			mp_map_packed_trim(map->packed);
		return ret;
	}
	to = map->pieces = calloc(map->nr_pieces ? map->nr_pieces : 1, sizeof(*map->pieces));
	return to ? get_pieces(r, map->nr_pieces, add_flat, &to) : -ENOMEM;
}

static bool get_original(struct mp_varint_reader *r, struct mp_id *id)
{
	const uint8_t *p = mp_varint_get_bytes(r, 1);

	if (!p || *p > MP_BUILD_ID_MAX)
		return false;
	id->build_id_len = *p;
	p = mp_varint_get_bytes(r, id->build_id_len);
	if (!p)
		return false;
	memcpy(id->build_id, p, id->build_id_len);
	p = mp_varint_get_bytes(r, sizeof(id->text_hash));
	if (!p)
		return false;
	memcpy(&id->text_hash, p, sizeof(id->text_hash));
	return true;
}

static int damaged(const struct mp_elf *elf, struct mp_err *err)
{
	return mp_err_set(err, EBADMSG, "%s: damaged map note", elf->path);
}

/* Reads up to the pieces: *@nr of them follow. */
static int open_pieces(const struct mp_elf *elf, const uint8_t *desc, size_t size,
		       struct mp_varint_reader *r, struct mp_id *original, uint32_t *nr,
		       struct mp_err *err)
{
	int ret = mp_frame_open("map note", elf->path, desc, size, MAP_VERSION, r, err);
	uint64_t count;

	if (ret)
		return ret;
	if (!get_original(r, original))
		return damaged(elf, err);
	count = mp_varint_get(r);
	if (!r->failed && count > MP_MAP_PIECES_MAX)
		return mp_err_set(err, EBADMSG,
				  "%s: map note of %" PRIu64 " pieces, the limit is %u", elf->path,
				  count, MP_MAP_PIECES_MAX);
	/* A piece takes at least two bytes. */
	if (r->failed || count > (size_t)(r->end - r->p) / 2)
		return damaged(elf, err);
	*nr = (uint32_t)count;
	return 0;
}

static int decode(const struct mp_elf *elf, const uint8_t *desc, size_t size, bool compact,
		  struct mp_map **out, struct mp_err *err)
{
	struct mp_map *map = calloc(1, sizeof(*map));
	struct mp_varint_reader r;
	int ret;

	if (!map)
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	ret = open_pieces(elf, desc, size, &r, &map->original, &map->nr_pieces, err);
	if (!ret) {
		ret = store_pieces(&r, map, compact);
		if (ret == -ENOMEM)
			mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
		else if (ret || r.failed || r.p != r.end)
			ret = damaged(elf, err);
	}
	if (ret)
		mp_map_free(map);
	else
		*out = map;
	return ret;
}

/* Return: the descriptor of the first note of this type, and its size; NULL: there is none. */
static const uint8_t *find_note(const struct mp_elf *elf, uint32_t type, size_t *desc_size)
{
	const uint8_t *bytes = elf->map_note;
	size_t size = elf->map_note_size, off = 0;

	while (size - off >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr nhdr;
		size_t name, desc;

		memcpy(&nhdr, bytes + off, sizeof(nhdr));
		name = off + sizeof(nhdr);
		if (nhdr.n_namesz > size - name)
			break;
		desc = (name + nhdr.n_namesz + 3) & ~(size_t)3;
		if (desc > size || nhdr.n_descsz > size - desc)
			break;
		*desc_size = nhdr.n_descsz;
		if (nhdr.n_type == type && nhdr.n_namesz == sizeof(MP_MAP_NOTE_NAME) &&
		    !memcmp(bytes + name, MP_MAP_NOTE_NAME, sizeof(MP_MAP_NOTE_NAME)))
			return bytes + desc;
		off = (desc + nhdr.n_descsz + 3) & ~(size_t)3;
		if (off > size)
			break;
	}
	return NULL;
}

/* *@desc, *@size: the map's note. */
static int find_map(const struct mp_elf *elf, const uint8_t **desc, size_t *size,
		    struct mp_err *err)
{
	if (!elf->map_note)
		return mp_err_set(err, ENOENT, "%s: carries no map", elf->path);
	*desc = find_note(elf, MP_MAP_NOTE_TYPE, size);
	return *desc ? 0 : mp_err_set(err, EBADMSG, "%s: damaged map note", elf->path);
}

static int read_map(const struct mp_elf *elf, bool compact, struct mp_map **out, struct mp_err *err)
{
	const uint8_t *desc;
	size_t size;
	int ret = find_map(elf, &desc, &size, err);

	*out = NULL;
	if (ret)
		return ret;
	ret = decode(elf, desc, size, compact, out, err);
	desc = ret ? NULL : find_note(elf, MP_MAP_CALLS_NOTE_TYPE, &size);
	if (desc)
		ret = mp_map_get_calls(elf->path, desc, size, *out, err);
	if (ret) {
		mp_map_free(*out);
		*out = NULL;
	}
	return ret;
}

int mp_map_read(const struct mp_elf *elf, struct mp_map **out, struct mp_err *err)
{
	return read_map(elf, false, out, err);
}

int mp_map_read_compact(const struct mp_elf *elf, struct mp_map **out, struct mp_err *err)
{
	return read_map(elf, true, out, err);
}

int mp_map_each(const struct mp_elf *elf, mp_map_take *take, void *arg, struct mp_err *err)
{
	struct mp_varint_reader r;
	struct mp_id original;
	const uint8_t *desc;
	size_t size;
	uint32_t nr = 0;
	int ret = find_map(elf, &desc, &size, err);

	if (!ret)
		ret = open_pieces(elf, desc, size, &r, &original, &nr, err);
	if (ret)
		return ret;
	ret = get_pieces(&r, nr, take, arg);
	return ret == -EBADMSG || (!ret && r.p != r.end) ? damaged(elf, err) : ret;
}

int mp_map_read_original(const struct mp_elf *elf, struct mp_id *original, struct mp_err *err)
{
	struct mp_varint_reader r;
	const uint8_t *desc;
	size_t size;
	int ret = find_map(elf, &desc, &size, err);

	if (!ret)
		ret = mp_frame_open("map note", elf->path, desc, size, MAP_VERSION, &r, err);
	*original = (struct mp_id){0};
	if (!ret && !get_original(&r, original))
		ret = mp_err_set(err, EBADMSG, "%s: damaged map note", elf->path);
	return ret;
}

void mp_map_free(struct mp_map *map)
{
	if (!map)
		return;
	mp_map_packed_free(map->packed);
	free(map->pieces);
	free(map->calls);
	free(map);
}

uint64_t mp_map_bytes(const struct mp_map *map)
{
	return map->nr_calls * sizeof(map->calls[0]) +
	       (map->packed ? mp_map_packed_bytes(map->packed)
			    : map->nr_pieces * sizeof(map->pieces[0]));
}

/* Number of pieces that begin at or before @vaddr. The last of them is stored in *@piece. */
static uint32_t rank_of(const struct mp_map *map, uint64_t vaddr, struct mp_map_piece *piece)
{
	uint32_t lo;

	if (map->packed)
		return mp_map_packed_rank(map->packed, vaddr, piece);
	lo = mp_search(i, 0, map->nr_pieces, map->pieces[i].new_vaddr <= vaddr);
	if (lo)
		*piece = map->pieces[lo - 1];
	return lo;
}

/* As mp_map_piece_at(); also stores the piece in *@piece. */
static uint32_t find_piece(const struct mp_map *map, uint64_t vaddr, struct mp_map_piece *piece)
{
	uint32_t rank = rank_of(map, vaddr, piece);

	if (rank && vaddr - piece->new_vaddr < piece->new_size)
		return rank - 1;
	return map->nr_pieces;
}

uint32_t mp_map_piece_at(const struct mp_map *map, uint64_t vaddr)
{
	struct mp_map_piece piece;

	return find_piece(map, vaddr, &piece);
}

uint64_t mp_map_original(const struct mp_map *map, uint64_t vaddr)
{
	struct mp_map_piece piece;
	uint64_t off;

	if (find_piece(map, vaddr, &piece) == map->nr_pieces)
		return vaddr;
	off = vaddr - piece.new_vaddr;
	/* Added code has no original: old_vaddr is the address for which it was added. */
	if (!piece.old_size)
		return piece.old_vaddr;
	if (off >= piece.old_size)
		off = piece.old_size - 1;
	return piece.old_vaddr + off;
}

const struct mp_map_call *mp_map_call_at(const struct mp_map *map, uint64_t vaddr)
{
	struct mp_map_piece piece;
	uint32_t i;

	if (!map->nr_calls)
		return NULL;
	i = find_piece(map, vaddr, &piece);
	return i == map->nr_pieces ? NULL : mp_map_call_of_piece(map, i);
}
