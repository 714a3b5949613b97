#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: hundreds of processes, and morphd, in an emulator
# morphd and the module together: one program, many programs, a library that is loaded late, files
# that are replaced while they run. Each program runs in a slot of its own, so a sample attributed
# to the wrong program lies in a slot where that program never runs.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null && command -v sqlite3 >/dev/null || { echo "skip: jq or sqlite3 is missing"; exit 77; }

# collect NAME COMMAND...: sample the whole system while COMMAND runs, into a new database
collect() {
	local name=$1 daemon
	shift
	rm -f "$name".*
	"$BUILD/morphd" --source=kmod --rate 4000 --interval 1 --db "$name.db" --json >"$name.json" 2>"$name.err" &
	daemon=$!
	# The session exists once sampling has begun.
	until [ -n "$(sqlite3 -readonly "$name.db" "SELECT key FROM session" 2>/dev/null)" ]; do
		kill -0 $daemon 2>/dev/null || { fail "$name: morphd: $(cat "$name.err")"; return; }
		sleep 0.1
	done
	"$@" || fail "$name: $* failed"
	kill -TERM $daemon
	wait $daemon || fail "$name: morphd: exit $?: $(cat "$name.err")"
	jq -c 'del(.stats)' "$name.json"
	jq -e '.emitted == .attributed + .unattributed + .lost' "$name.json" >/dev/null ||
		fail "$name: samples do not add up: $(cat "$name.json")"
	jq -e '.lost == 0' "$name.json" >/dev/null || fail "$name: samples were lost: $(cat "$name.json")"
	"$BUILD/morph-stats" --db "$name.db" query --by=function --json |
		jq -r '.rows[] | [(.module | sub(".*/"; "")), .build_id, .function // "-", .address, .samples] | @tsv' \
			>"$name.rows"
}

# of NAME FILE: its samples as "right wrong": in its own slot, and in others. Uses addresses,
# because the file may have been removed; in bash, because awk cannot read hexadecimal.
of() {
	local id first address nr slot v=${2##*variant} right=0 wrong=0
	v=${v%.so}
	id=$(readelf -n "$2" | sed -n 's/.*Build ID: //p')
	first=$(readelf -SW "$2" | sed -nE 's/.* \.slots +PROGBITS +([0-9a-f]+) .*/\1/p')
	while read -r address nr; do
		slot=$(((address - 16#$first) >> 12))
		if [ $slot = "$v" ]; then
			right=$((right + nr))
		elif [ $slot -ge 0 ] && [ $slot -lt 8 ]; then
			wrong=$((wrong + nr))
		fi
	done < <(awk -v id="$id" '$2 == id { print $4, $5 }' "$1.rows")
	echo "$right $wrong"
}

# collect_enough NAME COMMAND MINIMUM FILE...: collect while COMMAND 1 runs. Repeat with COMMAND 4,
# which works four times as long, and so on, until each file has MINIMUM samples.
collect_enough() {
	local name=$1 command=$2 minimum=$3 file right times
	shift 3
	for times in 1 4 16; do
		collect "$name" "$command" $times
		for file; do
			read -r right _ < <(of "$name" "$file")
			[ "$right" -ge "$minimum" ] || continue 2
		done
		break
	done
}

# placed NAME MINIMUM FILE...: each file has MINIMUM samples, and none in another program's slot
placed() {
	local name=$1 minimum=$2 file right wrong failed=$nr_failed
	shift 2
	for file; do
		read -r right wrong < <(of "$name" "$file")
		echo "$name: ${file##*/}: $right"
		[ "$right" -ge "$minimum" ] || fail "$name: $right samples of ${file##*/}, not $minimum"
		[ "$wrong" = 0 ] || fail "$name: $wrong samples of ${file##*/} where nothing of it runs"
	done
	[ "$nr_failed" = "$failed" ] || grep variant "$name.rows"
}

replace() { # TIMES
	local ms=$((300 * $1))
	rm -f program
	cp "$GUEST/variant1" program && cp "$GUEST/variant2" next && cp "$GUEST/libvariant1.so" library.so
	./program $ms & # renamed over while it runs
	until [ "$(readlink /proc/$!/exe)" = "$PWD/program" ] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
	mv next program
	./program $ms
	wait $!
	rm program && cp "$GUEST/variant3" program # written anew: another file
	./program $ms
	cat "$GUEST/variant4" >program # the same file, other bytes
	./program $ms
	"$GUEST/loader" $ms "$PWD/library.so" "$GUEST/libvariant2.so"
}

work() { # TIMES
	"$GUEST/variant7" $((2000 * $1)) &&
		"$GUEST/storm" $(((200 + LONG * 2800) * $1)) 4 "$GUEST" &&
		"$GUEST/loader" $((300 * $1)) "$GUEST/libvariant1.so"
}

load ring_kib=1024
collect_enough work work 20 "$GUEST"/variant[1-7] "$GUEST/libvariant1.so"
placed work 20 "$GUEST"/variant[1-7] "$GUEST/libvariant1.so"
# Most samples lie in the function that does the work; a slow emulator starts programs slowly.
hot=$(awk '$1 == "variant7" && $3 == "hot7" { nr += $5 } END { print nr + 0 }' work.rows)
all=$(awk '$1 == "variant7" { nr += $5 } END { print nr + 0 }' work.rows)
[ $((hot * 2)) -gt "$all" ] || fail "work: $hot of $all in hot7: $(grep variant7 work.rows)"

collect_enough replaced replace 20 "$GUEST/variant4" "$GUEST/libvariant2.so"
placed replaced 0 "$GUEST"/variant[1-4] "$GUEST"/libvariant[12].so
# Files that still existed have their samples. Samples of the others are counted as unattributed.
placed replaced 20 "$GUEST/variant4" "$GUEST/libvariant2.so"
unload
finish
