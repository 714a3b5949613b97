#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# parts: code markers
# Code markers: the plugin's and the header's totals are the same in every compilation; an output
# with --markers=remove behaves as before, and leaves alone what the program itself reads.
. "$(dirname "$0")/../lib.sh"
need gcc g++ nm readelf objdump
[ -e "$BUILD/morph_marker.so" ] || {
	echo "skip: no plugin: gcc-12-plugin-dev is missing"
	exit 77
}
make -s -C "$root" O="$BUILD" "$BUILD/tools/marker-totals" >/dev/null || exit 1
scratch markers
plugin=-fplugin=$BUILD/morph_marker.so
optimize() { "$BUILD/morph-optimize" "$@"; }

cat >loops.c <<'C'
#include <stdio.h>
#include <string.h>
static int gcd(int a, int b) { while (b) { int t = a % b; a = b; b = t; } return a; }
static void fill(int *p, int n) { for (int i = 0; i < n; i++) p[i] = i > 50 ? i * 3 : i; }
static long sum(const int *p, int n) { long s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
int main(int argc, char **argv)
{
	static int a[1000];
	int g = 0, rows = 0;

	fill(a, 1000);
	for (int i = 1; i < 200 + argc; i++) {
		g += gcd(i, 60);
		if (g % 7 == 5)
			continue;
		for (const char *c = argv[0] + strlen(argv[0]) - 3; *c; c++)
			rows += *c == 'r';
	}
again:
	g -= 3;
	if (g > 100)
		goto again;
	printf("%ld %d %d\n", sum(a, 1000), g, rows);
	return 0;
}
C
cat >loops.cc <<'C'
#include <cstdio>
#include <stdexcept>
#include <vector>
template <class T> T total(const std::vector<T> &v)
{
	T s{};
	for (auto &x : v) {
		if (x > T(1000))
			throw std::runtime_error("big");
		s += x;
	}
	return s;
}
int main()
{
	std::vector<int> v;
	for (int i = 0; i < 1200; i++) {
		v.push_back(i);
		try {
			if (i % 50 == 0)
				printf("%d\n", total(v));
		} catch (std::exception &e) {
			puts(e.what());
		}
	}
}
C
levels=("-O0" "-O1" "-O2" "-Os" "-O3" "-O3 -funroll-all-loops" "-O2 -flto"
	"-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections")

# totals_agree SOURCE COMPILER FLAGS: also of outputs that keep their markers
totals_agree() {
	local source=$1 level nr=0
	shift
	for level in "${levels[@]}"; do
		# shellcheck disable=SC2086
		"$@" $level -Wl,--emit-relocs "$source" -o program || {
			fail "$source $level: does not compile"
			return
		}
		"$BUILD/tools/marker-totals" totals ./program >out || fail "$source $level: fails"
		[ -s totals ] || fail "$source $level: no totals"
		[ $nr -gt 0 ] || { cp totals totals.want; cp out out.want; }
		cmp -s totals totals.want || {
			fail "$source $level: other totals"
			diff totals.want totals | head -5
		}
		cmp -s out out.want || fail "$source $level: other output"
		# The variable `own' is none of the compiler's.
		while read -r name _; do
			[ "$name" = own ] || readelf -p .morph.markers program | grep -q "$name^I" ||
				fail "$source $level: $name is not listed"
		done <totals
		nr=$((nr + 1))
	done
}
totals_agree loops.c gcc "$plugin"
totals_agree loops.cc g++ "$plugin"
totals_agree "$root/tests/data/marker.c" gcc -I"$root"
if command -v clang >/dev/null; then
	cp totals.want totals.gcc
	levels=("-O0" "-O1" "-O2" "-O3")
	totals_agree "$root/tests/data/marker.c" clang -I"$root"
	cmp -s totals.want totals.gcc || fail "clang and gcc have other totals"
fi

# one marker per block
gcc -O2 "$plugin" -fplugin-arg-morph_marker-blocks loops.c -o blocks || fail "blocks: does not compile"
[ "$(nm blocks | grep -c __morph_marker_)" -gt "$(nm program | grep -c __morph_marker_)" ] ||
	fail "no more markers with one per block"
gcc "$plugin" -fplugin-arg-morph_marker-nonsense -c loops.c 2>err.txt && fail "a wrong argument is taken"
says err.txt nonsense

# leave_out SOURCE COMPILER...: the output behaves as before
leave_out() {
	local source=$1
	shift
	"$@" -Wl,--emit-relocs "$source" -o program || fail "$source: does not compile"
	./program >out.want 2>&1
	rm -f program.morph
	optimize --all --markers=remove program -o r >report.txt 2>err.txt || {
		fail "$source: $(cat err.txt)"
		return
	}
	./r >out 2>&1
	cmp -s out out.want || fail "$source: without markers, another output"
	optimize verify program r >verify.txt 2>&1 || fail "$source: $(cat verify.txt)"
	says report.txt 'markers  *[0-9]* with [0-9]* accesses'
}
for level in -O0 -O1 -O2 -O3; do
	leave_out loops.c gcc $level "$plugin"
	leave_out loops.cc g++ $level "$plugin"
	leave_out loops.c gcc $level -no-pie "$plugin"
done
leave_out loops.c gcc -O2 "$plugin"
optimize --all --markers=remove --json program -o r >report.json
left=$(sed -n 's/.*"left_out": *\([0-9]*\).*/\1/p' report.json)
[ "${left:-0}" -ge 6 ] || fail "only ${left:-0} accesses were left out"
optimize --all program -o kept >report.txt || fail "--markers=keep is not the default"
grep -q markers report.txt && fail "markers are mentioned without being asked for"
"$BUILD/tools/marker-totals" totals ./program >/dev/null
"$BUILD/tools/marker-totals" totals.kept ./kept >/dev/null
cmp -s totals totals.kept || fail "an output that keeps its markers has other totals"

# A variable that the program reads keeps its value, whatever its name is.
leave_out "$root/tests/data/marker.c" gcc -O2 -I"$root"
says report.txt 'stay: something else reads'

# Increments whose flags nothing uses go, also behind a function with a cold part; the report counts what is there.
leave_out "$root/tests/data/marker_flags.c" gcc -O2 -I"$root"
says report.txt 'markers  *18 with 18 accesses in code, 10 left out'
objdump -d -j .morph.text r | grep -o '<__morph_marker_[a-z0-9_]*>' >stay.txt
[ "$(grep -c stays_ stay.txt)" = 8 ] && [ "$(wc -l <stay.txt)" = 8 ] ||
	fail "other increments stay than should: $(tr '\n' ' ' <stay.txt)"

# csmith's programs
if command -v csmith >/dev/null; then
	for seed in 1 2; do
		csmith --seed $seed -o random.c >/dev/null
		totals=
		for level in -O0 -O2 -O3; do
			gcc -w -I/usr/include/csmith $level "$plugin" -Wl,--emit-relocs random.c -o program ||
				fail "csmith $seed $level: does not compile"
			timeout 600 "$BUILD/tools/marker-totals" totals ./program >/dev/null
			[ -z "$totals" ] || cmp -s totals "$totals" || fail "csmith $seed $level: other totals"
			cp totals totals.csmith
			totals=totals.csmith
		done
		leave_out random.c gcc -w -I/usr/include/csmith -O2 "$plugin"
	done
fi

command_ends 2 "a wrong value" "$BUILD/morph-optimize" --markers=drop program
[ $nr_failed = 0 ] || { echo "$nr_failed failures"; exit 1; }
echo "ok"
