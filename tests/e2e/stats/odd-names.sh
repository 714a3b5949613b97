#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names of functions and threads that contain what a format has a meaning for: each export stays valid, no two
# functions become one, and the import of perf's text goes on behind a line that it cannot read.
. "$(dirname "$0")/../lib.sh"
need gcc objdump jq iconv
scratch odd-names
export LC_ALL=C

# ---- exports ----
cat >prog.c <<'C'
#define F(name) __attribute__((noipa)) long name(long n) { return n * 3 + 1; }
F(odd_newline1) F(odd_newline2) F(odd_nonutf8) F(odd_nonutf9) F(odd_semicol) F(odd_colonns) F(odd_number1)
F(odd_blankss)
int main(void)
{
	return odd_newline1(odd_newline2(odd_nonutf8(odd_nonutf9(odd_semicol(odd_colonns(odd_number1(
		odd_blankss(1)))))))) == 7;
}
C
gcc -O1 -fno-pie -no-pie -Wl,--build-id prog.c -o plain || exit 1
sed 's/odd_newline1/odd_new\nine1/; s/odd_newline2/odd_new\tine2/; s/odd_nonutf8/odd_n\xe9nutf8/
	s/odd_nonutf9/odd_n\xe8nutf8/; s/odd_semicol/odd_a;bcdef/; s/odd_colonns/odd_a:bcdef/
	s/odd_number1/(12) abber1/; s/odd_blankss/odd bl nkss/' plain >prog
chmod +x prog
# One count for each instruction of these functions, each in so many thousands
{
	printf 'version: 1\npositions: instr line\nevents: Ir\nob=%s\nfl=x\nfn=x\n' "$PWD/prog"
	objdump -d --no-show-raw-insn plain | awk '/^[0-9a-f]+ </ {on = /<odd_/; n += on} on && /^ / {
		sub(":", "", $1); print "0x" $1, 0, 1000 * n; sum += 1000 * n} END {print "totals: " sum}'
} >cg.out
ends 0 import -d s.db import cg.out

# export FORMAT: into out.FORMAT
export_as() {
	ends 0 "$1" -d s.db export --format="$1" -m prog
	mv out.txt "out.$1"
}
for format in folded callgrind fdata pprof json; do
	export_as $format
done
for format in folded callgrind json; do
	iconv -f utf-8 -t utf-8 out.$format >/dev/null || fail "$format: not UTF-8"
done
[ "$(grep -c '^prog;[^;]* [0-9]*$' out.folded)" = "$(wc -l <out.folded)" ] || fail "folded: $(cat out.folded)"
[ "$(sed 's/ [0-9]*$//' out.folded | sort -u | wc -l)" = 8 ] || fail "folded: not eight functions: $(cat out.folded)"
says out.folded '^prog;odd_new\\x0aine1 [0-9]*$'
says out.folded '^prog;odd_a\\x3bbcdef [0-9]*$'
says out.folded '^prog;odd_a:bcdef [0-9]*$'
[ "$(grep '^fn=' out.callgrind | sort -u | wc -l)" = 8 ] || fail "callgrind: $(grep '^fn=' out.callgrind)"
says out.callgrind '^fn=\\x2812) abber1$'
ends 0 fdata -d s.db export --format=fdata --branches=none -m prog
mv out.txt out.samples
says err.txt '1 functions have no name that the format can hold'
for file in out.fdata out.samples; do
	! grep -v '^[01] .* [0-9a-f]* ' $file | grep -v '^no_lbr' || fail "$file: a line that llvm-bolt cannot read"
done
says out.samples '^1 odd\\ bl\\ nkss '
! grep -q ine1 out.samples || fail "fdata: the name with a line break"
gzip -dc <out.pprof >pprof.raw || fail "pprof: not compressed"
# shellcheck disable=SC1003
for name in 'odd_n\xe9nutf8' 'odd_n\xe8nutf8' 'odd_new\x0aine1'; do
	grep -aqF "$name" pprof.raw || fail "pprof: no $name"
done
! grep -aqP 'odd_n[\xe8\xe9]' pprof.raw || fail "pprof: a string that is not UTF-8"
[ "$(jq '[.modules[].functions[]?.name | select(contains("odd") or contains("abber"))] | length' out.json)" = 8 ] ||
	fail "json: $(jq -c '[.modules[].functions[]?.name]' out.json)"

# ---- the text of perf script ----
code=$((0x$(objdump -d plain | sed -n 's/^0*\([0-9a-f]*\) <odd_blankss>:$/\1/p')))
base=$((0x$(objdump -h plain | awk '$2 == ".text" {print $4}')))
off=$((0x$(objdump -h plain | awk '$2 == ".text" {print $6}')))
page=$((off / 4096 * 4096))
{
	printf 'prog 7/7 1.0: PERF_RECORD_MMAP2 7/7: [%#x(%#x) @ %#x 00:00 0 0]: r-xp %s\n' $((base - (off - page))) \
		8192 $page "$PWD/prog"
	for name in 'a b c' '[ET_NET 0]' '12 34/56' 'x: y: z:' 'n 1.5: cycles:' '' $'tab\there' $'nl\nx 1/1' $'caf\xe9' \
		PERF_RECORD_MMAP ' lead' 'trail ' '%s%n' '1/1 1.5: cycles'; do
		printf '%s 7/7 2.5: cpu-clock:u: %16x f (%s)\n' "$name" "$code" "$PWD/prog"
	done
	# The kernel's word for a path longer than PATH_MAX
	printf 'prog 7/7 2.5: PERF_RECORD_MMAP2 7/7: [0x7f0000000000(0x1000) @ 0 00:00 0 0]: r-xp //toolong\n'
	printf 'prog 7/7 2.5: cpu-clock:u: 7f0000000010 f (//toolong)\n'
	printf 'nl\nx 1/1 7/7 2.6: PERF_RECORD_COMM: nl\nx 1/1:7/7\n'
} >perf.txt
rm -f p.db
ends 0 "odd names of threads" -d p.db import perf.txt
says out.txt '^13 of 14 counted'
says out.txt '^1 unattributed: unreadable$'
says out.txt '^4 lines not understood, and skipped$'
ends 0 "the same as JSON" -d p.db import --json perf.txt
json "unread lines" '.unread_lines == 4 and .attributed == 13'
ends 0 query -d p.db query --by=function --json
json "the function" '[.rows[] | select(.function == "odd bl nkss") | .samples] | add == 26'
printf 'hello\nworld\n' >none.txt
ends 1 "no sample at all" -d p.db import --format=perf none.txt
says err.txt 'none.txt:1: neither a sample nor a record'
finish
