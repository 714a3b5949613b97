#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: morphd in an emulator
# one kernel
# The module, morphd and a program that numbers its paths: with registers, each sample of the
# program has an existing path. The shares of the paths are not tested, because the emulator takes
# interrupts only at the targets of jumps.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null && command -v nm >/dev/null || { echo "skip: jq or nm is missing"; exit 77; }

address() { echo "0x$(nm "$GUEST/paths-original" | sed -n "s/ t blk_$1\$//p" | sed 's/^0*//')"; }
samples() { # BLOCK...: samples whose path is these blocks
	local want
	want=$(for b; do address "$b"; done | jq -R . | jq -sc .)
	jq --argjson want "$want" '[.rows[] | select(.path == $want) | .samples] | add // 0' paths.json
}
enough() { # whether enough samples are stored; the machine may be slow
	"$BUILD/morph-stats" query --by=path --binary "$GUEST/paths-original" --db db --json 2>/dev/null |
		jq -e '([.rows[].samples] | add // 0) >= 300' >/dev/null
}
load
# A copy made by hand cannot be verified, so list it in the database.
"$BUILD/tools/path-note" --list db "$GUEST/paths-original" "$GUEST/paths-copy" || fail "path-note"
"$BUILD/morphd" --source=kmod --registers=paths --rate 2000 --interval 1 --db db --record rec --json >out.json 2>morphd.err &
daemon=$!
until [ -s rec ] && [ -s db ]; do
	kill -0 $daemon 2>/dev/null || { fail "morphd: $(cat morphd.err)"; break; }
	sleep 0.1
done
for _ in {1..20}; do
	"$GUEST/paths-copy" 10 || fail "paths-copy: exit $?"
	! enough || break
done
kill -TERM $daemon
wait $daemon || fail "morphd: exit $?: $(cat morphd.err)"
unload
for db in db again; do
	"$BUILD/morph-stats" status --check --db $db >/dev/null || fail "$db: status --check"
	"$BUILD/morph-stats" query --by=path --binary "$GUEST/paths-original" --db $db --json >paths.json 2>err ||
		fail "$db: $(cat err) $(cat morphd.err) $(jq -c '[.reasons, .paths, .modules, .emitted]' out.json)"
	b=$(samples a b d)
	echo "$db: $(jq -c .paths out.json), a b d $b, of $(jq '[.rows[].samples] | add' paths.json)"
	[ "$(jq .paths.undecodable out.json)" = 0 ] || fail "$db: undecodable"
	[ "$(jq .paths.decoded out.json)" -ge 100 ] || fail "$db: too few paths"
	[ "$b" -ge 5 ] || fail "$db: by B $b"
	[ "$(samples a b c d)" = 0 ] || fail "$db: a way that there is not"
	[ "$(jq '[.rows[].samples] | add' paths.json)" = "$(jq .paths.decoded out.json)" ] || fail "$db: rows"
	# Repeat from the recording.
	[ $db = again ] || "$BUILD/morphd" --input rec --db again --json >out.json 2>morphd.err || fail "replay: $(cat morphd.err)"
done
finish
