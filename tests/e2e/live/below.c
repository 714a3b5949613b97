// SPDX-License-Identifier: Apache-2.0
/*
 * below - goes on for ever on a stack of its own that lies in the middle of a mapping, as a coroutine's or that of compiled Erlang
 * may. Below the stack lies other data, and below the mapping no memory, as below a thread's stack. A byte on its input ends it: "done",
 * or "WRONG" if the data have changed.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define DATA  65536
#define STACK 8192

static unsigned char *data;
static ucontext_t back, own;

__attribute__((noinline)) static unsigned int f(unsigned int x)
{
	for (unsigned int i = 0; i < 1000; i++)
		x = i % 7 ? x * 3 + i : x ^ i;
	return x;
}

static void work(void)
{
	struct pollfd in = {0, POLLIN, 0};
	const unsigned int want = f(1);

	write(1, "ready\n", 6);
	while (poll(&in, 1, 0) == 0)
		if (f(1) != want)
			return;
	for (int i = 0; i < DATA; i++)
		if (data[i] != 0xa5) {
			write(1, "WRONG\n", 6);
			_exit(1);
		}
	write(1, "done\n", 5);
	_exit(0);
}

int main(void)
{
	unsigned char *all =
		mmap(NULL, 4096 + DATA + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED || mprotect(all + 4096, DATA + STACK, PROT_READ | PROT_WRITE))
		return 77;
	data = all + 4096;
	memset(data, 0xa5, DATA);
	getcontext(&own);
	own.uc_stack.ss_sp = data + DATA;
	own.uc_stack.ss_size = STACK;
	own.uc_link = &back;
	makecontext(&own, work, 0);
	swapcontext(&back, &own);
	return 1;
}
