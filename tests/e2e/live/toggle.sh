#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: a process is changed some hundred times
# morph live puts code into a running process with many threads, and takes it back, at random moments: the process
# checks itself, its code has the original's bytes afterwards, and the copies go when nothing leads to them.
#
# ROUNDS and THREADS set how often, and in how many threads.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch toggle
rounds=${ROUNDS:-150} threads=${THREADS:-12}
start ./worker "$threads"
version worker.live

live adopt --dry-run "$pid" worker.live || fail "dry run: $(cat err.txt)"
[ "$(jq .processes[0].changed out.txt)" = false ] || fail "a dry run changes something"
private=$(jq .processes[0].private_bytes out.txt)
[ "$(state)" = none ] || fail "a dry run leaves something: $(cat out.txt)"
private_kb() {
	# The program, libc, and the page for unwinders, which has no name.
	awk -v f="$dir/worker" '/^[0-9a-f]+-[0-9a-f]+ / { mine = $2 !~ /w/ && ($6 == f || $6 ~ /libc\.so/ || $6 == "" && $2 ~ /x/) }
		/^Anonymous:/ && mine { s += $2 } END { print s + 0 }' "/proc/$pid/smaps"
}
before=$(private_kb)

: >stops.txt
for ((i = 0; i < rounds; i++)); do
	live adopt "$pid" worker.live || { fail "adopt $i: $(cat err.txt)"; break; }
	jq -c '.processes[0] | [.stop_ns, .work_ns, .rounds]' out.txt >>stops.txt
	[ $i != 0 ] || {
		[ "$(state)" = "in use" ] || fail "status: $(cat out.txt)"
		grep -q "worker.live" "/proc/$pid/maps" || fail "the copies have no name"
		after=$(private_kb)
		[ $((after - before)) = $((private / 1024)) ] ||
			fail "$private bytes were announced, $((after - before)) KiB are private"
	}
	live adopt "$pid" worker.live || fail "adopt again"
	[ "$(jq .processes[0].changed out.txt)" = false ] || fail "adopted twice"
	[ $((RANDOM % 4)) != 0 ] || sleep 0.0$((RANDOM % 10))
	live undo "$pid" || { fail "undo $i: $(cat err.txt)"; break; }
	jq -c '.processes[0] | [.stop_ns, .work_ns, .rounds]' out.txt >>stops.txt
	kill -0 "$pid" || { fail "the process ended in round $i"; break; }
	[ $((i % 10)) != 0 ] || text_is worker || fail "after undo, the code differs from the file's"
done
text_is worker || fail "after undo, the code differs from the file's"
goes_on 0 || fail "the process does not go on"
ends_right
awk -F'[][,]' '{ print $3 / 1e6 }' stops.txt | sort -n | awk '{ a[NR] = $1 }
	END { printf "%d stops of '"$threads"' threads: work median %.2f ms, 99 %% %.2f ms\n", NR,
		a[int((NR + 1) / 2)], a[int(NR * 0.99)] }'
awk -F'[][,]' '{ print $2 / 1e6 }' stops.txt | sort -n | awk '{ a[NR] = $1 }
	END { printf "with the wait for a processor: median %.2f ms, 99 %% %.2f ms\n",
		a[int((NR + 1) / 2)], a[int(NR * 0.99)] }'
awk -F'[][,]' '$4 > m { m = $4 } { s += $4 } END { printf "%.2f stops each, at most %d\n", s / NR, m }' stops.txt

# ---- copies go once nothing leads to them: a process that waits outside of them
cat >idle.c <<'C'
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int f(int x) { int s = 0; for (int i = 0; i < x; i++) s += i % 7 ? i : x; return s; }
int main(int argc, char **argv)
{
	char c;
	if (f(10) != f(10 * argc)) return 1;
	puts("ready"); fflush(stdout);
	while (read(0, &c, 1) == 1) printf("%d\n", f(c)), fflush(stdout);
	return 0;
}
C
gcc -O2 -o idle idle.c || exit 1
mkfifo in
exec 9<>in
input=in start ./idle
version idle.live idle
fds=$(ls "/proc/$pid/fd" | wc -l)
for i in 1 2 3; do
	live adopt "$pid" idle.live || fail "adopt an idle process: $(cat err.txt)"
	[ "$(state)" = "in use" ] || fail "idle: $(cat out.txt)"
	live undo "$pid" || fail "undo: $(cat err.txt)"
	[ "$(state)" = none ] || fail "the copies stay although nothing ran in them: $(cat out.txt)"
	! grep -q idle.live "/proc/$pid/maps" || fail "the copies are still mapped"
	text_is "$(awk '$6 ~ /libc\.so/ { print $6; exit }' "/proc/$pid/maps")" || fail "unwinders are still led to a page"
	[ "$(awk '$2 ~ /x/ && $6 == ""' "/proc/$pid/maps")" = "" ] || fail "the page for unwinders is still mapped"
done
[ "$(ls "/proc/$pid/fd" | wc -l)" = "$fds" ] || fail "a descriptor stays open"
live adopt "$pid" idle.live || fail "adopt an idle process: $(cat err.txt)"
fds=$(ls "/proc/$pid/fd" | wc -l)
echo abc >&9
awaits '[ $(wc -l <run.txt) = 5 ]' || fail "no answer through the copies"
live undo "$pid" || fail "undo: $(cat err.txt)"
if grep -q idle.live "/proc/$pid/maps"; then
	echo "main is in its copy: $(jq -r .processes[0].why_mapped out.txt)"
fi
text_is idle || fail "idle: the code differs from the file's"
[ "$(ls "/proc/$pid/fd" | wc -l)" = "$fds" ] || fail "a descriptor stays open"
echo abc >&9
awaits '[ $(wc -l <run.txt) = 9 ]' || fail "no answer after undo"
kill "$pid"
wait "$pid" 2>/dev/null
[ "$(sed -n 2,5p run.txt)" = "$(sed -n 6,9p run.txt)" ] || fail "other answers: $(cat run.txt)"

# ---- lld puts code at another distance than in the file; the page for unwinders goes there, too
if command -v ld.lld >/dev/null; then
	{ echo 'const char much[20000] = {1};'; cat idle.c; } >lld.c
	gcc -O2 -fuse-ld=lld -o lld lld.c || exit 1
	input=in start ./lld
	read -r first code off < <(awk -v f="$dir/lld" '$6 == f { split($1, a, "-"); if (!n++) first = a[1]; if ($2 ~ /x/) print first, a[1], $3 }' "/proc/$pid/maps")
	[ $((16#$code - 16#$first)) != $((16#$off)) ] || fail "lld: not such a layout"
	version lld.live lld
	live adopt "$pid" lld.live || fail "lld: $(cat err.txt)"
	live undo "$pid" || fail "lld, undo: $(cat err.txt)"
	[ "$(state)" = none ] || fail "lld: the copies stay: $(cat out.txt)"
	[ "$(awk '$2 ~ /x/ && $6 == ""' "/proc/$pid/maps")" = "" ] || fail "lld: the page for unwinders is still mapped"
	kill "$pid"
	wait "$pid" 2>/dev/null
else
	left_out="$left_out lld;"
fi
finish
