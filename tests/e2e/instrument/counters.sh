#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: an emulator counts each run
# A program with counters of its edges behaves like the original. Its counts equal an emulator's counts
# of the original, for each instruction and branch. Also with threads, children and libraries, and
# however the program ends.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc g++ qemu-x86_64 python3 objcopy strip
export PATH="$BUILD:$PATH"
scratch counters

cat >work.c <<'C'
#include <stdio.h>
#include <stdlib.h>
static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }
__attribute__((noinline)) static double mean(const int *v, int n)
{
	double s = 0;
	for (int i = 0; i < n; i++)
		if (v[i] > 100 && v[i] != 333)
			s += v[i] * 0.5;
	return n ? s / n : 0;
}
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 500, v[1000], seed = 7;
	unsigned long h = 0;
	for (int i = 0; i < 1000; i++)
		v[i] = (seed = seed * 1103515245 + 12345) >> 16 & 1023;
	qsort(v, 1000, sizeof(*v), compare);
	for (int i = 0; i < n; i++)
		switch (v[i % 1000] % 9) {
		case 0: h += 3; break;
		case 1: h ^= i; break;
		case 2: h *= 7; break;
		case 3: h -= fib(i % 12); break;
		case 4: if (h & 1) h++; break;
		case 5: do h >>= 1; while (h > 1000); break;
		case 7: h += v[i % 1000] > 500 ? 2 : 5;
		}
	printf("%lu %ld %.3f\n", h, fib(15), mean(v, 1000));
	return (int)(h & 1);
}
C

# Compare addresses and transfers with their counts, where both files have any. The counters must
# know everything that ran in functions, and at least so many transfers; so many counts are wrong.
cat >same.py <<'P'
import json, sys
def read(path, build_id=None):
    for m in json.load(open(path))["modules"]:
        if build_id in (None, m["build_id"]):
            return (m["build_id"], {int(a, 16): n for a, n in m["addresses"]},
                    {(int(e[0], 16), int(e[1], 16)): e[2] for e in m["edges"]})
build_id, ours, edges = read(sys.argv[1])
_, theirs, transfers = read(sys.argv[2], build_id)
wrong = [hex(a) for a in ours if ours[a] != theirs.get(a)]
wrong += [(hex(a), hex(b)) for a, b in edges if edges[a, b] != transfers.get((a, b))]
share = sum(ours.values()) / sum(theirs.values())
print(len(ours), "addresses,", len(edges), "transfers,", len(wrong), "differ:", wrong[:5], "share", share)
least = int(sys.argv[3]) if len(sys.argv) > 3 else 10
allowed = int(sys.argv[4]) if len(sys.argv) > 4 else 0
sys.exit(len(wrong) != allowed or len(ours) < 50 or len(edges) < least or share < 0.95)
P

# counted NAME: import NAME.i.counts of NAME.i, and export NAME.json
counted() {
	rm -f "$1.db"
	command_ends 0 "import of $1" morph-stats import --db="$1.db" --binary="$1.i" "$1.i.counts"
	cp err.txt "$1.said"
	cat out.txt >>"$1.said"
	morph-stats --db="$1.db" export --format=json >"$1.json" 2>/dev/null
}

i=0
for flags in "-O2" "-O2 -fno-pie -no-pie" "-O0 -fno-jump-tables" "-O3 -static" "-O2 -Wl,--emit-relocs" \
	"-O2 -fno-pie -no-pie -Wl,--emit-relocs" "-Os -static -Wl,--emit-relocs" "-O2 -s -fcf-protection"; do
	i=$((i + 1))
	p=work$i
	# shellcheck disable=SC2086
	gcc $flags -Wl,--build-id work.c -o $p || exit 1
	command_ends 0 "$flags" morph-optimize instrument --kind=edges,plain --report=none $p -o $p.i
	want=0
	./$p 5000 >want.txt || want=$?
	command_ends $want "$flags: instrumented" ./$p.i 5000
	cmp want.txt out.txt || fail "$flags: other output"
	counted $p
	says $p.said " in 0 of them the counts in and out differ" "$flags"
	# The library code of a static program takes other paths under the emulator.
	case $flags in *static*) continue ;; esac
	"$root/scripts/bench/branches" --callgrind $p.cg --stdout /dev/null ./$p -- 5000 >/dev/null 2>err.txt ||
		[ $? = $want ] || fail "$flags: emulator: $(cat err.txt)"
	morph-stats import --db=$p.exact.db $p.cg >/dev/null 2>&1
	morph-stats --db=$p.exact.db export --format=json >$p.exact.json 2>/dev/null
	python3 same.py $p.json $p.exact.json >same.txt || fail "$flags: $(cat same.txt)"
done

# Several jumps of an interpreter share one table of targets. No counter can stand on their ways, but
# each block has its count.
cat >interpret.c <<'C'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static unsigned long run(const unsigned char *ip, unsigned long n)
{
	static void *const table[] = { &&inc, &&twice, &&odd, &&low, &&again, &&halt };
	unsigned long x = 1;
	goto *table[*ip++];
inc: x++; goto *table[*ip++];
twice: x = x * 2 % 1000003; goto *table[*ip++];
odd: if (x & 1) ip++; goto *table[*ip++];
low: if (x < 500) x += 77; goto *table[*ip++];
again: if (n--) ip -= *ip; else ip++; goto *table[*ip++];
halt: return x;
}
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0, 1, 2, 0, 3, 1, 4, 6, 0, 5 };
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;
	printf("%lu\n", run(code, n));
	return 0;
}
C
for flags in "-O2" "-O2 -fno-pie -no-pie" "-O2 -Wl,--emit-relocs" "-O1 -s"; do
	# shellcheck disable=SC2086
	gcc $flags -Wl,--build-id interpret.c -o interpret || exit 1
	command_ends 0 "interpreter, $flags" morph-optimize instrument --kind=edges,plain interpret -o interpret.i
	! grep -q "not counted" out.txt || fail "interpreter, $flags: $(grep "not counted" out.txt)"
	./interpret 20000 >want.txt
	rm -f interpret.i.counts
	./interpret.i 20000 >out.txt
	cmp want.txt out.txt || fail "interpreter, $flags: other output"
	counted interpret
	says interpret.said " in 0 of them the counts in and out differ" "interpreter, $flags"
	"$root/scripts/bench/branches" --callgrind interpret.cg --stdout /dev/null ./interpret -- 20000 >/dev/null 2>err.txt ||
		fail "interpreter, $flags: emulator: $(cat err.txt)"
	rm -f interpret.exact.db
	morph-stats import --db=interpret.exact.db interpret.cg >/dev/null 2>&1
	morph-stats --db=interpret.exact.db export --format=json >interpret.exact.json 2>/dev/null
	python3 same.py interpret.json interpret.exact.json 4 >same.txt || fail "interpreter, $flags: $(cat same.txt)"
done

# As clang compares floating point numbers: flags are read behind both jumps, so no counter can stand between. The way
# of NaNs, behind jnp, is taken for one that never runs. Without NaNs all counts are exact; with some, only the counts
# of jnp and of the way around it are not.
cat >order.s <<'S'
	.globl order
	.type order, @function
order:	.cfi_startproc
	ucomisd %xmm1, %xmm0
	jne 1f
	jnp 2f
1:	jbe 3f
	mov $1, %eax
	ret
2:	xor %eax, %eax
	ret
3:	mov $2, %eax
	ret
	.cfi_endproc
	.size order, . - order
	.section .note.GNU-stack, "", @progbits
S
cat >floats.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int order(double a, double b);
int main(int argc, char **argv)
{
	int n = atoi(argv[1]), times[3] = { 0 };
	double zero = argc - 3;
	for (int i = 0; i < n; i++) {
		double a = i % 7 / (i % 5 ? 1 : zero), b = i % 3;
		times[order(a, b)]++;
	}
	printf("%d %d %d\n", times[0], times[1], times[2]);
	return times[0] + times[1] + times[2] != n;
}
C
gcc -O1 -Wl,--build-id floats.c order.s -o floats || exit 1
command_ends 0 "jnp" morph-optimize instrument --kind=edges,plain floats -o floats.i
! grep -q "not counted" out.txt || fail "jnp: $(grep "not counted" out.txt)"
for work in "700 no NaN" "700 NaN"; do
	wrong=0
	[ "$work" = "700 no NaN" ] || wrong=2
	# shellcheck disable=SC2086
	./floats $work >want.txt || fail "floats $work"
	rm -f floats.i.counts floats.exact.db
	# shellcheck disable=SC2086
	./floats.i $work >out.txt
	cmp want.txt out.txt || fail "floats $work: other output"
	counted floats
	says floats.said " in 0 of them the counts in and out differ" "floats $work"
	# shellcheck disable=SC2086
	"$root/scripts/bench/branches" --callgrind floats.cg --stdout /dev/null ./floats -- $work >/dev/null 2>err.txt ||
		fail "floats $work: emulator: $(cat err.txt)"
	morph-stats import --db=floats.exact.db floats.cg >/dev/null 2>&1
	morph-stats --db=floats.exact.db export --format=json >floats.exact.json 2>/dev/null
	python3 same.py floats.json floats.exact.json 4 $wrong >same.txt || fail "floats $work: $(cat same.txt)"
done

# Stress layouts, with a profile and without.
for seed in 1 2 3 4; do
	command_ends 0 "stress $seed" morph-optimize instrument --kind=edges --lab=stress-layout=$seed --report=none work1 -o s.i
	rm -f s.i.counts
	./work1 5000 >want.txt
	./s.i 5000 >out.txt
	cmp want.txt out.txt || fail "stress $seed: other output"
	cp s.i.counts s.counts
	rm -f s.db
	morph-stats import --db=s.db --binary=s.i s.i.counts >/dev/null 2>&1
	morph-stats --db=s.db export --format=json >s.json 2>/dev/null
	python3 same.py s.json work1.exact.json >same.txt || fail "stress $seed: $(cat same.txt)"
done
command_ends 0 "by its own profile" morph-optimize instrument --kind=edges --min-samples=1 --db=work1.db --report=none work1 -o own.i
./work1 77 >want.txt
./own.i 77 >out.txt
cmp want.txt out.txt || fail "by its own profile: other output"

# entered JSON ADDRESS: how often a function was entered, by the counts of its first instruction
entered() {
	python3 - "$1" "$2" <<'P'
import json, sys
m = json.load(open(sys.argv[1]))["modules"][0]
print({int(a, 16): n for a, n in m["addresses"]}.get(int(sys.argv[2], 16), 0))
P
}
address() {
	nm "$1" | sed -n "s/ [tT] $2$//p"
}

# Threads lose no counts: by default, each has counters of its own. Children continue counting.
cat >threads.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) void tick(int i) { if (i & 1) sink = i; }
static void *run(void *p) { for (int i = 0; i < 100000; i++) tick(i); return p; }
int main(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, run, NULL);
	for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
	if (!fork()) { for (int i = 0; i < 500; i++) tick(i); _exit(0); }
	wait(NULL);
	puts("done");
}
C
gcc -O2 -fno-ipa-cp -Wl,--build-id threads.c -o threads -lpthread || exit 1
command_ends 0 threads morph-optimize instrument --kind=edges --json threads -o threads.i
json threads '.counting.threads and (.counting.atomic | not)'
command_ends 0 "threads, instrumented" ./threads.i
counted threads
[ "$(entered threads.json "$(address threads tick)")" = 400500 ] ||
	fail "threads: entered $(entered threads.json "$(address threads tick)") times"

# The counts are in the file while the program runs, and after a kill.
cat >endless.c <<'C'
#include <stdio.h>
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) void tick(int i) { sink = i; }
int main(void)
{
	for (int i = 0; i < 1234; i++) tick(i);
	puts("ready");
	fflush(stdout);
	for (;;) pause();
}
C
gcc -O2 -Wl,--build-id endless.c -o endless || exit 1
morph-optimize instrument --kind=edges --report=none --counts=endless.%p.c endless -o endless.i || fail endless
./endless.i >ready.txt &
pid=$!
until [ -s ready.txt ] || ! kill -0 $pid; do sleep 0.1; done
for when in running killed; do
	[ $when = running ] || { kill -9 $pid; wait $pid 2>/dev/null; }
	rm -f endless.db
	morph-stats import --db=endless.db --binary=endless.i endless.$pid.c >/dev/null 2>&1 || fail "$when: no counts"
	morph-stats --db=endless.db export --format=json >endless.json 2>/dev/null
	[ "$(entered endless.json "$(address endless tick)")" = 1234 ] || fail "$when: other counts"
done

# A library, whose counters are mapped when it is loaded.
echo 'int odd(int n) { return n % 2 ? 3 * n + 1 : n / 2; }' >lib.c
echo '#include <stdio.h>
int odd(int); int main(void) { int n = 27, s = 0; while (n != 1) { n = odd(n); s++; } printf("%d\n", s); }' >user.c
gcc -O2 -shared -fPIC -Wl,--build-id lib.c -o libodd.so && gcc -O2 user.c -o user -L. -lodd || exit 1
morph-optimize instrument --kind=edges --report=none --counts=lib.i.counts libodd.so -o lib.i || fail library
mkdir -p instead
cp lib.i instead/libodd.so
LD_LIBRARY_PATH=instead ./user >out.txt
[ "$(cat out.txt)" = 111 ] || fail "library: $(cat out.txt)"
counted lib
[ "$(entered lib.json "$(address libodd.so odd)")" = 111 ] || fail "library: other counts"

# Exceptions: the same output, and the missing counts are reported.
cat >throws.cc <<'C'
#include <cstdio>
#include <stdexcept>
static int f(int n) { if (n % 7 == 3) throw std::runtime_error("seven"); return n; }
__attribute__((noinline)) int g(int n) { int a = f(n); if (a & 1) a++; return a; }
int main() { int s = 0; for (int i = 0; i < 700; i++) try { s += g(i); } catch (std::exception &) { s--; } printf("%d\n", s); }
C
g++ -O2 -fno-inline -Wl,--build-id throws.cc -o throws || exit 1
command_ends 0 throws morph-optimize instrument --kind=edges --report=none throws -o throws.i
./throws >want.txt
./throws.i >out.txt
cmp want.txt out.txt || fail "throws: other output"
counted throws
grep -q " in 0 of them the counts in and out differ" throws.said && fail "throws: nothing missed: $(cat throws.said)"

# If the counts cannot be written, the program runs as usual.
command_ends 0 nowhere morph-optimize instrument --kind=edges --report=none --counts=/nonexistent/c work1 -o nowhere.i
./work1 99 >want.txt
./nowhere.i 99 >out.txt
cmp want.txt out.txt || fail "nowhere: other output"
cp work1 setid
chmod u+s setid
command_ends 4 "set-user-ID" morph-optimize instrument --kind=edges --report=none setid -o setid.i
command_ends 2 "--counts alone" morph-optimize --counts=c work1 -o x
command_ends 2 "--kind=paths" morph-optimize instrument --kind=paths work1 -o x

# All steps by one command. The audit's verdict depends on this machine.
got=0
morph-optimize train -o trained --db=trials.db --audit-seconds=5 --budget=5 -- ./work1 3000000 >out.txt 2>err.txt || got=$?
case $got in
0) ./trained 99 >out.txt; cmp want.txt out.txt || fail "train: other output" ;;
5) [ ! -e trained ] || fail "train: not faster, but there" ;;
7) [ ! -e trained ] && [ -x trained.undecided ] || fail "train: undecided, and not kept as such" ;;
*) fail "train: status $got: $(cat err.txt)" ;;
esac
command_ends 0 "train, without audit" morph-optimize train -o trained --no-audit -- ./work1 3000000
says out.txt "counted in"
./trained 99 >out.txt
cmp want.txt out.txt || fail "train, without audit: other output"
# A function that cannot be counted is in the report, and its samples are in the sum.
cat >spin.c <<'C'
#include <stdio.h>
#include <stdlib.h>
/* Reads the zero flag of its caller: a counter would lose the flag. */
__asm__(".text\n.globl spin\n.type spin, @function\nspin:\n.cfi_startproc\njz 3f\n"
	"1: test $3, %dil\njz 2f\nadd $5, %rax\n2: dec %rdi\njnz 1b\n3: ret\n.cfi_endproc\n"
	".size spin, .-spin\n");
__attribute__((noinline)) static unsigned int mix(unsigned int x)
{
	return x % 7 == 3 ? x * 3 : (x ^ 0x5bd1e995) + (x & 1 ? 1 : 77);
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;
	unsigned int x = 1;
	for (long i = 0; i < n; i++)
		x = mix(x) + (unsigned int)i % 3;
	__asm__ volatile("mov %0, %%rdi\ntest %%rdi, %%rdi\ncall spin" : : "r"(n) : "rdi", "rax", "cc", "memory");
	printf("%u\n", x);
	return 0;
}
C
gcc -O2 -mno-red-zone -Wl,--build-id -o spin spin.c || fail "spin: not built"
command_ends 0 "train, uncounted" morph-optimize train -o spun --no-audit -- ./spin 100000000
if grep -q "not sampled" out.txt; then
	left_out="$left_out samples (what could not be counted)"
else
	says out.txt "^ *spin *[0-9]* samples  not counted: " "train, uncounted"
	says out.txt "^  samples    [0-9]*, [5-9][0-9]\.[0-9] % of them in code that moves" "train, uncounted"
	says out.txt "^  counts     [0-9]* of blocks" "train, uncounted"
	says out.txt "if the functions that could not be counted" "train, uncounted"
fi
# If a library has most samples, the message names the library.
cat >lib.c <<'C'
unsigned int work(long n);
unsigned int work(long n)
{
	unsigned int x = 1;
	for (long i = 0; i < n; i++)
		x = x % 7 == 3 ? x * 3 : (x ^ 0x5bd1e995) + (x & 1 ? 1 : 77);
	return x;
}
C
printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' 'unsigned int work(long n);' \
	'int main(int c, char **v) { return printf("%u\\n", work(atol(v[c - 1]))) < 0; }' >user.c
mkdir lib && gcc -O2 -fPIC -shared -Wl,--build-id -Wl,-soname,libwork.so.1 -o lib/libwork.so.1.0 lib.c &&
	ln -s libwork.so.1.0 lib/libwork.so.1 && gcc -O2 -Wl,--build-id -o user user.c lib/libwork.so.1.0 || fail "user: not built"
if [ -z "$left_out" ]; then
	LD_LIBRARY_PATH=lib command_ends 3 "train, library" morph-optimize train -o user.fast -- ./user 100000000
	says err.txt "user: [0-9]* of [0-9]* samples are in this file, but [0-9]* in .*/lib/libwork.so.1.0"
	says err.txt "^  LD_LIBRARY_PATH=morph ./user 100000000"
	[ ! -e user.fast ] || fail "train, library: the program is written"
	command=$(sed -n 's/^  mkdir/mkdir/p' err.txt | sed 's/optimize train/optimize train --no-audit/')
	LD_LIBRARY_PATH=lib command_ends 0 "train, library, as proposed" sh -c "$command"
	says err.txt "^  LD_LIBRARY_PATH=morph ./user 100000000"
	LD_LIBRARY_PATH=lib ./user 1000 >want.txt
	LD_LIBRARY_PATH=morph command_ends 0 "train, library, in use" ./user 1000
	cmp want.txt out.txt || fail "train, library, in use: other output"
fi
# Debug information in a separate file gives the output a debug file of its own.
gcc -g -O2 -Wl,--build-id -o shipped.full work.c && objcopy --only-keep-debug shipped.full shipped.debug &&
	strip -o shipped shipped.full && objcopy --add-gnu-debuglink=shipped.debug shipped || fail "shipped: not built"
command_ends 0 "train, debug file" morph-optimize train -o fast --no-audit --debug-file=auto -- ./shipped 3000000
says out.txt "shipped.debug -> fast.debug"
command_ends 0 "train, debug file, verified again" morph-optimize verify shipped --debug-file=auto fast
sha256sum shipped shipped.debug >sums.txt
command_ends 1 "train, its own debug file" \
	morph-optimize train -o shipped --no-audit --debug-file=auto -- ./shipped 3000000
sha256sum --quiet -c sums.txt || fail "train: the original's debug file is another now"
find . -maxdepth 1 -name '.morph-train.*' | grep . && fail "train: leaves a directory"
command_ends 2 "train without command" morph-optimize train -o trained
command_ends 1 "train of nothing" morph-optimize train -o trained2 -- ./nosuch
command_ends 3 "train of what does not run" morph-optimize train --no-audit -o trained2 work2 -- ./work1 5
[ $nr_failed = 0 ]
