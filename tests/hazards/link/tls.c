// SPDX-License-Identifier: Apache-2.0
// Thread-local variables by every model: in the program, in a library linked with it, and in one
// loaded later.
// flags: -pthread -rdynamic
// link: -ltls1 -pthread -ldl
// modes: pie nopie
// library: libtls1.so -DLIBRARY=1
// library: libtls2.so -DLIBRARY=2
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "../hazard.h"

#if LIBRARY == 1
__thread int shared = 1000;
static __thread int own = 10;
static __thread char block[512] = "text";

int first_library(int n)
{
	own += n;
	shared += own;
	block[n & 511]++;
	return own + shared + block[0];
}
#elif LIBRARY == 2
static __thread long counters[4] = {1, 2, 3, 4};
__thread int loaded __attribute__((tls_model("global-dynamic"))) = 9;

long second_library(int n)
{
	switch (n % 6) {
	case 0: return counters[0] += n;
	case 1: return counters[1] *= 3;
	case 2: return counters[2] ^= n;
	case 3: return counters[3]++;
	case 4: return loaded += n;
	default: return counters[0] + loaded;
	}
}
#else
extern __thread int shared;
int first_library(int n);
__thread int gd __attribute__((tls_model("global-dynamic"))) = 3;
static __thread int ld __attribute__((tls_model("local-dynamic"))) = 4;
static __thread int ld2 __attribute__((tls_model("local-dynamic")));
__thread int ie __attribute__((tls_model("initial-exec"))) = 5;
static __thread int le __attribute__((tls_model("local-exec"))) = 6;
static __thread void *self;

KEEP long touch(int n)
{
	gd += n;
	ld ^= gd;
	ld2 = ld + n;
	ie -= ld2;
	le = le * 3 + ie;
	shared += le & 15;
	self = &gd;
	return gd + 3L * ld + 5L * ld2 + 7L * ie + 11L * le + shared + (self == &gd);
}

static long (*second)(int);

static void *works(void *arg)
{
	long *sum = arg;

	for (int i = 0; i < 200; i++) {
		*sum = *sum * 31 + touch(i);
		*sum = *sum * 31 + first_library(i);
		*sum = *sum * 31 + second(i);
	}
	return NULL;
}

int main(void)
{
	void *library = dlopen("libtls2.so", RTLD_NOW);
	pthread_t threads[4];
	long sums[5] = {0, 1, 2, 3, 0};

	second = library ? (long (*)(int))dlsym(library, "second_library") : NULL;
	if (!second)
		return 2;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, works, &sums[i]);
	works(&sums[4]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%ld %ld %ld %ld %ld\n", sums[0], sums[1], sums[2], sums[3], sums[4]);
	printf("%s\n", sums[0] == sums[4] ? "the same" : "not the same");
	return 0;
}
#endif
