# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of `morph live': a program that checks itself, and a version of it. Source it behind lib.sh.

# live_scratch NAME: a directory with the program ./worker
live_scratch() {
	need gcc jq
	scratch "$1"
	export XDG_STATE_HOME=$dir/state HOME=$dir
	gcc -O2 -pthread -o worker "$root/tests/e2e/live/worker.c" || exit 1
	gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || exit 1
}

# start PROGRAM ARGS: in the background, with the input $input; sets $pid
start() {
	# Not only by the redirection: the new process empties the file late, and the last one's "ready" stands in it.
	: >run.txt
	"$@" <"${input:-/dev/null}" >run.txt 2>run.err &
	pid=$!
	at_exit "kill -9 $pid 2>/dev/null; rm -rf '$dir'"
	awaits 'grep -qs ready run.txt' || fail "$1 does not start"
}

# version OUTPUT [FILE [ADDRESS]]: a version of FILE (./worker) for process $pid, with all functions
version() {
	local at=${3:-}
	[ -n "$at" ] || at=$("$BUILD/morph" live place "$pid" "$(realpath "${2:-worker}")") || fail "no place"
	rm -f "$1"
	"$BUILD/morph-optimize" --all --live-at="$at" -o "$1" "${2:-worker}" >optimize.txt 2>&1 || {
		fail "morph-optimize --live-at=$at"
		cat optimize.txt
	}
}

# counting OUTPUT KIND ADDRESS [FILE] [ARGS]: a version of FILE (./worker) that counts, with all functions; run as a file, it
# counts into OUTPUT.counts
counting() {
	local output=$1 kind=$2 at=$3 file=${4:-worker}
	rm -f "$output"
	"$BUILD/morph-optimize" instrument --kind="$kind" --all --live-at="$at" --counts="$PWD/$output.counts" \
		--report=none -o "$output" "${@:5}" "$file" >optimize.txt 2>&1 || {
		fail "instrument --kind=$kind --live-at=$at"
		cat optimize.txt
	}
}

# counts_dir DIR: a directory for files of counts, as the service makes it
counts_dir() {
	rm -rf "$1"
	mkdir -m 1777 "$1" || fail "no directory for counts"
	chmod 1777 "$1"
}

# live ARGS: run morph live; its JSON in out.txt
live() {
	"$BUILD/morph" live --json "$@" >out.txt 2>err.txt
}

# state: of the version in process $pid; "none" if there is none
state() {
	live status "$pid" || fail "status: $(cat err.txt)"
	jq -r '.processes[0].state // "none"' out.txt
}

# text_is FILE: the code of FILE in process $pid has the bytes of the file
text_is() {
	local range start off file
	file=$(realpath "$1")
	range=$(awk -v f="$file" '$2 ~ /x/ && $6 == f { print $1, $3 }' "/proc/$pid/maps")
	start=$((16#${range%%-*})) off=$((16#${range##* }))
	range=${range#*-}
	range=${range%% *}
	cmp <(dd if="/proc/$pid/mem" bs=4096 skip=$((start / 4096)) \
		count=$(((16#$range - start) / 4096)) 2>/dev/null) \
		<(tail -c +$((off + 1)) "$file" | head -c $((16#$range - start)))
}

# goes_on: all threads of the worker make rounds
goes_on() {
	local before after
	kill -USR1 "$pid" || return 1
	awaits "[ \$(grep -c '^at' run.txt) -gt $1 ] || ! kill -0 $pid 2>/dev/null"
}

# ends_right: the worker ends, and nothing was wrong
ends_right() {
	kill -TERM "$pid" 2>/dev/null
	wait "$pid"
	local status=$?
	[ $status = 0 ] || fail "the process: status $status, $(tail -n 2 run.txt run.err)"
	says run.txt '^done [1-9]'
	grep WRONG run.txt && fail "the process noticed"
	return 0
}
