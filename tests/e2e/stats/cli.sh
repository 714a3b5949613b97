#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-stats imports real files of callgrind and perf; its numbers are compared
# with theirs. Also exit statuses, JSON, and exports that other programs accept.
. "$(dirname "$0")/../lib.sh"
scratch stats
at_exit 'chmod -R u+w "$dir"; rm -rf "$dir"'
cc=${CC:-gcc}
need "${cc%% *}"

cat >prog.c <<'C'
#include <stdio.h>
#include <stdlib.h>
static __attribute__((noinline)) long quiet(long n)
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
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;

	printf("%ld\n", loud(n) + quiet(n));
	return 0;
}
C
# shellcheck disable=SC2086
$cc -O1 -fPIE -pie -Wl,--build-id prog.c -o pie &&
	$cc -O1 -fno-pie -no-pie -Wl,--build-id prog.c -o nopie || exit 1

# ---- usage, no profile, damage
ends 2 "no command"
ends 2 "an unknown command" frobnicate
ends 2 "an unknown option" query --frobnicate
ends 2 "a bad time" query --since=never
ends 2 "weight of modules" query --sort=weight
ends 2 "export without a format" export
ends 2 "import without a file" import
ends 0 "help" --help
ends 0 "help of a command" query --help
ends 0 "version" --version
for c in status query activity "export --format=folded"; do
	# shellcheck disable=SC2086
	ends 3 "$c without a database" --db none.db $c
	one_line "$c without a database"
	says err.txt 'none.db' "$c without a database"
done
[ ! -e none.db ] || fail "a question made a database"
echo "not a database, not a database, not a database" >junk.db
ends 1 "junk" --db junk.db status
one_line "junk"
says err.txt 'junk.db: ' "junk"
ends 1 "a missing file" --db x.db import /no/such/file
ends 1 "a directory" --db x.db import .
printf 'positions: instr line\nevents: Ir\nob=/bin/true\n0x10 1 x\n' >bad.out
ends 1 "a bad line" --db x.db import bad.out
one_line "a bad line"
says err.txt 'bad.out:4: not a cost' "a bad line"
printf 'hello world\n' >bad.txt
ends 1 "no format at all" --db x.db import bad.txt
says err.txt 'bad.txt:1: ' "no format at all"
[ ! -e x.db ] || fail "a failed import made a database"

# ---- callgrind: the sums are callgrind's own, for each variant of its format
if ! command -v valgrind >/dev/null; then
	left_out="$left_out valgrind"
else
	for prog in pie nopie; do
		for opts in "" "--compress-pos=no --compress-strings=no" \
			"--collect-jumps=yes --dump-line=no" "--separate-callers=2 --cache-sim=yes"; do
			rm -f c.db*
			# shellcheck disable=SC2086
			valgrind -q --tool=callgrind --dump-instr=yes $opts \
				--callgrind-out-file=cg.out ./$prog >/dev/null 2>vg.txt || {
				fail "callgrind: $(head -3 vg.txt)"
				continue
			}
			ends 0 "import $prog $opts" --db c.db import cg.out
			ends 0 "check $prog $opts" --db c.db status --check
			total=$(awk '/^totals:/ { print $2 }' cg.out)
			says out.txt "emitted *$total " "total of $prog $opts"
			ends 0 "functions" --db c.db query --binary=$prog --json
			# Each loop runs 1,000 rounds of 4 to 19 instructions.
			for f in loud quiet; do
				jq -e --arg f $f '.rows[] | select(.function == $f) |
					.samples >= 4000 and .samples < 20000' out.txt >/dev/null ||
					fail "$prog $opts: $f: $(jq -c '.rows[]' out.txt)"
			done
		done
		# Blocks: each executed instruction is a sample, so the
		# weight is the number of runs.
		ends 0 "blocks" --db c.db query --binary=$prog -f loud --json
		jq -e '[.rows[] | select(.weight == 1000)] | length >= 1' out.txt >/dev/null ||
			fail "$prog: no block of loud that ran 1,000 times: $(cat out.txt)"
	done
	head -c 3000 cg.out >cut.out
	ends 1 "a callgrind file cut short" --db c.db import cut.out
	ends 0 "nothing of it is stored" --db c.db status --check
	says out.txt 'Sessions: 1$' "nothing of it is stored"

	# The file has been replaced: addresses instead of names, and a message.
	cp nopie keep
	$cc -O2 -no-pie -fno-pie prog.c -o nopie
	ends 0 "a replaced file" --db c.db query -m nopie
	says err.txt 'is not the file that was profiled' "a replaced file"
	says out.txt '0x40' "a replaced file"
	ends 0 "the old file elsewhere" --db c.db query --binary=keep -n 1
	says out.txt ' loud \| quiet ' "the old file elsewhere"
	ends 3 "a file never profiled" --db c.db query --binary=pie
	mv keep nopie

	ends 0 "folded" --db c.db export --format=folded
	says out.txt '^nopie;loud [0-9]*$' "folded"
	grep -qv '^[^ ;]*;.* [0-9]*$' out.txt && fail "folded: $(grep -v '^[^ ;]*;.* [0-9]*$' out.txt)"
	[ "$(awk '{ s += $NF } END { print s }' out.txt)" = \
		"$("$BUILD/morph-stats" --db c.db status --json | jq .samples.attributed)" ] ||
		fail "folded: the sum is not what is stored"
	ends 1 "fdata of several modules" --db c.db export --format=fdata
	ends 0 "fdata" --db c.db export --format=fdata --binary=nopie
	grep -q '^no_lbr ' out.txt && fail "fdata: samples alone, unasked"
	ends 0 "fdata of samples" --db c.db export --format=fdata --branches=none --binary=nopie
	says out.txt '^no_lbr ' "fdata"
	says out.txt '^1 quiet/1 [0-9a-f]* [0-9]*$' "fdata"
	bolt=/usr/lib/llvm-19/bin
	if [ -x $bolt/llvm-bolt ]; then
		cp out.txt nopie.fdata
		$bolt/llvm-bolt nopie -o nopie.bolt -data nopie.fdata -reorder-blocks=cache \
			>bolt.txt 2>&1 || fail "llvm-bolt: $(tail -3 bolt.txt)"
		says bolt.txt '[1-9][0-9]* out of [0-9]* functions .* have non-empty' "llvm-bolt"
	else
		left_out="$left_out llvm-bolt"
	fi
	chmod a-w c.db
	ends 0 "a database that cannot be written" --db c.db status
	truncate -s 5000 c.db
	ends 1 "a truncated database" --db c.db status --check
	one_line "a truncated database"
fi

# ---- perf: perf's own samples of each function
if ! recorded 100 '/pie)' perf.data ./pie 60000000 -e cpu-clock:u -F 2000; then
	left_out="$left_out perf"
else
	want=$(perf script -G -i perf.data -F ip,sym,dso 2>/dev/null | grep -c '/pie)')
	for opts in "-F comm,pid,tid,time,event,ip,sym,dso" ""; do
		rm -f p.db*
		# shellcheck disable=SC2086
		perf script -G -i perf.data $opts --show-mmap-events --show-task-events \
			--show-lost-events >perf.txt 2>/dev/null
		ends 0 "import perf" --db p.db import perf.txt
		ends 0 "perf's modules" --db p.db query --binary=pie --by=module --json
		have=$(jq .rows[0].samples out.txt)
		if [ "$want" -le 20 ] || [ "$want" != "$have" ]; then
			fail "perf $opts: $have samples of pie, perf says $want"
		fi
		for f in loud quiet; do
			n=$(perf script -G -i perf.data -F ip,sym,dso 2>/dev/null |
				grep -c " $f (.*/pie)")
			ends 0 "perf's functions" --db p.db query --binary=pie -f $f --by=function --json
			[ "$n" = "$(jq .rows[0].samples out.txt)" ] ||
				fail "perf $opts: $f: $n, $(jq -c .rows out.txt)"
		done
		ends 0 "activity" --db p.db activity -m pie --json
		jq -e '.programs[0].application > 10 and .programs[0].kernel == 0' out.txt >/dev/null ||
			fail "activity: $(cat out.txt)"
	done
	perf script -i perf.data -F comm,pid,tid,time,event,ip,sym,dso >nommap.txt 2>/dev/null
	ends 1 "perf script without mappings" --db p.db import nommap.txt
	says err.txt 'no records of mappings.*show-mmap-events' "perf script without mappings"
	# From a pipe, which can be read only once.
	perf script -G -i perf.data --show-mmap-events 2>/dev/null |
		"$BUILD/morph-stats" --db q.db import - >out.txt 2>err.txt || fail "a pipe"
	ends 0 "since long ago" --db q.db query --since=3d -n 1
	ends 3 "since tomorrow" --db q.db query --since=@99999999999
fi

# ---- perf's own format, which only perf can read
{ printf PERFILE2; head -c 500 /dev/zero; } >fake.data
ends 1 "perf's own format" --db new.db import fake.data
one_line "perf's own format"
says err.txt 'fake.data: .*perf script' "perf's own format"
[ ! -e new.db ] || fail "perf's own format: a database was made"

finish
