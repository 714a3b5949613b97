#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# By exact counts of an emulator, no timing of a loop is shorter than 200 instructions of the program,
# however short a round is. The check itself can fail, and says so if there is nothing to check.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc python3 qemu-x86_64
export PATH="$BUILD:$PATH"
scratch timings

cat >loops.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#define KEEP __attribute__((noinline, noclone))
/* Rounds of few instructions, of some hundred, and of a number that differs from round to round. */
KEEP long tight(const unsigned *a, long n) { long s = 0; for (long i = 0; i < n; i++) s += a[i & 511]; return s; }
KEEP long uneven(const unsigned *a, long n)
{
	long s = 0;
	for (long i = 0; i < n; i++) {
		if (a[i & 511] & 8)
			s ^= i;
		else
			for (unsigned k = 0; k < a[i & 511] % 40; k++)
				s = s * 3 + k;
	}
	return s;
}
KEEP long nested(const unsigned *a, long n)
{
	long s = 0;
	for (long i = 0; i < n; i++) {
		for (long k = 0; k < 100; k++)
			s += a[k] ^ i;
		s ^= s >> 3;
	}
	return s;
}
int main(int argc, char **argv)
{
	static unsigned data[512];
	long h = 0, n = argc > 1 ? atol(argv[1]) : 1;
	for (unsigned i = 0; i < 512; i++)
		data[i] = i * 2654435761u >> 7;
	for (long i = 0; i < n; i++)
		h = h * 31 + tight(data, 200000) + uneven(data, 20000) + nested(data, 2000);
	printf("%ld\n", h);
	return 0;
}
C
# On a busy machine, a short run may have no timing.
check() { command_ends "$1" "$2" "$root/scripts/bench/bench-timings" --keep=kept --binary=loops "${@:3}"; }
for flags in "-O1" "-O2 -fno-tree-vectorize -fcf-protection=full" "-O2 -fno-pie -no-pie"; do
	# shellcheck disable=SC2086
	gcc $flags -Wl,--build-id loops.c -o loops || exit 1
	nr=0
	for rounds in 100 500 3000; do
		got=0
		"$root/scripts/bench/bench-timings" --keep=kept --binary=loops --args $rounds >out.txt 2>err.txt || got=$?
		[ $got = 0 ] || [ $got = 77 ] || fail "$flags: status $got: $(tail -n 3 out.txt err.txt)"
		nr=$(awk '$1 == "loop" { n += $4 } END { print n + 0 }' kept/loops/audited.timings)
		[ "$nr" = 0 ] || break
	done
	[ "$nr" -gt 0 ] || fail "$flags: $nr timings: $(cat kept/loops/audited.timings)"
done
check 77 "no loop turns" --args 0
says err.txt "nothing was checked"
check 1 "timings that are too short" --least=1000000000 --args $rounds
says out.txt "timing point"
finish
