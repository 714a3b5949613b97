// SPDX-License-Identifier: Apache-2.0
/*
 * verify_map - checks that the map's pieces lie where they may and do not overlap, and indexes them for
 * verify_piece_index. verify calls it before the scan.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/read/verify_map.h"
#include "editor/verify/read/verify_parts.h"
#include "editor/verify/read/verify_piece_index.h"

static int by_place(const void *a, const void *b, void *arg)
{
	const struct mp_map_piece *pieces = arg, *x = &pieces[*(const uint32_t *)a],
				  *y = &pieces[*(const uint32_t *)b];

	if (x->new_vaddr != y->new_vaddr)
		return x->new_vaddr < y->new_vaddr ? -1 : 1;
	if (x->old_vaddr != y->old_vaddr)
		return x->old_vaddr < y->old_vaddr ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Empty copies by their address, their block's and their order: any number of them may have one address. */
static int find_empty(struct vf *vf)
{
	const struct mp_map_piece *pieces = vf->map->pieces;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < vf->map->nr_pieces; i++)
		nr += !pieces[i].new_size && !vf->index.inlined[i].behind;
	vf->index.empty = malloc((nr + 1) * sizeof(*vf->index.empty));
	if (!vf->index.empty)
		return -ENOMEM;
	for (uint32_t i = 0; i < vf->map->nr_pieces; i++)
		if (!pieces[i].new_size && !vf->index.inlined[i].behind)
			vf->index.empty[vf->index.nr_empty++] = i;
	qsort_r(vf->index.empty, nr, sizeof(*vf->index.empty), by_place, (void *)pieces);
	return 0;
}

static int check_bounds(struct vf *vf, const struct mp_map_piece *p, uint64_t *prev_new)
{
	const struct mp_section *text = vf->now.text;

	/* Size 0 is allowed: a block that was only a jump to what now follows. */
	if (p->new_vaddr < *prev_new || p->new_vaddr < text->vaddr ||
	    p->new_vaddr - text->vaddr > text->size ||
	    p->new_size > text->size - (p->new_vaddr - text->vaddr))
		return vf_refuse(vf, p->new_vaddr,
				 "the map's copies overlap or lie outside .morph.text");
	*prev_new = p->new_vaddr + p->new_size;
	if (!p->old_size && p->new_size && vf_has_stubs(vf) && vf_is_text(vf, p->old_vaddr))
		return 0; /* a stub */
	if (!p->old_size || !vf_is_text(vf, p->old_vaddr) ||
	    p->old_size > vf->old.text_end - p->old_vaddr)
		return vf_refuse(vf, p->old_vaddr, "the map names an original outside the text");
	if (vf_is_inlined(vf, p))
		return 0;
	if (vf_bits_get(&vf->index.piece_start, p->old_vaddr))
		vf_bits_set(&vf->index.cloned, p->old_vaddr);
	vf_bits_set(&vf->index.piece_start, p->old_vaddr);
	return 0;
}

static void index_piece(const struct vf *vf, uint32_t i)
{
	uint64_t at = vf->map->pieces[i].old_vaddr - vf->index.piece_start.base;
	uint64_t below = vf->index.piece_start.word[at / 64] & ((1ULL << (at % 64)) - 1);
	uint32_t *first = &vf->index.by_old[vf->index.piece_rank[at / 64] +
					    (uint32_t)__builtin_popcountll(below)];

	vf->index.next_copy[i] = *first;
	*first = i;
}

int vf_index_pieces(struct vf *vf)
{
	uint32_t nr = vf->map->nr_pieces, rank = 0;
	uint64_t words, prev = 0;
	int ret;

	if (!nr)
		return vf_refuse(vf, vf->now.text->vaddr, "the map is empty");
	ret = vf_bits_init(&vf->index.piece_start, vf->old.text_start, vf->old.text_end);
	if (!ret)
		ret = vf_bits_init(&vf->index.cloned, vf->old.text_start, vf->old.text_end);
	if (ret)
		return ret;
	words = vf->index.piece_start.nr / 64 + 1;
	vf->index.piece_rank = malloc(words * sizeof(*vf->index.piece_rank));
	vf->index.by_old = malloc(nr * sizeof(*vf->index.by_old));
	vf->index.next_copy = malloc(nr * sizeof(*vf->index.next_copy));
	vf->marks->common = calloc(nr, sizeof(*vf->marks->common));
	vf->marks->pointer_now = calloc(nr, sizeof(*vf->marks->pointer_now));
	if (!vf->index.piece_rank || !vf->index.by_old || !vf->index.next_copy ||
	    !vf->marks->common || !vf->marks->pointer_now)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr && !vf_has_stubs(vf); i++)
		vf->stubs.waits = !vf->map->pieces[i].old_size;
	ret = vf_find_inlined(vf);
	if (!ret)
		ret = find_empty(vf);
	for (uint32_t i = 0; i < nr && !ret; i++)
		ret = check_bounds(vf, &vf->map->pieces[i], &prev);
	if (ret)
		return ret;
	for (uint64_t w = 0; w < words; w++) {
		vf->index.piece_rank[w] = rank;
		rank += (uint32_t)__builtin_popcountll(vf->index.piece_start.word[w]);
	}
	vf->index.nr_by_old = rank;
	memset(vf->index.by_old, 0xff, nr * sizeof(*vf->index.by_old)); /* VF_NONE */
	for (uint32_t i = 0; i < nr; i++)
		if (vf->map->pieces[i].old_size && !vf->index.inlined[i].behind)
			index_piece(vf, i);
	for (uint32_t i = 0; i < nr; i++) {
		const struct mp_map_piece *p = &vf->map->pieces[i];

		if (p->old_size && !vf->index.inlined[i].behind &&
		    vf_piece_from(vf, p->old_vaddr)->old_size != p->old_size)
			return vf_refuse(vf, p->old_vaddr,
					 "two copies of this code have different lengths");
	}
	for (uint32_t i = 1; i < rank; i++) {
		const struct mp_map_piece *a = &vf->map->pieces[vf->index.by_old[i - 1]];
		const struct mp_map_piece *b = &vf->map->pieces[vf->index.by_old[i]];

		if (a->old_vaddr + a->old_size > b->old_vaddr)
			return vf_refuse(vf, b->old_vaddr, "two copies stand for overlapping code");
	}
	return 0;
}
