#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# morph-worker killed before each system call that changes files, of a whole round and of an undo: the path
# always holds a whole version, the job has a state with a name, the next start continues, and the
# history has each step once.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch killed
gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || exit 1
speed 120
rule "mode = adopt" "$(by_speed)"
cp db db.profile
round="ask:watch profile:done write:done verify:done audit:faster adopt:done"

begin() {
	rm -rf state backup cores/*
	rm -f db-wal db-shm
	cp db.profile db
	cp original prog
}

# whole WHAT: prog is one of the two versions, complete; nothing else is left beside it
whole() {
	cmp -s prog original || cmp -s prog version || fail "$1: prog is neither version"
	[ "$(./prog 999)" = "$want" ] || fail "$1: prog prints $(./prog 999)"
}

one_step_each() { # WHAT
	local twice
	twice=$(db "SELECT step FROM history GROUP BY path, round, step HAVING count(*) > 1")
	[ -z "$twice" ] || fail "$1: twice in a round: $twice"
	"$BUILD/morph-stats" --db db status --check >out.txt 2>&1 || fail "$1: $(cat out.txt)"
}

args="--config=etc --db=db --state-dir=state --backup-dir=backup --now"
want=$(./original 999)
begin
work 0 "without a kill" --now
state_is adopted "without a kill"
history_is "$round" "without a kill"
cp prog version

# killed N: kill the worker at the Nth point. Return: whether it was killed.
killed() {
	# shellcheck disable=SC2086
	./kill-at "$1" "$worker" $args >out.txt 2>err.txt
	[ $? = 137 ]
}

# ---- a whole round
nr=0
stride=${STRIDE:-3} # STRIDE=1: each point
for ((n = 1; ; n += stride)); do
	begin
	killed $n || break
	nr=$((nr + 1))
	whole "killed at $n"
	if [ -e db ] && [ -n "$(sqlite3 db "SELECT name FROM sqlite_master WHERE name = 'job'")" ]; then
		state=$(db "SELECT state FROM job")
		case $state in
		'' | wanted | profiled | written | verified | audited | adopted) ;;
		*) fail "killed at $n: the state is '$state'" ;;
		esac
	fi
	work 0 "after a kill at $n" --now
	state_is adopted "after a kill at $n"
	cmp -s prog version || fail "after a kill at $n: another version"
	history_is "$round" "after a kill at $n"
	one_step_each "after a kill at $n"
	left=$(find . -maxdepth 1 -name '.morph*')
	[ -z "$left" ] || fail "after a kill at $n: left behind: $left"
	[ $nr_failed -lt 5 ] || finish
done
whole "the last kill"
echo "killed at $nr points of a round"
[ $nr -ge $((40 / stride)) ] || fail "only $nr points"

# ---- an undo
undone="$round probation:crashed undo:done"
nr=0
for ((n = 1; ; n += stride)); do
	begin
	work 0 "before an undo" --now
	touch cores/core.prog.0.0123.77.1
	killed $n || break
	nr=$((nr + 1))
	whole "undo, killed at $n"
	work 0 "undo, after a kill at $n" --now
	state_is undone "undo, after a kill at $n"
	cmp -s prog original || fail "undo, after a kill at $n: not the original"
	history_is "$undone" "undo, after a kill at $n"
	one_step_each "undo, after a kill at $n"
	[ $nr_failed -lt 5 ] || finish
done
echo "killed at $nr points of an undo"
finish
