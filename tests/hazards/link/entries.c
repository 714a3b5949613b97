// SPDX-License-Identifier: Apache-2.0
// Functions that the loader calls by the dynamic section and by arrays, before and behind all others, and a program whose
// entry is a function of its own.
// link: -Wl,-init=first -Wl,-fini=last -Wl,-e,entry -lentries
// modes: pie nopie
// library: libentries.so -DLIBRARY
// library-link: -Wl,-init=library_first -Wl,-fini=library_last
// moves: main
#include <stdio.h>
#include <unistd.h>

#include "../hazard.h"

static int order = 1;
KEEP static void note(int n) { order = order * 31 + n; }

#ifdef LIBRARY
void library_first(void)
{
	note(3);
	for (int i = 0; i < OPAQUE(5); i++)
		note(i * 2);
}
void library_last(void)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "library %d\n", order);

	if (write(1, text, n) != n)
		_exit(3);
}
__attribute__((constructor)) static void made(void) { note(7); }
__attribute__((destructor)) static void unmade(void) { note(11); }
int from_library(int n) { return n % 3 ? order + n : order ^ n; }
#else
int from_library(int n);
void first(void) { note(1); note(OPAQUE(2)); }
void last(void)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "program %d\n", order);

	if (write(1, text, n) != n)
		_exit(3);
}
static void earliest(int argc, char **argv, char **envp)
{
	note(argc);
	note(argv[0] != NULL && envp != NULL);
}
__attribute__((section(".preinit_array"), used)) static void (*const before[])(int, char **, char **) = {earliest};
__attribute__((constructor)) static void made(void) { note(5); }
__attribute__((destructor)) static void unmade(void) { note(13); }

__asm__(".text\n.globl entry\n.type entry, @function\nentry:\n.cfi_startproc\n.cfi_undefined rip\n"
	"	endbr64\n	movl $17, started(%rip)\n	movq %rdx, %r9\n	testq %r9, %r9\n	je 1f\n	jmp _start\n"
	"1:	xorl %edx, %edx\n	jmp _start\n"
	".cfi_endproc\n.size entry, . - entry\n"
	".data\n.balign 4\nstarted: .long 0\n.text\n");
extern int started __attribute__((visibility("hidden")));

int main(void)
{
	for (int i = 0; i < 20; i++)
		note(from_library(i));
	printf("%d %d\n", order, started);
	fflush(stdout);
	return 0;
}
#endif
