#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# morphd wakes less than twice a second while nothing happens, with each source. Prints the numbers.
. "$(dirname "$0")/lib.sh"
SECONDS_QUIET=20 # waits grow to a second, and the start is over
SECONDS_COUNTED=60
switches() { cat "/proc/$1"/task/*/status | awk '/^voluntary_ctxt/ { n += $2 } END { print n }'; }

rests_with() { # SOURCE
	local morphd before after
	printf '%s\n' "source = $1" "rate = 99" "database = $PWD/$1.db" >"$1.conf"
	"$BUILD/morphd" --config="$PWD/$1.conf" >"$1.txt" 2>&1 &
	morphd=$!
	for _ in {1..120}; do
		[ ! -e "$1.db" ] || break
		sleep 1
	done
	sleep $SECONDS_QUIET
	before=$(switches $morphd)
	sleep $SECONDS_COUNTED
	after=$(switches $morphd)
	kill $morphd && wait $morphd
	grep -q 'captured [1-9]' "$1.txt" || fail "$1: $(tail -n 1 "$1.txt")"
	awk -v s="$1" -v n="$((after - before))" -v t=$SECONDS_COUNTED \
		'BEGIN { printf "%s: %.2f wake-ups a second\n", s, n / t; exit !(n > 0 && n < 2 * t) }' ||
		fail "$1: wakes too often: $((after - before)) times in $SECONDS_COUNTED s"
}

rests_with perf
[ ! -e /sys/kernel/btf/vmlinux ] || rests_with bpf
load
rests_with kmod
unload
finish
