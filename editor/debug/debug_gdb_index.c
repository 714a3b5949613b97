// SPDX-License-Identifier: Apache-2.0
/*
 * debug_gdb_index - rewrites .gdb_index: a header of offsets, units, addresses, symbols, and a pool with the lists of
 * units that have a symbol. Called by debug.
 *
 * A debugger reads only the units that the index names. So an added unit is in it, with its addresses, and wherever the
 * unit is that its functions come from.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/debug/debug_index.h"

enum {
	FIRST_VERSION = 4,
	LAST_VERSION = 9,
	KINDS_VERSION = 7, /* the first one that says which symbols are functions */
	UNIT_SIZE = 16,
	ADDRESS_SIZE = 20,
	SYMBOL_SIZE = 8,
	KIND_FUNCTION = 3,
};

struct header {
	uint32_t version, units, types, addresses;
	uint32_t behind
		[3]; /* offsets of the parts after the addresses: symbols, and more; the last is the pool */
	unsigned int nr_behind, size;
};

static bool read_header(const struct me_debug_section *s, struct header *h)
{
	struct mp_cursor c = mp_cursor_at(s->data, s->size, 0);
	uint32_t last;

	h->version = mp_cursor_u32(&c);
	if (h->version < FIRST_VERSION || h->version > LAST_VERSION)
		return false;
	h->units = mp_cursor_u32(&c);
	h->types = mp_cursor_u32(&c);
	h->addresses = mp_cursor_u32(&c);
	h->nr_behind = h->version >= 9 ? 3 : 2;
	h->size = 16 + 4 * h->nr_behind;
	last = h->addresses;
	for (unsigned int i = 0; i < h->nr_behind; i++) {
		h->behind[i] = mp_cursor_u32(&c);
		if (h->behind[i] < last)
			return false;
		last = h->behind[i];
	}
	return !c.bad && h->units >= h->size && h->types >= h->units && h->addresses >= h->types &&
	       last <= s->size;
}

static uint32_t pool_of(const struct header *h)
{
	return h->behind[h->nr_behind - 1];
}

static uint32_t nr_units_of(const struct header *h)
{
	return (h->types - h->units) / UNIT_SIZE;
}

/* Offset in .debug_info of the index's unit @nr. Type units have no code and are not looked up. */
static bool find_unit(const struct me_debug_section *s, const struct header *h, uint32_t nr,
		      uint64_t *off)
{
	struct mp_cursor c;

	if (nr >= nr_units_of(h))
		return false;
	c = mp_cursor_at(s->data, s->size, h->units + (uint64_t)nr * UNIT_SIZE);
	*off = mp_cursor_u64(&c);
	return !c.bad;
}

/* The unit that was added for the index's unit @nr. *@new: the number of the added unit. */
static const struct me_added_unit *find_added(const struct me_debug_sections *file,
					      const struct header *h, uint32_t nr, uint32_t *new)
{
	const struct me_added_unit *added = NULL;
	uint64_t off;

	if (file->nr_added && find_unit(&file->gdb_index, h, nr, &off))
		added = me_unit_added(file, off);
	if (added)
		*new = nr_units_of(h) + (uint32_t)(added - file->added);
	return added;
}

/* ---- addresses ----------------------------------------------------------------------------- */

static void put_addresses(const struct me_ranges *ranges, uint32_t nr, struct me_bytes *out)
{
	for (uint32_t i = 0; i < ranges->nr && !ranges->failed; i++) {
		me_bytes_u64(out, ranges->ranges[i].lo);
		me_bytes_u64(out, ranges->ranges[i].hi);
		me_bytes_u32(out, nr);
	}
}

/* Write the addresses of one range and its copies, but those that an added unit has. */
static bool extend_address(struct me_debug_sections *file, const struct header *h,
			   struct mp_cursor *c, struct me_bytes *out)
{
	uint64_t lo = mp_cursor_u64(c), hi = mp_cursor_u64(c), unit;
	uint32_t nr = mp_cursor_u32(c), new;
	const struct me_added_unit *added = find_added(file, h, nr, &new);

	file->new.nr = 0;
	if (find_unit(&file->gdb_index, h, nr, &unit) && me_unit_is_extended(file, unit))
		me_moves_map(file->moves, lo, hi, &file->new);
	me_ranges_add(&file->new, lo, hi);
	me_ranges_join(&file->new, 0);
	if (added && !me_debug_spend(file, (uint64_t)file->new.nr *(added->ranges.nr + 1)))
		return false;
	if (added)
		me_ranges_subtract(&file->new, &added->ranges);
	put_addresses(&file->new, nr, out);
	return true;
}

/* ---- symbols ------------------------------------------------------------------------------- */

struct symbols {
	struct me_debug_sections *file;
	const struct header *h;
	const uint8_t *pool;
	uint32_t pool_size;
	uint32_t *moved; /* per 4 bytes of the pool: where the list there is now; 0: where it was */
	struct me_bytes more; /* lists that are added to the pool */
};

static bool is_function(const struct symbols *x, uint32_t element)
{
	return x->h->version >= KINDS_VERSION && (element >> 28 & 7) == KIND_FUNCTION;
}

/* Copy the list at @at if it names a unit with functions that moved. Return: false: it is damaged. */
static bool extend_list(struct symbols *x, uint32_t at)
{
	struct mp_cursor c = mp_cursor_at(x->pool, x->pool_size, at), d;
	uint32_t nr = mp_cursor_u32(&c), more = 0, new;

	if (at % 4 || c.bad || nr > (uint64_t)(c.end - c.p) / 4)
		return false;
	if (x->moved[at / 4])
		return true;
	d = c;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t element = mp_cursor_u32(&d);

		more += is_function(x, element) &&
			find_added(x->file, x->h, element & 0xffffff, &new);
	}
	if (!more)
		return true;
	if (!me_debug_spend(x->file, nr))
		return false;
	x->moved[at / 4] = x->pool_size + (uint32_t)x->more.size;
	me_bytes_u32(&x->more, nr + more);
	me_bytes_put(&x->more, c.p, (size_t)nr * 4);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t element = mp_cursor_u32(&c);

		if (is_function(x, element) && find_added(x->file, x->h, element & 0xffffff, &new))
			me_bytes_u32(&x->more, (element & 0xff000000) | new);
	}
	return true;
}

/* Write the table of symbols to @out; NULL: only read it. Return: false: it is damaged. */
static bool extend_symbols(struct symbols *x, struct me_bytes *out)
{
	const uint8_t *data = x->file->gdb_index.data;
	struct mp_cursor c = mp_cursor_at(data, x->h->behind[1], x->h->behind[0]);

	while (c.end - c.p >= SYMBOL_SIZE) {
		uint32_t name = mp_cursor_u32(&c), list = mp_cursor_u32(&c);

		/* An empty slot. */
		if ((name || list) && !extend_list(x, list))
			return false;
		if ((name || list) && x->moved[list / 4])
			list = x->moved[list / 4];
		if (out) {
			me_bytes_u32(out, name);
			me_bytes_u32(out, list);
		}
	}
	return c.p == c.end;
}

static bool symbols_init(struct symbols *x, struct me_debug_sections *file, const struct header *h)
{
	*x = (struct symbols){.file = file,
			      .h = h,
			      .pool = file->gdb_index.data + pool_of(h),
			      .pool_size = (uint32_t)(file->gdb_index.size - pool_of(h))};
	x->moved = calloc((size_t)x->pool_size / 4 + 1, sizeof(*x->moved));
	/* New lists are aligned as the old ones. */
	while ((x->pool_size + x->more.size) % 4 && !x->more.failed)
		me_bytes_u8(&x->more, 0);
	return x->moved && !x->more.failed;
}

static void symbols_fini(struct symbols *x)
{
	free(x->moved);
	me_bytes_fini(&x->more);
}

/* ---- the whole ----------------------------------------------------------------------------- */

int me_gdb_index_takes_units(struct me_debug_sections *file, bool *takes)
{
	struct me_debug_section *s = &file->gdb_index;
	struct symbols x;
	struct header h;

	*takes = !s->index;
	/* Units behind those with types would get the numbers of these. */
	if (!s->index || !read_header(s, &h) || h.version < KINDS_VERSION || h.types != h.addresses)
		return 0;
	if (!symbols_init(&x, file, &h)) {
		symbols_fini(&x);
		return -ENOMEM;
	}
	*takes = extend_symbols(&x, NULL);
	symbols_fini(&x);
	return 0;
}

static bool write_index(struct me_debug_sections *file, const struct header *h, struct symbols *x)
{
	struct me_debug_section *s = &file->gdb_index;
	struct me_bytes *out = &s->added;
	struct mp_cursor c = mp_cursor_at(s->data, h->behind[0], h->addresses);
	uint32_t grown = UNIT_SIZE * file->nr_added;

	me_bytes_put(out, s->data, h->types);
	for (uint32_t i = 0; i < file->nr_added; i++) {
		me_bytes_u64(out, file->added[i].off);
		me_bytes_u64(out, file->added[i].size);
	}
	me_bytes_put(out, s->data + h->types, h->addresses - h->types);
	for (uint32_t n = (h->behind[0] - h->addresses) / ADDRESS_SIZE; n; n--)
		if (!extend_address(file, h, &c, out))
			return false;
	for (uint32_t i = 0; i < file->nr_added; i++)
		put_addresses(&file->added[i].ranges, nr_units_of(h) + i, out);
	if (out->failed)
		return true;
	me_bytes_patch_u32(out, 8, h->types + grown);
	me_bytes_patch_u32(out, 12, h->addresses + grown);
	grown = (uint32_t)out->size - h->behind[0];
	for (unsigned int i = 0; i < h->nr_behind; i++)
		me_bytes_patch_u32(out, 16 + 4 * i, h->behind[i] + grown);
	if (file->nr_added && !extend_symbols(x, out))
		return false;
	if (!file->nr_added)
		me_bytes_put(out, s->data + h->behind[0], h->behind[1] - h->behind[0]);
	me_bytes_put(out, s->data + h->behind[1], s->size - h->behind[1]);
	if (file->nr_added)
		me_bytes_put(out, x->more.data, x->more.size);
	out->failed |= x->more.failed;
	return true;
}

int me_gdb_index_extend(struct me_debug_sections *file)
{
	struct me_debug_section *s = &file->gdb_index;
	struct symbols x = {0};
	struct header h;
	bool good;

	if (!s->index || !file->nr_extended || !read_header(s, &h))
		return 0;
	if (file->nr_added && !symbols_init(&x, file, &h)) {
		symbols_fini(&x);
		return -ENOMEM;
	}
	good = write_index(file, &h, &x);
	symbols_fini(&x);
	if (s->added.failed || file->new.failed)
		return -ENOMEM;
	if (!good)
		me_bytes_fini(&s->added);
	s->replaced = good;
	return 0;
}
