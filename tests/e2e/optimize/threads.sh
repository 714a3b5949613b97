#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: each file is optimised three times, a large one as well
# morph-optimize with one, two and five threads: the same output, the same report except for seconds
# and memory, the same refusal. On a program with relocations and on the distribution's own.
. "$(dirname "$0")/../lib.sh"
scratch threads
need gcc objdump readelf jq
export LC_ALL=C
counts="1 2 5"

# ---- a program with many functions, large enough to be processed in parts
awk 'BEGIN {
	for (i = 0; i < 1500; i++) {
		printf "__attribute__((noinline)) int f%d(int a, int *p)\n{\n\tint s = a;\n", i
		printf "\tfor (int k = 0; k < (a & 7) + %d; k++) {\n", i % 5
		printf "\t\tswitch ((p[k & 15] + k) & 7) {\n"
		for (c = 0; c < 6; c++) printf "\t\tcase %d: s += k * %d; break;\n", c, (i + c) % 11 + 1
		printf "\t\tdefault: s ^= k;\n\t\t}\n\t\tif (s %% %d == 1)\n\t\t\tp[k & 15]++;\n\t}\n", i % 13 + 2
		if (i) printf "\treturn a > 0 && a %% %d ? f%d(a - 1, p) + s : s;\n}\n", i % 3 + 2, int(i / 2)
		else print "\treturn s;\n}"
	}
	print "#include <stdio.h>\nint main(void)\n{\n\tint p[16] = {1, 2, 3}, s = 0;"
	for (i = 0; i < 1500; i += 7) printf "\ts += f%d(%d, p);\n", i, i % 40
	print "\tprintf(\"%d\\n\", s);\n\treturn 0;\n}" }' >many.c
gcc -O1 -fwrapv -Wl,--emit-relocs -o many many.c || exit 1
cp "$(command -v bash)" shell || exit 1

# samples FILE: samples of scattered instructions, some of them often
samples() {
	local off vaddr size
	read -r off vaddr size < <(readelf -lW "$1" | awk '$1 == "LOAD" && / R E / { print $2, $3, $5 }')
	{
		echo "p 7/7 1.0: PERF_RECORD_MMAP2 7/7: [$vaddr($size) @ $off 00:00 0 0]: r-xp $dir/$1"
		objdump -d --no-show-raw-insn "$1" | awk -v path="$dir/$1" '/^ +[0-9a-f]+:/ {
			x = (x * 69069 + 12345) % 2147483648
			# Some regions run, most do not.
			if (int(NR / 400) % 5 > 1 || x % 5) next
			sub(":", "", $1)
			for (i = x % 7; i >= 0; i--) print "p 7/7 1.1: cycles:u: " $1 " f (" path ")"
		}'
	} >perf.text
	"$BUILD/morph-stats" --db "$1.db" import perf.text >/dev/null || fail "import: $1"
	rm perf.text
}

# plain FILE: a report without the fields that differ from run to run
plain() {
	jq -S 'del(.seconds, .cpu_seconds, .peak_rss_bytes, .output)' "$1"
}

nr_same=0
# same FILE WHAT ARGS: the same result with any number of threads
same() {
	local file=$1 what=$2 n
	shift 2
	for n in $counts; do
		command_ends 0 "$file, $what, $n threads" "$BUILD/morph-optimize" --json --explain \
			--threads="$n" "$@" "$file" -o "$file.$n"
		plain out.txt >"report.$n" || fail "$file, $what, $n threads: no JSON"
		cmp "$file.1" "$file.$n" || fail "$file, $what: other bytes by $n threads"
		cmp report.1 "report.$n" || fail "$file, $what: another report by $n threads"
		nr_same=$((nr_same + 1))
	done
	jq -e '.functions.moved > 100 and .verified.blocks > 2048' report.1 >/dev/null ||
		fail "$file, $what: too little moved to be worked on in parts: $(jq -c .functions report.1)"
}

for file in many shell; do
	samples $file
	same $file "a profile" --db=$file.db
	same $file "other orders" --db=$file.db --lab=blocks=exttsp,functions=cds
	same $file "everything, shuffled" --lab=stress-layout=7
done
want=$(./many)
[ "$(./many.5)" = "$want" ] || fail "the program says something else"

# ---- failing verification: the first difference is reported, whichever thread finds one first
for file in many shell; do
	read -r vaddr size off < <(readelf -SW $file.1 | sed 's/^ *\[[^]]*\]//' |
		awk '$1 == ".morph.text" { print $3, $5, $4 }')
	cp $file.1 $file.bad
	# Flip one bit in twenty places of the new code.
	for ((i = 1; i < 20; i++)); do
		at=$((0x$off + 0x$size * i / 20))
		byte=$(od -An -tu1 -j $at -N 1 $file.bad)
		printf "\\x$(printf %x $((byte ^ 4)))" | dd of=$file.bad bs=1 seek=$at conv=notrunc status=none
	done
	for n in $counts; do
		command_ends 4 "$file, damaged, $n threads" "$BUILD/morph-optimize" verify --threads="$n" \
			$file $file.bad
		cp err.txt "err.$n"
		cmp err.1 "err.$n" || fail "$file, damaged: another message by $n threads: $(cat "err.$n")"
	done
done

# ---- usage
for n in 0 65 -1 x ""; do
	command_ends 2 "--threads=$n" "$BUILD/morph-optimize" --threads="$n" --all many --dry-run
	says err.txt '--threads' "--threads=$n"
done
# One processor: one thread, without an error.
command_ends 0 "one processor" taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')" \
	"$BUILD/morph-optimize" --all many -o many.one
command_ends 0 "as many as there are" "$BUILD/morph-optimize" --all many -o many.all
cmp many.one many.all || fail "one processor: other bytes"

[ $nr_failed = 0 ] || exit 1
echo "$nr_same outputs are the same"
