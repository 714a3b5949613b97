#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: readers that follow no rule, for seconds each
# timeout: 3000
# Readers that follow no rule, that die, that find no memory; with load, and
# with CPUs that go offline and come back. Messages of the kernel are
# failures too; a kernel with lockdep and KASAN finds most.
. "$(dirname "$0")/lib.sh"
seconds=$((1 + LONG * 29))
ways=('' 'mode=tick ring_kib=16' 'stack_depth=16 rate=4000' 'rate=20000 ring_kib=16')
[ "$LONG" = 1 ] || ways=("${ways[2]}")
leaks=/sys/kernel/debug/kmemleak
children=()
stress() { check stress "$@"; }

# beside COMMAND...: run in the background until the end
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

[ ! -e $leaks ] || echo clear >$leaks
for how in "${ways[@]}"; do
	echo "$how:"
	# shellcheck disable=SC2086
	load $how
	beside "$GUEST/stress" load 100000
	beside "$GUEST/stress" load 100000
	beside hotplug
	stress read $seconds 0 -1 0
	stress read $seconds 3000 0 100
	stress read $seconds 50 0 0
	stress read $seconds 0 1 0
	stress hostile $seconds
	stress die $seconds
	kill "${children[@]}"
	wait "${children[@]}" 2>/dev/null
	children=()
	for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[ ! -e "$cpu" ] || [ "$(cat "$cpu")" = 1 ] || echo 1 >"$cpu" || fail "$cpu stays off"
	done
	unload
done

load
beside "$GUEST/stress" read 100000 100 0 0
stress notes $seconds
kill "${children[@]}"
wait "${children[@]}" 2>/dev/null
# Fail allocations of all kinds, also those that may wait, without a message for each.
for kind in failslab fail_page_alloc; do
	dir=/sys/kernel/debug/$kind
	if [ -e $dir ]; then
		echo N >$dir/ignore-gfp-wait
		echo 0 >$dir/verbose
		[ ! -e $dir/min-order ] || echo 0 >$dir/min-order
	fi
done
# For each failed allocation the kernel prints a call chain, which is expected here. Keep it off the
# console, and search the log for real errors.
read -r level _ </proc/sys/kernel/printk
echo 1 >/proc/sys/kernel/printk
dmesg -C
"$GUEST/stress" fail
failed=$?
dmesg | grep -E 'BUG:|WARNING:|KASAN|UBSAN|ODEBUG|possible .* locking|suspicious RCU' && fail "see above"
echo "$level" >/proc/sys/kernel/printk
case $failed in
0) ;;
77) echo "no allocation can be made to fail on this kernel" ;;
*) fail "stress fail" ;;
esac
unload

if [ -e $leaks ]; then
	# kmemleak skips memory younger than 5 s. One scan may still find a pointer on a stack.
	sleep 6
	echo scan >$leaks
	echo scan >$leaks
	grep -A 20 morph $leaks >leaked && fail "memory leaks: $(cat leaked)"
fi
finish
