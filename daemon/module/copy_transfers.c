// SPDX-License-Identifier: Apache-2.0
/* copy_transfers - translates transfers in moved code; see copy_transfers.h. */
#include "daemon/module/copy_transfers.h"

#include <stdlib.h>
#include <unistd.h>

#include "libprof/insn/insn.h"
#include "libprof/note/map_calls.h"
#include "libprof/note/map_packed.h"

#define PIECE_MAX   (1u << 20) /* no block is larger */
#define PADDING_MAX 4096       /* largest gap for alignment between pieces */
#define BRANCH_MAX  6	       /* longest direct branch, in bytes */

static uint64_t new_end(const struct mp_map_piece *piece)
{
	return piece->new_vaddr + piece->new_size;
}

static uint64_t old_end(const struct mp_map_piece *piece)
{
	return piece->old_vaddr + piece->old_size;
}

/*
 * A copy has the original's instructions without the final branch, and then a conditional
 * branch, a jump, both or neither. Return: offset of the original's branch; the piece's size if
 * it has none.
 */
static uint32_t end_of_piece(const struct mp_map_piece *piece, const uint8_t *bytes)
{
	uint32_t off = 0, last = 0, before = 0;
	struct mp_insn insn = {.kind = MP_INSN_OTHER}, previous = insn;

	while (off < piece->new_size) {
		previous = insn;
		if (mp_insn_decode(bytes + off, piece->new_size - off, piece->new_vaddr + off,
				   &insn))
			return UINT32_MAX;
		before = last;
		last = off;
		off += insn.len;
	}
	if (insn.kind == MP_INSN_JUMP && previous.kind == MP_INSN_COND)
		return before;
	if (insn.kind == MP_INSN_JUMP || insn.kind == MP_INSN_COND)
		return last;
	/* The original's jump to the next copy was dropped: it began at the copy's end. */
	return piece->new_size < piece->old_size ? piece->new_size : piece->old_size;
}

/* A part of the file, to avoid a system call per piece. */
struct window {
	int fd;
	uint64_t off;
	size_t nr; /* bytes available */
	uint8_t *bytes;
};

/* Return: the @size bytes at @off, or NULL. */
static const uint8_t *look_at(struct window *w, uint64_t off, uint32_t size)
{
	if (off < w->off || off - w->off > w->nr || size > w->nr - (off - w->off)) {
		ssize_t n = pread(w->fd, w->bytes, PIECE_MAX, (off_t)off);

		w->off = off;
		w->nr = n > 0 ? (size_t)n : 0;
		if (size > w->nr)
			return NULL;
	}
	return w->bytes + (off - w->off);
}

uint32_t *md_copy_branch_offsets(const struct mp_elf *elf, int fd, const struct mp_map *map)
{
	uint32_t *ends = malloc(((size_t)map->nr_pieces + 1) * sizeof(*ends));
	struct mp_map_walk walk = {0};
	struct window w = {.fd = fd, .bytes = malloc(PIECE_MAX)};

	if (!ends || !w.bytes) {
		free(w.bytes);
		free(ends);
		return NULL;
	}
	for (uint32_t i = 0; i < map->nr_pieces; i++) {
		const struct mp_map_piece piece = mp_map_next(map, &walk);
		const uint8_t *bytes;
		uint64_t off;

		/* An empty piece was a block with only a jump, which was dropped. */
		ends[i] = piece.new_size ? UINT32_MAX : 0;
		if (!piece.old_size || !piece.new_size || piece.new_size > PIECE_MAX ||
		    !mp_elf_vaddr_to_off(elf, piece.new_vaddr, &off))
			continue;
		bytes = look_at(&w, off, piece.new_size);
		if (bytes)
			ends[i] = end_of_piece(&piece, bytes);
	}
	free(w.bytes);
	return ends;
}

/* Finds the end from the sizes, since a recording of an optimised module has no code. */
static uint32_t end_by_size(const struct mp_map_piece *piece)
{
	uint32_t shorter = piece->old_size - piece->new_size;

	if (!piece->new_size)
		return 0;
	/* A piece shorter by two or five bytes lost a jump. */
	return piece->new_size < piece->old_size && (shorter == 2 || shorter == 5) ? piece->new_size
										   : UINT32_MAX;
}

/*
 * Control left the piece at its end, by a branch or by falling through, to the original's
 * address @to.
 */
static enum md_copy_translation leave_piece(const struct mp_map_piece *piece, uint32_t end,
					    uint64_t *from, uint64_t to)
{
	if (old_end(piece) == to)
		return MD_COPY_FALLS;
	if (end == UINT32_MAX)
		end = end_by_size(piece);
	if (end == UINT32_MAX)
		return MD_COPY_UNKNOWN;
	if (end >= piece->old_size)
		return MD_COPY_NO_COUNTERPART;
	*from = piece->old_vaddr + end;
	return MD_COPY_TAKEN;
}

enum md_copy_translation md_copy_translate_branch(const struct mp_map *map, const uint32_t *ends,
						  uint64_t *from, uint64_t *to)
{
	uint64_t new_from = *from, new_to = *to;
	uint32_t i = mp_map_piece_at(map, new_from), end, off;
	struct mp_map_piece piece;
	bool at_end;

	*to = mp_map_original(map, new_to);
	if (i == map->nr_pieces) {
		/* A patch jumps from a block to its copy. */
		return *to == new_from && *to != new_to ? MD_COPY_NO_COUNTERPART : MD_COPY_TAKEN;
	}
	piece = mp_map_piece(map, i);
	if (!piece.old_size)
		return MD_COPY_NO_COUNTERPART;
	off = (uint32_t)(new_from - piece.new_vaddr);
	end = ends ? ends[i] : UINT32_MAX;
	/* If the size differs, the copy may have two branches in place of one. */
	at_end = end != UINT32_MAX ? off >= end : off + BRANCH_MAX >= piece.old_size;
	if (at_end && (end != UINT32_MAX || piece.new_size != piece.old_size))
		return leave_piece(&piece, end, from, *to);
	if (at_end && *to == old_end(&piece))
		return MD_COPY_FALLS;
	*from = piece.old_vaddr + off;
	return MD_COPY_TAKEN;
}

uint64_t md_copy_translate_run(const struct mp_map *map, const uint32_t *ends, uint64_t start,
			       uint64_t end, void (*fn)(void *arg, uint64_t from, uint64_t to),
			       void *arg)
{
	uint32_t first = mp_map_piece_at(map, start), last = mp_map_piece_at(map, end);
	uint64_t nr_unknown = 0;

	if (first == map->nr_pieces && last == map->nr_pieces)
		return 0; /* nothing was moved here */
	if (first == map->nr_pieces || last == map->nr_pieces || last < first ||
	    last - first > MD_COPY_RUN_MAX)
		return 1;
	for (uint32_t i = first; i < last; i++) {
		struct mp_map_piece piece = mp_map_piece(map, i);

		if (mp_map_piece(map, i + 1).new_vaddr - new_end(&piece) > PADDING_MAX)
			return 1; /* no fall-through across such a gap: the run is wrong */
	}
	for (uint32_t i = first; i < last; i++) {
		struct mp_map_piece piece = mp_map_piece(map, i), next = mp_map_piece(map, i + 1);
		const struct mp_map_call *call = mp_map_call_of_piece(map, i + 1);
		uint64_t from, to = next.old_vaddr;

		/* Control runs on into a function in place of the call of it. */
		if (call && call->first == i + 1) {
			fn(arg, call->back - MP_MAP_CALL_SIZE, call->callee);
			continue;
		}
		if (!piece.old_size || !next.old_size)
			continue;
		switch (leave_piece(&piece, ends ? ends[i] : UINT32_MAX, &from, to)) {
		case MD_COPY_TAKEN: fn(arg, from, to); break;
		case MD_COPY_UNKNOWN: nr_unknown++; break;
		default: break;
		}
	}
	return nr_unknown;
}
