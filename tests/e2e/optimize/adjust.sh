#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: other tools read the addresses of each of many outputs
# --adjust: the functions lie where the user wants them, by addresses that other tools read; nops
# that wait stand in the loop; programs behave the same; wrong values are refused.
. "$(dirname "$0")/../lib.sh"
scratch adjust
need gcc g++ jq nm objdump python3
export LC_ALL=C
optimize=$BUILD/morph-optimize
nr_run=0

cat >prog.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile unsigned sink;
__attribute__((noinline)) unsigned spin(unsigned n)
{
	unsigned h = n;
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < 50; k++)
			h = h * 33 + (h >> 7) + k;
		sink = h;
	}
	return h;
}
__attribute__((noinline)) int leaf(int x) { return x * 3 + 1; }
__attribute__((noinline)) int branchy(int x)
{
	int sum = 0;
	for (int i = 0; i < x; i++) {
		if (i % 7 == 3)
			sum += leaf(i);
		else if (i % 11 == 2)
			sum ^= i << 3;
		else
			sum -= i;
		if (sum < -100000000)
			abort();
	}
	return sum;
}
__attribute__((noinline)) int pick(int x)
{
	switch (x & 7) {
	case 0: return x * 3;
	case 1: return x - 7;
	case 2: return x / 5;
	case 3: return x ^ 0x55;
	case 4: return x % 9;
	default: return ~x;
	}
}
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int (*volatile pointer)(int) = leaf;
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000, items[64];

	for (int i = 0; i < 64; i++)
		items[i] = pick(i * 37 + n);
	qsort(items, 64, sizeof(items[0]), order);
	printf("%u %d %d %d %d %d\n", spin((unsigned)n), branchy(n), pointer(n), pointer == leaf, items[3],
	       items[60]);
	return 3;
}
END
data=$root/tests/data
gcc -O2 -g -no-pie -fno-pie -Wl,--emit-relocs -o rel prog.c &&
	gcc -O2 -fPIE -pie -Wl,--emit-relocs -o relpie prog.c &&
	gcc -O2 -fPIE -pie -s -o stock prog.c &&
	gcc -O2 -static -s -o static prog.c &&
	g++ -std=c++14 -w -O2 -pthread -Wl,--emit-relocs -o throws "$root/tests/e2e/optimize/exceptions.cc" &&
	g++ -std=c++14 -w -O2 -pthread -s -o throws-stock "$root/tests/e2e/optimize/exceptions.cc" &&
	gcc -O2 -w -o control "$data/control.c" || exit 1

ends() { command_ends "$1" "$2" "$optimize" "${@:3}"; }

# run PROGRAM: its output and status
run() { # PROGRAM
	"./$1" >"$1.got" 2>&1 </dev/null
	echo "status $?" >>"$1.got"
}

same() { # WHAT ORIGINAL OUTPUT
	nr_run=$((nr_run + 1))
	run "$3"
	cmp -s "$2.got" "$3.got" || fail "$1: other output: $(diff "$2.got" "$3.got" | head -n 4)"
}

# adjusted FUNCTION FILTER: FILTER is true for what the last report says of FUNCTION
adjusted() {
	jq -e ".adjusted.functions[] | select(.function == \"$1\") | $2" out.txt >/dev/null ||
		fail "$1: not $2: $(jq -c .adjusted out.txt)"
}

# ---- all functions, in every way: programs behave the same
for file in rel relpie stock static throws throws-stock control; do
	run $file
	for how in start=17 start=0 loop=41 order=original end wait=1 wait=300 start=33,loop=5 \
		order=original,start=16 end,start=63,loop=1,wait=13 order=original,end,wait=7 stay; do
		words=${how//,/,*:}
		for plan in --all --lab=stress-layout=7; do
			[ $how = stay ] && continue
			ends 0 "$file $how $plan" $plan --json "--adjust=*:$words" $file -o $file.new
			json "$file $how $plan" '[.adjusted.functions[] | select(.why_not == null)] | length > 3'
			json "$file $how $plan" '.adjusted.unknown == []'
			same "$file $how $plan" $file $file.new
			ends 0 "$file $how $plan is verified" verify $file $file.new
			rm -f $file.new
		done
	done
	ends 3 "$file: all stay" --all "--adjust=*:stay" $file -o $file.new
done

# ---- addresses, as the report and other tools say
for file in rel stock; do
	ends 0 "$file" --all --json "--adjust=*:start=21,*:loop=44" $file -o $file.new
	json "$file: starts" '[.adjusted.functions[] | select(.why_not == null)
		| select(.done | index("start=21")) | .new_vaddr % 64] | length > 3 and all(. == 21)'
	json "$file: loops" '[.adjusted.functions[] | select(.done | index("loop=44"))
		| .loop_vaddr % 64] | length >= 2 and all(. == 44)'
	json "$file: all that are copied start there" '[.adjusted.functions[] | select(.why_not == null)
		| select(.done | index("start=21") | not)] == []'
done
ends 0 nm --all --adjust=spin:start=21 rel -o rel.new
[ $((0x$(nm rel.new | awk '$3 == "spin" { print $1 }') % 64)) = 21 ] || fail "nm: $(nm rel.new | grep spin)"
ends 0 "print" --all --adjust=spin:start=21,spin:loop=44 --print=place:spin -o rel.new rel
at=$(awk '/->/ { print $3; exit }' out.txt)
[ $((at % 64)) = 21 ] || fail "--print=place: $(cat out.txt)"
ends 0 "print" --all --adjust=spin:start=21,spin:loop=44 --print=plan:spin -o rel.new rel
says out.txt 'aligned to 64 plus 21$'
says out.txt 'aligned to 64 plus 44$'

# ---- the loop is the innermost one; nops that wait stand where branches lead back to
ends 0 wait --all --json --adjust=spin:wait=37,spin:loop=8 rel -o rel.new
adjusted spin '.done == ["loop=8", "wait=37"] and .loop_vaddr % 64 == 8'
loop=$(jq '.adjusted.functions[0].loop_vaddr' out.txt)
objdump -d --no-show-raw-insn --start-address="$loop" --stop-address=$((loop + 120)) rel.new >dis
[ "$(grep -c '	nop$' <(sed -n '/>:$/,$p' dis | sed 1d | head -n 37))" = 37 ] || fail "no 37 nops: $(head -n 60 dis)"
grep -q "	j[a-z]* *$(printf %x "$loop") " dis || fail "no branch back to the nops: $(cat dis)"
ends 0 "leaf waits at its entry" --all --json --adjust=leaf:wait=3 rel -o rel.new
adjusted leaf '.done == ["wait=3"] and .loop_vaddr == null'
[ "$(objdump -d --no-show-raw-insn --disassemble=leaf rel.new | grep -c '	nop$')" = 3 ] || fail "leaf does not wait"

# ---- pointers keep what low bits programs may use
ends 0 "aligned" --all --json --adjust=leaf:start=16 rel -o rel.new
redirected=$(jq .code.functions_redirected out.txt)
same "pointer to an aligned start" rel rel.new
ends 0 "odd" --all --json --adjust=leaf:start=17 rel -o rel.new
json "a pointer does not lead to an odd start" ".code.functions_redirected == $redirected - 1"
same "pointer to an odd start" rel rel.new

# ---- with a profile: zones and orders
ends 0 instrument instrument --kind=edges --counts="$dir/counts" rel -o rel.i
./rel.i 5000 >/dev/null
command_ends 0 import "$BUILD/morph-stats" --db=db import --binary=rel.i counts
ends 0 "profile" --db=db --json rel -o rel.plain
json "no adjustments are reported where none are wanted" '.adjusted == null'
ends 0 "profile, end" --db=db --json --adjust=branchy:end rel -o rel.new
adjusted branchy '.done == ["end"] and .new_vaddr % 64 == 0'
same "end" rel rel.new
# alone_at_end OPTION WARM: all other hot copies lie in lines before those of branchy, and all warm
# copies in lines behind them. WARM: are there any?
alone_at_end() {
	ends 0 "end $1" "$1" --adjust=branchy:end --print=place -o rel.new rel
	same "end $1" rel rel.new
	python3 - out.txt branchy "$2" >wrong 2>&1 <<'P' || fail "$1: $(cat wrong out.txt)"
import re, sys
own, hot, warm, func = [], [], [], None
for line in open(sys.argv[1]):
    if line.startswith("function "):
        func = line.split()[1]
    m = re.match(r"  0x[0-9a-f]+ -> 0x([0-9a-f]+) +(\d+) bytes, (hot|warm)", line)
    if m and int(m[2]):
        first, size = int(m[1], 16), int(m[2])
        lines = warm if m[3] == "warm" else own if func == sys.argv[2] else hot
        lines += [first // 64, (first + size - 1) // 64]
print(own, hot, warm)
sys.exit(not (own and hot and max(hot) < min(own) and max(own) < min(warm, default=2**60) and bool(warm) == (sys.argv[3] == "warm")))
P
}
alone_at_end --db=db none
for seed in 1 2 3 4; do
	alone_at_end --lab=stress-layout=$seed warm
done
ends 0 "profile, original" --db=db --json --adjust=branchy:order=original,branchy:start=16 rel -o rel.new
adjusted branchy '.done == ["start=16", "order=original"] and .new_vaddr % 64 == 16'
same "order=original" rel rel.new
ends 0 "place" --db=db --adjust=branchy:order=original --print=place:branchy -o rel.new rel
awk '/->/ { print $1 }' out.txt >old
[ "$(wc -l <old)" -gt 3 ] && sort -c old || fail "order=original: $(cat out.txt)"
ends 0 "profile, stay" --db=db --json --adjust=branchy:stay rel -o rel.new
adjusted branchy '.done == ["stay"] and .new_vaddr == null and .why_not == null'
json "stay is a reason" '[.functions.left_alone[] | select(.function == "branchy") | .why] == ["left out by --adjust"]'
ends 0 "profile, loop" --db=db --json --adjust=branchy:loop=11,leaf:loop=11 rel -o rel.new
adjusted branchy '.done == ["loop=11"] and .loop_vaddr % 64 == 11'
adjusted leaf '.done == [] and .wanted == ["loop=11"] and .loop_vaddr == null'
ends 0 "text" --db=db --adjust=branchy:loop=11,leaf:loop=11,_start:end rel -o rel.new
says out.txt '^  adjusted   1 of 3 functions that are named$'
says out.txt ' branchy: loop=11; at 0x[0-9a-f]*, loop at 0x[0-9a-f]*$'
says out.txt ' leaf: but not loop=11 (there is no loop); at 0x[0-9a-f]*$'
says out.txt ' _start: end: not copied: '
# Without adjustments the output is the same as ever.
ends 0 "again" --db=db --adjust='' rel -o rel.again
cmp -s rel.plain rel.again || fail "an empty --adjust changes the output"

# ---- in place, and with train's options
cp rel inplace
ends 0 "in place" --db=db --in-place --backup-dir=kept --adjust=spin:start=48,spin:wait=2 inplace
same "in place" rel inplace
ends 0 "restore" restore --backup-dir=kept inplace
cmp -s rel inplace || fail "restore"
command_ends 0 "train knows it" "$optimize" train --help
says out.txt '--adjust'
ends 2 "train, wrong" train --adjust=f:sideways -o x -- true

# ---- names
printf '%s\n' '# a list' spin:start=8 nowhere:loop=3 '  leaf:end ' 'no*:stay' "0x$(nm rel | awk '$3 == "pick" { print $1 }'):start=9" >list
ends 0 "a list" --all --json --adjust=@list --adjust=branchy:start=10 rel -o rel.new
json "names of a list that name nothing" '.adjusted.unknown == ["nowhere", "no*"]'
json "functions of a list" '[.adjusted.functions[] | .function] | sort == ["branchy", "leaf", "pick", "spin"]'
ends 0 "a list" --all --adjust=@list rel -o rel.new
says out.txt '^      there is no function nowhere$'
ends 1 "unknown" --all --adjust=nowhere:end rel -o none
one_line unknown
says err.txt "there is no function 'nowhere'"
printf 'x\033[2Jy:end\n' >list
ends 0 "a name with control characters" --all --adjust=@list rel -o rel.new
grep -q $'\033' out.txt && fail "control characters are printed"

# ---- wrong values
for bad in spin spin: :start=1 spin:start spin:start= spin:start=64 spin:start=-1 spin:start=1x spin:start=0x10 \
	spin:start=99999999999999999999 spin:loop=64 spin:wait=0 spin:wait=4097 spin:wait=65537 spin:order=ph \
	spin:end=1 spin:End "spin: end" @nofile spin:end,leaf; do
	ends 2 "$bad" --all "--adjust=$bad" rel -o none
	says err.txt '^morph-optimize: --adjust: ' "$bad"
done
printf 'spin:sideways\n' >list
ends 2 "a wrong line" --all --adjust=@list rel -o none
for bad in spin:start=1,spin:start=2 "*:start=1,spin:start=2" spin:stay,spin:end "spin:wait=3,sp*:wait=4" \
	"spin:end,*:stay"; do
	ends 2 "contradiction $bad" --all "--adjust=$bad" rel -o none
	one_line "contradiction $bad"
	says err.txt 'contradicts another adjustment of 0x[0-9a-f]* ' "$bad"
done
ends 0 "twice the same" --all --adjust=spin:start=1,spin:start=1 rel -o rel.new
[ ! -e none ] || fail "an output of a wrong adjustment"
ends 2 "instrument has no adjustments" instrument --kind=edges --counts=c --adjust=spin:end rel -o none

# ---- a debugger among the nops
if command -v gdb >/dev/null; then
	ends 0 "gdb" --all --json --adjust=spin:loop=50,spin:wait=5,spin:start=1 rel -o rel.new
	loop=$(jq '.adjusted.functions[0].loop_vaddr' out.txt)
	# One of the nops that wait, and the last one of the padding before them.
	before=$(objdump -d --no-show-raw-insn rel.new | grep -B1 "^ *$(printf %x "$loop"):" | awk 'NR == 1 && $2 ~ /^nop/ { print $1 }')
	[ -n "$before" ] || fail "no padding before the loop"
	for at in $((loop + 2)) "0x${before%:}"; do
		nr_run=$((nr_run + 1))
		gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex "break *$at" -ex run -ex bt rel.new >gdb.log 2>&1
		grep -q '^#0 .* in spin (' gdb.log && grep -q '^#1 .* in main (' gdb.log ||
			fail "gdb at $at: $(tail -n 5 gdb.log)"
	done
else
	left_out=" gdb"
fi

echo "$nr_run runs, $nr_failed failures"
finish
