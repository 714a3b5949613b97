#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/bench/machine does a part's everyday work and says what it took. As root it does so below an overlay with the
# collector and the worker, measures unseen work in pairs, goes on where it was interrupted, and leaves nothing behind.
# check-all: it works for a minute
. "$(dirname "$0")/../lib.sh"
need python3 perl setpriv nsenter
# Units run as nobody, who has to reach their directory.
TMPDIR=/tmp scratch machine && chmod 755 "$dir"
export BUILD MORPH_NO_SETUP=1
machine=$root/scripts/bench/machine

command_ends 0 "one unit" "$machine" --work-only --part=c --seconds=1 --dir="$PWD/work"
grep -qE '^ +[0-9.]+ s  python: [0-9.]+ s user' out.txt || fail "no unit: $(cat out.txt)"
grep -qE '^1 units in [0-9]+ s: [0-9.]+ s user' out.txt || fail "no sum: $(cat out.txt)"
command_ends 2 "a part that there is not" "$machine" --part=z
command_ends 2 "one pair" "$machine" --part=c --pairs=1

if [ "$(id -u)" != 0 ]; then
	echo "not root: the whole was not tried"
	finish
	exit
fi
before=$(stat -c %i /usr/bin/perl)
# Interrupted: it continues with the units and rounds that it has.
"$machine" --part=c --minutes=0.1 --pairs=50 --dir="$PWD/whole" >out.txt 2>err.txt &
pid=$!
awaits 'grep -qs stock whole/c.json || ! kill -0 $pid 2>/dev/null'
kill -TERM $pid
wait $pid
if grep -E '^machine: (no overlay|apt-get)' err.txt; then
	echo "the whole was not tried"
	finish
	exit
fi
says whole/c.json stock "interrupted"
command_ends 0 "continued" "$machine" --json --part=c --minutes=0.1 --pairs=2 --dir="$PWD/whole"
python3 - out.txt <<'PY' || fail "JSON: $(cat out.txt)"
import json, sys
(part,) = json.load(open(sys.argv[1], encoding="utf-8"))
assert part["part"] == "c" and part["units"] >= 1 and part["pairs"] >= 2, part
assert set(part["unseen"]) == {"python", "perl", "ruby"}, part
for key in "user", "ratio":
    middle, low, high = part[key]
    assert 0 < low <= middle <= high, part
assert part["collector_percent"] > 0 and part["replaced"] == [], part
PY
[ "$(stat -c %i /usr/bin/perl)" = "$before" ] || fail "perl is another file"
! pgrep -f "$PWD/whole" >/dev/null || fail "processes are left: $(pgrep -af "$PWD/whole")"
! grep -q "$PWD/whole" /proc/mounts || fail "mounts are left"
finish
