#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: the module is loaded again and again
# one kernel
# timeout: 100000
# insmod and rmmod under load, many times: with a reader that opens and closes the device, with a
# reader that is killed while it collects, and without a reader.
. "$(dirname "$0")/lib.sh"
# The load runs mostly while a reload waits for the kernel.
nice -n 5 "$GUEST/storm" 1000000 $((1 + LONG)) "$GUEST" 2>/dev/null &
load=$!
nice -n 5 "$GUEST/pause" &
pauses=$!
times=$((20 + LONG * 980))
for ((i = 1; i <= times; i++)); do
	case $((i % 4)) in
	0) load ;;
	1) load ring_kib=16; check rings restart 2 2000 >said ;;
	2)
		load mode=tick stack_depth=4
		"$GUEST/requests" hold >held &
		until [ -s held ]; do kill -0 $! || break; sleep 0.01; done
		kill -KILL $!
		wait $! 2>/dev/null ;;
	3) load rate=20000; check rings restart 1 2000 >said ;;
	esac
	unload
	[ "$nr_failed" = 0 ] || { cat said; break; }
	[ $((i % 100)) != 0 ] || echo "$i in $SECONDS s"
done
kill $load $pauses
wait $load $pauses 2>/dev/null
echo "$((i - 1)) times"
finish
