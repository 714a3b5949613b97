// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_table - any bytes as the code of a function that jumps through a table, and as that
 * table: a graph whose invariants hold and, if something may move, an output that verifies.
 *
 * The input is {u8 flags, u8 start of a second function in units of 8, u16 bytes of code}, the
 * code, which lies at 0x1000, and constant data, which lies at 0x4000. See
 * scripts/check/fuzz-seeds.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/emit/emit.h"
#include "editor/layout/plan_all.h"
#include "editor/verify/verify.h"
#include "tests/support/rewrite.h"
#include "tests/support/sound.h"
#include "tests/support/tiny_elf.h"

#define TEXT   0x1000
#define EH     0x3f00
#define RODATA 0x4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A CIE like those of compilers, followed by an FDE per function: pc-relative, 4 bytes. */
static const uint8_t cie[] = {20, 0,	0,    0, 0,    0,    0, 0, 1,	 'z', 'R', 0,
			      1,  0x78, 0x10, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0};

static size_t put_fde(uint8_t *eh, size_t at, uint32_t start, uint32_t size)
{
	uint32_t fde[6] = {20, (uint32_t)at + 4, start - (EH + (uint32_t)at + 8), size, 0, 0};

	memcpy(eh + at, fde, sizeof(fde));
	return at + sizeof(fde);
}

static uint8_t *build(const uint8_t *data, size_t size, size_t *elf_size)
{
	uint32_t code = (uint32_t)(data[2] | data[3] << 8), half = data[1] * 8u, at = sizeof(cie);
	/*
	 * A program with fixed addresses can give up this header, to make room for the new
	 * segment's.
	 */
	const Elf64_Phdr phdr = {.p_type = PT_PHDR, .p_flags = PF_R, .p_align = 8};
	uint8_t eh[100] = {0};
	struct tiny_section sections[] = {
		{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, data + 4, 0, 0, 0, 0},
		{".eh_frame", SHT_PROGBITS, SHF_ALLOC, EH, eh, 0, 0, 0, 0},
		{".rodata", SHT_PROGBITS, SHF_ALLOC, RODATA, NULL, 0, 0, 0, 0},
	};
	uint8_t *bytes;

	size -= 4;
	if (code > size)
		code = (uint32_t)size;
	if (code > EH - TEXT)
		code = EH - TEXT;
	if (half >= code)
		half = 0;
	memcpy(eh, cie, sizeof(cie));
	at = (uint32_t)put_fde(eh, at, TEXT, half ? half : code);
	if (half)
		at = (uint32_t)put_fde(eh, at, TEXT + half, code - half);
	sections[0].size = code;
	sections[1].size = at + 4; /* including the terminator: a length of 0 */
	sections[2].data = data + 4 + code;
	sections[2].size = size - code;
	bytes = tiny_elf_build(sections, 3, &phdr, 1, elf_size);
	if (bytes)
		((Elf64_Ehdr *)bytes)->e_type = data[0] & 1 ? ET_DYN : ET_EXEC;
	return bytes;
}

static void verify(const struct mp_elf *elf, const struct me_output_parts *parts)
{
	struct rewrite_bytes out = rewrite_flatten(parts);
	struct mp_elf *output;
	struct mp_err err;

	if (!out.data)
		return;
	if (mp_elf_open_memory("output", out.data, out.size, MP_ELF_ALL, &output, &err) ||
	    me_verify(elf, output, NULL, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	mp_elf_close(output);
	free(out.data);
}

static void use(const struct mp_elf *elf)
{
	struct me_emitted emitted;
	struct me_plan plan = {0};
	struct mp_cfg *cfg;
	uint8_t *movable;
	struct mp_err err;
	uint64_t seed = 7;

	if (mp_cfg_build(elf, NULL, &cfg, &err))
		return;
	sound_cfg(cfg);
	movable = rewrite_movable(cfg);
	if (movable && !me_plan_all(cfg, movable, &seed, &plan, &err) && plan.nr_blocks &&
	    !rewrite_emit(cfg, &plan, &emitted, &err)) {
		verify(elf, &emitted.output);
		me_emitted_fini(&emitted);
	}
	me_plan_fini(&plan);
	free(movable);
	mp_cfg_free(cfg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_elf *elf;
	struct mp_err err;
	size_t elf_size;
	uint8_t *bytes;

	if (size < 5)
		return 0;
	bytes = build(data, size, &elf_size);
	if (!bytes)
		return 0;
	if (!mp_elf_open_memory("code", bytes, elf_size, MP_ELF_ALL, &elf, &err)) {
		use(elf);
		mp_elf_close(elf);
	}
	free(bytes);
	return 0;
}
