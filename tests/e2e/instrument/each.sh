#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-optimize --each: several outputs of one file in one call have the bytes that calls of their own write, whatever
# they share, and fail as these do. Whoever ends the call leaves no half output.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc jq nm
export PATH="$BUILD:$PATH"
scratch each
optimize() { # STATUS WHAT ARGUMENTS...
	command_ends "$1" "$2" morph-optimize "${@:3}"
}

cat >work.c <<'C'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static unsigned leaf(unsigned x) { return x % 7 * 3; }
__attribute__((noinline)) unsigned some(unsigned x)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < 100; i++)
		sum += (x + i) % 3 ? leaf(i) : x ^ i;
	return sum;
}
__attribute__((noinline)) unsigned rare(unsigned x)
{
	if (x & 1)
		puts("odd");
	return x * 3;
}
int main(int argc, char **argv)
{
	unsigned sum = 0, n = argc > 1 ? (unsigned)atoi(argv[1]) : 10;

	for (unsigned i = 0; i < n; i++)
		sum = i % 16 ? sum + some(i) : rare(sum);
	printf("%u\n", sum);
	return 0;
}
C
gcc -O2 -Wl,--emit-relocs,--build-id -o work work.c || exit 1
nm work | awk '$3 == "some" { sub(/^0*/, "", $1); print "0x" $1 "<outside" }' >places
optimize 0 "all edges" instrument --kind=edges --report=none -o counting work
./counting 300 >/dev/null
morph-stats import --db=counts.db --binary=counting counting.counts >/dev/null 2>&1 || fail "import"

exact=(--db=counts.db --min-samples=1 --exact-profile --stale=none)
meter=(instrument --kind=meter --meter=places --counts="$dir/counts")
declare -A line=(
	[new]="${exact[*]}"
	[all]="--all"
	[plain]="${exact[*]} --lab=no-slots,no-inline"
	[edges]="instrument --kind=edges --counts=$dir/counts"
	[metered-original]="${meter[*]} --layout=original"
	[metered-new]="${meter[*]} ${exact[*]}"
	[metered-live]="${meter[*]} ${exact[*]} --live-at=0x10000000"
	[live]="${exact[*]} --live-at=0x20000000"
)
for v in "${!line[@]}"; do
	# shellcheck disable=SC2086 # words
	optimize 0 "$v alone" ${line[$v]} --report=none -o "alone.$v" work
done

# together STATUS WHAT NAME...: the outputs NAME in one call
together() {
	local status=$1 what=$2 words=() v
	shift 2
	rm -f together.*
	for v; do
		# shellcheck disable=SC2206 # words
		words+=(--each ${line[$v]} -o "together.$v" work)
	done
	optimize "$status" "$what" "${words[@]}"
}
for names in "new metered-original metered-new" "metered-new new" "metered-original new metered-new" "new" \
	"live metered-live new metered-new" "edges all new" "all edges metered-original" "new plain metered-new edges"; do
	# shellcheck disable=SC2086 # words
	together 0 "$names" $names
	for v in $names; do
		cmp "alone.$v" "together.$v" || fail "$names: $v has other bytes than alone"
	done
done
together 0 "reports" new metered-new
says out.txt '^  predicted  taken branches' "the first report"
grep -q meter out.txt && fail "a second report was printed"

# ---- a failure of one is the failure of all, with its own message
line[refused]="instrument --kind=meter --meter=bad --counts=$dir/counts ${exact[*]}"
line[lacking]="${exact[*]} --min-samples=1000000000000"
echo 0x1 >bad
together 4 "a place outside of functions" new metered-original refused
says err.txt 'no counter can stand at 0x1: ' "a place outside of functions"
one_line "a place outside of functions"
[ ! -e together.new ] || fail "refused, and yet an output"
together 3 "too little profile" metered-original lacking
optimize 2 "usage" --each "${exact[@]}" -o x work --each "${exact[@]}" work
optimize 2 "another command" --each "${exact[@]}" -o x work --each verify work alone.new
optimize 2 "in place" --each "${exact[@]}" -o x work --each "${exact[@]}" --in-place work
optimize 1 "one output twice" --each "${exact[@]}" -o x work --each --all -o x work
optimize 1 "an output that is another line's meter" --each "${exact[@]}" -o places work --each "${meter[@]}" --layout=original -o x work
optimize 1 "an output that is the input" --each "${exact[@]}" -o x work --each "${exact[@]}" -o work work
[ ! -e x ] || fail "refused, and yet an output"

# ---- verify refuses functions: each output is tried again without them, as alone
gcc -O2 -fcf-protection=none -fno-pie -no-pie "$root/tests/data/own_code/refused.c" -o work || exit 1
line[again]="--all --lab=no-slots"
for v in all again edges; do
	# shellcheck disable=SC2086 # words
	optimize 0 "$v alone, refused" ${line[$v]} --report=none -o "alone.$v" work
done
together 0 "functions that verify refuses" all again edges
for v in all again edges; do
	cmp "alone.$v" "together.$v" || fail "functions that verify refuses: $v has other bytes than alone"
done

# ---- it is ended at any moment: what has its name is whole, and nothing else stays
big=$(readlink -f "$(command -v perl)")
for signal in TERM KILL; do
	for moment in 0.02 0.1 0.2 0.3 0.5; do
		morph-optimize --each --all -o ended.1 "$big" --each --all --lab=no-slots -o ended.2 "$big" \
			--each instrument --counts="$dir/counts" -o ended.3 "$big" >/dev/null 2>&1 &
		pid=$!
		sleep $moment
		kill -$signal $pid 2>/dev/null
		wait $pid 2>/dev/null
		[ $signal != KILL ] || awaits "! pgrep -f $dir/counts >/dev/null" || fail "$signal: a process goes on"
		for v in ended.[123]; do
			[ ! -e $v ] || optimize 0 "$signal $moment $v" verify --report=none --kind=layout,edges "$big" $v
		done
		[ $signal = KILL ] || ! compgen -G '*.morph.*' >/dev/null || fail "$signal $moment: that stayed: $(echo *.morph.*)"
		rm -f ended.* ./*.morph.*
	done
done
finish
