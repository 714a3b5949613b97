#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone
# alone: it samples
# morph-worker makes a kept version anew when the use of the program has changed, by samples of the version in
# place, and not before; the new version is made for the new use. The samples are real.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch ageing
sampling
rm -f db db-*
gcc -O2 -Wl,--emit-relocs -o original "$root/tests/e2e/manager/server.c" || exit 1
cp original prog
speed 120
rule "mode = adopt" "$(by_speed)"
policy "min-samples = 1000" "probation = 0" "retry = 1s"
# all samples so far were taken so many days ago
days_ago() {
	local t
	for t in bucket activity edge_bucket path_bucket copy_bucket; do
		db "UPDATE $t SET first_day = first_day - $1, last_day = last_day - $1" 2>/dev/null
	done
	db "UPDATE job SET adopted_s = adopted_s - $1 * 86400"
}
# a day is over, and the worker may look again
due() {
	db "UPDATE job SET not_before_s = 0"
}
# moved FUNCTION: does prog have a copy of it?
moved() {
	objdump -t prog | grep -q "\.morph\.text.* $1$"
}

sampled db "$dir/prog" 3000 ./prog work 1000
work 0 "kept" --now
state_is kept "kept"
moved work || fail "kept: work was not moved"
moved other && fail "kept: other was moved without a sample"
days_ago 30

# ---- few samples of these days, then many, of the same use: it stays
due
work 0 "no samples" --now
state_is kept "no samples"
cp prog first
sampled db "$dir/prog" 5000 ./prog work 3000
due
work 0 "the same use" --now
state_is kept "the same use"
cmp prog first || fail "the same use: another version"
[ "$(db 'SELECT not_before_s > since_s FROM job')" = 1 ] || fail "the same use: nobody looked"
[ "$(db 'SELECT max(round) FROM history')" = 1 ] || fail "the same use: a new round"
[ -z "$(ls state/*/ 2>/dev/null)" ] || fail "the same use: left behind: $(ls state/*/)"
days_ago 30

# ---- another use
sampled db "$dir/prog" 8000 ./prog other 2000
policy "min-samples = 1000" "probation = 0" "ageing = 100%"
due
work 0 "a large margin" --now
state_is kept "a large margin"
cmp prog first || fail "a large margin: another version"
policy "min-samples = 1000" "probation = 0"
due
work 0 "another use" --now
state_is kept "another use"
says err.txt 'prog: undoing: its use has changed: by the samples of these days it saves .* %, and a new version .* %\|prog: undoing: its use has changed: by the samples of these days it saves' "another use"
moved other || fail "another use: other was not moved"
[ "$(db "SELECT group_concat(step || ':' || verdict, ' ') FROM (SELECT * FROM history WHERE round = 2 ORDER BY key)")" = \
	"aged:changed profile:done write:done verify:done audit:faster adopt:done probation:kept" ] ||
	fail "another use: $(db 'SELECT round, step, verdict, reason FROM history')"
[ "$(db 'SELECT count(*) FROM rejected_layout')" = 0 ] || fail "another use: the old version is rejected"
[ "$(./prog other 20)" = "$(./original other 20)" ] || fail "another use: another output"
"$BUILD/morph-stats" --db db status --check >out.txt 2>&1 || fail "another use: $(cat out.txt)"
due
work 0 "fresh" --now
[ "$(db 'SELECT max(round) FROM history')" = 2 ] || fail "fresh: again a new round"
finish
