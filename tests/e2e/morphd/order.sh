#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# Samples are attributed to the mapping of their time, even if mappings are made on one CPU and
# samples taken on another. Two libraries are mapped at one address in turn, and each runs a
# function of its own. For every source, for one command and for the whole machine.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
cd "$TMPDIR" || exit 1
fail() {
	echo "FAIL: $source, $kind: $*"
	nr_failed=$((nr_failed + 1))
}

sampling

CC=${CC:-gcc}
$CC -O1 -D_GNU_SOURCE -o order "$root/tests/e2e/morphd/order.c" -ldl -lpthread || exit 1
for l in a b; do
	$CC -O1 -DLIBRARY -shared -fPIC -Wl,--build-id=0x0${l}0${l}0${l}0${l} -o lib$l.so \
		"$root/tests/e2e/morphd/order.c" || exit 1
done
TURNS=1000
collect_command() {
	"$MORPHD" run --source="$source" --rate 10000 --db "$1" -- \
		./order $TURNS ./liba.so ./libb.so > places 2> err
}
collect_system() {
	local pid ret
	"$MORPHD" --source="$source" --rate 10000 --db "$1" 2> err &
	pid=$!
	until [ -n "$(sqlite3 -readonly "$1" "SELECT key FROM session" 2> /dev/null)" ]; do
		kill -0 $pid || return 1
		sleep 0.05
	done
	./order $TURNS ./liba.so ./libb.so > places
	ret=$?
	kill -TERM $pid
	wait $pid || return 1
	return $ret
}
count() { # DB LIBRARY FUNCTION
	"$BUILD/morph-stats" query --db "$1" --binary "$2" --by function --json 2> /dev/null |
		jq "[.rows[]? | select(.function == \"$3\") | .samples] | add // 0"
}
for source in $sources; do
	for kind in command system; do
		[ $kind = command ] || [ $EUID = 0 ] || continue
		db=$source-$kind.db
		# Repeat until there are enough samples.
		for _ in {1..20}; do
			collect_$kind "$db" || { fail "exit $?: $(cat err)"; continue 2; }
			right=$(($(count "$db" liba.so first) + $(count "$db" libb.so second)))
			[ "$right" -lt 500 ] || break
		done
		wrong=$(($(count "$db" liba.so second) + $(count "$db" libb.so first)))
		lost=$(sqlite3 -readonly "$db" "SELECT coalesce(sum(nr), 0) FROM ledger WHERE what LIKE 'lost%'")
		echo "$source, $kind: $right right, $wrong wrong, $lost lost, $(sort -u places | wc -l) places"
		[ "$right" -ge 500 ] || fail "$right samples"
		# For a while after losses, wrong samples cannot be told from right ones.
		[ "$wrong" = 0 ] || [ "$lost" != 0 ] || fail "$wrong samples were given to the wrong library"
	done
done
[ $nr_failed = 0 ] && echo ok
exit $((nr_failed > 0))
