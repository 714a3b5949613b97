#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-fleet pull, and --fleet of morph-stats and morph-optimize: a pull replaces the one before, what the
# server says is checked, and the fleet's profile makes the same file as the same profile from a store.
. "$(dirname "$0")/lib-fleet.sh"
need jq gcc objdump sqlite3
fleet_start
"$fleet" init >/dev/null || exit 1

store=$BUILD/tools/fleet-store
[ -x "$store" ] || { echo "skip: fleet-store was not built"; exit 77; }
today=$(($(date +%s) / 86400))
for name in alpha beta gamma; do
	fleet_host $name --reader
	echo $name >$name.id
done
unset MORPH_FLEET
conn=$(<alpha.conn)
mkdir tmp
export TMPDIR=$dir/tmp
# send NAME DB: sends a store
send() {
	command_ends 0 "push of $1" "$fleet" push -d "$(<"$1.conn")" --db="$2" --machine-id="$1.id" --give-up=0
}
# pull STATUS WHAT OPTION...
pull() {
	command_ends "$1" "$2" "$fleet" pull -d "$conn" "${@:3}"
}

hot_program prog
id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
callgrind_counts prog hot 50000 >one.out
callgrind_counts prog hot 7 >two.out
"$BUILD/morph-stats" -d one.db import one.out >/dev/null && "$BUILD/morph-stats" -d two.db import two.out >/dev/null || exit 1
send alpha one.db
send beta two.db
nr=$(($(wc -l <one.out) - 7))

# ---- sums, caps, and whose counts
pull 0 "a file" -o out.db --cap=1 --json prog
json "a file" ".modules | length == 1 and (.[0] | .samples == $((nr * 50007)) and .nr_hosts == 2 and .bad_rows == 0 and .outside == 0)"
pull 0 "a build-id" -o id.db --cap=1 --json "$id"
json "a build-id" ".modules[0].samples == $((nr * 50007))"
pull 0 "a part of a build-id" -o id.db --json "${id:0:8}"
# alpha has more than all others: it counts with what beta has.
json "a robust sum" ".modules[0].samples == $((nr * 14))"
want=$(fleet_sql "$ADMIN" "SELECT sum(count) FROM fleet.module m, fleet.sum_counts(m.module, 0, 99999, 0.9)")
[ "$want" = $((nr * 14)) ] || fail "the database's robust sum is $want"
pull 0 "a store that has the host's own counts" --db=one.db --cap=1 --json prog
json "a store that has the host's own counts" ".modules[0] | .samples == $((nr * 7)) and .nr_hosts == 1"
pull 0 "all hosts" --db=all.db --all-hosts --cap=1 --json prog
json "all hosts" ".modules[0].nr_hosts == 2"

# ---- a second pull replaces the first
[ "$("$store" sum one.db)" = "$((nr * 50007)) 0 1" ] || fail "after a pull: $("$store" sum one.db)"
send beta two.db
"$BUILD/morph-stats" -d two.db import two.out >/dev/null
send beta two.db
for _ in 1 2 3; do pull 0 "again" --db=one.db --cap=1 prog; done
[ "$("$store" sum one.db)" = "$((nr * 50014)) 0 1" ] || fail "after four pulls: $("$store" sum one.db)"
send alpha one.db
says out.txt '^0 rows' "what was pulled is not sent"
pull 0 "a file again" -o out.db --cap=1 prog
[ "$("$store" sum out.db)" = "$((nr * 50014)) 0 1" ] || fail "a file again: $("$store" sum out.db)"
pull 1 "a file with other counts is not replaced" -o two.db prog
says err.txt 'no pull wrote it' "a file with other counts"
[ "$("$store" sum two.db)" = "$((nr * 14)) 0 1" ] || fail "two.db was changed"

# ---- as of a day
"$store" add days.db truth.db 1 $((today - 5))
send gamma days.db
pull 3 "before the first day" -o days-out.db --as-of=@$(((today - 6) * 86400)) a000 a100 a200
[ ! -e days-out.db ] || fail "a file without a profile"
"$store" add days.db later.db 2 $((today - 1))
send gamma days.db
pull 0 "as of a day" -o days-out.db --cap=1 --as-of=@$(((today - 3) * 86400)) --top=9
"$store" compare truth.db days-out.db || fail "as of a day: another sum"

# ---- what is not there
pull 3 "an unknown build-id" -o none.db 0123456789
one_line "an unknown build-id"
pull 3 "an unknown file" -o none.db "$BUILD/morph-stats"
pull 1 "no file and no build-id" -o none.db nowhere
one_line "no file and no build-id"
[ ! -e none.db ] || fail "none.db was made"
command_ends 75 "no server" "$fleet" pull -d "host=127.0.0.1 port=1 dbname=x" -o none.db prog
one_line "no server"

# ---- what hosts send may be anything: rows that are not sound, and addresses outside of the code
fleet_sql "$ADMIN" "UPDATE fleet.evidence SET data = '\\xff' WHERE host = (SELECT id FROM fleet.host WHERE name = 'beta')" >/dev/null
pull 0 "a row that is not sound" -o out.db --cap=1 --json prog
json "a row that is not sound" ".modules[0] | .samples == $((nr * 50000)) and .bad_rows > 0"
says err.txt 'not sound' "a row that is not sound"
fleet_sql "$ADMIN" "UPDATE fleet.evidence SET data = '\\x03e807', total = 1000 WHERE host = (SELECT id FROM fleet.host WHERE name = 'beta')" >/dev/null
pull 0 "counts outside of the code" -o out.db --cap=1 --json prog
json "counts outside of the code" ".modules[0] | .samples == $((nr * 50000)) and .outside > 0"
says err.txt 'outside of the file' "counts outside of the code"
fleet_sql "$ADMIN" "DELETE FROM fleet.evidence WHERE host = (SELECT id FROM fleet.host WHERE name = 'beta')" >/dev/null

# ---- lists
command_ends 0 "modules" "$fleet" modules -d "$conn" --json
json "modules" "[.rows[] | select(.build_id == \"$id\")] | length == 1 and .[0].samples == $((nr * 50000)) and .[0].nr_hosts == 1"
command_ends 0 "hosts" "$fleet" hosts -d "$conn" --json prog
json "hosts" '.rows | length == 1 and .[0].name == "alpha" and .[0].weight == 1'
command_ends 0 "hosts of a build-id" "$fleet" hosts -d "$conn" "$id"
says out.txt '^alpha  *[0-9]' "hosts of a build-id"
head -c 16 /dev/zero >salt
"$BUILD/morph-stats" -d one.db import two.out >/dev/null
command_ends 0 "push with names" "$fleet" push -d "$conn" --db=one.db --machine-id=alpha.id --salt-file=salt
command_ends 0 "versions" "$fleet" versions -d "$conn" --salt-file=salt --json prog
json "versions" ".rows | length == 1 and .[0].build_id == \"$id\" and .[0].nr_hosts == 1"
command_ends 3 "versions of another file" "$fleet" versions -d "$conn" --salt-file=salt other

# ---- the other programs
command_ends 0 "morph-stats" "$BUILD/morph-stats" query --fleet="$conn" --binary=prog --json
json "morph-stats" ".rows | length == 1 and .[0].function == \"hot\""
command_ends 0 "morph-stats with all modules" "$BUILD/morph-stats" query --fleet="$conn" --json
json "morph-stats with all modules" ".rows | length >= 2"
command_ends 3 "a file of which the fleet knows nothing" "$BUILD/morph-stats" query --fleet="$conn" --binary="$BUILD/morph-stats"
pull 0 "the profile" -o profile.db prog
command_ends 0 "morph-optimize" "$BUILD/morph-optimize" --fleet="$conn" prog -o from-fleet
command_ends 0 "morph-optimize with a store" "$BUILD/morph-optimize" --db=profile.db prog -o from-store
cmp from-fleet from-store || fail "the same profile gives another file"
./from-fleet 5 >/dev/null || fail "the optimised file does not run"
command_ends 2 "two profiles" "$BUILD/morph-optimize" --fleet="$conn" --db=profile.db prog -o x
command_ends 3 "no profile" "$BUILD/morph-optimize" --fleet="$conn" "$BUILD/morph-stats" -o x
mkdir alone
cp "$BUILD/morph-optimize" "$BUILD/morph-stats" alone/
PATH=/usr/bin:/bin command_ends 1 "without morph-fleet" alone/morph-optimize --fleet="$conn" prog -o x
says err.txt 'morph-fleet is not installed' "without morph-fleet"
PATH=/usr/bin:/bin command_ends 1 "morph-stats without morph-fleet" alone/morph-stats query --fleet="$conn"
says err.txt 'morph-fleet is not installed' "morph-stats without morph-fleet"
# The temporary database is removed, also after kill -9.
{
	"$BUILD/morph-optimize" --fleet="$conn" prog -o y >/dev/null 2>&1 &
	sleep 0.05
	kill -9 $!
	wait $!
} 2>/dev/null
awaits '[ -z "$(ls -A tmp)" ]' || fail "left behind: $(ls -A tmp)"
[ $nr_failed = 0 ]
