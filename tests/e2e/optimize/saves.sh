#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Registers that copies save later than the original: random functions give all registers back, return the same,
# and unwinders find the same registers from each of their instructions. By counts, hot ways execute no pushes that
# they do not need. Debuggers show the same frames. SEED in the environment: other random functions.
. "$(dirname "$0")/../lib.sh"
scratch saves
need gcc g++ jq python3 objdump
data=$root/tests/data

# moved FILE [OPTIONS]: FILE.out is the verified output, and $moved the number of its runs of saves and restores
moved() {
	"$BUILD/morph-optimize" --report=json "${@:2}" -o "$1.out" "$1" >report.json 2>err.txt || {
		fail "$*: $(cat err.txt)"
		return 1
	}
	moved=$(jq .code.saves_passed report.json)
	[ "$moved" = "$(jq .verified.saves_passed report.json)" ] || fail "$*: verify counts other saves"
	"$BUILD/morph-optimize" verify "$1" "$1.out" >/dev/null 2>&1 || fail "$*: does not verify again"
}

# same WHAT FILE [ARGUMENT]: the output prints the same sum, and finds nothing wrong
same() {
	"./$2.out" "${@:3}" >got.txt || fail "$1: $(cat got.txt)"
	[ "$(head -1 got.txt)" = "$("./$2" "${@:3}" | head -1)" ] || fail "$1: another sum"
	grep -q '0 wrong, 0 changed' got.txt || fail "$1: $(cat got.txt)"
}

# functions NAME FLAGS: a program with random functions
functions() {
	python3 "$data/save_functions.py" "$((${SEED:-1} * 100 + ${#1}))" 60 >"$1.S" &&
		gcc -O2 "${@:2}" -o "$1" "$data/saves.c" "$1.S" 2>err.txt || fail "$1: $(cat err.txt)"
}

for build in pie: fixed:-no-pie relocations:-Wl,--emit-relocs stripped:-s static:-static; do
	name=${build%%:*}
	functions "$name" ${build#*:}
	"./$name" >/dev/null || fail "$name: the original is wrong"
	for seed in 1 2 3; do
		moved "$name" --all --stress-saves=$seed || continue
		[ "$moved" -ge 20 ] || fail "$name: only $moved runs of saves"
		[ "$(jq .stress_saves_seed report.json)" = $seed ] || fail "$name: the report lacks the seed"
		same "$name, seed $seed" "$name"
		[ $seed != 1 ] || same "$name, seed $seed, steps" "$name" steps
		moved "$name" --stress-layout=$seed --stress-saves=$seed --stress-inline=$seed &&
			same "$name, another order, seed $seed" "$name"
	done
done

# By counts
functions counted -fcf-protection
"$BUILD/morph-optimize" instrument --all --report=none --counts="$PWD/%p.counts" -o counting counted || fail "counting"
./counting >/dev/null || fail "the counting program"
"$BUILD/morph-stats" --db=db import --binary=counting ./*.counts >/dev/null || fail "import"
moved counted --db=db --exact-profile --layout=saves && same "by counts" counted
[ "$moved" -ge 10 ] || fail "by counts, only $moved runs of saves moved"
same "by counts, steps" counted steps
"$BUILD/morph-optimize" --db=db --exact-profile --layout=saves --report=text -o counted.out counted | grep -q 'runs of saves or restores' ||
	fail "the report in text says nothing"
moved counted --db=db --exact-profile --layout=no-saves
[ "$moved" = 0 ] || fail "--layout=no-saves: $moved"
moved counted --all --layout=saves
[ "$moved" = 0 ] || fail "without a profile: $moved"

# Files that count save everything.
"$BUILD/morph-optimize" instrument --stress-saves=1 --report=json -o counting counted 2>err.txt >report.json &&
	[ "$(jq '.code.saves_passed // 0' report.json)" != 0 ] && fail "a file with counters has moved saves"

# Exceptions pass such functions, and land in others. Debug information describes the copies.
g++ -O1 -g -fno-shrink-wrap -o throws "$data/exceptions.cc" || fail "exceptions.cc"
want=$(./throws; echo $?)
for seed in 1 2 3 4 5; do
	moved throws --all --stress-saves=$seed || continue
	[ "$want" = "$(./throws.out; echo $?)" ] || fail "exceptions, seed $seed"
done
if command -v gdb >/dev/null; then
	nr=0
	gcc -O2 -g -no-pie -o framed "$data/saves.c" fixed.S && moved framed --all --stress-saves=2
	"$BUILD/tools/moved" framed.out | awk 'NR % 23 == 0 { print $1 }' | head -12 >places.txt
	while read -r at; do
		gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex "break *0x${at#0x}" -ex run -ex bt \
			-ex 'frame function enter' -ex 'p $rbx == 0x3333 && $rbp == 0x6666 && $r12 == 0xcccc && $r15 == 0xffff' \
			./framed.out </dev/null >bt.txt 2>&1
		grep -q '^#1 .*enter' bt.txt || continue
		nr=$((nr + 1))
		grep -q '^#2 .* main' bt.txt || fail "gdb at $at: $(grep '^#' bt.txt)"
		grep -q '= 1$' bt.txt || fail "gdb at $at: other registers in enter(): $(tail -2 bt.txt)"
	done <places.txt
	[ $nr -ge 2 ] || fail "gdb stopped in $nr functions"
fi

finish
