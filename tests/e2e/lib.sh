# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the shell tests: paths, and counting and printing failures.
# Source it before changing the directory.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${BUILD:-$root/build}
BUILD=$(cd "$BUILD" && pwd)
nr_failed=0
nr_skipped=0
left_out=""

fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

# need TOOL...: skip the whole test if a tool is missing
need() {
	local tool
	for tool; do
		command -v "$tool" >/dev/null || {
			echo "skip: $tool is missing"
			exit 77
		}
	done
}

# at_exit COMMAND: run COMMAND when the test ends. Bash runs the trap in a child too, if the child is killed
# before its program starts; that child must not clean up.
at_exit() {
	# shellcheck disable=SC2064 # The command is part of the trap's text.
	trap "[ \$BASHPID != \$\$ ] || { $1; }" EXIT
}

# scratch NAME: change to a new directory, $dir, which is removed at the end
scratch() {
	dir=$(mktemp -d "${TMPDIR:-/tmp}/$1.XXXXXX") || exit 1
	at_exit 'rm -rf "$dir"'
	cd "$dir" || exit 1
}

# command_ends STATUS WHAT COMMAND...: output in out.txt, messages in err.txt
command_ends() {
	local want=$1 what=$2 got=0
	shift 2
	"$@" >out.txt 2>err.txt || got=$?
	[ "$got" = "$want" ] || {
		fail "$what: status $got, not $want"
		tail -n 8 err.txt out.txt | cut -c1-200 | sed 's/^/    /'
	}
}

# ends STATUS WHAT ARGS: run morph-stats
ends() {
	command_ends "$1" "$2" "$BUILD/morph-stats" "${@:3}"
}

# says FILE PATTERN [WHAT]: FILE has a line that matches
says() {
	grep -q -e "$2" "$1" || {
		fail "${3:+$3: }no '$2' in $1"
		tail -n 8 "$1" | cut -c1-200 | sed 's/^/    /'
	}
}

# awaits CONDITION: wait until this shell command is true. The limit only ends hangs; a fact is what the test
# waits for. Return: whether it is true.
awaits() {
	local end=$((SECONDS + 300))
	until eval "$1"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.02
	done
}

# audit_listens PID: wait until `morphd run --audit` in the background listens, or has ended. It then has
# threads. Before that it may still ignore SIGINT, as bash starts background commands so.
audit_listens() {
	local threads
	while threads=$(sed -n 's/^Threads:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null) && [ -n "$threads" ]; do
		[ "$threads" = 1 ] || return
		sleep 0.05
	done
}

# one_line WHAT: the last program printed one line of messages
one_line() {
	[ "$(wc -l <err.txt)" = 1 ] || fail "$1: not one line of message: $(cat err.txt)"
}

# json WHAT FILTER: FILTER is true for the JSON in out.txt
json() {
	jq -e "$2" out.txt >/dev/null || fail "$1: $(head -c 2000 out.txt)"
}

# sampling: set $sources to the sources that work on this machine, and print why others do not.
# Skips the whole test if none works. SOURCES in the environment limits the choice.
sampling() {
	local source
	sources=
	for source in ${SOURCES:-perf bpf kmod}; do
		if "$BUILD/morphd" run --source=$source --record probe -- true 2>err; then
			sources="$sources $source"
		else
			echo "skip: $source: $(head -n 1 err)"
			nr_skipped=$((nr_skipped + 1))
		fi
	done
	[ -n "$sources" ] || { echo "no sampling on this machine: $(head -n 1 err)"; exit 77; }
}

# sampled DB BINARY LEAST COMMAND...: sample COMMAND into DB, repeatedly,
# until there are LEAST samples of BINARY. COMMAND's output is in
# sampled.txt. SAMPLED in the environment: other options of morphd run.
sampled() {
	local db=$1 binary=$2 least=$3 nr=0
	shift 3
	for _ in {1..100}; do
		# shellcheck disable=SC2086
		"$BUILD/morphd" run ${SAMPLED:---no-kernel --rate 4000} --db "$db" -- "$@" >sampled.txt 2>err.txt || {
			fail "morphd run $1: status $?: $(cat err.txt)"
			return
		}
		nr=$("$BUILD/morph-stats" --db "$db" query --binary="$binary" --by=module --json 2>/dev/null |
			jq '[.rows[].samples] | add // 0')
		[ "${nr:-0}" -lt "$least" ] || return 0
	done
	fail "$1: ${nr:-no} samples, not $least"
}

# recorded LEAST PATTERN OUTPUT PROGRAM N OPTION...: the same with perf record into OUTPUT. The work
# N grows until LEAST samples match PATTERN. Return: whether perf can record.
recorded() {
	local least=$1 pattern=$2 out=$3 program=$4 n=$5 nr
	shift 5
	for _ in {1..6}; do
		# Without -N, perf's cache links each sampled file, also those of tests that run at the same time.
		perf record -N -q -o "$out" "$@" -- "$program" "$n" >/dev/null 2>&1 || return
		nr=$(perf script -G -i "$out" -F ip,sym,dso 2>/dev/null | grep -c "$pattern")
		[ "$nr" -lt "$least" ] || return 0
		n=$((n * 4))
	done
	fail "perf: $nr samples, not $least"
}

# hot_program FILE: compile a program that is busy in hot() as long as its argument says
hot_program() {
	cat >prog.c <<'C'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long hot(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s = i % 7 == 3 ? s ^ i : s + (i * 5) % 11;
	return s;
}
int main(int argc, char **argv)
{
	printf("%ld\n", hot(argc > 1 ? atol(argv[1]) : 1000));
	return 0;
}
C
	gcc -g -O2 -fno-pie -no-pie -Wl,--build-id -Wl,--emit-relocs prog.c -o "$1" || exit 1
}

# callgrind_counts FILE FUNCTION COUNT: what callgrind prints if each instruction of FILE's FUNCTION ran COUNT times
callgrind_counts() {
	printf 'version: 1\npositions: instr line\nevents: Ir\nob=%s\nfl=x\nfn=%s\n' "$PWD/$1" "$2"
	objdump -d --no-show-raw-insn "$1" | awk -v count="$3" -v name="<$2>" '/^[0-9a-f]+ </ {on = index($0, name)} on && /^ / {
		sub(":", "", $1); print "0x" $1, 0, count; sum += count} END {print "totals: " sum}'
}

# finish: exit with the status of the test
finish() {
	if [ $nr_failed != 0 ]; then
		echo "$nr_failed failed"
		exit 1
	fi
	if [ -n "$left_out" ]; then
		echo "skip: without$left_out the rest passed"
		exit 77
	fi
	exit 0
}
