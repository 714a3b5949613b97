// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_code - where old code is in the output. A range of old code may be several ranges
 * now. Jumps and padding that were added belong to the code that they lead to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/debug/object_debug_private.h"
#include "libprof/base/grow.h"

/* Does control go on behind the item? */
static bool falls_through(const struct me_object *o, const struct me_item *item)
{
	const struct me_oinsn *insn;
	unsigned int kind;

	if (item->kind == ME_ITEM_JUMP)
		return false;
	if (item->kind != ME_ITEM_COPY)
		return true;
	insn = &o->insns[item->insn];
	kind = insn->kind;
	/* A call at the function's end does not return. */
	if ((kind == MP_INSN_CALL || kind == MP_INSN_ICALL) &&
	    me_oinsn_end(insn) == o->funcs[insn->func].end)
		return false;
	return kind != MP_INSN_JUMP && kind != MP_INSN_IJUMP && kind != MP_INSN_RET &&
	       kind != MP_INSN_TRAP;
}

struct queue {
	uint32_t *items;
	uint32_t nr;
};

static void reach(struct me_odebug *d, struct queue *queue, uint32_t item)
{
	if (item == ME_NONE || d->reached[item])
		return;
	d->reached[item] = 1;
	queue->items[queue->nr++] = item;
}

/*
 * Of a block that has several copies, one may be left that nothing leads to. Entries are reached at
 * the starts of functions, at landing pads, and where only tables and addresses lead.
 */
static bool find_reached(struct me_odebug *d)
{
	const struct me_object *o = d->o;
	uint8_t *branched = calloc((size_t)o->nr_insns + 1, 1);
	struct queue queue = {calloc((size_t)o->nr_items + 1, sizeof(uint32_t)), 0};
	bool good = branched && queue.items && d->reached;

	for (uint32_t i = 0; good && i < o->nr_insns; i++)
		if (o->insns[i].to != ME_NONE)
			branched[o->insns[i].to] = 1;
	for (uint32_t i = 0; good && i < o->nr_insns; i++)
		if ((o->insns[i].func != ME_NONE && o->funcs[o->insns[i].func].first_insn == i) ||
		    (o->insns[i].flags & ME_OINSN_PAD) ||
		    ((o->insns[i].flags & ME_OINSN_TARGET) && !branched[i]))
			reach(d, &queue, o->insns[i].item);
	while (good && queue.nr) {
		uint32_t i = queue.items[--queue.nr];
		const struct me_item *item = &o->items[i];

		if (item->to != ME_NONE && item->kind != ME_ITEM_DROPPED)
			reach(d, &queue, o->insns[item->to].item);
		if (falls_through(o, item) && i + 1 < o->nr_items)
			reach(d, &queue, i + 1);
	}
	free(branched);
	free(queue.items);
	return good;
}

/* The copy of the instruction that debuggers are led to; ME_NONE: it was left out. */
static uint32_t item_of(const struct me_odebug *d, uint32_t insn)
{
	uint32_t item = d->o->insns[insn].item;

	for (uint32_t k = d->first_owned[insn];
	     item != ME_NONE && !d->reached[item] && k < d->first_owned[insn + 1]; k++)
		if (d->o->items[d->owned[k]].insn == insn && d->reached[d->owned[k]])
			return d->owned[k];
	return item;
}

int me_odebug_code(struct me_odebug *d)
{
	const struct me_object *o = d->o;

	d->first_owned = calloc((size_t)o->nr_insns + 2, sizeof(*d->first_owned));
	d->owned = calloc((size_t)o->nr_items + 1, sizeof(*d->owned));
	d->reached = calloc((size_t)o->nr_items + 1, 1);
	if (!d->first_owned || !d->owned || !find_reached(d))
		return me_odebug_no_memory(d);
	for (uint32_t i = 0; i < o->nr_items; i++)
		d->first_owned[o->items[i].row + 2]++;
	for (uint32_t i = 2; i < o->nr_insns + 2; i++)
		d->first_owned[i] += d->first_owned[i - 1];
	/* first_owned[i + 1] moves from the start of i to its end. */
	for (uint32_t i = 0; i < o->nr_items; i++)
		d->owned[d->first_owned[o->items[i].row + 1]++] = i;
	return 0;
}

static bool add_interval(struct me_ointervals *to, const struct me_ointerval *interval)
{
	if (mp_grow(to->list, to->cap, (uint64_t)to->nr + 1))
		return false;
	to->list[to->nr++] = *interval;
	return true;
}

/* The bytes [from, to) of instruction @insn, counted from its start. */
static bool map_insn(struct me_odebug *d, uint32_t insn, uint32_t from, uint32_t to,
		     struct me_ointervals *out)
{
	const struct me_object *o = d->o;
	uint32_t len = o->insns[insn].len;

	for (uint32_t k = d->first_owned[insn]; k < d->first_owned[insn + 1]; k++) {
		const struct me_item *item = &o->items[d->owned[k]];
		uint32_t start = 0, end = item->size;

		if (item->insn != insn) {
			if (from)
				continue;
		} else {
			/* Bytes inside are counted from the end: a call's last byte stays the last one. */
			if (from)
				start = item->size > len - from ? item->size - (len - from) : 0;
			if (to < len)
				end = item->size > len - to ? item->size - (len - to) : 0;
		}
		if (start < end &&
		    !add_interval(out, &(struct me_ointerval){item->out, item->off + start,
							      item->off + end, d->owned[k],
							      d->owned[k]}))
			return false;
	}
	return true;
}

static int compare_intervals(const void *a, const void *b)
{
	const struct me_ointerval *x = a, *y = b;

	return (x->first_item > y->first_item) - (x->first_item < y->first_item);
}

/* Does @y continue @x, with nothing but padding between them? */
static bool joins(const struct me_object *o, const struct me_ointerval *x,
		  const struct me_ointerval *y)
{
	const struct me_item *last = &o->items[x->last_item], *next = &o->items[y->first_item];

	if (x->out != y->out)
		return false;
	if (x->end == y->start)
		return true;
	return y->first_item == x->last_item + 1 && x->end == last->off + last->size &&
	       y->start == next->off;
}

/* Joins what is adjacent. */
static void join(const struct me_object *o, struct me_ointervals *list, uint32_t from)
{
	uint32_t nr = from;

	if (list->nr == from)
		return;
	qsort(list->list + from, list->nr - from, sizeof(*list->list), compare_intervals);
	for (uint32_t i = from; i < list->nr; i++) {
		if (nr > from && joins(o, &list->list[nr - 1], &list->list[i])) {
			list->list[nr - 1].end = list->list[i].end;
			list->list[nr - 1].last_item = list->list[i].last_item;
		} else {
			list->list[nr++] = list->list[i];
		}
	}
	list->nr = nr;
}

/* The first instruction of the section that ends behind @off. */
static uint32_t insn_over(const struct me_object *o, const struct me_ocode *code, uint64_t off)
{
	uint64_t size = o->in->sections[code->section].header.sh_size;

	while (off && off < size && code->at[off] == ME_NONE)
		off--;
	return off < size ? code->at[off] : code->first_insn + code->nr_insns;
}

int me_odebug_map(struct me_odebug *d, uint32_t section, uint64_t start, uint64_t end,
		  struct me_ointervals *out)
{
	const struct me_object *o = d->o;
	const struct mp_relobj_section *s = me_odebug_section(d, section);
	const struct me_ocode *code;
	uint32_t from = out->nr, first;

	if (!mp_relobj_is_code(s) || start > end || end > s->header.sh_size)
		return me_odebug_refuse(d, "describes code that is not there");
	if (start == end)
		return 0;
	code = &o->codes[o->code_of[section]];
	if (code->closed)
		return add_interval(out, &(struct me_ointerval){code->out, (uint32_t)start,
								(uint32_t)end, 0, 0})
			       ? 0
			       : me_odebug_no_memory(d);
	first = insn_over(o, code, start);
	for (uint32_t i = first; i < code->first_insn + code->nr_insns && o->insns[i].off < end;
	     i++) {
		const struct me_oinsn *insn = &o->insns[i];
		uint64_t a = start > insn->off ? start - insn->off : 0;
		uint64_t b = end < me_oinsn_end(insn) ? end - insn->off : insn->len;

		if (!map_insn(d, i, (uint32_t)a, (uint32_t)b, out))
			return me_odebug_no_memory(d);
	}
	join(o, out, from);
	return 0;
}

bool me_odebug_place(const struct me_odebug *d, struct me_addr addr, enum me_ouse use,
		     uint32_t *out, uint32_t *off)
{
	const struct me_object *o = d->o;
	const struct me_ocode *code = &o->codes[o->code_of[addr.section]];
	uint64_t size = o->in->sections[addr.section].header.sh_size;
	uint32_t insn = ME_NONE, item;

	if (code->closed) {
		*out = code->out;
		*off = (uint32_t)addr.off;
		return addr.off <= size;
	}
	if (use == ME_OUSE_START) {
		insn = me_object_insn_at(o, o->code_of[addr.section], addr.off);
		/* Padding is left out: the place is that of what follows. */
		while (insn != ME_NONE && o->insns[insn].item == ME_NONE &&
		       insn + 1 < code->first_insn + code->nr_insns &&
		       o->insns[insn].func == o->insns[insn + 1].func)
			insn++;
		item = insn != ME_NONE ? item_of(d, insn) : ME_NONE;
		if (item == ME_NONE)
			return false;
		*out = o->items[item].out;
		*off = o->items[item].off;
		return true;
	}
	if (addr.off && addr.off <= size)
		insn = insn_over(o, code, addr.off - 1);
	if (insn == ME_NONE || me_oinsn_end(&o->insns[insn]) != addr.off)
		return false;
	item = item_of(d, insn);
	if (item == ME_NONE)
		return false;
	*out = o->items[item].out;
	*off = o->items[item].off + o->items[item].size;
	return true;
}

/* The first of the ranges begins at @off of @out, if that is in one of them. Return: false: no memory. */
static bool begin_at(struct me_ointervals *list, uint32_t out, uint32_t off)
{
	for (uint32_t i = 0; i < list->nr; i++) {
		struct me_ointerval found = list->list[i];

		if (found.out != out || off < found.start || off >= found.end)
			continue;
		memmove(&list->list[1], &list->list[0], i * sizeof(found));
		list->list[0] = found;
		if (found.start == off)
			return true;
		if (!add_interval(list, &found))
			return false;
		list->list[0].start = off;
		list->list[list->nr - 1].end = off;
		return true;
	}
	return true;
}

int me_odebug_map_entry(struct me_odebug *d, const struct me_oentry *e, struct me_ointervals *out)
{
	uint32_t section, off;
	int rc = me_odebug_map(d, e->section, e->start, e->end, out);

	if (rc || !e->entry ||
	    !me_odebug_place(d, (struct me_addr){e->section, e->start}, ME_OUSE_START, &section,
			     &off))
		return rc;
	return begin_at(out, section, off) ? 0 : me_odebug_no_memory(d);
}
