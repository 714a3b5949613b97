#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-stats merge: merging two databases of real profiles equals importing both into one. If
# anything is wrong with an input, the output stays as it was.
. "$(dirname "$0")/../lib.sh"
scratch merge

command -v valgrind >/dev/null || { echo "skip: no valgrind to count with"; exit 77; }

cat >prog.c <<'C'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long quiet(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s += (i * 7) % 13;
	return s;
}
int main(int argc, char **argv)
{
	printf("%ld\n", quiet(argc > 1 ? atol(argv[1]) : 10));
	return 0;
}
C
# shellcheck disable=SC2086
${CC:-gcc} -g -O1 -Wl,--build-id prog.c -o prog || exit 1
for n in 100 2000; do
	valgrind -q --tool=callgrind --dump-instr=yes --collect-jumps=yes \
		--callgrind-out-file=cg.$n ./prog $n >/dev/null 2>vg.txt || fail "$(cat vg.txt)"
done
touch -d '2 days ago' cg.100

ends 0 "import" --db a.db import cg.100
ends 0 "import" --db b.db import cg.2000
ends 0 "import both" --db both.db import cg.100
ends 0 "import both" --db both.db import cg.2000

# ---- usage
ends 2 "nothing to merge" merge
ends 2 "nothing to add" merge out.db
ends 2 "--db" --db x.db merge out.db a.db
ends 0 "help" merge --help
ends 3 "no such database" merge out.db a.db none.db
one_line "no such database"
[ ! -e out.db ] || fail "a failed merge made a database"

# ---- merge(a, b) is the import of both
ends 0 "merge" merge out.db a.db b.db
says out.txt '^a.db: [0-9]* samples.* in 1 sessions added$' "merge"
ends 0 "check" --db out.db status --check
# same WHAT ARGS: out.db and both.db give the same answer
same() {
	local what=$1
	shift
	ends 0 "$what of the merged" --db out.db "$@"
	mv out.txt merged.txt
	ends 0 "$what of both" --db both.db "$@"
	cmp -s merged.txt out.txt || fail "$what: $(diff merged.txt out.txt | head -5)"
}
same "modules" query --json
same "functions" query --by=function --json
same "blocks" query --binary=prog -f quiet --json
same "since" query --since=yesterday --by=function --json
same "annotate" annotate quiet -m prog --json
"$BUILD/morph-stats" --db out.db status --json | jq -S '.samples' >merged.txt
"$BUILD/morph-stats" --db both.db status --json | jq -S '.samples' >both.txt
cmp -s merged.txt both.txt || fail "ledgers: $(diff merged.txt both.txt)"
total() {
	"$BUILD/morph-stats" --db "$1" status --json | jq .samples.attributed
}
[ "$(total out.db)" = $(($(total a.db) + $(total b.db))) ] || fail "samples do not add up"
ls | grep -q 'out.db\.' && fail "left behind: $(ls)"

# ---- add to an existing database; JSON
cp a.db c.db
ends 0 "add to" merge c.db b.db --json
jq -e '.schema == 1 and .output == "c.db" and .inputs[0].path == "b.db" and
	.inputs[0].samples > 1000 and .inputs[0].nr_sessions == 1' out.txt >/dev/null ||
	fail "JSON: $(cat out.txt)"
[ "$(total c.db)" = "$(total out.db)" ] || fail "added to: $(total c.db)"
ends 0 "check" --db c.db status --check

# ---- the same input twice
before=$(sha256sum c.db)
ends 1 "the same again" merge c.db b.db
one_line "the same again"
says err.txt 'b.db: its session of .* (import) was added before; --again' "the same again"
cp b.db copy.db
ends 1 "a copy of it" merge c.db copy.db
ends 1 "twice in one line" merge new.db a.db a.db
says err.txt 'a.db: is given twice' "twice in one line"
ends 1 "a copy in one line" merge new.db b.db copy.db
[ ! -e new.db ] || fail "a failed merge made a database"
ls | grep -q 'new.db' && fail "left behind: $(ls)"
ends 1 "into itself" merge c.db c.db
says err.txt 'c.db: is OUT-DB itself' "into itself"
[ "$before" = "$(sha256sum c.db)" ] || fail "a refused merge changed the database"
ends 0 "again" merge c.db b.db --again
[ "$(total c.db)" = $(($(total a.db) + 2 * $(total b.db))) ] || fail "again: $(total c.db)"
ends 0 "check" --db c.db status --check

# ---- damaged inputs
cp a.db c.db
before=$("$BUILD/morph-stats" --db c.db status --json | jq -S .)
unchanged() {
	[ "$before" = "$("$BUILD/morph-stats" --db c.db status --json | jq -S .)" ] ||
		fail "$1 changed the database"
	ends 0 "check after $1" --db c.db status --check
}
head -c 5000 b.db >cut.db
ends 1 "a truncated database" merge c.db cut.db
one_line "a truncated database"
unchanged "a truncated database"
cp b.db odd.db
sqlite3 odd.db "UPDATE chunk SET checksum = checksum + 1 WHERE key = (SELECT max(key) FROM chunk)"
ends 1 "a damaged count" merge c.db odd.db
says err.txt 'odd.db: damaged' "a damaged count"
unchanged "a damaged count"
cp b.db odd.db
sqlite3 odd.db "UPDATE ledger SET nr = nr + 1"
ends 1 "a ledger that is not the counts" merge c.db odd.db
unchanged "a ledger that is not the counts"
cp b.db odd.db
sqlite3 odd.db "UPDATE activity SET module = 999; INSERT INTO activity VALUES(998, 1, 1, 1, 1, 1, 1)"
ends 1 "activity of nobody" merge c.db odd.db
unchanged "activity of nobody"
cp b.db odd.db
sqlite3 odd.db "UPDATE bucket SET first_day = 1 << 60, last_day = 1 << 60"
ends 1 "days that cannot be" merge c.db odd.db
says err.txt 'odd.db: damaged: impossible days' "days that cannot be"
unchanged "days that cannot be"
cp b.db odd.db
sqlite3 odd.db "PRAGMA user_version = 99"
ends 1 "a newer schema" merge c.db odd.db
says err.txt 'odd.db: has schema 99' "a newer schema"
unchanged "a newer schema"
echo "no database at all, but long enough to be read as one, perhaps" >junk.db
ends 1 "junk" merge c.db junk.db
ends 1 "junk second" merge c.db b.db junk.db
unchanged "junk"
cp b.db odd.db
sqlite3 odd.db "CREATE TRIGGER t AFTER INSERT ON session BEGIN DELETE FROM module; END"
ends 1 "a trigger" merge c.db odd.db
unchanged "a trigger"
ends 1 "junk to add to" merge junk.db b.db
ends 1 "a directory to add to" merge . b.db
ends 1 "nowhere" merge /no/such/dir/out.db b.db
one_line "nowhere"

# ---- ways of branches, of a real file, add up beside counts
jumps=$(objdump -d --disassemble=quiet prog | awk '/\tj[a-ln-z][a-z]* / { sub(":", "", $1); print $1 }')
[ -n "$jumps" ] || fail "quiet has no conditional branch"
sed 's/$/ 90 7/' <<<"$jumps" >prog.ways
cp a.db wa.db
cp b.db wb.db
ends 0 "ways" --db wa.db import --format=ways --binary=prog prog.ways
says out.txt "^$((97 * $(wc -l <prog.ways))) of $((97 * $(wc -l <prog.ways))) ways counted$" "ways"
touch -d '3 days ago' prog.ways
ends 0 "ways" --db wb.db import --format=ways --binary=prog - <prog.ways
ends 0 "ways merged" merge w.db wa.db wb.db
says out.txt '^wa.db: .* and [0-9]* ways of branches of' "ways merged"
ends 0 "check" --db w.db status --check
says out.txt "^Ways of branches: $((2 * 97 * $(wc -l <prog.ways)))$" "status"
[ "$("$BUILD/morph-stats" --db w.db status --json | jq .nr_ways)" = $((2 * 97 * $(wc -l <prog.ways))) ] || fail "ways in JSON"
[ "$(total w.db)" = "$(total out.db)" ] || fail "ways count as samples"
ends 1 "ways merged again" merge w.db wa.db
ends 0 "to JSON" merge w.db wa.db --again --json
[ "$(jq '.inputs[0].ways' out.txt)" = $((97 * $(wc -l <prog.ways))) ] || fail "ways in JSON: $(cat out.txt)"
cp wb.db odd.db
sqlite3 odd.db "UPDATE way_chunk SET checksum = checksum + 1"
ends 1 "damaged ways" merge c.db odd.db
says err.txt 'odd.db: damaged' "damaged ways"
unchanged "damaged ways"

# refused ways: one line, and no database
refused() { # WHAT REGEXP ARGS
	ends 1 "$1" --db none.db import --format=ways "${@:3}"
	one_line "$1"
	says err.txt "$2" "$1"
	[ ! -e none.db ] || fail "$1: made a database"
}
echo "401000 7" >bad.ways
refused "a bad line of ways" 'bad.ways:1: not ADDRESS TAKEN FELL' --binary=prog bad.ways
refused "ways of no file" 'ways do not name their file: give --binary=FILE' prog.ways
refused "ways of a missing file" 'none: ' --binary=none prog.ways
echo "1 7 8" >bad.ways
refused "ways of another file" 'not the ways of prog: 15 ways' --binary=prog bad.ways
: >bad.ways
refused "no ways" 'holds no sample' --binary=prog bad.ways
"$BUILD/morph-optimize" --all --report=none prog -o moved 2>/dev/null || fail "no output"
refused "ways of an output" 'moved: is optimised: ways are those of its original' --binary=moved prog.ways

# A database with only control transfers is refused the second time, too.
printf 'int main(int c, char **v) { int s = 0; while (c--) s += v[0][0]; return s & 1; }' >t.c
gcc -O1 -o t t.c || exit 1
jump=$(objdump -d --disassemble=main t | awk '/\tj[a-z]+ / { print $1; exit }')
to=$(objdump -d --disassemble=main t | awk '/\tj[a-z]+ / { print $(NF - 1); exit }')
main=$(nm t | awk '/ T main$/ { print $1 }')
printf '1 main %x 1 main %x 0 12\n' $((0x${jump%:} - 0x$main)) $((0x$to - 0x$main)) >t.fdata
ends 0 "transfers" import --db=t.db --binary=t t.fdata
ends 0 "transfers merged" merge u.db t.db
ends 1 "transfers merged again" merge u.db t.db
says err.txt 'was added before' "transfers merged again"

finish
