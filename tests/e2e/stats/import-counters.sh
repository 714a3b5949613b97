#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The counts of an instrumented program equal callgrind's counts of the original, for each
# instruction and branch. Runs and files add up, threads lose no counts, and the loss by longjmp is
# reported. Then the original is laid out by the counts.
. "$(dirname "$0")/../lib.sh"
scratch counters
cc=${CC:-gcc}
need "${cc%% *}" valgrind jq python3 readelf

cat >a.c <<'C'
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define NOT_INLINED __attribute__((noinline, noclone))
static jmp_buf back;
static volatile long sink;
static NOT_INLINED long step(long x)
{
	if (x % 16 == 3)
		return x * 7 + 1;
	return x % 8 == 5 ? x ^ 0x55 : x + 3;
}
static NOT_INLINED long walk(long n)
{
	long s = 1;

	for (long i = 0; i < n; i++) {
		if (i % 32)
			s += step(i);
		else if ((s ^= i) == -12345)
			abort();
	}
	return s;
}
static NOT_INLINED long other(long x)
{
	return x > 5 ? step(x - 3) : x + 2;
}
static NOT_INLINED long choose(int k, long x)
{
	switch (k) {
	case 0: return x + 1;
	case 1: return x * 3;
	case 2: return x ^ 7;
	case 3: return x - 9;
	case 4: return x << 1;
	case 5: return other(x);
	case 6: return walk(x & 3);
	default: return x;
	}
}
static NOT_INLINED long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static NOT_INLINED void deep(int n)
{
	sink++;
	if (n % 4 == 0)
		longjmp(back, 1);
	sink += n;
}
static NOT_INLINED void shallow(int n)
{
	deep(n);
	if (n % 3)
		sink += 2;
}
static NOT_INLINED void jumps(int n)
{
	volatile int i = 0;

	while (i++ < n)
		if (!setjmp(back))
			shallow(i);
}
static NOT_INLINED void tick(long i)
{
	if (i % 2)
		sink = i;
}
static void *work(void *n)
{
	for (long i = 0; i < (long)n; i++)
		tick(i);
	return NULL;
}
static NOT_INLINED void threads(long n)
{
	pthread_t all[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&all[i], NULL, work, (void *)n);
	for (int i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
}
int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 2000, r = 0;

	if (!strcmp(what, "flow")) {
		r = walk(n) + fib(11);
		for (long i = 0; i < n; i++)
			r = choose(i % 10, r);
	} else if (!strcmp(what, "jumps")) {
		jumps(n);
	} else if (!strcmp(what, "threads")) {
		threads(n);
	} else if (!strcmp(what, "wait")) {
		r = walk(n);
		printf("ready\n");
		fflush(stdout);
		getchar();
	}
	printf("%ld\n", r);
	return 0;
}
C

# stats DB ARGS: run morph-stats; output in out.txt
stats() {
	local db=$1
	shift
	"$BUILD/morph-stats" --db "$db" "$@" >out.txt 2>err.txt || fail "$*: $(cat err.txt)"
}

# imports DB ARGS: import into a new database, which must pass the check
imports() {
	rm -f "$1" "$1"-*
	"$BUILD/morph-stats" --db "$1" import --json "${@:2}" >import.json 2>err.txt ||
		fail "import ${*:2}: $(cat err.txt)"
	stats "$1" status --check
}

# is FILTER WHAT: FILTER holds for the last import's JSON
is() {
	jq -e "$1" import.json >/dev/null || fail "$2: not $1: $(jq -c .counters import.json)"
}

# insns DB BINARY: "FUNCTION OFFSET COUNT"
insns() {
	stats "$1" export --format=fdata --branches=none --binary="$2"
	awk 'NF == 4 { print $2, $3, $4 }' out.txt | sort
}

# transfers DB PATH FILE: "FROM TO COUNT", without calls of FILE's linkage
# table, which callgrind does not list
transfers() {
	"$BUILD/tools/edges" "$1" "$2" | cut -d' ' -f1-3 | python3 -c '
import re, subprocess, sys
text = subprocess.run(["readelf", "-SW", sys.argv[1]], capture_output=True, text=True).stdout
stubs = [(int(a, 16), int(n, 16)) for a, n in re.findall(r"\.plt\S*\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", text)]
for line in sys.stdin:
    to = int(line.split()[1], 16)
    if not any(a <= to < a + n for a, n in stubs):
        print(line, end="")
' "$3" | sort
}

# instrument ARGS
instrument() {
	command_ends 0 "instrument $*" "$BUILD/morph-optimize" instrument --kind="$1" "${@:2}"
}

# at_least NR FILE WHAT: FILE has at least NR lines
at_least() {
	[ "$(wc -l <"$2")" -ge "$1" ] || fail "$3: $(wc -l <"$2") lines"
}

for kind in pie nopie stock; do
	case $kind in
	pie) flags="-O2 -pie -fPIE -Wl,--emit-relocs" ;;
	nopie) flags="-O2 -no-pie -fno-pie -Wl,--emit-relocs" ;;
	stock) flags="-O1 -pie -fPIE -s" ;;
	esac
	mkdir $kind && cd $kind || exit 1
	# shellcheck disable=SC2086
	$cc $flags -o prog ../a.c -lpthread || { fail "$kind: cannot be built"; cd ..; continue; }
	instrument edges --counts="$PWD/counts" prog -o counting
	want=$(./prog flow)
	got=$(exec -a ./prog ./counting flow)
	[ "$got" = "$want" ] || fail "$kind: printed $got, not $want"
	imports x.db --binary=counting counts
	is '.counters.nr_ran > 5 and .counters.nr_unequal == 0 and .counters.missed == 0 and
		.counters.spare > 0' "$kind: flow"
	# --skip-plt=no: count stubs of the linkage table as code of their own, not the caller's.
	# LD_BIND_NOW: no call goes to ld.so.
	LD_BIND_NOW=1 valgrind -q --tool=callgrind --dump-instr=yes --collect-jumps=yes --skip-plt=no \
		--callgrind-out-file=cg.out ./prog flow >/dev/null 2>err.txt || fail "$kind: valgrind"
	imports cg.db cg.out
	insns x.db prog >x.insns
	insns cg.db prog >all.insns
	# Keep the functions that have counters.
	awk 'NR == FNR { has[$1]; next } $1 in has' x.insns all.insns >cg.insns
	at_least 120 x.insns "$kind: instructions"
	cmp -s x.insns cg.insns || fail "$kind: $(diff x.insns cg.insns | head -5)"
	transfers x.db counting prog >x.edges
	transfers cg.db "$PWD/prog" prog >cg.edges
	at_least 20 x.edges "$kind: transfers"
	comm -23 x.edges cg.edges >more.txt
	[ ! -s more.txt ] || fail "$kind: not in callgrind's: $(head -5 more.txt)"

	# Two runs into one file, and a copy of the file: four times the counts.
	./counting flow >/dev/null
	cp counts copy
	imports two.db --binary=counting counts copy
	insns two.db prog >two.insns
	awk '{ print $1, $2, $3 * 4 }' x.insns >four.insns
	# Compare the instructions that both have: main() may run differently
	# under another name or path.
	join -j 1 <(awk '{ print $1 ":" $2, $3 }' two.insns) <(awk '{ print $1 ":" $2, $3 }' four.insns) |
		awk '$2 != $3' >differ.txt
	[ ! -s differ.txt ] || fail "$kind: four times: $(head -5 differ.txt)"

	# A file for each process, imported while the process runs.
	instrument edges --counts="$PWD/of.%p" prog -o each
	mkfifo hold
	./each wait 1000 <hold >ready &
	exec 9>hold
	until grep -q ready ready; do sleep 0.05; done
	imports live.db --binary=each of.$!
	is '.counters.nr_ran > 1 and .attributed > 1000' "$kind: running"
	echo >&9
	exec 9>&-
	wait

	# Every fourth call of deep() leaves shallow() by a jump in its middle: 25 of 100.
	rm counts
	./counting jumps 100 >/dev/null
	imports jumps.db --binary=counting counts
	is '.counters.missed == 25 and .counters.nr_unequal == 1' "$kind: longjmp"
	stats none.db import --binary=counting counts
	says out.txt "at spare counters missed" "$kind: longjmp"

	# Four threads at the same time.
	rm counts
	instrument edges,atomic --counts="$PWD/counts" prog -o atomic
	./atomic threads 50000 >/dev/null
	imports threads.db --binary=atomic counts
	is '.counters.missed == 0 and .counters.nr_unequal == 0' "$kind: threads"
	insns threads.db prog | awk '$3 == 200000' >tick.txt
	at_least 1 tick.txt "$kind: a function that four threads call 50,000 times"

	# Counts of one program are refused for another.
	$cc -O0 -o prog0 ../a.c -lpthread && instrument edges prog0 -o another
	command_ends 1 "$kind: of another" "$BUILD/morph-stats" --db none.db import --binary=another counts
	says err.txt "another instrumented file" "$kind"

	command_ends 0 "$kind: lay out" "$BUILD/morph-optimize" --db x.db prog -o fast
	command_ends 0 "$kind: told" "$BUILD/morph-optimize" --db x.db --exact-profile prog -o told
	cmp fast told || fail "$kind: the store does not know what was counted"
	[ "$(./fast flow)" = "$want" ] || fail "$kind: laid out by counts it prints something else"
	cd ..
done

# If no function with counters ran, import says so and stores no samples.
cp "$root/tests/data/uncalled.c" . && gcc -O2 -Wl,--emit-relocs -o uncalled uncalled.c || exit 1
command_ends 0 "uncalled: --only" "$BUILD/morph-optimize" instrument --kind=edges --only=f -o uncalled.counting uncalled
./uncalled.counting
command_ends 1 "uncalled: import" "$BUILD/morph-stats" --db none.db import --binary=uncalled.counting uncalled.counting.counts
says err.txt 'none of the 1 functions with counters ran' "uncalled: import"
[ ! -e none.db ] || fail "uncalled: a database was made"
finish
