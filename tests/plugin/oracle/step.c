// SPDX-License-Identifier: Apache-2.0
/*
 * step - counts a small program's instructions and transfers by single-stepping. Called by
 * tests/e2e/bench/branches.sh.
 *
 * An independent check of the plugin: uses the processor, ptrace and Zydis, and shares no code
 * with it. Very slow. Counts the main program only.
 *  step PROGRAM [ARGS]  ->  one line of counts, then `ADDRESS COUNT` per instruction
 */
#define _GNU_SOURCE
#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	INSNS,
	COND,
	TAKEN,
	JUMPS,
	IJUMPS,
	CALLS,
	ICALLS,
	RETURNS,
	NR_COUNTS
};

static uint64_t counts[NR_COUNTS], text_start, text_end, *hits;

static void die(const char *what)
{
	fprintf(stderr, "step: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* After exec, the first executable mapping is the program's own. */
static void text_find(pid_t pid, const char *program)
{
	char path[64], line[4400], *real = realpath(program, NULL);
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps || !real)
		die(program);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end;
		char perms[8];

		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) == 3 && perms[2] == 'x' &&
		    strstr(line, real)) {
			text_start = start;
			text_end = end;
			break;
		}
	}
	fclose(maps);
	free(real);
	hits = calloc(text_end - text_start, sizeof(*hits));
	if (!hits || text_start == text_end)
		die("no code");
}

static void classify(const ZydisDecodedInstruction *insn, uint64_t pc, uint64_t next)
{
	int direct = insn->raw.imm[0].is_relative;

	counts[INSNS]++;
	hits[pc - text_start]++;
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		counts[COND]++;
		counts[TAKEN] += next != pc + insn->length;
		break;
	case ZYDIS_CATEGORY_UNCOND_BR: counts[direct ? JUMPS : IJUMPS]++; break;
	case ZYDIS_CATEGORY_CALL: counts[direct ? CALLS : ICALLS]++; break;
	case ZYDIS_CATEGORY_RET: counts[RETURNS]++; break;
	default: break;
	}
}

int main(int argc, char **argv)
{
	uint64_t pc, next;
	ZydisDecoder decoder;
	pid_t pid;
	int status, sig = 0;

	if (argc < 2) {
		fputs("usage: step PROGRAM [ARGS]\n", stderr);
		return 2;
	}
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	pid = fork();
	if (!pid) {
		/* stdout is for the table */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		die(argv[1]);
	text_find(pid, argv[1]);
	for (;;) {
		struct user_regs_struct regs;
		ZydisDecodedInstruction insn;
		uint8_t bytes[16];
		struct iovec local = {bytes, sizeof(bytes)}, remote;
		ssize_t got;

		if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
			die("registers");
		pc = regs.rip;
		remote = (struct iovec){(void *)pc, sizeof(bytes)};
		got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
		if (got < 0) { /* near the end of a mapping */
			remote.iov_len = 4096 - (pc & 4095);
			got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
		}
		if (got <= 0 || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes,
									    (ZyanUSize)got, &insn)))
			die("decode");
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(long)sig))
			die("step");
		if (waitpid(pid, &status, 0) != pid)
			die("wait");
		if (!WIFSTOPPED(status)) {
			/* the exit system call was the last instruction */
			if (pc >= text_start && pc < text_end)
				classify(&insn, pc, pc + insn.length);
			break;
		}
		if (sig) { /* that step entered the handler and executed nothing */
			sig = 0;
			continue;
		}
		if (WSTOPSIG(status) != SIGTRAP) {
			sig = WSTOPSIG(status);
			if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
				die("registers");
			if (regs.rip == pc) /* a fault: not executed */
				continue;
		}
		if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
			die("registers");
		next = regs.rip;
		/* a repeated string instruction stops once per element */
		if (next == pc && (insn.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
						      ZYDIS_ATTRIB_HAS_REPNE)))
			continue;
		if (pc >= text_start && pc < text_end)
			classify(&insn, pc, next);
	}
	printf("%lu %lu %lu %lu %lu %lu %lu %lu\n", counts[INSNS], counts[COND], counts[TAKEN],
	       counts[JUMPS], counts[IJUMPS], counts[CALLS], counts[ICALLS], counts[RETURNS]);
	for (pc = text_start; pc < text_end; pc++)
		if (hits[pc - text_start])
			printf("%#lx %lu\n", pc, hits[pc - text_start]);
	return 0;
}
