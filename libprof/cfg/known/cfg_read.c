// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_read - finds functions whose bytes the program may read, and the addresses in code that it
 * computes with.
 *
 * A program that copies a function, or sums up its bytes, must find the old ones: such a function is
 * left alone. Its address is followed from each operand that names it, through registers, slots of
 * the frame and arguments, to an instruction that reads memory by it, or to a library's function that
 * does. An address to which code adds something, or that it subtracts, may be a base from which data
 * counts: cfg_place uses these. Does not follow addresses through other memory. Called by cfg.
 */
#include <errno.h>

#include "libprof/base/grow.h"
#include "libprof/cfg/cfg_private.h"
#include "libprof/insn/decoder.h"

/* Instructions that are read behind an operand; more, if the address is kept in the frame. */
#define BUDGET	     24
#define FRAME_BUDGET 96
/* The same, for what a loop compares; and for all loops of a file. */
#define LOOP_BUDGET  16384
#define LOOPS_BUDGET (1u << 22)
#define MAX_DEPTH    2
/* Instructions between a function's first operand and the distance of the GOT from it. */
#define NEAR_GOT 16
/* Instructions that are read before an indirect call. */
#define BEFORE_CALL 16
#define MAX_SLOTS   4

enum {
	RAX,
	RCX,
	RDX,
	RBX,
	RSP,
	RBP,
	RSI,
	RDI
};

#define CALLER_SAVED 0x0fc7u
/* The result of a function of the same file, whose callers know which other registers it changes (-fipa-ra). */
#define RESULT	  (1u << RAX)
#define ARGUMENTS (1u << RDI | 1u << RSI | 1u << RDX | 1u << RCX | 3u << 8)
/* Of a system call: %r10 in place of %rcx. What the kernel gets it may read, or write to. */
#define TO_KERNEL (1u << RDI | 1u << RSI | 1u << RDX | 7u << 8)

/* Functions that read or write the bytes at some of their arguments, or let others do so. */
static const struct {
	const char *name;
	uint16_t reads; /* registers */
} readers[] = {
	{"__memcpy_chk", 1u << RDI | 1u << RSI},
	{"__memmove_chk", 1u << RDI | 1u << RSI},
	{"__mempcpy_chk", 1u << RDI | 1u << RSI},
	{"__memset_chk", 1u << RDI},
	{"EVP_DigestUpdate", 1u << RSI},
	{"HMAC_Update", 1u << RSI},
	{"adler32", 1u << RSI},
	{"adler32_z", 1u << RSI},
	{"bcmp", 1u << RDI | 1u << RSI},
	{"bcopy", 1u << RDI | 1u << RSI},
	{"bzero", 1u << RDI},
	{"crc32", 1u << RSI},
	{"crc32_z", 1u << RSI},
	{"explicit_bzero", 1u << RDI},
	{"fread", 1u << RDI},
	{"fread_unlocked", 1u << RDI},
	{"fwrite", 1u << RDI},
	{"fwrite_unlocked", 1u << RDI},
	{"memchr", 1u << RDI},
	{"memcmp", 1u << RDI | 1u << RSI},
	{"memcpy", 1u << RDI | 1u << RSI},
	{"memmove", 1u << RDI | 1u << RSI},
	{"mempcpy", 1u << RDI | 1u << RSI},
	{"memset", 1u << RDI},
	{"mprotect", 1u << RDI},
	{"pkey_mprotect", 1u << RDI},
	{"pread", 1u << RSI},
	{"pread64", 1u << RSI},
	{"ptrace", 1u << RDX},
	{"pwrite", 1u << RSI | 1u << RCX}, /* to memory, by its file */
	{"pwrite64", 1u << RSI | 1u << RCX},
	{"read", 1u << RSI},
	{"recv", 1u << RSI},
	{"recvfrom", 1u << RSI},
	{"send", 1u << RSI},
	{"sendto", 1u << RSI},
	{"strcmp", 1u << RDI | 1u << RSI},
	{"strlen", 1u << RDI},
	{"strncmp", 1u << RDI | 1u << RSI},
	{"strnlen", 1u << RDI},
	{"syscall", 1u << RDX | 1u << RCX},
	{"write", 1u << RSI},
};

/* What following an address from the start of a function led to. Many operands lead to the same functions. */
struct entered {
	uint32_t at;
	uint16_t regs;
	uint8_t depth; /* 0: free */
	bool far, read, computed, ordered, equal;
};

#define NR_ENTERED 4096

/* Instructions that compare an address, or compute with it. */
struct compared {
	uint32_t at[64];
	uint8_t sides[64]; /* 1: it is the first operand, 2: the second one */
	unsigned int nr, steps;
	bool any; /* others may, too */
};

struct follow {
	struct mp_cfg_build *b;
	struct compared
		*compared; /* to be found, in place of what follows from the address; or NULL */
	struct entered *entered; /* NR_ENTERED: the last ones */
	uint16_t regs;		 /* that hold the address */
	struct slot {
		uint8_t reg;
		int64_t disp;
	} slots[MAX_SLOTS];
	unsigned int nr_slots;
	uint64_t pushes; /* whether the pushed words hold the address: the last one is the lowest bit */
	bool far;	 /* code for any distance, where most calls go through registers */
	bool from_got; /* the registers have a distance from the GOT, until its address is added */
	bool read, computed;
	bool ordered; /* the program asks what lies before or behind the address */
	bool equal;   /* it compares the address, in any way */
	bool direct;  /* it reads only the bytes that the operand itself names */
	bool behind;  /* behind a jump or a return: a slot may hold something else by now */
	/* A loop begins before its start: a jump passes it, and a branch from behind leads there, with these registers. */
	struct passed {
		uint32_t from, end, at;
		uint16_t regs;
	} passed;
	bool went_back;	     /* there, once */
	uint32_t ahead;	     /* the last place to which a branch forward leads; 0: none */
	uint16_t ahead_regs; /* that held the address then */
};

static uint8_t gpr(ZydisRegister reg)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return wide >= ZYDIS_REGISTER_RAX && wide <= ZYDIS_REGISTER_R15
		       ? (uint8_t)(wide - ZYDIS_REGISTER_RAX)
		       : 0xff;
}

static bool holds(const struct follow *f, ZydisRegister reg)
{
	uint8_t n = reg == ZYDIS_REGISTER_NONE ? 0xff : gpr(reg);

	return n != 0xff && f->regs >> n & 1;
}

static bool is_slot(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->size == 64 &&
	       o->mem.index == ZYDIS_REGISTER_NONE &&
	       (o->mem.base == ZYDIS_REGISTER_RSP || o->mem.base == ZYDIS_REGISTER_RBP);
}

/* The slot of the frame that @o names, or NULL. */
static struct slot *find_slot(struct follow *f, const ZydisDecodedOperand *o)
{
	for (unsigned int i = 0; i < f->nr_slots; i++)
		if (f->slots[i].reg == gpr(o->mem.base) && f->slots[i].disp == o->mem.disp.value)
			return &f->slots[i];
	return NULL;
}

/* If @is, the address goes where it is not followed. */
static void note_lost(struct follow *f, bool is)
{
	if (f->compared && !f->behind)
		f->compared->any |= is;
}

/* If @is, the program reads by the address, and may do anything else with it. */
static void note_anything(struct follow *f, bool is)
{
	f->read |= is;
	note_lost(f, is);
}

static void store(struct follow *f, const ZydisDecodedOperand *to, bool address)
{
	struct slot *slot = find_slot(f, to);

	if (slot && !address)
		*slot = f->slots[--f->nr_slots];
	else if (!slot && address && f->nr_slots < MAX_SLOTS)
		f->slots[f->nr_slots++] = (struct slot){gpr(to->mem.base), to->mem.disp.value};
	else
		note_lost(f, !slot && address);
}

/* What @cell names once the file is loaded: *@name, a function of another module, or the address. */
static uint64_t cell_at(const struct mp_cfg_build *b, uint64_t cell, const char **name)
{
	const struct mp_reloc *rel = mp_elf_dyn_reloc_at(b->elf, cell);

	*name = NULL;
	if (!rel)
		return 0;
	if (rel->type == R_X86_64_RELATIVE)
		return (uint64_t)rel->addend;
	if (rel->type == R_X86_64_IRELATIVE) {
		*name = "memcmp"; /* only functions of strings and memory have several versions */
		return 0;
	}
	if (rel->type != R_X86_64_JUMP_SLOT && rel->type != R_X86_64_GLOB_DAT)
		return 0;
	if (rel->sym && rel->sym_shndx != SHN_UNDEF)
		return rel->sym_value + (uint64_t)rel->addend;
	if (rel->sym < b->elf->nr_symbols - b->first_dynsym)
		*name = b->elf->symbols[b->first_dynsym + rel->sym].name;
	return 0;
}

/* The cell through which the stub at @at jumps; 0: that is no stub. Stubs of mold set %r11d first. */
static uint64_t stub_cell(const struct mp_cfg_build *b, uint32_t at)
{
	uint64_t vaddr = mp_space_vaddr(b->index, at);

	for (int i = 0; i < 3; i++) {
		const uint8_t *bytes = mp_space_bytes(b->index, at, 15);
		struct mp_insn insn;

		if (!bytes || mp_insn_decode(bytes, 15, vaddr, &insn))
			return 0;
		if (insn.kind == MP_INSN_IJUMP)
			return insn.rip_relative ? insn.target : 0;
		if (!insn.endbr64 && memcmp(bytes, "\x41\xbb", 2) != 0)
			return 0;
		at += insn.len;
		vaddr += insn.len;
	}
	return 0;
}

static void follow_from(struct follow *f, uint32_t at, unsigned int depth);

static void note_compared(struct compared *to, uint32_t at, uint8_t sides)
{
	if (!to)
		return;
	if (to->nr == sizeof(to->sides)) {
		to->any = true;
		return;
	}
	to->at[to->nr] = at;
	to->sides[to->nr++] = sides;
}

/* The function at @target, or behind @cell, gets the address in @f->regs. */
static void enter(struct follow *f, uint64_t target, uint64_t cell, unsigned int depth)
{
	uint32_t at = mp_space_at(f->b->index, target);
	struct follow inner = {.b = f->b,
			       .compared = f->compared,
			       .entered = f->entered,
			       .far = f->far,
			       .behind = f->behind};
	struct entered *e;
	uint16_t regs;
	const char *name = NULL;

	if (!(f->regs & ARGUMENTS))
		return;
	if (!cell && at != MP_NONE && mp_part_at(f->b->index, at) == MP_NONE)
		cell = stub_cell(f->b, at);
	if (cell) {
		target = cell_at(f->b, cell, &name);
		at = mp_space_at(f->b->index, target);
	}
	for (size_t i = 0; name && i < sizeof(readers) / sizeof(readers[0]); i++)
		if (!strcmp(name, readers[i].name))
			f->read |= f->regs & readers[i].reads;
	if (name || depth == MAX_DEPTH || at == MP_NONE || mp_part_at(f->b->index, at) == MP_NONE) {
		note_lost(f, true);
		return;
	}
	inner.regs = regs = f->regs & ARGUMENTS;
	if (f->compared) {
		follow_from(&inner, at, depth + 1);
		return;
	}
	e = &f->entered[(at * 31 + regs) % NR_ENTERED];
	if (e->at != at || e->regs != regs || e->depth != depth + 1 || e->far != f->far) {
		follow_from(&inner, at, depth + 1);
		*e = (struct entered){
			at,	    regs,	    (uint8_t)(depth + 1), f->far,
			inner.read, inner.computed, inner.ordered,	  inner.equal};
	}
	f->read |= e->read;
	f->computed |= e->computed;
	f->ordered |= e->ordered;
	f->equal |= e->equal;
}

/*
 * The function that the call at @at through @reg calls, if a constant before the call says so: its address, or
 * its distance from the GOT, if the GOT's address is added.
 */
static uint64_t callee(const struct mp_cfg_build *b, uint32_t at, uint8_t reg)
{
	uint32_t part = mp_part_at(b->index, at),
		 start = part == MP_NONE ? at : b->index->parts[part].at;
	uint64_t base = 0;

	for (unsigned int n = 0; at > start && n < BEFORE_CALL;) {
		ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction z;
		const uint8_t *bytes;

		if (!mp_bit(b->starts, --at))
			continue;
		n++;
		bytes = mp_space_bytes(b->index, at, 15);
		if (!bytes || ZYAN_FAILED(ZydisDecoderDecodeFull(mp_decoder(), bytes, 15, &z, o)))
			return 0;
		if (z.operand_count < 2 || o[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    gpr(o[0].reg.value) != reg)
			continue;
		if (z.mnemonic == ZYDIS_MNEMONIC_ADD)
			base = b->got;
		else
			return z.mnemonic == ZYDIS_MNEMONIC_MOV &&
					       o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE
				       ? base + o[1].imm.value.u
				       : 0;
	}
	return 0;
}

static void look_at_memory(struct follow *f, const ZydisDecodedInstruction *z,
			   const ZydisDecodedOperand *o)
{
	for (unsigned int i = 0; i < z->operand_count; i++)
		/* A distance from the GOT is an address only beside the GOT's. */
		if (o[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    o[i].mem.type == ZYDIS_MEMOP_TYPE_MEM && z->mnemonic != ZYDIS_MNEMONIC_NOP &&
		    (!f->from_got || (o[i].mem.base != ZYDIS_REGISTER_NONE &&
				      o[i].mem.index != ZYDIS_REGISTER_NONE)) &&
		    (holds(f, o[i].mem.base) || holds(f, o[i].mem.index)))
			f->read = true;
}

/* The instruction adds something to the address. */
static void note_sum(struct follow *f, uint32_t at, bool first, bool second)
{
	f->computed |= !f->from_got;
	note_compared(f->compared, at, (uint8_t)(first | second << 1));
	f->from_got = false;
}

static bool is_number_of_code(const struct mp_cfg_build *b, const ZydisDecodedOperand *o)
{
	uint32_t at = o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE
			      ? mp_space_at(b->index, o->imm.value.u)
			      : MP_NONE;

	return at != MP_NONE && mp_space_is_text(b->index, at);
}

/* Does the operand begin at a slot of the frame that has the address? */
static bool is_any_slot(const struct follow *f, const ZydisDecodedOperand *o)
{
	for (unsigned int i = 0; i < f->nr_slots && o->type == ZYDIS_OPERAND_TYPE_MEMORY; i++)
		if (o->mem.index == ZYDIS_REGISTER_NONE && f->slots[i].reg == gpr(o->mem.base) &&
		    f->slots[i].disp == o->mem.disp.value)
			return true;
	return false;
}

/* Does the instruction compute with the address in some other way? */
static bool is_lost(const struct follow *f, const ZydisDecodedInstruction *z,
		    const ZydisDecodedOperand *o)
{
	bool is = false;

	if (z->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || z->mnemonic == ZYDIS_MNEMONIC_CMP ||
	    z->mnemonic == ZYDIS_MNEMONIC_TEST)
		return false;
	for (unsigned int i = 0; i < z->operand_count; i++)
		is |= o[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ &&
		      (o[i].type == ZYDIS_OPERAND_TYPE_REGISTER ? holds(f, o[i].reg.value)
								: is_any_slot(f, &o[i]));
	return is;
}

/* The registers that hold the address behind the instruction at @at; before its writes are known. */
static uint16_t moved_to(struct follow *f, const ZydisDecodedInstruction *z,
			 const ZydisDecodedOperand *o, uint32_t at)
{
	uint8_t to = o[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? gpr(o[0].reg.value) : 0xff;
	bool reg1 = z->operand_count > 1 && o[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
	bool had = to != 0xff && f->regs >> to & 1, has = reg1 && holds(f, o[1].reg.value);

	/* Another move of the stack pointer: what is popped then is not known. */
	if (to == RSP || z->mnemonic == ZYDIS_MNEMONIC_LEAVE)
		f->pushes = 0;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		had |= is_slot(&o[0]) && find_slot(f, &o[0]);
		f->pushes = f->pushes << 1 | had;
		return 0;
	case ZYDIS_MNEMONIC_POP:
		had = f->pushes & 1;
		f->pushes >>= 1;
		return had && to != 0xff ? 1u << to : 0;
	case ZYDIS_MNEMONIC_XCHG:
		had |= is_slot(&o[0]) && find_slot(f, &o[0]);
		if (is_slot(&o[0]))
			store(f, &o[0], has);
		return (has && to != 0xff ? 1u << to : 0) | (had ? 1u << gpr(o[1].reg.value) : 0);
	case ZYDIS_MNEMONIC_MOV:
		if (is_slot(&o[0]))
			store(f, &o[0], has);
		else
			note_lost(f, has && to == 0xff);
		has |= is_slot(&o[1]) && find_slot(f, &o[1]);
		note_lost(f, has && o[0].size != 64);
		return to != 0xff && o[0].size == 64 && has ? 1u << to : 0;
	case ZYDIS_MNEMONIC_LEA:
		had = holds(f, o[1].mem.base);
		has = holds(f, o[1].mem.index);
		if ((had || has) && o[1].mem.base != ZYDIS_REGISTER_NONE &&
		    o[1].mem.index != ZYDIS_REGISTER_NONE)
			note_sum(f, at, had, has);
		has |= had;
		return to != 0xff && has ? 1u << to : 0;
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_VMOVQ:
		has |= is_slot(&o[1]) && find_slot(f, &o[1]);
		note_anything(f, has && (f->compared || mp_cfg_sums_vectors(f->b, at, BUDGET)));
		return 0;
	case ZYDIS_MNEMONIC_XOR:
		/* The C library hides pointers by a word of the thread's. */
		if (o[1].type == ZYDIS_OPERAND_TYPE_MEMORY && o[1].mem.segment == ZYDIS_REGISTER_FS)
			return 0;
		has |= is_slot(&o[1]) && find_slot(f, &o[1]);
		/* fall through */
	case ZYDIS_MNEMONIC_BSWAP:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_NOT:
		/* Nothing in data counts from the result, as it may from a sum. */
		note_anything(f, (had || has) && !(reg1 && gpr(o[1].reg.value) == to));
		return 0;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		has |= is_slot(&o[1]) && find_slot(f, &o[1]);
		if ((had || has) && o[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			f->from_got &= z->mnemonic == ZYDIS_MNEMONIC_ADD;
			note_sum(f, at, had, has);
		} else if (had && is_number_of_code(f->b, &o[1])) {
			note_compared(f->compared, at, 1);
		}
		note_lost(f, o[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE && is_any_slot(f, &o[0]));
		return to != 0xff && (had || (has && z->mnemonic == ZYDIS_MNEMONIC_ADD)) ? 1u << to
											 : 0;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_AND: return had ? 1u << to : 0;
	case ZYDIS_MNEMONIC_SYSCALL: f->read |= (f->regs & TO_KERNEL) != 0; return 0;
	default:
		if (z->meta.category == ZYDIS_CATEGORY_CMOV)
			return had || has ? 1u << to : 0;
		note_lost(f, f->compared && is_lost(f, z, o));
		return 0;
	}
}

static void look_at_order(struct follow *f, const ZydisDecodedInstruction *z,
			  const ZydisDecodedOperand *o, uint32_t at)
{
	if (z->mnemonic != ZYDIS_MNEMONIC_CMP || f->from_got)
		return;
	if (o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		if (f->compared && is_number_of_code(f->b, &o[1]) &&
		    (is_slot(&o[0]) ? find_slot(f, &o[0]) != NULL
				    : o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
					      holds(f, o[0].reg.value)))
			note_compared(f->compared, at, 1);
		return;
	}
	for (int i = 0; i < 2; i++)
		if (o[i].type == ZYDIS_OPERAND_TYPE_REGISTER
			    ? holds(f, o[i].reg.value)
			    : is_slot(&o[i]) && find_slot(f, &o[i]) != NULL) {
			f->ordered |= mp_cfg_asks_order(f->b, at + z->length);
			f->equal = true;
			note_compared(f->compared, at, (uint8_t)(1 << i));
		}
}

/* mov $size, %r10d; mov $size, %r11d, or xor of it: the last instructions before @call, with @before bytes? */
static bool gives_sizes(const uint8_t *call, uint64_t before)
{
	static const uint8_t zero[] = {0x45, 0x31, 0xdb};

	if (before >= 12 && call[-12] == 0x41 && call[-11] == 0xba && call[-6] == 0x41 &&
	    call[-5] == 0xbb)
		return true;
	return before >= 9 && call[-9] == 0x41 && call[-8] == 0xba &&
	       !memcmp(call - sizeof(zero), zero, sizeof(zero));
}

/*
 * Code for a split stack jumps over @size bytes that ask for more, call an allocator and return: the allocator
 * returns to the byte behind the ret, with the same arguments. Return: @size; 0: it is something else.
 */
static uint8_t asks_for_stack(const uint8_t *bytes, size_t avail, uint64_t size)
{
	return size >= 6 && size <= 32 && size <= avail && bytes[size - 1] == 0xc3 &&
			       bytes[size - 6] == 0xe8 && gives_sizes(bytes + size - 6, size - 6)
		       ? (uint8_t)size
		       : 0;
}

/* A branch leads to @target. */
static void note_branch(struct follow *f, uint64_t target)
{
	struct passed *p = &f->passed;
	uint32_t at = mp_space_at(f->b->index, target);

	if (at - p->from < p->end - p->from) {
		note_lost(f, p->regs && p->at != at);
		p->at = p->regs ? p->at : at;
		p->regs |= f->regs;
	} else if (at != MP_NONE && at > f->ahead) {
		f->ahead = at;
		f->ahead_regs |= f->regs;
	}
}

/* Control leaves the function. Goes on where a branch led before, if anywhere. */
static bool go_back(struct follow *f, uint32_t *at, unsigned int *n)
{
	if (f->nr_slots || !f->passed.regs || f->went_back)
		return false;
	f->went_back = true;
	*at = f->passed.at;
	*n = 0;
	f->regs = f->passed.regs;
	f->passed = (struct passed){0};
	return true;
}

/*
 * Takes the instruction at @vaddr if it is a direct call, or certainly changes nothing of @f: it names neither a register
 * nor a slot with the address, and control goes on behind. Nearly all are such. Return: its bytes; 0: it is another one.
 */
static uint8_t step_quickly(struct follow *f, const uint8_t *bytes, size_t avail, uint64_t vaddr,
			    unsigned int depth)
{
	struct mp_insn_operands o;
	struct mp_insn insn;

	if (mp_insn_decode(bytes, avail, vaddr, &insn))
		return 0;
	if (insn.kind == MP_INSN_COND) {
		note_branch(f, insn.target);
		return insn.len + asks_for_stack(bytes + insn.len, avail - insn.len,
						 insn.target - vaddr - insn.len);
	}
	if (insn.kind == MP_INSN_CALL && !(f->regs >> RSP & 1)) {
		enter(f, insn.target, 0, depth);
		f->regs &= (uint16_t)~RESULT;
		return insn.len;
	}
	if (!mp_insn_operands(bytes, &insn, &o) || o.registers & f->regs)
		return 0;
	for (unsigned int i = 0; i < f->nr_slots; i++)
		if (f->slots[i].reg == o.base && f->slots[i].disp == o.disp)
			return 0;
	return insn.len;
}

/* Is everything known after @n instructions, or is that enough? */
static bool is_done(struct follow *f, unsigned int n)
{
	if (!f->compared)
		return f->read || n >= (f->nr_slots || f->pushes ? FRAME_BUDGET : BUDGET);
	if (++f->compared->steps <= LOOP_BUDGET)
		return false;
	f->compared->any = true;
	return true;
}

/* Return: the target of the call or jump before @next; 0: it is in *@cell, or not known. */
static uint64_t find_target(struct follow *f, const ZydisDecodedInstruction *z,
			    const ZydisDecodedOperand *o, uint32_t at, uint64_t next,
			    uint64_t *cell)
{
	uint64_t target = 0;

	if (o[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return next + (uint64_t)o[0].imm.value.s;
	if (o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && f->regs & ARGUMENTS) {
		target = callee(f->b, at, gpr(o[0].reg.value));
		/* It may be any function of a library. */
		note_anything(f, !target && f->far && z->meta.category == ZYDIS_CATEGORY_CALL &&
					 f->regs & (1u << RDI | 1u << RSI));
	} else if (o[0].type == ZYDIS_OPERAND_TYPE_MEMORY && o[0].mem.base == ZYDIS_REGISTER_RIP) {
		*cell = next + (uint64_t)o[0].mem.disp.value;
	} else if (o[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		/* Code for any distance finds a cell of the GOT by registers alone. */
		note_anything(f, f->far && f->regs & (1u << RDI | 1u << RSI));
	}
	return target;
}

/* A jump before @from goes forward to @to. */
static void pass_over(struct follow *f, uint32_t from, uint32_t to)
{
	note_lost(f, f->passed.regs);
	if (!f->passed.end || f->passed.end >= from)
		f->passed.from = from;
	f->passed.end = to;
	f->passed.regs = 0;
}

/* The registers that the instruction writes. */
static uint16_t written(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	uint16_t regs = 0;

	for (unsigned int i = 0; i < z->operand_count; i++)
		if (o[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) && gpr(o[i].reg.value) != 0xff)
			regs |= (uint16_t)(1u << gpr(o[i].reg.value));
	return regs;
}

static void follow_from(struct follow *f, uint32_t at, unsigned int depth)
{
	struct mp_cfg_build *b = f->b;
	const uint32_t part = mp_part_at(b->index, at);
	uint32_t loop = MP_NONE; /* its start */
	unsigned int n = 0;

	while (part != MP_NONE && mp_part_at(b->index, at) == part &&
	       (f->regs || f->nr_slots || f->pushes || f->passed.regs) && !is_done(f, n++)) {
		const struct mp_span *span = mp_space_span(b->index, at);
		ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction z;
		uint16_t gains;
		uint64_t next, target = 0, cell = 0;
		uint8_t done = !span || f->pushes
				       ? 0
				       : step_quickly(f, span->bytes + (at - span->at),
						      span->size - (at - span->at),
						      span->vaddr + (at - span->at), depth);

		if (done) {
			at += done;
			continue;
		}
		if (!span ||
		    ZYAN_FAILED(ZydisDecoderDecodeFull(mp_decoder(), span->bytes + (at - span->at),
						       span->size - (at - span->at), &z, o)))
			return;
		next = span->vaddr + (at - span->at) + z.length;
		look_at_memory(f, &z, o);
		look_at_order(f, &z, o, at);
		if (z.meta.category == ZYDIS_CATEGORY_COND_BR &&
		    o[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			note_branch(f, next + (uint64_t)o[0].imm.value.s);
		if (z.meta.category == ZYDIS_CATEGORY_CALL ||
		    z.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
			target = find_target(f, &z, o, at, next, &cell);
		if (z.meta.category == ZYDIS_CATEGORY_CALL) {
			enter(f, target, cell, depth);
			f->regs &= (uint16_t) ~(target ? RESULT : CALLER_SAVED);
		} else if (z.meta.category == ZYDIS_CATEGORY_UNCOND_BR) {
			uint32_t to = mp_space_at(b->index, target);
			bool inside = to != MP_NONE && mp_part_at(b->index, to) == part;

			if (!inside && (target || cell))
				enter(f, target, cell, depth);
			else
				note_lost(f, !inside && (f->regs || f->nr_slots));
			/* What is kept in the frame may be read anywhere behind. */
			if (!inside && go_back(f, &at, &n))
				continue;
			if (!inside && !f->nr_slots)
				return;
			if (!f->nr_slots && to >= at + z.length) {
				pass_over(f, at + z.length, to);
			} else if (!f->nr_slots && f->compared) {
				if (to == loop && go_back(f, &at, &n))
					continue;
				if (to == loop)
					return;
				loop = to;
			}
			note_lost(f, f->nr_slots && f->regs);
			f->behind |= f->nr_slots > 0;
			at = f->nr_slots ? at + z.length : to;
			f->regs = f->nr_slots ? 0 : f->regs;
			continue;
		} else if (z.meta.category == ZYDIS_CATEGORY_RET ||
			   z.mnemonic == ZYDIS_MNEMONIC_UD2 || z.mnemonic == ZYDIS_MNEMONIC_HLT) {
			if (go_back(f, &at, &n))
				continue;
			note_lost(f, at < f->ahead && f->ahead_regs);
			f->regs = 0;
			f->behind = true;
		}
		gains = moved_to(f, &z, o, at);
		f->regs &= (uint16_t)~written(&z, o);
		f->regs |= gains;
		at += z.length;
	}
}

struct looking {
	struct entered *entered;
	struct mp_border *borders;
	uint32_t nr_borders, cap_borders;
};

/* The instruction at @at names @target. */
static int note(struct mp_cfg_build *b, struct looking *x, uint32_t at, uint32_t target, bool loads,
		const struct follow *f)
{
	uint32_t part = mp_part_at(b->index, target);
	bool read = f->read && !f->direct, used = read || f->computed || f->ordered;

	/* Labels, and constants between instructions, are other passes' matter. */
	if (part != MP_NONE && target != b->index->parts[part].at &&
	    part == mp_part_at(b->index, at)) {
		if (!f->computed)
			return 0;
		return mp_push(b->summed, b->nr_summed, b->cap_summed, target);
	}
	if (used || f->equal || part == MP_NONE) {
		if (mp_push(x->borders, x->nr_borders, x->cap_borders,
			    (struct mp_border){at, target, loads, used, read, f->computed,
					       f->ordered, f->equal}))
			return -ENOMEM;
	}
	if ((f->read || f->computed) && part != MP_NONE && target == b->index->parts[part].at)
		mp_func_problem(&b->cfg->funcs[b->index->parts[part].func], MP_PROBLEM_READ,
				mp_space_vaddr(b->index, target));
	if (!f->computed)
		return 0;
	return mp_push(b->bases, b->nr_bases, b->cap_bases, mp_space_vaddr(b->index, target));
}

/* True if code for any distance finds the GOT there: by a place of its own, and a distance of 8 bytes. */
static bool finds_got(const struct mp_cfg_build *b, uint32_t at, uint32_t target)
{
	const struct mp_span *span = mp_space_span(b->index, at);

	if (!b->got || mp_part_at(b->index, at) != mp_part_at(b->index, target))
		return false;
	for (int i = 0; i < NEAR_GOT; i++) {
		const uint8_t *bytes = span->bytes + (at - span->at);
		struct mp_insn insn;
		uint64_t imm;

		if (mp_insn_decode(bytes, span->size - (at - span->at), 0, &insn))
			return false;
		if (i && insn.imm_size == 8) {
			memcpy(&imm, bytes + insn.imm_off, sizeof(imm));
			if (mp_space_vaddr(b->index, target) + imm == b->got)
				return true;
		}
		at += insn.len;
	}
	return false;
}

/*
 * The instruction at @at names @target: by its own operand, or by the cell @loads. Return: false: it is none of those
 * that matter.
 */
static bool follow_operand(struct follow *f, uint32_t at, uint32_t target, bool loads)
{
	struct mp_cfg_build *b = f->b;
	/* Many numbers equal an address by chance, few that of a function, or of its part for cold code. */
	bool number;
	uint32_t part;
	const struct mp_span *span = mp_space_span(b->index, at);
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	uint8_t to;

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(mp_decoder(), span->bytes + (at - span->at),
					       span->size - (at - span->at), &z, o)))
		return false;
	/* The GOT counts from this place, which is no label. */
	if (finds_got(b, at, target)) {
		f->computed = target != b->index->parts[mp_part_at(b->index, target)].at;
		return f->computed;
	}
	number = o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !b->elf->relinkable;
	part = mp_part_at(b->index, target);
	if (number && part != MP_NONE && b->index->parts[part].at != target)
		return false;
	to = o[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? gpr(o[0].reg.value) : 0xff;
	for (unsigned int i = 0; i < z.operand_count && !loads; i++)
		f->read |= o[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			   o[i].mem.type == ZYDIS_MEMOP_TYPE_MEM &&
			   z.mnemonic != ZYDIS_MNEMONIC_NOP &&
			   (uint64_t)o[i].mem.disp.value +
					   (o[i].mem.base == ZYDIS_REGISTER_RIP
						    ? mp_space_vaddr(b->index, at) + z.length
						    : 0) ==
				   mp_space_vaddr(b->index, target);
	f->direct = f->read;
	if (z.mnemonic == ZYDIS_MNEMONIC_LEA || z.mnemonic == ZYDIS_MNEMONIC_MOV) {
		f->far = o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && z.raw.imm[0].size == 64;
		f->from_got = f->far && z.raw.imm[0].value.u != mp_space_vaddr(b->index, target);
		if (is_slot(&o[0]))
			store(f, &o[0], true);
		else if (to != 0xff)
			f->regs = (uint16_t)(1u << to);
		follow_from(f, at + z.length, 0);
	} else if (z.mnemonic == ZYDIS_MNEMONIC_ADD || z.mnemonic == ZYDIS_MNEMONIC_SUB) {
		f->computed = o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE || loads;
		note_compared(f->compared, at, 3);
	} else if (z.mnemonic == ZYDIS_MNEMONIC_CMP) {
		f->equal = o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE || loads;
		f->ordered = f->equal && mp_cfg_asks_order(b, at + z.length);
		note_compared(f->compared, at, 3);
	}
	return true;
}

static int look_at(struct mp_cfg_build *b, struct looking *x, uint32_t at, uint32_t target,
		   bool loads)
{
	struct follow f = {.b = b, .entered = x->entered};

	return follow_operand(&f, at, target, loads) ? note(b, x, at, target, loads, &f) : 0;
}

/* See mp_meet. */
static bool meet(struct mp_cfg_build *b, const struct mp_border *x, const struct mp_border *y,
		 bool perhaps)
{
	struct compared at_x = {.nr = 0}, at_y = {.nr = 0};
	struct follow f = {.b = b, .compared = &at_x}, g = {.b = b, .compared = &at_y};

	if (b->loop_steps > LOOPS_BUDGET)
		return true;
	follow_operand(&f, x->at, x->target, x->loads);
	follow_operand(&g, y->at, y->target, y->loads);
	b->loop_steps += at_x.steps + at_y.steps;
	for (unsigned int i = 0; i < at_x.nr; i++)
		for (unsigned int k = 0; k < at_y.nr; k++)
			if (at_x.at[i] == at_y.at[k] && (at_x.sides[i] | at_y.sides[k]) == 3)
				return true;
	return perhaps && (at_x.any || at_y.any);
}

/* Looks at each instruction that names code: by its operand, or by a cell that the loader fills in. */
static int look_at_all(struct mp_cfg_build *b, struct looking *x)
{
	const struct mp_section *got = mp_elf_section(b->elf, ".got");
	int ret = 0;

	for (uint32_t i = 0; !ret && i < b->nr_code_refs; i++)
		ret = look_at(b, x, b->code_refs[i].at, b->code_refs[i].target, false);
	for (uint32_t i = 0; !ret && got && i < b->nr_refs; i++) {
		uint64_t cell = mp_space_vaddr(b->index, b->ref_list[i].target);
		const char *name;
		uint32_t at;

		if (cell - got->vaddr >= got->size)
			continue;
		at = mp_space_at(b->index, cell_at(b, cell, &name));
		if (at != MP_NONE && mp_space_is_text(b->index, at))
			ret = look_at(b, x, b->ref_list[i].at, at, true);
	}
	return ret;
}

int mp_cfg_find_reads(struct mp_cfg_build *b)
{
	struct looking x = {.entered = calloc(NR_ENTERED, sizeof(*x.entered))};
	int ret = x.entered ? look_at_all(b, &x) : -ENOMEM;

	if (!ret)
		ret = mp_cfg_mark_between(b, x.borders, x.nr_borders, meet);
	free(x.borders);
	free(x.entered);
	return ret;
}
