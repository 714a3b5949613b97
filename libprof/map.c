// SPDX-License-Identifier: Apache-2.0
/*
 * map - writes and reads the note that says where moved code came from.
 *
 * The format stands in Documentation/abi.md. A block takes about four bytes in it. The editor
 * writes it, attribution reads it, out of files that anybody may have made.
 */
#include "libprof/map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/varint.h"

#define MAP_VERSION   1
#define MAX_PIECES    (1u << 22) /* 96 MiB of pieces: what a hostile note can cost */
#define CHECKSUM_SIZE 8

/* The first number of a piece: its size and what differs from the usual. */
enum piece_bits {
	PIECE_GAP = 1 << 0,	/* does not start where the piece before ended */
	PIECE_RESIZED = 1 << 1, /* sizes differ */
	PIECE_SHIFT = 2,
};

static bool check_pieces(const struct mp_map *map)
{
	uint64_t end = 0;

	if (map->nr_pieces > MAX_PIECES || map->original.build_id_len > MP_BUILD_ID_MAX)
		return false;
	for (uint32_t i = 0; i < map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &map->pieces[i];

		/* A block that was one jump, dropped in the copy, is a piece of size 0. */
		if (piece->new_vaddr < end || piece->new_size > UINT64_MAX - piece->new_vaddr ||
		    piece->old_size > UINT64_MAX - piece->old_vaddr)
			return false;
		end = piece->new_vaddr + piece->new_size;
	}
	return true;
}

static void put_pieces(struct mp_varint_writer *w, const struct mp_map *map)
{
	uint64_t new_end = 0, old_end = 0;

	mp_varint_put(w, map->nr_pieces);
	for (uint32_t i = 0; i < map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &map->pieces[i];
		uint64_t head = (uint64_t)piece->new_size << PIECE_SHIFT;

		if (piece->new_vaddr != new_end)
			head |= PIECE_GAP;
		if (piece->new_size != piece->old_size)
			head |= PIECE_RESIZED;
		mp_varint_put(w, head);
		if (head & PIECE_GAP)
			mp_varint_put(w, piece->new_vaddr - new_end);
		if (head & PIECE_RESIZED)
			mp_varint_put_signed(w,
					     (int64_t)piece->old_size - (int64_t)piece->new_size);
		mp_varint_put_signed(w, (int64_t)(piece->old_vaddr - old_end));
		new_end = piece->new_vaddr + piece->new_size;
		old_end = piece->old_vaddr + piece->old_size;
	}
}

int mp_map_encode(const struct mp_map *map, uint8_t **out, size_t *size, struct mp_err *err)
{
	static const uint8_t zero[4];
	Elf64_Nhdr nhdr = {
		.n_namesz = sizeof(MP_MAP_NOTE_NAME),
		.n_type = MP_MAP_NOTE_TYPE,
	};
	struct mp_varint_writer w = {0};
	size_t desc;
	uint64_t sum;

	*out = NULL;
	if (!check_pieces(map))
		return mp_err_set(err, EINVAL, "map: pieces overlap, are out of order or too many");
	mp_varint_put_bytes(&w, &nhdr, sizeof(nhdr));
	mp_varint_put_bytes(&w, MP_MAP_NOTE_NAME, sizeof(MP_MAP_NOTE_NAME));
	mp_varint_put_bytes(&w, zero, -w.size & 3);
	desc = w.size;
	mp_varint_put(&w, MAP_VERSION);
	mp_varint_put_bytes(&w, &map->original.build_id_len, 1);
	mp_varint_put_bytes(&w, map->original.build_id, map->original.build_id_len);
	mp_varint_put_bytes(&w, &map->original.text_hash, sizeof(map->original.text_hash));
	put_pieces(&w, map);
	if (w.failed)
		goto err_memory;
	sum = XXH3_64bits(w.bytes + desc, w.size - desc);
	mp_varint_put_bytes(&w, &sum, sizeof(sum));
	if (w.failed)
		goto err_memory;
	nhdr.n_descsz = (uint32_t)(w.size - desc);
	memcpy(w.bytes, &nhdr, sizeof(nhdr));
	mp_varint_put_bytes(&w, zero, -w.size & 3);
	if (w.failed)
		goto err_memory;
	*out = w.bytes;
	*size = w.size;
	return 0;
err_memory:
	free(w.bytes);
	return mp_err_set(err, ENOMEM, "map: out of memory");
}

static void get_pieces(struct mp_varint_reader *r, struct mp_map *map)
{
	uint64_t new_end = 0, old_end = 0;

	for (uint32_t i = 0; i < map->nr_pieces; i++) {
		struct mp_map_piece *piece = &map->pieces[i];
		uint64_t head = mp_varint_get(r), gap;
		int64_t old_size;

		gap = head & PIECE_GAP ? mp_varint_get(r) : 0;
		old_size = (int64_t)(head >> PIECE_SHIFT);
		if (head >> PIECE_SHIFT > UINT32_MAX || gap > UINT64_MAX - new_end) {
			r->failed = true;
			return;
		}
		if (head & PIECE_RESIZED) {
			int64_t diff = mp_varint_get_signed(r);

			if (diff < -(int64_t)UINT32_MAX || diff > (int64_t)UINT32_MAX)
				r->failed = true;
			else
				old_size += diff;
		}
		if (old_size < 0 || old_size > UINT32_MAX)
			r->failed = true;
		if (r->failed)
			return;
		piece->new_vaddr = new_end + gap;
		piece->new_size = (uint32_t)(head >> PIECE_SHIFT);
		piece->old_size = (uint32_t)old_size;
		piece->old_vaddr = old_end + (uint64_t)mp_varint_get_signed(r);
		/* May wrap; check_pieces() refuses that once all are read. */
		new_end = piece->new_vaddr + piece->new_size;
		old_end = piece->old_vaddr + piece->old_size;
	}
}

static int decode(const struct mp_elf *elf, const uint8_t *desc, size_t size, struct mp_map **out,
		  struct mp_err *err)
{
	struct mp_varint_reader r = {.p = desc};
	struct mp_map *map = NULL;
	const uint8_t *p;
	uint64_t sum, version, nr;
	int ret;

	if (size < CHECKSUM_SIZE)
		goto err_damaged;
	r.end = desc + size - CHECKSUM_SIZE;
	memcpy(&sum, r.end, sizeof(sum));
	/* The sum first: it tells damage from a newer version. */
	if (sum != XXH3_64bits(desc, size - CHECKSUM_SIZE))
		goto err_damaged;
	version = mp_varint_get(&r);
	if (!r.failed && version != MAP_VERSION)
		return mp_err_set(err, EBADMSG,
				  "%s: map note of version %" PRIu64
				  ", this program knows version %d",
				  elf->path, version, MAP_VERSION);
	map = calloc(1, sizeof(*map));
	if (!map)
		goto err_memory;
	p = mp_varint_get_bytes(&r, 1);
	if (!p || *p > MP_BUILD_ID_MAX)
		goto err_damaged;
	map->original.build_id_len = *p;
	p = mp_varint_get_bytes(&r, map->original.build_id_len);
	if (!p)
		goto err_damaged;
	memcpy(map->original.build_id, p, map->original.build_id_len);
	p = mp_varint_get_bytes(&r, sizeof(map->original.text_hash));
	if (!p)
		goto err_damaged;
	memcpy(&map->original.text_hash, p, sizeof(map->original.text_hash));
	nr = mp_varint_get(&r);
	/* A piece takes two bytes or more. */
	if (r.failed || nr > MAX_PIECES || nr > (size_t)(r.end - r.p) / 2)
		goto err_damaged;
	map->nr_pieces = (uint32_t)nr;
	map->pieces = calloc(nr ? nr : 1, sizeof(*map->pieces));
	if (!map->pieces)
		goto err_memory;
	get_pieces(&r, map);
	if (r.failed || r.p != r.end || !check_pieces(map))
		goto err_damaged;
	*out = map;
	return 0;
err_damaged:
	ret = mp_err_set(err, EBADMSG, "%s: damaged map note", elf->path);
	mp_map_free(map);
	return ret;
err_memory:
	ret = mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	mp_map_free(map);
	return ret;
}

int mp_map_read(const struct mp_elf *elf, struct mp_map **out, struct mp_err *err)
{
	const uint8_t *bytes = elf->map_note;
	size_t size = elf->map_note_size, off = 0;

	*out = NULL;
	if (!bytes)
		return mp_err_set(err, ENOENT, "%s: carries no map", elf->path);
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
		if (nhdr.n_type == MP_MAP_NOTE_TYPE && nhdr.n_namesz == sizeof(MP_MAP_NOTE_NAME) &&
		    !memcmp(bytes + name, MP_MAP_NOTE_NAME, sizeof(MP_MAP_NOTE_NAME)))
			return decode(elf, bytes + desc, nhdr.n_descsz, out, err);
		off = (desc + nhdr.n_descsz + 3) & ~(size_t)3;
		if (off > size)
			break;
	}
	return mp_err_set(err, EBADMSG, "%s: damaged map note", elf->path);
}

void mp_map_free(struct mp_map *map)
{
	if (!map)
		return;
	free(map->pieces);
	free(map);
}

uint32_t mp_map_piece_at(const struct mp_map *map, uint64_t vaddr)
{
	uint32_t lo = 0, hi = map->nr_pieces;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (map->pieces[mid].new_vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo && vaddr - map->pieces[lo - 1].new_vaddr < map->pieces[lo - 1].new_size)
		return lo - 1;
	return map->nr_pieces;
}

uint64_t mp_map_original(const struct mp_map *map, uint64_t vaddr)
{
	uint32_t i = mp_map_piece_at(map, vaddr);
	const struct mp_map_piece *piece;
	uint64_t off;

	if (i == map->nr_pieces)
		return vaddr;
	piece = &map->pieces[i];
	off = vaddr - piece->new_vaddr;
	/* Added code has no original of its own: the address it was made for. */
	if (!piece->old_size)
		return piece->old_vaddr;
	if (off >= piece->old_size)
		off = piece->old_size - 1;
	return piece->old_vaddr + off;
}
