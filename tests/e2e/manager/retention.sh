#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker drops profiles of files that are gone for the time `retention', and no others, also while a
# collector runs; the store stays sound. Backups at whose places no version of Morph lies go after that time.
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
# ---- backups: that of a file that is gone goes after the time, others stay
age() { # SECONDS: the notes say that all was seen so long ago
	jq "map_values(. - $1)" state/old-backups >notes && cat notes >state/old-backups
	find backup -name '*.json' -exec touch -d "-$(($1 + 100)) seconds" {} +
}
kept() { # NR WHAT
	[ "$(find backup -type f | wc -l)" = "$1" ] || fail "$2: $(find backup -type f)"
}
rm -rf db db-* state
cp original prog
profile prog 12000
speed 120
rule "mode = adopt" "$(by_speed)"
work 0 "in use" --now
state_is adopted "in use"
kept 2 "in use"
work 0 "in use, a look" --now
age 7200
work 0 "in use for long" --now
kept 2 "in use for long"
cp prog output
rm prog
age 7200
work 0 "gone since now" --now
age 7200
work 0 "gone for hours" --now
kept 2 "gone for hours"
cp output prog
age $month
work 0 "back again" --now
kept 2 "back again"
rm prog
age 7200
work 0 "gone again" --now
age $month
rm backup/*/*.json.new 2>/dev/null
echo '{"places": [{"path": "/nowhere"}]' >"$(dirname "$(find backup -name '*.json')")/00000000000000000000000000000000.json"
work 0 "gone for a month" --now
says err.txt "^morph-worker: $dir/prog: no version of Morph is in its place any more: the backup was removed" "gone for a month"
kept 1 "gone for a month: a record that nobody understands stays"
finish
