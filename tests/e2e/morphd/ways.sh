#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# Registers of samples tell which way a program's branches go. morphd run counts these ways by default, but not in a
# recording or where other registers, or none, are asked for.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
STATS=$BUILD/morph-stats
cd "$TMPDIR" || exit 1
"$MORPHD" run --source=perf --registers=branches --record probe -- true 2> err || {
	echo "no sampling of registers on this machine: $(head -n 1 err)"
	exit 77
}
${CC:-gcc} -o original "$root/tests/e2e/morphd/paths.S" || exit 1

# Repeat with more work on a machine that gives few samples.
for n in 40 200 1000; do
	rm -f live.db*
	"$MORPHD" run --source=perf --no-kernel --registers=branches --rate 4000 --db live.db --json -- ./original $n \
		> live.out 2> err || fail "$(cat err)"
	[ "$(jq .ways.ways live.out)" -lt 1000 ] || break
done
[ "$(jq .ways.failed_batches live.out)" = 0 ] || fail "$(jq -c .ways live.out)"
[ "$(jq .ways.ways live.out)" -gt 300 ] || fail "few ways: $(jq -c .ways live.out)"
"$STATS" status --check --db live.db > /dev/null || fail "status --check"
[ "$("$STATS" status --db live.db --json | jq .nr_ways)" = "$(jq .ways.ways live.out)" ] || fail "the store has others"
branch=$(objdump -d original | sed -n 's/^ *\([0-9a-f]*\):.*jne .*<blk_c>$/\1/p')
block=$(nm original | sed -n 's/^0*\([0-9a-f]*\) t walk$/\1/p; s/^0*\([0-9a-f]*\) T walk$/\1/p')
[ -n "$branch" ] && [ -n "$block" ] || fail "no branch to C"
"$BUILD/morph-optimize" --db=live.db --print=counts original > counts 2> err || fail "print: $(cat err)"
# The first block ends in the branch.
shares=$(sed -n "s/^  0x$block .* branch -> taken 0x[0-9a-f]* \([0-9.]*\), fall 0x[0-9a-f]* \([0-9.]*\)\$/\1 \2/p" counts)
echo "to C and B: $shares"
echo "$shares" | awk '{exit !($1 > 2 * $2 && $1 < 5 * $2)}' || fail "counts: $shares"
"$BUILD/morph-optimize" --db=live.db --report=json -o moved original > report 2> err || fail "optimize: $(cat err)"
[ "$(jq .ways report)" -gt 300 ] || fail "the report has no ways"

# Without them: the same samples, and no ways.
"$MORPHD" run --source=perf --no-kernel --registers=no --rate 4000 --db off.db --json -- ./original 10 > off.out 2> err || fail "$(cat err)"
[ "$(jq .ways.samples off.out)" = 0 ] || fail "off: $(jq -c .ways off.out)"

"$MORPHD" run --source=perf --no-kernel --db default.db --json -- ./original 10 > on.out 2> err || fail "$(cat err)"
[ "$(jq .ways.ways on.out)" -gt 20 ] || fail "default: $(jq -c .ways on.out)"
"$MORPHD" run --source=perf --no-kernel --record rec --db rec.db --json -- ./original 10 > rec.out 2> err || fail "$(cat err)"
[ "$(jq .ways.samples rec.out)" = 0 ] || fail "recording: $(jq -c .ways rec.out)"
"$MORPHD" run --source=perf --no-kernel --registers=paths --db paths.db --json -- ./original 10 > p.out 2> err || fail "$(cat err)"
[ "$(jq .ways.samples p.out)" = 0 ] || fail "paths: $(jq -c .ways p.out)"
"$MORPHD" run --registers=all -- true 2> err
[ $? = 2 ] && grep -q "neither paths, branches nor no" err || fail "a value that there is not: $(cat err)"
