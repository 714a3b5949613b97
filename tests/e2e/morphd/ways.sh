#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# Registers of samples tell which way a program's branches go: three of four times to C, whatever the blocks take. No
# register reaches the database. Without --registers=branches no way is stored.
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
WAYS_QUERY

# Without them: the same samples, and no ways.
"$MORPHD" run --source=perf --no-kernel --rate 4000 --db off.db --json -- ./original 10 > off.out 2> err || fail "$(cat err)"
[ "$(jq 'has("ways")' off.out)" = false ] || fail "off: $(jq -c .ways off.out)"
