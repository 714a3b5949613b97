#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: BOLT optimises a program with each kind of profile
# fdata for llvm-bolt: samples in the format of perf2bolt, inferred branches and observed branches
# that bolt accepts without complaint; and merge-fdata.
. "$(dirname "$0")/lib-export.sh"
need gcc g++ valgrind jq
bolt=/usr/lib/llvm-19/bin
if [ ! -x $bolt/llvm-bolt ]; then
	echo "skip: llvm-bolt is missing (scripts/setup --bench)"
	exit 77
fi

gcc -O2 -Wl,--emit-relocs "so urce/main prog.c" "so urce/second.c" "so urce/third.c" -o c || exit 1
g++ -O2 -Wl,--emit-relocs "so urce/main prog.cc" "so urce/else where.cc" -o cxx || exit 1
progs="c cxx"
if command -v ld.lld >/dev/null; then
	# lld puts data before code, so the local datum "same" is the first symbol of its name.
	gcc -O2 -no-pie -fuse-ld=lld -Wl,--emit-relocs,-z,separate-code "so urce/main prog.c" "so urce/second.c" \
		"so urce/third.c" -o c-lld || exit 1
	progs="$progs c-lld"
fi

# Stripped files whose functions .dynsym still names: bolt reads only .symtab, and names by FDE.
for prog in c cxx; do
	g=gcc sources=("so urce/main prog.c" "so urce/second.c" "so urce/third.c")
	[ $prog = c ] || g=g++ sources=("so urce/main prog.cc" "so urce/else where.cc")
	$g -O2 -rdynamic "${sources[@]}" -o $prog-stripped && strip $prog-stripped || exit 1
	nm -D --defined-only $prog-stripped | grep -q ' T ' || fail "$prog-stripped exports nothing"
	progs="$progs $prog-stripped"
done

# accepted WHAT PROGRAM FDATA: bolt optimises with FDATA, reports nothing
# stale, and the output works
accepted() {
	local more=-reorder-functions=hfsort
	case $2 in
	*-stripped) more=--allow-stripped ;;
	esac
	$bolt/llvm-bolt "$2" -o out -data "$3" -reorder-blocks=ext-tsp $more -v=1 -dyno-stats \
		>bolt.txt 2>&1 || {
		fail "$1: llvm-bolt: $(tail -3 bolt.txt)"
		return
	}
	says bolt.txt '[1-9][0-9]* out of [0-9]* functions .* have non-empty' "$1"
	# Even perf2bolt's own files have one ignored object: "[unknown]", the origin of some calls.
	grep -v 'profile for 1 objects was ignored' bolt.txt |
		grep 'invalid (possibly stale)\|objects was ignored\|failed to parse\|mismatch' &&
		fail "$1: bolt does not know what it is told"
	[ "$(./out)" = "$(./"$2")" ] || fail "$1: the output does not work"
}

for prog in $progs; do
	rm -f s.db*
	counted $prog s.db
	ends 0 "samples" none.fdata --db s.db export --format=fdata --binary=$prog --branches=none
	says none.fdata '^no_lbr ' "$prog"
	accepted "$prog: samples" $prog none.fdata

	ends 0 "inferred" inferred.fdata --db s.db export --format=fdata --binary=$prog \
		--branches=inferred
	grep -q no_lbr inferred.fdata && fail "$prog: inferred branches and no_lbr"
	accepted "$prog: inferred" $prog inferred.fdata
	# Exact counts give exact inference: each loop's counts are its runs.
	case $prog in
	c | c-lld)
		# main's 500 rounds call middle, which calls zeta 4 times: 2,000.
		awk '$2 == "main" && $5 == "middle" { m = $8 } $2 == "middle" && $5 == "zeta" { z += $8 }
			END { exit !(m > 0 && z > 3.6 * m && z < 4.4 * m) }' inferred.fdata ||
			fail "$prog: zeta is not called four times as often as middle:
$(grep -E ' (middle|zeta) 0 ' inferred.fdata)"
		;;
	esac
	$bolt/merge-fdata inferred.fdata inferred.fdata -o merged.fdata >merge.txt 2>&1 ||
		fail "merge-fdata: $(head -3 merge.txt)"
	accepted "$prog: merged" $prog merged.fdata
	one=$(awk '{ s += $NF } END { printf "%d", s }' inferred.fdata)
	two=$(awk '{ s += $NF } END { printf "%d", s }' merged.fdata)
	[ "$two" = $((2 * one)) ] || fail "$prog: merged twice $one is $two"
done

# ---- observed branches: callgrind's jumps, which are exact
for prog in $progs; do
	rm -f j.db* k.db*
	valgrind -q --tool=callgrind --dump-instr=yes --collect-jumps=yes \
		--callgrind-out-file=cg.out ./$prog >/dev/null 2>vg.txt || fail "callgrind"
	ends 0 "import with jumps" import.txt --db j.db import cg.out
	ends 0 "seen" seen.fdata --db j.db export --format=fdata --binary=$prog
	grep -q no_lbr seen.fdata && fail "$prog: branches were seen, and no_lbr is written"
	case $prog in
	*-stripped)
		grep '^1' seen.fdata | grep -vE '^1 __BOLT_FDE_FUNCat[0-9a-f]+ ' &&
			fail "$prog: bolt has no such name"
		;;
	esac
	accepted "$prog: seen" $prog seen.fdata
	if [ $prog = c ] || [ $prog = c-lld ]; then
		# main runs 500 rounds; zeta is called 2,000 times; same
		# goes round 39 times per call.
		says seen.fdata '^1 main [0-9a-f]* 1 middle 0 0 500$' "$prog"
		says seen.fdata '^1 middle [0-9a-f]* 1 zeta 0 0 2000$' "$prog"
		says seen.fdata '^1 same/[12] [0-9a-f]* 1 same/[12] [0-9a-f]* 0 78000$' "$prog"
	fi
	# An exported file can be imported and exported again.
	ends 0 "import of fdata" import.txt --db k.db import --binary=$prog seen.fdata
	ends 0 "seen twice" again.fdata --db k.db export --format=fdata --binary=$prog
	# Observed branches come first. Fall-throughs are inferred from fewer facts this time.
	awk 'NR == FNR { have[$1 " " $2 " " $3 " " $4 " " $5 " " $6] = $8; next }
		{ key = $1 " " $2 " " $3 " " $4 " " $5 " " $6 }
		key in have && have[key] == $8 { same++ }
		END { exit !(same >= 0.4 * FNR) }' seen.fdata again.fdata ||
		fail "$prog: branches come back otherwise: $(diff seen.fdata again.fdata | head -4)"
	for f in callgrind order json; do
		ends 0 "$f with branches" out.txt --db j.db export --format=$f --binary=$prog
		[ -s out.txt ] || fail "$f with branches is empty"
	done
done

# ---- the same lines as perf2bolt's from the same samples
for prog in $progs; do
	case $prog in
	*-stripped) continue ;; # perf2bolt refuses stripped files
	esac
	if ! recorded 200 "/$prog)" perf.data ./$prog 60000 --buildid-mmap -e cpu-clock:u -F 2000; then
		left_out="perf cannot record here"
		break
	fi
	$bolt/perf2bolt -p perf.data -nl -o bolt.fdata $prog >p2b.txt 2>&1 || {
		fail "perf2bolt: $(tail -3 p2b.txt)"
		continue
	}
	rm -f p.db*
	perf script -G -i perf.data --show-mmap-events --show-task-events >perf.txt 2>/dev/null
	ends 0 "import" import.txt --db p.db import perf.txt
	ends 0 "as perf2bolt" none.fdata --db p.db export --format=fdata --branches=none \
		--binary=$prog
	# For bolt, code without the size of a symbol is a function too: entries of a PLT, and code
	# of crtbegin.o and crti.o. The first line names perf's event.
	awk 'NR == FNR { sized[$4]; next } /^1 / { name = $2; sub(/\/[0-9]+$/, "", name) } name in sized' \
		<(nm -S --defined-only $prog | awk 'NF == 4') bolt.fdata >known.fdata
	diff <(sort known.fdata) <(grep -v '^no_lbr' none.fdata | sort) \
		>diff.txt || fail "$prog: not as perf2bolt: $(head -5 diff.txt)"
	[ "$(wc -l <none.fdata)" -gt 5 ] || fail "$prog: too few samples to compare"
	says none.fdata 'same/[12]\|local' "$prog"
done
finish
