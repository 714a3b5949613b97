// SPDX-License-Identifier: Apache-2.0
/*
 * heat_pieces - reads the copies of an optimised file by its map. Called by heat_after.c.
 *
 * Decides which pieces are copies, and which are a called function's code in place of a call; cuts the
 * original's blocks where copies end behind a call. A piece that fits nothing is counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/draw/heat_after_private.h"
#include "libprof/base/search.h"
#include "libprof/insn/insn.h"
#include "libprof/note/map_calls.h"

/* Bytes of a direct call. */
#define CALL_SIZE 5
/* Bytes of endbr64. */
#define LANDING 4
/*
 * Functions in place of calls have fewer blocks (editor/rewrite/leaf.h). The limit protects against a
 * malicious file.
 */
#define PARTS_MAX 200

/* ---- which pieces stand in place of calls -------------------------------------------------- */

/* Does the copy lower the stack pointer by `push %rax` in place of the original's call, as the call did? */
static bool lowers(const struct mp_elf *elf, const struct mp_map_piece *piece)
{
	const uint8_t *last = piece->new_size + CALL_SIZE == piece->old_size + 1
				      ? mp_elf_bytes(elf, piece->new_vaddr + piece->new_size - 1, 1)
				      : NULL;

	return last && *last == 0x50;
}

/* Return: the function that the original of @piece calls at its end, if the copy lacks this call; else MP_NONE. */
static uint32_t lacking(const struct md_heat_after *a, const struct mp_map_piece *piece)
{
	const struct mp_cfg *cfg = a->in->cfg;
	uint64_t at = piece->old_vaddr + piece->old_size - CALL_SIZE;
	const uint8_t *bytes;
	struct mp_insn insn;
	uint32_t func;

	if (piece->old_size < CALL_SIZE ||
	    (piece->new_size != piece->old_size - CALL_SIZE && !lowers(a->elf, piece)))
		return MP_NONE;
	bytes = mp_elf_bytes(cfg->elf, at, CALL_SIZE);
	if (!bytes || mp_insn_decode(bytes, CALL_SIZE, at, &insn) || insn.kind != MP_INSN_CALL ||
	    insn.len != CALL_SIZE)
		return MP_NONE;
	func = mp_cfg_func_at(cfg, insn.target);
	return func != MP_NONE && cfg->funcs[func].vaddr == insn.target ? func : MP_NONE;
}

static uint64_t old_end(const struct mp_map_piece *piece)
{
	return piece->old_vaddr + piece->old_size;
}

/*
 * Is piece @i a further block of @func, in place of the call that piece @site lacks? Each of the
 * function's blocks is there once, so a second one belongs to a copy of the function.
 */
static bool continues(const struct mp_cfg *cfg, const struct mp_map *map, uint32_t site, uint32_t i,
		      uint32_t func)
{
	const struct mp_map_piece *piece = &map->pieces[i], *before = piece - 1;

	if (!piece->old_size || piece->new_vaddr != before->new_vaddr + before->new_size ||
	    mp_cfg_func_at(cfg, piece->old_vaddr) != func)
		return false;
	for (uint32_t k = site + 1; k < i; k++)
		if (old_end(&map->pieces[k]) == old_end(piece))
			return false;
	return i - site <= PARTS_MAX;
}

static void mark_inlined(const struct md_heat_after *a, const struct mp_map *map,
			 uint8_t *is_inlined)
{
	uint32_t i = 0;

	while (i < map->nr_pieces) {
		uint32_t site = i++, func = lacking(a, &map->pieces[site]);

		while (func != MP_NONE && i < map->nr_pieces &&
		       continues(a->in->cfg, map, site, i, func))
			is_inlined[i++] = 1;
	}
}

/* ---- where blocks are cut ------------------------------------------------------------------ */

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Copies end behind calls in the middle of blocks: only there blocks are cut. Return: the number of cuts. */
static uint32_t find_cuts(const struct mp_cfg *cfg, const uint64_t *ends, size_t nr_ends,
			  uint64_t *cuts)
{
	uint32_t nr = 0, kept = 0;

	for (uint32_t c = 0; c < cfg->nr_calls; c++) {
		const struct mp_block *block = &cfg->blocks[cfg->calls[c].block];
		uint64_t end = mp_call_insn(cfg, &cfg->calls[c]) + CALL_SIZE;

		if (!cfg->calls[c].tail && end < block->vaddr + block->size &&
		    bsearch(&end, ends, nr_ends, sizeof(*ends), by_address))
			cuts[nr++] = end;
	}
	qsort(cuts, nr, sizeof(*cuts), by_address);
	for (uint32_t i = 0; i < nr; i++)
		if (!i || cuts[i] != cuts[i - 1])
			cuts[kept++] = cuts[i];
	return kept;
}

static int cut_counts(struct md_heat_after *a)
{
	const struct mp_counts *counts = a->in->counts;
	const struct mp_cfg *cfg = a->in->cfg, *cut = &a->view.cfg;
	double *block = malloc(((size_t)cut->nr_blocks + 1) * sizeof(*block));
	double *edge = malloc(((size_t)cut->nr_edges + 1) * sizeof(*edge));

	a->counts = (struct mp_counts){.block = block, .edge = edge};
	if (!block || !edge)
		return -ENOMEM;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		for (uint32_t n = a->view.first[b]; n < a->view.first[b + 1]; n++)
			block[n] = counts->block[b];
	for (uint32_t e = 0; e < cut->nr_edges; e++)
		edge[e] = e < cfg->nr_edges ? counts->edge[e] : block[cut->edges[e].from];
	return 0;
}

static int cut_blocks(struct md_heat_after *a, const struct mp_map *map)
{
	const struct mp_cfg *cfg = a->in->cfg;
	uint64_t *ends = malloc(((size_t)map->nr_pieces + 1) * sizeof(*ends));
	uint64_t *cuts = malloc(((size_t)cfg->nr_calls + 1) * sizeof(*cuts));
	size_t nr_ends = 0;
	int r = -ENOMEM;

	for (uint32_t i = 0; ends && i < map->nr_pieces; i++)
		if (map->pieces[i].old_size)
			ends[nr_ends++] = old_end(&map->pieces[i]);
	if (ends && cuts) {
		qsort(ends, nr_ends, sizeof(*ends), by_address);
		r = mp_cfg_view_cut(cfg, cuts, find_cuts(cfg, ends, nr_ends, cuts), &a->view, NULL);
	}
	free(ends);
	free(cuts);
	return r ? r : cut_counts(a);
}

uint32_t md_heat_block_starting(const struct md_heat_after *a, uint64_t vaddr)
{
	uint32_t b = mp_cfg_block_at(a->in->cfg, vaddr), low;

	if (b == MP_NONE)
		return MP_NONE;
	low = mp_search(i, a->view.first[b], a->view.first[b + 1],
			a->view.cfg.blocks[i].vaddr < vaddr);
	return low < a->view.first[b + 1] && a->view.cfg.blocks[low].vaddr == vaddr ? low : MP_NONE;
}

/* ---- reading code -------------------------------------------------------------------------- */

/*
 * Reads the branches at the end of the code, and its last instruction. Code that cannot be decoded does
 * not fall through. Return: the number of instructions.
 */
static uint32_t read_code(const struct md_heat_after *a, uint64_t vaddr, uint64_t size,
			  struct md_heat_end *end, struct mp_insn *insn)
{
	const uint8_t *bytes = mp_elf_bytes(a->elf, vaddr, size);
	uint32_t nr = 0;

	*end = (struct md_heat_end){.falls = true};
	*insn = (struct mp_insn){0};
	for (uint64_t at = 0; bytes && at < size; at += insn->len, nr++) {
		if (mp_insn_decode(bytes + at, size - at, vaddr + at, insn)) {
			end->falls = false;
			return nr;
		}
		if (insn->kind == MP_INSN_COND) {
			end->cond_at = insn->vaddr;
			end->cond_to = insn->target;
		} else if (insn->kind == MP_INSN_JUMP) {
			end->jump_at = insn->vaddr;
			end->jump_to = insn->target;
		}
	}
	if (mp_insn_ends_block(insn) && insn->kind != MP_INSN_COND)
		end->falls = false;
	return nr;
}

/* The direct call or jump at the end of a block of the original. Return: false: there is none. */
static bool read_branch(const struct mp_cfg *cfg, const struct mp_block *block,
			struct mp_insn *insn)
{
	uint32_t size = block->term_len ? block->term_len : CALL_SIZE;
	uint64_t at = block->vaddr + block->size - size;
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, at, size);

	return block->size >= size && bytes && !mp_insn_decode(bytes, size, at, insn) &&
	       insn->len == size && (insn->kind == MP_INSN_CALL || insn->kind == MP_INSN_JUMP);
}

/* Does block @b only jump through @slot, perhaps behind an endbr64? */
static bool is_stub(const struct mp_cfg *cfg, uint32_t b, uint64_t slot)
{
	const struct mp_block *block = &cfg->blocks[b];
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	uint32_t at = 0;
	struct mp_insn insn;

	if (!bytes || mp_insn_decode(bytes, block->size, block->vaddr, &insn))
		return false;
	if (insn.endbr64) {
		at = insn.len;
		if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			return false;
	}
	return insn.kind == MP_INSN_IJUMP && insn.rip_relative && insn.target == slot;
}

/* @insn: the last instruction of @copy. If it goes through a slot in place of a stub: find the stub. */
static void find_stub(const struct md_heat_after *a, const struct mp_insn *insn,
		      struct md_heat_copy *copy)
{
	struct mp_insn old;
	uint32_t b;

	if ((insn->kind != MP_INSN_ICALL && insn->kind != MP_INSN_IJUMP) || !insn->rip_relative ||
	    !read_branch(&a->view.cfg, &a->view.cfg.blocks[copy->block], &old))
		return;
	copy->lacks_call = true;
	b = md_heat_block_starting(a, old.target);
	if (b != MP_NONE && is_stub(&a->view.cfg, b, insn->target))
		copy->stub = b;
}

static bool is_there(const struct md_heat_after *a, const struct mp_map_piece *piece)
{
	return !piece->new_size || mp_elf_bytes(a->elf, piece->new_vaddr, piece->new_size);
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Return: NULL: @piece is no copy of a block. */
static struct md_heat_copy *add_copy(struct md_heat_after *a, const struct mp_map_piece *piece)
{
	uint32_t b = md_heat_block_starting(a, piece->old_vaddr);
	struct md_heat_copy *copy = &a->copies[a->nr];
	struct mp_insn last;

	if (b == MP_NONE || a->view.cfg.blocks[b].size != piece->old_size || !is_there(a, piece))
		return NULL;
	*copy = (struct md_heat_copy){.vaddr = piece->new_vaddr,
				      .end = piece->new_vaddr + piece->new_size,
				      .block = b,
				      .stub = MP_NONE,
				      .first_inlined = a->nr_inlined};
	read_code(a, piece->new_vaddr, piece->new_size, &copy->end_of, &last);
	find_stub(a, &last, copy);
	a->nr++;
	return copy;
}

/* Does the original of @piece begin where block @b does, or behind its endbr64? */
static bool begins_with(const struct mp_cfg *cfg, const struct mp_map_piece *piece, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct mp_insn insn;

	return piece->old_vaddr == block->vaddr ||
	       (piece->old_vaddr == block->vaddr + LANDING && bytes &&
		!mp_insn_decode(bytes, block->size, block->vaddr, &insn) && insn.endbr64);
}

/*
 * Finds the first and the last of the blocks that the original of @piece consists of, as far as block @b was cut. Return:
 * false: it consists of something else.
 */
static bool find_blocks(const struct md_heat_after *a, const struct mp_map_piece *piece, uint32_t b,
			struct md_heat_inlined *in)
{
	const struct mp_cfg *cfg = &a->view.cfg;

	in->first_block = MP_NONE;
	for (in->block = a->view.first[b]; in->block < a->view.first[b + 1]; in->block++) {
		if (begins_with(cfg, piece, in->block))
			in->first_block = in->block;
		if (old_end(piece) == cfg->blocks[in->block].vaddr + cfg->blocks[in->block].size)
			return in->first_block != MP_NONE;
	}
	return false;
}

/* Return: false: @piece is no block of a called function. */
static bool add_inlined(struct md_heat_after *a, const struct mp_map_piece *piece,
			struct md_heat_copy *site)
{
	uint32_t b = mp_cfg_block_at(a->in->cfg, piece->old_vaddr);
	struct md_heat_inlined *in = &a->inlined[a->nr_inlined];
	struct mp_insn last;

	*in = (struct md_heat_inlined){.vaddr = piece->new_vaddr,
				       .end = piece->new_vaddr + piece->new_size};
	if (b == MP_NONE || !is_there(a, piece) || !find_blocks(a, piece, b, in))
		return false;
	in->nr_insns = read_code(a, piece->new_vaddr, piece->new_size, &in->end_of, &last);
	a->nr_inlined++;
	site->nr_inlined++;
	site->lacks_call = true;
	return true;
}

/*
 * Code in place of a call ends as the copy must go on: a jump out of this code is the copy's, and not the
 * called function's.
 */
static void find_end(struct md_heat_after *a, struct md_heat_copy *site)
{
	const struct md_heat_inlined *first = &a->inlined[site->first_inlined];
	struct md_heat_inlined *last = &a->inlined[site->first_inlined + site->nr_inlined - 1];
	struct md_heat_end *end = &last->end_of;

	site->end_of = (struct md_heat_end){.falls = true};
	if (!end->jump_at || (end->jump_to >= first->vaddr && end->jump_to <= last->end))
		return;
	site->end_of = (struct md_heat_end){.jump_at = end->jump_at, .jump_to = end->jump_to};
	last->nr_insns--;
	end->jump_at = end->jump_to = 0;
	end->falls = true;
}

static void read_pieces(struct md_heat_after *a, const struct mp_map *map,
			const uint8_t *is_inlined)
{
	struct md_heat_copy *site = NULL;

	for (uint32_t i = 0; i < map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &map->pieces[i];

		bool placed;

		if (!is_inlined[i])
			site = piece->old_size ? add_copy(a, piece) : NULL;
		placed = is_inlined[i] ? site && add_inlined(a, piece, site)
				       : site || !piece->old_size;
		/* Code in place of a call that lies apart runs seldom: what of it is no copy of a block is left out. */
		if (!placed && (is_inlined[i] || !mp_map_call_of_piece(map, i)))
			a->out->nr_unplaced++;
	}
	for (uint32_t i = 0; i < a->nr; i++)
		if (a->copies[i].nr_inlined)
			find_end(a, &a->copies[i]);
}

int md_heat_pieces_read(struct md_heat_after *a, const struct mp_map *map)
{
	uint8_t *is_inlined = calloc((size_t)map->nr_pieces + 1, 1);
	size_t nr_inlined = 0;
	int r;

	if (!is_inlined)
		return -ENOMEM;
	mark_inlined(a, map, is_inlined);
	for (uint32_t i = 0; i < map->nr_pieces; i++)
		nr_inlined += is_inlined[i];
	r = cut_blocks(a, map);
	a->copies = calloc(map->nr_pieces - nr_inlined + 1, sizeof(*a->copies));
	a->inlined = calloc(nr_inlined + 1, sizeof(*a->inlined));
	if (!r && (!a->copies || !a->inlined))
		r = -ENOMEM;
	if (!r)
		read_pieces(a, map, is_inlined);
	free(is_inlined);
	return r;
}
