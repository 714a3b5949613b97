// SPDX-License-Identifier: Apache-2.0
/*
 * leaf_place - where the parts of a function stand in place of a call of it, and what stands behind each of them.
 * Called by leaf, and by optimize and emit.
 */
#include <string.h>

#include "editor/rewrite/leaf_private.h"
#include "editor/evidence/plt_stub.h"

enum { /* bytes */
	SHORT_BRANCH = 2,
	LONG_BRANCH = 6,
	SHORT_JUMP = 2,
	LONG_JUMP = 5,
};

/* The instructions behind a part, in the order in which they stand there. */
struct end {
	bool branch;
	bool raise; /* the stack pointer */
	bool call;
	bool jump;
	uint8_t condition;
	uint8_t branch_to, jump_to;
	uint8_t branch_size, raise_size, call_size, jump_size, size; /* bytes; @size: of all */
};

/* Does the stack pointer have to be raised at the end of the code beside the call, where all returns lead? */
static bool raises_last(const struct me_leaf *leaf)
{
	return leaf->lowers && leaf->parts[leaf->nr_near - 1].returns;
}

/* Does control run from part @i into part @to? */
static bool is_next(const struct me_leaf *leaf, uint8_t i, uint8_t to)
{
	if (i + 1 == leaf->nr_near)
		return to == leaf->nr_parts;
	return to == i + 1 && to < leaf->nr_parts;
}

/*
 * The jump behind the branch is the branch's other way, where control does not run on. Where it runs on to neither,
 * the likelier way gets the branch, and needs no jump.
 */
static bool inverts(const struct me_leaf *leaf, uint8_t i)
{
	const struct me_leaf_part *part = &leaf->parts[i];

	if (!part->branches || is_next(leaf, i, part->next))
		return false;
	return is_next(leaf, i, part->taken) || part->favour_next;
}

static struct end find_end(const struct me_leaf *leaf, uint8_t i)
{
	const struct me_leaf_part *part = &leaf->parts[i];
	bool invert = inverts(leaf, i);
	struct end end = {
		.branch = part->branches,
		.condition = part->condition ^ invert,
		.branch_to = invert ? part->next : part->taken,
		.jump_to = invert ? part->taken : part->next,
		.call = part->tails || part->via_slot,
	};

	if (leaf->lowers && part->returns)
		end.raise = i + 1 == leaf->nr_near || !raises_last(leaf);
	else
		end.raise = leaf->lowers && part->tails;
	end.jump = !part->stops && !is_next(leaf, i, end.jump_to);
	if (end.branch)
		end.branch_size = part->long_branch ? LONG_BRANCH : SHORT_BRANCH;
	if (end.raise)
		end.raise_size = ME_LEAF_RAISE_SIZE;
	if (end.call)
		end.call_size = part->via_slot ? ME_SLOT_BRANCH_SIZE : ME_LEAF_CALL_SIZE;
	if (end.jump)
		end.jump_size = part->long_jump ? LONG_JUMP : SHORT_JUMP;
	end.size = end.branch_size + end.raise_size + end.call_size + end.jump_size;
	return end;
}

/* Does part @i, or with the number of parts what lies behind the call, lie apart? */
static bool is_apart(const struct me_leaf *leaf, uint8_t i)
{
	return i >= leaf->nr_near && i < leaf->nr_parts;
}

/* The place of part @to for a jump from part @from. */
static int64_t place_of(const struct me_leaf *leaf, uint8_t from, uint8_t to, int64_t apart)
{
	/* Returns may lead to where the stack pointer is raised. */
	if (to == leaf->nr_parts)
		return leaf->size -
		       (leaf->parts[from].returns && raises_last(leaf) ? ME_LEAF_RAISE_SIZE : 0);
	return leaf->parts[to].off + (is_apart(leaf, to) ? apart : 0);
}

/* Does a branch of part @i, which ends at @end, need the long form to lead to part @to? */
static bool is_far(const struct me_leaf *leaf, uint8_t i, int64_t end, uint8_t to)
{
	int64_t distance = place_of(leaf, i, to, 0) - end;

	return is_apart(leaf, i) != is_apart(leaf, to) || distance < INT8_MIN ||
	       distance > INT8_MAX;
}

/* Gives part @i the long forms that it needs. Return: it had shorter ones. */
static bool lengthen(struct me_leaf *leaf, uint8_t i)
{
	struct me_leaf_part *part = &leaf->parts[i];
	struct end end = find_end(leaf, i);
	int64_t at = part->off + part->size;
	bool had_branch = part->long_branch, had_jump = part->long_jump;

	if (end.branch && is_far(leaf, i, at + end.branch_size, end.branch_to))
		part->long_branch = true;
	if (end.jump && is_far(leaf, i, at + end.size, end.jump_to))
		part->long_jump = true;
	return part->long_branch != had_branch || part->long_jump != had_jump;
}

/* Places the parts [@first, @end). Return: their bytes, or more than ME_LEAF_CODE_MAX. */
static uint32_t place_piece(struct me_leaf *leaf, uint8_t first, uint8_t end)
{
	uint32_t off = leaf->lowers && !first ? ME_LEAF_LOWER_SIZE : 0;

	for (uint8_t i = first; i < end && off <= ME_LEAF_CODE_MAX; i++) {
		leaf->parts[i].off = (uint16_t)off;
		off += leaf->parts[i].size + find_end(leaf, i).size;
	}
	return off;
}

/* Sizes only grow, so this ends. */
bool me_leaf_place(struct me_leaf *leaf)
{
	bool again = true;

	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		leaf->parts[i].long_branch = leaf->parts[i].long_jump = false;
	while (again) {
		uint32_t near = place_piece(leaf, 0, leaf->nr_near);
		uint32_t apart = place_piece(leaf, leaf->nr_near, leaf->nr_parts);

		if (near > ME_LEAF_CODE_MAX || apart > ME_LEAF_CODE_MAX)
			return false;
		leaf->size = (uint16_t)near;
		leaf->apart_size = (uint16_t)apart;
		again = false;
		for (uint8_t i = 0; i < leaf->nr_parts; i++)
			again |= lengthen(leaf, i);
	}
	return true;
}

/* Return: false: it is too large. */
static bool put_displacement(uint8_t *out, int64_t value, bool is_long)
{
	for (unsigned int i = 0; i < (is_long ? 4 : 1); i++)
		out[i] = (uint8_t)((uint64_t)value >> 8 * i);
	return is_long ? value == (int32_t)value : value == (int8_t)value;
}

/* `lea 8(%rsp), %rsp` */
static void put_raise(uint8_t out[ME_LEAF_RAISE_SIZE])
{
	memcpy(out, "\x48\x8d\x64\x24\x08", ME_LEAF_RAISE_SIZE);
}

/* `call *slot(%rip)` or `call function`, whose displacement is not known here. */
static void put_call(uint8_t *out, bool via_slot)
{
	memset(out, 0, via_slot ? ME_SLOT_BRANCH_SIZE : ME_LEAF_CALL_SIZE);
	if (!via_slot) {
		out[0] = 0xe8;
		return;
	}
	out[0] = 0xff;
	out[1] = 0x15;
}

uint8_t me_leaf_end(const struct me_leaf *leaf, uint8_t i, int64_t apart,
		    uint8_t out[ME_LEAF_END_MAX])
{
	const struct me_leaf_part *part = &leaf->parts[i];
	struct end end = find_end(leaf, i);
	int64_t at = part->off + (is_apart(leaf, i) ? apart : 0) + part->size;
	uint8_t *p = out;

	if (end.branch) {
		if (part->long_branch)
			*p++ = 0x0f;
		*p++ = (part->long_branch ? 0x80 : 0x70) | end.condition;
		if (!put_displacement(
			    p, place_of(leaf, i, end.branch_to, apart) - (at + end.branch_size),
			    part->long_branch))
			return 0;
	}
	p = out + end.branch_size;
	if (end.raise)
		put_raise(p);
	p += end.raise_size;
	if (end.call)
		put_call(p, part->via_slot);
	p += end.call_size;
	if (end.jump) {
		*p++ = part->long_jump ? 0xe9 : 0xeb;
		if (!put_displacement(p, place_of(leaf, i, end.jump_to, apart) - (at + end.size),
				      part->long_jump))
			return 0;
	}
	return end.size;
}

uint8_t me_leaf_call_field(const struct me_leaf *leaf, uint8_t i)
{
	struct end end = find_end(leaf, i);

	/* A displacement of 4 bytes ends a call. */
	return end.call ? end.branch_size + end.raise_size + end.call_size - 4 : 0;
}

uint8_t me_leaf_frame_end(const struct me_leaf *leaf, uint8_t i)
{
	struct end end = find_end(leaf, i);

	return end.raise || leaf->parts[i].tails ? end.branch_size + end.raise_size : ME_LEAF_NEVER;
}

/* The last part that returns, or else the last one that tails, comes last. */
bool me_leaf_order(const struct me_leaf *leaf, uint8_t *order)
{
	uint8_t nr = 0, last = ME_LEAF_PARTS_MAX;

	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		if (leaf->parts[i].returns ||
		    (leaf->parts[i].tails &&
		     (last == ME_LEAF_PARTS_MAX || !leaf->parts[last].returns)))
			last = i;
	if (last == ME_LEAF_PARTS_MAX || (!last && leaf->nr_parts > 1))
		return false;
	for (uint8_t i = 0; i < leaf->nr_parts; i++)
		if (i != last)
			order[nr++] = i;
	order[nr] = last;
	return true;
}

bool me_leaf_arrange(struct me_leaf *leaf, const uint8_t *order, uint8_t nr_near)
{
	struct me_leaf_part parts[ME_LEAF_PARTS_MAX];
	uint8_t now[ME_LEAF_PARTS_MAX + 1];

	now[leaf->nr_parts] = leaf->nr_parts;
	for (uint8_t i = 0; i < leaf->nr_parts; i++) {
		now[order[i]] = i;
		parts[i] = leaf->parts[order[i]];
	}
	for (uint8_t i = 0; i < leaf->nr_parts; i++) {
		parts[i].next = now[parts[i].next];
		parts[i].taken = now[parts[i].taken];
		leaf->parts[i] = parts[i];
	}
	leaf->nr_near = nr_near;
	return me_leaf_place(leaf);
}

/* Cuts a function's parts behind calls of stubs. */
struct cutter {
	const struct mp_cfg *cfg;
	struct me_leaf_part parts[ME_LEAF_PARTS_MAX];
	bool goes_on[ME_LEAF_PARTS_MAX]; /* to the part behind it */
	uint8_t nr;
};

static bool add_part(struct cutter *c, const struct me_leaf_part *part, bool goes_on)
{
	if (c->nr == ME_LEAF_PARTS_MAX)
		return false;
	c->goes_on[c->nr] = goes_on;
	c->parts[c->nr++] = *part;
	return true;
}

/* Return: false: there are too many parts, or an instruction is not known. */
static bool cut_part(struct cutter *c, struct me_leaf_part part)
{
	const uint8_t *bytes = mp_elf_bytes(c->cfg->elf, part.vaddr, part.size);
	uint64_t start = part.vaddr, end = start + part.size, slot;
	struct me_leaf_part before;
	struct mp_insn insn = {0};

	for (uint64_t at = start; at < end; at += insn.len) {
		bool whole = at + ME_LEAF_CALL_SIZE == end && !part.end_size;

		if (!bytes || mp_insn_decode(bytes + (at - start), end - at, at, &insn))
			return false;
		if (insn.kind != MP_INSN_CALL || (whole && part.stops))
			continue;
		slot = me_plt_branch_slot(c->cfg->elf, at, false);
		if (!slot)
			continue;
		before = (struct me_leaf_part){
			.vaddr = part.vaddr,
			.callee = (int32_t)(int64_t)(slot - (at + ME_LEAF_CALL_SIZE)),
			.size = (uint16_t)(at - part.vaddr),
			.end_size = ME_LEAF_CALL_SIZE,
			.via_slot = true,
			.next = part.next,
			.taken = part.next,
		};

		if (me_leaf_callee(&before) != slot)
			continue;
		if (!add_part(c, &before, !whole))
			return false;
		if (whole)
			return true;
		part.vaddr = at + ME_LEAF_CALL_SIZE;
		part.size = (uint16_t)(end - part.vaddr);
	}
	return add_part(c, &part, false);
}

/* A jump to a stub becomes a call through the stub's slot. */
static void use_slot(const struct mp_cfg *cfg, struct me_leaf_part *part)
{
	uint64_t jump = part->vaddr + part->size;
	uint64_t slot = me_plt_branch_slot(cfg->elf, jump, true);
	int64_t from = (int64_t)(slot - (jump + part->end_size));

	if (!slot || from != (int32_t)from)
		return;
	part->via_slot = true;
	part->callee = (int32_t)from;
}

bool me_leaf_use_slots(const struct mp_cfg *cfg, struct me_leaf *leaf)
{
	struct cutter c = {.cfg = cfg};
	uint8_t now[ME_LEAF_PARTS_MAX + 1];

	for (uint8_t i = 0; i < leaf->nr_parts; i++) {
		now[i] = c.nr;
		if (!cut_part(&c, leaf->parts[i]))
			return false;
	}
	now[leaf->nr_parts] = c.nr;
	for (uint8_t i = 0; i < c.nr; i++) {
		struct me_leaf_part *part = &leaf->parts[i];

		*part = c.parts[i];
		part->next = c.goes_on[i] ? i + 1 : now[part->next];
		part->taken = c.goes_on[i] ? i + 1 : now[part->taken];
		if (part->tails)
			use_slot(cfg, part);
	}
	leaf->nr_parts = leaf->nr_near = c.nr;
	return me_leaf_place(leaf);
}
