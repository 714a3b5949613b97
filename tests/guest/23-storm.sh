#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# Many short-lived processes of programs that look alike: by the module's records alone, no sample
# lies in a program that did not run there.
. "$(dirname "$0")/lib.sh"

# Where each program's own slot lies in its file, in pages.
for v in 1 2 3 4 5 6; do
	off=$(readelf -SW "$GUEST/variant$v" | awk '$2 == ".slots" { print $5 } $3 == ".slots" { print $6 }')
	id=$(readelf -n "$GUEST/variant$v" | sed -n 's/.*Build ID: //p')
	echo "$id $((16#$off / 4096 + v))"
done >slots
[ "$(sort -u slots | wc -l)" = 6 ] || fail "the programs are alike: $(cat slots)"
mkdir programs
cp "$GUEST"/variant? programs/

storm() { # WATCH-OPTIONS
	"$GUEST/watch" "$@" "$GUEST/storm" $((600 + LONG * 5400)) 4 "$PWD/programs" >seen ||
		fail "watch $*: $(tail -n 5 seen)"
	tail -n 1 seen
	awk '
		FNR == NR { slot[$1] = $2; low = low && low < $2 ? low : $2; next }
		$1 == "file" && $3 in slot {
			if ($4 == slot[$3])
				right[$3] += $5
			else if ($4 >= low && $4 < low + 6)
				wrong += $5
		}
		$1 == "file" && $2 ~ /variant/ && !($3 in slot) { no_id += $5 }
		$1 == "unmapped" { unmapped += $2 }
		END {
			for (id in slot)
				if (right[id] < 10)
					print "only " right[id] + 0 " samples of the program " id
			if (wrong)
				print wrong " samples in a wrong program"
			if (unmapped)
				print unmapped " samples in no mapping"
			if (no_id)
				print no_id " samples of a program without its build-id"
		}' slots seen >bad
	while read -r line; do fail "$*: $line"; done <bad
	[ "$nr_failed" = 0 ] || cat seen
}
load ring_kib=1024
storm -r 4000
storm -t
unload
finish
