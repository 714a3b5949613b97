#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: a round is killed before each of its system calls
# alone: it samples
# morph-worker killed before each system call that changes files: of a whole round, an undo, an upgrade with the
# round that follows, the end of probation, and an audit inside the program. The path always holds a whole
# version, the job has a state with a name, the next start continues, and the history has each step once.
#
# STRIDE=1 takes each point, as for the figures in Documentation/automation.md; SCENES names some of the scenes.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch killed
gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || exit 1
stride=${STRIDE:-12}
scenes=${SCENES:-round undo upgrade kept in-process}
total=0

# The original has the speed 100, a version of it 120; ./current is the original of these days.
cat >speed <<END
#!/bin/sh
if cmp -s "$dir/prog" "$dir/current"; then echo speed 100; else echo speed 120; fi
END
chmod 755 speed
cp original current
profile newer 12000
rule "mode = adopt" "$(by_speed)"
round="ask:watch profile:done write:done verify:done audit:faster adopt:done"

# Morph's programs, with a morphd that hands out what an audit inside the program found.
mkdir bin
cp "$BUILD/morph-worker" bin/
ln -s "$BUILD/morph-optimize" bin/
audits_by_speed bin
cat >bin/morphd <<END
#!/bin/sh
for o; do case \$o in --db=*) exec cp "$dir/audit.db" "\${o#--db=}" ;; esac; done
END
chmod 755 bin/morphd

# snapshot NAME, start_from NAME: all that the worker has made until then
snapshot() {
	mkdir "snap-$1"
	for f in state backup db prog; do
		[ ! -e $f ] || cp -a $f "snap-$1/"
	done
}
start_from() {
	rm -rf state backup cores/* db-wal db-shm
	cp -a "snap-$1/." .
}

# whole WHAT: prog is one of the whole versions
whole() {
	local version
	for version in original newer version-*; do
		! cmp -s prog "$version" || return 0
	done
	fail "$1: prog is no whole version"
}

one_step_each() { # WHAT
	local twice
	twice=$(db "SELECT step FROM history GROUP BY path, round, step HAVING count(*) > 1")
	[ -z "$twice" ] || fail "$1: twice in a round: $twice"
	"$BUILD/morph-stats" --db db status --check >out.txt 2>&1 || fail "$1: $(cat out.txt)"
}

# killed N: kill the worker at the Nth point. Return: whether it was killed.
killed() {
	./kill-at "$1" "$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup --now >out.txt 2>err.txt
	[ $? = 137 ]
}

# scene NAME FROM HOOK STATES END FILE HISTORY LEAST: kill at each point of what follows the snapshot FROM and
# HOOK; then the job is in one of STATES. The next start comes to END, with FILE at the path.
scene() {
	local name=$1 from=$2 hook=$3 states=$4 end=$5 file=$6 history=$7 least=$8 nr=0 state n
	case " $scenes " in *" $name "*) ;; *) return ;; esac
	for ((n = 1; ; n += stride)); do
		start_from "$from"
		$hook
		killed $n || break
		nr=$((nr + 1))
		whole "$name, killed at $n"
		if [ -s db ] && [ -n "$(sqlite3 db "SELECT name FROM sqlite_master WHERE name = 'job'")" ]; then
			state=$(db "SELECT state FROM job")
			case " $states " in
			*" $state "*) ;;
			*) [ -z "$state" ] || fail "$name, killed at $n: the state is '$state'" ;;
			esac
		fi
		work 0 "$name, after a kill at $n" --now
		state_is "$end" "$name, after a kill at $n"
		cmp -s prog "$file" || fail "$name, after a kill at $n: not $file"
		history_is "$history" "$name, after a kill at $n"
		one_step_each "$name, after a kill at $n"
		left=$(find . -maxdepth 1 -name '.morph*')
		[ -z "$left" ] || fail "$name, after a kill at $n: left behind: $left"
		[ $nr_failed -lt 5 ] || finish
	done
	whole "$name, the last kill"
	echo "killed at $nr points of $name"
	[ $((nr * stride)) -ge "$least" ] || fail "$name: only $nr points"
	total=$((total + nr))
}

# ---- what each scene begins with, and the versions that there are
snapshot profile
work 0 "without a kill" --now
state_is adopted "without a kill"
history_is "$round" "without a kill"
cp prog version-adopted
snapshot adopted

crashes() {
	touch cores/core.prog.0.0123.77.1
}
upgrade() {
	cp newer current
	cp newer prog.dpkg-new && mv prog.dpkg-new prog
}

scene round profile : "wanted profiled written verified audited adopted" adopted version-adopted "$round" 40
scene undo adopted crashes "adopted undoing undone" undone original "$round probation:crashed undo:done" 20

upgraded="$round upgrade:changed profile:done write:done verify:done audit:faster adopt:done"
case " $scenes " in *" upgrade "*)
	start_from adopted
	upgrade
	work 0 "upgrade without a kill" --now
	state_is adopted "upgrade without a kill"
	history_is "$upgraded" "upgrade without a kill"
	cp prog version-upgraded
	;;
esac
scene upgrade adopted upgrade "adopted wanted profiled written verified audited" adopted version-upgraded "$upgraded" 40
cp original current

policy "probation = 0"
scene kept adopted : "adopted kept" kept version-adopted "$round probation:kept" 5
policy

# ---- inside the program. How often a function is entered must be known from real samples: with 4,000, or with
# 8,000 of which one happens to be at the entry, it may be entered too often for an audit.
"$BUILD/morphd" run --record probe -- true 2>err.txt || {
	echo "skip: in-process: $(head -n 1 err.txt)"
	scenes=${scenes/in-process/}
	left_out=" in-process"
}

# What an audit of the version that times itself found is made once.
case " $scenes " in *" in-process "*)
	rm -rf state backup db-wal db-shm db
	gcc -O2 -Wl,--emit-relocs -o version-server "$root/tests/e2e/manager/server.c" || exit 1
	cp version-server prog
	policy "min-samples = 1000"
	sampled db "$dir/prog" 16000 ./prog work 1000
	snapshot server
	"$BUILD/morph-optimize" instrument --kind=audit --db=db --min-samples=1000 --counts="$dir/ring" --report=none prog -o timed || exit 1
	"$BUILD/morphd" run --audit=ring --db=audit.db >/dev/null 2>err.txt &
	reader=$!
	audit_listens $reader
	# One process of seconds: the reader searches for the program while it runs, and again after half a second, a second and so on.
	./timed work 3000 >/dev/null
	kill -INT $reader
	wait $reader || fail "the reader ended with $?: $(cat err.txt)"
	[ "$(sqlite3 audit.db "SELECT count(*) FROM program_audit_effect WHERE vaddr != 0")" != 0 ] ||
		fail "in-process: the reader did not find the program: $(cat err.txt)"
	sqlite3 audit.db "UPDATE program_audit_effect SET verdict = 2, decided_at = 64, pairs = 64, estimate = 0.2,
		lowest = 0.1, highest = 0.3; PRAGMA wal_checkpoint(TRUNCATE)" >/dev/null
	chmod 644 audit.db
	rule "mode = adopt" "instrument = yes" "audit-time = 600"
	worker=$dir/bin/morph-worker
	# Its morphd sees the version that times itself in place.
	sed -i "2i cp '$dir/prog' '$dir/shown/version-timed'" bin/morphd
	mkdir -m 777 shown
	work 0 "in-process without a kill" --now
	state_is adopted "in-process without a kill"
	sed -i 2d bin/morphd
	cp prog version-in-process
	cp shown/version-timed . || fail "in-process: no version that times itself"
	;;
esac
inside="ask:watch profile:done write:done verify:done instrument:done audit:faster adopt:done"
scene in-process server : "wanted profiled written verified auditing audited adopted" adopted version-in-process "$inside" 60
echo "killed at $total points in all, each ${stride}th"
finish
