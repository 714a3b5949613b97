#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stacks by the module from end to end: the sandboxed reader compiles rows, morphd gives them to the module,
# whose walks become trees in the database. Of a stripped program of the distribution.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null && command -v sqlite3 >/dev/null || { echo "skip: jq or sqlite3 is missing"; exit 77; }

# is FILE FILTER: true of the JSON in FILE
is() { [ "$(jq "$2" "$1")" = true ] || fail "not $2: $(head -c 3000 "$1")"; }

load
"$BUILD/morphd" --source=kmod --stacks --rate 1000 --interval 1 --db m.db --json >m.json 2>m.err &
daemon=$!
# The session exists once sampling has begun.
until [ -n "$(sqlite3 -readonly m.db "SELECT key FROM session" 2>/dev/null)" ]; do
	kill -0 $daemon 2>/dev/null || { fail "morphd: $(cat m.err)"; finish; }
	sleep 0.1
done
# shellcheck disable=SC2016 # perl's
echo 'sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } f(22)' >work.pl
# The first run brings the rows of its files.
perl work.pl && sleep 2 && perl work.pl && perl work.pl || fail "perl: exit $?"
kill -TERM $daemon
wait $daemon || fail "morphd: exit $?: $(cat m.err)"
[ ! -s m.err ] || cat m.err
jq -c '{emitted, lost, stacks, stack_frames}' m.json
is m.json '.stacks.complete > 100 and .stack_frames > 4 * .stacks.complete'
is m.json '.stacks | ([.[]] | add) > 0 and .unsaid == 0 and .order == 0'
"$BUILD/morph-stats" --db m.db status --check >status.txt || fail "status --check: $(cat status.txt)"
"$BUILD/morph-stats" --db m.db query --by=context -m perl --json >contexts.json || fail "query --by=context"
head -c 600 contexts.json
is contexts.json '[.rows[].samples] | add > 50'
unload
finish
