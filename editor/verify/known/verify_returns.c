// SPDX-License-Identifier: Apache-2.0
/*
 * verify_returns - marks functions with a call of one that changes its return address.
 *
 * The callee reads constants behind the call, or skips an instruction there: the bytes behind the call must be the
 * original's. Its first instructions are read on all ways, also behind jumps to other functions, and what registers hold of
 * the return address and of its place is followed. Called by verify_scan.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/known/verify_returns.h"

/* Number of instructions that are read from a function's start on, and of ways that are kept to be read. */
#define FIRST 64
#define WAYS  16
/* Among the first ones, up to a jump, a copy of the stack pointer counts as a change: assembly saves it by one later on. */
#define AT_ONCE 12
/* Bytes to read from the middle of a function. */
#define BARE 256

/* Does the instruction write to the 8 bytes at @disp from @base, or compute this address? */
static bool writes_at(const struct vf_full *f, ZydisRegister base, int64_t disp)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		/* The word to which push writes is hidden. */
		if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
		    op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.base != base ||
		    op->mem.index != ZYDIS_REGISTER_NONE || op->mem.disp.value != disp)
			continue;
		if ((op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) ||
		    f->z.mnemonic == ZYDIS_MNEMONIC_LEA)
			return true;
	}
	return false;
}

static bool sets(const struct vf_full *f, ZydisRegister reg)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++)
		if (f->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && f->op[i].reg.value == reg &&
		    (f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			return true;
	return false;
}

/* mov @reg to memory or to another register than the stack pointer: the function may write by that, too */
static bool copies(const struct vf_full *f, ZydisRegister reg)
{
	return f->z.mnemonic == ZYDIS_MNEMONIC_MOV &&
	       f->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && f->op[1].reg.value == reg &&
	       !sets(f, ZYDIS_REGISTER_RSP);
}

/* May the bytes from @p on, behind a REX prefix with W, be a copy of %rbp? */
static bool may_be_copy(const uint8_t *p)
{
	if (p[0] == 0x89)
		return (p[1] >> 3 & 7) == 5;
	return p[0] == 0x8b && p[1] >> 6 == 3 && (p[1] & 7) == 5;
}

/* From @at on, where %rbp is 8 bytes below the return address. */
static bool writes_above_frame(const struct vf *vf, const struct vf_fde *fde, uint64_t at)
{
	uint64_t end = fde->start + fde->size;
	const uint8_t *p = mp_elf_bytes(vf->o, at, end - at);
	struct vf_full f;

	for (uint64_t k = 1; p && k + 2 <= end - at; k++) {
		/* 8(%rbp), as instructions encode it */
		if (((p[k] & 0xc7) != 0x45 || p[k + 1] != 8) && !may_be_copy(p + k))
			continue;
		for (uint64_t from = at + k; from-- > at && at + k - from < 15;) {
			if (!vf_bits_get(&vf->old.grid, from))
				continue;
			if (vf_decode_full(vf, from, end, &f) &&
			    (writes_at(&f, ZYDIS_REGISTER_RBP, 8) ||
			     copies(&f, ZYDIS_REGISTER_RBP)))
				return true;
			break;
		}
	}
	return false;
}

/* What is known of a register: nothing; the return address, or a sum with it; so many bytes below the place of it. */
struct value {
	enum {
		ANYTHING,
		RETURNS_TO,
		BELOW
	} kind;
	int64_t bytes;
};

#define NR_REGS 16
#define SP	4

/* A place to go on from, and the general registers there. */
struct going {
	uint64_t at;
	struct value reg[NR_REGS];
};

struct reading {
	const struct vf *vf;
	uint64_t most; /* bytes to read for writes by the frame pointer */
	uint64_t done[FIRST];
	unsigned int nr_done, nr_later;
	struct going later[WAYS]; /* ways that branches lead to */
	bool jumped;		  /* control came by one of these */
};

static const struct value nothing = {ANYTHING, 0};

/* The value of register @reg, or of the register that it is a part of. */
static struct value value_of(const struct going *g, ZydisRegister reg)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (full < ZYDIS_REGISTER_RAX || full > ZYDIS_REGISTER_R15)
		return nothing;
	return g->reg[full - ZYDIS_REGISTER_RAX];
}

/* Sets *@off to how many bytes behind the start of the return address @op begins. Return: false: not known. */
static bool slot_offset(const struct going *g, const ZydisDecodedOperand *op, int64_t *off)
{
	struct value base;

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	base = value_of(g, op->mem.base);
	*off = op->mem.disp.value - base.bytes;
	return base.kind == BELOW;
}

/* The value that the instruction gives to its first operand, a register. */
static struct value result(const struct going *g, const struct vf_full *f)
{
	const ZydisDecodedOperand *to = &f->op[0], *from = &f->op[1];
	struct value old = value_of(g, to->reg.value), value = nothing;
	bool constant = from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	int64_t off;

	if (f->z.operand_count < 2)
		return nothing;
	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (from->type == ZYDIS_OPERAND_TYPE_REGISTER)
			value = value_of(g, from->reg.value);
		else if (slot_offset(g, from, &off) && !off)
			value.kind = RETURNS_TO;
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (slot_offset(g, from, &off))
			value = (struct value){BELOW, -off};
		else if (value_of(g, from->mem.base).kind == RETURNS_TO ||
			 value_of(g, from->mem.index).kind == RETURNS_TO)
			value.kind = RETURNS_TO;
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		value = old;
		if (old.kind == BELOW && constant)
			value.bytes += f->z.mnemonic == ZYDIS_MNEMONIC_ADD ? -from->imm.value.s
									   : from->imm.value.s;
		else if (old.kind == BELOW)
			value = nothing;
		if (from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    value_of(g, from->reg.value).kind == RETURNS_TO)
			value.kind = RETURNS_TO;
		break;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		if (old.kind == RETURNS_TO)
			value = old;
		break;
	default: break;
	}
	/* A part of the stack pointer says nothing. */
	return value.kind == BELOW && to->size != 64 ? nothing : value;
}

static void execute(struct going *g, const struct vf_full *f)
{
	struct value first = f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? result(g, f) : nothing;
	struct value sp = g->reg[SP];
	bool push = f->z.mnemonic == ZYDIS_MNEMONIC_PUSH, pop = f->z.mnemonic == ZYDIS_MNEMONIC_POP;

	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		ZydisRegister full;

		if (f->op[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
							f->op[i].reg.value);
		if (full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15)
			g->reg[full - ZYDIS_REGISTER_RAX] = i ? nothing : first;
	}
	if ((push || pop) && f->op[0].size == 64 &&
	    !(pop && f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	      f->op[0].reg.value == ZYDIS_REGISTER_RSP)) {
		sp.bytes += push ? 8 : -8;
		g->reg[SP] = sp;
	}
}

/* Does the instruction give the address of the place to a register, or to memory? */
static bool takes_place(const struct going *g, const struct vf_full *f)
{
	int64_t off;

	return (!g->reg[SP].bytes && copies(f, ZYDIS_REGISTER_RSP)) ||
	       (f->z.mnemonic == ZYDIS_MNEMONIC_LEA && slot_offset(g, &f->op[1], &off) && !off);
}

/* Does the instruction change the return address, or use what stands behind the call? */
static bool meddles(const struct going *g, const struct vf_full *f)
{
	bool indirect = f->z.meta.category == ZYDIS_CATEGORY_UNCOND_BR &&
			f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER;

	if (!g->reg[SP].bytes && f->z.mnemonic == ZYDIS_MNEMONIC_POP)
		return true;
	if (indirect && value_of(g, f->op[0].reg.value).kind == RETURNS_TO)
		return true;
	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];
		int64_t off;

		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (op->mem.type == ZYDIS_MEMOP_TYPE_MEM && f->z.mnemonic != ZYDIS_MNEMONIC_NOP &&
		    (value_of(g, op->mem.base).kind == RETURNS_TO ||
		     value_of(g, op->mem.index).kind == RETURNS_TO))
			return true;
		/* The word to which push writes is hidden. */
		if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN || !slot_offset(g, op, &off))
			continue;
		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && off < 8 &&
		    off + (op->size + 7) / 8 > 0)
			return true;
	}
	return false;
}

static void keep(struct reading *r, const struct going *g, uint64_t at)
{
	if (r->nr_later == WAYS)
		return;
	r->later[r->nr_later] = *g;
	r->later[r->nr_later++].at = at;
}

/* Traps, and returns of a kernel. */
static bool is_end(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT: return true;
	default: return false;
	}
}

/* Notes where control goes but to the next instruction. Return: false: it does not go there. */
static bool goes_on(struct reading *r, const struct going *g, const struct vf_full *f)
{
	uint64_t next = g->at + f->z.length;
	bool relative = f->z.raw.imm[0].is_relative;
	uint64_t to = next + (relative ? (uint64_t)f->z.raw.imm[0].value.s : 0);

	switch (f->z.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		if (relative)
			keep(r, g, to);
		return true;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (relative)
			keep(r, g, to);
		return false;
	case ZYDIS_CATEGORY_RET:
	/* It is not known whether a call returns, and other code may follow. */
	case ZYDIS_CATEGORY_CALL: return false;
	default: return !is_end(f->z.mnemonic);
	}
}

static bool is_done(const struct reading *r, uint64_t at)
{
	for (unsigned int i = 0; i < r->nr_done; i++)
		if (r->done[i] == at)
			return true;
	return false;
}

/* The address behind the text that holds @at; 0: no text holds it. */
static uint64_t text_end(const struct vf *vf, uint64_t at)
{
	for (uint32_t i = 0; i < vf->old.nr_texts; i++)
		if (at >= vf->old.texts[i].start && at < vf->old.texts[i].end)
			return vf->old.texts[i].end;
	return 0;
}

/* mov %rsp, %rbp behind push %rbp */
static bool makes_frame(const struct going *g, const struct vf_full *f)
{
	return f->z.mnemonic == ZYDIS_MNEMONIC_MOV && g->reg[SP].bytes == 8 &&
	       sets(f, ZYDIS_REGISTER_RBP) && f->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       f->op[1].reg.value == ZYDIS_REGISTER_RSP;
}

/* Does the function write above its frame from @at on? Its unwind information tells where it ends. */
static bool writes_by_frame(const struct reading *r, uint64_t at)
{
	const struct vf_fde *fde = vf_eh_find(&r->vf->old.eh, at);
	uint64_t left = fde ? fde->start + fde->size - at : 0;
	/* Many jumps may lead into one function, as many calls may. */
	uint64_t most = r->jumped && r->most > BARE ? BARE : r->most;
	struct vf_fde rest = {.start = at, .size = left < most ? left : most};

	return left && writes_above_frame(r->vf, &rest, at);
}

/* Reads from @g on, up to a place where nothing follows or that was read before. */
static bool read_way(struct reading *r, struct going g)
{
	struct vf_full f;

	while (r->nr_done < FIRST && g.reg[SP].kind == BELOW && !is_done(r, g.at) &&
	       vf_decode_full(r->vf, g.at, text_end(r->vf, g.at), &f)) {
		uint64_t next = g.at + f.z.length;

		r->done[r->nr_done++] = g.at;
		if (meddles(&g, &f) ||
		    (!r->jumped && r->nr_done <= AT_ONCE && takes_place(&g, &f)) ||
		    (makes_frame(&g, &f) && writes_by_frame(r, next)))
			return true;
		if (!goes_on(r, &g, &f))
			return false;
		execute(&g, &f);
		g.at = next;
	}
	return false;
}

/* Does the code at @at do so? @most: see struct reading. */
static bool changes_return(const struct vf *vf, uint64_t at, uint64_t most)
{
	struct reading r = {.vf = vf, .most = most};
	struct going start = {.at = at};

	start.reg[SP] = (struct value){BELOW, 0};
	r.later[r.nr_later++] = start;
	for (; r.nr_later; r.jumped = true)
		if (read_way(&r, r.later[--r.nr_later]))
			return true;
	return false;
}

/*
 * Marks functions with a direct call of one of @changing. A call of the next instruction only asks for its own address.
 * Looks for the opcode: to decode all code once more takes long.
 */
static void mark_callers(const struct vf *vf, struct vf_fde *fde, const struct vf_bits *changing)
{
	uint64_t end = fde->start + fde->size;
	const uint8_t *p = mp_elf_bytes(vf->o, fde->start, fde->size);
	int32_t distance;

	for (uint64_t k = 0; p && k + 5 <= fde->size; k++) {
		uint64_t next = fde->start + k + 5;
		struct vf_insn insn;

		if (p[k] != 0xe8)
			continue;
		memcpy(&distance, p + k + 1, sizeof(distance));
		if (!distance || !vf_bits_get(changing, next + (uint64_t)(int64_t)distance))
			continue;
		/* A call may have prefixes. */
		for (uint64_t at = fde->start + k; at + 4 > fde->start + k && at >= fde->start;
		     at--)
			if (vf_bits_get(&vf->old.grid, at) &&
			    vf_decode(p + (at - fde->start), end - at, at, &insn) &&
			    at + insn.len == next && insn.kind == VF_CALL)
				fde->flags |= VF_FDE_PLACE;
	}
}

/*
 * Sets bits in @changing for places inside of @fde, behind its start, that are called directly and change their return
 * address: of several functions in assembly, only the first one may have a name. Return: is there one?
 */
static bool find_inside(const struct vf *vf, const struct vf_fde *fde, struct vf_bits *asked,
			struct vf_bits *changing)
{
	const uint8_t *p = mp_elf_bytes(vf->o, fde->start, fde->size);
	bool any = false;

	for (uint64_t k = 0; p && k + 5 <= fde->size; k++) {
		uint64_t to = p[k] == 0xe8 ? vf_displacement_target(p + k + 1, fde->start + k + 5)
					   : 0;
		struct vf_fde *in = to && vf_bits_get(&vf->old.target, to) &&
						    vf_bits_get(&vf->old.grid, to) &&
						    to != fde->start + k + 5
					    ? vf_eh_find(&vf->old.eh, to)
					    : NULL;

		if (!in || in->start == to || vf_bits_get(asked, to))
			continue;
		vf_bits_set(asked, to);
		/* Many calls may lead into one FDE. */
		if (!changes_return(vf, to, BARE))
			continue;
		vf_bits_set(changing, to);
		any = true;
	}
	return any;
}

/* Sets a bit for each place to which a direct call may lead: only these are read. */
static void find_called(const struct vf *vf, struct vf_bits *called)
{
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++) {
		const struct vf_fde *fde = &vf->old.eh.fdes[i];
		const uint8_t *p = mp_elf_bytes(vf->o, fde->start, fde->size), *call = p;

		while (call && fde->size >= 5 &&
		       (call = memchr(call, 0xe8, fde->size - 4 - (uint64_t)(call - p)))) {
			uint64_t next = fde->start + (uint64_t)(call - p) + 5;

			vf_bits_set(called, vf_displacement_target(call + 1, next));
			if (++call - p > (ptrdiff_t)(fde->size - 5))
				break;
		}
	}
}

int vf_find_returns(const struct vf *vf)
{
	const struct vf_eh *eh = &vf->old.eh;
	struct vf_bits changing = {0}, asked = {0}, called = {0};
	uint64_t end = vf->old.text_end;
	bool any = false;
	int ret = vf_bits_init(&changing, vf->old.text_start, end);

	if (!ret)
		ret = vf_bits_init(&asked, vf->old.text_start, end);
	if (!ret)
		ret = vf_bits_init(&called, vf->old.text_start, end);
	if (ret)
		goto out;
	find_called(vf, &called);
	for (uint32_t i = 0; i < eh->nr_fdes; i++) {
		if (!vf_bits_get(&called, eh->fdes[i].start) ||
		    !changes_return(vf, eh->fdes[i].start, UINT64_MAX))
			continue;
		vf_bits_set(&changing, eh->fdes[i].start);
		any = true;
	}
	for (uint32_t i = 0; i < eh->nr_fdes; i++)
		any |= find_inside(vf, &eh->fdes[i], &asked, &changing);
	/* Code without unwind information */
	for (uint64_t at = vf_bits_next(&vf->old.target, vf->old.text_start, end); at < end;
	     at = vf_bits_next(&vf->old.target, at + 1, end)) {
		if (!vf_bits_get(&called, at) || vf_eh_find(eh, at) || !changes_return(vf, at, 0))
			continue;
		vf_bits_set(&changing, at);
		any = true;
	}
	for (uint32_t i = 0; any && i < eh->nr_fdes; i++)
		mark_callers(vf, &eh->fdes[i], &changing);
out:
	vf_bits_fini(&called);
	vf_bits_fini(&asked);
	vf_bits_fini(&changing);
	return ret;
}
