# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of morph-worker: a program, its profile, a policy in the test's directory.

# manager_scratch NAME: a directory that other users can enter, since commands run as nobody; with a program,
# ./prog (a copy of ./original), and a profile of it in db
manager_scratch() {
	dir=$(mktemp -d "/tmp/$1.XXXXXX") || exit 1
	trap 'rm -rf "$dir"' EXIT
	cd "$dir" || exit 1
	chmod 755 "$dir"
	mkdir -p etc/watch.d cores
	cat >prog.c <<'END'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int pick(int x)
{
	switch (x & 7) {
	case 0: return x * 3;
	case 1: return x - 7;
	case 2: return x / 5;
	case 3: return x ^ 0x55;
	case 4: return x % 9;
	default: return ~x;
	}
}
__attribute__((noinline)) int hot(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i % 7 == 3 ? pick(i + 1) : pick(i);
	return sum;
}
int main(int argc, char **argv)
{
	printf("%d\n", hot(argc > 1 ? atoi(argv[1]) : 1000));
	return 0;
}
END
	gcc -O2 -Wl,--emit-relocs -o original prog.c && gcc -O1 -Wl,--emit-relocs -o newer prog.c || exit 1
	cp original prog
	worker=$BUILD/morph-worker
	policy
	profile prog 12000
}

# profile FILE SAMPLES [FUNCTION]: samples of the function (default: hot), as if FILE had run
profile() {
	{
		readelf -lW "$1" | awk -v file="$dir/$1" '$1 == "LOAD" && / R E / {
			printf "p 7/7 1.0: PERF_RECORD_MMAP2 7/7: [%s(%s) @ %s 00:00 0 0]: r-xp %s\n", $3, $5, $2, file }'
		objdump -d --no-show-raw-insn --disassemble="${3:-hot}" "$1" |
			awk -v file="$dir/$1" -v n="$2" '/^ +[0-9a-f]+:/ { sub(":", "", $1); at[k++] = $1 }
			END { for (i = 0; i < n; i++) printf "p 7/7 1.1: cycles:u: %s f (%s)\n", at[i % k], file }'
	} >perf.text
	"$BUILD/morph-stats" --db db import perf.text >/dev/null || fail "import: $1"
}

# policy LINE...: morph.conf; core files come from ./cores
policy() {
	printf '%s\n' "coredumps = $dir/cores" "share = 0" "$@" >etc/morph.conf
}

# rule LINE...: the rule of ./prog
rule() {
	printf '%s\n' "program = $dir/prog" "$@" >etc/watch.d/prog.conf
}

# An audit that needs no time: the command prints how fast it says the version is, by its bytes.
# speed NUMBER: of any version but the original, which has 100
speed() {
	cat >speed <<END
#!/bin/sh
if cmp -s "$dir/prog" "$dir/original"; then echo speed 100; else echo speed $1; fi
END
	chmod 755 speed
}
by_speed() {
	printf '%s\n' "command = $dir/speed" "metric = /speed ([0-9]+)/" "audit-time = 60"
}

# work STATUS WHAT ARGS...: run the worker
work() {
	command_ends "$1" "$2" "$worker" --config=etc --db=db --state-dir=state --backup-dir=backup "${@:3}"
}

# db SQL: ask the database
db() {
	sqlite3 db "$1"
}

# state_is STATE WHAT
state_is() {
	local now
	now=$(db "SELECT state FROM job WHERE path = '$dir/prog'")
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
	cp original prog
}
