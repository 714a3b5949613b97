#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Exceptions, cancellation and backtraces in signal handlers go on through copies while morph live puts these into the
# process and takes them back. Without the unwinders' page, the process would end at once.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch throws
need g++
rounds=${ROUNDS:-25}
g++ -O2 -pthread -o throws "$root/tests/e2e/live/throws.cc" || exit 1
start ./throws
version throws.live throws
for ((i = 0; i < rounds; i++)); do
	live adopt "$pid" throws.live || { fail "adopt $i: $(cat err.txt)"; break; }
	sleep 0.0$((RANDOM % 10))
	live undo "$pid" || { fail "undo $i: $(cat err.txt)"; break; }
done
live adopt "$pid" throws.live || fail "adopt at the end: $(cat err.txt)"
sleep 0.3
# A second version in the same process: of the C++ library.
library=$(awk '$6 ~ /libstdc\+\+/ { print $6; exit }' "/proc/$pid/maps")
if version library.live "$library"; then
	live adopt "$pid" library.live || fail "adopt a library: $(cat err.txt)"
	live status "$pid"
	[ "$(jq '.processes | length' out.txt)" = 2 ] || fail "not two versions: $(cat out.txt)"
	sleep 0.3
	live undo "$pid" || fail "undo both: $(cat err.txt)"
	text_is "$library" || fail "the library's code differs from the file's"
	text_is throws || fail "the code differs from the file's"
fi
ends_right
[ $nr_failed = 0 ]
