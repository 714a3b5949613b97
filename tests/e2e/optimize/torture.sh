#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: a part of the C torture programs, in all configurations
# A part of GCC's C torture programs, each of the 48 configurations once, and of csmith's: in stress
# layout, they behave the same. The script continues after an interruption.
. "$(dirname "$0")/../lib.sh"
scratch torture
need gcc clang strip nm readelf jq
export LC_ALL=C

torture() {
	"$root/scripts/check/torture" --seed=5 --configs=1 --limit=48 --results="$dir/results" "$@"
}

torture --shard=1/2 >out.1
rc=$?
if [ $rc = 77 ]; then
	tail -n 1 out.1
	exit 77
fi
[ $rc = 0 ] || fail "the first shard: exit $rc"
first=$(wc -l <results)
# As after a kill while writing: the last run is lost.
truncate -s -20 results
torture --executed=8 >out.2 || fail "the whole: exit $?"
says out.2 ", $((first - 2)) of them done before" "the whole"
grep -E '^(BROKEN|FAILED|REFUSED)' out.1 out.2
runs=$(wc -l <results)
[ "$runs" -ge 40 ] || fail "only $((runs - 1)) runs"
[ "$(jq -r 'select(.program) | .config' results | sort -u | wc -l)" -ge 40 ] ||
	fail "not all configurations"
jq -e -s '[.[] | select(.program) | .program + .config] | length == (unique | length)' results \
	>/dev/null || fail "a run was run twice"
# Nothing may be broken, and enough must have been moved for the result to mean something.
same=$(jq -r 'select(.result == "same") | .result' results | wc -l)
[ "$same" -ge 36 ] || fail "only $same are the same"
jq -e -s '([.[].own // 0] | add) as $own | $own > 50 and
	([.[] | .left_own // {} | add // 0] | add) <= $own / 20' results >/dev/null ||
	fail "more than a twentieth of the programs' own functions is left alone"
torture >out.3 || fail "again: exit $?"
says out.3 ", $((runs - 1)) runs, $((runs - 1)) of them done before" "again"
[ "$(wc -l <results)" = "$runs" ] || fail "again: ran something"
"$root/scripts/check/torture" --seed=6 --limit=48 --results="$dir/results" >out.4
[ $? = 77 ] || fail "results of another seed were added to"
says out.4 'give another --results' "another seed"

if [ -e /usr/include/csmith/csmith.h ] && command -v csmith >/dev/null; then
	"$root/scripts/check/torture" --csmith=3 --configs=2 --seed=5 --results="$dir/csmith" >out.5 ||
		fail "csmith: exit $?"
	grep -E '^(BROKEN|FAILED|REFUSED)' out.5
else
	echo "note: no csmith"
fi
# Rust: panics, generics and threads, with std in the program, in some of its configurations.
if [ -x /usr/bin/rustc ] && command -v ld.lld >/dev/null; then
	"$root/scripts/check/torture" --rust --config='rustc-O2-*-lld-*' --config='rustc-O0-pie-bfd-stripped' \
		--seed=5 --results="$dir/rust" >out.6 || fail "rust: exit $?"
	grep -E '^(BROKEN|FAILED|REFUSED)' out.6
	[ "$(jq -r 'select(.result == "same") | .result' rust | wc -l)" = 21 ] ||
		fail "rust: not 21 runs that are the same: $(jq -c 'select(.result != "same")' rust)"
	tail -n 1 out.6
else
	echo "note: no rustc or lld"
fi
tail -qn 1 out.[25]
[ $nr_failed = 0 ]
