#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Function orders: lld, gold and GNU ld link programs again, and functions lie in the file in the
# given order. Functions that share a name stay together.
. "$(dirname "$0")/lib-export.sh"
need gcc g++ valgrind nm

# as_asked LINKER ORDER PROGRAM: PROGRAM has the functions of ORDER, in this order. Functions of the
# same name count once, because each linker keeps them together.
as_asked() {
	local have
	have=$(nm "$3" | awk '$2 ~ /^[tTwW]$/' | sort | awk '
		NR == FNR { asked[$1] = 1; next }
		$3 in asked && !seen[$3]++ { print $3 }' "$2" -)
	[ "$have" = "$(cat "$2")" ] || {
		fail "$1: functions do not lie as asked for"
		diff <(cat "$2") <(echo "$have") | head -10 | sed 's/^/    /'
	}
}

compile() {
	local out=$1 compiler=$2 n=0 f
	shift 2
	rm -f "$out".*.o
	for f; do
		n=$((n + 1))
		$compiler -O2 -ffunction-sections -c "$f" -o "$out.$n.o" || exit 1
	done
}

for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	compile c $cc "so urce/main prog.c" "so urce/second.c" "so urce/third.c"
	case $cc in
	gcc) compile cxx g++ "so urce/main prog.cc" "so urce/else where.cc"; cxx=g++ ;;
	clang) compile cxx clang++ "so urce/main prog.cc" "so urce/else where.cc"; cxx=clang++ ;;
	esac
	for prog in c cxx; do
		$cxx $prog.*.o -o $prog || exit 1
		want=$(./$prog)
		rm -f s.db*
		counted $prog s.db
		for order in ph cds; do
			ends 0 "order" lld.txt --db s.db export --format=order --binary=$prog \
				--function-order=$order
			[ "$(wc -l <lld.txt)" -ge 4 ] || fail "$prog: $(wc -l <lld.txt) functions"
			[ -z "$(sort lld.txt | uniq -d)" ] || fail "$prog: a name stands there twice"
			[ $prog = cxx ] || says err.txt '2 functions share a name' "same and same"
			# _start is in no section of its own, so only lld
			# can move it (with all of crt1.o).
			grep -v '^_start$' lld.txt >sections.txt
			# A function that was never called is not in the order.
			grep -q never lld.txt && fail "$prog: never ran and is asked for"
			# lld
			if ! command -v ld.lld >/dev/null; then
				left_out="lld is missing"
			else
				$cxx -fuse-ld=lld -Wl,--symbol-ordering-file=lld.txt \
					-Wl,--fatal-warnings $prog.*.o -o $prog-lld 2>ld.txt ||
					fail "lld: $(head -3 ld.txt)"
				as_asked "lld $cc $prog $order" lld.txt $prog-lld
				[ "$(./$prog-lld)" = "$want" ] || fail "$prog-lld: wrong output"
			fi
			# gold
			if ! command -v ld.gold >/dev/null; then
				left_out="gold is missing"
			else
				ends 0 "order for gold" gold.txt --db s.db export --format=order \
					--binary=$prog --function-order=$order --linker=gold
				$cxx -fuse-ld=gold -Wl,--section-ordering-file=gold.txt $prog.*.o \
					-o $prog-gold 2>ld.txt || fail "gold: $(head -3 ld.txt)"
				as_asked "gold $cc $prog $order" sections.txt $prog-gold
				[ "$(./$prog-gold)" = "$want" ] || fail "$prog-gold: wrong output"
			fi
			ends 0 "order for ld" ld.ld --db s.db export --format=order \
				--binary=$prog --function-order=$order --linker=ld
			$cxx -fuse-ld=bfd -Wl,-T,ld.ld $prog.*.o -o $prog-ld 2>ld.txt ||
				fail "ld: $(head -3 ld.txt)"
			as_asked "ld $cc $prog $order" sections.txt $prog-ld
			[ "$(./$prog-ld)" = "$want" ] || fail "$prog-ld: wrong output"
		done
	done
done
# The hot callee lies beside its caller: only zeta and second call same.
if [ -e c-lld ]; then
	nm -n c-lld | awk '$2 ~ /^[tT]$/ { print $3 }' >names.txt
	grep -A 1 -B 1 '^same$' names.txt | grep -q 'zeta\|second' ||
		fail "same is not beside a caller: $(tr '\n' ' ' <names.txt)"
fi
finish
