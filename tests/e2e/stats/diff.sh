#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-stats diff on programs that were really sampled or counted: shares
# equal query's, an unchanged program is within the noise, a change is
# found. Builds are matched by name, periods by day.
. "$(dirname "$0")/../lib.sh"
scratch diff
export TZ=UTC

command -v valgrind >/dev/null || { echo "skip: no valgrind to count with"; exit 77; }

# loud() does LOUD rounds for each round of quiet().
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
__attribute__((noinline)) long loud(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s += (i * 5) % 11;
	return s;
}
#ifdef EXTRA
__attribute__((noinline)) long extra(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s ^= i % 3;
	return s;
}
#else
#define extra(n) 0
#endif
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 10, m = argc > 2 ? atol(argv[2]) : n;

	printf("%ld\n", quiet(n) + loud(m) + extra(n));
	return 0;
}
C
cc=${CC:-gcc}
# shellcheck disable=SC2086
$cc -O1 -Wl,--build-id prog.c -o prog || exit 1
cp prog first
# count DB DATE ARGS: an exact profile of prog with this date
count() {
	local db=$1 date=$2
	shift 2
	valgrind -q --tool=callgrind --dump-instr=yes --callgrind-out-file=cg ./prog "$@" \
		>/dev/null 2>vg.txt || fail "$(cat vg.txt)"
	touch -d "$date" cg
	"$BUILD/morph-stats" --db "$db" import cg >/dev/null || fail "import into $db"
}
count old.db '3 days ago' 1000 1000
count same.db '3 days ago' 1000 1000
count more.db 'today' 1000 9000

# ---- usage
ends 2 "nothing to compare" diff
ends 2 "three databases" diff a.db b.db c.db
ends 2 "a bad time" diff --at=never old.db
ends 2 "a bad period" diff --before=yesterday old.db
ends 2 "an empty period" diff --before=today..yesterday old.db
ends 2 "a bad key" diff old.db more.db --sort=weight
ends 2 "a function of modules" diff old.db more.db --by=module -f loud
ends 2 "a bad share" diff old.db more.db --percent-limit=101
ends 2 "two databases and --db" --db x.db diff old.db more.db
ends 0 "help" diff --help
ends 3 "no database" diff old.db none.db
[ "$(wc -l <err.txt)" = 1 ] || fail "no database: $(cat err.txt)"
ends 3 "no such module" diff old.db more.db -m nothing
ends 3 "no such function" diff old.db more.db -f nothing
echo "no database, no database, no database" >junk.db
ends 1 "junk" diff old.db junk.db

# ---- the same run twice: nothing changed
ends 0 "the same" diff old.db same.db --json
json "the same" '.schema == 1 and .command == "diff" and (.rows | length > 5)'
json "the same" 'all(.rows[]; .delta < 0.2 and .delta > -0.2)'
json "the same" '[.rows[] | select(.function == "loud")][0] |
	.change == "noise" and .delta < 0.01 and .several_builds == false'

# ---- loud does more work
ends 0 "louder" diff old.db more.db --binary=prog --json
mv out.txt diff.txt
for side in old more; do
	ends 0 "query $side" --db $side.db query --binary=prog --by=function --json
	mv out.txt $side.txt
done
for f in loud quiet main; do
	for side in old more; do
		name=$side
		[ $side = more ] && name=new
		want=$(jq -c --arg f $f '.rows[] | select(.function == $f) |
			[.samples, (.percent * 1e6 | round)]' $side.txt)
		got=$(jq -c --arg f $f '.rows[] | select(.function == $f) |
			[.'$name'_samples, (.'$name'_percent * 1e6 | round)]' diff.txt)
		[ "$want" = "$got" ] || fail "$f, $name: $got, query says $want"
	done
done
mv diff.txt out.txt
json "louder" '.rows[0].function == "loud" or .rows[1].function == "loud"'
json "louder" '[.rows[] | select(.function == "loud")][0] |
	.change == "significant" and .delta > 10 and .p <= 1e-20 and
	((.new_percent - .old_percent - .delta) | . < 1e-6 and . > -1e-6)'
json "quiet has less" '[.rows[] | select(.function == "quiet")][0] | .delta < 0'
ends 0 "text" diff old.db more.db
says out.txt '^Old: [0-9]* samples in old.db$' "text"
says out.txt '+[0-9.]* \*  <1e-20  loud  \[prog\]' "text"
says out.txt 'of [0-9]* changed by more than chance' "text"
ends 0 "blocks" diff old.db more.db --by=block --binary=prog
says out.txt ' loud+0x[0-9a-f]*  \[prog\]' "blocks"
ends 0 "modules" diff old.db more.db --by=module --json
json "modules" '[.rows[] | select(.module | endswith("/prog"))] | length == 1'
json "modules add up" '([.rows[].old_percent] | add) | . > 99.99 and . < 100.01'
ends 0 "one function" diff old.db more.db -f loud --json
json "one function" '.rows | length == 1'
ends 0 "a limit" diff old.db more.db -n 2 --sort=new --json
json "a limit" '(.rows | length == 2) and .rows[0].new_percent >= .rows[1].new_percent'
ends 0 "a share" diff old.db more.db --percent-limit=5 --json
json "a share" 'all(.rows[]; .old_percent >= 5 or .new_percent >= 5)'
ends 0 "significant" diff old.db more.db --significant --json
json "significant" '(.rows | length >= 1) and all(.rows[]; .change == "significant")'

# ---- another build of the same path
# shellcheck disable=SC2086
$cc -O1 -Wl,--build-id -DEXTRA prog.c -o prog || exit 1
count extra.db today 1000 1000
ends 0 "another build" diff old.db extra.db -m prog --json
says err.txt 'prog: 2 builds, matched by path and name' "another build"
says err.txt 'is not the file that was profiled: its functions are not known' "another build"
ends 0 "another build" diff old.db extra.db --binary=first --binary=prog --json
json "both builds" 'any(.notes[]; contains("2 builds")) and all(.rows[]; .several_builds)'
json "matched by name" '[.rows[] | select(.function == "loud")] | length == 1 and
	.[0].old_samples > 1000 and .[0].old_samples == .[0].new_samples'
json "added" '[.rows[] | select(.function == "extra")][0] |
	.code == "added" and .old_samples == 0 and .new_samples > 1000'
ends 0 "the other way" diff extra.db old.db --binary=first --binary=prog
says out.txt ' extra (gone)  \[prog\]' "the other way"
ends 0 "blocks" diff old.db extra.db --binary=first --binary=prog --by=block -f loud --json
json "blocks of one shape are matched" 'all(.rows[]; .old_samples == .new_samples)'

# ---- two periods of one database
ends 0 "put both into one" merge both.db old.db more.db
for args in --at=today --before=..today --after=today.. \
	"--before=4d..2d --after=today.." ; do
	# shellcheck disable=SC2086
	ends 0 "$args" --db both.db diff $args --binary=first --json
	jq -c '[.rows[] | [.function, .old_samples, .new_samples]] | sort' out.txt >periods.txt
	ends 0 "two databases" diff old.db more.db --binary=first --json
	jq -c '[.rows[] | [.function, .old_samples, .new_samples]] | sort' out.txt >dbs.txt
	cmp -s periods.txt dbs.txt || fail "$args: $(diff periods.txt dbs.txt | head -3)"
done
ends 0 "one database named" diff --at=today both.db --json
json "one database named" '.old.db == "both.db" and .new.db == "both.db" and
	.old.first_s == null and .old.end_s == .new.first_s'
ends 3 "nothing before" --db both.db diff --at=2w
says err.txt 'no sample is stored of that period' "nothing before"
ends 0 "against the default" --db old.db diff more.db --json
json "against the default" '.old.db == "old.db" and .new.db == "more.db"'

# ---- sampled: two runs of one program
"$BUILD/morphd" run --no-kernel --db probe.db -- true 2>err.txt || left_out=" sampling"
if [ -z "$left_out" ]; then
	for db in s1 s2; do
		sampled $db.db prog 1000 ./prog 30000000
	done
	sampled s3.db prog 1000 ./prog 10000000 90000000
	ends 0 "sampled" diff s1.db s3.db --json
	json "sampled: loud got louder" '[.rows[] | select(.function == "loud")][0] |
		.change == "significant" and .delta > 20'
	ends 0 "sampled twice" diff s1.db s2.db --json
	json "sampled twice" '[.rows[] | select(.function == "loud")][0] |
		.delta < 20 and .delta > -20'
fi

finish
