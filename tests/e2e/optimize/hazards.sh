#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: each of a hundred programs is built, moved and run
# A part of tests/hazards, covering every way of building over time, and of this machine's own
# programs: moved, they give the same output and status.
. "$(dirname "$0")/../lib.sh"
scratch hazards
need gcc g++ clang nm readelf objdump strip
export LC_ALL=C

"$root/scripts/check/hazards" --every=13 --seeds=1 >out.txt || fail "hazards: exit $?"
cat out.txt
# Enough must have been built, moved and run for the result to mean something.
read -r builds < <(sed -n 's/.* programs, \([0-9]*\) builds.*/\1/p' out.txt)
[ "${builds:-0}" -ge 60 ] || fail "only ${builds:-no} builds"
read -r moved stayed < <(sed -n 's/.*: \([0-9]*\) moved, \([0-9]*\) stayed/\1 \2/p' out.txt)
[ "${moved:-0}" -gt $((2 * ${stayed:-0})) ] || fail "only ${moved:-none} moved"

# The programs run as nobody, who cannot enter this test's own directory.
TMPDIR=/tmp "$root/scripts/check/sweep" --every=29 --max-size=4000000 >out.txt || fail "sweep: exit $?"
cat out.txt
finish
