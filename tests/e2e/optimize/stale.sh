#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A profile of one build serves the next build: functions that moved, changed, were added or
# compiled differently. With the old file, and with only what the database remembers of it.
. "$(dirname "$0")/../lib.sh"
need gcc jq valgrind sqlite3 strip
scratch stale

optimize() {
	local want=$1 what=$2
	shift 2
	command_ends "$want" "$what" "$BUILD/morph-optimize" "$@"
}

# Two builds of one program. MORE adds a function in front of all others, adds a case to step() and
# changes a constant there, and compiles sum() differently.
cat >prog.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#ifdef MORE
__attribute__((noinline, noipa)) long added(long n)
{
	long s = 9;
	for (long i = 0; i < n; i++)
		s = s * 5 + (s >> 3);
	return s;
}
#define SUM __attribute__((noinline, noipa, optimize("O1")))
#else
#define SUM __attribute__((noinline, noipa))
#endif
__attribute__((noinline, noipa)) long step(long s, long i)
{
#ifdef MORE
	if (i == 77777777)
		return s / (i - 3);
#endif
	if (i % 7 == 3)
		return s ^ i;
	if (i % 5 == 1)
#ifdef MORE
		return s + 12345;
#else
		return s + 4711;
#endif
	return s * 3 + i;
}
SUM long sum(long n)
{
	long s = 1;
	for (long i = 0; i < n; i++)
		s = step(s, i) + (s & 3);
	return s;
}
__attribute__((noinline, noipa)) long rare(long n)
{
	return n * 31 % 1009;
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000, s = 0;

	for (long i = 0; i < 3; i++)
		s += sum(n);
#ifdef MORE
	s += added(2);
#endif
	printf("%ld\n", s + rare(n));
	return 0;
}
C
mkdir old new
# shellcheck disable=SC2086
${CC:-gcc} -O2 -Wl,--build-id prog.c -o old/prog || exit 1
# shellcheck disable=SC2086
${CC:-gcc} -O2 -DMORE -Wl,--build-id prog.c -o new/prog || exit 1
if [ "$(basename "${CC:-gcc}")" = clang ]; then
	echo "skip: optimize() is gcc's"
	exit 77
fi
strip old/prog new/prog
valgrind -q --tool=callgrind --dump-instr=yes --collect-jumps=yes --callgrind-out-file=cg \
	old/prog 3000 >/dev/null 2>vg.txt || fail "$(cat vg.txt)"
ends 0 "import" --db p.db import cg
optimize 3 "another build, of which nothing is remembered" --db=p.db new/prog -n
says err.txt 'no samples of this build'

# ---- with the old file
optimize 0 "the old file" --db=p.db --stale=old/prog new/prog -n --report=json
json "what was carried over" '.stale.samples > 10000 and .stale.samples_matched > 0.9 * .stale.samples
	and .stale.functions_matched >= 3 and .stale.own_samples == 0
	and .stale.samples_matched <= .stale.samples and .stale.transfers_matched > 0'
cp out.txt with-file.json
optimize 1 "a file that is not there" --db=p.db --stale=gone new/prog -n
optimize 3 "the very file, without samples" --db=p.db --stale=new/prog new/prog -n

# ---- without the old file: the database remembers enough
ends 0 "remember" --db p.db remember
says out.txt '/old/prog$'
ends 0 "remember as JSON" --db p.db remember --json
json "remember" '.modules | length > 0 and all(.[]; .module == null or .bytes >= 0)'
json "bytes" '[.modules[] | select(.module | endswith("/old/prog"))][0] | .bytes > 100 and .bytes < .text_bytes'
ends 0 "check" --db p.db status --check
ends 3 "remember what is not there" --db p.db remember --module=none
id=$(jq -r '[.modules[] | select(.module | endswith("/old/prog"))][0].build_id' out.txt 2>/dev/null || true)
rm -r old
optimize 0 "without the old file" --db=p.db new/prog -o new/prog.morph
says out.txt 'counts of another build'
says out.txt 'functions and .* blocks found again'
[ "$(new/prog 2000)" = "$(new/prog.morph 2000)" ] || fail "the output of the two differs"
optimize 0 "without the old file, as JSON" --db=p.db new/prog -n --report=json
json "less is kept, no less is found" '.stale.samples_matched > 0.9 * .stale.samples'
[ "$(jq .stale.samples_matched out.txt)" = "$(jq .stale.samples_matched with-file.json)" ] ||
	fail "$(jq -c .stale out.txt) is not $(jq -c .stale with-file.json)"
id=$(jq -r .stale.build_id out.txt)
optimize 0 "by its build-id" --db=p.db --stale="${id:0:12}" new/prog -n --report=json
json "by its build-id" '.stale.functions_matched >= 3'
optimize 3 "by a build-id that nobody has" --db=p.db --stale=0123456789abcdef new/prog -n
optimize 3 "not wanted" --db=p.db --stale=none new/prog -n
says err.txt 'no samples of this build'

# ---- the build's own counts are separate, and replace the old ones once they suffice
before=$(sqlite3 p.db 'SELECT count(*), sum(nr_samples) FROM bucket')
optimize 0 "again" --db=p.db new/prog -n --report=json
[ "$(sqlite3 p.db 'SELECT count(*), sum(nr_samples) FROM bucket')" = "$before" ] ||
	fail "carried counts went into the database"
[ "$(sqlite3 p.db "SELECT count(*) FROM module WHERE path LIKE '%/new/prog'")" = 0 ] ||
	fail "the new build is in the database without a sample of its own"
valgrind -q --tool=callgrind --dump-instr=yes --collect-jumps=yes --callgrind-out-file=cg2 \
	new/prog 1 >/dev/null 2>vg.txt || fail "$(cat vg.txt)"
cp p.db few.db
ends 0 "a few of its own" --db few.db import cg2
optimize 0 "a few of its own" --db=few.db --min-samples=100000 new/prog -n --report=json
json "both" '.stale.own_samples > 0 and .stale.samples_matched > 0
	and .samples <= .stale.samples_matched * 2 + .stale.own_samples'
valgrind -q --tool=callgrind --dump-instr=yes --collect-jumps=yes --callgrind-out-file=cg3 \
	new/prog 3000 >/dev/null 2>vg.txt || fail "$(cat vg.txt)"
ends 0 "enough of its own" --db p.db import cg3
own=$(sqlite3 p.db "SELECT sum(nr_samples) FROM bucket JOIN module ON module.key = module
	WHERE path LIKE '%/new/prog'")
optimize 0 "enough of its own" --db=p.db new/prog -n --report=json
json "own counts alone" ".stale == null and .samples == $own"

# ---- optimising a file stores the fingerprint for its next build
[ "$(sqlite3 p.db "SELECT count(*) FROM fingerprint JOIN module ON module.key = module
	WHERE path LIKE '%/new/prog'")" = 0 ] || fail "a dry run wrote to the database"
optimize 0 "for real" --db=p.db new/prog -o new/again
[ "$(sqlite3 p.db "SELECT count(*) FROM fingerprint JOIN module ON module.key = module
	WHERE path LIKE '%/new/prog'")" = 1 ] || fail "no fingerprint of what was optimised"
ends 0 "check" --db p.db status --check

[ $nr_failed = 0 ] || exit 1
