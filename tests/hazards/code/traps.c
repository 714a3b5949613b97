// SPDX-License-Identifier: Apache-2.0
// Functions that jump to a function which does nothing but trap, as Rust's guards against panics do.
// moves: guard always
// levels: -O2
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../hazard.h"

int guard(int n);
int always(int n);

__asm__(".text\n"
	".p2align 4\n"
	".globl guard\n"
	".type guard, @function\n"
	"guard:\n"
	"	.cfi_startproc\n"
	"	testl	%edi, %edi\n"
	"	js	1f\n"
	"	leal	3(%rdi,%rdi), %eax\n"
	"	ret\n"
	"1:	jmp	dies\n"
	"	.cfi_endproc\n"
	".size guard, . - guard\n"
	".p2align 4\n"
	".globl always\n"
	".type always, @function\n"
	"always:\n"
	"	.cfi_startproc\n"
	"	jmp	dies\n"
	"	.cfi_endproc\n"
	".size always, . - always\n"
	".p2align 4\n"
	".globl dies\n"
	".type dies, @function\n"
	"dies:\n"
	"	.cfi_startproc\n"
	"	xorl	%eax, %eax\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size dies, . - dies\n");

/* The signal that ends a process which calls guard(), or always(); no pointer to them exists. */
KEEP static int ends_by(int to_guard, int n)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit((to_guard ? guard(n) : always(n)) & 1);
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 1000; i++)
		sum += guard(OPAQUE(i));
	printf("%d\n", sum);
	printf("%d %d %d\n", ends_by(1, 4) == -1, ends_by(1, -1) == SIGILL,
	       ends_by(0, 1) == SIGILL);
	return 0;
}
