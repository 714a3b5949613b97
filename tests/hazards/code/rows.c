// SPDX-License-Identifier: Apache-2.0
// Tables of a handler of faults whose rows have one place each, beside the length of the instruction there or a kind: as
// distances from the word or from the table, or as addresses of 4 bytes.
// levels: -O2
// stays: own_first own_second from_first from_second kind_first kind_second lone
// moves: main
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include "../hazard.h"

#define HIDDEN __attribute__((visibility("hidden")))

struct row {
	int32_t place, length;
};

struct kind_row {
	int32_t kind, place, length;
};

extern const struct row own_rows[2] HIDDEN, from_rows[2] HIDDEN, lone_row[1] HIDDEN;
extern const struct kind_row kind_rows[2] HIDDEN;
typedef int function(const int *p, int how);
function own_first HIDDEN, own_second HIDDEN, from_first HIDDEN, from_second HIDDEN;
function kind_first HIDDEN, kind_second HIDDEN, lone HIDDEN;

__asm__(".macro reads name\n"
	".p2align 4\n.globl \\name\n.hidden \\name\n.type \\name, @function\n\\name:\n.cfi_startproc\n"
	"movl $3, %eax\ncmpl $4, %esi\njle 1f\nleal (,%rsi,8), %eax\nsubl %esi, %eax\n1:\n"
	"\\name\\()_at: addl (%rdi), %eax\n"
	"\\name\\()_on: addl %eax, %eax\nret\n"
	".cfi_endproc\n.size \\name, . - \\name\n"
	".endm\n"
	".macro table name\n"
	".balign 8\n.globl \\name\n.hidden \\name\n\\name:\n"
	".endm\n"
	".macro row name, base=., kind\n"
	".ifnb \\kind\n.long \\kind\n.endif\n"
	".long \\name\\()_at - \\base, \\name\\()_on - \\name\\()_at\n"
	".endm\n"
	".pushsection .text\n"
	"reads own_first\nreads own_second\nreads from_first\nreads from_second\n"
	"reads kind_first\nreads kind_second\nreads lone\n"
	".popsection\n"
	".pushsection .rodata\n"
	"table own_rows\nrow own_first\nrow own_second\n"
	"table from_rows\nrow from_first, from_rows\nrow from_second, from_rows\n"
	"table kind_rows\nrow kind_first, ., 7\nrow kind_second, ., 9\n"
	"table lone_row\nrow lone\n"
	".popsection\n");

/* Addresses of 4 bytes stand in files with fixed addresses only. */
#if defined(__PIC__) || defined(__PIE__)
#define MORE_ROWS 0
#else
#define MORE_ROWS 1
struct more_row {
	uint32_t place, length;
};
extern const struct more_row more_rows[2] HIDDEN;
function more_first HIDDEN, more_second HIDDEN;
__asm__(".pushsection .text\n"
	"reads more_first\nreads more_second\n"
	".popsection\n"
	".pushsection .rodata\n"
	"table more_rows\nrow more_first, 0\nrow more_second, 0\n"
	".popsection\n");
#endif

static uintptr_t from(const void *base, int32_t distance)
{
	return (uintptr_t)base + (uintptr_t)(intptr_t)distance;
}

/* The length of the instruction at @at, if a table has it. */
KEEP int length_at(uintptr_t at)
{
	for (int i = 0; i < 2; i++) {
		if (at == from(&own_rows[i].place, own_rows[i].place))
			return own_rows[i].length;
		if (at == from(from_rows, from_rows[i].place))
			return from_rows[i].length;
		if (at == from(&kind_rows[i].place, kind_rows[i].place))
			return kind_rows[i].length;
#if MORE_ROWS
		if (at == more_rows[i].place)
			return (int)more_rows[i].length;
#endif
	}
	return at == from(&lone_row[0].place, lone_row[0].place) ? lone_row[0].length : 0;
}

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	int length = length_at((uintptr_t)*rip);

	(void)sig;
	(void)info;
	if (!length)
		_exit(9);
	*rip += length;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
	int number = 21;

	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 9; i++) {
		const int *p = i % 3 ? &number : OPAQUE((int *)NULL);

		printf("%d %d %d %d\n", own_first(p, i), own_second(p, i), from_first(p, i),
		       from_second(p, i));
		printf("%d %d %d\n", kind_first(p, i), kind_second(p, i), lone(p, i));
#if MORE_ROWS
		printf("%d %d\n", more_first(p, i), more_second(p, i));
#endif
	}
	return 0;
}
