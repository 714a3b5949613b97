#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# Exact counts of paths: tests/plugin/paths.c counts the original's paths by the table of a version
# with path numbers. The sums equal the branches that another plugin counts. Samples of that version
# agree with the counts, if this system samples registers.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need "${cc%% *}" qemu-x86_64 jq
scratch path-counts
cat >prog.c <<'EOF'
#include <stdlib.h>

static volatile unsigned int sink;
static __attribute__((noinline)) unsigned int tree(unsigned int depth, unsigned int seed)
{
	unsigned int a = 1, b = 2;

	if (!depth)
		return seed & 7;
	if (seed & 1)
		a = tree(depth - 1, seed >> 1);
	if (seed & 6)
		b = tree(depth - 1, seed >> 2);
	return a + 3 * b;
}

static __attribute__((noinline)) unsigned int sort(unsigned int x)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < 20; i++) {
		x = x * 1664525u + 1013904223u;
		if (x >> 30)
			sum += x >> 20;
		else if (x & 0x100000)
			sum ^= 0x55;
		if (!(x & 0x700000))
			sum -= tree(i / 2, x >> 8);
	}
	return sum;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)atoi(argv[1]) : 0;

	for (unsigned int i = 0; i < n; i++)
		sink += sort(i);
	return 0;
}
EOF
$cc -O2 -fno-inline -o prog prog.c || exit 1
command_ends 0 numbers "$BUILD/morph-optimize" instrument --all --kind=pep prog -o numbered
command_ends 0 table "$BUILD/tools/paths" numbered prog
mv out.txt table

command_ends 0 "exact paths" qemu-x86_64 -plugin \
	"$BUILD/plugin/paths.so,out=$dir/exact,table=$dir/table,object=$dir/prog" ./prog 2000
command_ends 0 "their sum" "$BUILD/tools/paths" --exact=exact numbered prog
branches=$(jq .branches out.txt)
paths=$(jq .paths out.txt)
"$root/scripts/bench/branches" --json ./prog -- 2000 >all.json || fail "scripts/bench/branches"
want=$(jq '.files[] | select(.main) | .all.cond' all.json)
# The start-up code has branches, too, and not all of them are numbered.
if [ "$branches" -gt "$want" ] || [ $((want - branches)) -gt 30 ]; then
	fail "paths with $branches branches, of $want that ran"
fi
[ "$paths" -gt 20 ] || fail "only $paths paths"

# Repeat until there are enough samples.
for _ in {1..40}; do
	rm -f agree.json
	"$BUILD/morphd" run --no-kernel --source=perf --registers=paths --rate=4000 --db=db -- \
		./numbered 40000 >out.txt 2>err.txt && [ -s db ] || break
	"$BUILD/tools/paths" --exact=exact --db=db numbered prog >agree.json 2>err.txt || continue
	! jq -e '.samples >= 100' agree.json >/dev/null || break
done
if [ -s agree.json ]; then
	jq -e '.samples > 0 and .wall > 0 and .wall <= 1 and .overlap > 0 and .overlap <= 1 and
		.branches == '"$branches"' and .hot > 0 and .hot_flow <= 1' agree.json >/dev/null ||
		fail "samples: $(cat agree.json)"
	# The version without numbers, for measuring their cost, has the same copies.
	for way in --lab=kind=none --kind=pep; do
		kind=${way##*=}
		command_ends 0 $kind "$BUILD/morph-optimize" instrument --min-samples=1 --db=db $way \
			--report=json prog -o $kind
		jq '.functions.moved, (.code | .blocks, .hot_blocks, .branches_inverted)' out.txt >$kind.txt
	done
	diff none.txt pep.txt || fail "none: not the copies that pep has"
	readelf -SW none | grep -q '\.morph\.paths' && fail "none: numbers its paths"
	./none 100 || fail "none: status $?"
else
	left_out="; registers are not sampled here: $(head -1 err.txt)"
fi

# Files without a table and counts of another table are refused.
command_ends 1 "no numbers" "$BUILD/tools/paths" prog prog
printf '999999 0 1\n' >strange
command_ends 1 "a block that is not there" "$BUILD/tools/paths" --exact=strange numbered prog
[ $nr_failed = 0 ] && echo "$paths paths with all of $branches branches$left_out"
exit $((nr_failed > 0))
