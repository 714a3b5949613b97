// SPDX-License-Identifier: Apache-2.0
/* row_slabs - the places of unwind rows in slabs; see row_slabs.h. */
#include "daemon/source/row_slabs.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "libprof/base/discard.h"
#include "libprof/unwind/rows_laid.h"

/* The BPF programs read a rule as three words. */
_Static_assert(sizeof(struct mp_row_rule) == 24 && MD_WIRE_SLAB_ROOM >= MD_WIRE_SLAB + 24,
	       "a rule at the last place of a slab");
_Static_assert(MP_ROWS_PAGES_MAX * sizeof(uint32_t) <= MD_WIRE_SLAB &&
		       MP_ROWS_RULES_MAX * sizeof(struct mp_row_rule) <= MD_WIRE_SLAB &&
		       sizeof(struct mp_rows_page) +
				       (MP_ROWS_IN_PAGE_MAX + 1) * sizeof(struct mp_row) <=
			       MD_WIRE_SLAB,
	       "each part fits into a slab");
/* morphd looks rows up where the BPF programs do. */
_Static_assert(sizeof(struct mp_rows_page) == sizeof(struct md_wire_page) &&
		       MP_ROWS_GRANULES == MD_WIRE_GRANULES &&
		       MP_ROWS_GRANULE_SHIFT == MD_WIRE_GRANULE_SHIFT &&
		       MP_ROWS_FEW_NUMBERS == MD_WIRE_FEW_NUMBERS &&
		       MP_ROWS_SHORT == MD_WIRE_SHORT && MP_ROWS_LONG == MD_WIRE_LONG &&
		       MP_ROWS_SHORT_SHIFT == MD_WIRE_SHORT_SHIFT &&
		       MP_ROWS_STEPS_MAX == MD_WIRE_STEPS_MAX &&
		       offsetof(struct mp_rows_page, nr_numbers) ==
			       offsetof(struct md_wire_page, nr_numbers),
	       "the same pages");

static int make_slab(struct md_row_slabs *s)
{
	int ret;

	if (s->nr == MD_WIRE_SLABS)
		return -ENOSPC;
	ret = s->add(s->arg, s->nr, s->memory + (size_t)s->nr * MD_WIRE_SLAB);
	if (!ret)
		s->nr++;
	return ret;
}

/*
 * Finds a place for @size bytes in one slab, at a multiple of @align from *@used on, the bytes that are
 * taken. Position 0 is never given. Return: false: there is none. Else *@used becomes the place's end.
 */
static bool place(uint64_t *used, size_t size, uint32_t align)
{
	uint64_t at = *used ? *used : MD_WIRE_SLAB_ROOM - MD_WIRE_SLAB;

	at = (at + align - 1) / align * align;
	if (size && at / MD_WIRE_SLAB != (at + size - 1) / MD_WIRE_SLAB)
		at = (at / MD_WIRE_SLAB + 1) * MD_WIRE_SLAB;
	*used = at + size;
	return *used <= (uint64_t)MD_WIRE_SLABS * MD_WIRE_SLAB;
}

static int take(struct md_row_slabs *s, size_t size, uint32_t align, uint32_t *position,
		uint8_t **memory)
{
	uint64_t used = s->used;
	int ret;

	if (!place(&used, size, align))
		return -ENOSPC;
	while (used > (uint64_t)s->nr * MD_WIRE_SLAB) {
		ret = make_slab(s);
		if (ret)
			return ret;
	}
	*position = (uint32_t)(used - size);
	*memory = s->memory + *position;
	s->used = (uint32_t)used;
	return 0;
}

/* ---- one file ------------------------------------------------------------------------------ */

/* Goes through the places that take() would give. Return: false: they are too many. */
static bool is_room_for(const struct md_row_slabs *s, const struct mp_rows *rows)
{
	uint64_t at = s->used;

	if (!place(&at, rows->nr_rules * sizeof(rows->rules[0]), 8) ||
	    !place(&at, rows->nr_pages * sizeof(uint32_t), sizeof(uint32_t)))
		return false;
	for (uint32_t nr = 0; nr < rows->nr_pages; nr++)
		if (!place(&at, mp_rows_page_size(mp_rows_laid_page(rows, nr)), sizeof(uint32_t)))
			return false;
	return true;
}

static int add_pages(struct md_row_slabs *s, const struct mp_rows *rows, bool uses_up,
		     uint32_t *directory)
{
	const void *from = NULL;
	uint8_t *memory;
	uint32_t nr;
	size_t size;
	int ret = 0;

	for (nr = 0; nr < rows->nr_pages && !ret; nr++) {
		const struct mp_rows_page *page = mp_rows_laid_page(rows, nr);

		size = mp_rows_page_size(page);
		ret = take(s, size, sizeof(uint32_t), &directory[nr], &memory);
		if (ret)
			break;
		memcpy(memory, page, size);
		if (!nr)
			from = page;
		if (uses_up)
			from = mp_discard(from, (const uint8_t *)page + size);
	}
	/* After a failure the caller gets its rows back: pages whose memory was given away are copied back. */
	while (ret && uses_up && nr--)
		memcpy((void *)(uintptr_t)mp_rows_laid_page(rows, nr), s->memory + directory[nr],
		       mp_rows_page_size((const void *)(s->memory + directory[nr])));
	return ret;
}

static int add_all(struct md_row_slabs *s, const struct mp_rows *rows, bool uses_up,
		   struct md_wire_file *file)
{
	uint8_t *memory;
	int ret;

	if (!is_room_for(s, rows))
		return -ENOSPC;
	ret = take(s, rows->nr_rules * sizeof(rows->rules[0]), 8, &file->rules, &memory);
	if (ret)
		return ret;
	memcpy(memory, rows->rules, rows->nr_rules * sizeof(rows->rules[0]));
	ret = take(s, rows->nr_pages * sizeof(uint32_t), sizeof(uint32_t), &file->directory,
		   &memory);
	return ret ? ret : add_pages(s, rows, uses_up, (void *)memory);
}

static void describe(const struct md_row_slabs *s, const struct md_wire_file *file,
		     const struct mp_rows *rows, struct mp_rows *out)
{
	*out = *rows;
	out->rules = (const void *)(s->memory + file->rules);
	out->pages = (const void *)(s->memory + file->directory);
	out->rows = NULL;
	out->laid = s->memory;
}

bool md_row_slabs_find(const struct md_row_slabs *s, const struct mp_rows *rows,
		       struct md_wire_file *file)
{
	if (!rows->laid || rows->laid != s->memory)
		return false;
	file->base = rows->base;
	file->nr_pages = rows->nr_pages;
	file->directory = (uint32_t)((const uint8_t *)rows->pages - s->memory);
	file->rules = (uint32_t)((const uint8_t *)rows->rules - s->memory);
	return true;
}

int md_row_slabs_add(struct md_row_slabs *s, const struct mp_rows *rows, bool uses_up,
		     struct md_wire_file *file, struct mp_rows *out)
{
	uint32_t used = s->used;
	int ret;

	file->base = 0;
	file->nr_pages = file->directory = file->rules = 0;
	*out = (struct mp_rows){0};
	if (!rows->nr_rows)
		return 0;
	ret = add_all(s, rows, uses_up, file);
	if (ret) {
		/* Nobody was told of these places. */
		s->used = used;
		return ret;
	}
	file->base = rows->base;
	file->nr_pages = rows->nr_pages;
	describe(s, file, rows, out);
	return 0;
}
