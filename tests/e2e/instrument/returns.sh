#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions that return though the C library has some of the same names that do not: err() and its family belong
# to no standard, so a library may define its own. Versions that count, time or number paths behave the same, and
# the counts behind the calls are right.
. "$(dirname "$0")/../lib.sh"
need gcc
scratch returns
cat >lib.c <<'END'
void err(int status, const char *text) { (void)status; (void)text; }
void errx(int status, const char *text) { (void)status; (void)text; }
void verr(int status, const char *text) { (void)status; (void)text; }
void verrx(int status, const char *text) { (void)status; (void)text; }
END
cat >prog.c <<'END'
#include <stdio.h>
#include <stdlib.h>
void err(int status, const char *text);
void errx(int status, const char *text);
void verr(int status, const char *text);
void verrx(int status, const char *text);
__attribute__((noinline)) long work(long n, long a, long b, long c)
{
	for (long i = 0; i < n; i++) {
		if ((i & 15) == 3) { err((int)a, "one"); a += b; }
		else if ((i & 15) == 5) { errx((int)b, "two"); b ^= c + i; }
		else if ((i & 15) == 7) { verr((int)c, "three"); c += a; }
		else if ((i & 15) == 9) { verrx((int)i, "four"); a -= i; }
		else if (i % 3 == 1) a += 3 * b;
		else if (i % 5 == 1) c ^= a;
	}
	return a * 31 + b * 7 + c;
}
int main(int argc, char **argv)
{
	printf("%ld\n", work(argc > 1 ? atol(argv[1]) : 1600, 1, 2, 3));
	return 0;
}
END
gcc -O2 -shared -fPIC -o liberr.so lib.c || exit 1
for how in "-Wl,--emit-relocs" "-fno-plt -Wl,--emit-relocs" "-s"; do
	# shellcheck disable=SC2086
	gcc -O2 $how -o prog prog.c -L. -lerr -Wl,-rpath,"$dir" || exit 1
	want=$(./prog)
	for kind in edges edges,atomic edges,threads pep,poll audit; do
		rm -f counts
		"$BUILD/morph-optimize" instrument --kind=$kind --all --counts="$dir/counts" --report=none -o out prog ||
			fail "$how: $kind"
		[ "$(./out)" = "$want" ] || fail "$how: $kind: another output"
		[ $kind = edges ] || continue
		ends 0 "$how: import" import --db=db --binary=out counts
		says out.txt 'in 0 of them the counts in and out differ' "$how"
		says out.txt '^0 of .* at spare counters missed' "$how"
		rm -f db
	done
	for seed in 1 2 3; do
		"$BUILD/morph-optimize" --report=none --lab=stress-layout=$seed -o out prog || fail "$how: seed $seed"
		[ "$(./out)" = "$want" ] || fail "$how: seed $seed: another output"
	done
done
finish
