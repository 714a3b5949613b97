// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line_parts - writes rows of a line program: those of the copies, and those of old code whose sequence two
 * programs share. Called by debug_line.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/debug/read/debug_form.h"
#include "editor/debug/debug_line_private.h"

static int keep_part(struct me_line_program *p, const struct me_line_part *part)
{
	if (mp_grow(p->parts, p->cap_parts, p->nr_parts + 1))
		return -ENOMEM;
	p->parts[p->nr_parts++] = *part;
	return 0;
}

static int add_part(struct me_line_program *p, uint32_t move, uint32_t sequence)
{
	const struct me_move *m = &p->file->moves->by_old[move];
	const struct me_line_sequence *s = &p->sequences[sequence];
	struct me_line_part part = {m->new_vaddr, m->new_end, move, sequence,
				    p->taken && me_ranges_any(p->taken, m->old_vaddr,
							      m->old_vaddr + 1)};

	if (!me_debug_spend(p->file, 1))
		return -EPERM;
	if (s->start > m->old_vaddr && !me_move_address(m, s->start, &part.start))
		return 0;
	if (s->end - m->old_vaddr < m->old_size && s->end - m->old_vaddr <= m->body_size)
		part.end = m->new_vaddr + (s->end - m->old_vaddr);
	return keep_part(p, &part);
}

/* Old code of sequence @sequence, which two programs share. */
static int add_old_parts(struct me_line_program *p, uint32_t sequence)
{
	const struct me_line_sequence *s = &p->sequences[sequence];
	struct me_line_part part = {s->start, s->start, ME_LINE_OLD, sequence, false};
	int rc = 0;

	for (uint32_t k = me_ranges_from(p->taken, s->start);
	     k < p->taken->nr && p->taken->ranges[k].lo < s->end && !rc; k++) {
		struct me_range r = p->taken->ranges[k];

		if (!me_debug_spend(p->file, 1))
			return -EPERM;
		part.start = part.end;
		part.end = r.lo > part.start ? r.lo : part.start;
		part.taken = false;
		if (part.start < part.end)
			rc = keep_part(p, &part);
		part.start = part.end;
		part.end = r.hi < s->end ? r.hi : s->end;
		part.taken = true;
		if (!rc)
			rc = keep_part(p, &part);
	}
	part.start = part.end;
	part.end = s->end;
	part.taken = false;
	return rc || part.start >= part.end ? rc : keep_part(p, &part);
}

static int by_start(const void *a, const void *b)
{
	const struct me_line_part *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

int me_line_find_parts(struct me_line_program *p)
{
	const struct me_moves *moves = p->file->moves;

	for (uint32_t s = 0; s < p->nr_sequences; s++) {
		const struct me_line_sequence *seq = &p->sequences[s];

		for (uint32_t i = me_moves_from(moves, seq->start);
		     i < moves->nr && moves->by_old[i].old_vaddr < seq->end; i++) {
			int rc = add_part(p, i, s);

			if (rc)
				return rc;
		}
		if (seq->split) {
			int rc = add_old_parts(p, s);

			if (rc)
				return rc;
		}
	}
	if (p->nr_parts)
		qsort(p->parts, p->nr_parts, sizeof(*p->parts), by_start);
	return 0;
}

static void put_start(struct me_line_program *p, struct me_line_row *now, uint64_t address)
{
	me_bytes_u8(p->out, 0);
	me_bytes_uleb(p->out, 9);
	me_bytes_u8(p->out, DW_LNE_set_address);
	me_bytes_u64(p->out, address);
	*now = me_line_first_row(&p->h, address);
}

static void put_end(struct me_line_program *p, const struct me_line_row *now, uint64_t end)
{
	me_bytes_u8(p->out, DW_LNS_advance_pc);
	me_bytes_uleb(p->out, end - now->address);
	me_bytes_u8(p->out, 0);
	me_bytes_uleb(p->out, 1);
	me_bytes_u8(p->out, DW_LNE_end_sequence);
}

/* The call at the end of @m whose code debug information describes; NULL: none. */
static struct me_inlined *described(const struct me_line_program *p, const struct me_move *m)
{
	const struct me_inlined_calls *calls = &p->file->inlined;
	struct me_inlined *call = m->inlined ? me_inlined_at(calls, m->old_vaddr + m->body_size,
							     m->new_vaddr + m->body_size)
					     : NULL;

	return call && call->described && call->line_off == p->off ? call : NULL;
}

/* Rows of old code. Statements begin in its copies, if any. */
static int put_old_part(struct me_line_program *p, const struct me_line_part *part,
			struct me_line_row *now)
{
	const struct me_line_sequence *s = &p->sequences[part->sequence];

	for (uint32_t i = me_line_covering_row(p, s, part->start);
	     i < s->first_row + s->nr_rows && p->rows[i].address < part->end; i++) {
		struct me_line_row row = p->rows[i];

		if (!me_debug_spend(p->file, 1))
			return -EPERM;
		if (row.address < part->start)
			row.flags = 0;
		if (row.address < part->start)
			row.address = part->start;
		if (me_moves_any(p->file->moves, row.address, row.address + 1))
			row.flags &= ~ME_LINE_STMT;
		me_line_put_row(p, now, &row);
	}
	return 0;
}

/* The row of the call at @at. Of rows at one address, readers take the last one. */
static const struct me_line_row *row_of_call(const struct me_line_program *p,
					     const struct me_line_sequence *s, uint64_t at)
{
	uint32_t i = me_line_covering_row(p, s, at);

	while (i + 1 < s->first_row + s->nr_rows && p->rows[i + 1].address <= at)
		i++;
	return &p->rows[i];
}

/* Rows of code that lies apart: it has the call's line, unless it is described. */
static int put_apart(struct me_line_program *p, const struct me_line_part *part,
		     const struct me_move *m, struct me_line_row *now)
{
	const struct me_line_row *around =
		row_of_call(p, &p->sequences[part->sequence], m->old_vaddr);
	struct me_inlined *call = described(p, m);
	struct me_line_row row = *around;

	if (call && part->start == call->apart)
		return me_line_put_inlined(p, call, true, around, part->end, now);
	row.address = part->start;
	row.flags = 0;
	me_line_put_row(p, now, &row);
	return 0;
}

static int put_part(struct me_line_program *p, const struct me_line_part *part,
		    struct me_line_row *now)
{
	const struct me_line_sequence *s = &p->sequences[part->sequence];
	const struct me_move *m = &p->file->moves->by_old[part->move];
	uint64_t old = m->old_vaddr > s->start ? m->old_vaddr : s->start;
	struct me_inlined *call = described(p, m);
	uint64_t end = call && call->new_vaddr < part->end ? call->new_vaddr : part->end;
	uint32_t i = me_line_covering_row(p, s, old);

	if (m->apart)
		return put_apart(p, part, m, now);
	/* The copy starts within a statement: same line, but no statement begins here. */
	if (p->rows[i].address < old) {
		struct me_line_row row = p->rows[i++];

		row.address = part->start;
		row.flags = 0;
		if (row.address < end)
			me_line_put_row(p, now, &row);
	}
	for (; i < s->first_row + s->nr_rows && p->rows[i].address < m->old_vaddr + m->old_size;
	     i++) {
		struct me_line_row row = p->rows[i];

		if (!me_debug_spend(p->file, 1))
			return -EPERM;
		if (me_move_address(m, p->rows[i].address, &row.address) && row.address < end)
			me_line_put_row(p, now, &row);
	}
	if (!call || end == part->end)
		return 0;
	return me_line_put_inlined(p, call, false, row_of_call(p, s, call->call), part->end, now);
}

int me_line_put_sequences(struct me_line_program *p, bool taken)
{
	struct me_line_row now;
	uint64_t end = 0;
	bool open = false;

	for (uint32_t i = 0; i < p->nr_parts; i++) {
		const struct me_line_part *part = &p->parts[i];
		int rc;

		if (part->start >= part->end || part->taken != taken)
			continue;
		/* Not adjacent, or described by two sequences: start another sequence. */
		if (open && part->start != end) {
			put_end(p, &now, end);
			open = false;
		}
		if (!open)
			put_start(p, &now, part->start);
		open = true;
		rc = part->move == ME_LINE_OLD ? put_old_part(p, part, &now)
					       : put_part(p, part, &now);
		if (rc)
			return rc;
		end = part->end;
	}
	if (open)
		put_end(p, &now, end);
	return 0;
}
