#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone until chance is out of the question
# alone: it samples
# The same work gives the same profile with every source: modules, functions, blocks, the kernel's
# part. The test has a false-alarm rate of one in a million. The sources of the runs are in a random
# order. same_profile.c explains the evaluation and its assumptions.
# Environment: STACKS=1 compares calling contexts instead (same-tree.sh), at a lower RATE.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
RUNS=${RUNS:-16} # of each source
RATE=${RATE:-10000}
MS=${MS:-800} # of CPU time
ALARMS=${ALARMS:-1000000} # a false alarm in so many
STACKS=${STACKS:-}
need jq sqlite3
set -o pipefail
cd "$TMPDIR" || exit 1
[ $EUID = 0 ] || { echo "sampling the whole system needs root"; exit 77; }
sampling
# shellcheck disable=SC2086,SC2154
set -- $sources
[ $# -ge 2 ] || { echo "one source only on this machine:$sources"; exit 77; }

CC=${CC:-gcc}
$CC -O2 -DLIBRARY -shared -fPIC -Wl,--build-id -o libmix.so "$root/tests/e2e/morphd/mix.c" || exit 1
$CC -O2 -Wl,--build-id -o mix "$root/tests/e2e/morphd/mix.c" ./libmix.so || exit 1
$CC -O3 -Wall -Wextra -o same_profile "$root/tests/e2e/morphd/same_profile.c" -lm || exit 1
./same_profile --self-test || { echo "FAIL: false alarms are not as rare as is said"; exit 1; }

# collect SOURCE: sample the whole machine while mix runs; into db
collect() {
	local pid
	rm -f db*
	"$MORPHD" --source="$1" --rate="$RATE" ${STACKS:+--stacks} --db=db --json >out 2>err &
	pid=$!
	until [ -n "$(sqlite3 -readonly db "SELECT key FROM session" 2>/dev/null)" ]; do
		kill -0 $pid 2>/dev/null || return 1
		sleep 0.05
	done
	# Walks in the kernel need the rows of the program's files.
	[ -z "$STACKS" ] || { ./mix 1 && sleep "${SETTLE:-2}"; }
	./mix "$MS" ${STACKS:+routes} || fail "mix: $?"
	kill -TERM $pid
	wait $pid
}

# tell_contexts RUN SOURCE: the samples of each calling context, from main on
tell_contexts() {
	local all
	"$BUILD/morph-stats" query --db=db --by=context -m mix --percent-limit=0 --json >contexts || return 1
	jq -r --arg run "$1 $2" '.rows[] | select(.self_samples > 0 and .path[4] == "main") |
		"\($run) contexts \(.path[5:] | map(. // "-") | join(">") | if . == "" then "-" else . end) \(.self_samples)"' \
		contexts >lines
	cat lines
	all=$(jq ".rows[0].samples" contexts)
	[ "$(awk '{ n += $5 } END { print n }' lines)" -ge $((all * 9 / 10)) ] ||
		fail "$2: of $all samples, few are below main: $(jq -c .stacks out)" >&2
}

# tell RUN SOURCE: print lines for the table
tell() {
	local file
	sqlite3 -readonly -separator ' ' db "SELECT sum(app), sum(lib), sum(kernel), sum(other)
		FROM activity a JOIN module m ON m.key = a.module WHERE path LIKE '%/mix'" >activity
	read -r app lib kernel other <activity
	printf "$1 $2 modules %s %d\n" app "$app" lib "$lib" kernel "$kernel" other "$other"
	for file in mix libmix.so; do
		"$BUILD/morph-stats" query --db=db --binary=$file --by=block --json
	done | jq -r --arg run "$1 $2" '.rows[] | (.module | sub(".*/"; "")) as $file |
		"\($run) functions \($file):\(.function // "-") \(.samples)",
		"\($run) blocks \($file):\(.address) \(.samples)"'
}

run=0
: >table
for ((i = 0; i < RUNS; i++)); do printf '%s\n' "$@"; done | shuf >lots
while read -r source; do
	collect "$source" || { fail "$source: $(cat err)"; break; }
	"tell${STACKS:+_contexts}" $run "$source" >>table || { fail "$source: what it collected cannot be read"; break; }
	run=$((run + 1))
done <lots
[ $nr_failed = 0 ] || exit 1
./same_profile table "$ALARMS"
case $? in
0) echo ok ;;
3) echo "runs differ so much that 3 % would not be seen"; exit 77 ;;
*) fail "see above: the lines with FAIL"; exit 1 ;;
esac
