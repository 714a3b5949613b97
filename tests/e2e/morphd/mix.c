// SPDX-License-Identifier: Apache-2.0
/*
 * mix - does work at known places in a fixed proportion. Every source must measure the same.
 *
 *	mix MS		rounds of the same work, in an order that repeats only after all of it,
 *			until MS of CPU time are used
 *	mix MS routes	the same; each piece is called in one of several ways
 *
 * The work is done by functions of different weight, with blocks of different weight, in the
 * program and in a library (-DLIBRARY), and by system calls. Each piece is short and has a new
 * random length, so that a timer at a fixed rate cannot keep in step with it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

/* Each use is a loop of its own, so another block. The barrier prevents optimisation of it. */
#define LOOP(x, nr)                                                                                \
	do {                                                                                       \
		uint64_t n_ = (nr);                                                                \
		while (n_--) {                                                                     \
			(x) = (x)*6364136223846793005u + 1442695040888963407u;                     \
			__asm__ volatile("" : "+r"(x));                                            \
		}                                                                                  \
	} while (0)

/* A function of about @nr steps. The blocks get @a, @b and @c sixteenths of them. */
#define FUNCTION(name, a, b, c)                                                                    \
	uint64_t name(uint64_t nr, uint64_t x);                                                    \
	NOINLINE uint64_t name(uint64_t nr, uint64_t x)                                            \
	{                                                                                          \
		LOOP(x, nr *(a) / 16);                                                             \
		if (x & 1)                                                                         \
			LOOP(x, nr *(b) / 16);                                                     \
		else                                                                               \
			LOOP(x, nr *(b) / 16);                                                     \
		LOOP(x, nr *(c) / 16);                                                             \
		return x;                                                                          \
	}

#ifdef LIBRARY

FUNCTION(lib_light, 9, 4, 3)
FUNCTION(lib_heavy, 3, 11, 2)

#else

uint64_t lib_light(uint64_t nr, uint64_t x);
uint64_t lib_heavy(uint64_t nr, uint64_t x);

FUNCTION(one, 10, 4, 2)
FUNCTION(two, 2, 4, 10)
FUNCTION(three, 4, 8, 4)
FUNCTION(five, 6, 6, 4)
FUNCTION(eight, 1, 3, 12)
FUNCTION(thirteen, 11, 3, 2)

static int zero, null;
static char page[1 << 16];

NOINLINE static uint64_t kernel(uint64_t nr, uint64_t x)
{
	ssize_t got = 0;

	for (; nr >= 2000; nr -= 2000)
		got += read(zero, page, 4000);
	got += write(null, page, 1 + nr);
	return x + got;
}

static const struct piece {
	uint64_t (*run)(uint64_t nr, uint64_t x);
	unsigned int weight;
} pieces[] = {
	{one, 1},	{two, 2},	{three, 3},	{five, 5},   {eight, 8},
	{thirteen, 13}, {lib_light, 3}, {lib_heavy, 7}, {kernel, 4},
};

#define NR_PIECES (sizeof(pieces) / sizeof(pieces[0]))
#define TURNS	  46 /* the sum of the weights; all turns are about equally long */
#define STEPS	  3000

/* ---- who calls a piece -------------------------------------------------------------------- */

typedef uint64_t run_fn(uint64_t nr, uint64_t x);

/* A call that is no tail call. */
#define ROUTE(name, call)                                                                          \
	NOINLINE static uint64_t name(run_fn *run, uint64_t nr, uint64_t x)                        \
	{                                                                                          \
		x = call;                                                                          \
		__asm__ volatile("" : "+r"(x));                                                    \
		return x;                                                                          \
	}

ROUTE(direct, run(nr, x))
ROUTE(near, direct(run, nr, x))
ROUTE(far, near(run, nr, x))
ROUTE(again, nr & 1 ? far(run, nr, x) : again(run, nr + 1, x))

static uint64_t (*const routes[])(run_fn *run, uint64_t nr, uint64_t x) = {direct, near, far,
									   again};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static uint32_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

int main(int argc, char **argv)
{
	uint64_t end_ns = argc >= 2 ? strtoull(argv[1], NULL, 10) * 1000000 : 0, x = 1;
	unsigned char turns[TURNS];
	uint64_t state = 1;
	size_t i, j, nr = 0;

	zero = open("/dev/zero", O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	if (!end_ns || zero < 0 || null < 0)
		return 2;
	for (i = 0; i < NR_PIECES; i++)
		for (j = 0; j < pieces[i].weight; j++)
			turns[nr++] = i;
	while (cpu_ns() < end_ns) {
		for (i = TURNS - 1; i > 0; i--) {
			unsigned char t = turns[i];

			j = draw(&state) % (i + 1);
			turns[i] = turns[j];
			turns[j] = t;
		}
		for (i = 0; i < TURNS; i++)
			x = argc > 2 ? routes[draw(&state) % 4](pieces[turns[i]].run,
								STEPS / 2 + draw(&state) % STEPS, x)
				     : pieces[turns[i]].run(STEPS / 2 + draw(&state) % STEPS, x);
	}
	return x == 0;
}
#endif
