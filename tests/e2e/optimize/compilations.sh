#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# parts: comparisons of compilations
# check-all: it measures time alone
# alone: it measures time
# morph-audit --compilations: a function that one compilation makes slower is named, and no other one;
# unrolled rounds count as before; other work is listed, not compared. The planted slowness is large, so
# that a busy machine cannot hide it.
. "$(dirname "$0")/../lib.sh"
need gcc python3
[ -e "$BUILD/morph_marker.so" ] || {
	echo "skip: no plugin: gcc-12-plugin-dev is missing"
	exit 77
}
"$BUILD/morphd" run --record "${TMPDIR:-/tmp}/compilations-probe.$$" -- true 2>/dev/null || {
	echo "skip: no sampling on this machine"
	exit 77
}
rm -f "${TMPDIR:-/tmp}/compilations-probe.$$"
scratch compilations
export PATH=$BUILD:$PATH TMPDIR=$dir

cat >work.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#ifdef PLANT
#define SUSPECT __attribute__((noinline, optimize("O0")))
#else
#define SUSPECT __attribute__((noinline))
#endif
SUSPECT unsigned int crc(const unsigned char *p, int n)
{
	unsigned int c = ~0u;
	for (int i = 0; i < n; i++) {
		c ^= p[i];
		c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
	}
	return c;
}
static int steps(unsigned long n)
{
	int s = 0;
	while (n != 1) {
		n = n & 1 ? 3 * n + 1 : n / 2;
		s++;
	}
	return s;
}
__attribute__((noinline)) long sum(const int *p, int n)
{
	long s = 0;
	for (int i = 0; i < n; i++)
		s += p[i] ^ i;
	return s;
}
int main(int argc, char **argv)
{
	static unsigned char bytes[20000];
	static int words[20000];
	int rounds = argc > 1 ? atoi(argv[1]) : 10;
	unsigned int c = 0;
	long s = 0;

	for (int r = 0; r < rounds; r++) {
		for (int i = 0; i < 20000; i++) {
			bytes[i] = i * r;
			words[i] = i ^ r;
		}
		c += crc(bytes, 20000);
		s += sum(words, 20000);
		for (int i = 1; i < 200; i++)
			s += steps(i);
#ifdef EXTRA
		if (r == 1 && steps(27) != 111)
			s++;
#endif
	}
	printf("%u %ld\n", c, s);
}
C
compile() { gcc -fplugin="$BUILD/morph_marker.so" -Wl,--emit-relocs work.c "$@" || fail "$*: does not compile"; }
compile -O2 -o plain
compile -O2 -DPLANT -o planted
compile -O2 -funroll-all-loops -o unrolled
compile -O2 -DEXTRA -o extra
gcc -O2 -Wl,--emit-relocs work.c -o unmarked
gcc -O2 -fplugin="$BUILD/morph_marker.so" work.c -o norelocs

compare() { timeout 400 morph-audit --compilations --json --max-seconds=300 "$@" >out.json 2>err.txt; }

# A planted slow function is found, and its loop. It may make others a little slower, by the caches and the
# branch predictor that it uses, and because the compiler knows which registers it leaves alone. Undecided is
# no claim.
compare --pairs=14:18 plain planted -- 1500
[ $? = 5 ] || fail "planted: $(cat err.txt)"
python3 - <<'P' || fail "planted: $(cat err.txt; head -c 3000 out.json)"
import json
j = json.load(open("out.json"))
def only(rows, names):
    slow = sorted((r for r in rows if r["verdict"] == "slower"), key=lambda r: r["seconds"][0] - r["seconds"][1])
    lost = [r["seconds"][1] - r["seconds"][0] for r in slow]
    assert slow and names(slow[0]) == ["crc"] and slow[0]["highest"] < 0.9, slow
    assert all(more < lost[0] / 5 for more in lost[1:]), slow
    return slow
only(j["functions"], lambda r: [f["name"] for f in r["functions"]])
loops = only(j["loops"], lambda r: [m["function"] for m in r["markers"]])
m = loops[0]["markers"][0]
assert m["rounds_old"] == m["rounds_new"] == 1500 * 20001, m
assert not j["other_work"] and j["tests"] == 1 + len(j["functions"]) + len(j["loops"])
# The first marker may have the address of the end of the section before.
assert all(j[b]["left_out"] >= j[b]["accesses"] - 4 for b in ("old", "new")), (j["old"], j["new"])
# `steps' was inlined: its loop is its own, its function is part of main.
assert any({"main", "steps"} >= {m["function"] for m in r["markers"]} for r in j["loops"])
P

# Unrolled rounds are as many rounds, in more increments.
compare --pairs=2:2 plain unrolled -- 1500
case $? in 0 | 5) ;; *) fail "unrolled: $(cat err.txt)" ;; esac
python3 - <<'P' || fail "unrolled: $(head -c 3000 out.json)"
import json
j = json.load(open("out.json"))
m = [m for r in j["loops"] for m in r["markers"] if m["function"] == "sum"]
assert len(m) == 1 and m[0]["rounds_old"] == m[0]["rounds_new"] == 1500 * 20001, m
assert m[0]["accesses_inside"][1] > m[0]["accesses_inside"][0], m
assert all(r["verdict"] in ("undecided", "equal") for r in j["loops"]), "decided by two pairs"
P

# Loops that run other rounds are listed.
compare --pairs=2:2 plain extra -- 1500
case $? in 0 | 5) ;; *) fail "extra: $(cat err.txt)" ;; esac
python3 - <<'P' || fail "extra: $(head -c 3000 out.json)"
import json
j = json.load(open("out.json"))
assert [(m["function"], m["rounds_new"] - m["rounds_old"]) for m in j["other_work"]] == [("steps", 112)], j["other_work"]
for r in j["functions"] + j["loops"]:
    assert ("steps" in [m["function"] for m in r["markers"]]) == (r["verdict"] == "other work"), r
P
morph-audit --compilations --pairs=2:2 plain extra -- 1500 >out.txt
says out.txt "other work" "functions" "loops; ns of a round" "as a whole"

# What cannot be compared
sed 's/%u %ld/%u,%ld/' work.c >other.c
gcc -O2 -fplugin="$BUILD/morph_marker.so" -Wl,--emit-relocs other.c -o other
compare --pairs=2:2 plain other -- 30
[ $? = 6 ] || fail "other output: not seen"
compare plain planted -- 0
[ $? = 3 ] || fail "a run without samples: $(cat err.txt)"
says err.txt "too few samples"
compare plain unmarked -- 30
[ $? = 1 ] || fail "a program without markers is taken"
says err.txt "no code markers"
compare plain norelocs -- 30
[ $? = 1 ] || fail "a program without relocations is taken"
for wrong in "plain" "--plot plain planted" "--metric=wall plain planted" "--at=plain plain planted"; do
	# shellcheck disable=SC2086
	compare $wrong -- 30
	[ $? = 2 ] || fail "$wrong: no usage error"
done
! compgen -G "${TMPDIR:-/tmp}/morph-compilations.*" >/dev/null || fail "files are left behind"
finish
