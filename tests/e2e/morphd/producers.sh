#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone, for each source and each kind of process
# alone: it samples
# One suite for every producer of samples: exec, fork, short-lived processes, libraries that follow
# each other at one address, threads, JIT, deleted and replaced files, mount namespaces. Each stream
# is also recorded; its replay must give exactly the same database. The machine decides how many
# samples come; the test checks where they go. If there are too few, the programs run longer.
# Environment: SCALE, how many times longer they run at first (for an emulator, which loses timer
# interrupts); TIMES, the greatest ratio of two counts of equal CPU time; LEAST, the percentage of
# the usual minimum of samples; KINDS, command or system; SCENARIOS, some of those below.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
SCALE=${SCALE:-1}
TIMES=${TIMES:-2}
LEAST=${LEAST:-100}
cd "$TMPDIR" || exit 1
fail() {
	echo "FAIL: $producer, $scenario: $*"
	nr_failed=$((nr_failed + 1))
}

sampling

CC=${CC:-gcc}
$CC -O1 -o busy "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
$CC -O1 -o other -Wl,--build-id=0x0102030405060708 "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
for l in a b; do
	# Both have the same size, so that the loader maps the second where the first was.
	$CC -O1 -DLIBRARY -shared -fPIC -Wl,--build-id=0x0${l}0${l}0${l}0${l} -o lib$l.so \
		"$root/tests/e2e/morphd/busy.c" || exit 1
done

# collect NAME COMMAND...: leaves NAME.db and NAME.rec
collect_command() {
	local name=$1
	shift
	"$MORPHD" run --source="$source" --rate 4000 --db "$name.db" --record "$name.rec" --json -- "$@" \
		> "$name.out" 2> "$name.err"
}

collect_system() {
	local name=$1 daemon ret
	shift
	# Sampling has begun when the recording has its head and the database exists.
	"$MORPHD" --source="$source" --rate 4000 --db "$name.db" --record "$name.rec" --json \
		> "$name.out" 2> "$name.err" &
	daemon=$!
	until [ -s "$name.rec" ] && [ -s "$name.db" ]; do
		kill -0 $daemon 2> /dev/null || return 1
		sleep 0.05
	done
	"$@"
	ret=$?
	kill -TERM $daemon
	wait $daemon || return 1
	return $ret
}

# The contents of a database in a fixed order, without paths and row numbers.
dump() {
	sqlite3 -readonly "$1" "
		SELECT hex(build_id), text_hash, kind, b.first_day - (SELECT min(first_day) FROM bucket),
			chunk, hex(data)
		FROM module m JOIN bucket b ON b.module = m.key JOIN chunk c ON c.bucket = b.key
		ORDER BY 1, 2, 3, 4, 5;
		SELECT what, sum(nr) FROM ledger WHERE nr > 0 GROUP BY what ORDER BY what;
		SELECT hex(build_id), text_hash, sum(app), sum(lib), sum(kernel), sum(other)
		FROM activity a JOIN module m ON a.module = m.key GROUP BY 1, 2 ORDER BY 1, 2;"
}

samples() { # DB FILE: samples of the module with FILE's build-id
	local id
	id=$(readelf -n "$2" | sed -n 's/.*Build ID: //p' | tr a-f A-F)
	sqlite3 -readonly "$1" "SELECT coalesce(sum(nr_samples), 0) FROM bucket b JOIN module m
		ON b.module = m.key WHERE hex(build_id) = '$id'"
}

ledger() {
	sqlite3 -readonly "$1" "SELECT coalesce(sum(nr), 0) FROM ledger WHERE what LIKE '%$2%'"
}

few= # shortages of samples that a longer run may remove
at_least() { # COUNT MINIMUM WHAT
	local least=$(($2 * LEAST / 100))
	[ "$1" -ge $least ] || few="$few; $1 samples of $3, at least $least expected"
}

check_exec() { at_least "$(samples "$1" busy)" 200 busy; at_least "$(samples "$1" other)" 200 other; }
check_fork() { at_least "$(samples "$1" busy)" 400 "busy, parent and child"; }
check_short() { at_least "$(samples "$1" other)" 200 "short-lived processes"; }
check_threads() { at_least "$(samples "$1" busy)" 800 "four threads"; }
check_jit() { at_least "$(ledger "$1" anonymous)" 200 "anonymous memory"; }
check_remap() {
	local a b
	[ "$(sort -u remap.places | wc -l)" = 1 ] || echo "note: the libraries lay at different places"
	a=$(samples "$1" liba.so)
	b=$(samples "$1" libb.so)
	at_least "$a" 200 liba.so
	at_least "$b" 200 libb.so
	# Both ran for the same CPU time, so neither may have the other's samples.
	[ $((a * TIMES)) -gt "$b" ] && [ $((b * TIMES)) -gt "$a" ] || few="$few; liba.so $a, libb.so $b samples"
}
check_gone() { at_least $(($(samples "$1" busy) + $(ledger "$1" deleted))) 200 "a deleted file"; }
check_replaced() {
	at_least $(($(samples "$1" busy) + $(ledger "$1" replaced))) 200 "a replaced file"
	[ "$(samples "$1" other)" = 0 ] || fail "samples of the old file were given to the new one"
}
check_namespace() {
	at_least $(($(samples "$1" busy) + $(ledger "$1" namespace))) 200 "another mount namespace"
	[ $EUID != 0 ] || at_least "$(samples "$1" busy)" 200 "busy in another mount namespace"
}

run_exec() { "$collect" "$1" ./busy exec $((200 * SCALE)) ./other; }
run_fork() { "$collect" "$1" ./busy fork $((200 * SCALE)); }
run_short() { "$collect" "$1" ./busy short $((60 * times)) ./other; }
run_threads() { "$collect" "$1" ./busy threads $((200 * SCALE)) 4; }
run_jit() { "$collect" "$1" ./busy jit $((200 * SCALE)); }
run_remap() { "$collect" "$1" sh -c "./busy dl $((200 * SCALE)) ./liba.so ./libb.so > remap.places"; }
run_gone() { cp busy gone && "$collect" "$1" ./gone gone $((400 * SCALE)) gone; }
run_replaced() { cp busy old && cp other new && "$collect" "$1" ./old replace $((400 * SCALE)) old new; }
run_namespace() {
	mkdir -p ns
	"$collect" "$1" unshare -m sh -c \
		"mount -t tmpfs none ns && cp busy ns/ && exec ns/busy spin $((400 * SCALE))"
}

first=$SCALE
scenarios=${SCENARIOS:-exec fork short threads jit remap gone replaced namespace}
producers=
for source in $sources; do
	for kind in ${KINDS:-command system}; do producers="$producers $source-$kind"; done
done
for producer in $producers; do
	source=${producer%-*}
	kind=${producer#*-}
	collect=collect_$kind
	if [ "$kind" = system ] && [ $EUID != 0 ]; then
		echo "skip: $producer: only root may sample the whole system"
		nr_skipped=$((nr_skipped + 1))
		continue
	fi
	for scenario in $scenarios; do
		if [ $scenario = namespace ] && ! unshare -m true 2> /dev/null; then
			echo "skip: $scenario: mount namespaces need root"
			nr_skipped=$((nr_skipped + 1))
			continue
		fi
		name=$producer-$scenario
		for times in 1 5 25; do
			SCALE=$((first * times))
			rm -f "$name".*
			run_$scenario "$name" || { fail "exit $?"; cat "$name.err"; continue 2; }
			few=
			check_$scenario "$name.db"
			[ -n "$few" ] || break
			echo "note: $name, $times times: ${few#; }"
		done
		[ -z "$few" ] || fail "${few#; }"
		emitted=$(jq .emitted "$name.out") attributed=$(jq .attributed "$name.out")
		[ "$emitted" = $((attributed + $(jq .unattributed "$name.out") + $(jq .lost "$name.out"))) ] ||
			fail "samples do not add up"
		# No sample was dropped for lack of memory.
		[ "$(jq '.reasons."no-memory"' "$name.out")" = 0 ] || fail "samples are missing"
		[ "$kind" = system ] || [ "$(ledger "$name.db" no-process)" = 0 ] ||
			fail "$(ledger "$name.db" no-process) samples of no process"
		# Replay the recording, which needs no other file.
		mkdir -p elsewhere && (cd elsewhere && "$MORPHD" --source=replay --input "../$name.rec" \
			--db "$name.db" 2> "../$name.replay") || fail "replay: $(cat "$name.replay")"
		dump "$name.db" > live.dump
		dump "elsewhere/$name.db" > replay.dump
		cmp -s live.dump replay.dump || {
			fail "the replay differs"
			diff live.dump replay.dump | cut -c 1-150 | head
		}
		echo "$name: $emitted samples, $attributed attributed"
	done
done
[ $nr_failed = 0 ] && echo "ok, $nr_skipped skipped"
exit $((nr_failed > 0))
