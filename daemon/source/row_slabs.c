// SPDX-License-Identifier: Apache-2.0
/* row_slabs - the places of unwind rows in slabs; see row_slabs.h. */
#include "daemon/source/row_slabs.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "libprof/unwind/rows_laid.h"

/* The BPF programs read a rule as three words. */
_Static_assert(sizeof(struct mp_row_rule) == 24 && MD_WIRE_SLAB_ROOM >= MD_WIRE_SLAB + 24,
	       "a rule at the last place of a slab");
_Static_assert(MP_ROWS_PAGES_MAX * sizeof(uint32_t) <= MD_WIRE_SLAB &&
		       MP_ROWS_RULES_MAX * sizeof(struct mp_row_rule) <= MD_WIRE_SLAB &&
		       sizeof(struct md_wire_page) + (1 << 16) * sizeof(struct mp_row) <=
			       MD_WIRE_SLAB,
	       "each part fits into a slab");
/* morphd looks rows up where the BPF programs do. */
_Static_assert(sizeof(struct mp_rows_page) == sizeof(struct md_wire_page) &&
		       MP_ROWS_GRANULES == MD_WIRE_GRANULES &&
		       offsetof(struct mp_rows_page, has_first) ==
			       offsetof(struct md_wire_page, has_first),
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

/* Takes @size bytes, a multiple of @align, in one slab. Position 0 is never given. */
static int take(struct md_row_slabs *s, size_t size, uint32_t align, uint32_t *position,
		uint8_t **memory)
{
	uint64_t at = s->used ? s->used : MD_WIRE_SLAB_ROOM - MD_WIRE_SLAB;
	int ret;

	at = (at + align - 1) / align * align;
	if (size && at / MD_WIRE_SLAB != (at + size - 1) / MD_WIRE_SLAB)
		at = (at / MD_WIRE_SLAB + 1) * MD_WIRE_SLAB;
	if (at + size > (uint64_t)MD_WIRE_SLABS * MD_WIRE_SLAB)
		return -ENOSPC;
	while (at >= (uint64_t)s->nr * MD_WIRE_SLAB) {
		ret = make_slab(s);
		if (ret)
			return ret;
	}
	*position = (uint32_t)at;
	*memory = s->memory + at;
	s->used = (uint32_t)(at + size);
	return 0;
}

/* Lays down page @nr. The row that the page before ends with is its first one. */
static int add_page(struct md_row_slabs *s, const struct mp_rows *rows, uint32_t nr,
		    uint32_t *position)
{
	uint32_t from = rows->pages[nr], to = rows->pages[nr + 1], i, n = 0, granule = 0;
	bool has_first = from < to && rows->rows[from].low == 0;
	uint32_t nr_rows = to - from + !has_first;
	struct md_wire_page *page;
	struct mp_row *out;
	uint8_t *memory;
	int ret;

	if (nr_rows > UINT16_MAX)
		return -E2BIG;
	ret = take(s, sizeof(*page) + nr_rows * sizeof(*out), sizeof(uint32_t), position, &memory);
	if (ret)
		return ret;
	page = (void *)memory;
	out = (void *)(page + 1);
	/* The last row of all says that there is none, as before the first one. */
	if (!has_first)
		out[n++] = (struct mp_row){
			.number = rows->rows[(from ? from : rows->nr_rows) - 1].number};
	for (i = from; i < to; i++)
		out[n++] = rows->rows[i];
	for (i = 0; granule <= MD_WIRE_GRANULES; granule++) {
		while (i < n && out[i].low < granule << MD_WIRE_GRANULE_SHIFT)
			i++;
		page->first[granule] = (uint16_t)i;
	}
	page->has_first = has_first;
	return 0;
}

static int add_all(struct md_row_slabs *s, const struct mp_rows *rows, struct md_wire_file *file)
{
	uint32_t *directory, page;
	uint8_t *memory;
	int ret;

	ret = take(s, rows->nr_rules * sizeof(rows->rules[0]), 8, &file->rules, &memory);
	if (ret)
		return ret;
	memcpy(memory, rows->rules, rows->nr_rules * sizeof(rows->rules[0]));
	ret = take(s, rows->nr_pages * sizeof(*directory), sizeof(*directory), &file->directory,
		   &memory);
	directory = (void *)memory;
	for (page = 0; !ret && page < rows->nr_pages; page++)
		ret = add_page(s, rows, page, &directory[page]);
	return ret;
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

int md_row_slabs_add(struct md_row_slabs *s, const void *bytes, size_t size,
		     struct md_wire_file *file, struct mp_rows *out)
{
	uint32_t used = s->used;
	struct mp_rows rows;
	int ret;

	file->base = 0;
	file->nr_pages = file->directory = file->rules = 0;
	*out = (struct mp_rows){0};
	ret = mp_rows_open("", bytes, size, &rows, NULL);
	if (ret || !rows.nr_rows)
		return ret;
	ret = add_all(s, &rows, file);
	if (ret) {
		/* Nobody was told of these places. */
		s->used = used;
		return ret;
	}
	file->base = rows.base;
	file->nr_pages = rows.nr_pages;
	describe(s, file, &rows, out);
	return 0;
}
