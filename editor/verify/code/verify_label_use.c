// SPDX-License-Identifier: Apache-2.0
/*
 * verify_label_use - finds functions that compute with the addresses of their labels: those keep their
 * values, since a distance between copies may not fit where the program keeps it.
 *
 * A value is followed from each operand that names a label, or a table of labels, on all ways through
 * registers, and words of the frame, which hold what is stored there anywhere in the function. It may be
 * jumped to, compared, chosen, stored and handed to others. Any other instruction that gets one may compute
 * with it.
 * Called by verify_scan.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/code/verify_label.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* Most words of a table before one that an operand names. */
#define TABLE_MAX 4096
#define WORDS	  32
/* Ways that are followed for each byte of a function: the work is bounded by its size. */
#define WAYS 512
/* Most instructions between the one that makes an address of the frame and the call that gets it. */
#define BEFORE_CALL 8
/* Most instructions from the one that raises the stack pointer to the function's return. */
#define EPILOGUE 12

/* General registers that hold the address of a table of labels, or of an entry; and a label. */
struct values {
	uint32_t table, label;
};

struct user {
	const struct vf *vf;
	struct vf_fde *fde;
	struct values *in; /* per byte of the function */
	uint64_t *queue;   /* each address is in it at most once */
	uint8_t *state;	   /* per byte: QUEUED, BRANCHED */
	uint32_t nr_queued;
	uint64_t ways; /* that may still be followed */
	struct word {
		ZydisRegister base;
		int64_t disp;
		bool table, label;
	} word[WORDS];
	uint32_t nr_words;
};

enum {
	QUEUED = 1,
	BRANCHED = 2, /* a direct branch leads here */
	TABLE = 4,    /* the instruction names a table of labels */
	LABEL = 8,    /* it names a label */
	FILLS = 16,   /* a call whose first argument is an address of the frame */
};

#define LOST   0x0fc7u /* by a call: rax rcx rdx rsi rdi r8 to r11 */
#define SECOND (1u << (ZYDIS_REGISTER_RSI - ZYDIS_REGISTER_RAX)) /* a call's second argument */

static uint32_t register_bit(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15
		       ? 1u << (whole - ZYDIS_REGISTER_RAX)
		       : 0;
}

static bool any(struct values v)
{
	return v.table || v.label;
}

static void queue(struct user *u, uint64_t at)
{
	uint8_t *state = &u->state[at - u->fde->start];

	if (!(*state & QUEUED))
		u->queue[u->nr_queued++] = at;
	*state |= QUEUED;
}

/* Control comes to @at with @v. */
static void reach(struct user *u, uint64_t at, struct values v)
{
	struct values *in = &u->in[at - u->fde->start];

	u->ways -= u->ways != 0;
	if (!(v.table & ~in->table) && !(v.label & ~in->label))
		return;
	in->table |= v.table;
	in->label |= v.label;
	queue(u, at);
}

/* Control comes to a label, a case of a switch or a landing pad. */
static void reach_places(struct user *u, struct values v)
{
	const struct vf *vf = u->vf;
	uint64_t end = u->fde->start + u->fde->size;

	if (!any(v))
		return;
	for (uint64_t at = vf_bits_next(&vf->old.target, u->fde->start + 1, end); at < end;
	     at = vf_bits_next(&vf->old.target, at + 1, end))
		if (vf_bits_get(&vf->old.grid, at) &&
		    (!(u->state[at - u->fde->start] & BRANCHED) ||
		     vf_bits_get(&vf->old.text_ref, at) || vf_bits_get(&vf->old.word_ref, at)))
			reach(u, at, v);
}

static bool is_in_frame(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       (op->mem.base == ZYDIS_REGISTER_RSP || op->mem.base == ZYDIS_REGISTER_RBP);
}

/* Does the operand share bytes with the word? With an index it may be any word. */
static bool meets(const ZydisDecodedOperand *op, const struct word *w)
{
	return is_in_frame(op) && op->mem.base == w->base &&
	       (op->mem.index != ZYDIS_REGISTER_NONE ||
		(op->mem.disp.value < w->disp + 8 && w->disp < op->mem.disp.value + op->size / 8));
}

/*
 * Does the instruction make an address of the frame, by which the word may be read? Such an address is that of
 * a table if the word holds a label.
 */
static bool takes_frame(const struct vf_full *f, const struct word *w)
{
	const ZydisDecodedOperand *to = &f->op[0], *from = &f->op[1];

	if (!w->label ||
	    (to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	     (to->reg.value == ZYDIS_REGISTER_RSP || to->reg.value == ZYDIS_REGISTER_RBP)))
		return false;
	if (f->z.mnemonic == ZYDIS_MNEMONIC_LEA)
		return from->mem.base == w->base;
	return f->z.mnemonic == ZYDIS_MNEMONIC_MOV && from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       from->reg.value == w->base;
}

static bool takes_labels(const struct user *u, const struct vf_full *f)
{
	bool takes = false;

	for (uint32_t i = 0; i < u->nr_words; i++)
		takes |= takes_frame(f, &u->word[i]);
	return takes;
}

/* Puts the values that the operand @op may hold into @out. Return: false: the instruction reads a part of a value. */
static bool read_operand(const struct user *u, const struct values *v,
			 const ZydisDecodedOperand *op, uint8_t names, struct values *out)
{
	bool whole = op->size == 64;
	uint32_t bits;

	*out = (struct values){0};
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		bits = register_bit(op->reg.value);
		*out = (struct values){(v->table & bits) != 0, (v->label & bits) != 0};
		return op->size == 64 || !out->label;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		bits = register_bit(op->mem.base) | register_bit(op->mem.index);
		if (bits & v->label || names & LABEL)
			return false;
		out->label = bits & v->table || names & TABLE;
		for (uint32_t i = 0; i < u->nr_words; i++) {
			if (!meets(op, &u->word[i]))
				continue;
			out->table |= u->word[i].table;
			out->label |= u->word[i].label;
			whole &= (op->mem.disp.value - u->word[i].disp) % 8 == 0;
		}
		return whole || !out->label;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		*out = (struct values){(names & TABLE) != 0, (names & LABEL) != 0};
		return true;
	default: return true;
	}
}

/*
 * Does the code at @at raise the stack pointer, and then go on in the function, as behind a call
 * with arguments in the stack? Words have other distances from the stack pointer before the call.
 */
static bool goes_on_raised(const struct user *u, uint64_t at, const struct vf_full *first)
{
	const uint64_t end = u->fde->start + u->fde->size;
	struct vf_full f;

	if (first->z.mnemonic != ZYDIS_MNEMONIC_POP &&
	    (first->z.mnemonic != ZYDIS_MNEMONIC_ADD ||
	     first->op[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	     first->op[0].reg.value != ZYDIS_REGISTER_RSP))
		return false;
	for (int n = 0; n < EPILOGUE; n++, at += f.z.length) {
		if (at >= end)
			return false;
		if (!vf_decode_full(u->vf, at, end, &f))
			return true;
		if (f.z.meta.category == ZYDIS_CATEGORY_RET ||
		    f.z.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
			return false;
		if (f.z.meta.category == ZYDIS_CATEGORY_CALL ||
		    f.z.meta.category == ZYDIS_CATEGORY_COND_BR)
			return true;
	}
	return true;
}

/* A word of the frame holds @value: all instructions that read it are looked at again. */
static bool write_word(struct user *u, const ZydisDecodedOperand *op, struct values value)
{
	const uint64_t end = u->fde->start + u->fde->size;
	struct word *w = u->word;

	while (w < u->word + u->nr_words &&
	       (w->base != op->mem.base || w->disp != op->mem.disp.value))
		w++;
	if (w == u->word + WORDS)
		return false;
	if (w == u->word + u->nr_words)
		u->word[u->nr_words++] = (struct word){op->mem.base, op->mem.disp.value, 0, 0};
	else if (w->table >= value.table && w->label >= value.label)
		return true;
	w->table |= value.table != 0;
	w->label |= value.label != 0;
	for (uint64_t at = u->fde->start; at < end;
	     at = vf_bits_next(&u->vf->old.grid, at + 1, end)) {
		struct vf_full f;

		if (!vf_decode_full(u->vf, at, end, &f) ||
		    (w->base == ZYDIS_REGISTER_RSP && goes_on_raised(u, at + f.z.length, &f)))
			return false;
		if (takes_frame(&f, w))
			queue(u, at);
		for (uint8_t i = 0; i < f.z.operand_count; i++)
			if (meets(&f.op[i], w))
				queue(u, at);
	}
	return true;
}

/* @value is moved to a register or to memory. Return: false: it is not followed there. */
static bool write_operand(struct user *u, struct values *v, const ZydisDecodedOperand *op,
			  struct values value)
{
	uint32_t to = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? register_bit(op->reg.value) : 0;

	if (!to)
		return !any(value) || !is_in_frame(op) || op->size != 64 ||
		       (op->mem.index == ZYDIS_REGISTER_NONE && write_word(u, op, value));
	v->table = value.table ? v->table | to : v->table & ~to;
	v->label = value.label ? v->label | to : v->label & ~to;
	return true;
}

/*
 * Any other instruction: does it read no label? What it makes of the address of a table may be one of an entry.
 */
static bool compute(const struct user *u, struct values *v, const struct vf_full *f, uint8_t names)
{
	bool same = f->z.operand_count > 1 && f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    f->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    f->op[0].reg.value == f->op[1].reg.value;
	/* The result does not depend on the register. */
	bool zero = same &&
		    (f->z.mnemonic == ZYDIS_MNEMONIC_XOR || f->z.mnemonic == ZYDIS_MNEMONIC_SUB);
	struct values value, sum = {0};

	for (uint8_t i = 0; i < f->z.operand_count && !zero; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (register_bit(op->mem.base) | register_bit(op->mem.index)) & v->label)
			return false;
		if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_READ))
			continue;
		if (!read_operand(u, v, op, names, &value) || value.label)
			return false;
		sum.table |= value.table;
	}
	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];
		uint32_t to = op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
					      op->reg.value != ZYDIS_REGISTER_RSP &&
					      op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE
				      ? register_bit(op->reg.value)
				      : 0;

		v->table = sum.table ? v->table | to : v->table & ~to;
		v->label &= ~to;
	}
	return true;
}

/* Does the instruction move or compare labels at most? @v: what is held, before and behind it. */
static bool step(struct user *u, struct values *v, const struct vf_full *f, uint8_t names)
{
	const ZydisDecodedOperand *op = f->op;
	struct values a = {0}, b = {0};
	uint32_t by;

	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_NOP: return true;
	case ZYDIS_MNEMONIC_MOV:
		by = read_operand(u, v, &op[1], names, &a);
		a.table |= takes_labels(u, f);
		return by &&
		       (!a.label || op[0].size == 64 ||
			op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) &&
		       write_operand(u, v, &op[0], a);
	case ZYDIS_MNEMONIC_LEA:
		by = register_bit(op[1].mem.base) | register_bit(op[1].mem.index);
		a = (struct values){by & v->table || names & TABLE || takes_labels(u, f),
				    (names & LABEL) != 0};
		return !(by & v->label) && (!a.label || op[0].size == 64) &&
		       write_operand(u, v, &op[0], a);
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		by = op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
		return read_operand(u, v, &op[0], by ? 0 : names, &a) &&
		       read_operand(u, v, &op[1], names, &b);
	default:
		if (f->z.meta.category != ZYDIS_CATEGORY_CMOV)
			return compute(u, v, f, names);
		return read_operand(u, v, &op[0], 0, &a) && read_operand(u, v, &op[1], names, &b) &&
		       write_operand(u, v, &op[0],
				     (struct values){a.table | b.table, a.label | b.label});
	}
}

/* Follows what the instruction at @at, and control behind it, do. Return: false: it computes with a label. */
static bool go_from(struct user *u, uint64_t at)
{
	const uint64_t start = u->fde->start, end = start + u->fde->size;
	struct values v = u->in[at - start];
	uint8_t names = u->state[at - start] & (TABLE | LABEL);
	struct vf_full f;
	uint64_t next, to;

	if (!vf_decode_full(u->vf, at, end, &f))
		return false;
	next = at + f.z.length;
	to = f.z.operand_count && f.op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE
		     ? next + (uint64_t)f.op[0].imm.value.s
		     : 0;
	switch (f.z.meta.category) {
	case ZYDIS_CATEGORY_RET: return true;
	case ZYDIS_CATEGORY_CALL:
		/* It may copy the table: memcpy(). */
		if (u->state[at - start] & FILLS && v.table & SECOND)
			return false;
		v.table &= ~LOST;
		v.label &= ~LOST;
		if (u->fde->lsda)
			reach_places(u, v);
		break;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (f.op[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			reach_places(u, v);
			return true;
		}
		next = to;
		break;
	case ZYDIS_CATEGORY_COND_BR:
		if (to - start >= u->fde->size)
			return false;
		reach(u, to, v);
		break;
	default:
		if (f.z.mnemonic == ZYDIS_MNEMONIC_UD2 || f.z.mnemonic == ZYDIS_MNEMONIC_HLT)
			return true;
		if (!step(u, &v, &f, names))
			return false;
		break;
	}
	if (any(v)) {
		/* The function goes on elsewhere. */
		if (next - start >= u->fde->size)
			return false;
		reach(u, next, v);
	}
	return true;
}

/* The table at @start has a label of @fde. */
struct owner {
	uint64_t start;
	struct vf_fde *fde;
	bool computes; /* of the first one of a table: a function computes with a label of the table */
};

/* An operand of the instruction at @insn names a label, or a table with some. */
struct seed {
	struct vf_fde *user;  /* the function with the operand */
	struct vf_fde *label; /* the function with the label; NULL: a table */
	struct owner *table;  /* the first of its owners */
	uint64_t insn;
};

struct seeds {
	struct seed *list;
	uint32_t nr, cap;
	struct owner *owners;
	uint32_t nr_owners, cap_owners;
};

static int by_table(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->fde < y->fde ? -1 : x->fde > y->fde;
}

static int by_insn(const void *a, const void *b)
{
	const struct seed *x = a, *y = b;

	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

static void note_branches(struct user *u)
{
	uint64_t end = u->fde->start + u->fde->size;

	for (uint64_t at = u->fde->start; at < end;
	     at = vf_bits_next(&u->vf->old.grid, at + 1, end)) {
		const uint8_t *b = mp_elf_bytes(u->vf->o, at, end - at);
		struct vf_insn insn;

		if (b && vf_decode(b, end - at, at, &insn) && insn.rel_size &&
		    insn.target - u->fde->start < u->fde->size)
			u->state[insn.target - u->fde->start] |= BRANCHED;
	}
}

static bool writes(const struct vf_full *f, ZydisRegister reg)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++)
		if (f->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    register_bit(f->op[i].reg.value) == register_bit(reg))
			return true;
	return false;
}

/* Finds calls behind an instruction by which the first argument becomes an address of the frame. */
static void note_fills(struct user *u)
{
	static const struct word frames[] = {{ZYDIS_REGISTER_RSP, 0, false, true},
					     {ZYDIS_REGISTER_RBP, 0, false, true}};
	const uint64_t end = u->fde->start + u->fde->size;
	int left = 0;

	for (uint64_t at = u->fde->start; at < end;
	     at = vf_bits_next(&u->vf->old.grid, at + 1, end)) {
		struct vf_full f;

		left -= left > 0;
		if (!vf_decode_full(u->vf, at, end, &f)) {
			left = 0;
		} else if (f.z.meta.category == ZYDIS_CATEGORY_CALL) {
			u->state[at - u->fde->start] |= left ? FILLS : 0;
			left = 0;
		} else if (writes(&f, ZYDIS_REGISTER_RDI)) {
			left = takes_frame(&f, &frames[0]) || takes_frame(&f, &frames[1])
				       ? BEFORE_CALL
				       : 0;
		}
	}
}

/* Follows all @nr seeds of one function. Return: 1: it computes with a label; 0; -ENOMEM. */
static int follow(const struct vf *vf, const struct seed *seeds, uint32_t nr)
{
	struct vf_fde *fde = seeds->user;
	struct user u = {.vf = vf, .fde = fde};
	int ret = 0;

	u.in = calloc(fde->size, sizeof(*u.in));
	u.queue = calloc(fde->size, sizeof(*u.queue));
	u.state = calloc(fde->size, 1);
	if (!u.in || !u.queue || !u.state)
		ret = -ENOMEM;
	if (!ret) {
		note_branches(&u);
		note_fills(&u);
	}
	for (uint32_t i = 0; !ret && i < nr; i++) {
		queue(&u, seeds[i].insn);
		u.state[seeds[i].insn - fde->start] |= seeds[i].label ? LABEL : TABLE;
	}
	u.ways = fde->size * WAYS;
	while (!ret && u.nr_queued) {
		uint64_t at = u.queue[--u.nr_queued];

		u.state[at - fde->start] &= (uint8_t)~QUEUED;
		ret = !go_from(&u, at) || !u.ways;
	}
	free(u.in);
	free(u.queue);
	free(u.state);
	return ret;
}

/* The first word of the table that holds the label at @at, by name; 0: none. */
static uint64_t table_start(const struct vf *vf, uint64_t at)
{
	for (uint32_t n = 0; n < TABLE_MAX && vf_bits_get(&vf->old.label_word, at); n++, at -= 8) {
		if (vf_bits_get(&vf->old.data_ref, at))
			return at;
		/* Some pointer leads into it. */
		if (vf_bits_get(&vf->old.word_ref, at))
			return 0;
	}
	return 0;
}

/* A word of data at @at holds the label @label. */
static int look_at_word(const struct vf *vf, struct seeds *seeds, uint64_t at, uint64_t label)
{
	struct vf_fde *fde = vf_is_text(vf, label) ? vf_eh_find(&vf->old.eh, label) : NULL;
	uint64_t start;

	if (!fde || fde->start == label || vf_is_text(vf, at))
		return 0;
	start = table_start(vf, at);
	if (!start)
		fde->flags |= VF_FDE_COMPUTES;
	return start ? mp_push(seeds->owners, seeds->nr_owners, seeds->cap_owners,
			       (struct owner){start, fde, false})
		     : 0;
}

/* Looks for the operands that name the table with the owners from @first to @end. */
static int look_at_table(const struct vf *vf, struct seeds *seeds, uint32_t first, uint32_t end)
{
	struct owner *owners = seeds->owners;
	const uint64_t start = owners[first].start;
	int ret = 0;

	for (size_t i = vf_first_ref(vf, start - 8);
	     !ret && i < vf->old.refs.nr && vf->old.refs.list[i].to <= start; i++) {
		const struct vf_ref *ref = &vf->old.refs.list[i];
		struct vf_fde *user = vf_eh_find(&vf->old.eh, ref->insn);
		uint32_t own = mp_search(k, first, end, owners[k].fde < user);

		/* In a function with labels of the table, an index that begins with 1 may count from the word before. */
		if (ref->to != start &&
		    (ref->to != start - 8 || own == end || owners[own].fde != user))
			continue;
		if (user)
			ret = mp_push(seeds->list, seeds->nr, seeds->cap,
				      (struct seed){user, NULL, &owners[first], ref->insn});
		else
			owners[first].computes = true;
	}
	return ret;
}

static int find_table_seeds(const struct vf *vf, struct seeds *seeds)
{
	uint32_t next;
	int ret = 0;

	if (seeds->nr_owners)
		qsort(seeds->owners, seeds->nr_owners, sizeof(*seeds->owners), by_table);
	for (uint32_t i = 0; !ret && i < seeds->nr_owners; i = next) {
		for (next = i + 1;
		     next < seeds->nr_owners && seeds->owners[next].start == seeds->owners[i].start;
		     next++)
			;
		ret = look_at_table(vf, seeds, i, next);
	}
	return ret;
}

static int find_seeds(const struct vf *vf, struct seeds *seeds)
{
	const struct mp_elf *o = vf->o;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < o->nr_relocs + o->nr_dyn_relocs; i++) {
		const struct mp_reloc *rel = i < o->nr_relocs ? &o->relocs[i]
							      : &o->dyn_relocs[i - o->nr_relocs];

		if (rel->type == R_X86_64_64 || rel->type == R_X86_64_32 ||
		    rel->type == R_X86_64_32S || rel->type == R_X86_64_RELATIVE)
			ret = look_at_word(vf, seeds, rel->vaddr,
					   rel->sym_value + (uint64_t)rel->addend);
	}
	if (!ret)
		ret = find_table_seeds(vf, seeds);
	for (size_t i = 0; !ret && i < vf->old.names.nr; i++) {
		const struct vf_ref *name = &vf->old.names.list[i];
		struct vf_fde *fde = vf_is_text(vf, name->to) ? vf_eh_find(&vf->old.eh, name->to)
							      : NULL;
		struct vf_fde *user;

		if (!fde || fde->start == name->to || !(fde->flags & VF_FDE_IJMP))
			continue;
		user = vf_eh_find(&vf->old.eh, name->insn);
		if (user)
			ret = mp_push(seeds->list, seeds->nr, seeds->cap,
				      (struct seed){user, fde, NULL, name->insn});
		else
			fde->flags |= VF_FDE_COMPUTES;
	}
	return ret;
}

static void note_computes(const struct seed *seeds, uint32_t nr)
{
	seeds->user->flags |= VF_FDE_COMPUTES;
	for (uint32_t i = 0; i < nr; i++) {
		if (seeds[i].label)
			seeds[i].label->flags |= VF_FDE_COMPUTES;
		else
			seeds[i].table->computes = true;
	}
}

/* What is computed with one label of a table may concern all others. */
static void note_owners(const struct seeds *seeds)
{
	bool computes = false;

	for (uint32_t i = 0; i < seeds->nr_owners; i++) {
		if (!i || seeds->owners[i].start != seeds->owners[i - 1].start)
			computes = seeds->owners[i].computes;
		if (computes)
			seeds->owners[i].fde->flags |= VF_FDE_COMPUTES;
	}
}

int vf_find_label_uses(const struct vf *vf)
{
	struct seeds seeds = {0};
	uint32_t next;
	int ret;

	/* Elsewhere no number is known to be a label. */
	if (vf->o->ehdr.e_type == ET_EXEC && !vf->o->relinkable)
		return 0;
	ret = find_seeds(vf, &seeds);
	if (!ret && seeds.nr)
		qsort(seeds.list, seeds.nr, sizeof(*seeds.list), by_insn);
	for (uint32_t i = 0; !ret && i < seeds.nr; i = next) {
		struct vf_fde *user = seeds.list[i].user;

		for (next = i; next < seeds.nr && seeds.list[next].user == user; next++)
			;
		ret = user->flags & (VF_FDE_BAD | VF_FDE_OFF_GRID)
			      ? 1
			      : follow(vf, &seeds.list[i], next - i);
		if (ret != 1)
			continue;
		ret = 0;
		note_computes(&seeds.list[i], next - i);
	}
	note_owners(&seeds);
	free(seeds.owners);
	free(seeds.list);
	return ret;
}
