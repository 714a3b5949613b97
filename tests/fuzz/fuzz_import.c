// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_import - any text as a callgrind file, as output of perf script and as fdata: an error,
 * or counts that balance. The text may name the file /proc/self/fd/100, which has a little code
 * and symbols for it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/import/import.h"
/* Defined here, because fuzzers are not linked with the tests' support code. */
#include "tests/support/tiny_elf.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BINARY_FD 100
#define BINARY	  "/proc/self/fd/100"

/* At 0x1000: test, jz 100b, call 1020, jmp 100d, nop nop, jmp *rax, ret; at 0x1020: ret. */
static const uint8_t code[0x30] = {0x85, 0xff, 0x74, 0x07, 0xe8, 0x17,	       0, 0, 0, 0xeb, 0x02,
				   0x90, 0x90, 0xff, 0xe0, 0xc3, [0x20] = 0xc3};

static void make_binary(void)
{
	static const char names[] = "\0top\0leaf\0a.c";
	const Elf64_Sym symbols[] = {
		{0},
		{.st_name = 10, .st_info = STT_FILE, .st_shndx = SHN_ABS},
		{.st_name = 5, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0x1020},
		{.st_name = 1,
		 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		 .st_shndx = 1,
		 .st_value = 0x1000},
	};
	const struct tiny_section sections[] = {
		{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof(code), 0, 0,
		 0},
		{".symtab", SHT_SYMTAB, 0, 0, symbols, sizeof(symbols), 3, 3, sizeof(Elf64_Sym)},
		{".strtab", SHT_STRTAB, 0, 0, names, sizeof(names), 0, 0, 0},
	};
	size_t size;
	uint8_t *bytes = tiny_elf_build(sections, 3, NULL, 0, &size);
	int fd = memfd_create("binary", 0);

	if (!bytes || fd < 0 || write(fd, bytes, size) != (ssize_t)size ||
	    dup2(fd, BINARY_FD) != BINARY_FD)
		abort();
	close(fd);
	free(bytes);
}

static void check_balance(const struct mp_ledger *l)
{
	uint64_t sum = l->attributed;

	for (int i = 0; i < MP_NR_UNATTR; i++)
		sum += l->unattributed[i];
	for (int i = 0; i < MP_NR_LOST; i++)
		sum += l->lost[i];
	if (sum != l->emitted)
		abort();
}

static void check_transfers(struct md_import *import)
{
	const struct md_import_transfers *t = &import->transfers;
	uint64_t stored = 0;

	if (t->seen != t->counted + t->fell + t->outside + t->unnamed + t->unfit + t->moved)
		abort();
	for (uint32_t i = 0; i < import->nr_modules; i++) {
		struct md_import_module *m = &import->modules[i];

		md_import_sort_edges(m);
		for (size_t k = 0; k < m->nr_edges; k++) {
			const struct mp_edge_count *e = &m->edges[k];

			stored += e->count;
			/* mp_store_add_edges() would refuse these. */
			if (e->mispredicted > e->count ||
			    (k && (e->from < e[-1].from ||
				   (e->from == e[-1].from && e->to <= e[-1].to))))
				abort();
		}
	}
	if (stored != t->counted + t->straight)
		abort();
}

static void run(const uint8_t *data, size_t size, unsigned int format)
{
	struct md_import *import = md_import_new();
	struct md_lines lines = {.name = "input"};
	struct mp_err err = {0};
	int r;

	lines.file = fmemopen((void *)(uintptr_t)data, size, "r");
	if (!import || !lines.file)
		abort();
	switch (format) {
	case 0: r = md_import_callgrind(import, &lines, &err); break;
	case 1: r = md_import_perf(import, &lines, NULL, &err); break;
	default: r = md_import_fdata(import, &lines, BINARY, &err);
	}
	if (r > 0 || (r && !err.msg[0]))
		abort();
	if (!r) {
		check_balance(&import->ledger);
		check_transfers(import);
	}
	fclose(lines.file);
	free(lines.line);
	md_import_free(import);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool have_binary;

	if (!have_binary)
		make_binary();
	have_binary = true;
	/* The first byte chooses the format; the rest is the text. */
	if (size > 1)
		run(data + 1, size - 1, data[0] % 4 % 3);
	return 0;
}
