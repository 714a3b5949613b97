// SPDX-License-Identifier: Apache-2.0
/*
 * elf_start - finds the first instruction of a program or of the dynamic linker.
 *
 * The entry point of the file's header is this instruction, except in libraries: old linkers gave
 * them the start of .text as entry point. Code that the kernel enters has no return address. It is
 * recognised because it reads its arguments at the stack pointer, or clears rbp to end chains of
 * frame pointers.
 */
#include <string.h>

#include "libprof/elf/elf_private.h"

void mp_elf_find_start(struct mp_elf *elf)
{
	static const uint8_t endbr[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const uint8_t starts[3][3] = {
		{0x48, 0x89, 0xe7}, /* mov %rsp, %rdi */
		{0x48, 0x31, 0xed}, /* xor %rbp, %rbp */
		{0x31, 0xed},	    /* xor %ebp, %ebp */
	};
	uint8_t code[8] = {0}, *p = code;
	uint64_t off;

	if (!mp_elf_is_code(elf, elf->ehdr.e_entry) ||
	    !mp_elf_vaddr_to_off(elf, elf->ehdr.e_entry, &off) ||
	    mp_elf_read(elf, off, sizeof(code), code, NULL))
		return;
	if (!memcmp(p, endbr, sizeof(endbr)))
		p += sizeof(endbr);
	if (!memcmp(p, starts[0], 3) || !memcmp(p, starts[1], 3) || !memcmp(p, starts[2], 2))
		elf->start = elf->ehdr.e_entry;
}
