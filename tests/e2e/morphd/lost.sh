#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# A collector that cannot keep up reports how many samples it lost, and recovers: mappings are
# looked up again, so later samples are attributed and none goes to a wrong file.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
cd "$TMPDIR" || exit 1
sampling
fail() {
	echo "FAIL: $source: $*"
	exit 1
}
${CC:-gcc} -O1 -o busy "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
samples() {
	sqlite3 -readonly $source.db "SELECT coalesce(sum(nr_samples), 0) FROM bucket b JOIN module m
		ON b.module = m.key WHERE path LIKE '%/busy'"
}
ticks() { awk '{ print $14 + $15 }' "/proc/$child/stat"; }

# Return: 77 if there was no loss to check.
lose() {
	local small="" pid before child start lost
	# Small rings, as for an ordinary user. BPF's ring does not depend on the limit.
	[ $source = bpf ] || ulimit -l 64
	[ $source = bpf ] || [ $EUID != 0 ] || ! command -v setpriv > /dev/null ||
		small="setpriv --bounding-set=-ipc_lock"
	$small "$MORPHD" run --source=$source --no-kernel --rate "${RATE:-20000}" --interval 0.1 --db $source.db \
		--record $source.rec --json -- ./busy until 2 $source.end > out 2> err &
	pid=$!
	at_exit 'touch $source.end'
	until [ -s $source.db ] && [ "$(samples 2> /dev/null || echo 0)" -gt 100 ]; do
		kill -0 $pid 2> /dev/null || {
			# The quota is per user: other rings of this user may have used it up.
			! grep -q 'perf_event_mlock_kb is used up' err || { cat err; return 77; }
			fail "$(cat err)"
		}
		sleep 0.1
	done
	kill -STOP $pid
	before=$(samples)
	# Stop for so long that the rings overflow. The program goes on; wait for its CPU time.
	child=$(pgrep -P $pid busy)
	start=$(ticks)
	while [ $(($(ticks) - start)) -lt 300 ]; do sleep 0.1; done
	kill -CONT $pid
	# Go on until samples are attributed again: for a while after a loss, none can be.
	for _ in {1..600}; do
		[ "$(samples)" -le "$before" ] && kill -0 $pid 2> /dev/null || break
		sleep 0.1
	done
	touch $source.end
	wait $pid || fail "exit $?: $(cat err)"
	jq -e '.emitted == .attributed + .unattributed + .lost' out > /dev/null ||
		fail "samples do not add up"
	lost=$(jq '.reasons."ring-full"' out)
	echo "$source: $(jq .emitted out) samples, $lost lost, $before before the stop, $(samples) in all"
	[ "$lost" -gt 0 ] || { echo "the rings did not overflow"; return 77; }
	[ "$(samples)" -gt "$before" ] || fail "nothing is attributed after a loss"
	"$MORPHD" --input $source.rec --db $source.again --json > again.out 2> err ||
		fail "replay: $(cat err)"
	[ "$(jq -c .reasons out)" = "$(jq -c .reasons again.out)" ] || fail "the replay differs"
}

done=
for source in $sources; do
	(lose)
	case $? in
	0) done=1 ;;
	77) echo "skip: $source" ;;
	*) exit 1 ;;
	esac
done
[ -n "$done" ] || exit 77
