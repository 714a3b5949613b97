// SPDX-License-Identifier: Apache-2.0
/*
 * tiny_elf - builds ELF files in memory whose contents a test defines exactly.
 *
 * An allocated section lies at the file offset that equals its vaddr; other sections follow.
 * One PT_LOAD (R+X) covers the file from 0 to the end of the last allocated section.
 */
#ifndef MORPH_TESTS_TINY_ELF_H
#define MORPH_TESTS_TINY_ELF_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

struct tiny_section {
	const char *name;
	uint32_t type;
	uint64_t flags, vaddr;
	const void *data;
	size_t size;
	uint32_t link, info; /* section numbers; the first of @sections is 1 */
	uint64_t entsize;
};

/* @phdrs: headers to add after the PT_LOAD. Ownership: free() the result. */
uint8_t *tiny_elf_build(const struct tiny_section *sections, unsigned int nr,
			const Elf64_Phdr *phdrs, unsigned int nr_phdrs, size_t *size);

/* Writes @size bytes to a new file in $TMPDIR or /tmp; @path holds 256 bytes. Return: 0, -1. */
int tiny_elf_write(const void *bytes, size_t size, char *path);

#endif
