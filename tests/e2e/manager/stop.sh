#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker stopped in the middle of an audit, by SIGTERM, and then because the machine is wanted: the job
# keeps its state, the pairs are kept, the next start goes on with them, and history has each step once.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch stop
round="ask:watch profile:done write:done verify:done"

# In the first start the audit makes some pairs and waits then; in the second it waits at once.
cat >speed <<END
#!/bin/sh
phase=\$(cat "$dir/phase")
echo >>"$dir/runs/\$phase"
while [ "\$(wc -l <"$dir/runs/\$phase")" -gt "\$(cat "$dir/most")" ]; do
	[ -d "$dir" ] || exit 1
	sleep 0.1
done
if cmp -s "$dir/prog" "$dir/original"; then echo speed 100; else echo speed 120; fi
END
chmod 755 speed
mkdir runs
chmod 777 runs
rule "mode = adopt" "$(by_speed | sed 's/audit-time = 60/audit-time = 300/')"

kept() { # rows of the kept pairs
	cat state/*/train/pairs.csv
}
# start PHASE MOST ARGS...: a worker in the background, whose audit waits after MOST runs of the command
start() {
	echo "$1" >phase
	echo "$2" >most
	"$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup "${@:3}" >out.txt 2>err.txt &
	running=$!
}
# waits: the audit has come to where it waits
waits() {
	until [ -e "runs/$(cat phase)" ] && [ "$(wc -l <"runs/$(cat phase)")" -gt "$(cat most)" ]; do
		kill -0 $running 2>/dev/null || {
			fail "the worker ended before: $(cat err.txt)"
			return
		}
		sleep 0.1
	done
}
stopped() { # WHAT
	wait $running || fail "$1: status $?: $(cat err.txt)"
	state_is verified "$1"
	history_is "$round" "$1"
	cmp -s prog original || fail "$1: the program was changed"
	[ -e backup ] && fail "$1, and yet a backup"
}

start 1 9 --now
waits
kill -TERM $running
stopped "SIGTERM"
says err.txt 'told to stop' "SIGTERM"
kept >first || fail "SIGTERM: no pairs are kept"
[ "$(wc -l <first)" -ge 3 ] || fail "SIGTERM: kept: $(cat first)"

# ---- others use the CPUs; of busy = 0 any use is too much
policy "load = 1000" "battery = yes" "busy = 0"
start 2 0
waits
(while [ -e out.txt ] && kill -0 $running 2>/dev/null; do :; done) &
others=$!
stopped "wanted"
wait $others
says err.txt 'the machine is wanted' "wanted"
kept >second || fail "wanted: no pairs are kept"
head -n "$(wc -l <first)" second | cmp -s - first || fail "wanted: the pairs are lost: $(cat first second)"

# ---- nobody stops it
policy
echo 3 >phase
echo 1000000 >most
work 0 "the next start" --now
state_is adopted "the next start"
history_is "$round audit:faster adopt:done" "the next start"
kept >third
head -n "$(wc -l <second)" third | cmp -s - second || fail "the next start: other pairs: $(cat second third)"
pairs=$(jq .pairs state/*/evidence)
[ $((2 * pairs)) -gt "$(wc -l <runs/3)" ] ||
	fail "the next start: $pairs pairs, and yet $(wc -l <runs/3) runs: it began anew"
"$BUILD/morph-stats" --db db status --check >out.txt 2>&1 || fail "$(cat out.txt)"
finish
