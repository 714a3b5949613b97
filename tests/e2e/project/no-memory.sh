#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 1800
# An error is no verdict. For many N, the Nth allocation of a program fails, then its Nth read. Each time the
# program ends as without that, with the same output; or it says what failed, with status 1, and leaves
# nothing behind. MORPH_LONG=1 tries every N up to 2,000.
. "$(dirname "$0")/../lib.sh"
need gcc g++
scratch no-memory
export PATH=$BUILD:$PATH TMPDIR=$dir/tmp LC_ALL=C
mkdir tmp
# A sanitizer has an allocator of its own.
! nm -D "$BUILD/morph-stats" 2>/dev/null | grep -q __asan_ || { echo "skip: a sanitizer allocates by itself"; exit 77; }
gcc -O1 -shared -fPIC "$root/tests/e2e/project/no_memory.c" -o no-memory.so &&
	gcc -O1 -D_GNU_SOURCE -o kill-at "$root/tests/tools/kill_at.c" || exit 1

# Landing pads, a jump table, code that replaces calls, debug information
cat >prog.cc <<'C'
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
struct Guard {
	long *sum;
	explicit Guard(long *s) : sum(s) {}
	~Guard() { ++*sum; }
};
__attribute__((noinline)) static long leaf(long a)
{
	return a * 3 + 1;
}
__attribute__((noinline)) static long stacked(long a)
{
	volatile long kept = a;
	return kept > 4 ? leaf(kept) : kept;
}
__attribute__((noinline)) static long choose(long n)
{
	switch (n % 9) {
	case 0: return n + 3;
	case 1: return leaf(n);
	case 2: return n ^ 5;
	case 3: return stacked(n) * 7;
	case 4: return n - leaf(n + 1);
	case 5: return n / 3;
	case 6: if (n % 1000 == 6) throw std::runtime_error("six"); return n;
	case 7: if (n % 1001 == 7) throw 7L; return n << 1;
	default: return ~n;
	}
}
__attribute__((noinline)) static long guarded(long n, long *sum)
{
	Guard guard(sum);
	try {
		return choose(n) + leaf(n);
	} catch (long v) {
		return v;
	} catch (const std::exception &e) {
		return static_cast<long>(std::strlen(e.what()));
	}
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? std::atol(argv[1]) : 100000, sum = 0;
	for (long i = 0; i < n; i++)
		sum += guarded(i, &sum);
	std::printf("%ld\n", sum);
	return 0;
}
C
g++ -g -O2 -c prog.cc -o prog.o && g++ -Wl,--emit-relocs,--build-id prog.o -o prog && morph-optimize instrument --all --report=none -o prog.i prog &&
	./prog.i >/dev/null && morph-stats -d s.db import --binary=prog.i prog.i.counts >/dev/null 2>&1 &&
	morph-optimize --all --report=none -o fast prog || exit 1
if [ "${MORPH_LONG:-0}" != 0 ]; then spread=2000; else spread=${SPREAD:-16}; fi
nr_runs=0
# In words of Morph, and of the C library
no_memory="out of memory|Cannot allocate memory"

names() {
	find . -not -name 's.db-*' -not -path './try.*' -not -path './new*' | sort
}

# check WHAT STATUS MESSAGE: the run that just ended; its output is ./new, if it writes one
check() {
	nr_runs=$((nr_runs + 1))
	if [ "$2" = "$want_status" ]; then
		cmp -s try.out want.out || fail "$1: another text: $(diff want.out try.out | head -n 4)"
		[ ! -e want ] || cmp -s new want || fail "$1: another output"
	else
		[ "$2" = 1 ] || fail "$1: status $2: $(cat try.err)"
		grep -qE "$3" try.err || fail "$1: no word of the reason: $(cat try.err)"
		[ -z "$(compgen -G "new*")" ] || fail "$1: an output in spite of: $(cat try.err)"
	fi
	[ "$(names)" = "$before" ] || fail "$1: left behind: $(diff <(echo "$before") <(names))"
	rm -f new new.order
}

# steps N [SPREAD]: some of the numbers from 1 to N
steps() {
	seq 1 $((($1 + ${2:-spread} - 1) / ${2:-spread})) "$1"
}

# tries [reads] COMMAND...: its standard output, without times, and ./new stay what they are. With `reads` each
# read fails, in the short form, too.
tries() {
	local n nr status=0 reads=$spread
	[ "$1" != reads ] || { reads=2000; shift; }
	rm -f want new new.order count
	NO_MEMORY_COUNT=count LD_PRELOAD=./no-memory.so "$@" >want.out 2>want.err || status=$?
	want_status=$status
	[ ! -e new ] || mv new want
	rm -f new.order
	nr=$(tail -n 1 count)
	rm -f count
	before=$(names)
	for n in $(steps "$nr"); do
		status=0
		NO_MEMORY_AT=$n LD_PRELOAD=./no-memory.so "$@" >try.out 2>try.err || status=$?
		check "$* (allocation $n)" $status "$no_memory"
	done
	can_trace || return
	nr=$(./kill-at -e 99999999 "$@" 2>&1 >/dev/null | sed -n 's/^kill-at: \([0-9]*\) system calls$/\1/p')
	rm -f new new.order
	for n in $(steps "$nr" "$reads"); do
		status=0
		./kill-at -e "$n" "$@" >try.out 2>try.err || status=$?
		# The loader of programs reads as well.
		[ $status = 127 ] && grep -q 'error while loading shared libraries' try.err && continue
		sed -i '/^kill-at: /d' try.err
		check "$* (read $n)" $status "Input/output error|I/O error"
	done
}

can_trace() {
	./kill-at -e 99999999 true 2>/dev/null
}
can_trace || left_out=" failing reads, since nothing may be traced here,"

while read -r command; do
	# shellcheck disable=SC2086
	tries $command
done <<'LIST'
morph-optimize --threads=1 --report=none --all -o new prog
morph-optimize --threads=4 --report=none --all -o new prog
morph-optimize --threads=1 --report=none --db=s.db -o new prog
morph-optimize --threads=1 --report=none --lab=stress-layout=3 --lab=stress-inline=3 -o new prog
morph-optimize instrument --threads=1 --report=none --all -o new prog
morph-optimize instrument --threads=1 --report=none --all --kind=audit -o new prog
morph-optimize instrument --threads=1 --report=none --all --kind=pep,poll -o new prog
morph-optimize instrument --threads=1 --report=none --all --kind=calls -o new prog
reads morph-optimize --threads=1 --report=none --db=s.db --program=prog -o new prog.o
morph-optimize verify --threads=1 --report=none prog fast
morph-stats -d s.db query --by=function
reads morph-stats -d s.db query --by=block --json
reads morph-stats -d s.db annotate --binary=prog choose
morph-stats -d s.db export --format=pprof -m prog
morph-stats -d s.db export --format=fdata -m prog
morph-stats -d s.db export --format=llvm-sample -m prog
morph-stats -d s.db flame --json
morph-stats -d s.db heat --json prog
morph-stats diff --by=function s.db s.db
LIST

# ends_as WHAT WANT GOT: an allocation failed; the program says the same, or why it does not
ends_as() {
	nr_runs=$((nr_runs + 1))
	[ "$2" = "$3" ] || { [ "${3%% *}" = 1 ] && grep -qE "$no_memory" try.err; } || fail "$1: ${3%% *}, not ${2%% *}, or other rows: $(cat try.err)"
}

# import, of which all samples or none are stored, and the same of a recording. The rows are read with all
# memory.
imported() {
	local status=0
	rm -f t.db*
	"$@" >try.out 2>try.err || status=$?
	echo "$status $(LD_PRELOAD='' morph-stats -d t.db query --by=function --json 2>&1 | grep -v _s\")"
}
commands=("morph-stats -d t.db import --binary=prog.i prog.i.counts")
if morphd run --no-kernel --rate=4000 --db=r.db --record=recording -- ./prog 3000000 >/dev/null 2>err.txt; then
	commands+=("morphd --input=recording --db=t.db")
else
	echo "skip: replay: $(head -n 1 err.txt)"
fi
for command in "${commands[@]}"; do
	want=$(NO_MEMORY_COUNT=count NO_MEMORY_PROGRAM=${command%% *} \
		LD_PRELOAD=./no-memory.so imported $command)
	nr=$(head -n 1 count)
	rm -f count
	for n in $(steps "$nr"); do
		ends_as "$command (allocation $n)" "$want" "$(NO_MEMORY_AT=$n NO_MEMORY_PROGRAM=${command%% *} \
			LD_PRELOAD=./no-memory.so imported $command)"
	done
done

# An audit of a file and itself: a run that could not be made is no difference.
for n in $(seq 1 $((spread > 99 ? 1 : 6)) 60); do
	status=0
	NO_MEMORY_AT=$n NO_MEMORY_PROGRAM=morph-audit LD_PRELOAD=./no-memory.so \
		morph-audit --pairs=8:8 prog prog -- 10 >try.out 2>try.err || status=$?
	case $status in
	0 | 5) ;;
	*) ends_as "morph-audit (allocation $n)" 5 "$status" ;;
	esac
done
echo "$nr_runs runs"
finish
