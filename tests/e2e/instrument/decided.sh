#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: an emulator counts each run
# After a verdict, audits cost nearly nothing, by exact counts of an emulator: a loop that runs already
# leaves its stubs, and each entry of a function has one jump more. Which functions are audited follows
# from a budget for these jumps. The runtime may be unable to change code; then the stubs stay.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc python3 qemu-x86_64 jq
export PATH="$BUILD:$PATH"
scratch decided

cat >once.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define KEEP __attribute__((noinline, noclone))
/* It is entered once, and turns for as long as the program runs. */
KEEP long serves(const unsigned *a, long n)
{
	long s = 0;
	for (long i = 0; i < n; i++) {
		if (a[i & 511] & 8)
			s += a[i & 511];
		else
			s ^= i;
	}
	return s;
}
/* The same loop, for 100 rounds an entry. */
KEEP long turns(const unsigned *a, long n)
{
	long s = 1;
	for (long i = 0; i < n; i++) {
		if (a[i & 511] & 16)
			s += a[i & 511];
		else
			s ^= i;
	}
	return s;
}
KEEP long often(const unsigned *a, long k) { return a[k & 511] & 1 ? k * 3 : k ^ 5; }
int main(int argc, char **argv)
{
	static unsigned data[1024];
	long h = 0, n = argc > 2 ? atol(argv[2]) : 1;
	for (unsigned i = 0; i < 1024; i++)
		data[i] = i * 2654435761u >> 7;
	if (argc > 1 && !strcmp(argv[1], "serves"))
		h = serves(data, n);
	else if (argc > 1 && !strcmp(argv[1], "turns"))
		for (long i = 0; i < n; i += 100)
			h = h * 7 + turns(data + (i & 63), 100);
	else
		for (long i = 0; i < n; i++)
			h += often(data, i);
	printf("%ld\n", h);
	return 0;
}
C
cat >share.py <<P
"""Instructions of the stubs of each kind, in a million of the program's own others: share.py ELF EDGES"""
import sys
sys.path[:0] = ["$root/scripts/bench", "$root/scripts/works"]
sys.dont_write_bytecode = True
import auditcost
cost = auditcost.cost(sys.argv[1], sys.argv[2])
for kind in auditcost.STUBS:
    print(round(1e6 * sum(n for (k, _), n in cost["stubs"].items() if k == kind) / cost["others"]), end=" ")
print()
P
cat >decide.py <<P
import sys
sys.path.append("$root/scripts/works")
sys.dont_write_bytecode = True
import auditring
sys.exit(not auditring.decide(sys.argv[1], int(sys.argv[2])))
P
# counts PROGRAM WHAT: sets enter, leave and point
counts() {
	"$root/scripts/bench/branches" --edges edges "./$1" -- "$2" 1000000 >/dev/null 2>err.txt || fail "emulator: $(cat err.txt)"
	python3 share.py "$1" edges >share.txt 2>err.txt || fail "$1 $2: $(cat err.txt)"
	read -r enter leave point <share.txt
}

for flags in "-O1" "-O2 -fcf-protection=full" "-O2 -fno-pie -no-pie"; do
	# shellcheck disable=SC2086
	gcc $flags -fno-tree-vectorize -Wl,--build-id once.c -o once || exit 1
	rm -f ring
	command_ends 0 "$flags" morph-optimize instrument --kind=audit --lab=stress-layout=1 --only=serves,turns,often \
		--counts="$dir/ring" --report=json once -o once.a
	json "$flags" '.audits.functions == 3 and .audits.points >= 2'
	command_ends 0 "$flags: verify" morph-optimize verify --report=none once once.a
	for what in serves turns often; do
		./once $what 300000 >want.txt
		command_ends 0 "$flags $what" ./once.a $what 300000
		cmp want.txt out.txt || fail "$flags $what: other output"
	done
	counts once.a serves
	[ "$point" -gt 50000 ] || fail "$flags: no verdict: only $point of a million instructions count rounds"
	counts once.a often
	[ "$enter" -gt 50000 ] || fail "$flags: no verdict: only $enter of a million instructions are at entries"
	for verdict in 1 2; do
		python3 decide.py ring $verdict || fail "$flags: no ring file"
		for what in serves turns often; do
			./once $what 300000 >want.txt
			command_ends 0 "$flags $what, verdict $verdict" ./once.a $what 300000
			cmp want.txt out.txt || fail "$flags $what, verdict $verdict: other output"
			counts once.a $what
			[ $((leave + point)) -lt 100 ] ||
				fail "$flags $what, verdict $verdict: of a million, $leave at exits, $point in loops"
			case $what in
			serves) [ "$enter" -lt 100 ] ;;
			turns) [ "$enter" -lt 2500 ] ;; # one jump for 100 rounds of at least five instructions
			*) [ "$enter" -lt 200000 ] && [ "$enter" -gt 20000 ] ;; # one jump for each entry
			esac || fail "$flags $what, verdict $verdict: of a million, $enter at entries"
		done
	done
done

# The budget for jumps is kept: by the profile, a function that does little else than be entered is left out.
gcc -O1 -Wl,--build-id once.c -o once || exit 1
if morphd run --db=often.db -- ./once often 300000000 >/dev/null 2>err.txt; then
	command_ends 3 "all is too costly" morph-optimize instrument --kind=audit --db=often.db --counts="$dir/ring" \
		--report=json once -o often.a
	says err.txt "entered so often that its stubs would cost too much"
	morphd run --db=serves.db -- ./once serves 8000000000 >/dev/null 2>err.txt || fail "sampling: $(cat err.txt)"
	command_ends 0 "a loop is cheap" morph-optimize instrument --kind=audit --db=serves.db --counts="$dir/ring" \
		--report=json once -o serves.a
	json "a loop is cheap" '.audits.functions >= 1 and .audits.more_instructions_decided <= 0.00034
		and .audits.share > 0.5 and .audits.share_costly < 0.1'
	command_ends 0 "--explain" morph-optimize instrument --kind=audit --db=serves.db --counts="$dir/ring" \
		--explain --dry-run once
	says out.txt "after the verdicts"
else
	left_out="$left_out, sampling ($(head -n 1 err.txt))"
fi
finish
