#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph live adopt --counts: a process that runs already counts exactly what one counts that starts with the version, with
# threads and in children, whichever user they are. Files of counts that are not this user's alone are refused, and
# undo takes the counters away.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch counting
need python3 mkfifo
chmod 755 "$dir"
here=$root/tests/e2e/live
user=$(id -u)
mkfifo in
exec 9<>in
input=in

# asks LETTERS: the process does that work
asks() {
	local before
	before=$(grep -c answer run.txt)
	printf '%s' "$1" >&9
	awaits "[ \$(grep -c answer run.txt) = $((before + ${#1})) ]" || fail "no answer to $1: $(cat run.txt)"
}
# fresh VERSION LETTERS [ARGS]: a process that starts with the version counts into VERSION.LETTERS
fresh() {
	rm -f "$1.counts"
	printf '%s' "$2" | "./$1" "${@:3}" >fresh.txt || fail "$1 as a file"
	cp "$1.counts" "$1.${2:-none}"
}
# same WHAT A B C D: the counts grew from A to B as from C to D
same() {
	"$here/sums" --same "${@:2}" 2>sums.txt || fail "$1: $(cat sums.txt)"
}
stop() {
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}
shared() {
	grep -c 'rw-s' "/proc/$pid/maps"
}

# ---- one thread, and its children
gcc -O2 -o count "$here/count.c" || exit 1
start ./count
read -r at other <<<"$("$BUILD/morph" live place --nr=2 "$pid" | tr '\n' ' ')"
counting count.live edges "$at" count
fresh count.live ""
fresh count.live w
fresh count.live f
counts_dir counts
live adopt --counts=counts "$pid" count.live || fail "adopt: $(cat err.txt)"
[ "$(jq -r '.processes[0] | .kind + ", " + .state' out.txt)" = "live+edges, in use" ] || fail "adopt: $(cat out.txt)"
[ "$(stat -c '%u %a %h' "counts/$user")" = "$user 600 1" ] || fail "the file: $(stat "counts/$user")"
asks w
cp "counts/$user" one
same "one piece of work" count.live.none count.live.w - one
asks w
cp "counts/$user" two
same "the second one" count.live.none count.live.w one two
asks f
cp "counts/$user" three
same "a child's" count.live.none count.live.f two three
live adopt --counts=counts "$pid" count.live || fail "adopt again: $(cat err.txt)"
[ "$(jq .processes[0].changed out.txt)" = false ] || fail "adopted twice"
cmp -s "counts/$user" three || fail "something counts without work"
# the same version, into another directory
counts_dir counts2
command_ends 4 "another directory" "$BUILD/morph" live adopt --counts=counts2 "$pid" count.live
says err.txt "counts into .* already"

# ---- what was counted makes a version, which takes the counting one's place
"$BUILD/morph-stats" import --db=count.db --binary=count.live "counts/$user" >out.txt 2>&1 || fail "import: $(cat out.txt)"
"$BUILD/morph-optimize" --db=count.db --live-at="$other" --report=none -o profile.live count || fail "no version by the counts"
live adopt "$pid" profile.live || fail "the version by the counts: $(cat err.txt)"
asks w
cmp -s "counts/$user" three || fail "something counts in a version that does not"
live adopt --counts=counts "$pid" count.live || fail "back to the version that counts: $(cat err.txt)"

# ---- a child of another user counts into the same file, and has the version already
letter=k
[ "$user" != 0 ] || letter=u
printf $letter >&9
awaits 'grep -q child run.txt' || fail "no child"
parent=$pid pid=$(awk '/child/ { print $2 }' run.txt)
asks w
cp "counts/$user" four
same "the child that answers" count.live.none count.live.w three four
live adopt --counts=counts "$pid" count.live || fail "adopt in the child: $(cat err.txt)"
[ "$(jq .processes[0].changed out.txt)" = false ] || fail "the child had it already"
live undo "$pid" || fail "undo in the child: $(cat err.txt)"
[ "$(state)" = none ] && [ "$(shared)" = 0 ] || fail "undo leaves something: $(cat out.txt)"
asks w
cmp -s "counts/$user" four || fail "counts after undo"
text_is count || fail "after undo, the code differs from the file's"
kill -9 "$pid"
pid=$parent
live undo "$pid" || fail "undo in the parent: $(cat err.txt)"
[ "$(shared)" = 0 ] || fail "the counters are still mapped"
stop

# ---- files that are not used
start ./count
maps() {
	cut -d' ' -f1,2,6 "/proc/$pid/maps"
}
nr=0
# refused WHAT REASON: what lies at counts/$user is refused, and nothing changes
refused() {
	local before
	nr=$((nr + 1))
	before=$(maps)
	command_ends 4 "$1" "$BUILD/morph" live adopt --counts=counts "$pid" count.live
	says err.txt "$2" "$1"
	[ "$before" = "$(maps)" ] || fail "$1: the mappings changed"
}
good=three
counting count.live edges "$("$BUILD/morph" live place "$pid")" count
counts_dir counts
live adopt --counts=counts "$pid" count.live || fail "adopt: $(cat err.txt)"
live undo "$pid" || fail "undo: $(cat err.txt)"
mv "counts/$user" "$good"
ln -s "$PWD/$good" "counts/$user"
refused "a symbolic link" "symbolic link"
rm "counts/$user"
ln "$good" "counts/$user"
refused "a hard link" "another name"
rm "counts/$user"
cp "$good" "counts/$user"
chmod 640 "counts/$user"
refused "others may read it" "others may use it"
chmod 600 "counts/$user"
truncate -s -4096 "counts/$user"
refused "a short file" "no counts of this version"
truncate -s 0 "counts/$user"
refused "an empty file" "no counts of this version"
cp "$good" "counts/$user"
truncate -s +4096 "counts/$user"
refused "a long file" "no counts of this version"
cp "$good" "counts/$user"
printf x | dd of="counts/$user" bs=1 seek=24 conv=notrunc 2>/dev/null
refused "another table" "no counts of this version"
rm "counts/$user"
mkfifo -m 600 "counts/$user"
refused "a FIFO" "no regular file"
rm "counts/$user"
chmod 777 counts
refused "a directory where others may exchange files" "exchange its files"
chmod 1777 counts
if [ "$user" = 0 ]; then
	cp "$good" "counts/$user"
	chown 65534 "counts/$user"
	refused "another owner" "another user"
	rm "counts/$user"
	chown 65534 counts
	refused "a directory of another user" "another user"
	chown 0 counts
fi
live adopt --counts=counts "$pid" count.live || fail "adopt after all that: $(cat err.txt)"
live undo "$pid" || fail "undo: $(cat err.txt)"
# Without space for one more descriptor, it stays as it was.
prlimit --pid "$pid" --nofile=3: || fail "no limit"
refused "no descriptor" "Too many open files"
prlimit --pid "$pid" --nofile=100:
command_ends 1 "no directory" "$BUILD/morph" live adopt --counts=nowhere "$pid" count.live
command_ends 2 "no --counts" "$BUILD/morph" live adopt "$pid" count.live
says err.txt "give --counts"
version plain.live count
command_ends 2 "--counts for a version that does not count" "$BUILD/morph" live adopt --counts=counts "$pid" plain.live
says err.txt "does not count"
command_ends 2 "--counts for undo" "$BUILD/morph" live undo --counts=counts "$pid"
stop

# ---- killed at any call, while the file is made too: the next adopt counts
gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || exit 1
start ./count
for ((i = 1; ; i++)); do
	counts_dir counts
	./kill-at $i "$BUILD/morph" live --json adopt --counts=counts "$pid" count.live >out.txt 2>err.txt
	[ $? = 137 ] || break
	live adopt --counts=counts "$pid" count.live || fail "after a kill at $i: $(cat err.txt)"
	live undo "$pid" || fail "undo after a kill at $i: $(cat err.txt)"
	[ "$(shared)" = 0 ] || fail "undo after a kill at $i leaves counters"
done
[ $i -gt 3 ] || fail "killed $i times: $(cat err.txt)"
stop

# ---- another user's process, and one that cannot reach the directory
if [ "$user" = 0 ] && command -v setpriv >/dev/null; then
	as=(setpriv --reuid=65534 --clear-groups)
	start "${as[@]}" ./count
	counting count.live edges "$("$BUILD/morph" live place "$pid")" count
	counts_dir counts
	mkdir -m 700 closed
	counts_dir closed/counts
	command_ends 4 "a directory out of reach" "$BUILD/morph" live adopt --counts=closed/counts "$pid" count.live
	says err.txt "cannot open"
	[ "$(state)" = none ] && [ "$(shared)" = 0 ] || fail "something was changed: $(cat out.txt)"
	live adopt --counts=counts "$pid" count.live || fail "another user: $(cat err.txt)"
	[ "$(stat -c '%u %a' counts/65534)" = "65534 600" ] || fail "its file: $(ls -ln counts)"
	fresh count.live ""
	fresh count.live w
	asks w
	same "another user's work" count.live.none count.live.w - counts/65534
	stop
else
	echo "not root: other users are not tried"
fi

# ---- threads
gcc -O2 -pthread -o threads "$here/count.c" || exit 1
start ./threads 8
at=$("$BUILD/morph" live place "$pid")
counting threads.live edges,atomic "$at" threads
fresh threads.live "" 8
fresh threads.live w 8
counts_dir counts
live adopt --counts=counts "$pid" threads.live || fail "threads: $(cat err.txt)"
asks w
same "threads" threads.live.none threads.live.w - "counts/$user"
live undo "$pid" || fail "undo of threads: $(cat err.txt)"
[ "$(state)" = none ] && [ "$(shared)" = 0 ] || fail "undo leaves something: $(cat out.txt)"

# ---- a meter
readelf -sW threads | awk '$8 == "step" { print "0x" $2; exit }' >meter
counting meter.live meter,atomic "$at" threads --meter=meter
fresh meter.live "" 8
fresh meter.live w 8
counts_dir counts
live adopt --counts=counts "$pid" meter.live || fail "meter: $(cat err.txt)"
[ "$(jq -r .processes[0].kind out.txt)" = live+meter ] || fail "kind: $(cat out.txt)"
asks w
same "a meter" meter.live.none meter.live.w - "counts/$user"
stop
echo "$nr refusals, $("$here/sums" "counts/$user") pieces of metered work"
[ $nr_failed = 0 ]
