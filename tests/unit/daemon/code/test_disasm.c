// SPDX-License-Identifier: Apache-2.0
/* test_disasm - instructions are printed like objdump prints them. */

#include "daemon/code/disasm.h"
#include "tests/unit/suite.h"

static void expect(bool intel, const char *bytes, size_t nr, const char *want)
{
	struct md_disasm *disasm;
	uint8_t len = 0;
	AUTO_FREE char *text = NULL;

	ck_assert_int_eq(md_disasm_new(intel, &disasm), 0);
	text = md_disasm_text(disasm, (const uint8_t *)bytes, nr, 0x1000, &len);
	ck_assert_str_eq(text, want);
	if (strcmp(want, "(bad)"))
		ck_assert_uint_eq(len, nr);
	else
		ck_assert_uint_eq(len, 1);
	md_disasm_free(disasm);
}

TEST(disasm_writes_att_as_assemblers_do)
{
	expect(false, "\x48\x89\xf8", 3, "mov %rdi, %rax");
	expect(false, "\x75\x0e", 2, "jne 0x1010");
	expect(false, "\x0f\x8f\x0a\x00\x00\x00", 6, "jg 0x1010");
	expect(false, "\x0f\x94\xc0", 3, "sete %al");
	expect(false, "\x48\x0f\x4d\xc1", 4, "cmovge %rcx, %rax");
	expect(false, "\x48\x63\x07", 3, "movslq (%rdi), %rax");
	expect(false, "\x0f\xb6\x07", 3, "movzbl (%rdi), %eax");
	expect(false, "\x66\x0f\xd6\x07", 4, "movq %xmm0, (%rdi)");
	expect(false, "\xc7\x07\x01\x00\x00\x00", 6, "movl $0x1, (%rdi)");
	expect(false, "\x66\x0f\x1f\x44\x00\x00", 6, "nop (%rax,%rax,1)");
	expect(false, "\x48\x8d\x05\x10\x00\x00\x00", 7, "lea 0x10(%rip), %rax");
}

TEST(disasm_writes_intel)
{
	expect(true, "\x48\x89\xf8", 3, "mov rax, rdi");
	expect(true, "\x75\x0e", 2, "jne 0x1010");
	expect(true, "\x0f\xb6\x07", 3, "movzx eax, byte ptr [rdi]");
}

TEST(disasm_says_what_is_none)
{
	expect(false, "\x06", 1, "(bad)");
	expect(false, "\xe8\x01", 2, "(bad)"); /* truncated */
	expect(true, "\xff\xff", 2, "(bad)");
}
