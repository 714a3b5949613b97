// SPDX-License-Identifier: Apache-2.0
/*
 * foresee - which ways the next branches go, by the registers of samples. For measurements (scripts/bench/bench-foreseen).
 *
 *	foresee FILE BASE < SAMPLES
 *
 * FILE is mapped at BASE (hexadecimal). A line of SAMPLES has 18 hexadecimal numbers: the address of a sample, then
 * rax rbx rcx rdx rsi rdi rbp rsp rflags and r8 to r15. Prints a line for each branch that mp_foresee_with_flags() decides, as
 * mp_foreseen_read() reads it: ADDRESS TAKEN FELL. To stderr: how many samples showed a way, and what they cost.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "libprof/elf/elf.h"
#include "libprof/foresee/foresee.h"

enum {
	NR_NUMBERS = 17,
	FLAGS = 16
};

/* x86's numbers of the registers of a line. */
static const uint8_t numbers[NR_NUMBERS] = {0, 3, 1,  2,  6,  7,  5,  4, FLAGS,
					    8, 9, 10, 11, 12, 13, 14, 15};

struct sum {
	uint64_t nr, nr_shown, nr_ways, time_ns;
};

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "foresee: %s\n", what);
	exit(1);
}

static const uint8_t *code_at(void *data, uint64_t vaddr, size_t *avail)
{
	const struct mp_elf *elf = data;

	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *load = &elf->phdrs[i];
		uint64_t off = vaddr - load->p_vaddr;

		if (load->p_type != PT_LOAD || !(load->p_flags & PF_X) || off >= load->p_filesz)
			continue;
		*avail = load->p_filesz - off;
		return elf->data + load->p_offset + off;
	}
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* @ways: per byte of the file's addresses: fell, taken. */
static void samples_run(const struct mp_elf *elf, uint64_t base, uint32_t (*ways)[2],
			struct sum *sum)
{
	struct mp_foresee_code code = {code_at, (void *)elf};
	struct mp_foreseen_way found[MP_FORESEE_WAYS];
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t registers[NR_NUMBERS], start;
		char *rest = line;
		uint64_t vaddr = strtoull(rest, &rest, 16) - base;
		uint32_t nr;
		size_t avail;

		if (!code_at((void *)elf, vaddr, &avail))
			continue;
		for (unsigned int i = 0; i < NR_NUMBERS; i++)
			registers[numbers[i]] = strtoull(rest, &rest, 16);
		start = now_ns();
		nr = mp_foresee_with_flags(&code, vaddr, registers, 0xffff, registers[FLAGS],
					   found);
		sum->time_ns += now_ns() - start;
		sum->nr++;
		sum->nr_shown += nr > 0;
		sum->nr_ways += nr;
		for (uint32_t i = 0; i < nr; i++)
			ways[found[i].vaddr][found[i].taken]++;
	}
}

int main(int argc, char **argv)
{
	struct sum sum = {0};
	struct mp_elf *elf;
	struct mp_err err = {""};
	uint32_t(*ways)[2];
	uint64_t size = 0;

	if (argc != 3)
		die("usage: foresee FILE BASE < SAMPLES");
	if (mp_elf_open(argv[1], MP_ELF_ALL, &elf, &err))
		die(err.msg);
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *load = &elf->phdrs[i];

		if (load->p_type == PT_LOAD && load->p_vaddr + load->p_filesz > size)
			size = load->p_vaddr + load->p_filesz;
	}
	ways = calloc(size + 1, sizeof(*ways));
	if (!ways)
		die("out of memory");
	samples_run(elf, strtoull(argv[2], NULL, 16), ways, &sum);
	for (uint64_t at = 0; at < size; at++)
		if (ways[at][0] || ways[at][1])
			printf("%" PRIx64 " %" PRIu32 " %" PRIu32 "\n", at, ways[at][1],
			       ways[at][0]);
	fprintf(stderr,
		"%" PRIu64 " of %" PRIu64 " samples show a branch's way; %" PRIu64 " ways, %" PRIu64
		" ns per sample\n",
		sum.nr_shown, sum.nr, sum.nr_ways, sum.nr ? sum.time_ns / sum.nr : 0);
	free(ways);
	mp_elf_close(elf);
	return 0;
}
