#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone until verdicts are certain
# alone: it samples
# morphd run --audit: verdicts on known effects have the right sign and are obeyed, by several
# processes and threads, with killed writers, overwritten windows, and files that are replaced, cut
# short or made by somebody else. What is stored is sound after a kill of morphd and on a full disk.
# A program that morph-optimize instrumented is found with its functions.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc jq python3 sqlite3
export PATH="$BUILD:$BUILD/tools:$PATH"
scratch morphd-audits

# listen FILE DB OPTION...: start a reader; hear: end it, with its messages in err.txt
listen() {
	morphd run --audit="$1" --db="$2" "${@:3}" >out.txt 2>err.txt &
	reader=$!
	audit_listens $reader
}
hear() {
	local want=$1 what=$2 got=0
	kill -INT $reader
	wait $reader || got=$?
	[ $got = "$want" ] || fail "$what: status $got, not $want: $(cat err.txt)"
}
# sql DB QUERY
sql() { sqlite3 -readonly "$1" "$2"; }
# word FILE N: the control word of function N
word() { od -An -tu4 -j $((4096 + 128 * $2)) -N 4 "$1" | tr -d ' '; }
# sound DB
sound() { morph-stats status --check -d "$1" >/dev/null 2>check.txt || [ $? = 3 ] || fail "$1: $(cat check.txt)"; }

# Effects of 5 per cent are found with the right sign; the writer ends by itself, since each of its
# functions has a verdict. Rounds differ, and every tenth pair is dropped.
for noise in gaussian autocorrelated skewed; do
	rm -f ring a.db*
	listen ring a.db
	timeout 100 audit-writer functions=6 effects=5,-5 noise=$noise threads=2 processes=2 rate=4000 drop=10 \
		seconds=90 ring >pairs.txt || fail "$noise: the writer ended with $?"
	hear 0 "$noise"
	says err.txt "^morphd: audited 6 functions: the new order is faster in 3, the original's in 3, undecided 0; " "$noise"
	sound a.db
	[ "$(sql a.db "SELECT group_concat(verdict, '') FROM (SELECT verdict FROM program_audit_effect ORDER BY function)")" \
		= 212121 ] || fail "$noise: $(sql a.db 'SELECT function, verdict, pairs, estimate FROM program_audit_effect')"
	for f in 0 1 2 3 4 5; do
		[ "$(word ring $f)" = $((2 - f % 2)) ] || fail "$noise: function $f has the word $(word ring $f)"
	done
	# Each bound lies on the side of the verdict, and drops are counted with their reason.
	[ "$(sql a.db "SELECT count(*) FROM program_audit_effect WHERE (verdict = 2 AND lowest > 0 OR verdict = 1 AND
		highest < 0) AND preempted > 0 AND wrong + empty + abandoned + signalled = 0 AND pairs = decided_at")" = 6 ] ||
		fail "$noise: $(sql a.db 'SELECT * FROM program_audit_effect')"
done

# The same file again: its verdicts stay, and are those of an earlier audit.
listen ring a.db
audit-writer functions=6 seconds=5 ring >pairs.txt
hear 0 again
[ "$(awk '{ sum += $2 } END { print sum }' pairs.txt)" = 0 ] || fail "decided functions were timed: $(cat pairs.txt)"
says err.txt 'the program wrote no new windows'
ends 0 "again" audit -d a.db --json
json "again" '.audits | length == 1'
json "again" '[.audits[0].functions[] | select(.earlier and .pairs == 0 and .lowest == null)] | length == 6'
[ "$(sql a.db 'SELECT count(*) FROM program_audit')" = 2 ] || fail "again: not two audits in the database"

# Equal versions get no verdict; the interval holds zero. One thread: the same numbers each time.
rm -f ring a.db*
listen ring a.db
audit-writer functions=2 effects=0 rate=8000 pairs=8000 seconds=60 ring >pairs.txt
hear 0 equal
[ "$(sql a.db "SELECT count(*) FROM program_audit_effect WHERE verdict = 0 AND lowest < 0 AND highest > 0
	AND highest < 0.05 AND pairs + alone = 4000")" = 2 ] || fail "equal: $(sql a.db 'SELECT * FROM program_audit_effect')"
[ "$(word ring 0)$(word ring 1)" = 00 ] || fail "equal: a verdict was written"

# Text and JSON say the same.
ends 0 "text" audit -d a.db
says out.txt 'alpha 0.01, for each of 2 functions 0.005'
says out.txt 'undecided *function 1$'
ends 0 "JSON" audit -d a.db --json
json "JSON" '.audits[0] | .alpha == 0.01 and (.functions | length == 2) and .path == null and .whole_runs == null'
json "JSON" '[.audits[0].functions[] | select(.faster_is == "undecided" and .pairs > 3000 and
	.rounds == ([.points[] | .rounds_original + .rounds_new] | add))] | length == 2'

# Writers that are killed within a record: it is not a window, and the others go on.
rm -f ring a.db*
listen ring a.db
audit-writer functions=2 effects=5,-5 die=400 seconds=30 ring >/dev/null 2>&1
audit-writer functions=2 effects=5,-5 rate=2000 seconds=60 seed=2 ring >/dev/null
hear 0 killed
[ "$(sql a.db 'SELECT nr_torn, nr_lost, nr_foreign FROM program_audit')" = "1|0|0" ] ||
	fail "killed: $(sql a.db 'SELECT * FROM program_audit')"
says err.txt 'undecided 0;' "killed"

# A reader that was stopped for a while loses windows, says so, and mixes none.
rm -f ring a.db*
listen ring a.db
audit-writer functions=2 effects=5,-5 threads=2 rate=3000 seconds=2 ring >/dev/null &
writer=$!
kill -STOP $reader
audit-writer functions=2 effects=5,-5 threads=4 pairs=20000 seconds=60 seed=3 ring >/dev/null
kill -CONT $reader
wait $writer
sleep 0.5
hear 0 overwritten
[ "$(sql a.db 'SELECT nr_lost > 0 FROM program_audit')" = 1 ] || fail "overwritten: nothing was lost"
[ "$(sql a.db "SELECT sum(wrong + empty), group_concat(verdict IN (0, 2 - function), '') FROM program_audit_effect")" \
	= "0|11" ] || fail "overwritten: $(sql a.db 'SELECT * FROM program_audit_effect')"
says err.txt 'windows were overwritten before they were read'

# Files that are no ring, or nobody's, or another user's: one message, status 1.
bad() {
	listen "$2" bad.db
	hear 1 "$1"
	one_line "$1"
	says err.txt "$3" "$1"
}
bad "no file" nothing 'nothing: no program filled in this file: nothing was audited'
: >empty
bad "an empty file" empty 'nothing was audited'
head -c 5000 /dev/urandom >garbage
bad "garbage" garbage 'garbage: not a file of an audit'
ln -s ring link
bad "a link" link 'link: a symbolic link'
mkfifo fifo
bad "a pipe" fifo 'fifo: not a regular file'
bad "a directory" . 'directory'
cp ring huge
printf '\377\377\377\377' | dd of=huge bs=1 seek=24 conv=notrunc 2>/dev/null
bad "many functions" huge 'huge: damaged: 4294967295 functions'
cp ring short && truncate -s -1 short
bad "cut short" short 'short: damaged: .* bytes, and not'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	# The other user may not enter the test's own directory.
	place=$(mktemp -d /tmp/morph-audits.XXXXXX) || exit 1
	cp ring "$place/foreign" && chmod 666 "$place/foreign" && chmod 777 "$place" && cp "$BUILD/morphd" "$place"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$place/morphd" run --audit="$place/foreign" \
		--db="$place/own.db" 2>err.txt &
	reader=$!
	audit_listens $reader
	hear 1 "another user's file"
	rm -rf "$place"
	says err.txt "foreign: belongs to another user"
else
	left_out="$left_out, another user's file"
fi

# A file that is cut short or whose numbers go back while it is read: what came before is stored.
for how in 'truncate -s 0 ring' "printf '\0\0\0\0\0\0\0\0' | dd of=ring bs=1 seek=32 conv=notrunc 2>/dev/null"; do
	rm -f ring a.db*
	listen ring a.db
	audit-writer functions=2 effects=5 rate=3000 pairs=400 seconds=20 ring >/dev/null
	sleep 0.3
	eval "$how"
	sleep 0.3
	hear 0 "$how"
	says err.txt 'file of an audit: \(cut short\|damaged: its numbers go back\)'
	[ "$(sql a.db 'SELECT sum(pairs) > 100 FROM program_audit_effect')" = 1 ] || fail "$how: nothing stored"
	sound a.db
done

# A new file in its place, of the same program: the verdicts so far go into it.
rm -f ring a.db*
listen ring a.db
audit-writer functions=2 effects=10 rate=3000 seconds=60 ring >/dev/null
rm ring
timeout 600 audit-writer functions=2 effects=10 rate=100 seconds=50 ring >pairs.txt || fail "replaced: $?"
hear 0 replaced
[ "$(word ring 0)$(word ring 1)" = 22 ] || fail "replaced: words $(word ring 0) $(word ring 1)"
# Another program's file is not read on.
rm -f ring b.db*
listen ring b.db
audit-writer functions=2 effects=0 rate=1000 pairs=200 seconds=20 ring >/dev/null
rm ring
audit-writer functions=2 hash=2 effects=0 rate=1000 pairs=4000 seconds=20 ring >/dev/null
sleep 1.2
hear 0 "another program"
says err.txt "ring: replaced by another program's file"
[ "$(sql b.db 'SELECT sum(pairs) <= 200 FROM program_audit_effect')" = 1 ] || fail "another program's windows count"

# A killed reader leaves a sound database with the last state that was written.
rm -f ring a.db*
listen ring a.db --interval=1
audit-writer functions=2 effects=0 rate=2000 seconds=3 ring >/dev/null
kill -KILL $reader
wait $reader 2>/dev/null
sound a.db
[ "$(sql a.db 'SELECT sum(pairs) > 100 FROM program_audit_effect')" = 1 ] || fail "killed reader: nothing stored"
listen ring a.db
hear 0 "after the kill"
sound a.db

# A full disk: one message, status 1, and nothing half written.
if [ "$(id -u)" = 0 ]; then
	export -f audit_listens
	cat >full.sh <<'S'
mkdir -p small && mount -t tmpfs -o size=200k none small || exit 77
morphd run --audit=nothing --db=small/a.db 2>/dev/null & audit_listens $!; kill -INT $!; wait $!
head -c 1m /dev/zero >small/fill 2>/dev/null
rm -f ring
morphd run --audit=ring --db=small/a.db 2>err.txt &
reader=$!
audit_listens $reader
audit-writer functions=200 effects=0 pairs=2000 seconds=20 ring >/dev/null
kill -INT $reader
wait $reader
echo $? >status
rm small/fill
morph-stats status --check -d small/a.db >check.txt 2>&1
echo $? >>status
S
	unshare -m bash full.sh
	case $? in
	77) left_out="$left_out, full disks" ;;
	*)
		[ "$(tr '\n' ' ' <status)" = "1 3 " ] || fail "full disk: statuses $(cat status check.txt err.txt)"
		says err.txt 'a.db: .*\(full\|No space\)'
		;;
	esac
else
	left_out="$left_out, full disks"
fi

# Usage.
command_ends 2 "alpha" morphd run --audit=ring --alpha=2
command_ends 2 "alpha" morphd run --audit=ring --alpha=x
command_ends 2 "a recording without sampling" morphd run --audit=ring --record=r
command_ends 2 "neither" morphd run --alpha=0.1
ends 3 "nobody's audits" audit -d bad.db
ends 1 "no file" audit -d a.db nothing

# A real program: its file is found, functions have addresses and names, and it says what it did.
cat >work.c <<'C'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline, noclone)) long sum(const unsigned *a, long size)
{
	long s = 0;
	for (long i = 0; i < size; i++)
		if (a[i] % 3 == 0)
			s += a[i];
		else if (a[i] & 8)
			s ^= i;
	return s;
}
__attribute__((noinline, noclone)) long mix(const unsigned *a, long k)
{
	long h = k;
	for (int i = 0; i < 400; i++)
		if (a[(h + i) & 511] & 1)
			h = (h * 31 + i) & 0xffffff;
		else
			h ^= h >> 3;
	return h;
}
static unsigned data[512];
int main(int argc, char **argv)
{
	long n = atol(argv[argc - 1]), h = 0;
	for (unsigned i = 0; i < 512; i++)
		data[i] = i * 2654435761u >> 7;
	for (long i = 0; i < n; i++) {
		h += sum(data, 100 + i % 200);
		h ^= mix(data, h & 0xffff);
	}
	printf("%ld\n", h);
	return 0;
}
C
gcc -O2 -Wl,--build-id -o work work.c || exit 1
command_ends 0 "instrument" morph-optimize instrument --kind=audit --all --report=none --counts="$PWD/real" work -o work.a
# On a busy machine windows are few: a longer run follows then.
for times in 1 4 16; do
	rm -f real a.db*
	listen real a.db
	want=$(./work $((500000 * times)))
	[ "$(./work.a $((500000 * times)))" = "$want" ] || fail "work.a: other output"
	hear 0 "a real program"
	says err.txt '^morphd: audited [1-9]'
	[ "$(sql a.db "SELECT count(*) FROM program_audit_effect WHERE pairs >= 10")" -lt 2 ] || break
done
[ "$(sql a.db 'SELECT sum(pairs) >= 30 AND sum(wrong + empty) = 0 FROM program_audit_effect')" = 1 ] ||
	fail "a real program: $(sql a.db 'SELECT * FROM program_audit_effect')"
ends 0 "a real program" audit -d a.db --json
json "a real program" '.audits[0] | .path == "'"$PWD"'/work.a" and .build_id != null and .original_build_id != null'
for name in sum mix; do
	at=0x$(nm work | sed -n "s/^0*\([0-9a-f]*\) T $name\$/\1/p")
	jq -e --arg at "$at" --arg name $name \
		'.audits[0].functions | any(.function == $name and .address == $at and .pairs > 0)' out.txt >/dev/null ||
		fail "a real program: no $name at $at: $(jq -c '.audits[0].functions[] | [.function, .address, .pairs]' out.txt)"
done
# Beside sampling: the command's output and status, shares of its samples, and the sum of the effects.
if morphd run --source=perf --record probe -- true 2>err.txt; then
	# The database that lists the output has its samples counted for the original.
	rm -f real b.db*
	morphd run --source=perf --db=b.db -- ./work 20000 >/dev/null 2>&1
	command_ends 0 "instrument" morph-optimize instrument --kind=audit --all --report=none --db=b.db \
		--counts="$PWD/real" work -o work.a
	for times in 1 4 16; do
		rm -f real
		command_ends 0 "sampled" morphd run --source=perf --audit=real --db=b.db -- ./work.a $((400000 * times))
		[ "$(cat out.txt)" = "$(./work $((400000 * times)))" ] || fail "sampled: other output"
		says err.txt '^morphd: audited [1-9]' "sampled"
		says err.txt '^morphd: captured [1-9]' "sampled"
		ends 0 "sampled" audit -d b.db --json
		jq -e '[.audits[0].functions[] | select(.function == "sum" or .function == "mix") | .share] | add > 0.5' \
			out.txt >/dev/null && break
	done
	json "sampled" '[.audits[0].functions[] | select(.function == "sum" or .function == "mix") | .share] | add > 0.5'
	json "sampled" '.audits[0].winners.times_as_fast > 0.5'
	command_ends 7 "the command's status" morphd run --source=perf --audit=none --db=b.db -- sh -c 'exit 7'
	says err.txt 'none: no program filled in this file'
else
	left_out="$left_out, sampling ($(head -n 1 err.txt))"
fi
ends 0 "a real program" audit -d a.db --json
# Of both files, the same audit.
cp out.txt all.txt
for file in work work.a; do
	ends 0 "$file" audit -d a.db --json $file
	cmp -s all.txt out.txt || fail "audit $file: $(diff all.txt out.txt | head -5)"
done
cp "$BUILD/morph-stats" other
ends 3 "another file" audit -d a.db other

finish
