// SPDX-License-Identifier: Apache-2.0
/*
 * foresee - which ways the next branches go, by the registers of samples. For measurements (scripts/bench/bench-foreseen).
 *
 *	foresee FILE BASE < SAMPLES
 *
 * FILE is mapped at BASE (hexadecimal). A line of SAMPLES has 18 hexadecimal numbers: the address of a sample, then
 * rax rbx rcx rdx rsi rdi rbp rsp rflags and r8 to r15. From there the instructions are executed on an emulated
 * processor (unicorn) up to the first that reads memory which the file does not fix, calls, returns, jumps to another
 * file, or up to BRANCHES_MAX conditional branches. Writes do no harm: what was written is not read again.
 *
 * Prints a line for each branch, as mp_foreseen_read() reads it: ADDRESS TAKEN FELL.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicorn/unicorn.h>

#include "libprof/elf/elf.h"
#include "libprof/insn/insn.h"

enum {
	BRANCHES_MAX = 8,
	INSNS_MAX = 100,
	FIXED_MAX = 16,
	WRITTEN_MAX = 16,
	NR_REGISTERS = 17,
	PAGE = 4096,
};

static const int registers[NR_REGISTERS] = {
	UC_X86_REG_RAX, UC_X86_REG_RBX, UC_X86_REG_RCX, UC_X86_REG_RDX,	   UC_X86_REG_RSI,
	UC_X86_REG_RDI, UC_X86_REG_RBP, UC_X86_REG_RSP, UC_X86_REG_EFLAGS, UC_X86_REG_R8,
	UC_X86_REG_R9,	UC_X86_REG_R10, UC_X86_REG_R11, UC_X86_REG_R12,	   UC_X86_REG_R13,
	UC_X86_REG_R14, UC_X86_REG_R15,
};
#define FLAGS	    8	  /* in @registers */
#define STATUS_BITS 0xcd5 /* carry, parity, adjust, zero, sign, direction, overflow */

struct range {
	uint64_t vaddr, end;
	bool code;
};

static uint64_t base, size;
static struct range fixed[FIXED_MAX]; /* what the file has at fixed contents */
static unsigned int nr_fixed, nr_written, nr_insns, nr_branches;
static uint64_t written[WRITTEN_MAX]; /* pages */
static bool stopped;
static uint32_t (*ways)[2]; /* per byte of the file's addresses: fell, taken */

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "foresee: %s\n", what);
	exit(1);
}

static const struct range *range_at(uint64_t vaddr)
{
	for (unsigned int i = 0; i < nr_fixed; i++)
		if (vaddr >= fixed[i].vaddr && vaddr < fixed[i].end)
			return &fixed[i];
	return NULL;
}

static void stop(uc_engine *uc)
{
	stopped = true;
	uc_emu_stop(uc);
}

static void on_read(uc_engine *uc, uc_mem_type type, uint64_t vaddr, int bytes, int64_t value,
		    void *data)
{
	(void)type;
	(void)bytes;
	(void)value;
	(void)data;
	if (!range_at(vaddr))
		stop(uc);
}

/* A page appears where something is written. Return: true to go on. */
static bool on_unmapped(uc_engine *uc, uc_mem_type type, uint64_t vaddr, int bytes, int64_t value,
			void *data)
{
	uint64_t end = (vaddr + (uint64_t)bytes - 1) / PAGE * PAGE;

	(void)value;
	(void)data;
	for (uint64_t page = vaddr / PAGE * PAGE; page <= end; page += PAGE) {
		if (type != UC_MEM_WRITE_UNMAPPED || range_at(page) || nr_written == WRITTEN_MAX)
			return false;
		if (!uc_mem_map(uc, page, PAGE, UC_PROT_READ | UC_PROT_WRITE))
			written[nr_written++] = page;
	}
	return true;
}

/* Is condition @cc, the low four bits of a branch's opcode, true with these flags? */
static bool is_true(unsigned int cc, uint64_t flags)
{
	bool carry = flags & 1, parity = flags >> 2 & 1, zero = flags >> 6 & 1,
	     sign = flags >> 7 & 1, overflow = flags >> 11 & 1;
	const bool values[] = {overflow,
			       carry,
			       zero,
			       carry || zero,
			       sign,
			       parity,
			       sign != overflow,
			       zero || sign != overflow};

	return values[cc >> 1] != (cc & 1);
}

/* The opcode is 0x70 + cc before a displacement of 1 byte, 0x0f and 0x80 + cc before one of 4 bytes. */
static void branch(uc_engine *uc, uint64_t vaddr, const uint8_t *bytes, uint8_t len)
{
	bool near = len >= 6 && bytes[len - 6] == 0x0f;
	uint64_t flags;

	uc_reg_read(uc, UC_X86_REG_EFLAGS, &flags);
	ways[vaddr - base][is_true(bytes[near ? len - 5 : len - 2] & 15, flags)]++;
	if (++nr_branches >= BRANCHES_MAX)
		stop(uc);
}

static void on_insn(uc_engine *uc, uint64_t vaddr, uint32_t len, void *data)
{
	const struct range *range = range_at(vaddr);
	uint8_t bytes[16];
	struct mp_insn insn;

	(void)data;
	if (stopped)
		return;
	if (!range || !range->code || ++nr_insns > INSNS_MAX || len > sizeof(bytes) ||
	    uc_mem_read(uc, vaddr, bytes, len) || mp_insn_decode(bytes, len, vaddr, &insn)) {
		stop(uc);
		return;
	}
	switch (insn.kind) {
	case MP_INSN_COND: branch(uc, vaddr, bytes, insn.len); break;
	case MP_INSN_OTHER:
	case MP_INSN_JUMP:
	case MP_INSN_IJUMP: break;
	default: stop(uc);
	}
}

/* Maps what no run of the program changes: code and read-only data. */
static void file_map(uc_engine *uc, const struct mp_elf *elf)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *load = &elf->phdrs[i];
		uint64_t start = load->p_vaddr / PAGE * PAGE;
		uint64_t end = (load->p_vaddr + load->p_filesz + PAGE - 1) / PAGE * PAGE;

		if (load->p_type != PT_LOAD || load->p_flags & PF_W || nr_fixed == FIXED_MAX)
			continue;
		if (uc_mem_map(uc, base + start, end - start, UC_PROT_READ | UC_PROT_EXEC) ||
		    uc_mem_write(uc, base + load->p_vaddr, elf->data + load->p_offset,
				 load->p_filesz))
			die("cannot map the file");
		fixed[nr_fixed++] = (struct range){base + start, base + end, load->p_flags & PF_X};
		size = end > size ? end : size;
	}
}

/* Return: true if @line is a sample of the file's code; then the registers are those of the sample. */
static bool sample_read(uc_engine *uc, char *line, uint64_t *vaddr)
{
	const struct range *range;

	*vaddr = strtoull(line, &line, 16);
	range = range_at(*vaddr);
	if (!range || !range->code)
		return false;
	for (unsigned int i = 0; i < NR_REGISTERS; i++) {
		uint64_t value = strtoull(line, &line, 16);

		if (i == FLAGS)
			value &= STATUS_BITS;
		uc_reg_write(uc, registers[i], &value);
	}
	return true;
}

static void samples_run(uc_engine *uc)
{
	uint64_t nr = 0, nr_seen = 0, vaddr;
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		if (!sample_read(uc, line, &vaddr))
			continue;
		nr_insns = nr_branches = 0;
		stopped = false;
		uc_emu_start(uc, vaddr, 0, 0, 2 * INSNS_MAX);
		nr++;
		nr_seen += nr_branches > 0;
		while (nr_written)
			uc_mem_unmap(uc, written[--nr_written], PAGE);
	}
	fprintf(stderr, "%" PRIu64 " of %" PRIu64 " samples show a branch's way\n", nr_seen, nr);
}

int main(int argc, char **argv)
{
	struct mp_elf *elf;
	struct mp_err err = {""};
	uc_engine *uc;
	uc_hook hooks[3];

	if (argc != 3)
		die("usage: foresee FILE BASE < SAMPLES");
	base = strtoull(argv[2], NULL, 16);
	if (mp_elf_open(argv[1], MP_ELF_ALL, &elf, &err))
		die(err.msg);
	if (uc_open(UC_ARCH_X86, UC_MODE_64, &uc))
		die("no emulator");
	file_map(uc, elf);
	ways = calloc(size + 1, sizeof(*ways));
	if (!ways)
		die("out of memory");
	uc_hook_add(uc, &hooks[0], UC_HOOK_MEM_READ, (void *)on_read, NULL, 1, 0);
	uc_hook_add(uc, &hooks[1], UC_HOOK_MEM_UNMAPPED, (void *)on_unmapped, NULL, 1, 0);
	uc_hook_add(uc, &hooks[2], UC_HOOK_CODE, (void *)on_insn, NULL, 1, 0);
	samples_run(uc);
	for (uint64_t at = 0; at < size; at++)
		if (ways[at][0] || ways[at][1])
			printf("%" PRIx64 " %" PRIu32 " %" PRIu32 "\n", at, ways[at][1],
			       ways[at][0]);
	uc_close(uc);
	mp_elf_close(elf);
	return 0;
}
