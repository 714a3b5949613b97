# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of profiles for compilers; sourced. A program with inlined calls in inlined calls, a loop
# that compilers unroll, a call through a pointer, two blocks in one line, and names without linkage.
. "$(dirname "${BASH_SOURCE[0]}")/lib-export.sh"

cat >"so urce/pgo.cc" <<'C'
#include <cstdio>
#include <cstdlib>
struct Shape { virtual ~Shape() {} virtual long area(long n) const = 0; };
struct Square : Shape { long area(long n) const override; };
struct Circle : Shape { long area(long n) const override; };
long Square::area(long n) const { return n * n; }
long Circle::area(long n) const { return n * 3 + 1; }
static inline long deep(long x)
{
	return x & 1 ? x * 3 : x ^ 0x55;
}
static inline long middle(long x)
{
	long s = deep(x);
	if (x % 16 == 0)
		s += deep(s + 1) * 7;
	return s;
}
__attribute__((noinline)) long unrolled(const int *p)
{
	long s = 0;
	for (int i = 0; i < 256; i++)
		s += p[i] ^ i;
	return s;
}
static __attribute__((noinline)) long rare(long x)
{
	return x * 7 + 3;
}
__attribute__((noinline)) long work(const Shape *const *shapes, const int *p, long n)
{
	long s = 0;
	for (long i = 0; i < n; i++) {
		s += middle(i);
		s += i % 8 ? shapes[0]->area(i) : shapes[1]->area(i);
		if (i % 1024 == 7)
			s ^= rare(i);
		if (i % 64 == 0)
			s += unrolled(p);
	}
	return s;
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 20000;
	static int p[256];
	Square square;
	Circle circle;
	const Shape *shapes[2] = {argc > 5 ? (Shape *)&circle : &square, argc > 6 ? (Shape *)&square : &circle};
	for (int i = 0; i < 256; i++)
		p[i] = i * 37 % 101;
	printf("%ld\n", work(shapes, p, n));
	return 0;
}
C

# counted PROGRAM DB: as of lib-export.sh, without debug information, of which valgrind does not know all forms
counted() {
	mkdir -p bare
	strip -g -o "bare/$1" "$1" || fail "strip"
	valgrind -q --tool=callgrind --dump-instr=yes --callgrind-out-file=cg.out "./bare/$1" \
		>/dev/null 2>vg.txt || fail "callgrind: $(head -3 vg.txt)"
	ends 0 "import of $1" import.txt --db "$2" import cg.out
}

# alike WHAT A B LEAST: llvm-profdata finds that the profiles A and B agree by LEAST percent
alike() {
	"$profdata" overlap --sample "$2" "$3" >overlap.txt 2>&1 || fail "$1: overlap: $(head -3 overlap.txt)"
	awk -v least="$4" '/program profile similarity: / { have = $NF + 0 }
		END { print have; exit !(have >= least) }' overlap.txt >have.txt ||
		fail "$1: the profiles agree by $(cat have.txt) %, not by $4"
}
