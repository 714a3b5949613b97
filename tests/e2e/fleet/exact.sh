#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: 120 pushes, with clients and servers killed on the way
# The fleet's sums of counts, transfers, paths and calling contexts equal the truth to the last count, whatever happens on the way: kill -9 of clients and of
# the server at random moments, batches that come twice, late or in another order, clocks that jump, days that
# are folded, hosts that are restored from backups, and hosts that are cloned.
# PUSHES= says how many pushes there are (default 120), SEED= which ones.
. "$(dirname "$0")/lib-fleet.sh"
need setpriv
fleet_start
"$fleet" init >/dev/null || exit 1
store=$BUILD/tools/fleet-store
[ -x "$store" ] || { echo "skip: fleet-store was not built"; exit 77; }
today=$(($(date +%s) / 86400))
RANDOM=${SEED:-1} pushes=${PUSHES:-120}
nr_pushes=0 nr_adds=0 nr_killed=0 nr_crashes=0 nr_restored=0 nr_replayed=0 nr_later=0 nr_waits=0

# HOST -> its certificate's name and its machine. e is a clone of b: the same certificate, the same machine.
declare -A role=([a]=a [b]=b [c]=c [d]=d [e]=b) machine=([a]=1 [b]=2 [c]=3 [d]=4 [e]=2)
for m in 1 2 3 4; do echo "machine $m" >machine$m; done
for name in a b c d; do fleet_host $name --reader; done
hosts="a b c"

# add HOST: counts of some day. Most are of this week; clocks jump, to 1970 as well.
add() {
	local day=$((today - RANDOM % 9))
	[ $((RANDOM % 6)) != 0 ] || day=$((today + RANDOM % 4000))
	[ $((RANDOM % 6)) != 0 ] || day=$((RANDOM % today))
	[ $((RANDOM % 20)) != 0 ] || day=0
	"$store" add-all "$1.db" truth.db $((++nr_adds * 7919 + ${SEED:-1})) $day $((1 + RANDOM % 3)) ||
		fail "add to $1"
}

push() {
	exec "$fleet" push -d "$(<"${role[$1]}.conn")" --db="$1.db" --machine-id="machine${machine[$1]}" \
		--batch=1 --contexts=always --give-up="${2:-1}" --retry=0.05 >"$1.out" 2>"$1.err"
}

# push_all: the hosts send at the same time; some are killed, and sometimes the server is
push_all() {
	local host status
	declare -A pids=()
	for host in $hosts; do
		nr_pushes=$((nr_pushes + 1))
		push "$host" &
		pids[$host]=$!
	done
	for host in $hosts; do
		[ $((RANDOM % 5)) -lt 3 ] || continue
		sleep "0.0$((RANDOM % 6))$((RANDOM % 10))"
		kill -9 "${pids[$host]}" 2>/dev/null && nr_killed=$((nr_killed + 1))
	done
	if [ $((RANDOM % 8)) = 0 ]; then
		sleep "0.0$((RANDOM % 4))"
		fleet_crash
		fleet_restart
		nr_crashes=$((nr_crashes + 1))
	fi
	for host in $hosts; do
		status=0
		wait "${pids[$host]}" 2>/dev/null || status=$?
		case $status in
		0 | 137) ;;
		75) nr_later=$((nr_later + 1)) ;;
		*) fail "push of $host: status $status: $(cat "$host.err")" ;;
		esac
	done
}

# push_surely HOST
push_surely() {
	nr_pushes=$((nr_pushes + 1))
	(push "$1" 30) || fail "push of $1 at last: status $?: $(cat "$1.err")"
}

# copy FROM TO: a store, as a backup or a snapshot of the disk has it
copy() {
	rm -f "$2" "$2-wal" "$2-shm"
	cp "$1" "$2"
	[ ! -e "$1-wal" ] || cp "$1-wal" "$2-wal"
}

# Rows as the server had them at some moment are sent again later, in another order.
remember() {
	fleet_sql "$ADMIN" "SET client_min_messages = warning; DROP TABLE IF EXISTS replay; CREATE TABLE replay AS SELECT * FROM fleet.evidence WHERE random() < 0.3" >/dev/null
}
replay() {
	local n
	n=$(fleet_sql "$ADMIN" "SELECT count(*) FROM replay") || n=0
	for name in a b c d; do
		fleet_sql "$ADMIN" "CREATE TEMP TABLE late AS SELECT r.*, e.epoch AS name FROM replay r
				JOIN fleet.host h ON h.id = r.host AND h.name = '$name' JOIN fleet.epoch e ON e.host = r.host AND e.number = r.epoch;
			GRANT SELECT ON late TO $name; SET SESSION AUTHORIZATION $name;
			SELECT fleet.push_rows(name, seq, array_agg(module), array_agg(kind), array_agg(first_day),
				array_agg(NULL::int), array_agg(last_day), array_agg(chunk), array_agg(exact), array_agg(total),
				array_agg(data)) FROM (SELECT * FROM late ORDER BY random()) l GROUP BY name, seq" >replayed.txt 2>&1 ||
			grep -q MF001 replayed.txt || grep -q "permission\|batch" replayed.txt || fail "replay: $(head -n 3 replayed.txt)"
		[ -z "$(grep -v '^0$' replayed.txt | grep '^[0-9]*$')" ] || fail "late rows of $name were taken: $(cat replayed.txt)"
	done
	nr_replayed=$((nr_replayed + n))
}

restore() {
	[ -e "$1.backup" ] || return
	push_surely "$1"
	copy "$1.backup" "$1.db"
	push_surely "$1"
	nr_restored=$((nr_restored + 1))
}

# some_host: sets $name
some_host() {
	local all
	read -ra all <<<"$hosts"
	name=${all[RANDOM % ${#all[@]}]}
}

for name in a b c; do add $name; done
for ((round = 1; nr_pushes < pushes; round++)); do
	for name in $hosts; do
		[ $((RANDOM % 4)) = 0 ] || add "$name"
	done
	push_all 2>jobs.txt
	case $((RANDOM % 8)) in
	0 | 1) some_host && copy "$name.db" "$name.backup" ;;
	2 | 3) some_host && restore "$name" ;;
	4) remember ;;
	5) [ -z "$(fleet_sql "$ADMIN" "SELECT to_regclass('replay')")" ] || replay ;;
	esac
	# d is a clone of a on another machine. What a has not sent, a will send.
	if [ $round = 8 ]; then
		copy a.db d.db
		push_surely d
		hosts="$hosts d"
	fi
	# e is a clone of b that cannot be told from it. Whoever sends second notices; all of the clone was sent by b.
	if [ $round = 14 ]; then
		add b
		copy b.db e.db
		push_surely b
		push_surely e
		hosts="$hosts e"
	fi
done
for name in $hosts; do push_surely "$name"; done

"$fleet" pull -d "$(<a.conn)" --cap=1 --top=100 -o sum.db >pull.txt 2>&1 || fail "pull: $(cat pull.txt)"
"$store" compare truth.db sum.db || fail "the fleet's sums are not the truth"
read -r samples transfers modules < <("$store" sum truth.db)
[ "$("$store" sum sum.db)" = "$samples $transfers $modules" ] || fail "$("$store" sum sum.db), not $samples $transfers $modules"
# The database itself adds up to the same.
sum=$(fleet_sql "$ADMIN" "SELECT sum(s.count) FROM fleet.module m, fleet.sum_counts(m.module, 0, 2147483647, 1) s")
[ "$sum" = "$samples" ] || fail "the database's sum is $sum, not $samples"
# Nothing is sent twice: now there is nothing to send.
for name in $hosts; do
	push_surely "$name"
	says "$name.out" '^0 rows' "a second push of $name"
	"$store" sum "$name.db" >/dev/null || fail "the store of $name"
done
"$fleet" check >check.txt || fail "check: $(cat check.txt)"
[ $((nr_killed && nr_crashes && nr_restored && nr_replayed)) = 1 ] || fail "nothing happened"
echo "$nr_pushes pushes, $nr_killed killed, $nr_later given up, $nr_crashes crashes of the server, $nr_restored" \
	"restored hosts, $nr_replayed late rows; $samples samples and $transfers transfers are right"
[ $nr_failed = 0 ]
