// SPDX-License-Identifier: Apache-2.0
/*
 * stacks - checks the callers in samples of a program with frame pointers.
 *
 *  stacks DEPTH  value of the module's parameter stack_depth
 *
 * The child is a fork of this process, so its addresses are known.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

#define LEVELS 40

/* Each function has its own section, whose bounds the linker provides. */
#define IN(name) __attribute__((noinline, section("fn_" #name)))
#define RANGE(name)                                                                                \
	extern const char __start_fn_##name[], __stop_fn_##name[];                                 \
	static bool in_##name(uint64_t ip)                                                         \
	{                                                                                          \
		return ip >= (uint64_t)__start_fn_##name && ip < (uint64_t)__stop_fn_##name;       \
	}
RANGE(leaf)
RANGE(deep)
RANGE(outer)

static volatile unsigned long sink = 1;
/* Shared with the child: enough samples were taken. */
static volatile bool *is_enough;

IN(leaf) static void leaf(void)
{
	long i;

	for (i = 0; i < 3000000; i++)
		sink = sink * 3 + 1;
}

IN(deep) static void deep(int levels)
{
	if (levels > 1)
		deep(levels - 1);
	else
		leaf();
	sink++;
}

IN(outer) static void outer(void)
{
	deep(LEVELS);
	sink++;
}

/* Bad frame pointers: the walk must end, and the kernel must survive. */
static void wild(void)
{
	static const uint64_t bad[] = {0,
				       1,
				       8,
				       0x1000,
				       0x7ffffffff000,
				       0x7fffffffeff8,
				       1 << 30,
				       ~0ULL,
				       ~7ULL,
				       0x8000000000000000,
				       0xffffffff81000000};
	static uint64_t ring[2];
	unsigned int i, k;

	ring[0] = (uint64_t)ring;
	ring[1] = (uint64_t)wild;
	for (k = 0; k < 4; k++)
		for (i = 0; i <= sizeof(bad) / sizeof(*bad); i++) {
			uint64_t fp = i < sizeof(bad) / sizeof(*bad) ? bad[i] : (uint64_t)ring;

			__asm__ volatile("push %%rbp\n"
					 "mov %0, %%rbp\n"
					 "mov $3000000, %%ecx\n"
					 "1: dec %%ecx\n"
					 "jnz 1b\n"
					 "pop %%rbp\n"
					 :
					 : "r"(fp)
					 : "rcx", "memory", "cc");
		}
}

int main(int argc, char **argv)
{
	uint64_t nr = 0, nr_stacks = 0, nr_leaf = 0, nr_good = 0, nr_samples = 0, ip = 0;
	const struct morph_record *record;
	uint64_t depth, i, want, top;
	struct reader r;
	int status;
	pid_t pid;

	if (argc < 2)
		return 2;
	depth = atoi(argv[1]);
	is_enough = mmap(NULL, sizeof(*is_enough), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (is_enough == MAP_FAILED)
		die("mmap");
	reader_open(&r);
	reader_start(&r, 2000, -1, 0);
	reader_map(&r);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!*is_enough)
			outer();
		wild();
		_exit(0);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		reader_take(&r);
		*is_enough = reader_user_samples(&r, pid) >= 300;
		sleep_ms(20);
	}
	reader_stop(&r);
	reader_take(&r);
	EXPECT(!status, "the child's status is %#x", status);

	for (record = reader_next(&r, NULL); record; record = reader_next(&r, record)) {
		const struct morph_stack *stack = (const void *)record;

		if (record->type == MORPH_REC_SAMPLES && stack->task.tgid == (uint32_t)pid) {
			nr_samples += reader_nr_ips(record);
			ip = stack->ips[reader_nr_ips(record) - 1];
			continue;
		}
		if (record->type != MORPH_REC_STACK || stack->task.tgid != (uint32_t)pid)
			continue;
		nr = (record->size - sizeof(*stack)) / 8;
		nr_stacks++;
		EXPECT(nr >= 1 && nr <= depth, "a stack of %llu", (unsigned long long)nr);
		if (!in_leaf(ip))
			continue;
		nr_leaf++;
		/*
		 * Expected: leaf <- deep, LEVELS times <- outer <- main ... A prologue may hide
		 * the first caller.
		 */
		for (i = 0; i < nr && in_deep(stack->ips[i]); i++)
			;
		want = depth < LEVELS ? depth : LEVELS;
		top = i < nr && in_outer(stack->ips[i]);
		nr_good += (i == want || i == want - 1) && (depth <= LEVELS || top);
	}
	printf("stacks: %llu samples, %llu stacks, %llu of the leaf, %llu as they should be\n",
	       (unsigned long long)nr_samples, (unsigned long long)nr_stacks,
	       (unsigned long long)nr_leaf, (unsigned long long)nr_good);
	EXPECT(nr_leaf >= 200, "too few stacks");
	/* Some samples lie in a prologue. */
	EXPECT(nr_good * 10 >= nr_leaf * 9, "%llu of %llu stacks are right",
	       (unsigned long long)nr_good, (unsigned long long)nr_leaf);
	EXPECT(reader_counts(&r).samples == r.nr_samples + r.lost, "samples do not add up");
	reader_close(&r);
	return finish();
}
