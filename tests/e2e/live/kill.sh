#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: morph live is killed before each of its system calls
# morph live adopt and undo are killed before their Nth system call, for many N, also of a version that counts and of one that
# takes another's place: the process runs on and is right, status knows what is there, and the next adopt and undo do
# the rest.
#
# STRIDE=1 takes each point.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch kill
stride=${STRIDE:-7}
start ./worker 6
mapfile -t at < <("$BUILD/morph" live place --nr=2 "$pid")
version worker.live worker "${at[0]}"
counting count.live edges "${at[1]}"
counts_dir counts
counts=counts/$(id -u)
fds() { ls "/proc/$pid/fd" | wc -l; }
nr=0 killed=0 leaked=0 asked=0

# check WHAT: after a kill
check() {
	local now
	nr=$((nr + 1))
	kill -0 "$pid" 2>/dev/null || { fail "$1: the process ended: $(tail -n 1 run.txt)"; return 1; }
	[ "$(awk '/TracerPid/ { print $2 }' "/proc/$pid/status")" = 0 ] || fail "$1: it is traced"
	live status "$pid" || fail "$1: status: $(cat err.txt)"
	now=$(jq -r '[.processes[] | .kind + " " + .state] | join(" + ")' out.txt)
	case $now in
	*"changed by"* | *"live in use"*"edges in use"*) fail "$1: the state is $now" ;;
	esac
	echo "${now:-none}" >>states.txt
	goes_on $asked || { fail "$1: it does not go on"; return 1; }
	asked=$((asked + 1))
}

# points WHAT BEFORE ACTION ARGS: kill ACTION at every point, each time after "morph live BEFORE"
points() {
	local what=$1 before=$2 n=1 rc
	shift 2
	while :; do
		# shellcheck disable=SC2086
		live $before || fail "$before: $(cat err.txt)"
		./kill-at -a "$n" "$BUILD/morph" live --json "$@" >kill.txt 2>kill.err
		rc=$?
		[ $rc = 137 ] || break
		killed=$((killed + 1))
		check "$what, $(tail -n 1 kill.err) (call $n)" || return 1
		n=$((n + stride))
	done
	[ $rc = 0 ] || fail "$what ends with $rc: $(cat kill.err)"
	echo "$what: $n system calls"
}

before=$(fds)
points adopt "undo $pid" adopt "$pid" worker.live && points undo "adopt $pid worker.live" undo "$pid" &&
	points count "undo $pid" adopt --counts=counts "$pid" count.live &&
	points uncount "adopt --counts=counts $pid count.live" undo "$pid" &&
	points switch "adopt $pid worker.live" adopt --counts=counts "$pid" count.live &&
	points back "adopt --counts=counts $pid count.live" adopt "$pid" worker.live
# The first run was killed while it made the file, too.
[ "$("$root/tests/e2e/live/sums" "$counts")" -gt 0 ] || fail "nothing was counted"
leaked=$(($(fds) - before))
live undo "$pid" || fail "undo at the end: $(cat err.txt)"
text_is worker || fail "the code differs from the file's"
ends_right
# One killed between open() and close() in the process leaves that descriptor there.
[ $leaked -le $((killed / 20 + 1)) ] || fail "$leaked descriptors stay open in the process"
[ $killed -ge 50 ] || fail "only $killed points"
echo "$killed points, $leaked descriptors left; states: $(sort states.txt | uniq -c | tr '\n' ';')"
[ $nr_failed = 0 ]
