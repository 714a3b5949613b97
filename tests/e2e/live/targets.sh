#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph live with the path of a program: which processes that means after another file got the name, after processes ended or
# began; errors of single processes; and addresses that are free in all processes.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch targets
need python3
gcc -O2 -o prog "$root/tests/e2e/live/count.c" || exit 1
cp prog original
pids=()
at_exit 'kill -9 "${pids[@]}" 2>/dev/null; rm -rf "$dir"'

# more [FILE]: one more process
more() {
	: >run.txt
	sleep 1000 | "${1:-./prog}" >run.txt &
	pids+=($! "$(jobs -p %%)")
	pid=$!
	awaits 'grep -qs ready run.txt' || fail "no process"
}
# rows FILTER: of the last answer
rows() {
	jq -r "[.processes[] | $1] | length" out.txt
}

more
one=$pid
more
two=$pid

# ---- addresses: free in both, and all at the same time
command_ends 0 "place" "$BUILD/morph" live --json place --nr=3 "$dir/prog"
json_places=$(jq -r '.places[]' out.txt)
[ "$(jq '.places | length' out.txt)" = 3 ] && [ "$(jq '.live_at == .places[0]' out.txt)" = true ] ||
	fail "places: $(cat out.txt)"
mapfile -t at <<<"$json_places"
command_ends 0 "place as text" "$BUILD/morph" live place --nr=3 "$dir/prog"
[ "$(wc -l <out.txt)" = 3 ] || fail "not three lines: $(cat out.txt)"
command_ends 2 "--nr of adopt" "$BUILD/morph" live adopt --nr=2 "$dir/prog" x
command_ends 2 "--nr=0" "$BUILD/morph" live place --nr=0 "$dir/prog"
i=0
for kind in edges edges edges; do
	counting $i.live $kind "${at[$i]}" prog
	counts_dir $i.dir
	live adopt --counts=$i.dir "$dir/prog" $i.live || fail "adopt $i: $(cat err.txt)"
	[ "$(rows 'select(.state == "in use")')" = 2 ] || fail "adopt $i: $(cat out.txt)"
	i=$((i + 1))
done
live undo "$dir/prog" || fail "undo: $(cat err.txt)"

# ---- another file gets the name: an output, as the service puts one there
version prog.live prog "${at[0]}"
live adopt "$dir/prog" prog.live || fail "adopt: $(cat err.txt)"
"$BUILD/morph-optimize" --all --report=none -o plain prog || fail "no output"
mv plain prog
more
three=$pid
# It runs another version of the same original, which is not meant.
live adopt "$dir/prog" prog.live || fail "adopt with an output at the path: $(cat err.txt)"
[ "$(rows 'select(.state == "in use" and .changed == false)')" = 2 ] || fail "an output at the path: $(cat out.txt)"
[ "$(rows "select(.pid == $three)")" = 0 ] || fail "the output's process is changed: $(cat out.txt)"
live status "$dir/prog" || fail "status: $(cat err.txt)"
[ "$(rows 'select(.state == "in use")')" = 2 ] || fail "status with an output at the path: $(cat out.txt)"
live place --nr=2 "$dir/prog" "$dir/prog" || fail "place with an output at the path: $(cat err.txt)"
live undo "$dir/prog" || fail "undo: $(cat err.txt)"
[ "$(rows 'select(.changed)')" = 2 ] || fail "undo with an output at the path: $(cat out.txt)"

# ---- another build gets the name: those who run the old one are meant, and a new process is an error of its own
gcc -O1 -o other "$root/tests/e2e/live/count.c" && mv other prog
more
four=$pid
live adopt "$dir/prog" prog.live
[ $? = 4 ] || fail "a process of another build: no refusal"
[ "$(rows 'select(.state == "in use")')" = 2 ] || fail "another build: $(cat out.txt)"
[ "$(rows "select(.pid == $four and (.error | contains(\"does not run the original\")))")" = 1 ] || fail "no error row: $(cat out.txt)"
[ "$(jq '.processes | length' out.txt)" = 3 ] || fail "not one row for each process: $(cat out.txt)"
kill -9 "$four" "$three"
live adopt "$dir/prog" prog.live || fail "adopt again: $(cat err.txt)"

# ---- processes that end, or begin
mv original prog
more
five=$pid
live adopt "$dir/prog" prog.live || fail "adopt a new process: $(cat err.txt)"
[ "$(rows 'select(.changed)')" = 1 ] && [ "$(jq '.processes | length' out.txt)" = 3 ] || fail "a new process: $(cat out.txt)"
[ "$(rows "select(.pid == $five and .changed)")" = 1 ] || fail "not the new process: $(cat out.txt)"
kill -STOP "$five"
awaits "grep -q 'State:.T' /proc/$five/status"
live undo "$dir/prog"
[ $? = 4 ] || fail "a stopped process: no refusal"
[ "$(rows 'select(.changed)')" = 2 ] && [ "$(rows "select(.pid == $five and .error)")" = 1 ] || fail "a stopped process: $(cat out.txt)"
kill -CONT "$five"
live undo "$dir/prog" || fail "undo the rest: $(cat err.txt)"
[ "$(rows 'select(.changed)')" = 1 ] || fail "undo the rest: $(cat out.txt)"
kill -9 "$one" "$two" "$five"
awaits "! kill -0 $five 2>/dev/null || grep -q 'State:.Z' /proc/$five/status"
live undo "$dir/prog" || fail "undo where nobody runs it: $(cat err.txt)"
command_ends 1 "adopt where nobody runs it" "$BUILD/morph" live adopt "$dir/prog" prog.live

# ---- undo of a program leaves other versions in its processes; undo FILE takes those that are meant
cat >lib.c <<'C'
int summed(int x) { int s = 0; for (int i = 0; i < x; i++) s += i % 7 ? i : x; return s; }
int added(int x) { return x > 3 ? summed(x) + summed(x - 1) : x; }
C
cat >user.c <<'C'
#include <stdio.h>
#include <unistd.h>
int added(int x);
__attribute__((noinline)) int often(int x) { return x > 3 ? added(x) : added(x + 1); }
int main(void) { printf("ready %d\n", often(9)); fflush(stdout); for (;;) pause(); }
C
gcc -O2 -shared -fPIC -o liblib.so lib.c && gcc -O2 -o user user.c -L. -llib -Wl,-rpath,"$PWD" || exit 1
more ./user
more ./user
mkdir versions
version versions/lib.live liblib.so
version user.live user
# is_in_use PATTERN: outputs in both processes, in alphabetical order
is_in_use() {
	live status "$dir/user" || fail "$1: $(cat err.txt)"
	[ "$(jq -r '[.processes[] | select(.state == "in use") | .output | sub(".*/"; "")] | sort | join(" ")' out.txt)" = "$2" ] ||
		fail "$1: $(cat out.txt)"
}
both="lib.live lib.live user.live user.live"
both() {
	live adopt "$dir/user" user.live || fail "adopt: $(cat err.txt)"
	for one in "${pids[@]: -4}"; do
		grep -qs '/user$' "/proc/$one/maps" || continue
		live adopt "$one" versions/lib.live || fail "adopt a library's: $(cat err.txt)"
	done
	is_in_use "adopt both" "$both"
}
both
live undo "$dir/user" || fail "undo a program: $(cat err.txt)"
is_in_use "undo a program" "lib.live lib.live"
both
ln user other-name
live undo "$dir/other-name" || fail "undo by another name: $(cat err.txt)"
is_in_use "undo by another name" "lib.live lib.live"
both
live undo "$pid" liblib.so || fail "undo an original: $(cat err.txt)"
is_in_use "undo an original" "lib.live user.live user.live"
live undo "$pid" user.live || fail "undo an output: $(cat err.txt)"
is_in_use "undo an output" "lib.live user.live"
both
command_ends 2 "undo of no name" "$BUILD/morph" live undo "$pid" ""
command_ends 0 "undo of a file that is no version" "$BUILD/morph" live undo "$pid" user.c
says out.txt "^No version of user.c is in the process"
is_in_use "undo nothing" "$both"
live undo "$pid" versions/ || fail "undo a directory: $(cat err.txt)"
is_in_use "undo a directory" "lib.live user.live user.live"
both
live undo "$pid" / || fail "undo all below the root: $(cat err.txt)"
is_in_use "undo all below the root" "lib.live user.live"
both
# One that somebody else has changed cannot be taken back; the other one is.
end=$((16#$(awk '$2 ~ /x/ && $6 ~ /\/user$/ { sub(/.*-/, "", $1); print $1 }' "/proc/$pid/maps") - 1))
byte=$(dd if="/proc/$pid/mem" bs=1 skip=$end count=1 2>/dev/null | xxd -p)
[ "$byte" = 00 ] || fail "the last byte of the code is $byte"
printf x | dd of="/proc/$pid/mem" bs=1 seek=$end conv=notrunc 2>/dev/null
live undo "$pid"
[ $? = 4 ] || fail "undo one of two: no refusal"
[ "$(rows 'select(.error)')" = 1 ] && [ "$(rows 'select(.state == "not in use")')" = 1 ] || fail "undo one of two: $(cat out.txt)"
printf '\0' | dd of="/proc/$pid/mem" bs=1 seek=$end conv=notrunc 2>/dev/null
live undo "$pid" || fail "undo the other: $(cat err.txt)"
is_in_use "undo all" "lib.live user.live"
both
# The name leads to another directory now.
rm -r versions && mkdir elsewhere && ln -s elsewhere versions || fail "no other directory"
live undo "$pid" "$dir/versions" || fail "undo by a name of before: $(cat err.txt)"
is_in_use "undo by a name of before" "lib.live (deleted) user.live user.live"
finish
