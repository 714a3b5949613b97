#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: hundreds of processes in an emulator
# one kernel
# Many short-lived processes of similar programs: by the module's records alone, no sample lies in a
# program that did not run there.
. "$(dirname "$0")/lib.sh"

# The first page of each program's slots in its file, and the number of its own slot.
for v in 1 2 3 4 5 6; do
	off=$(readelf -SW "$GUEST/variant$v" | sed -nE 's/.* \.slots +PROGBITS +[0-9a-f]+ ([0-9a-f]+) .*/\1/p')
	id=$(readelf -n "$GUEST/variant$v" | sed -n 's/.*Build ID: //p')
	echo "$id $((16#$off / 4096)) $v"
done >slots
[ "$(cut -d ' ' -f 1 slots | sort -u | wc -l)" = 6 ] || fail "the programs are alike: $(cat slots)"

# Repeat until each program has some samples.
storm() { # PROCESSES WATCH-OPTION...
	local round
	: >seen
	for round in 1 2 3 4 5 6 7 8; do
		"$GUEST/watch" "${@:2}" "$GUEST/storm" "$1" 4 "$GUEST" >round ||
			fail "watch $*: $(tail -n 5 round)"
		tail -n 1 round
		cat round >>seen
		look
		grep -q '^only ' bad || break
	done
	while read -r line; do fail "$*: $line"; done <bad
	[ "$nr_failed" = 0 ] || cat seen
}

# Write errors in the observed samples to "bad".
look() {
	awk '
		FNR == NR { first[$1] = $2; own[$1] = $3; next }
		$1 == "file" && $3 in own {
			slot = $4 - first[$3]
			if (slot == own[$3])
				right[$3] += $5
			else if (slot >= 0 && slot < 8)
				wrong += $5
		}
		$1 == "file" && $2 ~ /variant/ && !($3 in own) { no_id += $5 }
		$1 == "unmapped" { unmapped += $2 }
		$1 == "homeless" { homeless += $2 }
		END {
			for (id in own)
				if (right[id] < 10)
					print "only " right[id] + 0 " samples of the program " id
			if (wrong)
				print wrong " samples in a wrong program"
			if (unmapped)
				print unmapped " samples in no mapping"
			if (homeless)
				print homeless " samples in processes that nothing was said of"
			if (no_id)
				print no_id " samples of a program without its build-id"
		}' slots seen >bad
}
load ring_kib=1024
storm $((300 + LONG * 5700)) -r 4000
# With LAZY, the module describes a process only when a sample needs it.
export LAZY=1
storm $((300 + LONG * 5700)) -r 4000
[ "$LONG" = 0 ] || storm 3000 -t
unload
finish
