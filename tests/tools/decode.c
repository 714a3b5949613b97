// SPDX-License-Identifier: Apache-2.0
/*
 * decode - decodes the code of an ELF file once with Zydis: the least that any tool needs that
 * decodes all code. Prints bytes, instructions and CPU seconds as JSON. For benchmarks.
 *
 *	decode FILE
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <Zydis/Zydis.h>

#include "libprof/elf/elf.h"

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Return: number of instructions; bytes that cannot be decoded are skipped one by one. */
static uint64_t decode(const uint8_t *bytes, uint64_t size)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	uint64_t nr = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint64_t at = 0; at < size;) {
		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes + at, size - at,
							      &insn))) {
			at++;
			continue;
		}
		at += insn.length;
		nr++;
	}
	return nr;
}

int main(int argc, char **argv)
{
	uint64_t nr = 0, size = 0;
	struct mp_elf *elf;
	struct mp_err err;
	double start;

	if (argc != 2) {
		fprintf(stderr, "usage: decode FILE\n");
		return 2;
	}
	if (mp_elf_open(argv[1], MP_ELF_SYMBOLS, &elf, &err)) {
		fprintf(stderr, "decode: %s: %s\n", argv[1], err.msg);
		return 1;
	}
	start = cpu_s();
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];
		const uint8_t *bytes;

		if (!(s->flags & SHF_EXECINSTR) || s->type == SHT_NOBITS)
			continue;
		bytes = mp_elf_bytes(elf, s->vaddr, s->size);
		if (!bytes)
			continue;
		nr += decode(bytes, s->size);
		size += s->size;
	}
	printf("{\"bytes\": %" PRIu64 ", \"instructions\": %" PRIu64 ", \"cpu_s\": %.6f}\n", size,
	       nr, cpu_s() - start);
	mp_elf_close(elf);
	return 0;
}
