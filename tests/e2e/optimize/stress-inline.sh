#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small functions in place of calls at random (--lab=stress-inline): a part of what scripts/check/stress-inline runs in full.
# The same seed gives the same output, another one another output.
. "$(dirname "$0")/../lib.sh"
scratch stress-inline
need gcc g++ jq setarch

"$root/scripts/check/stress-inline" --calls=40 --outputs=6 leaf-pie leaf-fixed leaf-relocations leaf-landing \
	leaf-static leaf-exceptions exceptions-static >table.txt 2>&1 || fail "$(grep -v '^|' table.txt | head -5)"
[ "$(grep -c '^| .* 0 |$' table.txt)" = 7 ] || fail "not seven programs without a wrong output: $(cat table.txt)"
for name in pie fixed relocations landing exceptions; do
	replaced=$(awk -F'|' -v name=" leaf-$name " '$2 == name { print $3 + 0 }' table.txt)
	[ "${replaced:-0}" -ge 30 ] || fail "leaf-$name: '$replaced' calls were replaced"
done

gcc -O2 -o leaf "$root/tests/data/leaf.c" || exit 1
inline() { # SEED FILE: $calls
	"$BUILD/morph-optimize" --all --lab=stress-inline="$1" --report=json -o "$2" leaf >report.json 2>err.txt ||
		fail "seed $1: $(cat err.txt)"
	[ "$(jq .stress_inline_seed report.json)" = "$1" ] || fail "the report lacks the seed $1"
	calls=$(jq .code.inlined report.json)
}
inline 4 first
few=$calls
inline 4 again
cmp -s first again || fail "the same seed gives two outputs"
inline 7 most
[ "$calls" -gt "$few" ] || fail "seed 7 replaces $calls calls, seed 4 replaces $few"
cmp -s first most && fail "two seeds give one output"
"$BUILD/morph-optimize" --all --lab=stress-inline=7 -o most leaf >text.txt || fail "text report"
says text.txt 'inlining   for tests, with seed 7' "text report"

# The cold parts of functions lie behind one another, and each ends in a call that does not return. Of two such functions
# in place of calls, the copies of the cold parts may lie in that order, too, by chance.
cat >cold.c <<'END'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline, cold, noreturn)) void stop(const char *name) { puts(name); exit(3); }
#define FUNCTION(name, k) \
	__attribute__((noinline)) unsigned name(unsigned x, unsigned y) \
	{ if (x > 1000000 + k) stop(#name); return (x ^ y) + k * (x >> 3); }
FUNCTION(one, 1) FUNCTION(two, 3) FUNCTION(three, 5) FUNCTION(four, 7) FUNCTION(five, 9) FUNCTION(six, 11)
int main(int argc, char **argv)
{
	unsigned s = 0, n = argc > 1 ? (unsigned)atoi(argv[1]) : 5000;

	for (unsigned i = 0; i < n; i++) {
		s += one(i, s); s ^= two(i, s & 7); s += three(i, i + 1); s ^= four(i, s); s += five(i, s); s ^= six(i, 3);
	}
	printf("%u\n", s);
	return 0;
}
END
gcc -O2 -o cold cold.c || exit 1
run_cold() { "$1"; echo $?; "$1" 1100000; echo $?; }
run_cold ./cold >want.txt
for seed in {1..16}; do
	"$BUILD/morph-optimize" --all --lab=stress-inline="$seed" --report=none -o out cold 2>err.txt || fail "cold parts, seed $seed: $(cat err.txt)"
	run_cold ./out | cmp -s - want.txt || fail "cold parts, seed $seed: other output"
done
finish
