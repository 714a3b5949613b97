#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# A program with a clock of calls behaves like the original, with threads, children and libraries, with a reader
# or without, and whatever its file holds. The sampled calls are those that it makes, each once in so many.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc jq nm python3 sqlite3
export PATH="$BUILD:$PATH"
scratch calls
morphd run --source=perf --record probe -- true 2>err || {
	echo "skip: no sampling on this machine: $(head -n 1 err)"
	exit 77
}

cat >work.c <<'C'
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
unsigned long library(unsigned long n, unsigned long (*back)(unsigned long));
static volatile unsigned long sink;
NOINLINE unsigned long leaf(unsigned long x) { return x * 3 + sink; }
NOINLINE unsigned long rare(unsigned long x) { return x * 5 + sink; }
NOINLINE unsigned long tail(unsigned long x) { return leaf(x + 1); }
static unsigned long (*volatile pointer)(unsigned long) = leaf;
typedef unsigned long visitor(unsigned long);
NOINLINE unsigned long visit(unsigned long x) { return x * 7 + sink; }
/* Ends with a jump to what it is passed. */
NOINLINE unsigned long traverse(unsigned long x, visitor *f) { return f(x + 1); }
static unsigned long (*volatile traversal)(unsigned long, visitor *) = traverse;
static jmp_buf out;
NOINLINE void leave(void) { longjmp(out, 1); }
/*
 * For each turn: 4 calls of leaf() from here, 1 by a pointer, 1 from tail(), 1 of tail(), 1 of traverse() by a
 * pointer, 1 of visit() from there; a rare() in 8.
 */
NOINLINE unsigned long turns(unsigned long n)
{
	unsigned long x = n;
	for (unsigned long i = 0; i < n; i++) {
		x += leaf(i) + leaf(x) + leaf(i + x) + leaf(x * 2);
		x += pointer(x);
		x += tail(x);
		x += traversal(x, visit);
		if (i % 8 == 0)
			x += rare(x);
	}
	return x;
}
static void *work(void *n)
{
	return (void *)turns((unsigned long)n);
}
int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, x = 0;
	pthread_t threads[3];
	void *result;
	int status = 0;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, (void *)n);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &result);
		x ^= (unsigned long)result;
	}
	if (!setjmp(out))
		leave();
	if (argc > 2 && !fork()) {
		printf("%lx\n", turns(n));
		return 0;
	}
	if (argc > 2)
		wait(&status);
#ifdef WITH_LIBRARY
	x += library(n, rare);
#endif
	printf("%lx\n", x + turns(n));
	return status != 0;
}
C
cat >library.c <<'C'
static volatile unsigned long sink;
__attribute__((noinline)) static unsigned long inner(unsigned long x) { return x + sink; }
unsigned long library(unsigned long n, unsigned long (*back)(unsigned long))
{
	unsigned long x = 0;
	for (unsigned long i = 0; i < n; i++)
		x += inner(i) + back(x);
	return x;
}
C

i=0
for flags in "-O2" "-O2 -fno-pie -no-pie" "-O1 -static" "-Os -Wl,--emit-relocs" "-O2 -s -fcf-protection"; do
	i=$((i + 1))
	p=work$i
	# shellcheck disable=SC2086
	gcc $flags -Wl,--build-id work.c -o $p -lpthread || exit 1
	rm -f calls
	command_ends 0 "$flags" morph-optimize instrument --all --kind=calls --counts=calls --json $p -o $p.i
	[ "$(jq .calls.functions out.txt)" -gt 5 ] || fail "$flags: $(jq -c .calls out.txt)"
	command_ends 0 "verify $flags" morph-optimize verify $p $p.i
	./$p 20000 fork >want
	# Nobody reads: with the file, and where there can be no file.
	./$p.i 20000 fork >is && cmp -s want is || fail "$flags: behaves differently"
	rm -f calls && mkdir calls
	./$p.i 20000 fork >is && cmp -s want is || fail "$flags: without a file: behaves differently"
	rmdir calls
	command_ends 0 "run $flags" morphd run --source=perf --calls=calls --call-period=400 --db=$p.db -- ./$p.i 400000 fork
	./$p 400000 fork >want
	grep -v '^morphd' out.txt | cmp -s want - || fail "$flags: read: behaves differently"
	ends 0 "check $flags" status --check --db=$p.db
done

# ---- how often: 5 times 400,000 turns, each of 9 calls and an eighth. The file has room for all samples. Threads that
# count at once lose counts, so there are fewer samples, but of each kind of call the same share.
ends 0 "calls" calls --db=work1.db --binary work1 --json -p 0
json "the clock" '.clock == "calls" and .sampled_calls > 10000 and .sampled_calls < 52000 and
	.clocked_calls == 400 * .sampled_calls'
cp out.txt calls.json
nm work1 | sed -n 's/^0*\([0-9a-f]*\) . \(.*\)/\2 0x\1/p' >numbers
# number CALLER CALLEE KIND: sampled calls of these edges
number() {
	jq --arg a "$(awk -v n="$1" '$1 == n { print $2 }' numbers)" --arg b "$(awk -v n="$2" '$1 == n { print $2 }' numbers)" \
		--arg kind "$3" '[.rows[] | select(.caller != null and .caller.address == $a and .callee.address == $b and
		.kind == $kind) | .called] | add // 0' calls.json
}
# near NAME IS TRUE: five standard deviations
near() {
	awk -v is="$2" -v true="$3" 'BEGIN { d = is - true; exit !(d * d < 25 * true) }' || fail "$1: $2 sampled calls, not about $3"
}
leaf=$(number turns leaf direct) pointer=$(number turns leaf indirect) tail=$(number turns tail direct)
tail_leaf=$(number tail leaf tail) rare=$(number turns rare direct)
traverse=$(number turns traverse indirect) visit=$(number traverse visit 'indirect tail')
turns=$(((leaf + pointer + tail + tail_leaf + rare + traverse + visit) * 8 / 73))
near "turns to leaf" "$leaf" $((4 * turns))
near "by a pointer" "$pointer" $turns
near "turns to tail" "$tail" $turns
near "tail to leaf" "$tail_leaf" $turns
near "turns to traverse" "$traverse" $turns
near "traverse to visit" "$visit" $turns
[ "$(number turns visit indirect)" = 0 ] || fail "turns() calls visit() itself"
near "turns to rare" "$rare" $((turns / 8))

# ---- a program and a library in one file, and calls between them
gcc -O2 -shared -fPIC -Wl,--build-id -Wl,-soname,liblibrary.so library.c -o liblibrary.so &&
	gcc -O2 -DWITH_LIBRARY -Wl,--build-id work.c -o both -L. -llibrary -lpthread -Wl,-rpath,'$ORIGIN/lib:$ORIGIN' || exit 1
mkdir -p lib
rm -f calls
command_ends 0 both morph-optimize instrument --all --kind=calls --counts=calls --report=none both -o both.i
command_ends 0 library morph-optimize instrument --all --kind=calls --counts=calls --report=none liblibrary.so -o lib/liblibrary.so
command_ends 0 "run the original" morphd run --source=perf --db=both.db -- env LD_LIBRARY_PATH=. ./both 400000
command_ends 0 "run both" morphd run --source=perf --calls=calls --call-period=400 --db=both.db -- ./both.i 400000
LD_LIBRARY_PATH=. ./both 400000 >want
grep -v '^morphd' out.txt | cmp -s want - || fail "both: behaves differently"
ends 0 "calls between modules" calls --db=both.db --json -p 0
cp out.txt calls.json
between() {
	jq --arg from "$1" --arg to "$2" '[.rows[] | select(.caller != null and (.caller.module | test($from)) and
		(.callee.module | test($to))) | .called] | add // 0' calls.json
}
near "inside of the library" "$(between liblibrary liblibrary)" 1000
near "from the library back" "$(between liblibrary '/both')" 1000

# ---- a merged database has the calls of both
cp work1.db merged.db
ends 0 merge merge merged.db both.db
ends 0 "check merged" status --check --db=merged.db
[ "$(sqlite3 merged.db 'SELECT sum(nr_samples) FROM call')" = "$(($(sqlite3 work1.db 'SELECT sum(nr_samples) FROM call') + \
	$(sqlite3 both.db 'SELECT sum(nr_samples) FROM call')))" ] || fail "merge: calls were lost"

# ---- hostile files: the program behaves the same, and morphd says what it cannot use
rm -f calls
./work1.i 1 >is
python3 - calls <<'P' &
import os, random, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
while True:
    os.pwrite(fd, os.urandom(24), 24)
    os.pwrite(fd, os.urandom(64), 4096 + random.randrange(2000000))
    time.sleep(0.0005)
P
hostile=$!
./work1 300000 fork >want
./work1.i 300000 fork >is && cmp -s want is || fail "hostile: behaves differently"
command_ends 0 "hostile" morphd run --source=perf --calls=calls --db=hostile.db -- ./work1.i 100000
kill $hostile
wait $hostile 2>/dev/null
ends 0 "check hostile" status --check --db=hostile.db
head -c 5000 /dev/urandom >calls
command_ends 1 "not a file of calls" morphd run --source=perf --calls=calls --db=other.db -- ./work1.i 1000
says err.txt "not a file of calls"
./work1 1000 >want
./work1.i 1000 >is && cmp -s want is || fail "another file: behaves differently"
rm -f calls
command_ends 0 "no clock" morphd run --source=perf --calls=calls --db=other.db -- ./work1 1000
says err.txt "no program sampled calls"

command_ends 2 "usage" morph-optimize instrument --kind=call work1 -o x
command_ends 2 "usage" morphd run --calls=calls --call-period=0 -- true
command_ends 2 "usage" morphd run --calls=calls --pid=1
finish
