// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_count - instruments programs with counters or path numbers: good programs with any
 * profile, code of any bytes, and damaged programs. For the first two, the output must verify.
 * With path numbers, functions whose registers verify cannot prove are left alone first.
 *
 * The first byte chooses the kind of program. The second chooses atomic counters, path numbers
 * or polls, and the program. Then follow: for a good program, one byte per block, cyclically:
 * its count; for code, {u8 start of a second function in units of 8} and the bytes; for a
 * damaged program, changes {u24 offset, u8 value}.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/emit/emit.h"
#include "editor/instrument/instrument.h"
#include "editor/instrument/number.h"
#include "editor/layout/plan_all.h"
#include "editor/verify/verify.h"
#include "tests/support/rewrite.h"
#include "tests/support/tiny_elf.h"

#define NR_PROGRAMS 4
#define TEXT	    0x1000
#define EH	    0x3f00
#define DATA	    0x10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct program {
	struct rewrite_bytes bytes;
	struct mp_elf *elf;
	struct mp_cfg *cfg, *fine; /* NULL: it was not understood */
};

/* The request of an input. */
struct wish {
	bool atomic, numbers, polls;
	bool damaged; /* for a damaged original, verify may reject what emit wrote */
};

static struct program programs[NR_PROGRAMS];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const commands[NR_PROGRAMS] = {
		"gcc -O2 -w -Wl,--emit-relocs tests/data/switches.c",
		"g++ -O2 -s tests/data/exceptions.cc",
		"gcc -O1 -w -no-pie -fno-pie -s tests/data/control.c",
		"gcc -O2 -w -fPIC -shared tests/data/library.c",
	};
	static const struct mp_cfg_options fine = {.fine = true};
	struct mp_err err;

	(void)argc;
	(void)argv;
	for (int i = 0; i < NR_PROGRAMS; i++) {
		struct program *p = &programs[i];

		if (!rewrite_compile(commands[i], &p->bytes) ||
		    mp_elf_open_memory("program", p->bytes.data, p->bytes.size, MP_ELF_ALL, &p->elf,
				       &err) ||
		    mp_cfg_build(p->elf, NULL, &p->cfg, &err) ||
		    mp_cfg_build(p->elf, &fine, &p->fine, &err)) {
			p->cfg = NULL;
			fprintf(stderr, "fuzz_count: does not work: %s\n", commands[i]);
		}
	}
	return 0;
}

/*
 * Return: true if the output verifies, or if only registers of functions in @report are not
 * proved.
 */
static bool verifies(const struct mp_elf *elf, const struct me_output_parts *parts,
		     const struct wish *wish, struct me_verify_report *report)
{
	struct rewrite_bytes out = rewrite_flatten(parts);
	struct mp_err err = {""};
	struct mp_elf *output;
	int rc;

	*report = (struct me_verify_report){0};
	if (!out.data)
		return true;
	rc = mp_elf_open_memory("output", out.data, out.size, MP_ELF_ALL, &output, &err);
	if (!rc) {
		rc = me_verify(elf, output, report, &err);
		mp_elf_close(output);
	}
	if (rc && !report->nr_unproved && !wish->damaged) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	free(out.data);
	return !rc;
}

/* Like morph-optimize instrument. Return: true if the output is complete. */
static bool write_once(const struct mp_cfg *cfg, const struct mp_counts *counts,
		       const struct wish *wish, uint8_t *movable, struct me_verify_report *report)
{
	const char **detail = calloc(cfg->nr_funcs + 1, sizeof(*detail));
	struct me_instrument *instrument = NULL;
	struct me_instrument_report counted = {0};
	struct me_number *number = NULL;
	struct me_number_report numbered = {0};
	struct me_emitted emitted = {0};
	struct me_plan plan = {0};
	struct me_instrumentation added = {.counters = wish->atomic ? ME_COUNTERS_ATOMIC
								    : ME_COUNTERS_PLAIN,
					   .counts_path = "counts"};
	struct mp_err err;
	bool done = false;
	int rc = detail ? 0 : -ENOMEM;

	*report = (struct me_verify_report){0};
	if (!rc && wish->numbers)
		rc = me_number_new(cfg, wish->polls, movable, NULL, &number, &err);
	else if (!rc)
		rc = me_instrument_new(cfg, movable, detail, &instrument, &err);
	if (!rc)
		rc = me_plan_all(cfg, movable, NULL, &plan, &err);
	if (!rc && wish->numbers)
		rc = me_number_plan(number, counts, movable, &plan, &added, &numbered, &err);
	else if (!rc)
		rc = me_instrument_plan(instrument, counts, movable, &plan, &added, &counted, &err);
	/* A program whose paths never merge needs no numbers. */
	if (!rc && !added.nr_stubs)
		done = wish->numbers;
	else if (!rc && plan.nr_blocks &&
		 !rewrite_emit_instrumented(cfg, &plan, &added, &emitted, &err))
		done = verifies(cfg->elf, &emitted.output, wish, report) || wish->damaged;
	me_emitted_fini(&emitted);
	me_instrument_free(instrument);
	me_number_free(number);
	me_plan_fini(&plan);
	me_instrumentation_fini(&added);
	free(detail);
	return done;
}

/* Each round excludes at least one more function, so that the rounds end. */
static void leave_alone(const struct mp_cfg *cfg, const struct me_verify_report *report,
			uint8_t *movable)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < report->nr_unproved; i++) {
		uint32_t f = mp_cfg_func_at(cfg, report->unproved[i].start);

		if (f != MP_NONE && movable[f]) {
			movable[f] = 0;
			nr++;
		}
	}
	if (!nr) {
		fprintf(stderr, "nothing to leave alone\n");
		abort();
	}
}

static bool count(const struct mp_cfg *cfg, const struct mp_counts *counts, const struct wish *wish)
{
	uint8_t *movable = rewrite_movable(cfg);
	struct me_verify_report report = {0};
	bool done = false;

	while (movable) {
		done = write_once(cfg, counts, wish, movable, &report);
		if (done || !report.nr_unproved)
			break;
		leave_alone(cfg, &report, movable);
	}
	free(movable);
	return done;
}

/* ---- a good program
 * --------------------------------------------------------------------------- */

static void count_program(const struct program *p, const uint8_t *data, size_t size,
			  const struct wish *wish)
{
	const struct mp_cfg *cfg = wish->numbers ? p->fine : p->cfg;
	struct mp_counts counts = {
		.block = calloc(cfg->nr_blocks + 1, sizeof(*counts.block)),
		.edge = calloc(cfg->nr_edges + 1, sizeof(*counts.edge)),
	};

	/* Impossible counts must not cause a wrong result. */
	for (uint32_t i = 0; counts.edge && size && i < cfg->nr_edges; i++)
		counts.edge[i] = (double)data[i % size] * (data[(i / 3) % size] + 1);
	for (uint32_t i = 0; counts.block && size && i < cfg->nr_blocks; i++)
		counts.block[i] = data[i % size];
	if (counts.block && counts.edge && !count(cfg, size ? &counts : NULL, wish))
		abort();
	free(counts.block);
	free(counts.edge);
}

/* Instruments code of any bytes. */
static void count_bytes(const char *name, const uint8_t *bytes, size_t size,
			const struct wish *wish)
{
	const struct mp_cfg_options options = {.fine = wish->numbers};
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct mp_err err;

	if (mp_elf_open_memory(name, bytes, size, MP_ELF_ALL, &elf, &err))
		return;
	if (!mp_cfg_build(elf, &options, &cfg, &err)) {
		count(cfg, NULL, wish);
		mp_cfg_free(cfg);
	}
	mp_elf_close(elf);
}

static void count_damaged(const struct program *p, const uint8_t *data, size_t size,
			  struct wish *wish)
{
	uint8_t *copy = malloc(p->bytes.size);

	if (!copy)
		return;
	memcpy(copy, p->bytes.data, p->bytes.size);
	for (; size >= 4; data += 4, size -= 4)
		copy[(size_t)(data[0] | data[1] << 8 | data[2] << 16) % p->bytes.size] = data[3];
	wish->damaged = true;
	count_bytes("damaged", copy, p->bytes.size, wish);
	free(copy);
}

/* ---- any code
 * --------------------------------------------------------------------------------- */

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
	/* A header that can be reused, and memory behind which counters are placed. */
	const Elf64_Phdr phdrs[] = {
		{.p_type = PT_PHDR, .p_flags = PF_R, .p_align = 8},
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_W,
		 .p_vaddr = DATA,
		 .p_paddr = DATA,
		 .p_memsz = 8,
		 .p_align = 0x1000},
	};
	uint8_t eh[100] = {0};
	struct tiny_section sections[] = {
		{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, data + 1, 0, 0, 0, 0},
		{".eh_frame", SHT_PROGBITS, SHF_ALLOC, EH, eh, 0, 0, 0, 0},
	};
	uint32_t code = (uint32_t)size - 1, half = data[0] * 8u;
	size_t at = sizeof(cie);
	Elf64_Ehdr *ehdr;

	if (size - 1 > EH - TEXT)
		code = EH - TEXT;
	if (half >= code)
		half = 0;
	memcpy(eh, cie, sizeof(cie));
	at = put_fde(eh, at, TEXT, half ? half : code);
	if (half)
		at = put_fde(eh, at, TEXT + half, code - half);
	sections[0].size = code;
	sections[1].size = at + 4; /* including the terminator: a length of 0 */
	ehdr = (Elf64_Ehdr *)tiny_elf_build(sections, 2, phdrs, 2, elf_size);
	ehdr->e_type = ET_EXEC;
	ehdr->e_entry = TEXT;
	return (uint8_t *)ehdr;
}

static void count_code(const uint8_t *data, size_t size, const struct wish *wish)
{
	size_t elf_size;
	uint8_t *bytes = build(data, size, &elf_size);

	count_bytes("code", bytes, elf_size, wish);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct program *p;
	struct wish wish;

	if (size < 4)
		return 0;
	p = &programs[data[1] % NR_PROGRAMS];
	wish = (struct wish){
		.atomic = data[1] & 0x80, .numbers = data[1] & 0x40, .polls = data[1] & 0x20};
	if (data[0] % 4 < 2)
		count_code(data + 2, size - 2, &wish);
	else if (p->cfg && data[0] % 4 == 2)
		count_program(p, data + 2, size - 2, &wish);
	else if (p->cfg)
		count_damaged(p, data + 2, size - 2, &wish);
	return 0;
}
