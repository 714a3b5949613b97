#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small functions in place of calls at random (--stress-inline): a part of what scripts/check/stress-inline runs in full.
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
	"$BUILD/morph-optimize" --all --stress-inline="$1" --report=json -o "$2" leaf >report.json 2>err.txt ||
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
"$BUILD/morph-optimize" --all --stress-inline=7 -o most leaf >text.txt || fail "text report"
says text.txt 'inlining   for tests, with seed 7' "text report"
finish
