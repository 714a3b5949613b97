#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: morphd in an emulator
# Stacks by the module from end to end: the sandboxed reader compiles rows, morphd gives them to the module,
# whose walks become trees in the database. Of a stripped program of the distribution.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null && command -v sqlite3 >/dev/null || { echo "skip: jq or sqlite3 is missing"; exit 77; }

# is FILE FILTER: true of the JSON in FILE
is() { [ "$(jq "$2" "$1")" = true ] || fail "not $2: $(head -c 3000 "$1")"; }

load
"$BUILD/morphd" --source=kmod --stacks --rate 250 --interval 1 --db m.db --json >m.json 2>m.err &
daemon=$!
# The session exists once sampling has begun.
until [ -n "$(sqlite3 -readonly m.db "SELECT key FROM session" 2>/dev/null)" ]; do
	kill -0 $daemon 2>/dev/null || { fail "morphd: $(cat m.err)"; finish; }
	sleep 0.1
done
# The first runs bring the rows of gzip's files. An emulator reads them slowly.
enough() {
	"$BUILD/morph-stats" --db m.db query --by=context -m gzip --json 2>/dev/null |
		jq -e '([.rows[].samples] | add // 0) > 20' >/dev/null &&
		[ "$(sqlite3 -readonly m.db "SELECT coalesce(sum(nr), 0) FROM ledger WHERE what = 'stacks:complete'")" -gt 50 ]
}
seq 1 60000 >numbers
for _ in {1..100}; do
	gzip -9 -c numbers >numbers.gz || fail "gzip: exit $?"
	! enough || break
done
kill -TERM $daemon
wait $daemon || fail "morphd: exit $?: $(cat m.err)"
cat m.err
jq -c '{emitted, lost, reasons, stacks, stack_frames}' m.json
is m.json '.stacks.complete > 50 and .stack_frames > 4 * .stacks.complete'
# Samples of no known process keep nothing of their stacks.
is m.json '.stacks.order == 0 and .stacks.unsaid <= .reasons["no-process"]'
"$BUILD/morph-stats" --db m.db status --check >status.txt || fail "status --check: $(cat status.txt)"
"$BUILD/morph-stats" --db m.db query --by=context -m gzip --json >contexts.json || fail "query --by=context"
head -c 600 contexts.json
is contexts.json '[.rows[].samples] | add > 20'
unload
finish
