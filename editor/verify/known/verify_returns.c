// SPDX-License-Identifier: Apache-2.0
/*
 * verify_returns - marks functions with a call of one that changes its return address.
 *
 * The callee reads constants behind the call, or skips an instruction there: the bytes behind the call must be the
 * original's. Its first instructions are read on all ways, also behind jumps to other functions, and what registers
 * hold of the return address and of its place is followed. Called by verify_scan.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/known/verify_returns.h"
#include "editor/verify/read/verify_effect.h"

/* Number of instructions that are read from a function's start on, and of ways that are kept to be read. */
#define FIRST 128
#define WAYS  64
/* Among the first ones, up to a jump, a copy of the stack pointer counts as a change: assembly saves it later on. */
#define AT_ONCE	  12
#define DONE_BITS 512
/* An instruction is read so often at most. */
#define TIMES 3
/* Bytes that an instruction reads or writes at most: a vector's. */
#define WIDEST 64
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

/* What a register holds: anything; the return address; or an address so many bytes below that of the return address. */
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
#define BP	5

/* A place to go on from, and the general registers there. */
struct going {
	uint64_t at;
	struct value reg[NR_REGS];
};

struct reading {
	const struct vf *vf;
	const struct vf_fde *fde; /* that holds the instruction; may be NULL */
	uint64_t most;		  /* bytes to read for writes by the frame pointer */
	unsigned int nr_done, nr_known, nr_later;
	bool jumped;		  /* control came by one of @later */
	bool dropped;		  /* there were more than WAYS */
	bool framed;		  /* it has made a frame */
	struct going later[WAYS]; /* ways that branches lead to */
	struct {
		uint64_t at;
		const struct going *known; /* what was known there */
	} done[FIRST];			   /* instructions that were read */
	struct going known[FIRST];
	uint64_t may_be_done[DONE_BITS / 64]; /* a bit for the last bits of each address in @done */
};

static const struct value nothing = {ANYTHING, 0};

/* The register that @reg is a part of: its number; NR_REGS: none. */
static unsigned int number(ZydisRegister reg)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return full < ZYDIS_REGISTER_RAX || full > ZYDIS_REGISTER_R15
		       ? NR_REGS
		       : (unsigned int)(full - ZYDIS_REGISTER_RAX);
}

/* The value of register @reg, or of the register that it is a part of. */
static struct value value_of(const struct going *g, ZydisRegister reg)
{
	unsigned int nr = number(reg);

	return nr == NR_REGS ? nothing : g->reg[nr];
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

/* Is @op memory that the instruction names or a string instruction uses, with a byte of the return address? */
static bool in_slot(const struct going *g, const ZydisDecodedOperand *op)
{
	int64_t off;

	if (!slot_offset(g, op, &off) || op->mem.type != ZYDIS_MEMOP_TYPE_MEM)
		return false;
	/* execute() handles the memory that push, pop and call use by the stack pointer. */
	if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && number(op->mem.base) == SP)
		return false;
	return off < 8 && off + (op->size ? (op->size + 7) / 8 : 1) > 0;
}

/* Is @op, which the instruction reads, the return address or a part of it? */
static bool is_return(const struct going *g, const ZydisDecodedOperand *op)
{
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_READ))
		return false;
	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
		return value_of(g, op->reg.value).kind == RETURNS_TO;
	return in_slot(g, op);
}

/* The value that the instruction gives to its first operand, a register. */
static struct value result(const struct going *g, const struct vf_full *f)
{
	const ZydisDecodedOperand *to = &f->op[0], *from = &f->op[1];
	struct value value = nothing;
	int64_t off;

	if (f->z.operand_count < 2)
		return nothing;
	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (from->type == ZYDIS_OPERAND_TYPE_REGISTER)
			value = value_of(g, from->reg.value);
		else if (is_return(g, from))
			value.kind = RETURNS_TO;
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (slot_offset(g, from, &off))
			value = (struct value){BELOW, -off};
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (from->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			break;
		value = value_of(g, to->reg.value);
		value.bytes += f->z.mnemonic == ZYDIS_MNEMONIC_ADD ? -from->imm.value.s
								   : from->imm.value.s;
		break;
	default: break;
	}
	/* A part of the stack pointer says nothing. */
	return value.kind == BELOW && to->size != 64 ? nothing : value;
}

/* By how many bytes does the instruction push (more than 0) or pop? */
static int64_t pushes(const struct vf_full *f)
{
	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ: return f->z.operand_width / 8;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ: return -(f->z.operand_width / 8);
	default: return 0;
	}
}

static void execute(struct going *g, const struct vf_full *f)
{
	struct value first = f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? result(g, f) : nothing;
	struct value sp = g->reg[SP], bp = g->reg[BP];
	/* pop %rsp */
	bool named = f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		     f->op[0].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
		     number(f->op[0].reg.value) == SP;

	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		unsigned int nr;

		if (f->op[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		nr = number(f->op[i].reg.value);
		if (nr < NR_REGS)
			g->reg[nr] = i ? nothing : first;
	}
	if (f->z.mnemonic == ZYDIS_MNEMONIC_LEAVE) {
		g->reg[SP] = bp;
		g->reg[SP].bytes -= 8;
	} else if (pushes(f) && (pushes(f) > 0 || !named)) {
		g->reg[SP] = sp;
		g->reg[SP].bytes += pushes(f);
	}
}

/* Does the instruction give the address of the place to a register, or to memory? */
static bool takes_place(const struct going *g, const struct vf_full *f)
{
	int64_t off;

	return (g->reg[SP].kind == BELOW && !g->reg[SP].bytes && copies(f, ZYDIS_REGISTER_RSP)) ||
	       (f->z.mnemonic == ZYDIS_MNEMONIC_LEA && slot_offset(g, &f->op[1], &off) && !off);
}

/*
 * The instruction reads the return address. Does it no more than compare it, or keep a copy outside of the stack? A
 * sum or a choice of it, or a copy in the stack, may be where the function returns to. gcc pushes a copy by another
 * register than the stack pointer, where it aligns the stack.
 */
static bool only_keeps(const struct going *g, const struct vf_full *f)
{
	const ZydisDecodedOperand *to = &f->op[0];

	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST: return true;
	/* glibc's setjmp() */
	case ZYDIS_MNEMONIC_XOR:
		return f->op[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		       f->op[1].mem.segment == ZYDIS_REGISTER_FS;
	case ZYDIS_MNEMONIC_MOV:
		return to->type == ZYDIS_OPERAND_TYPE_REGISTER ||
		       value_of(g, to->mem.base).kind != BELOW;
	case ZYDIS_MNEMONIC_PUSH:
		return to->type == ZYDIS_OPERAND_TYPE_MEMORY && number(to->mem.base) != SP;
	default: return false;
	}
}

/* Does the instruction change the return address, compute another one, or use what stands behind the call? */
static bool meddles(const struct going *now, const struct vf_full *f)
{
	struct going g = *now;

	/* pop to memory finds that by the new stack pointer */
	if (f->z.mnemonic == ZYDIS_MNEMONIC_POP)
		g.reg[SP].bytes += pushes(f);
	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && in_slot(&g, op))
			return true;
		if (is_return(&g, op) && !only_keeps(&g, f))
			return true;
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && f->z.mnemonic != ZYDIS_MNEMONIC_NOP &&
		    (value_of(&g, op->mem.base).kind == RETURNS_TO ||
		     value_of(&g, op->mem.index).kind == RETURNS_TO))
			return true;
	}
	return false;
}

static void keep(struct reading *r, const struct going *g, uint64_t at)
{
	/* Perhaps the way that is not read changes the address. */
	r->dropped |= r->nr_later == WAYS;
	if (r->dropped)
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

/*
 * Behind a call, which may change the registers that the ABI lets it change. Return: false: that is not known to be
 * code of the same function.
 */
static bool comes_back(struct reading *r, struct going *g, uint64_t next)
{
	static const uint8_t changed[] = {0, 1, 2, 6, 7, 8, 9, 10, 11};

	for (size_t i = 0; i < sizeof(changed); i++)
		g->reg[changed[i]] = nothing;
	if (!r->fde || g->at - r->fde->start >= r->fde->size)
		r->fde = vf_eh_find(&r->vf->old.eh, g->at);
	return r->fde && next - r->fde->start < r->fde->size;
}

/* To where the loader leads calls and jumps through the word at @slot, if to code of this file; else 0. */
static uint64_t behind_slot(const struct vf *vf, uint64_t slot)
{
	const struct mp_reloc *rel = mp_elf_dyn_reloc_at(vf->o, slot);

	const uint8_t *word;
	uint64_t to;

	if (!rel) {
		word = vf->o->ehdr.e_type == ET_EXEC ? mp_elf_bytes(vf->o, slot, 8) : NULL;
		if (!word)
			return 0;
		memcpy(&to, word, sizeof(to));
		return to;
	}
	if (rel->type == R_X86_64_RELATIVE)
		return (uint64_t)rel->addend;
	if (!rel->sym || rel->sym_shndx == SHN_UNDEF)
		return 0;
	return rel->type == R_X86_64_64 ? rel->sym_value + (uint64_t)rel->addend : rel->sym_value;
}

/* What follows the instruction, if it is a direct branch, a return or pushes a register of which nothing is known. */
enum next {
	NEXT_NONE,
	NEXT_HERE,
	NEXT_UNKNOWN
};

static enum next follow_simple(struct reading *r, struct going *g, uint16_t known, const uint8_t *b,
			       const struct vf_insn *insn)
{
	unsigned int reg = (b[insn->len - 1] & 7u) | (insn->len == 2 ? 8 : 0);

	switch (insn->kind) {
	case VF_STOP: return NEXT_NONE;
	case VF_JMP: keep(r, g, insn->target); return NEXT_NONE;
	case VF_JCC: keep(r, g, insn->target); return NEXT_HERE;
	case VF_CALL:
		if (insn->target != g->at + insn->len)
			return comes_back(r, g, g->at + insn->len) ? NEXT_HERE : NEXT_NONE;
		/* This only pushes the address. */
		g->reg[SP].bytes += 8;
		return NEXT_HERE;
	case VF_OTHER: break;
	default: return NEXT_UNKNOWN;
	}
	if (insn->len > 2 || (b[insn->len - 1] & 0xf8) != 0x50 || (insn->len == 2 && *b != 0x41) ||
	    known & VF_REG(reg) || !(known & VF_REG(SP)))
		return NEXT_UNKNOWN;
	g->reg[SP].bytes += 8;
	return NEXT_HERE;
}

/* Notes where control goes but to the next instruction. Return: false: it does not go there. */
static bool goes_on(struct reading *r, struct going *g, const struct vf_full *f)
{
	uint64_t next = g->at + f->z.length;
	bool relative = f->z.raw.imm[0].is_relative;
	uint64_t to = relative ? next + (uint64_t)f->z.raw.imm[0].value.s : 0;

	switch (f->z.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		if (relative)
			keep(r, g, to);
		return true;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (f->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    f->op[0].mem.base == ZYDIS_REGISTER_RIP)
			to = behind_slot(r->vf, next + (uint64_t)f->op[0].mem.disp.value);
		if (to)
			keep(r, g, to);
		return false;
	case ZYDIS_CATEGORY_CALL: return comes_back(r, g, next);
	case ZYDIS_CATEGORY_RET: return false;

	default: return !is_end(f->z.mnemonic);
	}
}

/* A bit for each register of which something is known. */
static uint16_t known_of(const struct going *g)
{
	uint16_t known = 0;

	for (unsigned int i = 0; i < NR_REGS; i++)
		known |= g->reg[i].kind != ANYTHING ? VF_REG(i) : 0;
	return known;
}

/*
 * Does the instruction at @b leave alone all that is known, and the return address? Asked first, since most do and
 * Zydis takes long. @insn: it, decoded.
 */
static bool is_other(const struct going *g, uint16_t known, const uint8_t *b, size_t left,
		     const struct vf_insn *insn)
{
	int64_t off = vf_base_disp(insn, b) - g->reg[SP].bytes;
	struct vf_effect e;
	uint16_t names;

	if (insn->kind != VF_OTHER || insn->int3)
		return false;
	e = vf_effect_of(b, left);
	names = known &
		(e.reads[VF_PART_LOW] | e.reads[VF_PART_HIGH] | e.reads[VF_PART_REST] | e.sets);
	if (!names)
		return true;
	/* A variable in the stack; %r12 has the same bits. */
	return names == VF_REG(SP) && !(e.sets & VF_REG(SP)) && insn->base == (VF_BASE | SP) &&
	       !insn->lea && g->reg[SP].bytes > 0 && (off >= 8 || off < -WIDEST);
}

/*
 * Was the instruction read when as much was known? Or TIMES times: then other values come at each round of a loop, as
 * addresses in the stack do.
 */
static bool is_done(const struct reading *r, const struct going *g)
{
	unsigned int times = 0;

	if (!(r->may_be_done[g->at % DONE_BITS / 64] >> g->at % 64 & 1))
		return false;
	for (unsigned int i = 0; i < r->nr_done; i++) {
		const struct value *then = r->done[i].known->reg;
		unsigned int k = 0;

		if (r->done[i].at != g->at)
			continue;
		while (k < NR_REGS &&
		       (g->reg[k].kind == ANYTHING ||
			(g->reg[k].kind == then[k].kind && g->reg[k].bytes == then[k].bytes)))
			k++;
		if (k == NR_REGS || ++times == TIMES)
			return true;
	}
	return false;
}

/* The instruction at @g is read. @anew: what is known changed since the one before. */
static void note_done(struct reading *r, const struct going *g, bool anew)
{
	if (anew)
		r->known[r->nr_known++] = *g;
	r->done[r->nr_done].at = g->at;
	r->done[r->nr_done++].known = &r->known[r->nr_known - 1];
	r->may_be_done[g->at % DONE_BITS / 64] |= UINT64_C(1) << g->at % 64;
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
	return f->z.mnemonic == ZYDIS_MNEMONIC_MOV && g->reg[SP].kind == BELOW &&
	       g->reg[SP].bytes == 8 && sets(f, ZYDIS_REGISTER_RBP) &&
	       f->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
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
	uint64_t end = text_end(r->vf, g.at);
	const uint8_t *b = g.at < end ? mp_elf_bytes(r->vf->o, g.at, end - g.at) : NULL;
	uint16_t known = known_of(&g);
	bool anew = true;
	struct vf_insn insn;
	struct vf_full f;
	enum next next;

	for (; b && r->nr_done < FIRST && known && !is_done(r, &g);
	     b += insn.len, g.at += insn.len) {
		if (!vf_decode(b, end - g.at, g.at, &insn))
			return false;
		note_done(r, &g, anew);
		anew = !is_other(&g, known, b, end - g.at, &insn);
		if (!anew)
			continue;
		next = follow_simple(r, &g, known, b, &insn);
		if (next == NEXT_NONE)
			return false;
		if (next == NEXT_HERE) {
			known = known_of(&g);
			continue;
		}
		if (!vf_decode_full(r->vf, g.at, end, &f))
			return false;
		if (f.z.mnemonic == ZYDIS_MNEMONIC_ENTER || meddles(&g, &f) ||
		    (!r->jumped && r->nr_done <= AT_ONCE && takes_place(&g, &f)) ||
		    (makes_frame(&g, &f) && (r->jumped || !r->framed) &&
		     writes_by_frame(r, g.at + insn.len)))
			return true;
		r->framed |= makes_frame(&g, &f);
		if (!goes_on(r, &g, &f))
			return false;
		if (f.z.meta.category != ZYDIS_CATEGORY_CALL)
			execute(&g, &f);
		/* The return address is taken away. */
		if (g.reg[SP].kind == BELOW && g.reg[SP].bytes < 0)
			return true;
		known = known_of(&g);
	}
	return false;
}

/* Does the code at @at do so? @most: see struct reading. */
static bool changes_return(const struct vf *vf, uint64_t at, uint64_t most)
{
	struct going start = {.at = at};
	struct reading r;

	r.vf = vf;
	r.fde = NULL;
	r.most = most;
	r.nr_done = r.nr_known = r.nr_later = 0;
	memset(r.may_be_done, 0, sizeof(r.may_be_done));
	r.jumped = r.dropped = r.framed = false;
	start.reg[SP] = (struct value){BELOW, 0};
	r.later[r.nr_later++] = start;
	for (; r.nr_later; r.jumped = true)
		if (read_way(&r, r.later[--r.nr_later]) || r.dropped)
			return true;
	return false;
}

/* To where the call that may begin with the byte at @p leads; 0: none, or not known. *@next: the address behind it. */
static uint64_t called_from(const struct vf *vf, const uint8_t *p, uint64_t left, uint64_t at,
			    uint64_t *next)
{
	uint64_t to;

	if (left >= 5 && p[0] == 0xe8) {
		*next = at + 5;
		to = vf_displacement_target(p + 1, *next);
		/* A call of the next instruction only asks for its own address. */
		return to == *next ? 0 : to;
	}
	if (left < 6 || p[0] != 0xff || p[1] != 0x15)
		return 0;
	*next = at + 6;
	return behind_slot(vf, vf_displacement_target(p + 2, *next));
}

/*
 * Marks functions with a direct call of one of @changing, or one through a slot. Looks for the opcode: to decode all
 * code once more takes long.
 */
static void mark_callers(const struct vf *vf, struct vf_fde *fde, const struct vf_bits *changing)
{
	uint64_t end = fde->start + fde->size;
	const uint8_t *p = mp_elf_bytes(vf->o, fde->start, fde->size);

	for (uint64_t k = 0; p && k < fde->size; k++) {
		struct vf_insn insn;
		uint64_t next, to;

		if (p[k] != 0xe8 && p[k] != 0xff)
			continue;
		to = called_from(vf, p + k, fde->size - k, fde->start + k, &next);
		if (!to || !vf_bits_get(changing, to))
			continue;
		/* A call may have prefixes. */
		for (uint64_t at = fde->start + k; at + 4 > fde->start + k && at >= fde->start;
		     at--)
			if (vf_bits_get(&vf->old.grid, at) &&
			    vf_decode(p + (at - fde->start), end - at, at, &insn) &&
			    at + insn.len == next &&
			    (insn.kind == VF_CALL || insn.kind == VF_ICALL))
				fde->flags |= VF_FDE_PLACE;
	}
}

/* Sets a bit for each place to which a call may lead that has @byte, @back bytes behind its start. */
static void find_called_by(const struct vf *vf, const struct vf_fde *fde, uint8_t byte,
			   unsigned int back, struct vf_bits *called)
{
	const uint8_t *p = mp_elf_bytes(vf->o, fde->start, fde->size),
		      *end = p ? p + fde->size : NULL;

	for (const uint8_t *at = p; p && (at = memchr(at, byte, (size_t)(end - at))); at++) {
		const uint8_t *call = at - back;
		uint64_t next, to;

		if (at - p < (ptrdiff_t)back)
			continue;
		to = called_from(vf, call, (uint64_t)(end - call),
				 fde->start + (uint64_t)(call - p), &next);
		if (to)
			vf_bits_set(called, to);
	}
}

/*
 * Does the code at @at change its return address? @at may be the start of a function or, of several functions in
 * assembly, one of which only the first has a name, or code without unwind information.
 */
static bool is_changing(const struct vf *vf, uint64_t at)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);

	if (fde && fde->start == at)
		return changes_return(vf, at, UINT64_MAX);
	if (!vf_bits_get(&vf->old.target, at) || (fde && !vf_bits_get(&vf->old.grid, at)))
		return false;
	/* Many calls may lead into one FDE. */
	return changes_return(vf, at, fde ? BARE : 0);
}

int vf_find_returns(const struct vf *vf)
{
	const struct vf_eh *eh = &vf->old.eh;
	struct vf_bits changing = {0}, called = {0};
	uint64_t start = vf->old.text_start, end = vf->old.text_end;
	bool any = false;
	int ret = vf_bits_init(&changing, start, end);

	if (!ret)
		ret = vf_bits_init(&called, start, end);
	if (ret)
		goto out;
	/* Only what is called is read. */
	for (uint32_t i = 0; i < eh->nr_fdes; i++) {
		find_called_by(vf, &eh->fdes[i], 0xe8, 0, &called);
		find_called_by(vf, &eh->fdes[i], 0x15, 1, &called);
	}
	for (uint64_t at = vf_bits_next(&called, start, end); at < end;
	     at = vf_bits_next(&called, at + 1, end)) {
		if (!is_changing(vf, at))
			continue;
		vf_bits_set(&changing, at);
		any = true;
	}
	for (uint32_t i = 0; any && i < eh->nr_fdes; i++)
		mark_callers(vf, &eh->fdes[i], &changing);
out:
	vf_bits_fini(&called);
	vf_bits_fini(&changing);
	return ret;
}
