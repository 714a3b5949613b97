#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone
# alone: it samples
# A program with polls reports its paths when it is polled, with threads, children and libraries.
# The reported paths are those it takes. Polled or not, it behaves like the original.
. "$(dirname "$0")/../lib.sh"
need gcc jq
export PATH="$BUILD:$PATH"
scratch polls
morphd run --source=perf --record probe -- true 2>err || {
	echo "skip: no sampling on this machine: $(head -n 1 err)"
	exit 77
}

cat >work.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
/* One turn of four goes by B, one of three by F. The blocks are too long to be written twice, and
 * somebody changes the registers in which numbers may be. */
__attribute__((noinline)) unsigned long walk(unsigned long n, unsigned long *v)
{
	unsigned long x = v[1], i = 0;
	__asm__ volatile("xor %%r11d, %%r11d\n\txor %%r10d, %%r10d" : : : "r10", "r11");
	do {
		i++;
		if (i & 3)
			__asm__ volatile(".rept 12\n\timul %0, %0\n\t.endr" : "+r"(x));
		else
			__asm__ volatile(".rept 12\n\tlea 5(%0), %0\n\t.endr" : "+r"(x));
		__asm__ volatile(".rept 12\n\trol $3, %0\n\t.endr" : "+r"(x));
		if (i % 3)
			__asm__ volatile(".rept 12\n\tlea 7(%0), %0\n\t.endr" : "+r"(x));
		else
			__asm__ volatile(".rept 12\n\tnot %0\n\t.endr" : "+r"(x));
		__asm__ volatile(".rept 12\n\tror $5, %0\n\t.endr" : "+r"(x));
		v[i & 7] = x;
	} while (i < n);
	return x;
}
#ifndef LIBRARY
static unsigned long v[4][64], n, sums[4];
static void *work(void *arg)
{
	long i = (long)arg;
	for (int k = 0; k < 64; k++)
		v[i][k] = k * 7919 + i;
	for (int k = 0; k < 10; k++)
		sums[i] ^= walk(n, v[i]);
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];
	int forks = argc > 2, status = 0;
	n = argc > 1 ? atol(argv[1]) : 1000;
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (long i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (forks && !fork()) {
		work((void *)1);
		printf("%lx\n", sums[1]);
		return 0;
	}
	if (forks)
		wait(&status);
	for (int i = 0; i < 4; i++)
		printf("%lx\n", sums[i]);
	return status != 0;
}
#endif
C

# polled NAME ENOUGH COMMAND...: poll COMMAND, again until there are ENOUGH answers, into NAME.db
polled() {
	local name=$1 enough=$2 nr=0
	shift 2
	for _ in {1..40}; do
		morphd run --source=perf --poll-rate=1000 --polls=polls --db="$name.db" --json -- "$@" >all.txt 2>err.txt ||
			fail "$name: status $?: $(cat err.txt)"
		sed '/^{"schema"/,$d' all.txt >"$name.says"
		sed -n '/^{"schema"/,$p' all.txt >"$name.json"
		[ "$(jq .paths.undecodable "$name.json")" = 0 ] || fail "$name: $(jq -c .paths "$name.json")"
		nr=$((nr + $(jq .paths.decoded "$name.json")))
		[ $nr -lt "$enough" ] || return
	done
	fail "$name: few answers, $nr: $(jq -c .paths "$name.json")"
}

# tells NAME ORIGINAL: of the paths through the first fork of walk(), one in
# four takes the rarer side
tells() {
	morph-stats query --by=path --binary "$2" --db "$1.db" --json >paths.json 2>err.txt || fail "$1: $(cat err.txt)"
	jq -r '.rows[] | select(.function == "walk") | "\(.samples) \(.path | join(" "))"' paths.json >rows
	python3 - rows <<'P' || fail "$1: $(head -n 8 rows)"
import collections, sys
rows = [(int(n), path) for n, *path in (line.split() for line in open(sys.argv[1]))]
# Blocks with two successors, over all paths.
after = collections.defaultdict(collections.Counter)
for n, path in rows:
    for a, b in zip(path, path[1:]):
        after[a][b] += n
shares = sorted(min(c.values()) / sum(c.values()) for c in after.values() if len(c) == 2)
print(sum(n for n, _ in rows), "paths, rarer sides", [round(s, 3) for s in shares])
close = lambda share: any(abs(s - share) < 0.03 for s in shares)
sys.exit(not (close(1 / 4) or close(1 / 3)) or sum(n for n, _ in rows) < 1000)
P
}

i=0
for flags in "-O2" "-O2 -fno-pie -no-pie" "-O1 -static" "-Os -Wl,--emit-relocs" "-O2 -s -fcf-protection"; do
	i=$((i + 1))
	p=work$i
	# shellcheck disable=SC2086
	gcc $flags -Wl,--build-id work.c -o $p -lpthread || exit 1
	rm -f polls
	command_ends 0 "$flags" morph-optimize instrument --kind=pep,poll --counts=polls --json $p -o $p.i
	[ "$(jq .paths.polls out.txt)" -gt 0 ] || fail "$flags: $(jq -c .paths out.txt)"
	./$p 20000 fork >want
	# Nobody polls: with the file, and where there can be no file.
	./$p.i 20000 fork >is && cmp -s want is || fail "$flags: behaves differently"
	rm -f polls && mkdir polls
	./$p.i 20000 fork >is && cmp -s want is || fail "$flags: without a file: behaves differently"
	rmdir polls
	# In a static file, other code may rely on registers that walk()
	# does not change, so walk() has no number.
	case $flags in
	*-static*) polled $p 50 ./$p.i 400000 fork ;;
	*) polled $p 2000 ./$p.i 400000 fork ;;
	esac
	./$p 400000 fork >want
	cmp -s want $p.says || fail "$flags: asked: behaves differently"
	case $flags in
	*-static* | *-s\ *) ;; # walk() has no path numbers, or no name
	*) tells $p $p ;;
	esac
done

# A library, in a program that does not know about polls.
gcc -O2 -shared -fPIC -DLIBRARY -Wl,--build-id -Wl,-soname,libwalk.so work.c -o libwalk.so || exit 1
cat >user.c <<'C'
#include <stdio.h>
unsigned long walk(unsigned long n, unsigned long *v);
int main(void)
{
	static unsigned long v[64] = {1, 2, 3};
	unsigned long x = 0;
	for (int i = 0; i < 40; i++)
		x ^= walk(400000, v);
	return !printf("%lx\n", x);
}
C
gcc -O2 user.c -L. -lwalk -Wl,-rpath,'$ORIGIN/lib' -o user && mkdir -p lib || exit 1
rm -f polls
command_ends 0 library morph-optimize instrument --kind=pep,poll --counts=polls --report=none libwalk.so -o lib/libwalk.so
polled library 2000 ./user
tells library libwalk.so
[ "$(cat library.says)" = "$(LD_LIBRARY_PATH=. ./user)" ] || fail "library: behaves differently"

# The program sleeps two thirds of the time. Paths that run after waking up
# must not get the answers.
cat >sleeper.c <<'C'
#include <stdio.h>
#include <unistd.h>
unsigned long walk(unsigned long n, unsigned long *v);
__attribute__((noinline)) unsigned long awake(unsigned long x, int odd)
{
	if (odd)
		__asm__ volatile(".rept 12\n\timul %0, %0\n\t.endr" : "+r"(x));
	else
		__asm__ volatile(".rept 12\n\tlea 5(%0), %0\n\t.endr" : "+r"(x));
	__asm__ volatile(".rept 12\n\trol $3, %0\n\t.endr" : "+r"(x));
	return x;
}
int main(void)
{
	static unsigned long v[64] = {1, 2, 3};
	unsigned long x = 0;
	for (int i = 0; i < 400; i++) {
		usleep(1000);
		x = awake(x, i & 1);
		x ^= walk(20000, v);
	}
	return !printf("%lx\n", x);
}
C
gcc -O2 -DLIBRARY -Wl,--build-id sleeper.c work.c -o sleeper || exit 1
rm -f polls
command_ends 0 sleeper morph-optimize instrument --kind=pep,poll --counts=polls --report=none sleeper -o sleeper.i
polled sleeper 20000 ./sleeper.i
tells sleeper sleeper
jq -e '[.rows[] | select(.function == "awake") | .samples] | add // 0 | . < 20' paths.json >/dev/null ||
	fail "sleeper: $(jq -c '.rows[] | select(.function == "awake") | [.samples, .path]' paths.json | head -n 3)"
[ "$(jq '[.rows[].samples] | add' paths.json)" -ge 20000 ] || fail "sleeper: few paths"

# gzip's match loop has no free register, so the code that records paths saves one elsewhere.
rm -f polls
gzip=$(readlink -f "$(command -v gzip)")
command_ends 0 gzip morph-optimize instrument --all --kind=pep,poll --counts=polls --json "$gzip" -o gzip.i
[ "$(jq '.paths.polls * 20 >= .paths.ends * 19' out.txt)" = true ] || fail "gzip: $(jq -c .paths out.txt)"
seq 300000 >numbers
gzip -9 -n -c numbers >want.gz
polled gzip 2000 sh -c './gzip.i -9 -n -c numbers >is.gz'
cmp -s want.gz is.gz || fail "gzip: asked: behaves differently"

# A file of another version is not written, and a message says so; also for programs without polls.
command_ends 0 "another" morph-optimize instrument --kind=pep,poll --counts=polls --report=none work1 -o work1.i
before=$(cksum <polls)
./work1.i 1000 >is && ./work1 1000 >want && cmp -s want is || fail "another's file: behaves differently"
[ "$(cksum <polls)" = "$before" ] || fail "another's file was written"
morphd run --source=perf --polls=polls --db=other.db -- ./work1.i 400000 >is 2>err.txt || fail "another's file: status $?"
says err.txt "polls: no program answered"
morphd run --source=perf --polls=nowhere --db=other.db -- ./work1 1000 >is 2>err.txt || fail "no polls: status $?"
says err.txt "nowhere: no program created this file"

# A hostile poll file with random contents: the program behaves the same.
rm -f polls
./work1.i 1 >is
python3 - polls <<'P' &
import os, random, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
while True:
    os.pwrite(fd, os.urandom(4), 4096)
    os.pwrite(fd, os.urandom(64), 8192 + random.randrange(16000))
    time.sleep(0.0005)
P
hostile=$!
./work1 300000 fork >want
./work1.i 300000 fork >is && cmp -s want is || fail "hostile: behaves differently"
kill $hostile
wait $hostile 2>/dev/null

command_ends 2 "usage" morph-optimize instrument --kind=pep,polls work1 -o x
command_ends 2 "usage" morphd run --polls=polls --poll-rate=0 -- true
exit $((nr_failed > 0))
