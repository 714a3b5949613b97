// SPDX-License-Identifier: Apache-2.0
/*
 * marker_totals - runs a program and prints the total of each code marker at its exit: lines
 * `NAME<tab>TOTAL', ascending by name. Variables of one name (a function that several source files
 * contain) are added up; markers with total 0 are left out, since a compiler may drop a function
 * that is never called. Exits with the program's status. The program is traced, so nothing is
 * added to it; only its first process counts.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/elf/elf.h"

static const char prefix[] = "__morph_marker_";

struct total {
	char name[256];
	unsigned long long value;
};

static void fail(const char *what)
{
	fprintf(stderr, "marker-totals: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int by_name(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* The distance between the addresses of the file and of the process. */
static unsigned long long bias_of(pid_t pid, const struct mp_elf *elf)
{
	char path[64], line[4096];
	unsigned long long start = 0;
	char *exe;
	FILE *maps;

	if (elf->ehdr.e_type == ET_EXEC)
		return 0;
	exe = realpath(elf->path, NULL);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!exe || !maps)
		fail(path);
	while (fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (strchr(line, '/') && !strcmp(strchr(line, '/'), exe)) {
			start = strtoull(line, NULL, 16);
			break;
		}
	}
	fclose(maps);
	free(exe);
	for (uint32_t i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_LOAD)
			return start - (elf->phdrs[i].p_vaddr & ~4095ULL);
	return 0;
}

static void print_totals(pid_t pid, const struct mp_elf *elf, FILE *out)
{
	struct total *totals = calloc((size_t)elf->nr_symbols + 1, sizeof(*totals));
	unsigned long long bias = bias_of(pid, elf);
	size_t nr = 0;

	if (!totals)
		fail("out of memory");
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];
		struct total *t = &totals[nr];
		struct iovec to = {&t->value, sizeof(t->value)}, from;

		if (!sym->name || strncmp(sym->name, prefix, strlen(prefix)) || sym->size != 8)
			continue;
		snprintf(t->name, sizeof(t->name), "%s", sym->name + strlen(prefix));
		t->name[strcspn(t->name, ".")] = '\0'; /* .lto_priv.0 */
		from = (struct iovec){(void *)(uintptr_t)(sym->vaddr + bias), sizeof(t->value)};
		if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)sizeof(t->value))
			fail(sym->name);
		nr++;
	}
	qsort(totals, nr, sizeof(*totals), by_name);
	for (size_t i = 0; i < nr; i++) {
		while (i + 1 < nr && !strcmp(totals[i].name, totals[i + 1].name)) {
			totals[i + 1].value += totals[i].value;
			i++;
		}
		if (totals[i].value)
			fprintf(out, "%s\t%llu\n", totals[i].name, totals[i].value);
	}
	free(totals);
}

/* Runs until the program is about to exit; its memory is still there. Return: its status. */
static int trace(pid_t pid, const struct mp_elf *elf, FILE *out)
{
	int status;

	for (;;) {
		int signal = 0;

		if (waitpid(pid, &status, 0) != pid)
			fail("waitpid");
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
			print_totals(pid, elf, out);
		else if (WSTOPSIG(status) != SIGTRAP)
			signal = WSTOPSIG(status);
		if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal))
			fail("PTRACE_CONT");
	}
}

int main(int argc, char **argv)
{
	struct mp_elf *elf;
	struct mp_err err;
	FILE *out;
	int status;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: marker-totals TOTALS PROGRAM [ARG...]\n");
		return 2;
	}
	if (mp_elf_open(argv[2], MP_ELF_SYMBOLS, &elf, &err)) {
		fprintf(stderr, "marker-totals: %s\n", err.msg);
		return 1;
	}
	out = fopen(argv[1], "we");
	if (!out)
		fail(argv[1]);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
		fprintf(stderr, "marker-totals: %s does not start\n", argv[2]);
		return 1;
	}
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL,
		   (void *)(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)) ||
	    ptrace(PTRACE_CONT, pid, NULL, NULL))
		fail("ptrace");
	status = trace(pid, elf, out);
	if (fclose(out))
		fail(argv[1]);
	mp_elf_close(elf);
	return status;
}
