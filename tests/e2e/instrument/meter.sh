#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# instrument --kind=meter: counts at a few places that a list names. The original with a meter and the new layout
# with it count the same, cost next to nothing, and take each other's place.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc jq nm od qemu-x86_64 python3
export PATH="$BUILD:$PATH"
scratch meter
optimize() { # STATUS WHAT ARGUMENTS...
	command_ends "$1" "$2" morph-optimize "${@:3}"
}

cat >work.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned table[4096];
__attribute__((noinline)) unsigned round_of(unsigned x)
{
	unsigned sum = 0;
	for (unsigned i = 0; i < 4096; i++) {
		unsigned v = table[(i * 17 + x) & 4095];
		if (v % 3 == 0)
			sum += v;
		else if (v & 4)
			sum ^= v << 3;
		else
			sum -= v >> 2;
		table[i] = sum;
	}
	return sum;
}
__attribute__((noinline)) unsigned rare(unsigned x)
{
	switch (x & 7) {
	case 0: return x * 3;
	case 1: return x - 7;
	case 2: return x / 5;
	case 3: return x ^ 0x55;
	case 4: return x % 9;
	default: return x + 1;
	}
}
int main(int argc, char **argv)
{
	unsigned sum = 0, n = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	for (unsigned i = 0; i < n; i++) {
		sum += round_of(i);
		if (i % 4 == 0)
			sum = rare(sum);
	}
	printf("%u\n", sum);
	return 0;
}
C
gcc -O2 -Wl,--emit-relocs,--build-id -o work work.c || exit 1
want=$(./work 300)
entry() {
	printf '0x%x' "0x$(nm work | awk -v name="$1" '$3 == name { print $1 }')"
}
printf '%s<outside\n%s\n' "$(entry round_of)" "$(entry rare)" >places

# counted FILE: its first two counters
counted() {
	od -An -td8 -w16 -j 4096 -N 16 "$1" | tr -s ' '
}

# ---- exact counts of one run are the profile of the new layout
optimize 0 "all edges" instrument --kind=edges --report=none -o counting work
./counting 300 >/dev/null && morph-stats import --db=exact.db --binary=counting counting.counts >/dev/null 2>&1 || fail "import"
optimize 0 "new" --report=none --db=exact.db --exact-profile -o new work
optimize 0 "original + meter" instrument --kind=meter --meter=places --layout=original --json -o original.meter work
json "original + meter" '.meter == {places: 2, functions: 2, fallen_through: 2, atomic: false, path: .meter.path}
	and (.meter.path | endswith("/original.meter.counts"))'
optimize 0 "new + meter" instrument --kind=meter --meter=places --db=exact.db --exact-profile -o new.meter work
says out.txt '^  meter      2 places in 2 functions (' "new + meter"
says out.txt '^  counted in .*/new.meter.counts$' "new + meter"
for v in original.meter new.meter; do
	optimize 0 "verify $v" verify --json --kind=meter work $v
	json "verify $v" '.kind == "meter"'
	optimize 4 "$v as edges" verify --kind=edges,layout work $v
	[ "$(./$v 300)" = "$want" ] || fail "$v: another output"
	[ "$(counted $v.counts)" = " 300 75" ] || fail "$v: counts $(counted $v.counts)"
	./$v 300 >/dev/null
	[ "$(counted $v.counts)" = " 600 150" ] || fail "$v: counts $(counted $v.counts) in two runs"
	# Its counters do not determine all others.
	command_ends 1 "import of $v" morph-stats import --db=meter.db --binary=$v $v.counts
	says err.txt 'not instrumented' "import of $v"
done
# With the original's layout, nothing moves but what holds counters.
moved() {
	morph-optimize "$@" --json work -o moved | jq .functions.moved
}
[ "$(moved instrument --kind=meter --meter=places --layout=original)" = 2 ] || fail "another function moved"

# ---- what it costs: each count is an instruction, and little else
instructions() {
	"$root/scripts/bench/branches" --json --stdout /dev/null "$1" -- 300 |
		jq '[.. | objects | select(has("instructions")) | .instructions] | max'
}
before=$(instructions ./work)
after=$(instructions ./original.meter)
[ "$before" -gt 1000000 ] || fail "instructions of the original: $before"
[ $((after - before)) -ge 375 ] && [ $(((after - before) * 1000)) -le "$before" ] ||
	fail "$before instructions, and with a meter $after"

# ---- each takes the place of each
cp work prog
for v in original.meter new.meter new original.meter new; do
	optimize 0 "$v in place" adopt --backup-dir=bk --report=none --proved --kind=layout,meter prog $v
	cmp prog $v || fail "$v: not in place"
	[ "$(./prog 300)" = "$want" ] || fail "$v in place: another output"
done
optimize 4 "without --kind" adopt --backup-dir=bk prog new.meter
optimize 0 "restore" restore --report=none --backup-dir=bk prog
cmp prog work || fail "restore: another file"

# ---- threads: counters are atomic, unless it is said otherwise
sed 's/int main/#include <pthread.h>\nint main/' work.c >threads.c
cat >>threads.c <<'C'
void *(*unused)(void);
int start(pthread_t *t, void *(*f)(void *)) { return pthread_create(t, NULL, f, NULL); }
C
gcc -O2 -Wl,--build-id -o threads threads.c -lpthread || exit 1
nm threads | awk '$3 == "rare" { print "0x" $1 "<outside" }' | sed 's/0x0*/0x/' >places.threads
for how in meter meter,atomic meter,plain; do
	optimize 0 "$how" instrument --kind=$how --meter=places.threads --json -o threads.meter threads
	json "$how" ".meter.atomic == $([ $how = meter,plain ] && echo false || echo true)"
	[ "$(./threads.meter 300)" = "$want" ] || fail "$how: another output"
done

# ---- what cannot be
optimize 2 "no list" instrument --kind=meter work -o x
optimize 2 "a list without a meter" instrument --kind=edges --meter=places work -o x
optimize 2 "threads" instrument --kind=meter,threads --meter=places work -o x
optimize 2 "a layout without a meter" instrument --kind=edges --layout=original work -o x
optimize 2 "a profile for the original's layout" instrument --kind=meter --meter=places --layout=original --db=exact.db work -o x
optimize 1 "a layout without a meter" --all --layout=original work -o x
says err.txt '--layout=original is for versions with a meter' "a layout without a meter"
optimize 1 "no such list" instrument --kind=meter --meter=nowhere work -o x
optimize 1 "the list is the output" instrument --kind=meter --meter=places work -o places
cmp -s places <(printf '%s<outside\n%s\n' "$(entry round_of)" "$(entry rare)") || fail "the list was overwritten"
echo 0x1 >bad
optimize 4 "a place outside of functions" instrument --kind=meter --meter=bad work -o x
says err.txt 'no counter can stand at 0x1: ' "a place outside of functions"
one_line "a place outside of functions"
optimize 4 "a place that stays" instrument --kind=meter --meter=places --skip=rare work -o x
says err.txt "no counter can stand at $(entry rare): left out by --skip" "a place that stays"
[ ! -e x ] || fail "refused, and yet an output"
finish
