// SPDX-License-Identifier: Apache-2.0
// Labels as values: stored in the heap, sorted, searched, compared, subtracted, in a cold part, in
// structures of other functions, jumped to by asm, selected by a signal handler, shared by threads.
// flags: -pthread
// link: -pthread
// moves: main threaded chosen
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hazard.h"

#define NR 6

struct op {
	void *where;
	long arg;
};

/* The interpreter's own labels. */
static struct engine {
	void *const *labels;
	void *base, *halt;
	const char *name;
	int nr;
} engine;

/* Runs direct threaded code on the heap. */
KEEP long threaded(struct op *ip, long n)
{
	static void *const table[NR] = {&&push, &&add, &&mul, &&dup, &&again, &&stop};
	long stack[32], *sp = stack;

	if (!ip) {
		engine = (struct engine){table, &&push, &&stop, "threaded", NR};
		return 0;
	}
	*sp = n;
	goto *ip->where;
push:
	*++sp = ip->arg;
	goto *(++ip)->where;
add:
	sp--;
	sp[0] += sp[1];
	goto *(++ip)->where;
mul:
	sp--;
	sp[0] *= sp[1];
	goto *(++ip)->where;
dup:
	sp[1] = sp[0];
	sp++;
	goto *(++ip)->where;
again:
	if (--n > 0) {
		ip -= ip->arg;
		goto *ip->where;
	}
	goto *(++ip)->where;
stop:
	return sp[0];
}

static int by_address(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

/* Finds the number of a label address, by comparing and by the order of addresses. */
KEEP long searched(const struct op *code, int nr)
{
	uintptr_t sorted[NR];
	long sum = 0;

	memcpy(sorted, engine.labels, sizeof(sorted));
	qsort(sorted, NR, sizeof(*sorted), by_address);
	for (int i = 0; i < nr; i++) {
		int number = -1;

		for (int k = 0; k < NR; k++)
			if (engine.labels[k] == code[i].where)
				number = k;
		sum = sum * 7 + number;
		sum += bsearch(&code[i].where, sorted, NR, sizeof(*sorted), by_address) != NULL;
		sum += code[i].where == engine.halt;
	}
	return sum;
}

/* The code consists of 4-byte differences from a label, computed at run time. */
KEEP long compressed(const int *code, long v)
{
	static void *const labels[] = {&&plus, &&twice, &&minus, &&end};

	if (!code) {
		engine.labels = labels;
		engine.base = &&plus;
		return 0;
	}
	goto *((char *)&&plus + *code++);
plus:
	v += 3;
	goto *((char *)&&plus + *code++);
twice:
	v *= 2;
	goto *((char *)&&plus + *code++);
minus:
	v -= 7;
	goto *((char *)&&plus + *code++);
end:
	return v;
}

/* The assembler computes the differences; another function adds them to a label. */
static const int *away;
static char *away_from;

KEEP long given(void *where, long v)
{
	static const int table[] = {&&first - &&first, &&second - &&first, &&third - &&first, &&last - &&first};

	if (!where) {
		away = table;
		away_from = &&first;
		return 0;
	}
	goto *where;
first:
	v ^= 0x55;
second:
	v += 11;
third:
	v *= 3;
last:
	return v;
}

KEEP void *compute(int i) { return away_from + away[i]; }

/* A label in the part that the compiler considers cold. */
__attribute__((cold)) KEEP void rare(long *v) { *v += 1000; }

KEEP long cold(int n, void *const *override)
{
	static void *const labels[] = {&&warm, &&freezing, &&out};
	long v = n;

	goto *(override ? override[n % 3] : labels[n % 3]);
warm:
	v += 5;
	goto *labels[2];
freezing:
	rare(&v);
	rare(&v);
	goto *labels[2];
out:
	return v;
}

/* A structure of labels. Callers copy labels from it. */
struct handlers {
	void *on_odd, *on_even;
	struct {
		int key;
		void *on_key;
	} known[3];
};

KEEP long exported(int n, struct handlers *out)
{
	static const struct handlers all = {&&odd, &&even, {{3, &&three}, {10, &&ten}, {11, &&odd}}};
	long v = n;

	if (out) {
		*out = all;
		return 0;
	}
	for (int i = 0; i < 3; i++)
		if (all.known[i].key == n)
			goto *all.known[i].on_key;
	goto *(n & 1 ? all.on_odd : all.on_even);
odd:
	return v * 5;
even:
	return v / 2;
three:
	return v + 300;
ten:
	v += 1000;
	goto even;
}

/* Jumps in inline assembly (asm goto). */
KEEP long by_asm(int n)
{
	long v = n;
	void *where = n & 1 ? &&left : &&right;

	__asm__ goto("jmp *%0" : : "r"(OPAQUE(where)) : : left, right);
left:
	return v - 4;
right:
	return v + 9;
}

/* A signal handler sets the label to continue at. */
static void *volatile next;
static void *at_signal;

static void on_signal(int sig)
{
	(void)sig;
	next = at_signal;
}

KEEP long chosen(int n)
{
	long v = n;

	at_signal = &&stopped;
	next = &&loop;
loop:
	if (++v == n + 20)
		raise(SIGUSR1);
	goto *next;
stopped:
	return v;
}

/* Direct threaded code that many threads run. */
static struct op *shared;

static void *run(void *arg)
{
	long sum = 0;

	for (int i = 1; i < 200; i++)
		sum = sum * 31 + threaded(shared, i % 9 + (long)(intptr_t)arg);
	return (void *)(intptr_t)sum;
}

int main(void)
{
	static const int numbers[] = {0, 3, 2, 0, 1, 3, 1, 4, 5};
	const int nr = sizeof(numbers) / sizeof(numbers[0]);
	struct op *code = malloc(sizeof(*code) * nr);
	struct handlers handlers;
	int offsets[40];
	pthread_t threads[3];
	long sum = 0;

	threaded(NULL, 0);
	for (int i = 0; i < nr; i++)
		code[i] = (struct op){engine.labels[numbers[i]], numbers[i] == 4 ? 6 : i};
	for (int i = 0; i < 100; i++)
		sum = sum * 31 + threaded(code, i % 7);
	sum = sum * 31 + searched(code, nr);
	shared = code;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i);
	for (int i = 0; i < 3; i++) {
		void *ret;

		pthread_join(threads[i], &ret);
		sum = sum * 31 + (long)(intptr_t)ret;
	}
	compressed(NULL, 0);
	for (int i = 0; i < 40; i++)
		offsets[i] = (int)((char *)engine.labels[i == 39 ? 3 : hazard_next() % 3] - (char *)engine.base);
	for (int i = 0; i < 30; i++)
		sum = sum * 31 + compressed(offsets + i, i);
	given(NULL, 0);
	for (int i = 0; i < 40; i++)
		sum = sum * 31 + given(compute(i % 4), i);
	exported(0, &handlers);
	sum = sum * 31 + (handlers.on_odd == handlers.known[2].on_key) * 2 + (handlers.on_odd != handlers.on_even);
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 60; i++) {
		sum = sum * 31 + cold(i, NULL);
		sum = sum * 31 + exported(i % 13, NULL);
		sum = sum * 31 + by_asm(i);
		sum = sum * 31 + chosen(i);
	}
	printf("%ld\n", sum);
	free(code);
	return 0;
}
