#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph live goes over from one version of a running program to another, in one stop, as a trial does: between the original's
# layout and a new one, both with a meter, and the new one without. The program checks itself; no more than two versions stay
# mapped while two are switched between, unwinders find the copies of each, and undo leaves the file's code.
#
# ROUNDS and THREADS set how often, and in how many threads.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch switching
need readelf flock
rounds=${ROUNDS:-100} threads=${THREADS:-8}
user=$(id -u)

# mapped: versions whose copies are mapped, and counters
mapped() {
	echo "$(grep -c 'r-xp.*\.live' "/proc/$pid/maps") $(grep -c 'rw-s' "/proc/$pid/maps")"
}
# adopt VERSION: with its directory for counts, if it has one
adopt() {
	if [ -d "$1.dir" ]; then live adopt --counts="$1.dir" "$pid" "$1"; else live adopt "$pid" "$1"; fi
}
# only VERSION: it is in use, and no other
only() {
	live status "$pid" || fail "status: $(cat err.txt)"
	[ "$(jq -r '[.processes[] | select(.state != "not in use, copies mapped") | .state, .output] | join(" ")' out.txt)" = \
		"in use $PWD/$1" ] || fail "not $1 alone: $(cat out.txt)"
}

start ./worker "$threads"
mapfile -t at < <("$BUILD/morph" live place --nr=4 "$pid")
[ ${#at[@]} = 4 ] || fail "not four places: ${at[*]}"
readelf -sW worker | awk '$8 == "step" { print "0x" $2; exit }' >meter
counting original.live meter "${at[0]}" worker --meter=meter --layout=original
counting new.live meter "${at[1]}" worker --meter=meter
counting edges.live edges "${at[2]}" worker
version plain.live worker "${at[3]}"
for v in original.live new.live edges.live; do
	counts_dir $v.dir
done

# Another command changes the process: this one waits for it. Status does not, and undo only if there is a version.
flock "/proc/$pid/mem" sh -c 'touch held; while [ -e held ]; do sleep 0.05; done' &
awaits '[ -e held ]'
"$BUILD/morph" live --json adopt --counts=edges.live.dir "$pid" edges.live >waited.txt 2>&1 &
waits=$!
sleep 0.5
live status "$pid" || fail "status while another command changes it: $(cat err.txt)"
[ "$(jq '.processes | length' out.txt)" = 0 ] || fail "adopt does not wait: $(cat out.txt)"
kill -0 $waits || fail "adopt does not wait: $(cat waited.txt)"
timeout 60 "$BUILD/morph" live undo "$pid" >undone.txt 2>&1 || fail "undo waits, although there is no version: $(cat undone.txt)"
rm held
wait $waits || fail "edges.live: $(cat waited.txt)"
only edges.live
goes_on 0 || fail "it does not go on"
for ((i = 0; i < rounds; i++)); do
	if [ $((i % 2)) = 0 ]; then v=original.live; else v=new.live; fi
	adopt $v || { fail "round $i, $v: $(cat err.txt)"; break; }
	jq -c '.processes[0] | [.stop_ns, .work_ns, .rounds]' out.txt >>stops.txt
	# Nothing is mapped twice. Threads may still be in the first version, so it may stay.
	read -r copies counters < <(mapped)
	[ "$copies" -le 3 ] && [ "$copies" = "$counters" ] || { fail "round $i: $copies, $counters are mapped"; break; }
	[ $((i % 10)) != 0 ] || only $v
	[ $((RANDOM % 4)) != 0 ] || sleep 0.0$((RANDOM % 10))
	kill -0 "$pid" || { fail "the process ended in round $i"; break; }
done
# Both have counted. Only the one in use goes on, although the outermost functions of all threads may be in copies of the
# other: once each thread has begun its work anew, nothing counts there any more.
sum() {
	"$root/tests/e2e/live/sums" $1.dir/"$user"
}
asked=1
# all_go_on: each thread has made two rounds
all_go_on() {
	local first now
	goes_on $((asked++)) || return 1
	first=$(awk '/^at/ { n = $2 } END { print n }' run.txt) now=$first
	while [ "$now" -lt $((first + 2)) ]; do
		goes_on $((asked++)) || return 1
		now=$(awk '/^at/ { n = $2 } END { print n }' run.txt)
	done
}
for v in original.live edges.live new.live original.live; do
	adopt $v || fail "$v: $(cat err.txt)"
	all_go_on || fail "it does not go on in $v"
	before=$(sum $v) first=$(sum original.live) second=$(sum new.live) third=$(sum edges.live)
	all_go_on || fail "it does not go on in $v"
	[ "$(sum $v)" -gt "$before" ] || fail "$v does not count while it is in use"
	[ $v = original.live ] || [ "$(sum original.live)" = "$first" ] || fail "original.live counts while $v is in use"
	[ $v = new.live ] || [ "$(sum new.live)" = "$second" ] || fail "new.live counts while $v is in use"
	# The loops that each thread is in count there, and nothing that these call.
	[ $v = edges.live ] || [ $((($(sum edges.live) - third) * 20)) -lt $(($(sum $v) - before)) ] ||
		fail "edges.live counts $(($(sum edges.live) - third)) while $v counts $(($(sum $v) - before))"
done
# Where /proc is mounted again, the lock is another one: two commands change the process at once.
if unshare -m mount -t proc proc /proc 2>/dev/null; then
	for i in 1 2; do
		# shellcheck disable=SC2016
		unshare -m bash -c 'mount -t proc proc /proc
			for ((i = 0; i < 40; i++)); do
				v=$(shuf -n 1 -e original new edges).live
				"$1/morph" live adopt --counts="$v.dir" "$2" "$v"
			done' - "$BUILD" "$pid" >beside$i.txt 2>&1 &
		beside[i]=$!
	done
	wait "${beside[@]}"
	for i in 1 2; do
		says beside$i.txt "worker: in use"
	done
	all_go_on || fail "it does not go on after two commands at once"
fi
adopt plain.live || fail "plain.live: $(cat err.txt)"
only plain.live
# A place that another version has, and one of the same program at the same place
counting taken.live edges "${at[3]}" worker
counts_dir taken.live.dir
command_ends 4 "a place that another version has" "$BUILD/morph" live adopt --counts=taken.live.dir "$pid" taken.live
says err.txt "is taken by"
only plain.live
goes_on $((asked++)) || fail "it does not go on"
live undo "$pid" || fail "undo: $(cat err.txt)"
live status "$pid"
[ "$(jq '[.processes[] | select(.state != "not in use, copies mapped")] | length' out.txt)" = 0 ] || fail "after undo: $(cat out.txt)"
text_is worker || fail "after undo, the code differs from the file's"
goes_on $asked || fail "it does not go on after undo"
ends_right
awk -F'[][,]' '{ print $3 / 1e6 }' stops.txt | sort -n | awk '{ a[NR] = $1 }
	END { printf "%d switches: work median %.2f ms, the longest %.2f ms\n", NR, a[int((NR + 1) / 2)], a[NR] }'

# ---- what nothing leads to goes at once, also at a switch: an idle program
cat >idle.c <<'C'
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int f(int x) { int s = 0; for (int i = 0; i < x; i++) s += i % 7 ? i : x; return s; }
int main(void)
{
	if (f(10) != f(10)) return 1;
	puts("ready"); fflush(stdout);
	for (;;) __asm__ volatile("syscall" : : "a"(34) : "rcx", "r11", "memory");
}
C
gcc -O2 -o idle idle.c || exit 1
start ./idle
mapfile -t at < <("$BUILD/morph" live place --nr=3 "$pid")
for i in 0 1 2; do
	counting $i.live edges "${at[$i]}" idle
	counts_dir $i.live.dir
done
for i in 0 1 0 1 2 1 0 2; do
	adopt $i.live || fail "idle, $i: $(cat err.txt)"
	only $i.live
	read -r copies counters < <(mapped)
	[ "$copies" -le 2 ] && [ "$copies" = "$counters" ] || fail "idle, $i: $copies, $counters are mapped"
done
live undo "$pid" || fail "undo: $(cat err.txt)"
[ "$(mapped)" = "0 0" ] || fail "undo leaves $(mapped): $(cat out.txt)"
text_is idle || fail "idle: the code differs from the file's"
kill -9 "$pid"
[ $nr_failed = 0 ]
