// SPDX-License-Identifier: Apache-2.0
/* debug_list - entries of lists, and the addresses in them. */
#include "editor/debug/read/debug_list.h"

#include <dwarf.h>
#include <errno.h>

static struct me_addr field(struct me_list_reader *r)
{
	const uint8_t *p = mp_cursor_skip(&r->c, 8);
	struct me_addr addr = {0, 0};

	if (p && r->from.field)
		return r->from.field(r->from.ctx, p);
	if (p)
		memcpy(&addr.off, p, sizeof(addr.off));
	return addr;
}

static struct me_addr indexed(struct me_list_reader *r)
{
	struct me_addr addr = {0, 0};

	if (!r->from.indexed(r->from.ctx, mp_cursor_uleb(&r->c), &addr))
		r->c.bad = true;
	return addr;
}

/* An address without relocation counts from the base. An object without a base has numbers there. */
static struct me_addr from_base(const struct me_list_reader *r, struct me_addr addr)
{
	if (addr.section || (r->from.field && !r->base.section))
		return addr;
	return (struct me_addr){r->base.section, r->base.off + addr.off};
}

static struct me_addr behind(struct me_addr addr, uint64_t size)
{
	addr.off += size;
	return addr;
}

static void next_pair(struct me_list_reader *r, struct me_list_entry *e)
{
	struct me_addr start = field(r), end = field(r);

	e->last = !start.section && !end.section && !start.off && !end.off;
	if (e->last)
		return;
	if (!start.section && start.off == UINT64_MAX) {
		r->base = end;
		return;
	}
	e->start = from_base(r, start);
	e->end = from_base(r, end);
	e->bounded = true;
}

/* Return: 0; -EPERM. *@any: it is neither a base nor the end. */
static int next_kind(struct me_list_reader *r, struct me_list_entry *e, bool *any)
{
	unsigned int kind = mp_cursor_u8(&r->c);

	*any = e->bounded = true;
	if (r->locations && kind == DW_LLE_default_location) {
		e->bounded = false;
		return 0;
	}
	/* The kinds behind it have the numbers of ranges' kinds, and one more. */
	kind -= r->locations && kind > DW_LLE_default_location;
	switch (kind) {
	case DW_RLE_end_of_list:
	case DW_RLE_base_addressx:
	case DW_RLE_base_address:
		e->last = kind == DW_RLE_end_of_list;
		if (!e->last)
			r->base = kind == DW_RLE_base_address ? field(r) : indexed(r);
		*any = e->bounded = false;
		return 0;
	case DW_RLE_startx_endx:
		e->start = indexed(r);
		e->end = indexed(r);
		return 0;
	case DW_RLE_startx_length:
		e->start = indexed(r);
		e->end = behind(e->start, mp_cursor_uleb(&r->c));
		return 0;
	case DW_RLE_offset_pair:
		e->start = from_base(r, (struct me_addr){0, mp_cursor_uleb(&r->c)});
		e->end = from_base(r, (struct me_addr){0, mp_cursor_uleb(&r->c)});
		return 0;
	case DW_RLE_start_end:
		e->start = field(r);
		e->end = field(r);
		return 0;
	case DW_RLE_start_length:
		e->start = field(r);
		e->end = behind(e->start, mp_cursor_uleb(&r->c));
		return 0;
	default: return -EPERM;
	}
}

int me_list_next(struct me_list_reader *r, struct me_list_entry *e)
{
	bool any;
	int rc = 0;

	*e = (struct me_list_entry){0};
	if (r->version >= 5) {
		rc = next_kind(r, e, &any);
	} else {
		next_pair(r, e);
		any = e->bounded;
	}
	if (!rc && any && r->locations) {
		e->expr_size = r->version >= 5 ? mp_cursor_uleb(&r->c) : mp_cursor_u16(&r->c);
		e->expr = mp_cursor_skip(&r->c, e->expr_size);
	}
	return r->c.bad ? -EBADMSG : rc;
}
