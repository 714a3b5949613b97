#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone, for each source
# alone: it samples
# A program keeps the number of its path in a register. Samples with registers tell its paths, live
# and from a recording, at the original's addresses. Without --registers no path is stored.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
STATS=$BUILD/morph-stats
cd "$TMPDIR" || exit 1
"$MORPHD" run --source=perf --registers=paths --record probe -- true 2> err || {
	echo "no sampling of registers on this machine: $(head -n 1 err)"
	exit 77
}

# Link twice: the note lies behind the code, so the code has the same addresses without the note.
src=$root/tests/e2e/morphd/paths.S
CC=${CC:-gcc}
$CC -o original "$src" && $CC -DNUMBERED -o first "$src" || exit 1
"$BUILD/tools/path-note" original first note paths || exit 1
$CC -Wa,--no-warn -DNUMBERED -DNOTE='"note"' -DPATHS='"paths"' -o copy "$src" || exit 1
[ "$(nm first | grep blk_)" = "$(nm copy | grep blk_)" ] || fail "the copy's code moved"
id=$(readelf -n original | sed -n 's/.*Build ID: //p' | tr a-f A-F)

# Repeat with more work on a machine that gives few samples.
for n in 40 200 1000; do
	rm -f live.db* rec
	"$BUILD/tools/path-note" --list live.db original copy || exit 1
	"$MORPHD" run --source=perf --no-kernel --registers=paths --rate 4000 --db live.db --record rec --json -- \
		./copy $n > live.out 2> err || fail "$(cat err)"
	[ "$(jq '.paths.decoded' live.out)" -lt 4000 ] || break
done
mv copy elsewhere
"$MORPHD" --input rec --db again.db --json > again.out 2> err || fail "replay: $(cat err)"

address() { echo "0x$(nm original | sed -n "s/ t blk_$1\$//p" | sed 's/^0*//')"; }
# samples DB BLOCK...: samples in DB whose path is these blocks
samples() {
	local db=$1 want
	shift
	want=$(for b; do address "$b"; done | jq -R . | jq -sc .)
	jq --argjson want "$want" '[.rows[] | select(.path == $want) | .samples] | add // 0' "$db.json"
}
for db in live again; do
	"$STATS" status --check --db $db.db > /dev/null || fail "$db: status --check"
	"$STATS" query --by=path --binary original --db $db.db --json > $db.json 2> err || fail "$db: query: $(cat err)"
	[ "$(jq .paths.undecodable $db.out)" = 0 ] || fail "$db: $(jq -c .paths $db.out)"
	[ "$(jq '.paths.decoded' $db.out)" -gt 300 ] || fail "$db: $(jq -c .paths $db.out)"
	[ "$(jq '[.rows[].samples] | add' $db.json)" = "$(jq .paths.decoded $db.out)" ] || fail "$db: rows"
	# Every sample of the program counts as one of these: in walk(), or outside.
	[ "$(sqlite3 -readonly $db.db "SELECT sum(nr_samples) FROM bucket b JOIN module m ON b.module = m.key
		WHERE hex(build_id) = '$id'")" = "$(jq '[.paths[]] | add' $db.out)" ] ||
		fail "$db: samples of the original: $(jq -c .paths $db.out)"
	[ "$(jq -r '[.rows[].function] | unique | join(" ")' $db.json)" = walk ] || fail "$db: functions"
	# Three paths out of four go by C, and none goes by both B and C.
	for last in "d" "d e"; do
		# shellcheck disable=SC2086
		b=$(samples $db a b $last) c=$(samples $db a c $last)
		echo "$db: a b $last: $b, a c $last: $c"
		[ "$b" -gt 20 ] && [ "$c" -gt $((2 * b)) ] && [ "$c" -lt $((9 * b / 2)) ] ||
			fail "$db: by B $b, by C $c"
	done
	[ "$(samples $db a b c d)" = 0 ] || fail "$db: a way that there is not"
	[ "$(samples $db a)" -gt 20 ] || fail "$db: no samples of A"
done
diff <(jq -S .rows live.json) <(jq -S .rows again.json) || fail "the replay has other paths"
diff <(jq .paths live.out) <(jq .paths again.out) || fail "the replay decodes otherwise"
"$STATS" query --by=path --binary original --db live.db > text || fail "query: $?"
grep -Eq "^ +[0-9.]+% +[0-9]+ +$(address d | cut -c3-) +3  walk: $(address a) $(address c) $(address d)  \[" text ||
	fail "text: $(head -n 3 text)"

# Without --registers: the same samples and no paths.
mv elsewhere copy
for n in 10 50 250; do
	rm -f off.db* off.rec
	"$MORPHD" run --source=perf --no-kernel --rate 4000 --db off.db --record off.rec --json -- \
		./copy $n > off.out 2> err || fail "$(cat err)"
	[ "$(jq .emitted off.out)" -lt 500 ] || break
done
[ "$(jq '[.paths[]] | add' off.out)" = 0 ] || fail "off: $(jq -c .paths off.out)"
"$STATS" query --by=path --db off.db 2> err
[ $? = 3 ] || fail "off: query: $(cat err)"
[ "$(jq '.bytes / .emitted < 40' off.out)" = true ] || fail "off: $(jq .bytes off.out) bytes"

# A damaged table loses only the paths.
printf 'x' | dd of=paths bs=1 seek=3 conv=notrunc 2> /dev/null
$CC -Wa,--no-warn -DNUMBERED -DNOTE='"note"' -DPATHS='"paths"' -o copy "$src" || exit 1
for n in 10 50 250; do
	rm -f bad.db*
	"$BUILD/tools/path-note" --list bad.db original copy || exit 1
	"$MORPHD" run --source=perf --no-kernel --registers=paths --rate 4000 --db bad.db --json -- ./copy $n \
		> bad.out 2> err || fail "$(cat err)"
	[ "$(jq .attributed bad.out)" -lt 300 ] || break
done
[ "$(jq '[.paths[]] | add' bad.out)" = 0 ] || fail "damaged: $(jq -c .paths bad.out)"
[ "$(sqlite3 -readonly bad.db "SELECT sum(nr_samples) FROM bucket b JOIN module m ON b.module = m.key
	WHERE hex(build_id) = '$id'")" -gt 50 ] || fail "damaged: no samples of the original"
# The same for a file that morph-optimize wrote.
if [ -x "$BUILD/morph-optimize" ]; then
	cat > walk.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#define TWELVE(x) x x x x x x x x x x x x
#define WORK(label) __asm__ volatile(label TWELVE("imul %0, %0\n\t") : "+r"(x))
__attribute__((noinline)) static unsigned long walk(unsigned long n)
{
	unsigned long i = 0, x = 3;

	do {
		i++;
		WORK("blk_a:");
		if (i & 3)
			WORK("blk_c:");
		else
			WORK("blk_b:");
		WORK("blk_d:");
	} while (i < n);
	return x;
}
int main(int argc, char **argv)
{
	printf("%lu\n", walk(argc > 1 ? 1000000 * atol(argv[1]) : 1));
	return 0;
}
C
	$CC -O1 -o original walk.c || exit 1
	"$BUILD/morph-optimize" instrument --kind=pep -o pep original > pep.txt 2>&1 || fail "pep: $(tail -n 2 pep.txt)"
	[ "$(./pep 1)" = "$(./original 1)" ] || fail "pep: $(./pep 1)"
	for n in 40 200 1000; do
		rm -f pep.db*
		"$MORPHD" run --source=perf --no-kernel --registers=paths --rate 4000 --db pep.db --json -- ./pep $n \
			> run.out 2> err || fail "$(cat err)"
		sed -n '/^{"schema"/,$p' run.out > pep.out # after the program's own output
		[ "$(jq .paths.decoded pep.out)" -lt 500 ] || break
	done
	"$STATS" query --by=path --binary original --db pep.db --json > pep.json 2> err || fail "pep: query: $(cat err)"
	[ "$(jq .paths.undecodable pep.out)" = 0 ] || fail "pep: $(jq -c .paths pep.out)"
	[ "$(jq .paths.decoded pep.out)" -gt 300 ] || fail "pep: $(jq -c .paths pep.out)"
	[ "$(jq '[.rows[].samples] | add' pep.json)" = "$(jq .paths.decoded pep.out)" ] || fail "pep: rows"
	echo "pep: $(jq -c .paths pep.out), $(jq '[.rows[] | select(.path | length > 1) | .samples] | add // 0' pep.json) with more than a block"
fi
echo "bytes a sample with registers $(jq '.bytes / .emitted | floor' live.out), without $(jq '.bytes / .emitted | floor' off.out)"
# Functions that cannot be proved safe are left alone; the others get path numbers.
perl=$(readlink -f "$(command -v perl)")
script='my %n; $n{$_ * 7919 % 1013}++ for 1 .. 20000; print join(",", map {"$_=$n{$_}"} sort keys %n)'
"$BUILD/morph-optimize" instrument --kind=pep --json "$perl" -o perl.paths > perl.json 2> err || fail "perl: $(cat err)"
[ "$(jq .paths.functions perl.json)" -gt 500 ] || fail "perl: $(jq -c .paths perl.json)"
[ "$(./perl.paths -e "$script" | sha256sum)" = "$(perl -e "$script" | sha256sum)" ] || fail "perl behaves otherwise"
exit $((nr_failed > 0))
