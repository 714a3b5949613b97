#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A function that is entered rarely, and then runs for some milliseconds, has many pairs of windows in
# one invocation: pauses between its invocations pay for them.
# alone: it samples
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc python3
export PATH="$BUILD:$PATH"
scratch pauses

cat >rare.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline, noclone)) unsigned long rounds(long n)
{
	unsigned long s = 1;
	for (long i = 0; i < n; i++)
		for (int k = 0; k < 200; k++)
			s = s * 6364136223846793005ul + (s >> 60);
	return s;
}
/* Rounds that take a millisecond. */
static long calibrate(void)
{
	clock_t start = clock();
	sink = rounds(20000);
	return 20000 * (CLOCKS_PER_SEC / 1000) / (clock() - start + 1) + 1;
}
int main(int argc, char **argv)
{
	long calls = atol(argv[1]), ms = atol(argv[2]), pause_ms = atol(argv[3]), each = calibrate();
	struct timespec pause = {0, pause_ms * 1000000};
	for (long i = 0; i < calls; i++) {
		nanosleep(&pause, NULL);
		sink = rounds(ms * each);
	}
	return argc > 99;
}
C
gcc -O1 -Wl,--build-id rare.c -o rare || exit 1
morph-optimize instrument --kind=audit --all --only=rounds --report=none --counts="$PWD/ring" rare -o audited || exit 1
# How many windows there are depends on what reading the clock costs on this machine. A busy machine makes pauses
# of its own, so that the least of three runs counts.
windows() {
	rm -f ring
	./audited 12 4 "$1" || fail "status $?"
	python3 -c 'import struct; print(struct.unpack("<Q", open("ring", "rb").read(40)[32:])[0])'
}
none=$(for _ in 1 2 3; do windows 0; done | sort -n | head -n 1)
many=$(windows 300)
[ "$none" -gt 0 ] && [ "$many" -ge $((none * 3)) ] ||
	fail "12 calls of 4 ms: $none windows without pauses, only $many with 300 ms before each"
finish
