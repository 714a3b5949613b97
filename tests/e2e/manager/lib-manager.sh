# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of morph-worker: a program, its profile, a policy in the test's directory.
. "$root/tests/e2e/manager/lib-speed.sh"
. "$root/tests/e2e/manager/lib-samples.sh"

# manager_scratch NAME: a directory that other users can enter, since commands run as nobody; with a program,
# ./prog (a copy of ./original), and a profile of it in db
manager_scratch() {
	dir=$(mktemp -d "/tmp/$1.XXXXXX") || exit 1
	trap 'rm -rf "$dir"' EXIT
	cd "$dir" || exit 1
	chmod 755 "$dir"
	mkdir -p etc/watch.d cores
	cp "$root/tests/data/pick.c" prog.c
	gcc -O2 -Wl,--emit-relocs -o original prog.c && gcc -O1 -Wl,--emit-relocs -o newer prog.c || exit 1
	cp original prog
	worker_by_speed worker
	worker=$dir/worker/morph-worker
	policy
	profile prog 12000
}

# profile FILE SAMPLES [FUNCTION]: samples of the function (default: hot), as if FILE had run
profile() {
	samples_as_perf "$dir/$1" "$2" "${3:-hot}" >perf.text
	"$BUILD/morph-stats" --db db import perf.text >/dev/null || fail "import: $1"
}

# policy LINE...: morph.conf
policy() {
	printf '%s\n' "share = 0" "$@" >etc/morph.conf
}

# rule LINE...: the rule of ./prog
rule() {
	printf '%s\n' "program = $dir/prog" "$@" >etc/watch.d/prog.conf
}

# speed NUMBER: what ./speed says of any version but the original, which has 100
speed() {
	cat >speed <<END
#!/bin/sh
if cmp -s "$dir/prog" "$dir/original"; then echo speed 100; else echo speed $1; fi
END
	chmod 755 speed
}
by_speed() {
	printf '%s\n' "command = $dir/speed" "audit-time = 60"
}

# work STATUS WHAT ARGS...: run the worker; core files come from ./cores
work() {
	command_ends "$1" "$2" "$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup "${@:3}"
}

# db SQL: ask the database
db() {
	sqlite3 -cmd '.timeout 5000' db "$1"
}

# the file whose job is looked at, in $dir
subject=prog

# state_is STATE WHAT
state_is() {
	local now
	now=$(db "SELECT state FROM job WHERE path = '$dir/$subject'")
	[ "$now" = "$1" ] || {
		fail "$2: the job is $now, not $1: $(db 'SELECT detail FROM job')"
		tail -n 8 err.txt | sed 's/^/    /'
	}
}

# history: the steps of all rounds, in one line
history_is() {
	local now
	now=$(db "SELECT group_concat(step || ':' || verdict, ' ') FROM (SELECT * FROM history ORDER BY key)")
	[ "$now" = "$1" ] || fail "$2: history is '$now', not '$1'"
}

# forget: begin anew, with the original and the profile
forget() {
	rm -rf state backup cores/*
	db "DELETE FROM job; DELETE FROM history; DELETE FROM rejected_layout; DELETE FROM spent"
	# A process that has loaded a library has its bytes.
	cmp -s original "$subject" || cp --remove-destination original "$subject"
}

# begin_work: the worker in the background, with its messages in err.txt; times of versions in turns are so much shorter
worker_pid=
pace=0.02
begin_work() {
	"$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup --lab-pace=$pace --now >out.txt 2>err.txt &
	worker_pid=$!
}

# wait_for STATE WHAT: until the job of ./$subject is in this state; the test ends if the worker ends in another one
wait_for() {
	local there=1
	awaits "kill -0 $worker_pid 2>/dev/null || there=0
		[ \"\$(db \"SELECT state FROM job WHERE path = '$dir/$subject'\")\" = $1 ] || [ \$there = 0 ]" && [ $there = 1 ] && return
	[ "$(db "SELECT state FROM job WHERE path = '$dir/$subject'")" = "$1" ] && return
	fail "$2: the job is $(db 'SELECT state, detail FROM job'), not $1: $(tail -n 3 err.txt)"
	touch stop
	kill "$worker_pid" 2>/dev/null
	finish
}
