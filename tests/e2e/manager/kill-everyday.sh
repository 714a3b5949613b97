#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: a worker, `morph on` and `morph off` are killed before their system calls
# alone: it samples
# timeout: 1800
# morph-worker killed before each system call that changes files while everyday use is counted and tried; in the middle
# of each swap, together with the program that swaps; and `morph on' and `morph off' likewise. The path always holds the
# original or a version with a name that is proved to do the same. The next `morph off' puts the original back; or,
# each tenth time, the next start first goes on to the trial.
#
# STRIDE=1 takes each point, as for the figures in Documentation/automation.md; SCENES names some of the scenes. Two more take an
# hour: `count' and `try', the worker alone before each of its changes. `end' begins when a trial is won: the original comes
# back, and the new version is adopted.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root, for the CPU time of processes"
	exit 77
}
manager_scratch killed-everyday
gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || exit 1
# A busy machine needs a window that is long enough to count in.
pace=0.05
stride=${STRIDE:-25}
scenes=${SCENES:-swap-count swap-try on off-count off-try end}
export STATE_DIRECTORY=$dir/state
total=0
printf '%s\n' "min-samples = 1000" "cost = 100%" >etc/morph.conf
# A program with a place that runs some ten thousand times a second, for the work meter.
cat >prog.c <<'END'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) unsigned int hot(unsigned int x)
{
	for (int i = 0; i < 20000; i++)
		x = x & 64 ? x * 5 + 1 : (x >> 3) ^ (x * 9 + 7);
	return x;
}
int main(int argc, char **argv)
{
	unsigned int x = argc;
	for (int n = atoi(argv[1]) / 20000 + 1; n > 0; n--)
		x = hot(x);
	printf("%u\n", x);
	return 0;
}
END
gcc -O2 -Wl,--emit-relocs -o original prog.c || exit 1
cp original prog
rm -f db db-wal db-shm
profile prog 12000
want=$(./original 777)

# The worker's morph-optimize, which ends in the middle of a swap if the file `swap' says where, and the worker with it.
rm worker/morph-optimize
cat >worker/morph-optimize <<END
#!/bin/sh
case "\$1 \$*" in "adopt "*--proved* | "restore "*)
	[ ! -s "$dir/swap" ] || {
		"$dir/kill-at" "\$(cat "$dir/swap")" "$BUILD/morph-optimize" "\$@"
		status=\$?
		[ \$status != 137 ] || { touch "$dir/killed"; kill -KILL "\$PPID"; }
		exit \$status
	} ;;
esac
exec "$BUILD/morph-optimize" "\$@"
END
chmod 755 worker/morph-optimize

# Everyday use, until the file `stop' is there.
use() {
	while [ ! -e stop ]; do
		[ "$(./prog 777)" = "$want" ] || touch wrong
		./prog 30000000 >/dev/null || touch wrong
	done
}
end_use() {
	touch stop
	wait
	[ ! -e wrong ] || fail "everyday use: a process failed, or printed something else"
	finish
}
m() { # STATUS WHAT ARGS
	command_ends "$1" "$2" "$BUILD/morph" --db=db --backup-dir=backup "${@:3}"
}
works_for() { # SECONDS [KILL-AT N]: the worker works for so long at most
	timeout --signal=KILL "$1" "${@:2}" "$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup \
		--lab-pace=$pace --now >out.txt 2>err.txt
} 2>/dev/null

# ---- what must hold whenever a process was killed
# named: prints the name of the version in place
named() {
	local file
	! cmp -s prog original || { echo original; return; }
	for file in state/*/{counting,metered-original,metered-new,output}; do
		! cmp -s prog "$file" || { basename "$file"; return; }
	done
	return 1
}
declare -A proved seen states
holds() { # WHAT
	local name hash state
	name=$(named) || fail "$1: prog is no version with a name"
	hash=$(sha256sum <prog)
	[ "$name" = original ] || [ -n "${proved[$hash]:-}" ] ||
		"$BUILD/morph-optimize" verify --report=none --kind=layout,edges,edges+threads,meter original prog ||
		fail "$1: what is in place ($name) does not verify"
	proved[$hash]=1
	seen[${name:-none}]=$((${seen[${name:-none}]:-0} + 1))
	[ "$(./prog 777)" = "$want" ] || fail "$1: prog prints something else"
	state=$(db "SELECT state FROM job")
	states[${state:-none}]=$((${states[${state:-none}]:-0} + 1))
	# shellcheck disable=SC2194
	case "  wanted counting profiled written verified trying audited adopted kept advised not-faster undecided undoing undone " in
	*" $state "*) ;; # or none yet
	*) fail "$1: the state is '$state'" ;;
	esac
}
once() { # WHAT
	local twice
	twice=$(db "SELECT step FROM history GROUP BY path, round, step HAVING count(*) > 1")
	[ -z "$twice" ] || fail "$1: twice in a round: $twice"
	"$BUILD/morph-stats" --db db status --check >out.txt 2>&1 || fail "$1: $(cat out.txt)"
}
is_off() { # WHAT
	cmp prog original || fail "$1: the original is not back"
	[ ! -e etc/on.conf ] || fail "$1: on.conf is there"
	[ -z "$(find state -name '*counting*' -o -name '*metered*')" ] || fail "$1: left: $(find state)"
	[ -z "$(find . -maxdepth 1 -name '.morph*')" ] || fail "$1: left beside prog: $(find . -maxdepth 1 -name '.morph*')"
}
# goes_on WHAT: the next start comes to the trial, or to the end of the round; then it is killed there
goes_on() {
	local pid
	"$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup --lab-pace=$pace --now >out.txt 2>err.txt &
	pid=$!
	# shellcheck disable=SC2016
	awaits '[[ " trying adopted not-faster undecided undone advised " == *" $(db "SELECT state FROM job") "* ]]' ||
		fail "$1: the next start does not go on: $(db 'SELECT state, detail FROM job')"
	[ "$(db 'SELECT state FROM job')" != undone ] || [ ! -e etc/on.conf ] ||
		fail "$1: the next start has undone it: $(db 'SELECT detail FROM job')"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	holds "$1, gone on"
	once "$1, gone on"
}
# after_kill WHAT
after_kill() {
	holds "$1"
	once "$1"
	total=$((total + 1))
	[ $((total % 10)) != 0 ] || goes_on "$1"
	m 0 "$1: off" off --policy=etc
	is_off "$1: off"
	once "$1: off"
	[ $nr_failed -lt 5 ] || end_use
}

# ---- where the scenes begin
snapshot() {
	mkdir "snap-$1"
	cp -a state backup etc db prog "snap-$1/"
	[ ! -e db-wal ] || cp -a db-wal "snap-$1/"
	find . -maxdepth 1 -name '.morph-*' -exec cp -a {} "snap-$1/" \;
}
start_from() {
	rm -rf state backup etc db db-wal db-shm killed swap .morph-*
	cp -a "snap-$1"/{state,backup,etc,db*} .
	find "snap-$1" -maxdepth 1 -name '.morph-*' -exec cp -a {} . \;
	# Everyday use executes what lies at the path.
	cp -a "snap-$1/prog" prog.new && mv -f prog.new prog
}
m 0 "on" on --policy=etc --only="$dir/prog"
mkdir -p state backup
snapshot wanted
use &
at_exit "touch '$dir/stop'; wait; rm -rf '$dir'"
# reach NAME VERSION: the worker is killed while VERSION is in place
reach() {
	local tries=0 pid
	"$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup --lab-pace=$pace --now >out.txt 2>err.txt &
	pid=$!
	until [[ "$(named)" =~ ^($2)$ ]]; do
		[ $((++tries)) -lt 3000 ] || { fail "$1: not reached: $(tail -n 5 err.txt)"; kill $pid; end_use; }
		sleep 0.02
	done
	kill -KILL $pid
	wait $pid 2>/dev/null
	snapshot "$1"
}
case "$scenes" in *swap-count* | *off-count*) reach count counting ;; esac
case "$scenes" in *try* | *end*) reach try 'metered-(original|new)|output' ;; esac
# win: the trial of the scene `try' gets as many pairs as the new version needs to win
win() {
	local trial nr counts
	start_from try
	trial=$(echo state/*/trial)
	counts=$(jq -r '.weights | map(if . > 0 then 1 / . | floor else 0 end) | join(" ")' "$trial")
	for ((nr = 0; nr < 200; nr++)); do printf 'draw\npair 1.3 5 %s 1.0 5 %s\n' "$counts" "$counts"; done >pairs.txt
	# shellcheck disable=SC2046
	nr=$("$BUILD/tools/everyday" trial $(jq -r '.alpha, .least_work, .max_pairs, .weights[]' "$trial") <pairs.txt 2>/dev/null |
		jq -s 'map(.verdict // empty) | index("faster") + 1') || { fail "win: no number of pairs"; end_use; }
	jq -c --argjson nr "$nr" '(.weights | map(if . > 0 then 1 / . | floor else 0 end)) as $c | .drawn = -1 | .abandoned = 0 |
		.pairs = [range($nr) | [. % 2, [1.3, 5, 0] + $c, [1.0, 5, 0] + $c]]' "$trial" >won && mv won "$trial" || exit 1
	snapshot won
}
case "$scenes" in *end*) win ;; esac

# each NAME FROM LEAST COMMAND...: COMMAND is called with N = 1, 1 + STRIDE, ... until it is not killed
each() {
	local name=$1 from=$2 least=$3 n nr=0 ret
	case " $scenes " in *" $name "*) ;; *) return ;; esac
	for ((n = 1; ; n += stride)); do
		start_from "$from"
		"${@:4}" "$n"
		ret=$?
		[ $ret = 137 ] || break
		nr=$((nr + 1))
		after_kill "$name, killed at $n"
	done
	echo "killed at $nr points of $name"
	[ $((nr * stride)) -ge "$least" ] || fail "$name: only $nr points: $(tail -n 2 err.txt)"
}
# The worker alone, before its Nth change.
at_worker() { works_for 120 ./kill-at "$1"; }
# The program that swaps, before its Nth change, and the worker with it.
at_swap() {
	echo "$1" >swap
	works_for 10
	rm -f swap
	[ ! -e killed ] || return 137
	return 0
}
# The same, until the new version is in use.
at_end() {
	at_worker "$1"
	local ret=$?
	[ $ret = 137 ] || [ "$(db "SELECT state FROM job")" = adopted ] || fail "end: $(db "SELECT state, detail FROM job")"
	return $ret
}
at_on() { ./kill-at "$1" "$BUILD/morph" --db=db --backup-dir=backup on --policy=etc --only="$dir/p*" >out.txt 2>err.txt; }
at_off() { ./kill-at "$1" "$BUILD/morph" --db=db --backup-dir=backup off --policy=etc >out.txt 2>err.txt; }
each on wanted 3 at_on
# These are few points, so each counts.
stride=$((stride > 5 ? 5 : stride))
each swap-count count 10 at_swap
each swap-try try 10 at_swap
each off-count count 20 at_off
each off-try try 20 at_off
each end won 20 at_end
stride=${STRIDE:-25}
each count wanted 50 at_worker
each try try 50 at_worker
for name in "${!seen[@]}"; do
	echo "in place: $name, ${seen[$name]} times"
done
for state in "${!states[@]}"; do
	echo "in the state: $state, ${states[$state]} times"
done
echo "killed at $total points in all"
end_use
