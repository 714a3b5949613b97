// SPDX-License-Identifier: Apache-2.0
/*
 * verify_table_flow - follows the addresses of jump tables through the code of one function.
 * Called by verify_version_tables.
 *
 * A version may name a copy of a table if the address goes nowhere but into the switch: it is the
 * base of a load from the table, is added to the offset that was loaded, and the sum is jumped to.
 * For each register and block, this is an analysis of values:
 *
 *	PLAIN	the same as in the original
 *	BASE	the address of a table
 *	OFFSET	an entry of a table of offsets
 *	LABEL	the sum of both, or an entry of a table of addresses
 *	MIXED	one or the other, by the way that control came; nothing may read it
 *
 * Any other instruction that reads such a value ends the proof. Calls and returns read none: no
 * source can name a table, so it is no argument and no result. Each operand that names a table
 * must lead to a jump, or it may be the end of another object.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_lsda.h"
#include "editor/verify/stubs/verify_versions.h"
#include "editor/verify/code/verify_version_tables_private.h"
#include "libprof/base/search.h"

/* A function with more blocks that nothing seems to lead to is not proved. */
#define MAX_WORLDS 1024

enum value_kind {
	PLAIN,
	BASE,
	OFFSET,
	LABEL,
	MIXED,
};

struct value {
	uint8_t kind, table;
	uint64_t refs; /* operands that the value came from, one bit each */
};

struct state {
	struct value reg[16];
};

/* A block of the version. */
struct node {
	const struct mp_map_piece *piece;
	struct state in; /* in this world */
	bool seen, queued;
	bool ever_seen; /* in any world */
	bool is_switch; /* its jump is one through a table */
};

struct flow {
	const struct vf *vf;
	const struct vf_version_tables *tables;
	struct node *nodes; /* ascending address in the original */
	uint32_t nr_nodes;
	uint32_t *queue;
	uint32_t nr_queued;
	struct vf_lsda lsda; /* of the FDE at @lsda_of */
	uint64_t lsda_of;
	uint64_t used; /* operands that led to a jump */
	struct state now;
	bool from_outside; /* this world begins at another place than the function's entry */
	bool failed;	   /* out of memory */
};

struct full {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* ---- blocks -------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return x->piece->old_vaddr < y->piece->old_vaddr
		       ? -1
		       : x->piece->old_vaddr > y->piece->old_vaddr;
}

static int find_nodes(struct flow *w, uint8_t version)
{
	for (int fill = 0; fill < 2; fill++) {
		struct vf_version_walk walk = {0};
		const struct mp_map_piece *p;

		while ((p = vf_version_walk(w->vf, w->tables->function, &walk))) {
			if (!p->old_size || walk.version != version)
				continue;
			if (fill)
				w->nodes[w->nr_nodes].piece = p;
			w->nr_nodes++;
		}
		if (fill)
			break;
		w->nodes = calloc((size_t)w->nr_nodes + 1, sizeof(*w->nodes));
		w->queue = malloc(((size_t)w->nr_nodes + 1) * sizeof(*w->queue));
		if (!w->nodes || !w->queue)
			return -ENOMEM;
		w->nr_nodes = 0;
	}
	if (w->nr_nodes)
		qsort(w->nodes, w->nr_nodes, sizeof(*w->nodes), by_address);
	return 0;
}

static struct node *node_at(const struct flow *w, uint64_t old)
{
	uint32_t lo = mp_search(i, 0, w->nr_nodes, w->nodes[i].piece->old_vaddr < old);

	return lo < w->nr_nodes && w->nodes[lo].piece->old_vaddr == old ? &w->nodes[lo] : NULL;
}

static bool join_value(struct value *a, const struct value *b)
{
	struct value was = *a;

	if (a->kind != b->kind || a->table != b->table)
		*a = (struct value){.kind = MIXED};
	else
		a->refs |= b->refs;
	return a->kind != was.kind || a->refs != was.refs;
}

/* Control gets from the current block to the one at @old, if that is in the function. */
static void lead_to(struct flow *w, uint64_t old, const struct state *state)
{
	struct node *node = node_at(w, old);
	bool changed = false;

	if (!node)
		return;
	if (!node->seen) {
		node->in = *state;
		node->seen = node->ever_seen = changed = true;
	} else {
		for (int i = 0; i < 16; i++)
			changed |= join_value(&node->in.reg[i], &state->reg[i]);
	}
	if (changed && !node->queued) {
		node->queued = true;
		w->queue[w->nr_queued++] = (uint32_t)(node - w->nodes);
	}
}

/* ---- instructions -------------------------------------------------------------------------- */

/* The number of the general register that @reg is, or is a part of; -1: none. */
static int number_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15
		       ? (int)(whole - ZYDIS_REGISTER_RAX)
		       : -1;
}

static struct value value_of(const struct flow *w, ZydisRegister reg)
{
	int n = number_of(reg);

	return n < 0 ? (struct value){0} : w->now.reg[n];
}

static bool is_plain(const struct flow *w, ZydisRegister reg)
{
	return value_of(w, reg).kind == PLAIN;
}

/* Is the operand a general register of 64 bits? */
static bool is_whole(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->size == 64 &&
	       number_of(op->reg.value) >= 0;
}

static void set(struct flow *w, const ZydisDecodedOperand *op, struct value value)
{
	w->now.reg[number_of(op->reg.value)] = value;
}

/* The bit of the instruction at @at among the operands that name tables; 0: none. */
static uint64_t ref_of(const struct flow *w, uint64_t at)
{
	for (uint32_t i = 0; i < w->tables->nr_refs; i++)
		if (w->tables->ref[i] == at)
			return UINT64_C(1) << i;
	return 0;
}

static int table_starting(const struct flow *w, uint64_t start)
{
	for (uint32_t i = 0; i < w->tables->nr_tables; i++)
		if (w->tables->table[i].start == start)
			return (int)i;
	return -1;
}

/*
 * The table that the memory operand reads an entry of, with what the address came from. Return:
 * kind PLAIN: none.
 */
static struct value entry_read(const struct flow *w, const ZydisDecodedOperand *op, uint64_t at)
{
	const ZydisDecodedOperandMem *mem = &op->mem;
	struct value v = {0};

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || mem->index == ZYDIS_REGISTER_NONE ||
	    !is_plain(w, mem->index) ||
	    (mem->segment != ZYDIS_REGISTER_DS && mem->segment != ZYDIS_REGISTER_SS))
		return v;
	if (mem->base == ZYDIS_REGISTER_NONE) {
		int t = table_starting(w, (uint64_t)mem->disp.value);

		if (t >= 0 && ref_of(w, at))
			v = (struct value){BASE, (uint8_t)t, ref_of(w, at)};
	} else if (!mem->disp.value && value_of(w, mem->base).kind == BASE) {
		v = value_of(w, mem->base);
	}
	if (v.kind == BASE && mem->scale != w->tables->table[v.table].size)
		v.kind = PLAIN;
	return v;
}

/* The forms that work with a table's address or entries. Return: false: none of them. */
static bool step_of_switch(struct flow *w, uint64_t at, const struct full *f)
{
	const ZydisDecodedOperand *op = f->op;
	struct value v = {0}, other;
	int t;

	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_LEA:
		if (op[1].mem.base != ZYDIS_REGISTER_RIP || !is_whole(&op[0]))
			return false;
		t = table_starting(w, at + f->z.length + (uint64_t)op[1].mem.disp.value);
		if (t < 0 || !ref_of(w, at))
			return false;
		set(w, &op[0], (struct value){BASE, (uint8_t)t, ref_of(w, at)});
		return true;
	case ZYDIS_MNEMONIC_MOVSXD:
		v = entry_read(w, &op[1], at);
		if (v.kind != BASE || w->tables->table[v.table].size != 4 || !is_whole(&op[0]))
			return false;
		v.kind = OFFSET;
		set(w, &op[0], v);
		return true;
	case ZYDIS_MNEMONIC_MOV:
		if (!is_whole(&op[0]))
			return false;
		if (is_whole(&op[1])) {
			set(w, &op[0], value_of(w, op[1].reg.value));
			return value_of(w, op[0].reg.value).kind != MIXED;
		}
		v = entry_read(w, &op[1], at);
		if (v.kind != BASE || w->tables->table[v.table].size != 8)
			return false;
		v.kind = LABEL;
		set(w, &op[0], v);
		return true;
	case ZYDIS_MNEMONIC_ADD:
		if (!is_whole(&op[0]) || !is_whole(&op[1]))
			return false;
		v = value_of(w, op[0].reg.value);
		other = value_of(w, op[1].reg.value);
		if (!((v.kind == BASE && other.kind == OFFSET) ||
		      (v.kind == OFFSET && other.kind == BASE)) ||
		    v.table != other.table)
			return false;
		v.kind = LABEL;
		v.refs |= other.refs;
		set(w, &op[0], v);
		return true;
	default: return false;
	}
}

/* Does the result not depend on the register that both operands name? */
static bool is_idiom(const struct full *f)
{
	return (f->z.mnemonic == ZYDIS_MNEMONIC_XOR || f->z.mnemonic == ZYDIS_MNEMONIC_SUB ||
		f->z.mnemonic == ZYDIS_MNEMONIC_SBB) &&
	       f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       f->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       f->op[0].reg.value == f->op[1].reg.value && f->op[0].size >= 32;
}

/* Is every register that the instruction reads plain? */
static bool reads_plain(const struct flow *w, const struct full *f)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op->actions & ZYDIS_OPERAND_ACTION_MASK_READ && !is_plain(w, op->reg.value))
			return false;
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (!is_plain(w, op->mem.base) || !is_plain(w, op->mem.index)))
			return false;
	}
	return true;
}

/* Registers that the instruction replaces are plain behind it; a part cannot be replaced. */
static bool write_plain(struct flow *w, const struct full *f)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];
		int n = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(op->reg.value) : -1;

		if (n < 0 || !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) ||
		    w->now.reg[n].kind == PLAIN)
			continue;
		if (op->size < 32 || op->actions & ZYDIS_OPERAND_ACTION_CONDWRITE)
			return false;
		w->now.reg[n] = (struct value){0};
	}
	return true;
}

/* Callee-saved registers are the caller's again at a return: rbx, rbp, r12 to r15. */
static bool may_return(const struct flow *w)
{
	static const uint8_t saved[] = {3, 5, 12, 13, 14, 15};

	for (size_t i = 0; i < sizeof(saved); i++)
		if (w->now.reg[saved[i]].kind != PLAIN)
			return false;
	return true;
}

/* ---- the ends of blocks -------------------------------------------------------------------- */

static void lead_to_table(struct flow *w, struct value v)
{
	const struct vf_version_table *t = &w->tables->table[v.table];

	w->used |= v.refs;
	for (uint64_t at = t->start; at + t->size <= t->end; at += t->size)
		lead_to(w, vf_version_entry(w->vf->o, at, t->start, t->size), &w->now);
}

/* May an exit of the function at @at lead to a label inside it? */
static bool has_labels(const struct flow *w, uint64_t at)
{
	const struct vf_fde *fde = vf_eh_find(&w->vf->old.eh, at);

	return !fde || fde->flags & (VF_FDE_SELF_REF | VF_FDE_WORD | VF_FDE_LABELS);
}

/* An indirect jump: that of a switch, or, behind a stub, an exit. */
static bool jump(struct flow *w, struct node *node, uint64_t at, const struct full *f)
{
	const ZydisDecodedOperand *op = &f->op[0];
	struct value v;

	if (!vf_is_switch(w->vf, node->piece))
		return reads_plain(w, f) && !has_labels(w, at);
	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		v = value_of(w, op->reg.value);
		if (v.kind != LABEL)
			return w->from_outside && v.kind == PLAIN;
	} else {
		v = entry_read(w, op, at);
		if (v.kind != BASE || w->tables->table[v.table].size != 8)
			return w->from_outside && reads_plain(w, f);
	}
	node->is_switch = true;
	lead_to_table(w, v);
	return true;
}

/* An exception leaves the call at @at: the landing pad gets the callee-saved registers. */
static bool lead_to_pad(struct flow *w, uint64_t at)
{
	const struct vf_fde *fde = vf_eh_find(&w->vf->old.eh, at);
	const struct vf_call_site *site;
	struct state state = w->now;

	if (!fde || !fde->lsda)
		return fde;
	if (w->lsda_of != fde->start) {
		int ret = vf_lsda_read(w->vf->o, fde->lsda, fde->start, &w->lsda);

		w->failed |= ret == -ENOMEM;
		w->lsda_of = fde->start;
		if (ret)
			return false;
	}
	site = vf_lsda_at(&w->lsda, at);
	if (!site || !site->pad)
		return true;
	state.reg[0] = state.reg[2] = (struct value){0};
	lead_to(w, site->pad, &state);
	return true;
}

/* Run through the block. Return: false: a value goes elsewhere. */
static bool run(struct flow *w, struct node *node)
{
	const struct mp_map_piece *p = node->piece;
	uint64_t at = p->old_vaddr, end = at + p->old_size;
	struct vf_insn insn;
	struct full f;

	for (; at < end; at += insn.len) {
		const uint8_t *b = mp_elf_bytes(w->vf->o, at, end - at);

		if (!b || !vf_decode(b, end - at, at, &insn) ||
		    !ZYAN_SUCCESS(
			    ZydisDecoderDecodeFull(vf_full_decoder(), b, end - at, &f.z, f.op)))
			return false;
		if (insn.kind == VF_IJMP_REG || insn.kind == VF_IJMP_MEM)
			return jump(w, node, at, &f);
		if (insn.nop || step_of_switch(w, at, &f))
			continue;
		if ((!is_idiom(&f) && !reads_plain(w, &f)) || !write_plain(w, &f))
			return false;
		switch (insn.kind) {
		case VF_OTHER: break;
		case VF_CALL:
		case VF_ICALL:
			if (!lead_to_pad(w, at))
				return false;
			w->now.reg[0] = w->now.reg[2] = (struct value){0};
			break;
		case VF_STOP: return f.z.meta.category != ZYDIS_CATEGORY_RET || may_return(w);
		case VF_JCC: lead_to(w, insn.target, &w->now); break;
		case VF_JMP: lead_to(w, insn.target, &w->now); return true;
		default: return false;
		}
	}
	lead_to(w, end, &w->now);
	return true;
}

/* ---- the function -------------------------------------------------------------------------- */

static bool spread(struct flow *w)
{
	while (w->nr_queued) {
		struct node *node = &w->nodes[w->queue[--w->nr_queued]];

		node->queued = false;
		w->now = node->in;
		if (!run(w, node))
			return false;
	}
	return true;
}

/* Follow all ways from the block at @start, where all values are plain. */
static bool follow_from(struct flow *w, uint64_t start)
{
	static const struct state plain;

	for (uint32_t i = 0; i < w->nr_nodes; i++)
		w->nodes[i].seen = false;
	lead_to(w, start, &plain);
	return spread(w);
}

/*
 * Control may come to the other blocks from outside. Values that outside code left in registers
 * are the original's, so each such way is a world of its own.
 */
static bool follow(struct flow *w)
{
	uint32_t nr_worlds = 0;

	if (!follow_from(w, w->vf->stubs.audited->funcs[w->tables->function].vaddr))
		return false;
	w->from_outside = true;
	for (uint32_t i = 0; i < w->nr_nodes; i++)
		if (!w->nodes[i].ever_seen &&
		    (nr_worlds++ == MAX_WORLDS || !follow_from(w, w->nodes[i].piece->old_vaddr)))
			return false;
	for (uint32_t i = 0; i < w->nr_nodes; i++)
		if (vf_is_switch(w->vf, w->nodes[i].piece) && !w->nodes[i].is_switch)
			return false;
	for (uint32_t i = 0; i < w->tables->nr_refs; i++)
		if (!(w->used >> i & 1))
			return false;
	return true;
}

int vf_table_flow(const struct vf *vf, const struct vf_version_tables *tables, uint8_t version)
{
	struct flow w = {.vf = vf, .tables = tables};
	int ret = find_nodes(&w, version);

	if (!ret)
		ret = follow(&w);
	if (w.failed)
		ret = -ENOMEM;
	vf_lsda_fini(&w.lsda);
	free(w.nodes);
	free(w.queue);
	return ret;
}

uint64_t vf_version_entry(const struct mp_elf *elf, uint64_t at, uint64_t start, uint8_t size)
{
	const uint8_t *p = mp_elf_bytes(elf, at, size);
	uint64_t label;
	int32_t off;

	if (!p)
		return 0;
	if (size == 8) {
		memcpy(&label, p, sizeof(label));
		return label;
	}
	memcpy(&off, p, sizeof(off));
	return start + (uint64_t)(int64_t)off;
}
