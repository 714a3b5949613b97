// SPDX-License-Identifier: Apache-2.0
/*
 * walked - a stripped program without frame pointers that spins at known places. Each function
 * notes the address that it will return to, in memory shared with the program walk.
 *
 *	walked FILE
 */
#include <alloca.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/guest/programs/walk.h"

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static struct walked *shared;
static volatile int sink;

#define ENTER()                                                                                    \
	do {                                                                                       \
		uint32_t nr_ = shared->nr;                                                         \
		shared->ips[nr_] =                                                                 \
			(uint64_t)__builtin_extract_return_addr(__builtin_return_address(0));      \
		shared->nr = nr_ + 1;                                                              \
	} while (0)
#define LEAVE() (shared->nr = shared->nr - 1)

extern const char spin_from[], spin_to[];

/* Spins until the other program wants another phase. */
static NOINLINE void spin(void)
{
	ENTER();
	shared->phase = shared->want;
	__asm__ volatile("spin_from:\n\t"
			 "mov %1, %%eax\n\t"
			 "cmp %0, %%eax\n\t"
			 "je spin_from\n"
			 "spin_to:"
			 :
			 : "m"(shared->phase), "m"(shared->want)
			 : "rax", "cc");
	shared->phase = PHASE_NONE;
	LEAVE();
}

static NOINLINE void recurse(int depth)
{
	ENTER();
	if (depth)
		recurse(depth - 1);
	else
		spin();
	sink++;
	LEAVE();
}

/* gcc gives this function a frame with rbp, and realigns it. */
static NOINLINE void realigned(size_t n)
{
	_Alignas(64) volatile char aligned[64];
	volatile char *p = alloca(n);

	ENTER();
	p[0] = aligned[3] = 1;
	recurse(20);
	sink += p[0] + aligned[3];
	LEAVE();
}

static NOINLINE void with_alloca(size_t n)
{
	volatile char *p = alloca(n);

	ENTER();
	p[n - 1] = 1;
	realigned(n / 2);
	sink += p[n - 1];
	LEAVE();
}

static void on_signal(int signal)
{
	(void)signal;
	ENTER(); /* to the signal's frame; behind it come frames of libc that nobody notes */
	recurse(3);
	LEAVE();
}

static NOINLINE void garbage(void)
{
	ENTER();
	__asm__ volatile("push %%rbp\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset rbp, 0\n\t"
			 "lea 40(%%rsp), %%rbp\n\tcall *%0\n\t"
			 "pop %%rbp\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_restore rbp"
			 :
			 : "b"(spin)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory",
			   "cc");
	LEAVE();
}

/* push rbp; mov rsp, rbp; call *rdi; pop rbp; ret */
static const uint8_t with_rbp[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

static NOINLINE void made(void)
{
	static void *page;

	ENTER();
	if (!page) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(page, with_rbp, sizeof(with_rbp));
	}
	((void (*)(void (*)(void)))page)(spin);
	sink++;
	LEAVE();
}

static NOINLINE void busy(int n)
{
	ENTER();
	for (int i = 0; i < 2000; i++)
		sink += i * n;
	LEAVE();
}

static NOINLINE void calls(int n)
{
	ENTER();
	busy(n);
	sink++;
	LEAVE();
}

static NOINLINE void call_on(void)
{
	ENTER();
	shared->phase = PHASE_CALLS;
	for (int i = 0; shared->want == PHASE_CALLS; i++)
		if (i % 2)
			busy(i);
		else
			calls(i);
	shared->phase = PHASE_NONE;
	LEAVE();
}

static NOINLINE void run(uint32_t phase)
{
	ENTER();
	switch (phase) {
	case PHASE_CHAIN: with_alloca(200); break;
	case PHASE_ALTSTACK: raise(SIGUSR1); break;
	case PHASE_DEEP: recurse(300); break;
	case PHASE_GARBAGE: garbage(); break;
	case PHASE_JIT: made(); break;
	case PHASE_CALLS: call_on(); break;
	default: break;
	}
	LEAVE();
}

int main(int argc, char **argv)
{
	static char altstack[65536];
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	stack_t stack = {.ss_sp = altstack, .ss_size = sizeof(altstack)};
	int fd = argc > 1 ? open(argv[1], O_RDWR) : -1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd < 0)
		return 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 2;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	shared->spin_from = (uint64_t)spin_from;
	shared->spin_to = (uint64_t)spin_to;
	ENTER(); /* main's own */
	while (shared->want < NR_PHASES)
		run(shared->want);
	return 0;
}
