#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it measures time alone for half a minute
# alone: it measures time
# timeout: 1500
# morph-optimize refine and train: a planted slow function is named first and stays where it was, what was
# good is known the next time, the time is kept, and a signal leaves nothing behind. The planted slowness is large, so
# that a busy machine cannot hide it. Whether a version is faster than the original is not known here.
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need "${cc%% *}" python3
"$BUILD/morphd" run --record "${TMPDIR:-/tmp}/refine-probe.$$" -- true 2>/dev/null || {
	echo "skip: no sampling on this machine"
	exit 77
}
rm -f "${TMPDIR:-/tmp}/refine-probe.$$"
scratch refine
export MORPH_DB=$dir/morph.db

cat >work.c <<'EOF'
#include <stdio.h>
__attribute__((noinline)) unsigned int hash(const unsigned char *s, unsigned int n)
{
	unsigned int h = 5381;
	for (unsigned int i = 0; i < n; i++)
		h = h * 33 ^ s[i];
	return h;
}
__attribute__((noinline)) unsigned int collatz(unsigned int n)
{
	unsigned int s = 0;
	for (unsigned long x = n; x != 1; s++)
		x = x & 1 ? 3 * x + 1 : x / 2;
	return s;
}
__attribute__((noinline)) unsigned int sieve(unsigned char *p, unsigned int n)
{
	unsigned int c = 0;
	for (unsigned int i = 0; i < n; i++)
		p[i] = 1;
	for (unsigned int i = 2; i < n; i++)
		if (p[i]) {
			c++;
			for (unsigned int k = 2 * i; k < n; k += i)
				p[k] = 0;
		}
	return c;
}
int main(void)
{
	static unsigned char p[100000];
	unsigned int r = 0;
	for (int i = 0; i < 60; i++) {
		r += sieve(p, sizeof(p)) + hash(p, sizeof(p));
		for (unsigned int n = 1; n < 3000; n++)
			r += collatz(n);
	}
	printf("%u\n", r);
	return 0;
}
EOF
$cc -O2 -o work work.c || exit 1
for i in 1 2 3 4 5 6 7 8; do
	"$BUILD/morphd" run --no-kernel --rate 8000 -- ./work >/dev/null 2>err.txt || fail "morphd: $(cat err.txt)"
done

# refine STATUSES WHAT ARGS: one of the statuses, and nothing left behind
refine() {
	local got=0
	"$BUILD/morph-optimize" refine --min-samples=100 "${@:3}" ./work -- ./work >out.txt 2>err.txt || got=$?
	case " $1 " in
	*" $got "*) ;;
	*) fail "$2: status $got, not one of $1: $(head -3 err.txt)" ;;
	esac
	[ -z "$(ls -d .morph-train.* 2>/dev/null)" ] || fail "$2: left behind: $(ls -d .morph-train.*)"
	case $got in
	0) [ -x faster ] || fail "$2: no output" ;;
	5) [ ! -e faster ] && [ ! -e faster.undecided ] || fail "$2: an output that is not faster" ;;
	7) [ -x faster.undecided ] && [ -s faster.undecided.csv ] || fail "$2: no undecided version" ;;
	esac
	status=$got
	rm -f faster faster.undecided faster.undecided.csv
}

# is PYTHON WHAT: an assertion about the report in out.txt, which is j
is() {
	python3 -c "
import json
j = json.load(open('out.txt'))
r = j['refinement']
assert $1, j" 2>py.txt || fail "$2: $(tail -1 py.txt | cut -c1-4000)"
}

trials() {
	sqlite3 -readonly morph.db "SELECT count(*) FROM trial WHERE $1"
}

# A planted slow function is the first culprit, and stays where it was.
# A busy machine needs longer until there is an audit; an attempt without one keeps its first audit alone.
for budget in 40 160 640; do
	sqlite3 morph.db "DELETE FROM trial"
	refine "0 5 7" "a planted function" --json --adjust=collatz:wait=200 --audit-pairs=2:2 --budget=$budget -o faster
	python3 -c "import json; exit(not json.load(open('out.txt'))['refinement']['audit'])" && break
done
is "r['culprits'][0]['function'] == 'collatz'" "the first culprit"
is "r['culprits'][0]['factor'] > 1.5 and r['culprits'][0]['p'] < 0.01 and r['culprits'][0]['moved']" "its evidence"
is "len([w for w in r['adjustments'].split() if w.endswith(':stay')]) == len([c for c in r['culprits'] if c['moved']])" \
	"what stays"
is "'wait' not in r['adjustments']" "the second version does not wait"
is "r['audit']['verdict'] in ('faster', 'slower', 'equal', 'undecided')" "an audit of it"
is "abs(r['audit']['alpha'] - 0.005) < 1e-9" "its share of the promise"
[ "$(trials 1)" = 2 ] || fail "audits were not kept"
"$BUILD/morph-stats" status --check >out.txt 2>&1 || fail "status --check: $(cat out.txt)"

# What was good before is applied at once.
sqlite3 morph.db "INSERT INTO trial SELECT NULL, build_id, text_hash, machine, functions, adjustments, 'faster', 9, 1.5, 1.4,
	1.6, when_s FROM trial WHERE adjustments LIKE '%:stay' LIMIT 1"
refine "0 5 7" "known adjustments" --json --audit-pairs=2:2 --budget=1 -o faster
is "j['known'].endswith(':stay') and j['known'].startswith('0x')" "what is known"
is "r['audit'] is None" "a budget of a second"

# Another machine knows nothing.
sqlite3 morph.db "UPDATE trial SET machine = 'another'"
refine "0 5 7" "another machine" --json --audit-pairs=2:2 --budget=1 -o faster
is "j['known'] == ''" "what another machine knew"

# Nothing to repair; little time.
refine "0 5 7" "nothing planted" --json --audit-pairs=2:2 --budget=30 -o faster
is "all(c['function'] != 'hash' or c['factor'] < 3 for c in r['culprits'])" "false culprits"
refine "0 5 7" "text" --audit-pairs=2:2 --budget=1 -o faster
says out.txt '^  refined    in [0-9]* s: '
refine "0 5 7" "functions left out" --json --skip=collatz --audit-pairs=2:2 --budget=1 -o faster

# A signal ends all in order.
for signal in INT TERM; do
	"$BUILD/morph-optimize" refine --min-samples=100 -o faster ./work -- ./work >out.txt 2>err.txt &
	pid=$!
	for _ in $(seq 200); do
		ls .morph-train.*/final >/dev/null 2>&1 && break
		sleep 0.05
	done
	kill -$signal $pid
	wait $pid
	[ $? = 1 ] || fail "$signal: another status"
	says err.txt 'interrupted'
	[ -z "$(ls -d .morph-train.* 2>/dev/null)" ] || fail "$signal: left behind: $(ls -d .morph-train.*)"
	[ ! -e faster ] || fail "$signal: an output"
done

# Output that varies fails the audit, with its reason, unless a filter removes what varies.
printf '#!/bin/sh\n./work; date +%%N\n' >vary.sh
chmod +x vary.sh
command_ends 1 "output that varies" "$BUILD/morph-optimize" refine --min-samples=100 -o faster ./work -- ./vary.sh
says err.txt '^morph-optimize: the audit failed: .*work: its runs give different results (stdout: .*--filter can remove'
[ "$(wc -l <err.txt)" = 1 ] || fail "output that varies: more than one message: $(cat err.txt)"
"$BUILD/morph-optimize" train --budget=0 -o t ./work -- ./vary.sh >out.txt 2>err.txt
[ $? = 1 ] || fail "train: output that varies: another status"
says err.txt '^morph-audit: .*work: its runs give different results (stdout: .*--filter can remove'
says err.txt '^morph-optimize: the audit failed: morph-audit'
[ ! -e t ] && [ ! -e faster ] || fail "output that varies: an output"
for command in "refine --min-samples=100 --budget=1" "train --budget=0"; do
	# shellcheck disable=SC2086
	"$BUILD/morph-optimize" $command --filter='sed -n 1p' --audit-pairs=2:2 -o t ./work -- ./vary.sh >out.txt 2>err.txt
	case $? in
	0 | 5) ;;
	7) says err.txt '^  morph-audit .* --filter=.sed -n 1p. --command' ;;
	*) fail "$command: a filter: $(cat err.txt)" ;;
	esac
	rm -f t t.undecided t.undecided.csv
done
command_ends 2 "a filter without audits" "$BUILD/morph-optimize" train --filter=cat --no-audit -o t -- ./work

# Training refines, too, unless it is told not to.
command_ends 2 "no command" "$BUILD/morph-optimize" refine ./work
command_ends 2 "no file" "$BUILD/morph-optimize" refine -- ./work
command_ends 2 "no profile wanted" "$BUILD/morph-optimize" refine --all ./work -- ./work
command_ends 2 "a budget without audits" "$BUILD/morph-optimize" train --budget=5 --no-audit -o t -- ./work
command_ends 3 "no profile" "$BUILD/morph-optimize" refine --db=none.db -o faster ./work -- ./work
printf '#!/bin/sh\nkill -SEGV $$\n' >crash.sh
chmod +x crash.sh
command_ends 1 "a command that crashes" "$BUILD/morph-optimize" refine --min-samples=100 -o faster ./work -- ./crash.sh
"$BUILD/morph-optimize" train --audit-pairs=2:2 --budget=1 -o t -- ./work >out.txt 2>err.txt
says out.txt '^  refined    in'
"$BUILD/morph-optimize" train --audit-pairs=2:2 --budget=0 -o t -- ./work >out.txt 2>err.txt
grep -q '^  refined' out.txt && fail "--budget=0: refined"
[ "$nr_failed" = 0 ] || exit 1
