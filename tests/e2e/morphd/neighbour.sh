#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone
# alone: it samples
# perf and gdb work as usual while morphd samples the whole system, and two
# morphd at once do not disturb each other.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
MORPHD=$BUILD/morphd
cd "$TMPDIR" || exit 1
[ $EUID = 0 ] || { echo "sampling the whole system needs root"; exit 77; }
command -v perf > /dev/null || { echo "perf is not installed"; exit 77; }
${CC:-gcc} -O1 -g -o busy "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
perf record -N -q -e cpu-clock -o before.data -- ./busy spin 100 2> err || {
	echo "perf record does not work on this machine: $(head -n 1 err)"
	exit 77
}
nr_failed=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}
"$MORPHD" --db a.db --record a.rec --rate 1000 --interval 0.5 2> a.err &
a=$!
"$MORPHD" --db b.db --record b.rec --rate 250 --interval 0.5 2> b.err &
b=$!
until [ -s a.rec ] && [ -s b.rec ] && [ -s a.db ] && [ -s b.db ]; do
	kill -0 $a && kill -0 $b || break
	sleep 0.05
done
for options in "" "-a" "--buildid-mmap" "-g"; do
	# shellcheck disable=SC2086
	perf record -N -q -e cpu-clock -F 2000 $options -o data -- ./busy spin 300 2> err ||
		fail "perf record $options: $(head -n 3 err)"
	perf report -i data --stdio --comm busy --sort symbol 2> err | grep -q spin ||
		fail "perf report after perf record $options does not know spin: $(head -n 3 err)"
done
perf stat -e task-clock,page-faults -o stat ./busy spin 50 || fail "perf stat"
grep -q task-clock stat || fail "perf stat counts nothing"
if command -v gdb > /dev/null; then
	gdb -q -batch -ex 'break spin' -ex run -ex bt --args ./busy spin 20 > gdb.out 2>&1
	grep -q '#1 .* in main' gdb.out || fail "gdb: $(tail -n 3 gdb.out)"
else
	echo "skip: gdb is not installed"
fi
seen() {
	sqlite3 -readonly "$1.db" "SELECT coalesce(sum(nr_samples), 0) FROM module m JOIN bucket b
		ON b.module = m.key WHERE path LIKE '%/busy'"
}
# Repeat until there are enough samples.
for _ in {1..40}; do
	[ "$(seen a)" -le 50 ] || [ "$(seen b)" -le 50 ] || break
	./busy spin 500
done
kill -TERM $a $b
wait $a || fail "morphd: $(cat a.err)"
wait $b || fail "the other morphd: $(cat b.err)"
for db in a b; do
	[ "$(seen $db)" -gt 50 ] || fail "$db saw $(seen $db) samples of busy"
done

# Two morphd of one ordinary user: little of the memory for rings remains, but enough.
poor() {
	setpriv --reuid=65534 --regid=65534 --clear-groups bash -c 'ulimit -l $((100 * $(getconf _NPROCESSORS_ONLN)))
		cd "$1" && exec "$0" run --source=perf --rate=2000 --db="$2.db" -- "${@:3}"' "$MORPHD" "$there" "$@"
}
# The directories above the scratch directory may not be accessible, so make another one.
there=$(mktemp -d /tmp/morph-neighbour.XXXXXX) || exit 1
trap 'rm -rf "$there"' EXIT
cp busy "$there/"
if chmod 777 "$there" && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] &&
	setpriv --reuid=65534 --regid=65534 --clear-groups test -w "$there" -a -x "$MORPHD" -a -x "$there/busy"; then
	mkfifo "$there/end" && chmod 666 "$there/end"
	poor rich sh -c 'touch up; exec cat end' 2> rich.err &
	rich=$!
	until [ -e "$there/up" ]; do
		kill -0 $rich || break
		sleep 0.05
	done
	# Now and then a slow machine does not run the daemon in time, so repeat.
	for _ in {1..10}; do
		poor second ./busy spin 300 2> second.err || { fail "the second: $(cat second.err)"; break; }
		! grep -q 'captured [1-9][0-9]* samples of .*, 0 lost' second.err || break
	done
	grep -q 'captured [1-9][0-9]* samples of .*, 0 lost' second.err || fail "the second: $(cat second.err)"
	timeout 300 sh -c ': > "$0/end"' "$there"
	wait $rich || fail "the first: $(cat rich.err)"
else
	echo "skip: an ordinary user cannot sample here"
fi
[ $nr_failed = 0 ] && echo ok
exit $((nr_failed > 0))
