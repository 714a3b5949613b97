#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# morphd and the module together: a program, many programs, a library that is loaded late, files
# that are replaced under what runs them. The programs differ in which of their slots they run in,
# so a sample that was given to a wrong one lies where that one never is.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || { echo "skip: jq is missing"; exit 77; }

# collect NAME COMMAND...: the whole system, while the command runs
collect() {
	local name=$1 daemon
	shift
	"$BUILD/morphd" --source=kmod --rate 4000 --interval 1 --db "$name.db" --json >"$name.json" 2>"$name.err" &
	daemon=$!
	until [ -n "$("$BUILD/morph-stats" --db "$name.db" status 2>/dev/null)" ]; do
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

# of NAME FILE: samples in that file's own slot
of() {
	local id
	id=$(readelf -n "$2" | sed -n 's/.*Build ID: //p')
	awk -v id="$id" '$2 == id && $3 ~ /^hot/ { nr += $5 } END { print nr + 0 }' "$1.rows"
}

# placed NAME MINIMUM FILE...: each has so many, and none lies in a slot that is not its own
placed() {
	local name=$1 minimum=$2 file nr id v first
	shift 2
	for file; do
		nr=$(of "$name" "$file")
		[ "$nr" -ge "$minimum" ] || fail "$name: $nr samples of ${file##*/}, $minimum expected"
		v=${file##*variant} v=${v%.so}
		id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
		first=$(readelf -SW "$file" | sed -nE 's/.* \.slots +PROGBITS +([0-9a-f]+) .*/\1/p')
		# In bash, for the addresses: they are more than awk can read.
		while read -r _ _ function address nr; do
			[ "$function" != "hot$v" ] || continue
			case $function in hot*) fail "$name: $nr samples of $function in ${file##*/}" ;; esac
			[ $((address)) -lt $((16#$first)) ] || [ $((address)) -ge $((16#$first + 8 * 4096)) ] ||
				fail "$name: $nr samples at $address of ${file##*/}, where nothing runs"
		done < <(awk -v id="$id" '$2 == id' "$name.rows")
	done
	[ $nr_failed = 0 ] || head -n 30 "$name.rows"
}

replace() {
	cp "$GUEST/variant1" program && cp "$GUEST/variant2" next && cp "$GUEST/libvariant1.so" library.so
	./program 500 & # renamed over while it runs
	sleep 0.3
	mv next program
	./program 500
	wait $!
	rm program && cp "$GUEST/variant3" program # written anew: another file
	./program 500
	cat "$GUEST/variant4" >program # the same file, other bytes
	./program 500
	"$GUEST/loader" 500 "$PWD/library.so" "$GUEST/libvariant2.so"
}

load
collect one "$GUEST/variant2" 1000
placed one 100 "$GUEST/variant2"
# It did nothing else worth the name.
all=$(awk '$1 == "variant2" { nr += $5 } END { print nr + 0 }' one.rows)
[ $(($(of one "$GUEST/variant2") * 10)) -ge $((all * 9)) ] || fail "one: $all samples in all: $(cat one.rows)"

collect many "$GUEST/storm" $((300 + LONG * 2700)) 4 "$GUEST"
placed many 10 "$GUEST"/variant[1-6]

collect late "$GUEST/loader" 600 "$GUEST/libvariant1.so"
placed late 50 "$GUEST/libvariant1.so"

collect replaced replace
placed replaced 0 "$GUEST"/variant[1-4] "$GUEST"/libvariant[12].so
# What was still there to be looked at has its samples; what was not is nobody's, and counted.
for v in 3 4; do
	[ "$(of replaced "$GUEST/variant$v")" -ge 20 ] || fail "replaced: $(of replaced "$GUEST/variant$v") of variant$v"
done
unload
finish
