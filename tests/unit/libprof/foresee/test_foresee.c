// SPDX-License-Identifier: Apache-2.0
/*
 * test_foresee - what mp_foresee() gives of small pieces of code.
 *
 * The instructions are assembled into this program. Each is executed by the processor of this machine, too, with values at
 * which flags change: the conditions behind the instruction that mp_foresee() decides must be those of the processor's
 * flags, and its result the processor's.
 */
#include "libprof/foresee/foresee.h"

#include "tests/unit/suite.h"

enum {
	RAX,
	RCX,
	RDX,
	RBX,
	RSP,
	RBP,
	RSI,
	RDI,
	R8,
	R9,
	R10
};
enum {
	CODE_MAX = 256
};

#define CF  0x001u
#define PF  0x004u
#define ZF  0x040u
#define SF  0x080u
#define OF  0x800u
#define ALL (CF | PF | ZF | SF | OF)

/* Code that is not executed: @name to @name_end. */
#define CODE(name, text)                                                                           \
	__asm__(".pushsection .rodata\n" #name ": " text "\n" #name "_end:\n.popsection");         \
	extern const uint8_t name[] __asm__(#name), name##_end[] __asm__(#name "_end")

struct bytes {
	const uint8_t *at;
	size_t size;
	uint64_t vaddr;
	unsigned int nr_calls;
};

static uint64_t registers[MP_FORESEE_FLAGS + 1];
static struct mp_foreseen_way ways[MP_FORESEE_WAYS];

static const uint8_t *bytes_at(void *data, uint64_t vaddr, size_t *avail)
{
	struct bytes *bytes = data;

	bytes->nr_calls++;
	if (vaddr - bytes->vaddr >= bytes->size)
		return NULL;
	*avail = bytes->size - (vaddr - bytes->vaddr);
	return bytes->at + (vaddr - bytes->vaddr);
}

static uint32_t foresee_at(const uint8_t *code, const uint8_t *end, uint64_t vaddr, uint32_t known)
{
	struct bytes bytes = {code, (size_t)(end - code), vaddr, 0};
	struct mp_foresee_code given = {bytes_at, &bytes};
	uint32_t nr = mp_foresee(&given, vaddr, registers, known, ways);

	ck_assert_uint_le(bytes.nr_calls, 100);
	ck_assert_uint_le(nr, MP_FORESEE_WAYS);
	return nr;
}

static uint32_t foresee(const uint8_t *code, const uint8_t *end, uint32_t known)
{
	return foresee_at(code, end, 0x401000, known);
}

/* The ways as a text: t, n. */
static const char *ways_of(const uint8_t *code, const uint8_t *end, uint32_t known)
{
	static char text[MP_FORESEE_WAYS + 1];
	uint32_t nr = foresee(code, end, known);

	for (uint32_t i = 0; i < nr; i++)
		text[i] = ways[i].taken ? 't' : 'n';
	text[nr] = 0;
	return text;
}

#define WAYS(name, known) ways_of(name, name##_end, known)

/* ---- instructions beside this processor ---- */

/*
 * A function executes @before, of which the flags are the flags before @insn, and @insn: rdi, rsi and cl are operands, the
 * result is in rdi. It returns the flags.
 */
#define INSN(name, before, insn)                                                                   \
	__asm__(".pushsection .text\n" #name ": " before "\n" insn "\n" #name                      \
		"_end: pushfq; pop %rax; ret\n.popsection");                                       \
	extern const uint8_t name[] __asm__(#name), name##_end[] __asm__(#name "_end")

#define SET "cmp %rsi, %rdi"
#define SIZES(name, op, before)                                                                    \
	INSN(name##_8, before, op "b %sil, %dil");                                                 \
	INSN(name##_16, before, op "w %si, %di");                                                  \
	INSN(name##_32, before, op "l %esi, %edi");                                                \
	INSN(name##_64, before, op "q %rsi, %rdi")
#define UNARY(name, op)                                                                            \
	INSN(name##_8, SET, op "b %dil");                                                          \
	INSN(name##_16, SET, op "w %di");                                                          \
	INSN(name##_32, SET, op "l %edi");                                                         \
	INSN(name##_64, SET, op "q %rdi")
#define SHIFTS(name, op)                                                                           \
	INSN(name##_cl8, SET, op "b %cl, %dil");                                                   \
	INSN(name##_cl16, SET, op "w %cl, %di");                                                   \
	INSN(name##_cl32, SET, op "l %cl, %edi");                                                  \
	INSN(name##_cl64, SET, op "q %cl, %rdi");                                                  \
	INSN(name##_1, SET, op "l $1, %edi");                                                      \
	INSN(name##_7, SET, op "q $7, %rdi")

SIZES(t_add, "add", SET);
SIZES(t_adc, "adc", SET);
SIZES(t_sub, "sub", SET);
SIZES(t_sbb, "sbb", SET);
SIZES(t_and, "and", SET);
SIZES(t_or, "or", SET);
SIZES(t_xor, "xor", SET);
SIZES(t_cmp, "cmp", "add %rsi, %rsi");
SIZES(t_test, "test", SET);
SIZES(t_mov, "mov", SET);
SIZES(t_xchg, "xchg", SET);
UNARY(t_inc, "inc");
UNARY(t_dec, "dec");
UNARY(t_neg, "neg");
UNARY(t_not, "not");
SHIFTS(t_shl, "shl");
SHIFTS(t_shr, "shr");
SHIFTS(t_sar, "sar");
SHIFTS(t_rol, "rol");
SHIFTS(t_ror, "ror");
INSN(t_imul_16, SET, "imulw %si, %di");
INSN(t_imul_32, SET, "imull %esi, %edi");
INSN(t_imul_64, SET, "imulq %rsi, %rdi");
INSN(t_imul_3, SET, "imulq $-3, %rsi, %rdi");
INSN(t_imul_3w, SET, "imulw $0x7fff, %si, %di");
INSN(t_bt, SET, "btq %rcx, %rdi");
INSN(t_bt_32, SET, "btl %ecx, %edi");
INSN(t_bt_5, SET, "btw $5, %di");
INSN(t_add_imm, SET, "addq $-128, %rdi");
INSN(t_and_imm, SET, "andq $-65536, %rdi");
INSN(t_cmp_imm, SET, "cmpl $0x80000000, %edi");
INSN(t_test_imm, SET, "testq $-2, %rdi");
INSN(t_mov_imm, SET, "movq $-5, %rdi");
INSN(t_mov_imm_32, SET, "movl $-5, %edi");
INSN(t_mov_imm_64, SET, "movabsq $0x8000000000000001, %rdi");
INSN(t_movzx_8, SET, "movzbl %sil, %edi");
INSN(t_movzx_16, SET, "movzwq %si, %rdi");
INSN(t_movsx_8, SET, "movsbw %sil, %di");
INSN(t_movsx_8q, SET, "movsbq %sil, %rdi");
INSN(t_movsx_16, SET, "movswl %si, %edi");
INSN(t_movsxd, SET, "movslq %esi, %rdi");
INSN(t_lea, SET, "leaq -9(%rdi, %rsi, 4), %rdi");
INSN(t_lea_32, SET, "leal 5(%rdi, %rsi), %edi");
INSN(t_lea_16, SET, "leaw 5(%rdi, %rsi, 8), %di");
INSN(t_lea_67, SET, "leaq -1(%edi), %rdi");
INSN(t_lea_index, SET, "leaq 1000(, %rsi, 2), %rdi");
INSN(t_high, SET, "mov %rdi, %rcx; addb %cl, %ch; mov %rcx, %rdi");
INSN(t_high_mov, SET, "mov %rdi, %rdx; mov %esi, %eax; movb %al, %dh; mov %rdx, %rdi");
INSN(t_cbw, SET, "mov %rdi, %rax; cbtw; mov %rax, %rdi");
INSN(t_cwde, SET, "mov %rdi, %rax; cwtl; mov %rax, %rdi");
INSN(t_cdqe, SET, "mov %rdi, %rax; cltq; mov %rax, %rdi");
INSN(t_cwd, SET, "mov %rdi, %rax; mov %rdi, %rdx; cwtd; mov %rdx, %rdi");
INSN(t_cdq, SET, "mov %rdi, %rax; cltd; mov %rdx, %rdi");
INSN(t_cqo, SET, "mov %rdi, %rax; cqto; mov %rdx, %rdi");
INSN(t_xchg_eax, SET, "mov %rdi, %rax; xchg %esi, %eax; lea (%rax, %rsi), %rdi");
INSN(t_setl, SET, "setl %dil");
INSN(t_setbe, SET, "setbe %dil");
INSN(t_setnp, SET, "setnp %dil");
INSN(t_cmovl, SET, "cmovlq %rsi, %rdi");
INSN(t_cmova_32, SET, "cmoval %esi, %edi");
INSN(t_cmovno_16, SET, "cmovnow %si, %di");
INSN(t_nops, SET, "nop; endbr64; nopw 0(%rax, %rax)");

/* @undefined: flags that @insn leaves undefined at a count, in cl, above 1 (@shifts) or always. */
struct insn {
	const char *name;
	const uint8_t *code, *end;
	uint32_t undefined;
	bool shifts;
};

#define ROW(name, ...)                                                                             \
	{                                                                                          \
#name, name, name##_end, __VA_ARGS__                                               \
	}
#define ROWS(name)                                                                                 \
	ROW(name##_8, 0, false), ROW(name##_16, 0, false), ROW(name##_32, 0, false),               \
		ROW(name##_64, 0, false)
/* Carry of shifts by 8 or more bits of 8, or by 16 of 16, is undefined, so these may leave both open. */
#define ROWS_SHIFT(name, carry)                                                                    \
	ROW(name##_cl8, OF | carry, true), ROW(name##_cl16, OF | carry, true),                     \
		ROW(name##_cl32, OF, true), ROW(name##_cl64, OF, true), ROW(name##_1, 0, false),   \
		ROW(name##_7, OF, false)

static const struct insn insns[] = {
	ROWS(t_add),
	ROWS(t_adc),
	ROWS(t_sub),
	ROWS(t_sbb),
	ROWS(t_and),
	ROWS(t_or),
	ROWS(t_xor),
	ROWS(t_cmp),
	ROWS(t_test),
	ROWS(t_mov),
	ROWS(t_xchg),
	ROWS(t_inc),
	ROWS(t_dec),
	ROWS(t_neg),
	ROWS(t_not),
	ROWS_SHIFT(t_shl, CF),
	ROWS_SHIFT(t_shr, CF),
	ROWS_SHIFT(t_sar, 0),
	ROWS_SHIFT(t_rol, 0),
	ROWS_SHIFT(t_ror, 0),
	ROW(t_imul_16, ALL & ~(CF | OF), false),
	ROW(t_imul_32, ALL & ~(CF | OF), false),
	ROW(t_imul_64, ALL & ~(CF | OF), false),
	ROW(t_imul_3, ALL & ~(CF | OF), false),
	ROW(t_imul_3w, ALL & ~(CF | OF), false),
	ROW(t_bt, OF | SF | PF, false),
	ROW(t_bt_32, OF | SF | PF, false),
	ROW(t_bt_5, OF | SF | PF, false),
	ROW(t_add_imm, 0, false),
	ROW(t_and_imm, 0, false),
	ROW(t_cmp_imm, 0, false),
	ROW(t_test_imm, 0, false),
	ROW(t_mov_imm, 0, false),
	ROW(t_mov_imm_32, 0, false),
	ROW(t_mov_imm_64, 0, false),
	ROW(t_movzx_8, 0, false),
	ROW(t_movzx_16, 0, false),
	ROW(t_movsx_8, 0, false),
	ROW(t_movsx_8q, 0, false),
	ROW(t_movsx_16, 0, false),
	ROW(t_movsxd, 0, false),
	ROW(t_lea, 0, false),
	ROW(t_lea_32, 0, false),
	ROW(t_lea_16, 0, false),
	ROW(t_lea_67, 0, false),
	ROW(t_lea_index, 0, false),
	ROW(t_high, 0, false),
	ROW(t_high_mov, 0, false),
	ROW(t_cbw, 0, false),
	ROW(t_cwde, 0, false),
	ROW(t_cdqe, 0, false),
	ROW(t_cwd, 0, false),
	ROW(t_cdq, 0, false),
	ROW(t_cqo, 0, false),
	ROW(t_xchg_eax, 0, false),
	ROW(t_setl, 0, false),
	ROW(t_setbe, 0, false),
	ROW(t_setnp, 0, false),
	ROW(t_cmovl, 0, false),
	ROW(t_cmova_32, 0, false),
	ROW(t_cmovno_16, 0, false),
	ROW(t_nops, 0, false),
};

static const uint64_t edges[] = {
	0,
	1,
	2,
	3,
	0x7f,
	0x80,
	0x81,
	0xff,
	0x7fff,
	0x8000,
	0xffff,
	0x7fffffff,
	0x80000000,
	0xffffffff,
	0x100000000,
	INT64_MAX,
	1ull << 63,
	UINT64_MAX,
	UINT64_MAX - 1,
	0x1234567887654321,
};
static const uint8_t counts[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 255};

/* Return: the flags; the result in @result. */
static uint64_t execute(const uint8_t *code, uint64_t rdi, uint64_t rsi, uint64_t rcx,
			uint64_t *result)
{
	uint64_t flags;

	__asm__ volatile("sub $128, %%rsp; call *%[code]; add $128, %%rsp"
			 : "=a"(flags), "+D"(rdi), "+S"(rsi), "+c"(rcx)
			 : [code] "r"(code)
			 : "rdx", "cc", "memory");
	*result = rdi;
	return flags;
}

/* The flags of which condition @cc is made, and whether the condition is true. */
static uint32_t condition_flags(unsigned int cc)
{
	static const uint32_t flags[] = {OF, CF, ZF, CF | ZF, SF, PF, SF | OF, ZF | SF | OF};

	return flags[cc >> 1];
}

static bool is_true(unsigned int cc, uint64_t flags)
{
	bool less = !(flags & SF) != !(flags & OF);
	const bool values[] = {flags & OF, flags & CF, flags & ZF, flags & (CF | ZF),
			       flags & SF, flags & PF, less,	   less || flags & ZF};

	return values[cc >> 1] != (cc & 1);
}

static void insn_check(const struct insn *insn, uint64_t rdi, uint64_t rsi, uint8_t count)
{
	size_t size = (size_t)(insn->end - insn->code);
	uint32_t undefined = insn->shifts && count < 2 ? 0 : insn->undefined;
	uint8_t code[CODE_MAX];
	uint64_t result, flags = execute(insn->code, rdi, rsi, count, &result);

	memset(registers, 0x5a, sizeof(registers));
	registers[RDI] = rdi;
	registers[RSI] = rsi;
	registers[RCX] = count;
	registers[R8] = result;
	memcpy(code, insn->code, size);
	for (unsigned int cc = 0; cc < 16; cc++) {
		uint32_t nr;

		memcpy(code + size, (uint8_t[]){(uint8_t)(0x70 | cc), 0, 0xc3}, 3);
		nr = foresee(code, code + size + 3, 0xffff);
		if (nr ? ways[0].taken != is_true(cc, flags) : !(condition_flags(cc) & undefined))
			ck_abort_msg("%s of %#lx, %#lx, %u: condition %u: %s", insn->name, rdi, rsi,
				     count, cc, nr ? "wrong" : "unknown");
		if (nr && !insn->shifts && condition_flags(cc) == (condition_flags(cc) & undefined))
			ck_abort_msg("%s: condition %u is undefined", insn->name, cc);
	}
	memcpy(code + size, (uint8_t[]){0x4c, 0x39, 0xc7, 0x74, 0}, 5); /* cmp %r8, %rdi; je */
	if (foresee(code, code + size + 5, 0xffff) != 1 || !ways[0].taken)
		ck_abort_msg("%s of %#lx, %#lx, %u is not %#lx", insn->name, rdi, rsi, count,
			     result);
}

TEST(foresee_computes_what_this_processor_does)
{
	const size_t nr = sizeof(edges) / sizeof(edges[0]);

	for (size_t k = 0; k < sizeof(insns) / sizeof(insns[0]); k++) {
		for (size_t i = 0; i < nr * nr; i++)
			insn_check(&insns[k], edges[i / nr], edges[i % nr],
				   counts[(i / nr + i) % sizeof(counts)]);
		for (size_t i = 0; i < nr * sizeof(counts); i++)
			insn_check(&insns[k], edges[i % nr], 1, counts[i / nr]);
	}
}

/* ---- what is known ---- */

CODE(c_unknown, "je 1f; 1: ret");
CODE(c_registers, "test %rdi, %rdi; je 1f; 1: ret");
CODE(c_high, "test %ch, %ch; je 1f; 1: ret");
CODE(c_zero, "xor %edi, %edi; je 1f; 1: sub %rsi, %rsi; jne 1f; 1: add %rsi, %rdi; je 1f; 1: ret");
CODE(c_zero_part, "xor %dil, %dil; je 1f; 1: test %edi, %edi; je 1f; 1: ret");
CODE(c_part, "mov $5, %dil; cmp $5, %dil; je 1f; 1: ret");
CODE(c_part_16, "mov $5, %di; cmp $5, %di; je 1f; 1: ret");
CODE(c_whole, "mov $5, %edi; cmp $5, %rdi; je 1f; 1: ret");
CODE(c_load, "mov (%rsi), %edi; test %edi, %edi; je 1f; 1: ret");
CODE(c_load_alu, "test %rdi, %rdi; add (%rsi), %rdi; je 1f; 1: ret");
CODE(c_load_add, "add (%rsi), %rdi; test %rsi, %rsi; je 1f; 1: test %rdi, %rdi; je 1f; 1: ret");
CODE(c_store, "mov %rdi, (%rsi); test %rdi, %rdi; je 1f; 1: ret");
CODE(c_store_set, "test %rdi, %rdi; sete (%rsi); je 1f; 1: ret");
CODE(c_lea, "lea 1f(%rip), %rdi; test %rdi, %rdi; je 1f; 1: ret");
CODE(c_cmov, "cmp %rsi, %rsi; cmove %rsi, %rdi; cmp %rsi, %rdi; je 1f; 1: ret");
CODE(c_cmov_load, "cmp %rsi, %rsi; cmovne (%rsi), %edi; cmp %rsi, %rdi; je 1f; 1: ret");
CODE(c_cmov_unknown, "cmove %rsi, %rdi; cmp %rsi, %rdi; je 1f; 1: ret");
CODE(c_set_unknown, "setc %dil; cmp %rsi, %rdi; je 1f; 1: ret");
CODE(c_partly, "stc; inc %rdi; jo 1f; 1: jbe 1f; 1: ret");
CODE(c_zero_decides,
     "bt %rsi, %rdi; jc 1f; 1: inc %rdi; jz 1f; 1: bt $1, %r8; jb 1f; 1: je 1f; 1: ja 1f; 1: js 1f; 1: ret");
CODE(c_shift_zero, "test %rdi, %rdi; shl %cl, %rsi; je 1f; 1: test %rsi, %rsi; je 1f; 1: ret");
CODE(c_shift_unknown, "test %rdi, %rdi; shl %cl, %rdi; je 1f; 1: ret");
CODE(c_implicit, "mul %rsi; test %rdi, %rdi; je 1f; 1: test %rdx, %rdx; je 1f; 1: ret");
CODE(c_lahf, "test %rdi, %rdi; lahf; je 1f; 1: test %al, %al; je 1f; 1: ret");
CODE(c_push, "push %rdi; test %rdi, %rdi; je 1f; 1: pop %rdi; test %rdi, %rdi; je 1f; 1: ret");
CODE(c_vector,
     "test %rdi, %rdi; paddd %xmm1, %xmm0; vpxor %ymm0, %ymm0, %ymm0; je 1f; 1: movd %xmm0, %edi; "
     "test %rdi, %rdi; je 1f; 1: ret");

TEST(foresee_knows_what_follows_from_registers)
{
	memset(registers, 0, sizeof(registers));
	registers[RSI] = 7;
	registers[R8] = 2;
	ck_assert_str_eq(WAYS(c_unknown, 0xffff), "");
	ck_assert_str_eq(WAYS(c_registers, 0xffff), "t");
	ck_assert_str_eq(WAYS(c_registers, 1 << RDI), "t");
	ck_assert_str_eq(WAYS(c_registers, 0xffff & ~(1 << RDI)), "");
	ck_assert_str_eq(WAYS(c_high, 1 << RCX), "t");
	ck_assert_str_eq(WAYS(c_high, 1 << RBP), "");
	ck_assert_str_eq(WAYS(c_zero, 0), "tnt");
	ck_assert_str_eq(WAYS(c_zero_part, 0), "t");
	ck_assert_str_eq(WAYS(c_part, 0), "");
	ck_assert_str_eq(WAYS(c_part, 1 << RDI), "t");
	ck_assert_str_eq(WAYS(c_part_16, 0), "");
	ck_assert_str_eq(WAYS(c_whole, 0), "t");
	ck_assert_str_eq(WAYS(c_cmov, 1 << RSI | 1 << RDI), "t");
	ck_assert_str_eq(WAYS(c_cmov_load, 1 << RSI | 1 << RDI), "n");
	ck_assert_str_eq(WAYS(c_cmov_unknown, 0xffff), "");
	ck_assert_str_eq(WAYS(c_set_unknown, 0xffff), "");
}

TEST(foresee_knows_nothing_of_memory_and_addresses_of_code)
{
	memset(registers, 0, sizeof(registers));
	ck_assert_str_eq(WAYS(c_load, 0xffff), "");
	ck_assert_str_eq(WAYS(c_load_alu, 0xffff), "");
	ck_assert_str_eq(WAYS(c_load_add, 0xffff), "t");
	ck_assert_str_eq(WAYS(c_store, 0xffff), "t");
	ck_assert_str_eq(WAYS(c_store_set, 0xffff), "t");
	ck_assert_str_eq(WAYS(c_lea, 0xffff), "");
}

TEST(foresee_knows_flags_one_by_one)
{
	memset(registers, 0, sizeof(registers));
	registers[R8] = 2;
	/* inc keeps the carry flag, here an unknown one. */
	ck_assert_str_eq(WAYS(c_partly, 0xffff), "n");
	registers[RDI] = UINT64_MAX;
	/* Carry of bt is 1, or the zero flag is: both decide "below or equal" alone. The sign is undefined. */
	ck_assert_str_eq(WAYS(c_partly, 0xffff), "nt");
	ck_assert_str_eq(WAYS(c_zero_decides, 0xffff), "ttttn");
	ck_assert_str_eq(WAYS(c_shift_zero, 0xffff & ~(1 << RSI)), "n");
	registers[RCX] = 1;
	ck_assert_str_eq(WAYS(c_shift_zero, 0xffff & ~(1 << RSI)), "");
	ck_assert_str_eq(WAYS(c_shift_unknown, 0xffff & ~(1 << RCX)), "");
}

TEST(foresee_forgets_what_other_instructions_write)
{
	memset(registers, 0, sizeof(registers));
	ck_assert_str_eq(WAYS(c_implicit, 0xffff), "t");
	ck_assert_str_eq(WAYS(c_lahf, 0xffff), "t");
	ck_assert_str_eq(WAYS(c_push, 0xffff), "t");
	ck_assert_str_eq(WAYS(c_vector, 0xffff), "t");
}

/* ---- where it goes, and where it ends ---- */

CODE(c_way, "xor %eax, %eax; jmp 2f; 1: inc %eax; jne 3f; ud2; 2: je 1b; ud2; 3: jc 1f; 1: ret");
CODE(c_near,
     "xor %eax, %eax; .byte 0x0f, 0x84, 1, 0, 0, 0; ret; .byte 0xe9, 1, 0, 0, 0; ret; js 1f; 1: ret");
CODE(c_loop, "1: dec %rcx; jne 1b; jmp 1b");
CODE(c_spin, "xor %eax, %eax; 1: nop; jmp 1b");
CODE(c_long, "xor %eax, %eax; .rept 98; nop; .endr; je 1f; 1: je 1f; 1: ret");
#define ENDS(name, text) CODE(name, "xor %eax, %eax; je 1f; 1: " text "; je 1f; 1: ret")
ENDS(e_call, "call 1f; 1: ");
ENDS(e_call_indirect, "call *%rdi");
ENDS(e_jump_indirect, "jmp *%rdi");
ENDS(e_jump_memory, "jmp *(%rdi)");
ENDS(e_ret, "ret");
ENDS(e_ret_rep, "rep; ret");
ENDS(e_iret, "iretq");
ENDS(e_loop, "loop 1f; 1: ");
ENDS(e_jrcxz, "jrcxz 1f; 1: ");
ENDS(e_int3, "int3");
ENDS(e_int, "int $0x80");
ENDS(e_ud2, "ud2");
ENDS(e_hlt, "hlt");
ENDS(e_syscall, "syscall");
ENDS(e_rep, "rep movsb");
ENDS(e_string, "movsb");
ENDS(e_xbegin, "xbegin 1f; 1: ");
ENDS(e_in, "inb %dx, %al");
ENDS(e_jump_16, ".byte 0x66, 0xe9, 0, 0, 0, 0");
ENDS(e_branch_16, ".byte 0x66, 0x0f, 0x84, 0, 0, 0, 0");
ENDS(e_no_insn, ".byte 0x06");

TEST(foresee_follows_jumps_and_branches)
{
	memset(registers, 0, sizeof(registers));
	ck_assert_str_eq(WAYS(c_way, 0), "ttn");
	ck_assert_uint_eq(ways[0].vaddr, 0x401000 + 10);
	ck_assert_uint_eq(ways[1].vaddr, 0x401000 + 6);
	ck_assert_str_eq(WAYS(c_near, 0), "tn");
	ck_assert_uint_eq(ways[0].vaddr, 0x401002);
	/* The last addresses there are, and those behind them. */
	ck_assert_uint_eq(foresee_at(c_way, c_way_end, (uint64_t)-8, 0), 3);
	ck_assert_uint_eq(ways[0].vaddr, 2);
}

TEST(foresee_ends_after_eight_branches_and_a_hundred_instructions)
{
	memset(registers, 0, sizeof(registers));
	registers[RCX] = 5;
	ck_assert_str_eq(WAYS(c_loop, 0xffff), "ttttnttt");
	ck_assert_str_eq(WAYS(c_spin, 0xffff), "");
	ck_assert_str_eq(WAYS(c_long, 0xffff), "t");
}

TEST(foresee_ends_where_the_way_is_not_known)
{
	memset(registers, 0, sizeof(registers));
#define IS_END(name) ck_assert_msg(!strcmp(WAYS(name, 0xffff), "t"), #name)
	IS_END(e_call);
	IS_END(e_call_indirect);
	IS_END(e_jump_indirect);
	IS_END(e_jump_memory);
	IS_END(e_ret);
	IS_END(e_ret_rep);
	IS_END(e_iret);
	IS_END(e_loop);
	IS_END(e_jrcxz);
	IS_END(e_int3);
	IS_END(e_int);
	IS_END(e_ud2);
	IS_END(e_hlt);
	IS_END(e_syscall);
	IS_END(e_rep);
	IS_END(e_string);
	IS_END(e_xbegin);
	IS_END(e_in);
	IS_END(e_jump_16);
	IS_END(e_branch_16);
	IS_END(e_no_insn);
}

TEST(foresee_reads_nothing_behind_the_code)
{
	size_t size = (size_t)(c_near_end - c_near);

	/* Each piece lies in memory of exactly its size, for valgrind and the sanitizers. */
	for (size_t n = 1; n <= size; n++) {
		AUTO_FREE uint8_t *piece = malloc(n);

		ck_assert_ptr_nonnull(piece);
		memcpy(piece, c_near, n);
		ck_assert_uint_eq(foresee(piece, piece + n, 0), n < 8 ? 0 : n < size - 1 ? 1 : 2);
	}
	ck_assert_uint_eq(foresee(c_near, c_near, 0), 0);
}

TEST(foresee_begins_with_the_flags_of_the_sample)
{
	/* je .+1; nop; jb .+1; nop; ret */
	static const uint8_t code[] = {0x74, 0x01, 0x90, 0x72, 0x01, 0x90, 0xc3};
	const uint8_t *end = code + sizeof(code);

	registers[MP_FORESEE_FLAGS] = 0x41; /* zero and carry */
	ck_assert_str_eq(ways_of(code, end, 1u << MP_FORESEE_FLAGS), "tt");
	registers[MP_FORESEE_FLAGS] = 0x1;
	ck_assert_str_eq(ways_of(code, end, 1u << MP_FORESEE_FLAGS), "nt");
	ck_assert_str_eq(ways_of(code, end, 0xffff), "");
}
