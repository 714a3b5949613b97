#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# instrument --kind=edges,threads: each thread counts in a set of its own, and the sum of all sets is
# exact. Tested with many threads, new threads on old stacks, several processes, children,
# coroutines, signals, static programs and libraries. Programs that use %gs themselves are refused,
# by the editor or at start.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc python3 jq
export PATH="$BUILD:$PATH"
scratch thread-counters

cat >work.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
static long n;
static pthread_barrier_t all;
static volatile long sink;
__attribute__((noinline, noclone)) void tick(long i)
{
	if (i & 1)
		sink = i;
}
static void *run(void *p)
{
	for (long i = 0; i < n; i++)
		tick(i);
	return p;
}
static void *meet(void *p)
{
	pthread_barrier_wait(&all);
	return run(p);
}
static void at_once(int nr, void *(*start)(void *))
{
	pthread_t t[256];

	pthread_barrier_init(&all, NULL, (unsigned)nr);
	for (int i = 0; i < nr; i++)
		pthread_create(&t[i], NULL, start, NULL);
	for (int i = 0; i < nr; i++)
		pthread_join(t[i], NULL);
}
static void in_turn(int nr)
{
	pthread_t t;

	for (int i = 0; i < nr; i++) {
		pthread_create(&t, NULL, run, NULL);
		pthread_join(t, NULL);
	}
}
static void *(*volatile runs)(void *) = run;
static void children(int nr)
{
	for (int i = 0; i < nr; i++)
		if (!fork()) {
			runs(NULL);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}
static ucontext_t back, there[3];
static char stacks[3][65536];
static void coroutine(int k)
{
	for (long i = 0; i < n; i++) {
		tick(i);
		swapcontext(&there[k], &back);
	}
	for (;;)
		swapcontext(&there[k], &back);
}
static void *coroutines(void *p)
{
	for (int k = 0; k < 3; k++) {
		getcontext(&there[k]);
		there[k].uc_stack.ss_sp = stacks[k];
		there[k].uc_stack.ss_size = sizeof(stacks[k]);
		makecontext(&there[k], (void (*)(void))coroutine, 1, k);
	}
	for (long i = 0; i <= n; i++)
		for (int k = 0; k < 3; k++)
			swapcontext(&back, &there[k]);
	return p;
}
static void handler(int sig)
{
	tick(sig);
}
static void *signalled(void *p)
{
	stack_t s = {.ss_sp = stacks[0], .ss_size = sizeof(stacks[0])};
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

	sigaltstack(&s, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	for (long i = 0; i < n; i++)
		pthread_kill(pthread_self(), SIGUSR1);
	return p;
}
/* Far down the stack and up again. */
static __attribute__((noinline)) long deep(int depth)
{
	volatile char frame[4096];

	frame[depth % 4096] = 1;
	runs(NULL);
	return depth ? deep(depth - 1) + frame[depth % 4096] : 0;
}
static void *recurse(void *p)
{
	sink = deep(99);
	return p;
}
int main(int argc, char **argv)
{
	int nr = atoi(argv[2]);

	n = argc > 3 ? atol(argv[3]) : 1000;
	if (!strcmp(argv[1], "at-once"))
		at_once(nr, meet);
	else if (!strcmp(argv[1], "in-turn"))
		in_turn(nr);
	else if (!strcmp(argv[1], "children"))
		in_turn(1), children(nr);
	else if (!strcmp(argv[1], "coroutines"))
		in_turn(nr), coroutines(NULL);
	else if (!strcmp(argv[1], "signals"))
		at_once(1, signalled);
	else if (!strcmp(argv[1], "recurse"))
		at_once(nr, recurse);
	printf("%s %ld\n", argv[1], sink);
	return 0;
}
C

# entered PROGRAM FILE...: set $entered to the number of calls of tick() in these files of counts
entered() {
	local start
	rm -f x.db*
	morph-stats --db x.db import --json --binary="$1.i" "${@:2}" >import.json 2>err.txt || fail "import: $(cat err.txt)"
	# A function that is left in the middle, by a coroutine or a child,
	# lacks the count at its end.
	[ -n "${leaves:-}" ] || jq -e '.counters.missed == 0 and .counters.nr_unequal == 0' import.json >/dev/null ||
		fail "$1: counts do not fit together: $(jq -c .counters import.json)"
	start=$(nm "$1" | sed -n 's/^0*\([0-9a-f]*\) [tT] tick$/\1/p')
	entered=$(morph-stats --db x.db export --format=json 2>err.txt | jq --arg a "0x$start" \
		'[.modules[].addresses[] | select(.[0] == $a) | .[1]] | add')
}

# counts PROGRAM WANT ARGS: the original's output, and WANT calls of tick()
counts() {
	local program=$1 want=$2
	shift 2
	rm -f "$program.i.counts"
	"./$program" "$@" >want.txt
	"./$program.i" "$@" >out.txt 2>err.txt || fail "$program $*: status $?: $(cat err.txt)"
	cmp -s want.txt out.txt || fail "$program $*: printed $(cat out.txt)"
	entered "$program" "$program.i.counts"
	[ "$entered" = "$want" ] || fail "$program $*: entered $entered times, not $want"
}

# taken FILE: how many sets of counters have had an owner
taken() {
	od -An -v -td8 -w8 -j 2048 -N 1024 "$1" | awk '$1 { nr++ } END { print nr + 0 }'
}

for kind in "-pie -fPIE" "-no-pie -fno-pie" "-static" "-static-pie -fPIE"; do
	# shellcheck disable=SC2086
	gcc -O2 $kind -Wl,--build-id work.c -o work -lpthread 2>err.txt || { fail "$kind: $(cat err.txt)"; continue; }
	command_ends 0 "$kind" morph-optimize instrument --kind=edges,threads --json work -o work.i
	json "$kind" '.counting.threads and (.counting.atomic | not)'
	counts work 2000 at-once 2
	counts work 100000 at-once 100
	counts work 300000 in-turn 300
	[ "$(taken work.i.counts)" -le 4 ] || fail "$kind: $(taken work.i.counts) sets for threads in turn"
	leaves=1 counts work 5000 coroutines 2
	counts work 1000 signals 1
	counts work 200000 recurse 2
	# More threads than sets: some threads share a set, and may lose counts.
	"./work.i" at-once 200 >out.txt || fail "$kind: 200 threads: status $?"
done

gcc -O2 -Wl,--build-id work.c -o work -lpthread
command_ends 0 "default" morph-optimize instrument --kind=edges --report=text work -o work.i
says out.txt "for each thread"

# Children that run at the same time each take a set at their first function whose address is taken.
rm -f work.i.counts
./work.i children 8 20000 >out.txt
leaves=1 entered work work.i.counts
[ "$entered" -le 180000 ] && [ "$entered" -ge 179900 ] || fail "children: entered $entered times, not 180,000"

# Processes that count into one file, at the same time and one after the other.
rm -f work.i.counts
for i in 1 2 3 4; do ./work.i at-once 3 20000 >"$i.txt" & done
wait
./work.i at-once 3 20000 >out.txt
entered work work.i.counts
[ "$entered" = 300000 ] || fail "processes: entered $entered times, not 300,000"
# A copy without holes gives the same counts.
cp --sparse=never work.i.counts copy
entered work copy
[ "$entered" = 300000 ] || fail "a copy: entered $entered times"

# With a limit on its size, the file has fewer sets; later processes use these.
rm -f work.i.counts
(ulimit -f 40; ./work.i in-turn 10 >out.txt) || fail "small file: status $?"
[ "$(stat -c %s work.i.counts)" -le 40960 ] || fail "small file: $(stat -c %s work.i.counts) bytes"
./work.i in-turn 10 >out.txt
entered work work.i.counts
[ "$entered" = 20000 ] || fail "small file: entered $entered times"
# Without room for the first set nothing is counted, and the program runs.
rm -f work.i.counts
(ulimit -f 1; ./work.i at-once 10 >out.txt) || fail "no room: status $?"
[ ! -s work.i.counts ] || fail "no room: $(stat -c %s work.i.counts) bytes"

# A library, linked with the program, and loaded while threads run.
cat >lib.c <<'C'
static volatile long sink;
__attribute__((noinline, noclone)) static void tick(long i) { if (i & 1) sink = i; }
void *lib_run(void *n) { for (long i = 0; i < (long)n; i++) tick(i); return n; }
C
cat >user.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static void *(*run)(void *);
static pthread_barrier_t opened;
static void *start(void *n) { pthread_barrier_wait(&opened); return run(n); }
int main(int argc, char **argv)
{
	pthread_t t[3];
	pthread_barrier_init(&opened, NULL, 4);
	for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, start, (void *)50000);
	void *lib = dlopen(argv[1], RTLD_NOW);
	if (!lib || !(run = (void *(*)(void *))dlsym(lib, "lib_run"))) return 9;
	pthread_barrier_wait(&opened);
	for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
	return argc != 2;
}
C
gcc -O2 -fPIC -shared -Wl,--build-id lib.c -o lib.so && gcc -O2 -Wl,--build-id user.c -o user -lpthread || exit 1
command_ends 0 "library" morph-optimize instrument --kind=edges,threads --report=none lib.so -o lib.so.i
command_ends 0 "library, opened late" ./user ./lib.so.i
entered lib.so lib.so.i.counts
[ "$entered" = 150000 ] || fail "library: entered $entered times"
command_ends 0 "library by default" morph-optimize instrument --kind=edges --json lib.so -o lib.so.j
json "library by default" '.counting.threads | not'
# Only one file of a process can use such counters.
command_ends 0 "user" morph-optimize instrument --kind=edges,threads --report=none user -o user.i
command_ends 127 "two files" ./user.i ./lib.so.i
says err.txt "edges,atomic"

# %gs is used by the file's own code, set before the program starts, or set while it runs.
cat >gs.c <<'C'
#include <pthread.h>
#include <asm/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static long word = 5;
static void *run(void *p) { syscall(SYS_arch_prctl, ARCH_SET_GS, &word); return p; }
int main(void) { pthread_t t; pthread_create(&t, NULL, run, NULL); return pthread_join(t, NULL); }
C
cat >gs2.c <<'C'
#include <pthread.h>
static void *run(void *p) { long v = 0; if (p) __asm__ volatile("movq %%gs:0, %0" : "=r"(v)); return (void *)v; }
int main(void) { pthread_t t; pthread_create(&t, NULL, run, NULL); return pthread_join(t, NULL); }
C
for f in gs gs2; do
	gcc -O2 -Wl,--build-id $f.c -o $f -lpthread || exit 1
	command_ends 4 "$f" morph-optimize instrument --kind=edges,threads --report=none $f -o $f.i
	says err.txt "%gs"
	command_ends 0 "$f by default" morph-optimize instrument --kind=edges --json $f -o $f.i
	json "$f by default" '.counting.atomic'
	command_ends 0 "$f runs" ./$f.i
done
cat >preload.c <<'C'
#include <asm/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static char memory[1 << 20];
__attribute__((constructor)) static void begin(void) { syscall(SYS_arch_prctl, ARCH_SET_GS, memory); }
C
gcc -O2 -fPIC -shared preload.c -o preload.so || exit 1
command_ends 127 "%gs has an owner" env LD_PRELOAD=./preload.so ./work.i at-once 2
says err.txt "edges,atomic"

# train uses the given kind of counters.
command_ends 2 "train, pep" morph-optimize train --counters=pep -o trained -- ./work at-once 2
for how in plain atomic threads; do
	command_ends 0 "train, $how" morph-optimize train --no-audit --counters=$how -o trained -- ./work at-once 2 200000
	says out.txt "counted in"
	./trained in-turn 2 >out.txt || fail "train, $how: status $?"
done
finish
