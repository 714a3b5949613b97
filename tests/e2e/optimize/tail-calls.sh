#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copies of functions' beginnings in place of jumps to them: the same behaviour in several kinds of files, the same
# frames and registers for an unwinder at each instruction, symbols and a debugger's backtrace that name the right
# function, and counts that go on from such code.
# SEED in the environment: other random places.
. "$(dirname "$0")/../lib.sh"
scratch tail-calls
need gcc g++ nm
data=$root/tests/data
seed=${SEED:-1}

# optimise FILE [OPTIONS]: FILE.out is the verified output; $jumps: the number of replaced jumps
optimise() {
	local file=$1
	shift
	"$BUILD/morph-optimize" --report=json "$@" -o "$file.out" "$file" >report.json 2>err.txt ||
		{ fail "$file $*: $(cat err.txt)"; return 1; }
	jumps=$(jq .code.tail_calls report.json)
	"$BUILD/morph-optimize" verify "$file" "$file.out" >/dev/null 2>&1 || fail "$file $*: does not verify again"
}

# same WHAT FILE ARGUMENTS...: FILE and FILE.out print the same, and end in the same way
same() {
	local want got
	want=$("./$2" "${@:3}" 2>&1; echo $?)
	got=$("./$2.out" "${@:3}" 2>&1; echo $?)
	[ "$want" = "$got" ] || fail "$1: '$got' instead of '$want'"
}

# program NAME LEAST COMPILER FLAGS
program() {
	local name=$1 least=$2 most=0 i
	shift 2
	"$@" -o "$name" 2>err.txt || { fail "$name: $(cat err.txt)"; return; }
	for i in 0 1 2 3; do
		optimise "$name" --all --stress-inline=$((4 * seed + i)) || continue
		same "$name, seed $i" "$name"
		same "$name, seed $i, by steps" "$name" steps
		[ "$jumps" -gt "$most" ] && most=$jumps
		optimise "$name" --stress-layout=$((seed + i)) --stress-inline=$((4 * seed + i)) &&
			same "$name in another order, seed $i" "$name"
	done
	[ "$most" -ge "$least" ] || fail "$name: only $most jumps were replaced"
	optimise "$name" --all --stress-inline=$seed --layout=no-tail-calls && [ "$jumps" = 0 ] ||
		fail "$name: '$jumps' jumps were replaced with --layout=no-tail-calls"
}

program pie 5 gcc -O2 "$data/leaf_calls.c"
program fixed 5 gcc -O2 -fno-pie -no-pie "$data/leaf_calls.c"
program relocations 5 gcc -O2 -fcf-protection -Wl,--emit-relocs "$data/leaf_calls.c"
program stripped 5 gcc -O2 -s "$data/leaf_calls.c"
# Functions with exception tables take no part.
program exceptions 3 g++ -x c++ -O2 "$data/leaf_calls.c"
# With debug information, a breakpoint on a function must stop wherever it begins.
gcc -O2 -g -o debug "$data/leaf_calls.c" && optimise debug --all --stress-inline=3 && [ "$jumps" = 0 ] ||
	fail "$jumps jumps were replaced in a file with debug information"
# Files that count keep all jumps.
"$BUILD/morph-optimize" instrument --report=json -o counting pie 2>err.txt >report.json &&
	[ "$(jq '.code.tail_calls' report.json)" = 0 ] || fail "a file with counters lacks jumps: $(cat err.txt)"

# ---- by a profile: hot jumps, two of which lead to one function
cat >hot.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone, noipa))
volatile unsigned long sink;
/* Is called from a beginning. Its caller is the function that was jumped to. */
APART void look(unsigned long n)
{
	sink += n;
	if (n == 77777777)
		write(2, "", 0);
	sink ^= n;
}
APART unsigned long target(unsigned long n)
{
	if (n % 1000 == 999)
		sink ^= n;
	look(n);
	return n * 3 + sink % 2;
}
APART unsigned long first(unsigned long n) { sink += n; return target(n + 1); }
APART unsigned long second(unsigned long n) { sink -= n; return target(n * 2); }
unsigned long (*volatile pointer)(unsigned long) = target;
int main(int argc, char **argv)
{
	unsigned long sum = 0, nr = strtoul(argv[1], NULL, 10);
	for (unsigned long i = 0; i < nr; i++) {
		sum += first(i) ^ second(i);
		sum += pointer(i);
	}
	printf("%lu %d\n", sum, pointer == target);
	return argc > 2 ? (int)first(77777776) & 1 : 0;
}
END
for flags in "-fPIE -pie" "-fPIE -pie -s" "-fno-pie -no-pie -Wl,--emit-relocs"; do
	# shellcheck disable=SC2086
	gcc -O2 $flags -Wl,--build-id hot.c -o hot 2>err.txt || { fail "hot $flags: $(cat err.txt)"; continue; }
	rm -f hot.db hot.counts
	"$BUILD/morph-optimize" instrument --kind=edges --all --counts="$PWD/hot.counts" --report=none -o counting hot \
		2>err.txt || fail "$(cat err.txt)"
	./counting 20000 >/dev/null || fail "hot $flags: the counting version fails"
	"$BUILD/morph-stats" --db=hot.db import --binary=counting hot.counts >/dev/null 2>err.txt || fail "$(cat err.txt)"
	optimise hot --db=hot.db --exact-profile --layout=no-inline || continue
	[ "$jumps" -ge 1 ] || fail "hot $flags: no jump was replaced"
	same "hot $flags" hot 5000
	optimise hot --db=hot.db --exact-profile --layout=no-inline,no-tail-calls && [ "$jumps" = 0 ] ||
		fail "hot $flags: --layout=no-tail-calls replaces $jumps jumps"
done

# ---- frames and names
gcc -O2 -fPIE -pie -Wl,--build-id hot.c -o hot 2>err.txt
most=0
for i in 0 1 2 3 4 5; do
	optimise hot --all --stress-inline=$((4 * seed + i)) --layout=no-inline
	same "hot, seed $i" hot 300
	[ "$jumps" -gt "$most" ] || continue
	most=$jumps
	cp hot.out named
done
[ "$most" -ge 2 ] || fail "only $most jumps of hot were replaced"
nm named | grep -q ' t target.morph.part$' || fail "no symbol of the copy of target's beginning: $(nm named)"
if command -v gdb >/dev/null; then
	for file in hot named; do
		gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'break write' -ex 'run 1 x' -ex bt "./$file" 2>&1 |
			grep '^#' | sed 's/ ()$//; s/.* //; s/\.morph\.[a-z]*$//' >"$file.frames"
	done
	cmp hot.frames named.frames || fail "other frames: $(cat named.frames) instead of $(cat hot.frames)"
	grep -q '^target$' hot.frames || fail "target is in no frame: $(cat hot.frames)"
else
	left_out+=" gdb,"
fi
finish
