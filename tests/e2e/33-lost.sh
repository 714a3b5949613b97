#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A collector that cannot keep up says how much it lost, and finds its feet again: mappings are
# looked up anew, so that later samples are attributed and none goes to a wrong file.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
MORPHD=$BUILD/morphd
cd "$TMPDIR" || exit 1
"$MORPHD" run --record probe -- true 2> err || {
	echo "no sampling on this machine: $(head -n 1 err)"
	exit 77
}
fail() {
	echo "FAIL: $*"
	exit 1
}
${CC:-gcc} -O1 -o busy "$root/tests/e2e/busy.c" -ldl -lpthread || exit 1
samples() {
	sqlite3 -readonly db "SELECT coalesce(sum(nr_samples), 0) FROM bucket b JOIN module m
		ON b.module = m.key WHERE path LIKE '%/busy'"
}
# Small rings, as an ordinary user has them.
ulimit -l 64
small=
[ $EUID != 0 ] || ! command -v setpriv > /dev/null || small="setpriv --bounding-set=-ipc_lock"
$small "$MORPHD" run --no-kernel --rate 20000 --interval 0.1 --db db --record rec --json -- \
	./busy threads 1500 2 > out 2> err &
pid=$!
until [ -s db ] && [ "$(samples 2> /dev/null || echo 0)" -gt 100 ]; do
	kill -0 $pid 2> /dev/null || {
		# The quota is the user's: somebody else's rings may have it all.
		! grep -q 'perf_event_mlock_kb is used up' err || { cat err; exit 77; }
		fail "$(cat err)"
	}
	sleep 0.1
done
kill -STOP $pid
before=$(samples)
# Until the rings must have overflowed: the program goes on, so wait for its CPU time.
child=$(pgrep -P $pid busy)
ticks() { awk '{ print $14 + $15 }' "/proc/$child/stat"; }
start=$(ticks)
while [ $(($(ticks) - start)) -lt 180 ]; do sleep 0.1; done
kill -CONT $pid
wait $pid || fail "exit $?: $(cat err)"
jq -e '.emitted == .attributed + .unattributed + .lost' out > /dev/null || fail "samples do not add up"
lost=$(jq '.reasons."ring-full"' out)
echo "$(jq .emitted out) samples, $lost lost, $before before the stop, $(samples) in all"
[ "$lost" -gt 0 ] || { echo "the rings did not overflow"; exit 77; }
[ "$(samples)" -gt "$before" ] || fail "nothing is attributed after a loss"
# After the loss there is a while of which nothing can be known; then busy is known again.
"$MORPHD" --input rec --db again --json > again.out 2> err || fail "replay: $(cat err)"
[ "$(jq -c .reasons out)" = "$(jq -c .reasons again.out)" ] || fail "the replay differs"
exit 0
