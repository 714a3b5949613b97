#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples of an optimised program count for the original, at the original's addresses: live, and in
# the replay of a recording where neither file exists.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
MORPHD=$BUILD/morphd
cd "$TMPDIR" || exit 1
[ -x "$BUILD/morph-optimize" ] || { echo "morph-optimize is not built"; exit 77; }
"$MORPHD" run --record probe -- true 2> err || {
	echo "no sampling on this machine: $(head -n 1 err)"
	exit 77
}
fail() {
	echo "FAIL: $*"
	exit 1
}
${CC:-gcc} -O1 -Wl,--emit-relocs -o busy "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
id=$(readelf -n busy | sed -n 's/.*Build ID: //p' | tr a-f A-F)
"$BUILD/morph-optimize" --all --report=none -o faster busy 2> err || fail "morph-optimize: $(cat err)"
new=$(readelf -n faster | sed -n 's/.*Build ID: //p' | tr a-f A-F)
[ "$id" != "$new" ] || fail "the optimised program has no build-id of its own"
samples() { # DB BUILD-ID
	sqlite3 -readonly "$1" "SELECT coalesce(sum(nr_samples), 0) FROM bucket b JOIN module m
		ON b.module = m.key WHERE hex(build_id) = '$2'"
}
# Try longer on a machine that gives few samples.
for ms in 300 3000 30000; do
	rm -f db* rec
	"$MORPHD" run --no-kernel --rate 4000 --db db --record rec --json -- ./faster spin $ms > out 2> err ||
		fail "$(cat err)"
	[ "$(samples db "$id")" -le 200 ] || break
done
# Copies apart: every sample of the output, at its own address, and most of them moved.
"$BUILD/morph-stats" query --by=copy --db db --json > copies || fail "query --by=copy"
all=$(jq '[.rows[].samples] | add' copies)
[ "$all" = "$(samples db "$id")" ] || fail "copies: $all samples of $(samples db "$id")"
moved=$(jq '[.rows[] | select(.address != .original) | .samples] | add' copies)
[ $((2 * moved)) -gt "$all" ] || fail "copies: $moved samples of $all in moved code"
jq -e 'all(.rows[]; .module | test("faster$"))' copies > jq.out || fail "copies: not the output's name"
"$BUILD/morph-stats" query --by=copy --db db --binary busy -f spin > text || fail "query --by=copy -f spin"
grep -q 'spin+0x' text || fail "copies: no block of spin: $(cat text)"
# The original lies beside its output, the only one of both that the database has a path of.
"$BUILD/morph-stats" query --by=function --db db --json > functions || fail "query --by=function"
jq -e '[.rows[] | select(.function == "spin") | .samples] | add > 100' functions > jq.out ||
	fail "functions without their names: $(jq -c '[.rows[] | [.function, .samples]]' functions)"
rm busy
mv faster elsewhere
"$MORPHD" --input rec --db again --json > again.out 2> err || fail "replay: $(cat err)"
for db in db again; do
	[ "$(samples $db "$id")" -gt 200 ] || fail "$db: $(samples $db "$id") samples of the original"
	[ "$(samples $db "$new")" = 0 ] || fail "$db: samples stayed with the optimised program"
done
sqlite3 -readonly db "SELECT hex(data) FROM chunk ORDER BY 1" > a
sqlite3 -readonly again "SELECT hex(data) FROM chunk ORDER BY 1" > b
cmp -s a b || fail "the replay counts other addresses"
for db in db again; do
	sqlite3 -readonly $db "SELECT hex(data) FROM copy_chunk ORDER BY 1" > $db.copies
	"$BUILD/morph-stats" status --check --db $db > out || fail "$db: $(cat out)"
done
cmp -s db.copies again.copies && [ -s db.copies ] || fail "the replay counts other copies"
echo "$(samples db "$id") samples of the original"
