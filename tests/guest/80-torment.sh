#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 3000
# Readers that keep no rule, that die, that find no memory; a load beside them, and CPUs that come
# and go. What the kernel says to it counts too: most on one that looks for mistakes.
. "$(dirname "$0")/lib.sh"
seconds=$((3 + LONG * 27))
leaks=/sys/kernel/debug/kmemleak
children=()
torment() { check torment "$@"; }

# beside COMMAND...: in the background, until the end
beside() {
	"$@" &
	children+=($!)
}

hotplug() {
	local cpu
	while :; do
		for cpu in /sys/devices/system/cpu/cpu[1-9]*; do
			echo 0 >"$cpu/online" 2>/dev/null
			sleep 0.5
			echo 1 >"$cpu/online" 2>/dev/null
			sleep 0.5
		done
	done
}

# maybe COMMAND...: 77 says that this kernel cannot do it
maybe() {
	"$GUEST/torment" "$@"
	case $? in
	0) ;;
	77) echo "$1: not on this kernel" ;;
	*) fail "torment $*" ;;
	esac
}

[ ! -e $leaks ] || echo clear >$leaks
for how in '' 'mode=tick ring_kib=16' 'stack_depth=16 rate=4000' 'rate=20000 ring_kib=16'; do
	echo "$how:"
	# shellcheck disable=SC2086
	load $how
	beside "$GUEST/torment" load 100000
	beside "$GUEST/torment" load 100000
	beside hotplug
	torment read $seconds 0 -1 0
	torment read $seconds 3000 0 100
	torment read $seconds 50 0 0
	torment read $seconds 0 1 0
	torment hostile $seconds
	torment die $seconds
	kill "${children[@]}"
	wait "${children[@]}" 2>/dev/null
	children=()
	for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[ ! -e "$cpu" ] || [ "$(cat "$cpu")" = 1 ] || echo 1 >"$cpu" || fail "$cpu stays off"
	done
	unload
done

load
beside "$GUEST/torment" read 100000 100 0 0
torment notes $seconds
maybe secret
kill "${children[@]}"
wait "${children[@]}" 2>/dev/null
maybe fail
unload

if [ -e $leaks ]; then
	# What is younger than 5 s is not looked at, and what one look finds may be on a stack.
	sleep 6
	echo scan >$leaks
	echo scan >$leaks
	grep -A 20 morph $leaks >leaked && fail "memory leaks: $(cat leaked)"
fi
finish
