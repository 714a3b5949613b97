#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-fleet push: what leaves the host, in which pieces, what it says when the server is gone or refuses,
# and that only what changed is sent.
. "$(dirname "$0")/lib-fleet.sh"
need jq
fleet_start
"$fleet" init >/dev/null || exit 1

store=$BUILD/tools/fleet-store
[ -x "$store" ] || { echo "skip: fleet-store was not built"; exit 77; }
today=$(($(date +%s) / 86400))
fleet_host alpha --reader
fleet_host beta
unset MORPH_FLEET
echo machine >id
# push STATUS WHAT OPTION...: sends s.db as alpha
push() {
	command_ends "$1" "$2" "$fleet" push -d "$(<alpha.conn)" --db=s.db --machine-id=id --give-up=0 --json "${@:3}"
}

# ---- what is sent
for i in 1 2 3; do "$store" add s.db truth.db $i $today 4; done
push 0 "the first push"
json "the first push" '.rows > 0 and .nr_modules == 3 and .nr_batches == 1 and .nr_waits == 0 and .nr_epochs == 0 and .bytes > 0'
rows=$(jq .rows out.txt)
push 0 "a push without news"
json "a push without news" '.rows == 0 and .bytes == 0 and .nr_batches == 0'
"$store" add s.db truth.db 4 $today
push 0 "a push of one change"
json "only what changed" ".rows > 0 and .rows < $rows and .nr_modules == 1"
"$store" add s.db truth.db 5 $today 20
push 0 "small batches" --batch=1
json "small batches" '.nr_batches > 3 and .bytes / .nr_batches < 1100'

# A sparing push leaves today's counts of known modules for tomorrow, and then needs no server.
"$store" add s.db truth.db 16 $((today - 1)) 20
push 0 "another day"
"$store" add s.db truth.db 17 $today 3
command_ends 0 "a sparing push" "$fleet" push -d 'host=/nonexistent' --db=s.db --machine-id=id --give-up=0 --sparing --json
json "a sparing push" '.rows == 0 and .nr_waits == 0'
"$store" add s.db truth.db 18 $((today - 1))
push 0 "a sparing push of yesterday" --sparing
json "a sparing push of yesterday" '.rows > 0 and .nr_modules == 1'
push 0 "what the sparing push has left"
json "what the sparing push has left" '.rows > 0'

# A limit of bandwidth: bytes take at least as long as the limit says.
"$store" add s.db truth.db 15 $today 20
start=${EPOCHREALTIME/./}
push 0 "a limit of bandwidth" --rate=16
took=$((${EPOCHREALTIME/./} - start))
bytes=$(jq .bytes out.txt)
[ "$bytes" -gt 8000 ] && [ $((took * 16384 / 1000000)) -ge "$bytes" ] || fail "$bytes bytes at 16 KiB/s took $took us"

# ---- names: nothing is sent without a salt, hashes with one, paths only if that is configured
[ "$(fleet_sql "$ADMIN" 'SELECT count(name) FROM fleet.module_host')" = 0 ] || fail "names were sent without a salt"
head -c 32 /dev/urandom >salt
"$store" add s.db truth.db 6 $today 30
push 0 "hashed names" --salt-file=salt
[ "$(fleet_sql "$ADMIN" "SELECT count(*) FROM fleet.module_host WHERE name ~ '^#[0-9a-f]{32}\$'")" = 3 ] || fail "no hashed names"
want=$(printf /usr/bin/m1 | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(od -An -tx1 salt | tr -d ' \n')" -r | cut -c1-32)
[ "$(fleet_sql "$ADMIN" "SELECT count(*) FROM fleet.module_host WHERE name = '#$want'")" = 1 ] || fail "another hash than HMAC-SHA-256"
"$pg_bin/pg_dump" -d "$ADMIN" --data-only >dump.sql 2>/dev/null || fail "pg_dump"
[ "$(grep -c alpha dump.sql)" -gt 0 ] || fail "the dump has no rows"
# Lines of commands to psql have random words.
for secret in /usr/bin m1 "$(<id)" "$(hostname)"; do
	grep -v '^--\|^SELECT\|^SET\|^\\' dump.sql | grep -qF -e "$secret" && fail "the server knows $secret"
done
"$store" add s.db truth.db 7 $today 30
push 0 "plain names" --names=plain
[ "$(fleet_sql "$ADMIN" "SELECT count(*) FROM fleet.module_host WHERE name = '/usr/bin/m1'")" = 1 ] || fail "no plain names"

# ---- the configuration file
"$store" add s.db truth.db 8 $today
printf '# a fleet\ndatabase = %s\nnames = no\nrate = 100\n' "$(<alpha.conn)" >fleet.conf
command_ends 0 "a configuration file" "$fleet" push --config=fleet.conf --db=s.db --machine-id=id --give-up=0
says out.txt '^[1-9][0-9]* rows of 1 modules sent' "a configuration file"
echo 'names = loud' >>fleet.conf
command_ends 2 "a wrong value" "$fleet" push --config=fleet.conf --db=s.db
says err.txt 'fleet.conf:5: names = loud: not hashed, plain or no' "a wrong value"
one_line "a wrong value"
command_ends 2 "no fleet" "$fleet" push --db=s.db --config=/dev/null
one_line "no fleet"
command_ends 3 "no store" "$fleet" push -d "$(<alpha.conn)" --db=none.db
one_line "no store"
[ ! -e none.db ] || fail "a store was made"

# ---- refusals
flock s.db "$fleet" push -d "$(<alpha.conn)" --db=s.db --give-up=0 >out.txt 2>err.txt
[ $? = 75 ] || fail "two at once: $(<err.txt)"
says err.txt 'another push' "two at once"
"$fleet" ban alpha -d "$ADMIN"
"$store" add s.db truth.db 9 $today
push 1 "a banned host"
one_line "a banned host"
"$fleet" unban alpha -d "$ADMIN"
# One odd module does not hold up the others. Its key is lower than that of others.
"$store" odd odd.db
for i in 21 22 23; do "$store" add odd.db odd-truth.db $i $today 3; done
command_ends 0 "an odd module" "$fleet" push -d "$(<beta.conn)" --db=odd.db --machine-id=id --give-up=0 --json
json "an odd module" '.nr_refused == 1 and .nr_modules == 3'
says err.txt 'refuses the counts of 1 modules: /usr/bin/m9: .*more than a text of' "an odd module"
command_ends 0 "an odd module again" "$fleet" push -d "$(<beta.conn)" --db=odd.db --machine-id=id --give-up=0 --json
json "an odd module again" '.nr_refused == 1 and .rows == 0'
fleet_sql "$ADMIN" "DELETE FROM fleet.evidence WHERE host = (SELECT id FROM fleet.host WHERE name = 'beta')" >/dev/null
sed 's/user=beta/user=alpha/' beta.conn >stolen.conn
command_ends 75 "a certificate of another host" "$fleet" push -d "$(<stolen.conn)" --db=s.db --give-up=0

# ---- the server is gone, comes back, and has everything
cluster_stop pg
push 75 "a server that is gone"
one_line "a server that is gone"
says err.txt 'connect to the fleet' "a server that is gone"
"$fleet" push -d "$(<alpha.conn)" --db=s.db --machine-id=id --give-up=60 --retry=0.1 --json >waited.txt 2>waited.err &
pusher=$!
# It sleeps (nanosleep, clock_nanosleep) before its next attempt.
awaits 'grep -qE "^(35|230) " /proc/$pusher/syscall'
fleet_restart
wait $pusher || fail "a server that comes back: status $?: $(<waited.err)"
jq -e '.rows > 0 and .nr_waits > 0' waited.txt >/dev/null || fail "a server that comes back: $(<waited.txt)"
# A store that another server took begins anew there; the host's own server then has it all again.
fleet_sql "$ADMIN" 'TRUNCATE fleet.evidence, fleet.epoch' >/dev/null || fail "truncate"
push 0 "a server that lost everything"
json "a server that lost everything" ".rows >= $rows"
"$fleet" pull -d "$(<alpha.conn)" --cap=1 --top=9 -o sum.db >/dev/null 2>err.txt || fail "pull: $(<err.txt)"
"$store" compare truth.db sum.db || fail "the sums are not the truth"

# ---- a copy of the store on another machine sends only what it counts there
sqlite3 s.db "VACUUM INTO 'copy.db'" 2>/dev/null || cp s.db copy.db
echo other >other
command_ends 0 "a copy" "$fleet" push -d "$(<beta.conn)" --db=copy.db --machine-id=other --give-up=0 --json
json "a copy" '.rows == 0 and .nr_epochs == 1'
says err.txt 'copy of one that the fleet knows' "a copy"
"$store" add copy.db truth.db 10 $today
command_ends 0 "a copy with counts of its own" "$fleet" push -d "$(<beta.conn)" --db=copy.db --machine-id=other --give-up=0 --json
json "a copy with counts of its own" '.rows > 0 and .nr_epochs == 0'
"$fleet" pull -d "$(<alpha.conn)" --cap=1 --top=9 -o sum.db >/dev/null 2>err.txt || fail "pull: $(<err.txt)"
"$store" compare truth.db sum.db || fail "the sums with a copy are not the truth"

# ---- copies of a store that never sent: what they share counts once
if [ -s /etc/machine-id ]; then
	"$store" add image.db truth.db 31 $today
	for name in first second elsewhere; do
		sqlite3 image.db "VACUUM INTO '$name.db'"
	done
	# as it is where the image was copied to
	sqlite3 elsewhere.db "UPDATE fleet_epoch SET machine = randomblob(16)"
	copied() { # WHAT STORE HOST
		command_ends 0 "$1" "$fleet" push -d "$(<"$3.conn")" --db="$2.db" --give-up=0 --json
	}
	copied "the first copy" first alpha
	json "the first copy" '.rows > 0 and .nr_epochs == 0'
	copied "a copy on the same machine" second alpha
	json "a copy on the same machine" '.rows == 0 and .nr_epochs == 1'
	copied "a copy on another machine" elsewhere beta
	json "a copy on another machine" '.rows == 0 and .nr_epochs == 1'
	says err.txt 'copy of one that the fleet knows' "a copy on another machine"
	for name in first second elsewhere; do
		"$store" add $name.db truth.db $((32 + ${#name})) $today
		copied "what $name counts" $name "$([ $name = elsewhere ] && echo beta || echo alpha)"
		json "what $name counts" '.rows > 0 and .nr_epochs == 0'
	done
	"$fleet" pull -d "$(<alpha.conn)" --cap=1 --top=9 -o sum.db >/dev/null 2>err.txt || fail "pull: $(<err.txt)"
	"$store" compare truth.db sum.db || fail "the sums with copies of a new store are not the truth"
else
	echo "left out: copies of a store that never sent (this machine has no machine-id)"
fi

# ---- two copies that cannot be told apart: what the second one has not sent when the first one sends is left
# out, as the documentation says, and nothing counts twice
push 0 "before the twin"
sqlite3 s.db "VACUUM INTO 'twin.db'" 2>/dev/null || cp s.db twin.db
twin() {
	command_ends 0 "$1" "$fleet" push -d "$(<alpha.conn)" --db=twin.db --machine-id=id --give-up=0 --json
}
"$store" add s.db truth.db 11 $today
"$store" add twin.db lost.db 12 $today
push 0 "the first of two copies"
twin "the second of two copies"
json "the second of two copies" '.rows == 0 and .nr_epochs == 1'
"$store" add twin.db truth.db 13 $today
"$store" add s.db truth.db 14 $today
twin "the second one goes on"
push 0 "the first one goes on"
json "the first one goes on" '.rows > 0 and .nr_epochs == 0'
"$fleet" pull -d "$(<alpha.conn)" --cap=1 --top=9 -o sum.db >/dev/null 2>err.txt || fail "pull: $(<err.txt)"
"$store" compare truth.db sum.db || fail "the sums with two copies are not the truth"

# ---- a server that was not upgraded says so, and nothing is lost
"$store" add s.db truth.db 15 $today
fleet_sql "$ADMIN" 'ALTER FUNCTION fleet.slices(bigint[], bytea) RENAME TO missing' || fail "no function"
push 1 "an older schema"
says err.txt 'the server.s schema is older than this program; an operator runs morph-fleet upgrade'
fleet_sql "$ADMIN" 'ALTER FUNCTION fleet.missing(bigint[], bytea) RENAME TO slices'
push 0 "after the upgrade"
json "after the upgrade" '.rows > 0'
[ $nr_failed = 0 ]
