// SPDX-License-Identifier: Apache-2.0
/* enclosing_code - the code and its unwind information, as bytes. */
#include "editor/base/enclosing_code.h"

#include <string.h>

/* It changes only registers that a called function may change, and not the stack. */
static const uint8_t code[] = {
	0x48, 0x8d, 0x47, 0xff,		    /*	lea -1(%rdi), %rax: return addresses are asked for */
	0x48, 0x8d, 0x35, 0x51, 0,    0, 0, /*	lea table(%rip), %rsi */
	0x48, 0x29, 0xf0,		    /*	sub %rsi, %rax */
	0x48, 0x63, 0xc8,		    /*	movslq %eax, %rcx */
	0x48, 0x39, 0xc1,		    /*	cmp %rax, %rcx */
	0x75, 0x3f,			    /*	jne 9f: too far away */
	0x8b, 0x16,			    /*	mov (%rsi), %edx: entries from %rcx on */
	0x48, 0x8d, 0x4e, 0x0c,		    /*	lea 12(%rsi), %rcx */
	0x85, 0xd2,			    /* 1:	test %edx, %edx */
	0x74, 0x24,			    /*	jz 3f */
	0x41, 0x89, 0xd0,		    /*	mov %edx, %r8d */
	0x41, 0xd1, 0xe8,		    /*	shr %r8d */
	0x4f, 0x8d, 0x0c, 0x40,		    /*	lea (%r8,%r8,2), %r9 */
	0x4e, 0x8d, 0x0c, 0x89,		    /*	lea (%rcx,%r9,4), %r9: the entry in the middle */
	0x41, 0x39, 0x01,		    /*	cmp %eax, (%r9) */
	0x7f, 0x0c,			    /*	jg 2f */
	0x49, 0x8d, 0x49, 0x0c,		    /*	lea 12(%r9), %rcx */
	0x41, 0xff, 0xc0,		    /*	inc %r8d */
	0x44, 0x29, 0xc2,		    /*	sub %r8d, %edx */
	0xeb, 0xdd,			    /*	jmp 1b */
	0x44, 0x89, 0xc2,		    /* 2:	mov %r8d, %edx */
	0xeb, 0xd8,			    /*	jmp 1b */
	0x2b, 0x41, 0xf4,		    /* 3:	sub -12(%rcx), %eax: the entry before %rcx */
	0x3b, 0x41, 0xf8,		    /*	cmp -8(%rcx), %eax */
	0x73, 0x09,			    /*	jae 9f */
	0x48, 0x63, 0x41, 0xfc,		    /*	movslq -4(%rcx), %rax */
	0x48, 0x8d, 0x7c, 0x06, 0x01,	    /*	lea 1(%rsi,%rax), %rdi */
	0xff, 0x25, 0,	  0,	0,    0,    /* 9:	jmp *slot(%rip) */
	0xcc,
};

_Static_assert(sizeof(code) == ME_ENCLOSING_CODE_SIZE, "the table follows directly");

enum {
	SLOT_END = ME_ENCLOSING_CODE_SIZE - 1,
	FDE_CIE = ME_ENCLOSING_FDE + 4,
	FDE_START = ME_ENCLOSING_FDE + 8,
};

static const uint8_t frames[] = {
	/* CIE: "zR", addresses relative to their field in 4 bytes; the CFA is %rsp + 8, the return address below it. */
	20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	/* FDE without steps */
	16, 0, 0, 0, FDE_CIE, 0, 0, 0, 0, 0, 0, 0, ME_ENCLOSING_CODE_SIZE, 0, 0, 0, 0, 0, 0, 0};

_Static_assert(sizeof(frames) == ME_ENCLOSING_FRAMES_SIZE, "the sizes are known");

/* Writes the distance of @to from @from to the 4 bytes that end at @end. */
static bool put_distance(uint8_t *end, uint64_t to, uint64_t from)
{
	int64_t distance = (int64_t)(to - from);
	int32_t near = (int32_t)distance;

	memcpy(end - sizeof(near), &near, sizeof(near));
	return near == distance;
}

bool me_enclosing_code_write(uint64_t vaddr, uint64_t slot, uint8_t *out)
{
	memcpy(out, code, sizeof(code));
	return put_distance(out + SLOT_END, slot, vaddr + SLOT_END);
}

bool me_enclosing_frames_write(uint64_t code_vaddr, uint64_t vaddr, uint8_t *out)
{
	memcpy(out, frames, sizeof(frames));
	return put_distance(out + FDE_START + 4, code_vaddr, vaddr + FDE_START);
}
