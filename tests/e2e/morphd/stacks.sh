#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone, for each source
# alone: it samples
# morphd run --stacks=yes|no|auto with the sources perf and bpf, on stripped programs of the distribution:
# every sample has a stack or a reason, most stacks are complete, and they are off where they are not wanted.
# shellcheck disable=SC2016 # the $ of perl, bash and jq
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq perl bash gzip openssl readelf python3 sqlite3
scratch stacks
MORPHD=$BUILD/morphd
sources=
for source in perf bpf; do
	if "$MORPHD" run --source="$source" --stacks --record probe -- true 2>err.txt; then
		sources="$sources $source"
	else
		echo "skip: $source: $(head -n 1 err.txt)"
	fi
done
[ -n "$sources" ] || { echo "no sampling on this machine: $(head -n 1 err.txt)"; exit 77; }
# what run prints of the last run: its samples, its stacks and frames
get() { jq -r "$1" out.txt; }
# is FILTER: true of the last run
is() { [ "$(get "$1")" = true ] || fail "$source: $2: not $1: $(cat out.txt)"; }

# stacks WHAT OPTION... -- COMMAND
stacks() {
	local what=$1
	shift
	rm -f s.db
	command_ends 0 "$source: $what" "$MORPHD" run --source="$source" --json --db=s.db "$@"
	# The command's own output comes first.
	grep '^{"schema"' out.txt >run.json && mv run.json out.txt
	[ -s out.txt ] || fail "$what: printed no counts"
}

work() { # a command that uses the CPU for a second or two
	case $1 in
	perl) echo 'sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } $n = f(22) for 1 .. 30' >work.pl
		cmd=(perl work.pl) ;;
	gzip) seq 1 800000 >numbers
		cmd=(gzip -9 -k -f numbers) ;;
	openssl) cmd=(openssl enc -aes-256-cbc -pbkdf2 -iter 3000000 -nosalt -k word -in /etc/passwd -out /dev/null) ;;
	bash) echo 'f() { ((n += $1)); }; for ((i = 0; i < 200000; i++)); do f $i; done' >work.bash
		cmd=(bash work.bash) ;;
	esac
}

# $source takes stacks of stripped programs
with_stacks() {
	local name
	for name in perl gzip openssl bash; do
		readelf -SW "$(command -v $name)" | grep -q '\.symtab' && echo "skip: $name is not stripped" && continue
		work $name
		stacks "$name" --stacks --rate=300 --no-kernel -- "${cmd[@]}"
		is '.emitted > 30' "$name: few samples"
		# At the end of its life a process has no user code, and what perf lost has no stack.
		is '. as $r | ([.stacks[]] | add) as $n | $n <= $r.emitted and $n >= $r.emitted - $r.lost - 5' \
			"$name: samples without stack"
		is '.stacks.unsaid == 0 and .stacks.order == 0' "$name: an impossible reason"
		# OpenSSL's SHA-256 keeps the caller's stack pointer below rsp, which perf does not copy.
		[ "$source$name" = perfopenssl ] ||
			is '. as $r | .stacks.complete >= 0.95 * ([.stacks[]] | add)' "$name: incomplete"
		is '.stacks.complete > 0 and .stack_frames >= 3 * .stacks.complete' "$name: few frames"
		command_ends 0 "status" "$BUILD/morph-stats" --db=s.db status --json
		[ "$(jq '[.stacks[]?] | add' out.txt)" != 0 ] || fail "$name: the ledger has no stacks: $(cat out.txt)"
	done
}

# a stack that is deeper than perf's copy, and deeper than the BPF program walks
deep_stack() {
	[ -x /usr/bin/python3.11 ] || return
	stacks "deep" --stacks --rate=300 --no-kernel -- /usr/bin/python3.11 -I deep.py
	if [ "$source" = perf ]; then
		is '.stacks.copy > 5' "a deep stack is cut off where the copy ends"
	else
		is '.stacks.depth > 5 and .stack_frames > 255 * .stacks.depth' "a deep stack is cut off at its 255th caller"
	fi
}

# perf's ring is full after some dozen copies of stacks. What is mapped stays known all the same.
full_ring() {
	local pid
	rm -f full.db full.end
	"$MORPHD" run --source=perf --stacks --rate=4000 --no-kernel --json --db=full.db --interval=0.1 -- \
		./busy until 2 full.end >out.txt 2>err.txt &
	pid=$!
	until [ -s full.db ] && [ "$(sqlite3 -readonly full.db 'SELECT coalesce(sum(nr_samples), 0) FROM bucket' 2>/dev/null)" -gt 50 ]; do
		kill -0 $pid 2>/dev/null || { fail "full ring: $(cat err.txt)"; return; }
		sleep 0.1
	done
	kill -STOP $pid
	sleep 2
	kill -CONT $pid
	sleep 1
	touch full.end
	wait $pid || fail "full ring: exit $?: $(cat err.txt)"
	is '.reasons."ring-full" > 100' "the ring did not overflow"
	is '.attributed > 300 and .reasons."no-process" == 0' "a full ring"
}

# no, which is the default, and auto: stacks at low rates only
without_stacks() {
	local option fast=500
	[ "$source" = perf ] || fast=2000 # a stack of bpf costs less
	work perl
	for option in --stacks=no --rate=$fast; do
		stacks "$option" $option --no-kernel -- "${cmd[@]}"
		is '.emitted > 20 and ([.stacks[]] | add) == 0 and .stack_frames == 0' "$option"
	done
	stacks "auto, fast" --stacks=auto --rate=$fast --no-kernel -- "${cmd[@]}"
	is '.emitted > 20 and ([.stacks[]] | add) == 0' "auto at $fast Hz"
	stacks "auto, slow" --stacks=auto --rate=40 --no-kernel -- "${cmd[@]}"
	is '.stacks.complete > 1' "auto at 40 Hz"
}

${CC:-gcc} -O1 -o busy "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
echo 'import sys
sys.setrecursionlimit(10000)
def f(n):
    return sum(i * i for i in range(3000000)) if n == 0 else max(map(f, [n - 1]))
f(900)' >deep.py
for source in $sources; do
	with_stacks
	deep_stack
	[ "$source" != perf ] || full_ring
	without_stacks
done
work perl

# ---- text, and what is refused
command_ends 0 "text" "$MORPHD" run --source="$source" --stacks --rate=300 --stats --db=t.db -- "${cmd[@]}"
says out.txt '^with a stack'
says out.txt '^  complete '
command_ends 2 "maybe" "$MORPHD" run --stacks=maybe --db=t.db -- true
if "$MORPHD" run --source=kmod --record probe -- true 2>/dev/null; then
	command_ends 1 "kmod" "$MORPHD" run --source=kmod --stacks --db=t.db -- touch ran
	[ -e ran ] && fail "a command ran without the stacks that it was to have"
fi
finish
