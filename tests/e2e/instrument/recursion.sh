#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# While a recursive function is audited, its recursive calls cost little, by exact counts of an emulator:
# the runtime, which they enter, has at most 2 % of the instructions. A timing with too many of them is
# abandoned; functions that call themselves less often are timed.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc python3 qemu-x86_64
export PATH="$BUILD:$PATH"
scratch recursion

cat >walk.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#define KEEP __attribute__((noinline, noclone))
KEEP long works(long s)
{
	for (int i = 0; i < 300; i++)
		s = s * 5 + (s >> 7);
	return s;
}
KEEP long walks(long depth, long s)
{
	s = works(s);
	if (depth > 1)
		s += walks(depth - 1, s ^ depth);
	return s ^ depth;
}
int main(int argc, char **argv)
{
	long h = 1, depth = atol(argv[1]), calls = atol(argv[2]);
	for (long i = 0; i < calls && argc > 2; i += depth)
		h += walks(depth, h);
	printf("%ld\n", h);
	return 0;
}
C
cat >share.py <<P
"""Instructions of the runtime, in ten thousand of all others: share.py ELF EDGES. Timings of the ring: share.py RING"""
import struct, sys
sys.path[:0] = ["$root/scripts/bench", "$root/scripts/works"]
sys.dont_write_bytecode = True
import auditcost
if len(sys.argv) > 2:
    cost = auditcost.cost(sys.argv[1], sys.argv[2])
    print(round(1e4 * cost["runtime"] / cost["others"]))
else:
    with open(sys.argv[1], "rb") as f:
        print(*struct.unpack_from("<3Q", f.read(), 4096 + 8))
P

gcc -O1 -Wl,--build-id walk.c -o walk || exit 1
command_ends 0 "audited" morph-optimize instrument --kind=audit --all --only=walks --report=none \
	--counts="$dir/ring" walk -o walk.a
for depth in 1 20 5000; do
	./walk $depth 100000 >want.txt
	command_ends 0 "depth $depth" ./walk.a $depth 100000
	cmp want.txt out.txt || fail "depth $depth: other output"
	rm -f ring
	"$root/scripts/bench/branches" --edges edges ./walk.a -- $depth 100000 >/dev/null 2>err.txt ||
		fail "emulator: $(cat err.txt)"
	share=$(python3 share.py walk.a edges) || fail "depth $depth: no counts"
	read -r starts stops abandoned <<<"$(python3 share.py ring)"
	[ "$share" -le 200 ] ||
		fail "depth $depth: of 10,000 instructions, the runtime has $share; $starts timings, $stops ended"
	[ "$starts" -gt 0 ] && [ "$starts" = $((stops + abandoned)) ] ||
		fail "depth $depth: $starts timings started, $stops ended, $abandoned were abandoned"
	case $depth in
	5000) [ "$abandoned" -gt 0 ] ;;
	*) [ "$stops" -gt 0 ] ;;
	esac || fail "depth $depth: $stops timings ended, $abandoned were abandoned"
	echo "depth $depth: $share of 10,000; $starts timings, $stops ended"
done
finish
