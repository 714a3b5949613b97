// SPDX-License-Identifier: Apache-2.0
/* copies - decodes the instructions of all copies; see copies.h. */
#include "daemon/live/copies.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/insn/insn.h"
#include "libprof/note/map.h"

struct reader {
	const struct mp_elf *original, *output;
	const struct md_changes *changes;
	const struct mp_map *map;
	struct md_copies *out;
	size_t max_exits, max_pages, max_own, max_retired; /* room in the arrays of @out */
};

static bool in_segment(const struct reader *r, uint64_t vaddr)
{
	return vaddr - r->changes->segment_vaddr < r->changes->segment_size;
}

static int add_exit(struct reader *r, uint64_t target)
{
	return mp_push(r->out->exits, r->out->nr_exits, r->max_exits, target);
}

/* The page of copies at @vaddr, new if it is not there yet. Calls come in ascending order. NULL: no memory. */
static struct md_live_page *page_of(struct reader *r, uint64_t vaddr)
{
	struct md_copies *out = r->out;
	uint64_t start = vaddr & -(uint64_t)MD_LIVE_PAGE, off;
	struct md_live_page *page;
	size_t size;

	if (out->nr_pages && out->pages[out->nr_pages - 1].vaddr == start)
		return &out->pages[out->nr_pages - 1];
	if (mp_grow(out->pages, r->max_pages, out->nr_pages + 1) ||
	    mp_grow(out->own, r->max_own, (out->nr_pages + 1) * MD_LIVE_PAGE) ||
	    mp_grow(out->retired, r->max_retired, (out->nr_pages + 1) * MD_LIVE_PAGE))
		return NULL;
	off = r->changes->segment_off + (start - r->changes->segment_vaddr);
	page = &out->pages[out->nr_pages];
	*page = (struct md_live_page){start, off, out->nr_pages * MD_LIVE_PAGE};
	/* The kernel fills the last page of a file with zeros. */
	size = r->output->size - off < MD_LIVE_PAGE ? r->output->size - off : MD_LIVE_PAGE;
	memset(out->own + page->at, 0, MD_LIVE_PAGE);
	memcpy(out->own + page->at, r->output->data + off, size);
	memcpy(out->retired + page->at, out->own + page->at, MD_LIVE_PAGE);
	out->nr_pages++;
	return page;
}

/* Does the copy, or the stub before it, of the code at @old begin at @to? */
static bool is_copy_of(const struct reader *r, uint64_t to, uint64_t old)
{
	uint32_t i = mp_map_piece_at(r->map, to);

	return i < r->map->nr_pieces && r->map->pieces[i].new_vaddr == to &&
	       r->map->pieces[i].old_vaddr == old;
}

/* The call @insn of a copy, whose original is at @old: both must lead to the same code. Return: 0, -ENOMEM. */
static int add_call(struct reader *r, const struct mp_insn *insn, uint64_t old)
{
	const uint8_t *bytes = mp_elf_bytes(r->original, old, insn->len);
	uint64_t at = insn->vaddr + insn->disp_off;
	struct md_live_page *page;
	struct mp_insn was;
	int32_t distance;

	if (!bytes || mp_insn_decode(bytes, insn->len, old, &was) || was.kind != MP_INSN_CALL ||
	    !is_copy_of(r, insn->target, was.target) || insn->disp_size != 4 ||
	    at / MD_LIVE_PAGE != (at + 3) / MD_LIVE_PAGE)
		return 0;
	page = page_of(r, at);
	if (!page)
		return -ENOMEM;
	distance = (int32_t)(was.target - (insn->vaddr + insn->len));
	memcpy(r->out->retired + page->at + at % MD_LIVE_PAGE, &distance, sizeof(distance));
	r->out->nr_calls++;
	return add_exit(r, was.target);
}

/* Return: 0; -EPERM: it is not understood, without a message; -ENOMEM. */
static int read_piece(struct reader *r, const struct mp_map_piece *piece)
{
	const uint8_t *bytes = mp_elf_bytes(r->output, piece->new_vaddr, piece->new_size);
	struct mp_insn insn;
	int rc = 0;

	if (!bytes || !in_segment(r, piece->new_vaddr))
		return -EPERM;
	for (uint32_t at = 0; !rc && at < piece->new_size; at += insn.len) {
		if (mp_insn_decode(bytes + at, piece->new_size - at, piece->new_vaddr + at, &insn))
			return -EPERM;
		if (insn.kind == MP_INSN_CALL && in_segment(r, insn.target)) {
			if (at < piece->old_size)
				rc = add_call(r, &insn, piece->old_vaddr + at);
		} else if (insn.target && mp_elf_is_code(r->original, insn.target)) {
			/* Also an address that is only taken. */
			rc = add_exit(r, insn.target);
		}
	}
	return rc;
}

int md_copies_read(const struct mp_elf *original, const struct mp_elf *output,
		   const struct md_changes *changes, struct md_copies *out, struct mp_err *err)
{
	struct reader r = {.original = original, .output = output, .changes = changes, .out = out};
	struct mp_map *map = NULL;
	int rc;

	*out = (struct md_copies){0};
	rc = mp_map_read(output, &map, err);
	if (rc)
		return rc;
	r.map = map;
	for (uint32_t i = 0; !rc && i < map->nr_pieces; i++) {
		rc = read_piece(&r, &map->pieces[i]);
		if (rc == -EPERM)
			mp_err_set(err, EPERM, "%s: its code at 0x%" PRIx64 " is not understood",
				   output->path, map->pieces[i].new_vaddr);
		else if (rc)
			mp_err_code(err, -rc);
	}
	mp_map_free(map);
	return rc;
}

void md_copies_fini(struct md_copies *copies)
{
	free(copies->exits);
	free(copies->pages);
	free(copies->own);
	free(copies->retired);
	*copies = (struct md_copies){0};
}

uint64_t md_copies_find_cut(const struct md_copies *copies, const struct md_changes *changes)
{
	for (size_t i = 0; i < copies->nr_exits; i++)
		if (md_changes_inside(changes, copies->exits[i]))
			return copies->exits[i];
	return 0;
}

/* ---- a search for one address ------------------------------------------------------------------- */

/* The addresses strictly inside patches: bit k stands for @low + k. */
struct cuts {
	uint64_t *bits;
	uint64_t low, span;
	const struct mp_elf *output;
	uint64_t *places; /* ascending: displacements that seem to lead there, by their first byte */
	size_t nr_places, room, next;
	uint64_t start, end; /* where they were sought */
	uint64_t cut;	     /* the result */
};

/* The bits. Return: 0, -ENOMEM. */
static int make_cuts(const struct md_changes *changes, struct cuts *out)
{
	const uint64_t *patches = changes->patches;

	out->bits = calloc(out->span / 64 + 1, sizeof(*out->bits));
	if (!out->bits)
		return -ENOMEM;
	for (size_t i = 0; i < changes->nr_patches; i++)
		for (uint64_t k = 1; k < MD_PATCH_SIZE; k++) {
			uint64_t bit = patches[i] + k - out->low;

			out->bits[bit / 64] |= UINT64_C(1) << bit % 64;
		}
	return 0;
}

static inline bool is_cut(const struct cuts *c, uint64_t vaddr)
{
	uint64_t bit = vaddr - c->low;

	return bit < c->span && (c->bits[bit / 64] >> bit % 64 & 1);
}

/* Bytes that may follow the displacement of an instruction: an immediate. */
#define IMMEDIATE_MAX 4

/* Would the displacement @disp at @vaddr lead into a patch? */
static bool may_cut(const struct cuts *c, uint32_t disp, uint64_t vaddr)
{
	uint64_t to = vaddr + 4 + (uint64_t)(int64_t)(int32_t)disp;

	return is_cut(c, to) || is_cut(c, to + 1) || is_cut(c, to + 2) || is_cut(c, to + 4);
}

static int find_places(struct cuts *c)
{
	const uint8_t *bytes = mp_elf_bytes(c->output, c->start, c->end - c->start);
	uint32_t base = (uint32_t)(c->start + 4 + IMMEDIATE_MAX - c->low);

	for (uint64_t k = 0; k + 4 <= c->end - c->start; k++) {
		uint32_t disp;

		/*
		 * This is true for nearly all bytes. A comparison of 32 bits never leaves out a place that leads
		 * there.
		 */
		memcpy(&disp, bytes + k, sizeof(disp));
		if (disp + base + (uint32_t)k >= c->span + IMMEDIATE_MAX)
			continue;
		if (may_cut(c, disp, c->start + k) &&
		    mp_push(c->places, c->nr_places, c->room, c->start + k))
			return -ENOMEM;
	}
	return 0;
}

/* All copies must be read. */
#define NOT_KNOWN 1

/* *@c->cut: where the instructions of a piece lead into a patch. Return: 0, NOT_KNOWN. */
static int decode_piece(struct cuts *c, const struct mp_map_piece *piece)
{
	const uint8_t *bytes = mp_elf_bytes(c->output, piece->new_vaddr, piece->new_size);
	struct mp_insn insn;

	for (uint32_t at = 0; at < piece->new_size; at += insn.len) {
		if (!bytes ||
		    mp_insn_decode(bytes + at, piece->new_size - at, piece->new_vaddr + at, &insn))
			return NOT_KNOWN;
		if (is_cut(c, insn.target))
			c->cut = insn.target;
	}
	return 0;
}

static int look_at_piece(void *arg, const struct mp_map_piece *piece)
{
	uint64_t end = piece->new_vaddr + piece->new_size;
	struct cuts *c = arg;
	bool any = false;

	/* A retired call leads to the code whose copy is called: the beginning of a piece. */
	if (piece->new_vaddr < c->start || end > c->end || is_cut(c, piece->old_vaddr))
		return NOT_KNOWN;
	for (; c->next < c->nr_places && c->places[c->next] < end; c->next++)
		any |= c->places[c->next] >= piece->new_vaddr;
	return any ? decode_piece(c, piece) : 0;
}

/* Branches over less than this may have a displacement of one byte. */
#define NEAR 256

/* Return: 0, NOT_KNOWN, -errno. */
static int search(struct cuts *c, const struct md_changes *changes, struct mp_err *err)
{
	const struct mp_section *text = mp_elf_section(c->output, ".morph.text");
	int rc;

	if (!changes->nr_patches)
		return 0;
	c->low = changes->patches[0];
	c->span = changes->patches[changes->nr_patches - 1] + MD_PATCH_SIZE - c->low;
	if (!text || !mp_elf_bytes(c->output, text->vaddr, text->size) ||
	    text->vaddr < c->low + c->span + NEAR || c->span > UINT32_MAX / 2)
		return NOT_KNOWN;
	c->start = text->vaddr;
	c->end = text->vaddr + text->size;
	rc = make_cuts(changes, c);
	if (!rc)
		rc = find_places(c);
	return rc ? mp_err_code(err, -rc) : mp_map_each(c->output, look_at_piece, c, err);
}

int md_copies_search_cut(const struct mp_elf *original, const struct mp_elf *output,
			 const struct md_changes *own, const struct md_changes *changes,
			 uint64_t *cut, struct mp_err *err)
{
	struct cuts c = {.output = output};
	struct md_copies copies;
	int rc = search(&c, changes, err);

	*cut = c.cut;
	if (rc == NOT_KNOWN) {
		rc = md_copies_read(original, output, own, &copies, err);
		*cut = rc ? 0 : md_copies_find_cut(&copies, changes);
		md_copies_fini(&copies);
	}
	free(c.bits);
	free(c.places);
	return rc;
}
