#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone and waits for samples of a server in several phases, more than a minute
# alone: it samples
# morph-worker audits a server inside its process, if the rule says `instrument': a version that times its
# functions is in place for a while, then the original is back, then the version that won is adopted. Without
# that key, after a crash, an upgrade or a change of the policy, no version with stubs stays.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3 python3
manager_scratch in-process
sampling
rm -f db db-*
gcc -O2 -Wl,--emit-relocs -o original "$root/tests/e2e/manager/server.c" || exit 1
gcc -O1 -Wl,--emit-relocs -o newer "$root/tests/e2e/manager/server.c" || exit 1
cp original prog
# More samples than morph.conf asks for by default: with 4,000, one that falls on the entry by chance (a page
# fault takes long) makes the function look as if it were entered too often to be timed.
sampled db "$dir/prog" 16000 ./prog work 1000
cp db db.profile
policy "min-samples = 1000"
me=$(id -un)
want=$(./original work 50)

# The server serves all the time; it starts anew after some requests, as after an upgrade.
touch serving
(while [ -e serving ]; do
	./prog "$dir/socket" 25 &
	echo $! >serves
	wait $! || sleep 0.2
done) 2>/dev/null &
server=$!
cat >client.py <<'END'
"""client.py SOCKET ANSWER: asks until ./serving is gone; prints how many answers were wrong."""
import os
import socket
import sys
import time
answers = set()
while os.path.exists("serving"):
    try:
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        answer = s.recv(100)
        if answer:
            answers.add(answer)
        time.sleep(0.02)
    except OSError:
        time.sleep(0.01)
print(len(answers))
END
python3 client.py "$dir/socket" >answers &
client=$!
at_exit 'kill $server $client $(cat serves) 2>/dev/null; rm -rf "$dir"'

# audits FILE: does it time its functions?
audits() {
	readelf -SW "$1" | grep -q '\.morph\.audit'
}
again() {
	rm -rf state backup cores/* db-*
	cp db.profile db
	cp original prog.new && mv prog.new prog
}
# in_place: wait until the version that times itself is in place
in_place() {
	for _ in {1..600}; do
		! audits prog || return 0
		sleep 0.2
	done
	fail "$1: no version that times itself: $(cat err.txt)"
}

# ---- the key is not there: advice, and the file stays
rule "mode = adopt" "user = $me"
work 0 "no key" --now
state_is advised "no key"
says err.txt 'its rule names no command, so it is only advised' "no key"
cmp prog original || fail "no key, and yet a change"

# ---- the whole way
rule "mode = adopt" "instrument = yes" "user = $me" "audit-time = 45"
work 0 "in-process" --now &
working=$!
in_place "in-process"
wait $working
state_is adopted "in-process"
says err.txt 'audited: .* times as fast (.*) by 1 functions; 0 are faster as they were' "in-process"
db "SELECT step || ':' || verdict FROM history WHERE round = 2 ORDER BY key" >steps
printf '%s\n' allow:changed profile:done write:done verify:done instrument:done audit:faster adopt:done |
	diff - steps >&2 || fail "in-process: other steps"
audits prog && fail "in-process: the version with stubs is still there"
cmp -s prog original && fail "in-process: nothing was adopted"
[ "$(./prog work 50)" = "$want" ] || fail "in-process: another output"
"$BUILD/morph-optimize" verify --report=none original prog || fail "in-process: does not verify"
[ "$(db 'SELECT ratio > 1 AND lowest > 1 AND ratio <= highest FROM job')" = 1 ] ||
	fail "in-process: $(db 'SELECT ratio, lowest, highest FROM job')"
"$BUILD/morph-stats" --db db status --check >out.txt 2>&1 || fail "in-process: $(cat out.txt)"

# ---- it crashes while it times itself: undone before the audit is over, and nothing is adopted. A second name, as perf's
# cache gives it, does not hinder that.
again
rule "mode = adopt" "instrument = yes" "user = $me" "audit-time = 300"
work 0 "crash" --now &
working=$!
in_place "crash"
sleep 1
ln prog second
touch cores/core.prog.0.0123.77.1
SECONDS=0
wait $working
[ $SECONDS -lt 300 ] || fail "crash: undone after $SECONDS s"
state_is undone "crash"
cmp prog original || fail "crash: not the original"
rm second

# ---- somebody upgrades the file while it times itself: what was written stays
again
work 0 "upgrade" --now &
working=$!
in_place "upgrade"
sleep 1
cp newer prog.new && mv prog.new prog
wait $working
state_is wanted "upgrade"
cmp prog newer || fail "upgrade: not the new file"

# ---- the policy changes while it times itself: the original is back at the next start
again
"$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup --now >out.txt 2>err.txt &
working=$!
in_place "policy"
sleep 1
kill -TERM $working
wait $working || fail "policy: status $?: $(cat err.txt)"
state_is auditing "policy"
audits prog || fail "policy: it does not time itself"
"$BUILD/morph" --db=db explain ./prog >out.txt 2>&1
says out.txt 'A version that times its own functions is in use' "policy"
rule "mode = advise" "instrument = yes" "user = $me"
work 0 "policy" --now
cmp prog original || fail "policy: not the original"
[ "$(db "SELECT state IN ('advised', 'undecided', 'not-faster') FROM job")" = 1 ] || fail "policy: $(db 'SELECT state FROM job')"

# ---- morph undo, while it times itself
again
rule "mode = adopt" "instrument = yes" "user = $me" "audit-time = 300"
"$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup --now >out.txt 2>err.txt &
working=$!
in_place "undo"
kill -TERM $working
wait $working
command_ends 0 "undo" "$BUILD/morph" --db=db --backup-dir=backup undo ./prog
cmp prog original || fail "undo: not the original"
state_is undone "undo"

# ---- nobody runs it: undecided, and the original is back
rm serving
wait $client
kill $(cat serves)
wait $server
[ "$(cat answers)" = 1 ] || fail "the server gave $(cat answers) different answers"
again
rule "mode = adopt" "instrument = yes" "user = $me" "audit-time = 2"
work 0 "nobody" --now
state_is undecided "nobody"
cmp prog original || fail "nobody: not the original"
finish
