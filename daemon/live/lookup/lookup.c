// SPDX-License-Identifier: Apache-2.0
/* lookup - makes the page: code that is always the same, the loader's way to answer, and the table of segments. */
#include "daemon/live/lookup/lookup.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/*
 * The page. At its begin %rdi is the address and %rsi the answer, a struct dl_find_object of glibc 2.35; registers that
 * a call may change are free. Its unwind rows follow the code, and a search table with one entry.
 */
__asm__(".pushsection .rodata, \"a\", @progbits\n"
	".balign 16\n"
	"md_lookup_code:\n"
	"	lea	md_lookup_table(%rip), %rax\n"
	"	mov	(%rax), %ecx\n"
	"	add	$8, %rax\n"
	"1:	sub	$1, %ecx\n"
	"	js	md_lookup_real\n"
	"	mov	%rdi, %rdx\n"
	"	sub	(%rax), %rdx\n"	 /* start */
	"	cmp	8(%rax), %rdx\n" /* size */
	"	jb	2f\n"
	"	add	$32, %rax\n"
	"	jmp	1b\n"
	"2:	push	%rsi\n"
	"10:	push	%rax\n"
	"11:	sub	$8, %rsp\n"
	"12:	mov	16(%rax), %rdi\n" /* original */
	"	call	md_lookup_real\n"
	"	add	$8, %rsp\n"
	"13:	pop	%rdx\n"
	"14:	pop	%rsi\n"
	"15:	test	%eax, %eax\n"
	"	jne	3f\n"
	"	mov	(%rdx), %rcx\n"
	"	mov	%rcx, 8(%rsi)\n" /* dlfo_map_start */
	"	add	8(%rdx), %rcx\n"
	"	mov	%rcx, 16(%rsi)\n" /* dlfo_map_end */
	"	mov	24(%rdx), %rcx\n"
	"	mov	%rcx, 32(%rsi)\n" /* dlfo_eh_frame */
	"3:	ret\n"
	"md_lookup_real:\n"
	"	mov	0x12345678(%rip), %rax\n"
	"	jmp	*0x12345678(%rax)\n"
	"md_lookup_code_end:\n"
	".balign 8\n"
	/* CIE: the frame is at %rsp + 8, and the return address right below it. */
	"20:	.long	22f - 21f\n"
	"21:	.long	0\n"
	"	.byte	1\n"
	"	.asciz	\"zR\"\n"
	"	.uleb128 1\n"
	"	.sleb128 -8\n"
	"	.byte	16\n"
	"	.uleb128 1\n"
	"	.byte	0x1b\n"		/* pcrel, sdata4 */
	"	.byte	0x0c, 7, 8\n"	/* def_cfa */
	"	.byte	0x80 + 16, 1\n" /* offset */
	"	.balign 8\n"
	"22:\n"
	"23:	.long	25f - 24f\n"
	"24:	.long	24b - 20b\n"
	"	.long	md_lookup_code - .\n"
	"	.long	md_lookup_code_end - md_lookup_code\n"
	"	.uleb128 0\n"
	"	.byte	0x02, 10b - md_lookup_code, 0x0e, 16\n" /* advance_loc1, def_cfa_offset */
	"	.byte	0x02, 11b - 10b, 0x0e, 24\n"
	"	.byte	0x02, 12b - 11b, 0x0e, 32\n"
	"	.byte	0x02, 13b - 12b, 0x0e, 24\n"
	"	.byte	0x02, 14b - 13b, 0x0e, 16\n"
	"	.byte	0x02, 15b - 14b, 0x0e, 8\n"
	"	.balign 8\n"
	"25:	.long	0\n"
	"	.balign 8\n"
	"md_lookup_hdr:\n"
	"	.byte	1, 0x1b, 0x03, 0x3b\n" /* version; pcrel sdata4, udata4, datarel sdata4 */
	"	.long	20b - .\n"
	"	.long	1\n"
	"	.long	md_lookup_code - md_lookup_hdr, 23b - md_lookup_hdr\n"
	"	.balign 8\n"
	"md_lookup_table:\n"
	"	.quad	0\n"
	".popsection\n");

/* Symbols of the assembly above. */
extern const uint8_t md_lookup_code[] __attribute__((visibility("hidden")));
extern const uint8_t md_lookup_real[] __attribute__((visibility("hidden")));
extern const uint8_t md_lookup_hdr[] __attribute__((visibility("hidden")));
extern const uint8_t md_lookup_table[] __attribute__((visibility("hidden")));

/* Bytes of mov slot(%rip), %rax. */
#define MOV_SIZE 7

/* The function jumps to *(*@slot + @offset). */
struct way {
	uint64_t mov; /* address of its first instruction, behind endbr64 */
	uint64_t slot;
	int32_t offset;
	uint64_t at; /* of the jump to the page */
};

static int32_t int32_at(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* [endbr64] mov slot(%rip), %rax; [notrack] jmp *offset(%rax) */
static int read_function(const uint8_t *function, uint64_t ip, struct way *out)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa}, mov[] = {0x48, 0x8b, 0x05};
	const uint8_t *at = function;

	if (!memcmp(at, endbr64, sizeof(endbr64)))
		at += sizeof(endbr64);
	if (memcmp(at, mov, sizeof(mov)) != 0)
		return -EOPNOTSUPP;
	out->mov = ip + (uint64_t)(at - function);
	out->slot = out->mov + MOV_SIZE + (uint64_t)(int64_t)int32_at(at + 3);
	at += MOV_SIZE;
	if (*at == 0x3e)
		at++;
	if (at[0] != 0xff || (at[1] != 0xa0 && at[1] != 0x60))
		return -EOPNOTSUPP;
	/* The jump to the page would not fit behind the first instruction. */
	if (out->mov == ip && at[1] == 0x60)
		return -EOPNOTSUPP;
	out->offset = at[1] == 0xa0 ? int32_at(at + 2) : (int8_t)at[2];
	/*
	 * Where somebody has a breakpoint at the function's beginning, the kernel executes the instruction that
	 * the file has there, and goes on behind it. The value in %rax is not needed.
	 */
	out->at = out->mov == ip ? out->mov + MOV_SIZE : out->mov;
	return 0;
}

/* Writes the distance from behind @field, whose address is @at, to @to. */
static int put_distance(uint8_t *field, uint64_t at, uint64_t to)
{
	int64_t distance = (int64_t)(to - (at + 4));
	int32_t rel = (int32_t)distance;

	if (rel != distance)
		return -ERANGE;
	memcpy(field, &rel, sizeof(rel));
	return 0;
}

int md_lookup_make(const uint8_t function[MD_LOOKUP_READ], uint64_t ip, uint64_t page,
		   const struct md_lookup_entry *entries, uint32_t nr, struct md_lookup *out)
{
	const size_t real = (size_t)(md_lookup_real - md_lookup_code),
		     table = (size_t)(md_lookup_table - md_lookup_code);
	const struct md_lookup_entry own = {page, MD_LOOKUP_PAGE, ip,
					    page + (uint64_t)(md_lookup_hdr - md_lookup_code)};
	uint64_t nr_all = (uint64_t)nr + 1;
	struct way way;
	int rc = read_function(function, ip, &way);

	if (rc)
		return rc;
	if (nr > MD_LOOKUP_MAX)
		return -E2BIG;
	memset(out, 0, sizeof(*out));
	memcpy(out->page, md_lookup_code, table);
	rc = put_distance(out->page + real + 3, page + real + 3, way.slot);
	if (rc)
		return rc;
	memcpy(out->page + real + 9, &way.offset, sizeof(way.offset));
	memcpy(out->page + table, &nr_all, sizeof(nr_all));
	memcpy(out->page + table + 8, &own, sizeof(own));
	if (nr)
		memcpy(out->page + table + 8 + sizeof(own), entries, nr * sizeof(*entries));
	out->at = way.at;
	memcpy(out->old, function + (way.at - ip), MD_LOOKUP_PATCH);
	out->patch[0] = 0xe9;
	return put_distance(out->patch + 1, way.at + 1, page);
}
