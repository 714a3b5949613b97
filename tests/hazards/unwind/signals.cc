// SPDX-License-Identifier: Apache-2.0
// Unwinding through signal frames: on a fault in moved code, a handler throws, walks the stack
// below the interrupted instruction (also from a separate stack), and jumps out.
// flags: -fnon-call-exceptions -fasynchronous-unwind-tables -fno-omit-frame-pointer
// only: gcc
// moves: faults handles walk main
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unwind.h>

#include "../hazard.h"

static int unwound;
struct guard {
	int n;
	~guard() { unwound += n; }
};

static void segv(int) { throw 11; }

KEEP int faults(volatile int *p, int n)
{
	guard g{1};

	if (n % 3 == 0)
		return *p + n;
	return n;
}

KEEP int handles(int n)
{
	guard g{100};

	try {
		guard h{10};

		return faults(n % 2 ? nullptr : &unwound, n) & 0;
	} catch (int e) {
		return e;
	}
}

/* ---- how many frames a handler sees */
static int frames_seen;

static _Unwind_Reason_Code count_frame(_Unwind_Context *, void *n)
{
	++*(int *)n;
	return _URC_NO_REASON;
}

static void walk(int)
{
	void *frames[64];
	int n = 0;

	_Unwind_Backtrace(count_frame, &n);
	frames_seen = backtrace(frames, 64) == n ? n : -1;
}

KEEP int raises(int depth)
{
	if (depth)
		return raises(depth - 1) + OPAQUE(1);
	raise(SIGUSR1);
	return 0;
}

/* ---- a timer interrupts at any instruction */
static volatile sig_atomic_t ticks, broken;

static void tick(int, siginfo_t *, void *)
{
	int n = 0;

	_Unwind_Backtrace(count_frame, &n);
	if (n < 3)
		broken = 1;
	ticks = ticks + 1;
}

KEEP long busy(long n)
{
	static const int steps[] = {3, 1, 4, 1, 5, 9, 2, 6};
	long sum = 0;

	while (ticks < 20) {
		for (long i = 0; i < n; i++) {
			switch (steps[i & 7] + (sum & 1)) {
			case 1: sum += 3; break;
			case 2: sum ^= i; break;
			case 3: sum -= 7; break;
			case 4: sum += i >> 2; break;
			case 5: sum *= 3; break;
			case 6: sum |= 1; break;
			default: sum += hazard_next() & 1; break;
			}
		}
	}
	return sum;
}

static sigjmp_buf out;
static void leaves(int) { siglongjmp(out, 3); }

static void handler(int sig, void (*f)(int), int flags)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = f;
	sa.sa_flags = flags;
	sigaction(sig, &sa, nullptr);
}

int main()
{
	static char stack[1 << 16];
	stack_t alternative = {};
	struct itimerval interval = {{0, 2000}, {0, 2000}};
	struct sigaction sa;
	volatile int caught = 0;
	int at_first;

	handler(SIGSEGV, segv, SA_NODEFER);
	for (int i = 0; i < 12; i++)
		caught = caught * 3 + handles(i);
	printf("%d %d\n", caught, unwound);

	handler(SIGUSR1, walk, 0);
	raises(0);
	at_first = frames_seen;
	raises(7);
	printf("%d frames more\n", frames_seen - at_first);
	alternative.ss_sp = stack;
	alternative.ss_size = sizeof(stack);
	sigaltstack(&alternative, nullptr);
	handler(SIGUSR1, walk, SA_ONSTACK);
	raises(5);
	printf("%d frames more, on another stack\n", frames_seen - at_first);

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = tick;
	sa.sa_flags = SA_SIGINFO | SA_RESTART;
	sigaction(SIGPROF, &sa, nullptr);
	setitimer(ITIMER_PROF, &interval, nullptr);
	busy(1000);
	memset(&interval, 0, sizeof(interval));
	setitimer(ITIMER_PROF, &interval, nullptr);
	printf("%s\n", broken ? "a walk ended early" : "every walk ended well");

	handler(SIGSEGV, leaves, 0);
	if (sigsetjmp(out, 1) == 0)
		faults(nullptr, 3);
	printf("left\n");
	return 0;
}
