#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: BOLT, callgrind and single steps of the same run
# Transfers of control from real files of other tools: counts of BOLT's instrumented program,
# perf2bolt, merge-fdata and callgrind equal those of single-stepping the same run. Transfers of an
# optimised program count for the original.
. "$(dirname "$0")/../lib.sh"
scratch transfers
cc=${CC:-gcc}
bolt=/usr/lib/llvm-19/bin
need "${cc%% *}"

# imports DB ARGS: import into a new database, which must pass the check
imports() {
	local db=$1
	shift
	rm -f "$db"*
	add "$db" "$@"
}

add() {
	local db=$1
	shift
	"$BUILD/morph-stats" --db "$db" import "$@" >out.txt 2>err.txt ||
		fail "import $*: $(cat err.txt)"
	"$BUILD/morph-stats" --db "$db" status --check >/dev/null 2>err.txt ||
		fail "import $*: $(cat err.txt)"
}

# refuses MESSAGE ARGS: status 1, one line, no database
refuses() {
	local message=$1 got=0
	shift
	"$BUILD/morph-stats" --db none.db import "$@" >out.txt 2>err.txt || got=$?
	[ $got = 1 ] || fail "import $*: status $got"
	[ "$(wc -l <err.txt)" = 1 ] || fail "import $*: $(cat err.txt)"
	grep -q -- "$message" err.txt || fail "import $*: no '$message': $(cat err.txt)"
	[ ! -e none.db ] || fail "import $*: made a database"
}

# edges DB PATH: print "FROM TO COUNT"
edges() {
	"$BUILD/tools/edges" "$1" "$2" | cut -d' ' -f1-3
}

# same WHAT A B: the files have the same lines, at least 20
same() {
	[ "$(wc -l <"$2")" -ge 20 ] || fail "$1: $(wc -l <"$2") edges"
	diff "$2" "$3" >diff.txt || fail "$1: $(head -5 diff.txt)"
}

# within WHAT A B: every line of A is in B
within() {
	[ "$(wc -l <"$2")" -ge 20 ] || fail "$1: $(wc -l <"$2") edges"
	comm -23 <(sort "$2") <(sort "$3") >diff.txt
	[ ! -s diff.txt ] || fail "$1: $(head -5 diff.txt)"
}

# of_program EDGES SYMBOLS: edges that leave the program's own functions, without its start code
own_symbols() {
	nm -S --defined-only "$1" | awk '$3 ~ /[tT]/ &&
		$4 ~ /^(step|walk|choose|choose.cold|fib|main|other)$/ { print $1, $2 }'
}

of_program() {
	python3 -c '
import sys
ranges = [(int(a, 16), int(b, 16)) for a, b in map(str.split, open(sys.argv[2]))]
for line in open(sys.argv[1]):
    at = int(line.split()[0], 16)
    if any(a <= at < a + n for a, n in ranges):
        print(line, end="")
' "$1" "$2"
}

# Two files each have a function of the same name. Wrong hints make sure
# that there is much to reorder.
cat >a.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#define HINT(x) __builtin_expect(!!(x), 1)
long other(long x);
static __attribute__((noinline)) long step(long x)
{
	if (HINT(x % 16 == 3))
		x = x * 7 + 1;
	else if (HINT(x % 8 == 5))
		x ^= 0x55;
	else
		x += 3;
	return x;
}
static __attribute__((noinline)) long walk(long n)
{
	long s = 1;

	for (long i = 0; i < n; i++) {
		if (HINT(i % 32 == 0)) {
			s ^= i;
			if (s == -12345)
				abort();
		} else {
			s += step(i);
		}
	}
	return s;
}
__attribute__((noinline)) long choose(int k, long x)
{
	switch (k) {
	case 0: return x + 1;
	case 1: return x * 3;
	case 2: return x ^ 7;
	case 3: return x - 9;
	case 4: return x << 1;
	case 5: return other(x);
	default: return x;
	}
}
static __attribute__((noinline)) long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 2000, r = walk(n);

	for (long i = 0; i < n; i++)
		r = choose(i % 9, r);
	printf("%ld\n", r + fib(7));
	return 0;
}
C
cat >b.c <<'C'
static __attribute__((noinline)) long step(long x) { return x > 5 ? x - 3 : x + 2; }
long other(long x) { return step(x) + step(x + 1); }
C
for kind in nopie pie; do
	case $kind in
	nopie) flags="-no-pie -fno-pie" ;;
	pie) flags="-pie -fPIE" ;;
	esac
	# shellcheck disable=SC2086
	$cc -O2 -fno-if-conversion -fno-if-conversion2 -fno-tree-loop-if-convert $flags \
		-Wl,--emit-relocs a.c b.c -o $kind || { echo "FAIL: $cc"; exit 1; }
	own_symbols $kind >$kind.symbols

	# ---- single-stepped, as branch stacks: every transfer
	"$BUILD/tools/steps" ./$kind 100 >steps.txt 2>/dev/null || fail "$kind: steps"
	imports steps.db steps.txt
	says out.txt '^[1-9][0-9]* of [0-9]* transfers counted, in 1 modules$' "$kind: steps"
	edges steps.db "$PWD/$kind" >steps.edges
	of_program steps.edges $kind.symbols >own.edges

	# ---- the same run under callgrind: all except returns and calls into other files
	if command -v valgrind >/dev/null; then
		valgrind -q --tool=callgrind --dump-instr=yes --collect-jumps=yes \
			--callgrind-out-file=cg.out ./$kind 100 >/dev/null 2>&1 || fail "$kind: callgrind"
		imports cg.db cg.out
		edges cg.db "$PWD/$kind" >cg.edges
		of_program cg.edges $kind.symbols >cg-own.edges
		within "$kind: callgrind" cg-own.edges own.edges
		sed -i '/^jump=/,+1d; /^jcnd=/,+1d' cg.out
		imports calls.db cg.out
		[ -z "$(edges calls.db "$PWD/$kind")" ] || fail "$kind: calls alone were taken"
	else
		left_out="$left_out valgrind"
	fi

	# ---- the exact fdata of an instrumented program
	if ! [ -x $bolt/llvm-bolt ]; then
		left_out="$left_out llvm-bolt"
		continue
	fi
	$bolt/llvm-bolt $kind -instrument -instrumentation-file="$PWD/i.fdata" -o $kind.i \
		>bolt.txt 2>&1 || fail "$kind: llvm-bolt -instrument: $(tail -1 bolt.txt)"
	./$kind.i 100 >/dev/null || fail "$kind: the instrumented program"
	imports i.db --binary=$kind i.fdata
	says out.txt '^[1-9][0-9]* of [0-9]* transfers counted, in 1 modules$' "$kind: instrumented"
	says out.txt 'fell through' "$kind: instrumented"
	grep -q 'unattributed' out.txt && fail "$kind: instrumented: $(cat out.txt)"
	edges i.db $kind >i.edges
	of_program i.edges $kind.symbols >i-own.edges
	within "$kind: instrumented" i-own.edges own.edges
	# BOLT's instrumentation counts everything except returns.
	objdump -d $kind | awk '/\t(repz )?ret/ { sub(":", "", $1); print $1 }' >returns
	grep -v -w -f returns own.edges >branches.edges
	same "$kind: instrumented" branches.edges i-own.edges

	# ---- merging by BOLT's own tool equals importing one file after the other
	mv i.fdata i100.fdata
	./$kind.i 2000 >/dev/null || fail "$kind: the instrumented program"
	$bolt/merge-fdata i100.fdata i.fdata >merged.fdata 2>bolt.txt || fail "$kind: merge-fdata"
	imports merged.db --binary=$kind merged.fdata
	edges merged.db $kind >merged.edges
	add i.db --binary=$kind --format=fdata i.fdata
	edges i.db $kind >i.edges
	same "$kind: merged" i.edges merged.edges

	# ---- optimised by these counts, with the jumps of stubs and all calls: other branches are taken, but they count
	# for the original
	"$BUILD/morph-optimize" --db i.db --exact-profile --lab=no-slots,no-inline -o $kind.opt $kind >opt.txt 2>&1 ||
		fail "$kind: morph-optimize: $(cat opt.txt)"
	grep -q ' [1-9][0-9]* inverted' opt.txt || fail "$kind: nothing inverted: $(cat opt.txt)"
	"$BUILD/tools/steps" ./$kind.opt 100 >opt-steps.txt 2>/dev/null || fail "$kind: steps"
	imports opt.db opt-steps.txt
	says out.txt 'ran straight through' "$kind: optimised"
	edges opt.db "$PWD/$kind.opt" >opt.edges
	same "$kind: optimised" steps.edges opt.edges
	imports opt.db --binary=$kind.opt i.fdata
	refuses "not a profile of" --binary=/bin/true i.fdata
done

if [ -x $bolt/llvm-bolt ]; then
	# ---- perf2bolt with branch stacks made from the steps, as not every processor has them
	"$BUILD/tools/steps" ./nopie 100 >steps.txt 2>/dev/null
	sed -n 's/.*branches: *//p' steps.txt | tr ' ' '\n' | awk -F/ '
		function own(a) { return a ~ /^0x40/ }
		NF {
			if (own($1) && own($2)) b[substr($1, 3) " " substr($2, 3)]++
			if (own($2) && own(last)) f[substr($2, 3) " " substr(last, 3)]++
			last = $1
		}
		END {
			for (k in b) print "B " k " " b[k] " 0"
			for (k in f) print "F " k " " f[k]
		}' >aggregated.txt
	$bolt/perf2bolt -pa -p aggregated.txt -o lbr.fdata nopie >bolt.txt 2>&1 ||
		fail "perf2bolt -pa: $(tail -1 bolt.txt)"
	imports lbr.db --binary=nopie lbr.fdata
	edges lbr.db nopie >lbr.edges
	imports steps.db steps.txt
	edges steps.db "$PWD/nopie" >steps.edges
	within "perf2bolt" lbr.edges steps.edges
	$bolt/perf2bolt -pa -p aggregated.txt -o profile.yaml -profile-format=yaml nopie \
		>bolt.txt 2>&1 || fail "perf2bolt, YAML: $(tail -1 bolt.txt)"
	refuses "YAML" --binary=nopie profile.yaml
	refuses "its file: give --binary" lbr.fdata
	head -c 500 lbr.fdata >cut.fdata
	refuses "cut.fdata:[0-9]*: " --binary=nopie cut.fdata
	refuses "names its files itself" --binary=nopie steps.txt

	# ---- perf2bolt without stacks: samples per function as perf reports, stripped or not
	if recorded 200 '/nopie)' perf.data ./nopie 3000000 --buildid-mmap -e cpu-clock:u -F 5000; then
		strip -o stripped nopie
		for prog in nopie stripped; do
			$bolt/perf2bolt -p perf.data -nl --ignore-build-id --allow-stripped -o nl.fdata \
				$prog >bolt.txt 2>&1 || fail "perf2bolt -nl: $(tail -1 bolt.txt)"
			# A stripped copy keeps the build-id, so it is the file that perf saw.
			imports nl.db --binary=$prog nl.fdata
			have=$("$BUILD/morph-stats" --db nl.db status --json | jq .samples.attributed)
			# Leave out PLT entries, which only bolt names.
			want=$(awk '$1 == 1 && $2 !~ /@PLT|^__BOLT_PSEUDO/ { n += $4 } END { print n + 0 }' nl.fdata)
			if [ "$want" -lt 50 ] || [ "$have" != "$want" ]; then
				fail "$prog: $have samples of $want in nl.fdata"
			fi
			# A function's cold part counts for the function.
			for f in walk choose step; do
				want=$(perf script -G -i perf.data -F ip,sym,dso 2>/dev/null |
					grep -c " $f\(\.cold\)\? (.*/nopie)")
				have=$("$BUILD/morph-stats" --db nl.db query --binary=nopie --by=function \
					--json 2>/dev/null |
					jq --arg f $f '[.rows[] | select(.function == $f) | .samples] | add')
				[ "$want" = "${have/null/0}" ] ||
					fail "$prog: $f has $have samples, perf says $want"
			done
		done
	else
		left_out="$left_out perf"
	fi
fi

finish
