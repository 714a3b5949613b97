// SPDX-License-Identifier: Apache-2.0
/*
 * verify_read - marks functions whose bytes the original may read as data, and finds the addresses in
 * code that it computes with.
 *
 * A program that copies a function's bytes must find the old ones, so no byte of the function may
 * change, and nothing may lead to a copy. From each operand with an address in code, the address is
 * followed through registers, words of the frame and arguments. Data may count from an address to
 * which code adds something, or that it subtracts: verify_place needs these. Called by verify_scan.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/known/verify_bounds.h"
#include "editor/verify/known/verify_cell.h"
#include "editor/verify/known/verify_read.h"
#include "editor/verify/read/verify_effect.h"

/* Number of instructions that are read behind an operand, without and with the address in the frame. */
#define NEAR 24
#define FAR  96
/* The same, for the end of a loop; and for all that are asked for. */
#define LOOP  16384
#define LOOPS (1u << 23)
#define CALLS 2
/* Number of instructions behind a function's first operand, and before an indirect call. */
#define NEAR_GOT    16
#define BEFORE_CALL 16
#define NEAR_TEST   4
#define WORDS	    4

#define BIT(n) ((uint16_t)(1u << (n)))
/* rax rcx rdx rsi rdi r8 to r11, and the registers of arguments */
#define LOST (BIT(0) | BIT(1) | BIT(2) | BIT(6) | BIT(7) | BIT(8) | BIT(9) | BIT(10) | BIT(11))
/* gcc knows which registers a function of the same file changes: other ones than the result's may stay. */
#define KNOWN_LOST    BIT(0)
#define ARGUMENTS     (BIT(1) | BIT(2) | BIT(6) | BIT(7) | BIT(8) | BIT(9))
#define FIRST	      BIT(7)
#define SECOND	      BIT(6)
#define THIRD	      BIT(2)
#define FOURTH	      BIT(1)
#define STACK_POINTER BIT(4)

/* The result of a trace from the start of a function: many operands lead to the same functions. */
struct passed {
	uint64_t to;
	uint16_t have;
	uint8_t calls; /* 0: free */
	bool far, read, computed, compared, equals;
};

#define NR_PASSED 4096

/* Instructions that compare an address, or add or subtract it. */
struct compares {
	struct {
		uint64_t behind;  /* the end of the instruction */
		bool left, right; /* which operand the address is */
	} list[64];
	uint32_t nr, steps;
	bool more; /* perhaps elsewhere, too */
};

struct trace {
	const struct vf *vf;
	struct compares *compares; /* to be found, instead of the answers below; or NULL */
	struct passed *passed;	   /* NR_PASSED: the last ones */
	uint16_t have;		   /* general registers with the address */
	struct {
		ZydisRegister base;
		int64_t disp;
	} word[WORDS]; /* of the frame */
	uint32_t nr_words;
	uint64_t pushed; /* bit n: the word that was pushed n words before the last one has the address */
	bool far;	 /* code for any distance, where most calls go through registers */
	bool from_got; /* the registers have a distance from the GOT, until its address is added */
	bool read, computed;
	bool compared; /* the program asks what lies before or behind the address */
	bool equals;   /* it asks, in any way, whether something else is the address */
	/* A jump forward passed over out_from to out_to. A later branch leads to @again there, with these registers. */
	uint64_t out_from, out_to, again;
	uint16_t again_have;
	bool was_again;	       /* it was read from there */
	uint64_t forward;      /* the last place to which a branch leads forward */
	uint16_t forward_have; /* the registers at such branches */
	bool torn; /* control does not come here from before: words of the frame may hold anything */
};

static void add_compare(struct trace *t, uint64_t behind, bool left, bool right)
{
	struct compares *to = t->compares;

	if (!to)
		return;
	if (to->nr == sizeof(to->list) / sizeof(to->list[0])) {
		to->more = true;
		return;
	}
	to->list[to->nr].behind = behind;
	to->list[to->nr].left = left;
	to->list[to->nr++].right = right;
}

/* Does the address go where no trace follows? */
static void lose(struct trace *t, bool lost)
{
	if (t->compares && !t->torn)
		t->compares->more |= lost;
}

/* If @reads: the program reads by the address in a way that is not followed. It may also compare the address. */
static void read_somehow(struct trace *t, bool reads)
{
	t->read |= reads;
	lose(t, reads);
}

/* Arguments at which functions of libraries read or write bytes. */
static uint16_t read_arguments(const char *name)
{
	static const struct {
		uint16_t arguments;
		const char *names; /* each between two blanks */
	} readers[] = {
		{FIRST, " memcmp bcmp bcopy memchr fwrite fwrite_unlocked mprotect pkey_mprotect "
			"memcpy memmove mempcpy __memcpy_chk __memmove_chk __mempcpy_chk "
			"memset __memset_chk bzero explicit_bzero fread fread_unlocked "
			"strlen strnlen strcmp strncmp "},
		{SECOND,
		 " memcpy memmove mempcpy __memcpy_chk __memmove_chk __mempcpy_chk memcmp bcmp "
		 "write pwrite pwrite64 send sendto read pread pread64 recv recvfrom bcopy "
		 "strcmp strncmp crc32 crc32_z adler32 adler32_z EVP_DigestUpdate HMAC_Update "},
		{THIRD, " ptrace syscall "},
		{FOURTH, " pwrite pwrite64 syscall "},
	};
	size_t len = strlen(name);
	uint16_t read = 0;

	for (size_t i = 0; len && i < sizeof(readers) / sizeof(readers[0]); i++)
		for (const char *at = readers[i].names; (at = strstr(at, name)); at++)
			if (at[-1] == ' ' && at[len] == ' ')
				read |= readers[i].arguments;
	return read;
}

static uint16_t bit_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15
		       ? BIT(whole - ZYDIS_REGISTER_RAX)
		       : 0;
}

static uint16_t bit_of_operand(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER ? bit_of(op->reg.value) : 0;
}

/* Return: 0 to WORDS - 1: the word @op of the frame has the address; -1: it has not, or is none. */
static int frame_word(const struct trace *t, const ZydisDecodedOperand *op)
{
	for (uint32_t i = 0; op->type == ZYDIS_OPERAND_TYPE_MEMORY && i < t->nr_words; i++)
		if (op->size == 64 && op->mem.index == ZYDIS_REGISTER_NONE &&
		    op->mem.base == t->word[i].base && op->mem.disp.value == t->word[i].disp)
			return (int)i;
	return -1;
}

static void write_frame(struct trace *t, const ZydisDecodedOperand *op, bool address)
{
	int known = frame_word(t, op);

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->size != 64 ||
	    op->mem.index != ZYDIS_REGISTER_NONE ||
	    (op->mem.base != ZYDIS_REGISTER_RSP && op->mem.base != ZYDIS_REGISTER_RBP))
		return;
	if (known >= 0 && !address) {
		t->word[known] = t->word[--t->nr_words];
	} else if (known < 0 && address && t->nr_words < WORDS) {
		t->word[t->nr_words].base = op->mem.base;
		t->word[t->nr_words++].disp = op->mem.disp.value;
	} else {
		lose(t, known < 0 && address);
	}
}

/* The cell through which a stub at @at jumps, perhaps behind mov $n, %r11d, as those of mold do; 0: it is none. */
static uint64_t jump_cell(const struct vf *vf, uint64_t at)
{
	for (int i = 0; i < 3; i++) {
		const uint8_t *b = mp_elf_bytes(vf->o, at, 15);
		struct vf_insn insn;

		if (!b || !vf_decode(b, 15, at, &insn))
			return 0;
		if (insn.kind == VF_IJMP_MEM)
			return insn.disp_off ? insn.target : 0;
		if (memcmp(b, "\xf3\x0f\x1e\xfa", 4) && memcmp(b, "\x41\xbb", 2))
			return 0;
		at += insn.len;
	}
	return 0;
}

/*
 * What the instruction at @call, `call *%reg', calls if a constant says so. Code for any distance adds the GOT's
 * address to it. Return: 0: not known.
 */
static uint64_t called(const struct vf *vf, const struct vf_fde *fde, uint64_t call, uint16_t reg)
{
	uint64_t added = 0;
	unsigned int n = 0;

	for (uint64_t at = call; at-- > fde->start && n < BEFORE_CALL;) {
		struct vf_full f;

		if (!vf_bits_get(&vf->old.grid, at))
			continue;
		n++;
		if (!vf_decode_full(vf, at, fde->start + fde->size, &f))
			return 0;
		if (f.z.operand_count < 2 || bit_of_operand(&f.op[0]) != reg)
			continue;
		if (f.z.mnemonic == ZYDIS_MNEMONIC_MOV &&
		    f.op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return added + f.op[1].imm.value.u;
		if (f.z.mnemonic != ZYDIS_MNEMONIC_ADD)
			return 0;
		added = vf->old.got_base;
	}
	return 0;
}

static void trace_from(struct trace *t, uint64_t at, unsigned int calls);

/* Control goes to another function at @to, or to the one that @cell holds. */
static void pass(struct trace *t, uint64_t to, uint64_t cell, unsigned int calls)
{
	const struct vf *vf = t->vf;
	struct trace callee = {.vf = vf,
			       .compares = t->compares,
			       .passed = t->passed,
			       .far = t->far,
			       .torn = t->torn};
	struct passed *p;
	uint16_t have;
	const char *name = NULL;

	if (!(t->have & ARGUMENTS))
		return;
	if (!cell && vf_is_text(vf, to) && !vf_eh_find(&vf->old.eh, to))
		cell = jump_cell(vf, to);
	if (cell)
		to = vf_loaded(vf, cell, &name);
	if (name)
		t->read |= (t->have & read_arguments(name)) != 0;
	if (name || calls >= CALLS || !vf_is_text(vf, to) || !vf_eh_find(&vf->old.eh, to)) {
		lose(t, true);
		return;
	}
	have = callee.have = t->have & ARGUMENTS;
	if (t->compares) {
		trace_from(&callee, to, calls + 1);
		return;
	}
	p = &t->passed[(to * 31 + have) % NR_PASSED];
	if (p->to != to || p->have != have || p->calls != calls + 1 || p->far != t->far) {
		trace_from(&callee, to, calls + 1);
		*p = (struct passed){to,
				     have,
				     (uint8_t)(calls + 1),
				     t->far,
				     callee.read,
				     callee.computed,
				     callee.compared,
				     callee.equals};
	}
	t->read |= p->read;
	t->computed |= p->computed;
	t->compared |= p->compared;
	t->equals |= p->equals;
}

/* Does code from @at on compute with numbers in vector registers? It may only move them. */
static bool computes_in_vectors(const struct vf *vf, uint64_t at)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);
	struct vf_full f;

	for (int n = 0; n < NEAR && vf_decode_full(vf, at, fde->start + fde->size, &f); n++) {
		const char *name = ZydisMnemonicGetString(f.z.mnemonic);

		name += *name == 'v';
		if ((!strcmp(name, "pxor") && f.op[f.z.operand_count - 1].type == f.op[0].type &&
		     f.op[f.z.operand_count - 1].reg.value != f.op[0].reg.value) ||
		    !strncmp(name, "psub", 4) || !strncmp(name, "padd", 4))
			return true;
		at += f.z.length;
	}
	return false;
}

/* What the kernel gets by a system call it may read, or write to. */
#define TO_KERNEL (BIT(2) | BIT(6) | BIT(7) | BIT(8) | BIT(9) | BIT(10))

/* Is the operand a number that is an address of code? */
static bool gives_code(const struct vf *vf, const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && vf_is_text(vf, op->imm.value.u);
}

/* Is the operand memory, of any size, that begins with a word of the frame that has the address? */
static bool at_frame_word(const struct trace *t, const ZydisDecodedOperand *op)
{
	ZydisDecodedOperand word = *op;

	word.size = 64;
	return frame_word(t, &word) >= 0;
}

/* Does an instruction that is not known here compute with the address? */
static bool is_input(const struct trace *t, const struct vf_full *f)
{
	for (uint8_t i = 0; i < f->z.operand_count; i++)
		if ((f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
		    ((t->have & bit_of_operand(&f->op[i])) || at_frame_word(t, &f->op[i])))
			return f->z.mnemonic != ZYDIS_MNEMONIC_CMP &&
			       f->z.mnemonic != ZYDIS_MNEMONIC_TEST &&
			       f->z.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE;
	return false;
}

/* lea of @op, before @behind. Return: it begins with the address, or adds it to something. */
static bool sum_of(struct trace *t, const ZydisDecodedOperand *op, uint64_t behind)
{
	bool base = t->have & bit_of(op->mem.base), index = t->have & bit_of(op->mem.index);

	if ((base || index) && op->mem.base != ZYDIS_REGISTER_NONE &&
	    op->mem.index != ZYDIS_REGISTER_NONE) {
		t->computed |= !t->from_got;
		t->from_got = false;
		add_compare(t, behind, base, index);
	}
	return base || index;
}

/* Return: the register that has the address behind the instruction at @at, or 0. */
static uint16_t result(struct trace *t, const struct vf_full *f, uint64_t at)
{
	const ZydisDecodedOperand *op = f->op;
	uint16_t to = bit_of_operand(&op[0]), from = 0;
	bool has;

	if (f->z.operand_count > 1)
		from = bit_of_operand(&op[1]);
	has = (t->have & from) || (f->z.operand_count > 1 && frame_word(t, &op[1]) >= 0);
	/* Where the stack pointer moves in another way, it is not known which word a pop takes. */
	if (to & STACK_POINTER || f->z.mnemonic == ZYDIS_MNEMONIC_LEAVE)
		t->pushed = 0;
	switch (f->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		has = (t->have & to) || frame_word(t, &op[0]) >= 0;
		t->pushed = t->pushed << 1 | has;
		return 0;
	case ZYDIS_MNEMONIC_POP:
		has = t->pushed & 1;
		t->pushed >>= 1;
		return has ? to : 0;
	case ZYDIS_MNEMONIC_XCHG:
		has = (t->have & to) || frame_word(t, &op[0]) >= 0;
		write_frame(t, &op[0], t->have & from);
		return (t->have & from ? to : 0) | (has ? from : 0);
	case ZYDIS_MNEMONIC_MOV:
		write_frame(t, &op[0], t->have & from);
		lose(t, has && (op[0].size != 64 || (op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
						     frame_word(t, &op[0]) < 0)));
		return has && op[0].size == 64 ? to : 0;
	case ZYDIS_MNEMONIC_LEA: return sum_of(t, &op[1], at + f->z.length) ? to : 0;
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_VMOVQ:
		read_somehow(t, has && (t->compares || computes_in_vectors(t->vf, at)));
		return 0;
	case ZYDIS_MNEMONIC_BSWAP:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_NOT:
	case ZYDIS_MNEMONIC_XOR:
		/* The C library hides pointers so, which it restores before it uses them. */
		if (f->z.mnemonic == ZYDIS_MNEMONIC_XOR &&
		    op[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op[1].mem.segment == ZYDIS_REGISTER_FS)
			return 0;
		/* Of two equal registers, the result is zero. No data counts from any other result. */
		read_somehow(t, from != to && (has || (t->have & to)));
		return 0;
	case ZYDIS_MNEMONIC_SUB:
		lose(t, op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE && at_frame_word(t, &op[0]));
		if (op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE && (has || (t->have & to))) {
			t->computed = true;
			add_compare(t, at + f->z.length, t->have & to, has);
		} else if ((t->have & to) && gives_code(t->vf, &op[1])) {
			add_compare(t, at + f->z.length, true, false);
		}
		return t->have & to;
	case ZYDIS_MNEMONIC_ADD:
		lose(t, op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE && at_frame_word(t, &op[0]));
		if (has || (t->have & to)) {
			t->computed |= op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE && !t->from_got;
			t->from_got = false;
			if (op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || gives_code(t->vf, &op[1]))
				add_compare(t, at + f->z.length, t->have & to, has);
		}
		return has || (t->have & to) ? to : 0;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_AND: return t->have & to;
	case ZYDIS_MNEMONIC_SYSCALL: t->read |= (t->have & TO_KERNEL) != 0; return 0;
	default:
		if (f->z.meta.category == ZYDIS_CATEGORY_CMOV)
			return t->have & (from | to) ? to : 0;
		lose(t, t->compares && is_input(t, f));
		return 0;
	}
}

/* Does the instruction leave all flags alone, and go on behind itself? */
static bool leaves_flags(const ZydisDecodedInstruction *z)
{
	if (z->meta.category == ZYDIS_CATEGORY_RET || z->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
		return false;
	return !z->cpu_flags ||
	       (!z->cpu_flags->tested && !z->cpu_flags->modified && !z->cpu_flags->set_0 &&
		!z->cpu_flags->set_1 && !z->cpu_flags->undefined);
}

/*
 * Does an instruction test whether one number was less than another, without signs? A few that have nothing to do with flags
 * may stand before it.
 */
static bool tests_less(const struct vf *vf, uint64_t at, uint64_t end)
{
	struct vf_full f;

	for (int n = 0; n < NEAR_TEST; n++, at += f.z.length)
		if (!vf_decode_full(vf, at, end, &f))
			return false;
		else if (!leaves_flags(&f.z))
			break;
	switch (f.z.mnemonic) {
	case ZYDIS_MNEMONIC_JB:
	case ZYDIS_MNEMONIC_JNB:
	case ZYDIS_MNEMONIC_JBE:
	case ZYDIS_MNEMONIC_JNBE:
	case ZYDIS_MNEMONIC_SETB:
	case ZYDIS_MNEMONIC_SETNB:
	case ZYDIS_MNEMONIC_SETBE:
	case ZYDIS_MNEMONIC_SETNBE:
	case ZYDIS_MNEMONIC_CMOVB:
	case ZYDIS_MNEMONIC_CMOVNB:
	case ZYDIS_MNEMONIC_CMOVBE:
	case ZYDIS_MNEMONIC_CMOVNBE:
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_SBB: return true;
	default: return false;
	}
}

/* Bytes of a jump and of what it jumps over. */
#define NEAR_STACK 32

/* Does the instruction at @b name a word of the frame with the address, or another place as far from its base? */
static bool may_name_word(const struct trace *t, const struct vf_insn *insn, const uint8_t *b)
{
	for (uint32_t i = 0; insn->base && i < t->nr_words; i++)
		if (vf_base_disp(insn, b) == t->word[i].disp)
			return true;
	return false;
}

/* Do the @size bytes at @b ask for more stack? They give sizes in %r10d and %r11d, call, and return. */
static bool wants_stack(const uint8_t *b, uint64_t size)
{
	const uint8_t *end = b + size;

	if (size < 15 || size > NEAR_STACK || end[-1] != 0xc3 || end[-6] != 0xe8)
		return false;
	/* mov $0, %r11d may be xor %r11d, %r11d. */
	if (end[-9] == 0x45 && end[-8] == 0x31 && end[-7] == 0xdb)
		return end[-15] == 0x41 && end[-14] == 0xba;
	return size >= 18 && end[-12] == 0x41 && end[-11] == 0xbb && end[-18] == 0x41 &&
	       end[-17] == 0xba;
}

/* The start of a loop may lie before the place at which control enters it. */
static void note_branch(struct trace *t, uint64_t to)
{
	if (to >= t->out_from && to < t->out_to) {
		lose(t, t->again_have && to != t->again);
		if (!t->again_have)
			t->again = to;
		t->again_have |= t->have;
	} else if (to > t->forward) {
		t->forward = to;
		t->forward_have |= t->have;
	}
}

/* The trace leaves the function. Sets *@at to the start of such a loop. Return: false: there is none. */
static bool loops(struct trace *t, uint64_t *at, unsigned int *n)
{
	if (t->nr_words || !t->again_have || t->was_again)
		return false;
	t->was_again = true;
	*at = t->again;
	*n = 0;
	t->have = t->again_have;
	t->again_have = 0;
	t->out_from = t->out_to = 0;
	return true;
}

/* Control does not go on at @at from before, but perhaps by a branch. */
static void tear(struct trace *t, uint64_t at)
{
	lose(t, at <= t->forward && t->forward_have);
	t->torn = true;
	t->have = 0;
}

/*
 * Passes the instruction at @at if it is a direct call, or says nothing of the address: it uses no register and no word
 * with it, and control goes on behind. Nearly all are such. Return: its bytes; 0: it is another one.
 */
static uint8_t pass_by(struct trace *t, uint64_t at, uint64_t end, unsigned int calls)
{
	const uint8_t *b = at < end ? mp_elf_bytes(t->vf->o, at, end - at) : NULL;
	struct vf_insn insn;

	if (!b || !vf_decode(b, end - at, at, &insn))
		return 0;
	if (insn.kind == VF_CALL && !(t->have & STACK_POINTER)) {
		pass(t, insn.target, 0, calls);
		t->have &= (uint16_t)~KNOWN_LOST;
		return insn.len;
	}
	if (insn.kind == VF_JCC)
		note_branch(t, insn.target);
	/* Its callee returns behind the return, with the same arguments. */
	if (insn.kind == VF_JCC && insn.target > at + insn.len && insn.target < end &&
	    wants_stack(b + insn.len, insn.target - at - insn.len))
		return (uint8_t)(insn.target - at);
	if ((insn.kind != VF_OTHER && insn.kind != VF_JCC) || may_name_word(t, &insn, b) ||
	    vf_registers_of(b, end - at) & t->have)
		return 0;
	return insn.len;
}

/* The instruction before @at may compare the address. */
static void note_comparison(struct trace *t, const struct vf_full *f, uint64_t at, uint64_t end)
{
	bool left, right;

	if (f->z.mnemonic != ZYDIS_MNEMONIC_CMP || t->from_got)
		return;
	left = (t->have & bit_of_operand(&f->op[0])) || frame_word(t, &f->op[0]) >= 0;
	right = (t->have & bit_of_operand(&f->op[1])) || frame_word(t, &f->op[1]) >= 0;
	if (f->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		if (left && gives_code(t->vf, &f->op[1]))
			add_compare(t, at, true, false);
		return;
	}
	if (!left && !right)
		return;
	t->compared |= tests_less(t->vf, at, end);
	t->equals = true;
	add_compare(t, at, left, right);
}

/* Nothing is left to find out, or too many instructions were read. */
static bool ends(struct trace *t, unsigned int n)
{
	if (!t->compares)
		return t->read || n >= (t->nr_words || t->pushed ? FAR : NEAR);
	if (++t->compares->steps <= LOOP)
		return false;
	t->compares->more = true;
	return true;
}

/* Return: to where the call or jump before @at leads, if that is known; else *@cell holds it, or neither. */
static uint64_t leads_to(struct trace *t, const struct vf_fde *fde, const struct vf_full *f,
			 uint64_t at, uint64_t *cell)
{
	uint64_t to = 0;

	if (f->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return at + (uint64_t)f->op[0].imm.value.s;
	if (f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && (t->have & ARGUMENTS)) {
		to = called(t->vf, fde, at - f->z.length, bit_of_operand(&f->op[0]));
		/* Some function of a library may read the argument. */
		read_somehow(t, !to && t->far && f->z.meta.category == ZYDIS_CATEGORY_CALL &&
					(t->have & (FIRST | SECOND)));
	} else if (f->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		   f->op[0].mem.base == ZYDIS_REGISTER_RIP) {
		*cell = at + (uint64_t)f->op[0].mem.disp.value;
	} else if (t->far && f->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		/* A cell of the GOT, by its distance. */
		read_somehow(t, t->have & (FIRST | SECOND));
	}
	return to;
}

/* Does the instruction read or write memory by the address? Return: the registers that it writes. */
static uint16_t look_at_operands(struct trace *t, const struct vf_full *f)
{
	uint16_t written = 0;

	for (uint8_t i = 0; i < f->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &f->op[i];

		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			written |= bit_of_operand(op);
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type == ZYDIS_MEMOP_TYPE_MEM &&
		    f->z.mnemonic != ZYDIS_MNEMONIC_NOP &&
		    (!t->from_got || (op->mem.base != ZYDIS_REGISTER_NONE &&
				      op->mem.index != ZYDIS_REGISTER_NONE)) &&
		    (t->have & (bit_of(op->mem.base) | bit_of(op->mem.index))))
			t->read = true;
	}
	return written;
}

static void trace_from(struct trace *t, uint64_t at, unsigned int calls)
{
	const struct vf *vf = t->vf;
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);
	uint64_t loop = 0; /* its start: a jump led back there */

	for (unsigned int n = 0;
	     fde && (t->have || t->nr_words || t->pushed || t->again_have) && !ends(t, n); n++) {
		uint64_t end = fde->start + fde->size, to = 0, cell = 0;
		uint16_t now, written;
		bool leaves;
		uint8_t passed = t->pushed ? 0 : pass_by(t, at, end, calls);
		struct vf_full f;

		if (passed) {
			at += passed;
			continue;
		}
		if (!vf_decode_full(vf, at, end, &f))
			return;
		at += f.z.length;
		written = look_at_operands(t, &f);
		note_comparison(t, &f, at, end);
		if (f.z.meta.category == ZYDIS_CATEGORY_COND_BR &&
		    f.op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			note_branch(t, at + (uint64_t)f.op[0].imm.value.s);
		switch (f.z.meta.category) {
		case ZYDIS_CATEGORY_CALL:
		case ZYDIS_CATEGORY_UNCOND_BR:
			to = leads_to(t, fde, &f, at, &cell);
			if (f.z.meta.category == ZYDIS_CATEGORY_CALL) {
				pass(t, to, cell, calls);
				t->have &= (uint16_t) ~(to ? KNOWN_LOST : LOST);
				break;
			}
			leaves = to - fde->start >= fde->size;
			if (leaves && (to || cell))
				pass(t, to, cell, calls);
			else
				lose(t, leaves && (t->have || t->nr_words));
			/* Code anywhere behind may read a word of the frame. */
			if (t->nr_words) {
				lose(t, t->have);
				t->torn = true;
				t->have = 0;
				continue;
			}
			if (leaves || (t->compares && to < at && to == loop)) {
				if (loops(t, &at, &n))
					continue;
				return;
			}
			if (to < at) {
				loop = to;
			} else {
				lose(t, t->again_have);
				if (!t->out_to || t->out_to >= at)
					t->out_from = at;
				t->out_to = to;
				t->again_have = 0;
			}
			at = to;
			continue;
		case ZYDIS_CATEGORY_RET:
			if (loops(t, &at, &n))
				continue;
			tear(t, at);
			break;
		default:
			if (f.z.mnemonic == ZYDIS_MNEMONIC_UD2 ||
			    f.z.mnemonic == ZYDIS_MNEMONIC_HLT) {
				if (loops(t, &at, &n))
					continue;
				tear(t, at);
			}
			break;
		}
		now = result(t, &f, at - f.z.length);
		t->have = (t->have & (uint16_t)~written) | now;
	}
}

/* Code for any distance finds the GOT by a place of its own and a distance of 8 bytes. */
static bool finds_got(const struct vf *vf, const struct vf_fde *user, uint64_t insn, uint64_t to)
{
	struct vf_full f;

	if (to - user->start >= user->size)
		return false;
	for (int i = 0; i < NEAR_GOT; i++) {
		if (!vf_decode_full(vf, insn, user->start + user->size, &f))
			return false;
		if (i && vf->old.got_base && f.z.mnemonic == ZYDIS_MNEMONIC_MOV &&
		    f.z.raw.imm[0].size == 64 && to + f.z.raw.imm[0].value.u == vf->old.got_base)
			return true;
		insn += f.z.length;
	}
	return false;
}

/*
 * The instruction at @insn of @user names @to; @by_cell: the loader puts @to into the cell that it names. *@direct: only
 * the bytes that the operand itself names are read. Return: false: it is no address of code.
 */
static bool trace_name(struct trace *t, const struct vf_fde *user, uint64_t insn, uint64_t to,
		       bool by_cell, bool *direct)
{
	const struct vf *vf = t->vf;
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, to);
	struct vf_full f;

	if (!vf_decode_full(vf, insn, user->start + user->size, &f) || f.z.operand_count < 2)
		return false;
	/* Where the loader moves the program, a number is no address; elsewhere, many equal one. */
	if (f.op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && vf->o->ehdr.e_type == ET_DYN &&
	    f.op[1].imm.value.u == to)
		return false;
	if (f.op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !vf->o->relinkable && fde &&
	    fde->start != to)
		return false;
	for (uint8_t i = 0; i < f.z.operand_count && !by_cell; i++) {
		uint64_t from = f.op[i].mem.base == ZYDIS_REGISTER_RIP ? insn + f.z.length : 0;

		if (f.op[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    f.op[i].mem.type == ZYDIS_MEMOP_TYPE_MEM &&
		    f.z.mnemonic != ZYDIS_MNEMONIC_NOP &&
		    from + (uint64_t)f.op[i].mem.disp.value == to)
			t->read = true;
	}
	*direct = t->read;
	switch (f.z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		t->far = f.op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && f.z.raw.imm[0].size == 64;
		t->from_got = t->far && f.z.raw.imm[0].value.u != to;
		write_frame(t, &f.op[0], true);
		/* fall through */
	case ZYDIS_MNEMONIC_LEA:
		t->have = bit_of_operand(&f.op[0]);
		trace_from(t, insn + f.z.length, 0);
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		t->computed = by_cell || f.op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
		add_compare(t, insn + f.z.length, true, true);
		break;
	case ZYDIS_MNEMONIC_CMP:
		t->equals = by_cell || f.op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
		t->compared = t->equals &&
			      tests_less(vf, insn + f.z.length, user->start + user->size);
		add_compare(t, insn + f.z.length, true, true);
		break;
	default: break;
	}
	return true;
}

static int look_at_name(struct vf *vf, struct passed *passed, uint8_t *use, uint64_t insn,
			uint64_t to, bool by_cell)
{
	const struct vf_fde *user = vf_eh_find(&vf->old.eh, insn);
	struct vf_fde *fde = vf_eh_find(&vf->old.eh, to);
	struct trace t = {.vf = vf, .passed = passed};
	uint64_t *grown;
	bool direct;

	if (user && finds_got(vf, user, insn, to)) {
		/* The GOT counts from this place, which is no label. */
		if (to != user->start)
			vf_bits_set(&vf->old.summed, to);
		return 0;
	}
	if (!user || !trace_name(&t, user, insn, to, by_cell, &direct))
		return 0;
	if (t.computed)
		*use = VF_COMPUTES;
	else if (t.read && !direct)
		*use = t.compared ? VF_ASKS : VF_READS;
	else if (t.compared)
		*use = VF_COMPARES;
	else if (t.equals)
		*use = VF_EQUALS;
	/* Labels, and constants between instructions, are other checks' matter. */
	if (fde && fde == user && fde->start != to) {
		if (t.computed)
			vf_bits_set(&vf->old.summed, to);
		return 0;
	}
	if (fde && fde->start == to && (t.read || t.computed))
		fde->flags |= VF_FDE_READ;
	if (!t.computed)
		return 0;
	grown = realloc(vf->old.bases, (vf->old.nr_bases + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	vf->old.bases = grown;
	vf->old.bases[vf->old.nr_bases++] = to;
	return 0;
}

/* See vf_are_compared. */
static bool are_compared(struct vf *vf, const struct vf_ref *a, const struct vf_ref *b,
			 bool perhaps)
{
	const struct vf_ref *name[] = {a, b};
	struct compares at[2] = {{.nr = 0}, {.nr = 0}};

	for (int i = 0; i < 2; i++) {
		const struct vf_fde *user = vf_eh_find(&vf->old.eh, name[i]->insn);
		uint64_t to = vf_named_code(vf, name[i]);
		struct trace t = {.vf = vf, .compares = &at[i]};
		bool direct;

		if (vf->old.loop_steps > LOOPS || !user ||
		    !trace_name(&t, user, name[i]->insn, to, to != name[i]->to, &direct))
			return perhaps;
		vf->old.loop_steps += at[i].steps;
	}
	for (uint32_t i = 0; i < at[0].nr; i++)
		for (uint32_t k = 0; k < at[1].nr; k++)
			if (at[0].list[i].behind == at[1].list[k].behind &&
			    (at[0].list[i].left | at[1].list[k].left) &&
			    (at[0].list[i].right | at[1].list[k].right))
				return true;
	return perhaps && (at[0].more || at[1].more);
}

int vf_find_reads(struct vf *vf)
{
	struct passed *passed = calloc(NR_PASSED, sizeof(*passed));
	uint8_t *use = calloc(vf->old.names.nr + 1, 1);
	int ret = passed && use ? 0 : -ENOMEM;

	vf->old.first_dynamic = vf->o->nr_symbols;
	while (vf->old.first_dynamic && vf->o->symbols[vf->old.first_dynamic - 1].dynamic)
		vf->old.first_dynamic--;
	for (size_t i = 0; !ret && i < vf->old.names.nr; i++) {
		const struct vf_ref *name = &vf->old.names.list[i];
		uint64_t to = vf_named_code(vf, name);

		if (to)
			ret = look_at_name(vf, passed, &use[i], name->insn, to, to != name->to);
	}
	if (!ret)
		ret = vf_find_bounded(vf, use, are_compared);
	free(passed);
	free(use);
	return ret;
}
