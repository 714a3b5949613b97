# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of exports; sourced. A C and a C++ program, in files with a blank in their
# names: local functions that share a name, inlined code, templates, exceptions. callgrind gives
# exact counts, so the tests do not depend on sampling.
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
scratch export

# ends STATUS WHAT OUT ARGS: morph-stats ARGS into OUT, messages into err.txt
ends() {
	local want=$1 what=$2 out=$3 got=0
	shift 3
	"$BUILD/morph-stats" "$@" >"$out" 2>err.txt || got=$?
	[ "$got" = "$want" ] || {
		fail "$what: status $got, not $want"
		head -5 err.txt | sed 's/^/    /'
	}
}

# counted PROGRAM DB: callgrind's counts of a run of PROGRAM, in DB
counted() {
	valgrind -q --tool=callgrind --dump-instr=yes --callgrind-out-file=cg.out "./$1" \
		>/dev/null 2>vg.txt || fail "callgrind: $(head -3 vg.txt)"
	ends 0 "import of $1" import.txt --db "$2" import cg.out
}

# finish: exit with the status of the test
finish() {
	if [ $nr_failed != 0 ]; then
		echo "$nr_failed failed"
		exit 1
	fi
	if [ -n "$left_out" ]; then
		echo "skip: $left_out; the rest passed"
		exit 77
	fi
	exit 0
}

mkdir "so urce"
cat >"so urce/main prog.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
long second(long n);
static __attribute__((noinline)) long same(long n)
{
	long s = 0;
	for (long i = 0; i < 40; i++)
		s += (i * n) % 7 > 3 ? i : -i;
	return s;
}
static inline long inlined(long n)
{
	return n % 5 ? n * 3 : n ^ 1;
}
__attribute__((noinline)) long zeta(long n) { return same(n) + 1; }
__attribute__((noinline)) long never(long n) { return printf("%ld", n) + n; }
__attribute__((noinline)) long alpha(long n)
{
	long s = 0;
	for (long i = 0; i < 30; i++)
		s ^= inlined(i + n);
	return s;
}
__attribute__((noinline)) long middle(long n)
{
	long s = 0;
	for (long i = 0; i < 4; i++)
		s += zeta(n + i);
	return s;
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 500, s = 0;
	for (long i = 0; i < n; i++)
		s += middle(i) + alpha(i) + second(i);
	if (s == 1)
		s = never(s);
	printf("%ld\n", s);
	return 0;
}
C
cat >"so urce/second.c" <<'C'
/* A datum of that name too: numbers of local names count it. */
static const int numbers_same[] = {3, 1, 4, 1, 5, 9, 2, 6};
static __attribute__((noinline)) long same(long n)
{
	long s = 1;
	for (long i = 0; i < 20; i++)
		s += (i ^ n) % 9 + numbers_same[i & 7];
	return s;
}
__attribute__((noinline)) long second(long n) { return same(n) * 2; }
C
cat >"so urce/third.c" <<'C'
static const volatile int same[] = {2, 7, 1, 8};
long third(long n);
long third(long n) { return same[n & 3]; }
C
cat >"so urce/main prog.cc" <<'C'
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>
int elsewhere(int x);
namespace
{
int step(int x) { return x * 3 + 1; }
__attribute__((noinline)) int local(int x)
{
	int s = 0;
	for (int i = 0; i < 50; i++)
		s += step(x + i) ^ i;
	return s;
}
} // namespace
template <class T> static inline T twice(T x) { return x + x; }
struct shape {
	virtual ~shape() {}
	virtual int area(int x) = 0;
};
struct square : shape {
	__attribute__((noinline)) int area(int x) override
	{
		if (x % 1000 == 999)
			throw std::runtime_error("too large");
		return twice(x) + local(x);
	}
};
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 3000;
	square a;
	shape *s = &a;
	long sum = 0;
	std::vector<int> v;
	for (int i = 0; i < n; i++) {
		try {
			sum += s->area(i);
		} catch (std::exception &e) {
			sum++;
		}
		sum += elsewhere(i);
		v.push_back(sum % 1000);
	}
	std::sort(v.begin(), v.end());
	printf("%ld %d\n", sum, v[v.size() / 2]);
}
C
cat >"so urce/else where.cc" <<'C'
static __attribute__((noinline)) int local(int x)
{
	int s = 1;
	for (; x > 3; x >>= 1)
		s = x & 1 ? s + x : s ^ 5;
	return s;
}
__attribute__((noinline)) int elsewhere(int x) { return local(x) + local(x / 2); }
C
