#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: a day of several hosts
# The server is gone for a day. Hosts go on collecting, and their pushes fail each hour or wait. When the server
# is back, those that wait send the day by themselves, and nothing is lost: the sums are the truth to the last
# count. HOSTS= says how many hosts (default 8).
. "$(dirname "$0")/lib-fleet.sh"
need jq
fleet_start
"$fleet" init >/dev/null || exit 1
store=$BUILD/tools/fleet-store
[ -x "$store" ] || { echo "skip: fleet-store was not built"; exit 77; }
today=$(($(date +%s) / 86400)) hosts=${HOSTS:-8} seed=0
unset MORPH_FLEET

add() {
	"$store" add "h$1.db" truth.db $((++seed)) $((today - 1 + ($2 >= 12))) 2 || fail "add to h$1"
}
# push HOST OPTION...
push() {
	exec "$fleet" push -d "$(<"h$1.conn")" --db="h$1.db" --machine-id="h$1.id" --json "${@:2}" >"h$1.json" 2>"h$1.err"
}
for ((i = 1; i <= hosts; i++)); do
	fleet_host "h$i" --reader -d "$ADMIN"
	echo "machine $i" >"h$i.id"
	add $i 0
	(push $i --give-up=0) || fail "the first push of h$i: $(<"h$i.err")"
done

cluster_stop pg
for ((hour = 0; hour < 24; hour++)); do
	for ((i = 1; i <= hosts; i++)); do
		add $i $hour
		[ $((hour % 8)) != 7 ] || { (push $i --give-up=0); [ $? = 75 ] || fail "a push without a server: $(<"h$i.err")"; }
	done
done
# These wait for the server. A host goes on collecting meanwhile.
pids=()
for ((i = 1; i <= hosts; i++)); do
	push $i --give-up=60 --retry=0.1 &
	pids+=($!)
done
sleep 1
add 1 23
start=${EPOCHREALTIME/./}
fleet_restart
back=${EPOCHREALTIME/./}
for pid in "${pids[@]}"; do wait "$pid" || fail "a push that waited: status $?: $(cat h*.err)"; done
took=$(((${EPOCHREALTIME/./} - back) / 1000))
[ $took -lt 30000 ] || fail "hosts needed $took ms after the server was back (it started in $(((back - start) / 1000)) ms)"
jq -e -s "length == $hosts and all(.rows > 0 and .nr_waits > 0 and .nr_epochs == 0)" h*.json >/dev/null || fail "what was sent: $(cat h*.json)"
# What h1 counted while it waited may have come too late for that push.
(push 1 --give-up=0) || fail "the next push: $(<h1.err)"
"$fleet" pull -d "$(<h1.conn)" --cap=1 --top=9 -o sum.db >/dev/null 2>err.txt || fail "pull: $(<err.txt)"
"$store" compare truth.db sum.db || fail "the sums are not the truth"
for ((i = 1; i <= hosts; i++)); do
	(push $i --give-up=0) || fail "another push of h$i"
	jq -e '.rows == 0' "h$i.json" >/dev/null || fail "h$i sends something twice"
done
echo "$hosts hosts sent a day within $took ms after the server was back: $("$store" sum sum.db | cut -d' ' -f1) samples are right"
finish
