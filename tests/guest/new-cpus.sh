#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# A CPU that comes online while a source is open is sampled like the others: one that was offline
# before, one that was offline for a second, and one that was offline only for a moment. Mappings
# made there before the source noticed the CPU are found, and no sample lies in a wrong program.
. "$(dirname "$0")/lib.sh"

cpu1() {
	echo "$1" >/sys/devices/system/cpu/cpu1/online || fail "CPU 1: $1"
}

# rows DB VARIANT FILTER: samples of the functions that FILTER selects
rows() {
	"$BUILD/morph-stats" query --db "$1" --binary "$GUEST/variant$2" --by function --json 2>/dev/null |
		jq --slurp "[.[].rows[]? | select($3) | .samples] | add // 0"
}

try() {
	local source=$1 n daemon
	cpu1 0
	"$BUILD/morphd" --source="$source" --rate=1000 --db="$source.db" --json >out 2>err &
	daemon=$!
	until [ -s "$source.db" ] && [ -n "$(sqlite3 -readonly "$source.db" \
		"SELECT key FROM session" 2>/dev/null)" ]; do
		kill -0 $daemon 2>/dev/null || { fail "$source: $(cat err)"; return; }
		sleep 0.05
	done
	sleep 1
	# CPU 1 was offline.
	cpu1 1
	taskset -c 1 "$GUEST/variant1" 1500
	# Offline for a second; when it comes back, a program executes others all the time.
	cpu1 0
	sleep 1
	(for n in 1 2 3 4 5 6 7 8 9 10; do
		"$GUEST/variant2" 60 "$GUEST/variant3" 60 "$GUEST/variant2" 60 "$GUEST/variant3" 60
	done) &
	n=$!
	taskset -c 0 "$GUEST/variant4" 2000 &
	cpu1 1
	wait $n $!
	taskset -c 1 "$GUEST/variant5" 1500
	# Offline only for a moment.
	cpu1 0
	cpu1 1
	taskset -c 1 "$GUEST/variant6" 3000
	kill -TERM $daemon
	wait $daemon || fail "$source: exit $?: $(cat err)"

	# A slow emulator loses many interrupts. But if the new CPU had no
	# event, there would be no sample at all.
	for n in 1 5 6; do
		at_least "$source: variant$n" "$(rows "$source.db" $n ".function == \"hot$n\"")" 20
	done
	at_least "$source: variant2 and 3" $(($(rows "$source.db" 2 '.function == "hot2"') +
		$(rows "$source.db" 3 '.function == "hot3"'))) 20
	for n in 1 2 3 4 5 6; do
		# Each variant has its only busy code in a different page of 0x2000 to 0x9fff.
		wrong=$(rows "$source.db" $n "(.address | length) == 6 and .address >= \"0x2000\" and
			.address < \"0xa000\" and .function != \"hot$n\"")
		[ "$wrong" = 0 ] || fail "$source: $wrong samples of variant$n where it has no code"
	done
	jq -e '.emitted == .attributed + .unattributed + .lost and .lost * 20 < .emitted' out >/dev/null ||
		fail "$source: $(cat out)"
	echo "$source: $(jq -c '[.emitted, .attributed, .unattributed, .lost, .reasons["no-process"]]' out)"
}

at_least() { # WHAT COUNT MINIMUM
	[ "$2" -ge "$3" ] || fail "$1: $2 samples, at least $3 expected"
}

for source in kmod perf bpf; do
	[ $source != kmod ] || load
	try $source
	[ $source != kmod ] || unload
done
finish
