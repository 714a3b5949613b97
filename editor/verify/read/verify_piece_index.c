// SPDX-License-Identifier: Apache-2.0
/*
 * verify_piece_index - finds pieces of the map by their old and new addresses, and checks that they do
 * not overlap. verify builds the index before the scan.
 */

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/read/verify_piece_index.h"
#include "libprof/base/search.h"

const struct mp_map_piece *vf_piece_from(const struct vf *vf, uint64_t old_vaddr)
{
	uint64_t i = old_vaddr - vf->index.piece_start.base, below;

	if (!vf_bits_get(&vf->index.piece_start, old_vaddr))
		return NULL;
	below = vf->index.piece_start.word[i / 64] & ((1ULL << (i % 64)) - 1);
	return &vf->map->pieces[vf->index.by_old[vf->index.piece_rank[i / 64] +
						 (uint32_t)__builtin_popcountll(below)]];
}

const struct mp_map_piece *vf_piece_holding(const struct vf *vf, uint64_t old_vaddr)
{
	const struct mp_map_piece *pieces = vf->map->pieces;
	uint32_t lo = mp_search(i, 0, vf->index.nr_by_old,
				pieces[vf->index.by_old[i]].old_vaddr <= old_vaddr);

	if (!lo || old_vaddr - pieces[vf->index.by_old[lo - 1]].old_vaddr >=
			   pieces[vf->index.by_old[lo - 1]].old_size)
		return NULL;
	return &pieces[vf->index.by_old[lo - 1]];
}

uint32_t vf_whole_piece(const struct vf *vf, uint64_t new_vaddr)
{
	uint32_t next = vf_first_piece(vf, new_vaddr + 1);
	const struct mp_map_piece *p = next ? &vf->map->pieces[next - 1] : NULL;

	return p && p->new_vaddr == new_vaddr && p->new_size ? next - 1 : vf->map->nr_pieces;
}

/* Return: the last empty copy of the block at @old that has the address @now; NULL: none. */
static const struct mp_map_piece *empty_copy(const struct vf *vf, uint64_t old, uint64_t now)
{
	const struct mp_map_piece *p = vf->map->pieces;
	const uint32_t *empty = vf->index.empty;
	uint32_t behind = mp_search(i, 0, vf->index.nr_empty,
				    p[empty[i]].new_vaddr < now || (p[empty[i]].new_vaddr == now &&
								    p[empty[i]].old_vaddr <= old));

	p = behind ? &p[empty[behind - 1]] : NULL;
	return p && p->new_vaddr == now && p->old_vaddr == old ? p : NULL;
}

static bool is_whole_copy(const struct vf *vf, uint64_t old, uint64_t now)
{
	uint32_t i = vf_whole_piece(vf, now);

	return i < vf->map->nr_pieces && vf->map->pieces[i].old_vaddr == old &&
	       !vf->index.inlined[i].behind;
}

/* A block may have several copies and stubs before them. An empty copy shares its address with
 * the next one. */
bool vf_is_copy(const struct vf *vf, uint64_t old, uint64_t now)
{
	const struct mp_map_piece *copy = vf_piece_from(vf, old);

	if (vf_is_guarded(vf, now))
		return false;
	if (copy && copy->new_vaddr == now)
		return true;
	if (!vf_has_stubs(vf) && (!copy || !vf_bits_get(&vf->index.cloned, old)))
		return false;
	return is_whole_copy(vf, old, now) || empty_copy(vf, old, now);
}

bool vf_is_copy_behind(const struct vf *vf, const struct mp_map_piece *p, uint64_t old,
		       uint64_t now)
{
	return is_whole_copy(vf, old, now) || empty_copy(vf, old, now) > p;
}

bool vf_same_place(const struct vf *vf, uint64_t old, uint64_t now)
{
	return old == now || vf_is_copy(vf, old, now);
}

/* The next copy begins in the same or in the next cache line; many ways may lead to this padding. */
#define PADDING_MAX 256

uint64_t vf_falls_to(const struct vf *vf, const struct mp_map_piece *p)
{
	const struct mp_map *map = vf->map;
	uint64_t at = p->new_vaddr + p->new_size, end;
	const struct mp_map_piece *next = p + 1;

	if (next == map->pieces + map->nr_pieces)
		return VF_NOWHERE;
	end = next->new_vaddr;
	if (end - at > PADDING_MAX)
		return VF_NOWHERE;
	while (at < end) {
		const uint8_t *bytes = mp_elf_bytes(vf->n, at, end - at);
		size_t len = bytes ? vf_nop_len(bytes, end - at) : 0;

		if (!len)
			return VF_NOWHERE;
		at += len;
	}
	return end;
}
