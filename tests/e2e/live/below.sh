#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A thread whose stack lies among other data makes no system calls for morph live, which would write to these: no version is
# put in, and the data stay as they are.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch below
gcc -O1 -o below "$root/tests/e2e/live/below.c" || exit 1
mkfifo in
exec 9<>in
input=in start ./below
version below.live below
command_ends 75 "a stack among other data" "$BUILD/morph" live adopt "$pid" below.live
says err.txt "each lacks room on its stack"
[ "$(state)" = none ] || fail "something was changed: $(cat out.txt)"
echo >&9
wait "$pid" || fail "the process ends with $?"
says run.txt '^done'
[ $nr_failed = 0 ] || cat run.txt
[ $nr_failed = 0 ]
