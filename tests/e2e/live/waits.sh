#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Threads that wait in the kernel do not notice that morph live stopped them: no wait ends early, or with EINTR.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch waits
rounds=${ROUNDS:-25}
gcc -O1 -pthread -o waits "$root/tests/e2e/live/waits.c" || exit 1
mkfifo in
exec 9<>in
input=in start ./waits
version waits.live waits
for ((i = 0; i < rounds; i++)); do
	live adopt "$pid" waits.live || { fail "adopt $i: $(cat err.txt)"; break; }
	live undo "$pid" || { fail "undo $i: $(cat err.txt)"; break; }
done
echo >&9
wait "$pid" || fail "the process ends with $?"
says run.txt "^done [1-9]"
[ $nr_failed = 0 ] || cat run.txt
[ $nr_failed = 0 ]
