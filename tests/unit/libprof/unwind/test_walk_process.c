// SPDX-License-Identifier: Apache-2.0
/*
 * test_walk_process - walks of stopped processes in the cases that are hard for a walker, compared
 * with libdwfl frame by frame. No frame may be wrong; a walk that is not complete says why.
 *
 * The child is this program: it goes into the case, and stops itself at its deepest place.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "libprof/base/sanitized.h"
#include "tests/support/process/process_walk.h"
#include "tests/unit/suite.h"

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static volatile int sink;
static struct walk_comparison c;

static NOINLINE void stop_here(void)
{
	raise(SIGSTOP);
	sink++;
}

/* ---- cases, in the child -------------------------------------------------------------------- */

static NOINLINE void recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		stop_here();
	sink++;
}

static void case_recursion(void)
{
	recurse(1000);
}

/* gcc makes this function a frame with rbp, and realigns it. */
static NOINLINE void realigned(size_t n)
{
	_Alignas(64) char aligned[64];
	char *p = alloca(n);

	memset(p, 1, n);
	memset(aligned, 2, sizeof(aligned));
	sink += p[n / 2] + aligned[3];
	stop_here();
	sink += p[1] + aligned[1];
}

static void case_realigned(void)
{
	realigned((size_t)sink + 1000);
}

static void on_signal(int signal)
{
	(void)signal;
	recurse(3);
}

static NOINLINE void interrupted(void)
{
	raise(SIGUSR1);
	sink++;
}

static void case_signal(void)
{
	signal(SIGUSR1, on_signal);
	interrupted();
}

static char altstack[65536] __attribute__((aligned(16)));

static void case_altstack(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	stack_t stack = {.ss_sp = altstack, .ss_size = sizeof(altstack)};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	interrupted();
}

static ucontext_t outer, inner;

static void coroutine(void)
{
	recurse(2);
}

static void case_swapcontext(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	getcontext(&inner);
	inner.uc_stack.ss_sp = stack;
	inner.uc_stack.ss_size = sizeof(stack);
	inner.uc_link = &outer;
	makecontext(&inner, coroutine, 0);
	swapcontext(&outer, &inner);
}

static void *thread(void *arg)
{
	(void)arg;
	recurse(2);
	return NULL;
}

static int stop_in_comparison(const void *a, const void *b)
{
	(void)a;
	(void)b;
	stop_here();
	return 0;
}

static void case_sort(void)
{
	int two[2] = {2, 1};

	qsort(two, 2, sizeof(two[0]), stop_in_comparison);
}

/* A frame whose rbp is a number that points into the stack, but at no frame. */
static NOINLINE void garbage_rbp(void)
{
	__asm__ volatile("push %%rbp\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset rbp, 0\n\t"
			 "lea 40(%%rsp), %%rbp\n\tcall *%0\n\t"
			 "pop %%rbp\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_restore rbp"
			 :
			 : "b"(stop_here)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory",
			   "cc");
	sink++;
}

static void case_garbage_rbp(void)
{
	garbage_rbp();
}

/* Code that a compiler at run time made: push rbp; mov rsp, rbp; call *rdi; pop rbp; ret */
static const uint8_t with_rbp[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
/* push rbp; xor ebp, ebp; call *rdi; pop rbp; ret */
static const uint8_t without_rbp[] = {0x55, 0x31, 0xed, 0xff, 0xd7, 0x5d, 0xc3};

static void run_made(const uint8_t *code, size_t size)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(page, code, size);
	((void (*)(void (*)(void)))page)(stop_here);
	sink++;
}

static void case_jit(void)
{
	run_made(with_rbp, sizeof(with_rbp));
}

static void case_jit_without_rbp(void)
{
	run_made(without_rbp, sizeof(without_rbp));
}

static void case_vdso(void)
{
	struct timespec ts;

	stop_here();
	for (;;)
		clock_gettime(CLOCK_MONOTONIC, &ts);
}

/* ---- the parent ----------------------------------------------------------------------------- */

static pid_t child;

static void start_child(void (*run)(void))
{
	int status;

	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		run();
		_exit(0);
	}
	/* Other signals of the case are passed on. */
	for (;;) {
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			break;
		ptrace(PTRACE_CONT, child, NULL, (void *)(intptr_t)WSTOPSIG(status));
	}
}

static void end_child(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void compare(void (*run)(void), size_t copy)
{
	struct process_walk *pw;

	start_child(run);
	pw = process_walk_new(child, copy);
	ck_assert_ptr_nonnull(pw);
	ck_assert_int_eq(process_walk_compare(pw, &c), 0);
	ck_assert(c.is_kmod_same);
	/* It is stopped: the second walk of the kernel module finds all of it as it was. */
	ck_assert_int_eq(process_walk_compare(pw, &c), 0);
	ck_assert(c.is_kmod_same);
	process_walk_free(pw);
	end_child();
}

static const struct {
	const char *name;
	void (*run)(void);
	size_t least; /* frames */
} cases[] = {
	{"deep recursion", case_recursion, 1000}, {"a realigned frame", case_realigned, 5},
	{"a signal frame", case_signal, 10},	  {"an alternate stack", case_altstack, 10},
	{"a callback of libc", case_sort, 6},	  {"rbp as garbage", case_garbage_rbp, 5},
};

TEST_EACH(walk_is_complete_and_exact, sizeof(cases) / sizeof(cases[0]))
{
	compare(cases[_i].run, 0);
	ck_assert_msg(!c.is_wrong, "%s: frame %zu differs", cases[_i].name, c.nr_same);
	ck_assert_msg(c.is_perfect, "%s: %zu frames, %s after them; libdwfl has %zu",
		      cases[_i].name, c.result.nr, mp_walk_stop_name(c.result.stop), c.nr_theirs);
	ck_assert_uint_ge(c.result.nr, cases[_i].least);
}

TEST(walk_of_a_copy_ends_where_the_copy_ends)
{
	compare(case_recursion, 4096);
	ck_assert(!c.is_wrong);
	ck_assert_int_eq(c.result.stop, MP_WALK_COPY);
	ck_assert_uint_gt(c.result.nr, 50);
	ck_assert_uint_lt(c.result.nr, 1000);
	compare(case_altstack, 16384);
	ck_assert(!c.is_wrong);
	ck_assert_int_eq(c.result.stop, MP_WALK_COPY);
}

/* makecontext() lets a coroutine return to the start of a function, before which nothing lies. */
TEST(walk_of_a_coroutine_ends_at_its_start)
{
	compare(case_swapcontext, 0);
	ck_assert(!c.is_wrong);
	ck_assert_int_eq(c.result.stop, MP_WALK_NO_ROW);
	ck_assert_uint_ge(c.result.nr, 5);
	ck_assert_uint_eq(c.nr_theirs, c.result.nr);
}

TEST(walk_goes_through_made_code_with_a_frame_pointer)
{
	compare(case_jit, 0);
	ck_assert_uint_eq(c.result.nr_by_rbp, 1);
	ck_assert_int_eq(c.result.stop, MP_WALK_BOTTOM);
}

TEST(walk_stops_at_made_code_without_a_frame_pointer)
{
	compare(case_jit_without_rbp, 0);
	ck_assert_int_eq(c.result.stop, MP_WALK_NO_ROWS);
	ck_assert_uint_ge(c.nr_same, 2);
}

static void *wait_for_end(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

static void case_thread(void)
{
	pthread_t other;

	pthread_create(&other, NULL, wait_for_end, NULL);
	thread(NULL);
}

TEST(walk_of_the_first_of_two_threads_is_exact)
{
	compare(case_thread, 0);
	ck_assert(c.is_perfect);
}

/* Lets the child run one instruction. Return: the address of the next one. */
static uint64_t step_child(void)
{
	int status;

	ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	return (uint64_t)ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), NULL);
}

TEST(walk_out_of_the_vdso_is_exact_at_each_instruction)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	struct process_walk *pw;
	unsigned int nr = 0;

	if (!vdso)
		MORPH_SKIP("the kernel gives no vDSO");
	start_child(case_vdso);
	pw = process_walk_new(child, 0);
	ck_assert_ptr_nonnull(pw);
	for (int i = 0; i < 20000 && nr < 100; i++) {
		if (step_child() - vdso >= 8192) /* two pages */
			continue;
		ck_assert_int_eq(process_walk_compare(pw, &c), 0);
		ck_assert_msg(c.is_perfect, "instruction %u: %zu frames, %s; %zu of %zu the same",
			      nr, c.result.nr, mp_walk_stop_name(c.result.stop), c.nr_same,
			      c.nr_theirs);
		ck_assert_uint_ge(c.result.nr, 4);
		nr++;
	}
	process_walk_free(pw);
	end_child();
	ck_assert_uint_eq(nr, 100);
}
