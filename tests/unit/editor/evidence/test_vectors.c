// SPDX-License-Identifier: Apache-2.0
/* test_vectors - which of xmm8 to xmm15 a file never uses, by two implementations. */
#include "tests/unit/suite.h"

#include "editor/evidence/vectors.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/stubs/verify_vectors.h"

static const struct {
	const char *code; /* assembly */
	uint32_t free;	  /* bits 8 to 15 */
} cases[] = {
	{"nop", 0xff00},
	{"addsd %xmm0, %xmm15", 0x7f00},
	{"movaps %xmm14, (%rsp)", 0xbf00},
	{"movups (%r15), %xmm7", 0xff00},
	{"pshufb %xmm13, %xmm1", 0xdf00},
	{"pclmulqdq $1, %xmm12, %xmm1", 0xef00},
	{"movq %xmm11, %xmm1; movq %xmm1, %xmm10", 0xf300},
	{"cvttsd2si %xmm0, %r15; cvtsi2sd %r15, %xmm0; movmskpd %xmm0, %r15d", 0xff00},
	{"movq %r15, %xmm0; movq %xmm0, %r15; pextrw $1, %xmm0, %r15d", 0xff00},
	{"pinsrw $1, %r15d, %xmm0; pmovmskb %xmm0, %r15d; movzwl %r15w, %r14d", 0xff00},
	{"cvttsd2si %xmm9, %r15; movq %r15, %xmm8", 0xfc00},
	{"comisd %xmm15, %xmm0; psrldq $3, %xmm14", 0x3f00},
	{"movntdq %xmm15, (%rdi); movhlps %xmm14, %xmm0; shufps $1, %xmm13, %xmm0", 0x1f00},
	{"vaddsd %xmm0, %xmm1, %xmm2", 0},
	{"vzeroall", 0},
	{"vpaddd %zmm0, %zmm1, %zmm16", 0},
	{"fxsave (%rdi)", 0},
	{"fxrstor64 (%rdi)", 0},
	{"xsavec (%rdi)", 0},
	{"xsaveopt64 (%rdi)", 0},
	{"xrstor (%rdi)", 0},
	{"ldmxcsr (%rdi); clflush (%rdi); lfence; cmpxchg16b (%rdi)", 0xff00},
};

static uint8_t highest(uint32_t mask)
{
	for (uint8_t v = 15; v >= 8; v--)
		if (mask >> v & 1)
			return v;
	return ME_NO_VECTOR;
}

/* Assembles @code as a program. */
static struct mp_elf *assemble(const char *code)
{
	const char *dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	char source[200], command[600], program[200];
	struct mp_elf *elf = NULL;
	FILE *f;

	snprintf(source, sizeof(source), "%s/vectors.s", dir);
	snprintf(program, sizeof(program), "%s/vectors", dir);
	f = fopen(source, "we");
	ck_assert_ptr_nonnull(f);
	fprintf(f, ".globl _start\n_start:\n%s\nret\n", code);
	fclose(f);
	snprintf(command, sizeof(command), "gcc -nostdlib -static %s -o %s", source, program);
	ck_assert_msg(system(command) == 0, "%s", command);
	ck_assert_int_eq(mp_elf_open(program, MP_ELF_ALL, &elf, &err), 0);
	remove(source);
	remove(program);
	return elf;
}

/* The registers that verify finds, instruction by instruction. */
static uint32_t named_for_verify(const struct mp_elf *elf)
{
	const struct mp_section *text = mp_elf_section(elf, ".text");
	const uint8_t *bytes = mp_elf_bytes(elf, text->vaddr, text->size);
	struct vf_insn insn;
	uint32_t mask = 0;

	for (uint64_t at = 0; at < text->size; at += insn.len) {
		ck_assert(vf_decode(bytes + at, text->size - at, text->vaddr + at, &insn));
		mask |= vf_vectors_of(bytes + at, text->size - at);
	}
	return mask;
}

TEST_EACH(knows_what_is_named, sizeof(cases) / sizeof(cases[0]))
{
	struct mp_elf *elf = assemble(cases[_i].code);

	ck_assert_uint_eq(me_vectors_unnamed(elf), highest(cases[_i].free));
	ck_assert_uint_eq(named_for_verify(elf), 0xff00 & ~cases[_i].free);
	mp_elf_close(elf);
}

TEST(bytes_that_are_no_instructions_name_all)
{
	struct mp_elf *elf = assemble(".byte 0x06, 0x06, 0x06");

	ck_assert_uint_eq(me_vectors_unnamed(elf), ME_NO_VECTOR);
	mp_elf_close(elf);
}
