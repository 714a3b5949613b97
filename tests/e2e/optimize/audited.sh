#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-optimize --audited: each function has the order of its blocks that won in audits inside the
# program, by the newest audit that decided. The report says so with the evidence. Without an audit
# of this file nothing is written.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc jq sqlite3
export PATH="$BUILD:$PATH"
scratch audited

cat >work.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noclone))
#define WORK(name, k)                                                                               \
	NOINLINE unsigned name(const unsigned char *p, unsigned n)                                  \
	{                                                                                           \
		unsigned h = k;                                                                     \
		for (unsigned i = 0; i < n; i++) {                                                  \
			if (p[i] < 8)                                                               \
				h = h * 31 + i;                                                     \
			else if (p[i] == 77)                                                        \
				h = h ^ h >> 3;                                                     \
			else                                                                        \
				h += p[i] * k;                                                      \
			if (h == 12345)                                                             \
				abort();                                                            \
		}                                                                                   \
		return h;                                                                           \
	}
WORK(first, 3)
WORK(second, 5)
WORK(third, 7)
int main(int argc, char **argv)
{
	static unsigned char data[4096];
	unsigned h = 1, x = 1;
	for (int i = 0; i < 4096; i++, x = x * 1664525 + 1013904223)
		data[i] = x >> 24;
	for (long i = argc > 1 ? atol(argv[1]) : 1000; i > 0; i--)
		h = first(data, 4096) + second(data, 4096) + third(data, 4096) + h * 31;
	printf("%u\n", h);
}
C
gcc -O2 -Wl,--build-id work.c -o work || exit 1
sampling
sampled s.db work 2000 ./work 60000

# An audit that knows the functions; then the verdicts are written into the store.
command_ends 0 instrument morph-optimize instrument --kind=audit --all --only=first,second,third --counts="$dir/ring" --report=none work -o work.a
# A busy machine interrupts most pairs of windows, and the reader looks for the program every few seconds, while one
# runs. So the program runs until there is a pair, and the functions have addresses.
is_enough() { [ "$(sqlite3 a.db 'SELECT max(pairs) > 0 AND min(vaddr) > 0 FROM program_audit_effect')" = 1 ]; }
for _ in {1..10}; do
	rm -f a.db*
	morphd run --audit=ring --db=a.db >/dev/null 2>err.txt &
	reader=$!
	audit_listens $reader
	for _ in {1..3}; do
		./work.a 100000 >/dev/null
	done
	kill -INT $reader
	wait $reader || fail "the reader ended with $?: $(cat err.txt)"
	! is_enough || break
done
nr=$(sqlite3 a.db 'SELECT count(*) FROM program_audit_effect')
[ "$nr" = 3 ] || fail "$nr functions in the store"
# decide N VERDICT: of the N-th function by address
decide() { sqlite3 a.db "UPDATE program_audit_effect SET verdict = $2, decided_at = 64 WHERE function = $1"; }
decide 0 1
decide 1 2
decide 2 0

optimized() { morph-optimize --db=s.db --min-samples=1 "$@" work -o work.out; }
command_ends 0 "audited" optimized --audited=a.db --report=json
json "audited" '.decided | length == 3 and ([.[].vaddr] | sort) == [.[].vaddr]'
json "shares" '(.decided | map(.share) | add) as $all | $all > 0.9 and $all <= 1 and all(.decided[]; .share > 0)'
json "verdicts" '[.decided[].faster_is] | sort == ["new", "original", "undecided"]'
json "orders" '[.decided[] | {faster_is, order}] | all(.order == (if .faster_is == "original" then "original" else "new" end))'
json "evidence" '[.decided[] | select(.pairs > 0 and .faster_by != null and (.machine | length) > 0 and .last_s > 1000000)] | length > 0'
json "adjusted" '.adjusted.functions | length == 1 and .[0].done == ["order=original"]'
[ "$(jq -r '.decided[] | select(.faster_is == "original") | .vaddr' out.txt)" = "$(jq .adjusted.functions[0].vaddr out.txt)" ] ||
	fail "another function was adjusted"
name=$(jq -r '.decided[] | select(.faster_is == "original") | .function' out.txt)
[ "$(./work 500)" = "$(./work.out 500)" ] || fail "other output"
command_ends 0 "verify" morph-optimize verify --report=none work work.out

# The same bytes as by hand; with no verdict for the original's order, as without audits.
cp work.out by-audit
command_ends 0 "by hand" optimized --adjust="$name:order=original" --report=none
cmp work.out by-audit || fail "not what --adjust makes"
decide 0 2
command_ends 0 "new order" optimized --audited=a.db --report=none
cp work.out all-new
command_ends 0 "no audits" optimized --report=none
cmp work.out all-new || fail "verdicts for the new order changed something"
decide 0 1

# Text; the user's wish is stronger; --explain names all functions.
command_ends 0 "text" optimized --audited=a.db
says out.txt "decided    by audits in running programs: for 1 functions the original's order, for 1 the new one; 1 undecided"
says out.txt "$name: faster is: original, .*has the original's order"
[ "$(grep -c 'faster is: ' out.txt)" = 1 ] || fail "text: not one function named"
command_ends 0 "explain" optimized --audited=a.db --explain
[ "$(grep -c 'faster is: ' out.txt)" = 3 ] || fail "--explain: not all functions named"
command_ends 0 "stay" optimized --audited=a.db --adjust="$name:stay" --report=json
json "stay" '[.decided[] | select(.faster_is == "original" and .order == null)] | length == 1'

# No audit of this program, and no store.
gcc -O1 -Wl,--build-id work.c -o other || exit 1
rm -f other.out
command_ends 3 "another program" morph-optimize --db=s.db --all --audited=a.db other -o other.out
one_line "another program"
[ ! -e other.out ] || fail "an output without audits"
command_ends 1 "no store" morph-optimize --db=s.db --min-samples=1 --audited=nothing.db work -o other.out
one_line "no store"
finish
