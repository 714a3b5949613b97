#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# propeller: each version of clang that is installed compiles with the clusters, without a word. The program prints
# the same, nothing of the cold parts runs, and fewer branches are taken. Programs that were compiled so give clusters
# again. Damaged maps of blocks give one message and no file.
. "$(dirname "$0")/lib-export.sh"
need clang++ valgrind nm ld.lld readelf objcopy jq python3

# The hints are wrong on purpose. Two functions share a name; a constructor has two.
cat >"so urce/hints.cc" <<'C'
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
long other(long x);
struct Shape { virtual ~Shape() {} virtual long area(long n) const = 0; };
struct Square : Shape { long k; Square(long k); long area(long n) const override; };
__attribute__((noinline)) Square::Square(long k) : k(k) { if (k == 77) puts("never"); }
long Square::area(long n) const
{
	if (n % 500 == 3)
		throw std::runtime_error("caught");
	return n * k;
}
static __attribute__((noinline)) long shared(long x) { if (x < 0) abort(); return x / 3 + 7; }
static __attribute__((noinline)) long pick(long x)
{
	switch (x % 7) {
	case 0: return x * 3;
	case 1: return shared(x);
	case 2: if (x < 0) abort(); return x - 9;
	case 3: return x / 3;
	case 4: return x + 1;
	case 5: puts("never"); return 1;
	default: return other(x);
	}
}
__attribute__((noinline)) long work(const Shape *shape, long n)
{
	long sum = 0;
	for (long i = 0; i < n; i++) {
		if (__builtin_expect(i % 3 != 0, 0))
			sum += i / 3 % 5;
		if (__builtin_expect(i % 16 == 5, 1))
			sum ^= i;
		try {
			sum += shape->area(i);
		} catch (const std::exception &) {
			sum++;
		}
		sum += pick(i % 7 == 5 ? i + 1 : i);
		if (i < 0)
			fprintf(stderr, "negative %ld\n", i);
	}
	return sum;
}
long never(long x) { return printf("%ld", x); }
int main(int argc, char **argv)
{
	Square square(argc);
	printf("%ld\n", work(&square, argc > 1 ? atol(argv[1]) : 5000));
	return argc > 99 ? (int)never(argc) : 0;
}
C
cat >"so urce/other.cc" <<'C'
#include <cstdlib>
static __attribute__((noinline)) long shared(long x) { for (long i = 0; i < 3; i++) x = x * i + 1; return x; }
long other(long x) { return x < 0 ? exit(1), 0 : shared(x) - x; }
C
sources=("so urce/hints.cc" "so urce/other.cc")

# exported WHAT PROGRAM: clusters.txt and order.txt, by callgrind's counts of PROGRAM
exported() {
	rm -f s.db*
	counted "$2" s.db
	ends 0 "$1" clusters.txt --db s.db export --format=propeller --binary="$2"
	cp err.txt messages.txt
	ends 0 "$1: order" order.txt --db s.db export --format=order --binary="$2"
}

# compiled WHAT CLANG OUT FLAG...: without a message
compiled() {
	local what=$1 clang=$2 out=$3
	shift 3
	$clang -O2 -fuse-ld=lld "$@" "${sources[@]}" -o "$out" 2>warnings.txt || fail "$what: $(head -3 warnings.txt)"
	[ ! -s warnings.txt ] || fail "$what: warns: $(head -3 warnings.txt)"
}

# taken PROGRAM: branches that are taken in a run of PROGRAM
taken() {
	qemu-x86_64 -plugin "$BUILD/plugin/branches.so,out=counts.json" "./$1" >/dev/null
	jq '[.files[] | select(.main) | .all.cond_taken + .all.jumps] | add' counts.json
}

# nothing_cold WHAT PROGRAM: no instruction of a cold part ran; work() has such a part
nothing_cold() {
	nm -S "$2" | awk '$4 ~ /\.cold$|5never/ { print $1, $2, $4 }' >cold.txt
	says cold.txt '_Z4workPK5Shapel\.cold$' "$1"
	rm -f t.db*
	counted "$2" t.db
	ends 0 "$1: what ran" ran.json --db t.db export --format=json --binary="$2"
	python3 - >ran.txt <<'P' || fail "$1: cold code runs: $(head -3 ran.txt)"
import json, sys
ran = [address for address, _ in json.load(open("ran.json"))["modules"][0]["addresses"]]
ran = [int(a, 16) if isinstance(a, str) else a for a in ran]
bad = [name for start, size, name in map(str.split, open("cold.txt"))
       if any(int(start, 16) <= a < int(start, 16) + int(size, 16) for a in ran)]
print(*bad)
sys.exit(bool(bad) or len(ran) < 50)
P
}

# in_order WHAT PROGRAM: its functions lie as order.txt says
in_order() {
	nm -n "$2" | awk 'NR == FNR { asked[$1] = 1; next } $3 in asked && !seen[$3]++ { print $3 }' order.txt - >have.txt
	grep -vxE '_start|_ZL6sharedl' order.txt | diff - <(grep -vxE '_start|_ZL6sharedl' have.txt) >diff.txt ||
		fail "$1: functions do not lie as asked for: $(head -5 diff.txt)"
}

nr_versions=0
hows="-no-pie -pie"
for clang in clang++ clang++-{14..19}; do
	command -v "$clang" >/dev/null || continue
	version=$($clang -dumpversion | sed 's/\..*//')
	[ "$version" -ge 14 ] && [ ! -e "plain-$version" ] || continue
	nr_versions=$((nr_versions + 1))
	map=-fbasic-block-sections=labels
	[ "$version" -lt 19 ] || map=-fbasic-block-address-map
	for how in $hows; do
		what="clang $version $how"
		compiled "$what" "$clang" plain $map $how
		want=$(./plain)
		exported "$what" plain
		says clusters.txt '^!_Z4workPK5Shapel$' "$what"
		says clusters.txt '^!_ZN6SquareC[12]El/_ZN6SquareC[12]El$' "$what"
		grep -qE '^!!0( [0-9]+)*$' clusters.txt || fail "$what: no blocks"
		grep -vE '^!([^! /]+(/[^! /]+)*|!0( [0-9]+)*)$' clusters.txt && fail "$what: no such line"
		grep -E 'shared|never' clusters.txt && fail "$what: two functions of one name, or a function that did not run"
		says messages.txt '2 functions have no name that the format can hold' "$what"
		compiled "$what: with clusters" "$clang" again $how -fbasic-block-sections=list=clusters.txt \
			-Wl,--symbol-ordering-file=order.txt
		[ "$(./again)" = "$want" ] || fail "$what: the program prints something else"
		nothing_cold "$what" again
		in_order "$what" again
	done
	hows=-pie
	if command -v qemu-x86_64 >/dev/null; then
		before=$(taken plain) after=$(taken again)
		[ "$((after * 10))" -lt "$((before * 9))" ] || fail "$what: $before branches taken before, $after after"
	else
		left_out="qemu-x86_64 is missing"
	fi
	# With both options the map describes functions in several parts. What clang assumed is skipped.
	if [ "$version" -ge 19 ]; then
		cp clusters.txt first.txt
		compiled "$what: a second round" "$clang" plain $map -fbasic-block-sections=list=first.txt
		exported "$what: a second round" plain
		compiled "$what: from a second round" "$clang" again -fbasic-block-sections=list=clusters.txt
		[ "$(./again)" = "$want" ] || fail "$what, a second round: the program prints something else"
		nothing_cold "$what, a second round" again
		cp clusters.txt second.txt
		compiled "$what: assumed frequencies" "$clang" plain $map -fbasic-block-sections=list=first.txt \
			-mllvm -pgo-analysis-map=func-entry-count,bb-freq,br-prob
		exported "$what: assumed frequencies" plain
		cmp -s second.txt clusters.txt || fail "$what: assumed frequencies change the clusters"
	fi
	mv plain "plain-$version"
done
[ $nr_versions != 0 ] || { echo "skip: no clang from 14 on"; exit 77; }

# ---- no map, or a damaged one
refused() {
	ends 1 "$1" out.txt --db s.db export --format=propeller --binary=prog
	[ ! -s out.txt ] || fail "$1: clusters are written"
	one_line "$1"
	says err.txt "$2" "$1"
}
clang++ -O2 -fuse-ld=lld "${sources[@]}" -o prog || exit 1
rm -f s.db*
counted prog s.db
refused "no map" 'prog: has no map of basic blocks: compile with -fbasic-block-sections=labels'
for whole in plain-*; do
	cp "$whole" prog
	rm -f s.db*
	counted prog s.db
	ends 0 "$whole" whole.txt --db s.db export --format=propeller --binary=prog
	objcopy --dump-section .llvm_bb_addr_map=map.bin "$whole" || exit 1
	size=$(stat -c %s map.bin)
	for keep in 1 7 9 $((size / 2)) $((size - 1)); do
		head -c "$keep" map.bin >cut.bin
		objcopy --update-section .llvm_bb_addr_map=cut.bin "$whole" prog || exit 1
		refused "$whole, $keep bytes" 'prog: \.llvm_bb_addr_map is damaged at byte'
	done
	# Any bytes: a message, or clusters that clang could read.
	for seed in {1..30}; do
		python3 - "$seed" <<'P'
import random, sys
r = random.Random(int(sys.argv[1]))
b = bytearray(open("map.bin", "rb").read())
for _ in range(r.randint(1, 4)):
    b[r.randrange(len(b))] = r.choice([0, 1, 0x7f, 0x80, 0xff, r.randrange(256)])
open("bad.bin", "wb").write(b)
P
		objcopy --update-section .llvm_bb_addr_map=bad.bin "$whole" prog || exit 1
		"$BUILD/morph-stats" --db s.db export --format=propeller --binary=prog >out.txt 2>err.txt
		case $? in
		0) grep -vE '^!([^! /]+(/[^! /]+)*|![0-9]+( [0-9]+)*)$' out.txt && fail "$whole, seed $seed: no such line" ;;
		1) [ ! -s out.txt ] || fail "$whole, seed $seed: clusters are written"
			one_line "$whole, seed $seed" ;;
		*) fail "$whole, seed $seed: $(head -3 err.txt)" ;;
		esac
	done
done
finish
