#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# parts: code markers
# scripts/bench/bench-markers compares builds that do the same work, wherever they lie; and
# scripts/bench/markbyhand marks the loops whose heads stand in one line, in gcc and in clang.
. "$(dirname "$0")/../lib.sh"
need gcc python3 setarch
make -s -C "$root" O="$BUILD" "$BUILD/tools/marker-totals" >/dev/null || exit 1
scratch benchmarkers

# compare_totals NAME BINARY...: prints totals that differ between builds of one program
compare_totals() {
	python3 - "$root/scripts/bench/bench-markers" "$PWD/work" "$BUILD" "$@" <<'END'
import importlib.machinery, importlib.util, os, sys, types
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("bench_markers", sys.argv[1])
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_markers", loader))
loader.exec_module(bench)
o = types.SimpleNamespace(work=sys.argv[2], build=sys.argv[3])
os.makedirs(o.work, exist_ok=True)
seen = {binary: bench.totals(o, binary, []) for binary in sys.argv[4:]}
names, differ = bench.differing(seen)
bench.refuse_unmarked("program", seen)
print(len(names), "totals", *(f"{n} {[t.get(n) for t, _ in seen.values()]}" for n in differ))
END
}

# A program reads its own mappings, character by character, and its name.
cat >maps.c <<'C'
#include <stdio.h>
#include "editor/marker/plugin/morph_marker.h"
int main(int argc, char **argv)
{
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && getc(maps) != EOF)
		MORPH_MARKER(maps);
	for (const char *c = argv[argc - 1]; *c; c++)
		MORPH_MARKER(name);
	return 0;
}
C
mkdir -p a a_directory_with_a_longer_name
for d in a a_directory_with_a_longer_name; do
	gcc -O2 -I"$root" maps.c -o $d/maps || exit 1
done
compare_totals "$PWD/a/maps" "$PWD/a_directory_with_a_longer_name/maps" >out
[ "$(cat out)" = "2 totals" ] || fail "builds in two directories: $(cat out)"
gcc -O2 -DMORE -I"$root" -xc - -o more <<'C' || exit 1
#include "editor/marker/plugin/morph_marker.h"
int main(void)
{
	for (volatile int i = 0; i < 3; i++)
		MORPH_MARKER(name);
	return 0;
}
C
compare_totals "$PWD/a/maps" "$PWD/more" >out
says out "^2 totals .*name \['[0-9]*', '3'\]"

echo 'int main(void) { return 0; }' | gcc -xc - -o unmarked || exit 1
compare_totals "$PWD/a/maps" "$PWD/unmarked" >out 2>err.txt && fail "a build without markers is compared"
says err.txt '^bench-markers: program: no totals at .*/unmarked$'

# Loops whose heads stand in one line are marked, others are not.
mkdir -p elsewhere
echo '#define TEXT + 1' >elsewhere/text.h
cat >elsewhere/heads.c <<'C'
#include <stdio.h>
#include "text.h"
#define TWICE(x) \
	for (int t = 0; t < 2; t++) { \
		x; \
	}
int main(void)
{
	int i, s = 0;

	for (i = 0; i < 9; i++) {
		TWICE(s += i)
	}
	while (s > (i + 1) * 2)
	{
		s -= 3;
	}
	do {
		s++;
	} while (s < 100);
	for (i = 0; i < 5;
	     i++) {
		s++;
	}
	for (i = 0; i < 5; i++)
		s++;
	printf("%s:%d %d\n", __FILE__, __LINE__, s TEXT);
	return 0;
}
C
# Nine rounds make s 72; 18 rounds take 3 each, down to 18; 82 rounds add 1 each, up to 100.
printf '%s\t%s\n' heads_11 9 heads_14 18 heads_18 82 >totals.want
for compiler in gcc clang; do
	command -v $compiler >/dev/null || continue
	for level in -O0 -O1 -O2 "-O3 -funroll-loops" "-O2 -flto"; do
		[ "$compiler$level" != "clang-O2 -flto" ] || continue
		# shellcheck disable=SC2086
		"$root/scripts/bench/markbyhand" $compiler $level elsewhere/heads.c -o heads ||
			fail "$compiler $level: does not compile"
		"$BUILD/tools/marker-totals" totals ./heads >out || fail "$compiler $level: fails"
		cmp -s totals totals.want || fail "$compiler $level: $(tr '\n\t' ', ' <totals)"
		# Simple loops are counted in a variable. Names in capitals are no calls.
		[ "$level" != -O0 ] || [ "$(objdump -d heads | sed -n \
			's/.*add *%r.*<__morph_marker_heads_\([0-9]*\)>.*/\1/p' | sort -u | tr '\n' ' ')" = "11 14 18 " ] ||
			fail "$compiler: other loops are counted in variables: $(objdump -d heads | grep __morph_marker)"
		says out '^elsewhere/heads.c:27 111$'
	done
done
echo 'int main(void) {' >broken.c
"$root/scripts/bench/markbyhand" gcc broken.c -o broken 2>err.txt && fail "a broken source compiles"
says err.txt '^broken.c:1:'

command_ends 2 "a wrong level" "$root/scripts/bench/bench-markers" --levels=O9 lua
[ $nr_failed = 0 ] || { echo "$nr_failed failures"; exit 1; }
echo "ok"
