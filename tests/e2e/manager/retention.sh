#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker drops profiles of files that are gone for the time `retention', and no others; the store
# stays sound.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch retention
cp newer gone
profile gone 3000
month=$((40 * 86400))

# has N WHAT: so many samples are left, and the ledgers say the same
has() {
	local nr
	nr=$(db "SELECT sum(nr_samples) FROM bucket")
	[ "$nr" = "$1" ] || fail "$2: $nr samples are left, not $1"
	"$BUILD/morph-stats" --db db status --check >out.txt 2>&1 || fail "$2: $(cat out.txt)"
}

work 0 "all are there" --now
has 15000 "all are there"
rm gone
work 0 "gone since now" --now
has 15000 "gone since now"
db "UPDATE module SET first_s = first_s - $month, last_s = last_s - $month"
policy
work 0 "samples of these days" --now
has 15000 "samples of these days"
for t in bucket activity; do
	db "UPDATE $t SET first_day = first_day - 40, last_day = last_day - 40"
done
policy "retention = 60d"
work 0 "a longer time" --now
has 15000 "a longer time"
policy
work 0 "gone for long" --now
has 12000 "gone for long"
[ "$(db 'SELECT count(*) FROM module')" = 1 ] || fail "gone for long: $(db 'SELECT path FROM module')"
[ "$(db "SELECT (SELECT count(*) FROM chunk WHERE bucket NOT IN (SELECT key FROM bucket)) +
	(SELECT count(*) FROM activity WHERE module NOT IN (SELECT key FROM module))")" = 0 ] || fail "rows are left"
says err.txt 'gone: its profile was dropped' "gone for long"

# ---- a profile without a ledger is a damaged store: nothing is dropped
db "UPDATE ledger SET nr = 10 WHERE what IN ('attributed', 'emitted')"
rm prog
work 1 "no ledger" --now
[ "$(db "SELECT sum(nr_samples) FROM bucket")" = 12000 ] || fail "no ledger, and yet dropped"
finish
