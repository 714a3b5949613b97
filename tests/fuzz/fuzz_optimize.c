// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_optimize - damaged programs through the whole editor, in memory: a refusal by one of its
 * parts, of which verify is the last, or an output.
 *
 * The input is a list of changes {u24 offset, u8 value} to a program that is compiled at the
 * start; the first byte chooses the program. Input that is no such list is used as an ELF file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/verify.h"
#include "tests/support/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define NR_PROGRAMS 4

static struct rewrite_bytes programs[NR_PROGRAMS];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const commands[NR_PROGRAMS] = {
		"g++ -O1 -Wl,--emit-relocs tests/data/exceptions.cc",
		"gcc -O1 -w -s -no-pie -fno-pie tests/data/switches.c",
		"g++ -O2 -s tests/data/mutants.cc",
		"gcc -O1 -w -Wl,--emit-relocs -no-pie -fno-pie tests/data/control.c",
	};

	(void)argc;
	(void)argv;
	for (int i = 0; i < NR_PROGRAMS; i++)
		if (!rewrite_compile(commands[i], &programs[i]))
			fprintf(stderr, "fuzz_optimize: does not work: %s\n", commands[i]);
	return 0;
}

static void try_original(const uint8_t *data, size_t size)
{
	struct rewrite_bytes out = {0};
	struct mp_elf *elf, *output;
	struct mp_err err = {""};
	uint64_t seed = 3;
	int ret;

	if (mp_elf_open_memory("input", data, size, MP_ELF_ALL, &elf, &err))
		return;
	if (rewrite_all(elf, &seed, &out)) {
		if (!mp_elf_open_memory("output", out.data, out.size, MP_ELF_ALL, &output, &err)) {
			ret = me_verify(elf, output, NULL, &err);
			/* For a damaged original, verify may reject what emit wrote. */
			if (ret && ret != -ENOMEM && (ret != -EBADMSG || !*err.msg))
				abort();
			mp_elf_close(output);
		}
	}
	mp_elf_close(elf);
	free(out.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rewrite_bytes *base;
	uint8_t *copy;

	if (size >= 4 && !memcmp(data, "\177ELF", 4)) {
		try_original(data, size);
		return 0;
	}
	if (!size)
		return 0;
	base = &programs[data[0] % NR_PROGRAMS];
	copy = base->size ? malloc(base->size) : NULL;
	if (!copy)
		return 0;
	memcpy(copy, base->data, base->size);
	for (data++, size--; size >= 4; data += 4, size -= 4)
		copy[(data[0] | data[1] << 8 | data[2] << 16) % base->size] = data[3];
	try_original(copy, base->size);
	free(copy);
	return 0;
}
