#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random states before and behind replaced calls, on an emulated processor: of small programs and of this machine's
# own, the original and the output end in the same registers, flags and memory. In the long form, all calls of more
# programs from more states. SEED in the environment: other states.
# timeout: 3600
. "$(dirname "$0")/../lib.sh"
scratch inline-states
need gcc g++ objcopy
[ -x "$BUILD/tools/inlined-states" ] || { echo "skip: inline-states: no emulator (libunicorn-dev)"; exit 77; }
data=$root/tests/data
nr_states=0

# states NAME SEED CALLS LEAST: file NAME, of which each of CALLS calls (0: all) is run
states() {
	local name=$1 seed=$2 found
	"$BUILD/morph-optimize" --all --lab=stress-inline="$seed" -o "$name.out" "$name" >report.txt 2>err.txt ||
		{ fail "$name, seed $seed: $(cat err.txt)"; return; }
	nice "$BUILD/tools/inlined-states" --calls="$3" --states="$each" --seed="${SEED:-1}" "$name" "$name.out" \
		>states.txt 2>err.txt || { fail "$name, seed $seed: $(cat err.txt states.txt | head -3)"; return; }
	found=$(sed -n 's/.* calls, \([0-9]*\) states.*/\1/p' states.txt)
	[ "${found:-0}" -ge "$4" ] || fail "$name, seed $seed: only '$found' states"
	nr_states=$((nr_states + ${found:-0}))
}

each=20
gcc -O2 -s -o leaf "$data/leaf.c" && states leaf 3 0 400
gcc -O2 -fno-pie -no-pie -Wl,--emit-relocs -o leaf-fixed "$data/leaf.c" && states leaf-fixed 7 0 400
gcc -O2 -s -o stack "$data/leaf_stack.c" && states stack 3 0 200
gcc -O1 -fno-pie -no-pie -Wl,--emit-relocs -o stack-fixed "$data/leaf_stack.c" && states stack-fixed 7 0 200
g++ -x c++ -O2 -fnon-call-exceptions -s -o stack-exceptions "$data/leaf_stack.c" && states stack-exceptions 11 0 200
gcc -O2 -s -o cold "$data/leaf_cold.c" && states cold 3 0 100
gcc -O2 -o calls "$data/leaf_calls.c" && states calls 3 0 200
gcc -O1 -fno-pie -no-pie -Wl,--emit-relocs -o calls-fixed "$data/leaf_calls.c" && states calls-fixed 7 0 200
g++ -x c++ -O2 -o calls-exceptions "$data/leaf_calls.c" && states calls-exceptions 11 0 200
each=6
calls=150 seeds=3 programs="bash perl python3"
[ "${MORPH_LONG:-0}" = 0 ] || {
	each=40 calls=0 seeds="3 7 11" programs+=" git sed mawk tar sqlite3 gawk troff openssl awk grep find make m4"
}
for program in $programs; do
	path=$(command -v "/usr/bin/$program") || continue
	objcopy --strip-debug "$(realpath "$path")" "$program" 2>/dev/null || continue
	for seed in $seeds; do
		states "$program" "$seed" "$calls" 8
	done
done
[ $nr_states -ge 3000 ] || fail "only $nr_states states in all"
echo "$nr_states states"
finish
