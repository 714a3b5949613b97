#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph live with the path of a program changes all its processes, the parent first; a child that is made later has what its
# parent has, and undo by the path takes it back in all.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch prefork
need setsid
gcc -O1 -o prefork "$root/tests/e2e/live/prefork.c" || exit 1
start setsid ./prefork 4
# setsid may have made a process of its own; its number is that of the group, too.
parent=$(pgrep -o -x prefork -s "$pid" || pgrep -x prefork -P "$pid")
pid=$parent
at_exit "kill -9 -- -$parent 2>/dev/null; rm -rf '$dir'"
version prefork.live prefork

# states: of all processes, with their numbers
states() {
	live status "$dir/prefork" || fail "status: $(cat err.txt)"
	jq -r '.processes[].state' out.txt | sort | uniq -c | tr -s ' \n' ' '
}

live adopt "$dir/prefork" prefork.live || fail "adopt: $(cat err.txt)"
[ "$(jq '.processes | length' out.txt)" = 5 ] || fail "not five processes: $(cat out.txt)"
[ "$(jq '.processes[0].pid' out.txt)" = "$parent" ] || fail "the parent is not first: $(cat out.txt)"
[ "$(states)" = " 5 in use " ] || fail "after adopt: $(states)"
kill -USR1 "$parent"
awaits 'grep -q more run.txt' || fail "no child"
[ "$(states)" = " 6 in use " ] || fail "the new child has not what its parent has: $(states)"
"$BUILD/morph" live status >out.txt || fail "status of all"
says out.txt "in use"
"$BUILD/morph" live undo "$dir/prefork" >out.txt 2>err.txt || fail "undo: $(cat err.txt)"
live status "$dir/prefork"
[ "$(jq '[.processes[] | select(.state == "in use")] | length' out.txt)" = 0 ] || fail "after undo: $(states)"
for pid in $(pgrep -x prefork -g "$parent"); do
	text_is prefork || fail "$pid: the code differs from the file's"
done
command_ends 1 "a program that nobody runs" "$BUILD/morph" live status /bin/false
says err.txt "no process runs it"
command_ends 1 "no unit" "$BUILD/morph" live status no-such-unit.service
says err.txt "no unit"
kill -TERM "$parent"
awaits 'grep -q done run.txt' || fail "it does not end"
says run.txt "all right"
[ $nr_failed = 0 ]
