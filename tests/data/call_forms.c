// SPDX-License-Identifier: Apache-2.0
/*
 * call_forms - how long a call of a small function takes, and its code in place of the call, with each way to lower and
 * raise the stack pointer around it. Prints a Markdown table: nanoseconds for each call, the least of 40 runs.
 */
#include <stdio.h>
#include <time.h>

/*
 * Two functions: one saves a register, the other one two, and has variables. Behind each call stands a pair of push and
 * pop, as the calling function's own.
 */
__asm__(".macro saves\n push %rbx\n mov %rdi, %rbx\n lea 1(%rbx), %rax\n pop %rbx\n .endm\n"
	".macro lowers\n push %rbx\n push %rbp\n sub $8, %rsp\n mov %rdi, %rbx\n mov %rax, %rbp\n"
	" lea 1(%rbx,%rbp), %rax\n add $8, %rsp\n pop %rbp\n pop %rbx\n .endm\n"
	".text\n .p2align 4\nfunction_saves: saves\n ret\n .p2align 4\nfunction_lowers: lowers\n ret\n"
	".macro calls body\n call function_\\body\n .endm\n"
	".macro lea_lea body\n lea -8(%rsp), %rsp\n \\body\n lea 8(%rsp), %rsp\n .endm\n"
	".macro push_lea body\n push %rax\n \\body\n lea 8(%rsp), %rsp\n .endm\n"
	".macro push_pop body\n push %rax\n \\body\n pop %rcx\n .endm\n"
	".macro loop form body\n .p2align 6\n \\form\\()_\\body: push %rbx\n push %r12\n mov %rdi, %r12\n"
	" .p2align 5\n1: .rept 8\n \\form \\body\n push %r13\n pop %r13\n .endr\n dec %r12\n jne 1b\n"
	" pop %r12\n pop %rbx\n ret\n .endm\n"
	"loop calls saves\nloop lea_lea saves\nloop push_lea saves\nloop push_pop saves\n"
	"loop calls lowers\nloop lea_lea lowers\nloop push_lea lowers\nloop push_pop lowers\n");

void calls_saves(long n);
void lea_lea_saves(long n);
void push_lea_saves(long n);
void push_pop_saves(long n);
void calls_lowers(long n);
void lea_lea_lowers(long n);
void push_lea_lowers(long n);
void push_pop_lowers(long n);

#define ROUNDS 200000L
#define CALLS  8 /* in a round */

static double ns_per_call(void (*run)(long))
{
	double least = 1e18;

	for (int i = 0; i < 40; i++) {
		struct timespec start, end;
		double ns;

		clock_gettime(CLOCK_MONOTONIC, &start);
		run(ROUNDS);
		clock_gettime(CLOCK_MONOTONIC, &end);
		ns = (double)(end.tv_sec - start.tv_sec) * 1e9 +
		     (double)(end.tv_nsec - start.tv_nsec);
		if (ns < least)
			least = ns;
	}
	return least / (double)(ROUNDS * CALLS);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*saves)(long), (*lowers)(long);
	} forms[] = {{"`call`, `ret`", calls_saves, calls_lowers},
		     {"`lea`, `lea`", lea_lea_saves, lea_lea_lowers},
		     {"`push`, `lea`", push_lea_saves, push_lea_lowers},
		     {"`push`, `pop`", push_pop_saves, push_pop_lowers}};

	printf("| around the code | saves a register, ns | saves two, `sub` and `add`, ns |\n|---|---|---|\n");
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		printf("| %s | %.3f | %.3f |\n", forms[i].name, ns_per_call(forms[i].saves),
		       ns_per_call(forms[i].lowers));
	return 0;
}
