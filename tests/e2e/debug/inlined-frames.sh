#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: debuggers are asked at every instruction
# Programs with functions in place of calls: at every instruction of this code, readers of debug information name the
# frames that they name in the original for the called function and the call. gdb has the same stack where it stops in
# this code as in the called function in the original. perf names the called function, too.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/e2e/debug/lib-readers.sh
. "$root/tests/e2e/debug/lib-readers.sh"
scratch inlined-frames
need jq python3
here=$root/tests/e2e/debug
data=$root/tests/data

# optimise NAME LEAST [OPTIONS]: NAME.out has code in place of at least LEAST calls, and an entry for each but those of
# functions that do nothing. Up to $LEFT calls lead to functions of a library that was compiled without -g.
optimise() {
	command_ends 0 "$1" "$BUILD/morph-optimize" --all --report=json "${@:3}" -o "$1.out" "$1"
	jq -e ".code.inlined >= $2 and .debug.inlined >= $2 and .debug.inlined_left <= ${LEFT:-0} and .debug.units_left == 0" \
		out.txt >/dev/null || fail "$1: $(jq -c '.code.inlined, .debug' out.txt)"
}

# told NAME READER...: all frames, by each of the readers. binutils 2.40 calls a function of C++ without a linkage name by
# the symbol at the address, which is the calling function's.
told() {
	local name=$1 reader
	shift
	for reader; do
		has "$reader" || continue
		[[ $reader = addr2line && $name = *xx* ]] && continue
		"$here/inlined-frames.py" "$(command -v "$reader")" "$name" "$name.out" "$moved" >told.txt ||
			fail "$name: $reader: $(tail -n 5 told.txt)"
		[ -z "${MORPH_VERBOSE:-}" ] || echo "$name: $reader: $(tail -n 1 told.txt)"
	done
}

# stacks NAME LEAST ARGS...: gdb has the same stack in the called function, and in the code in place of its call, for
# LEAST calls at least. It stops at the second instruction, since at the first one of such code it shows the calling
# function alone, as if the call were still to come. Where several rows of the line program stand at the call, gdb takes
# the one that begins a statement, and other readers the last one. The entry of the call has the line of the last one, so
# gdb may have another line there.
stacks() {
	local name=$1 least=$2 dyn=0 file met
	shift 2
	readelf -h "$name" | grep -q DYN && dyn=1
	"$moved" "$name.out" --inlined "$name" | awk '{ nr[$3]++ } nr[$3] == 2' >places
	awk '{ print $1, $3 }' places >now.places
	awk '{ print $2, $3 }' places >was.places
	for file in was now; do
		FRAMES=$file.frames PLACES=$file.places DYN=$dyn ARGS="$*" CALLED=$([ $file = was ] && echo 1) \
			timeout 120 gdb -q -nx -batch -x "$here/inlined-gdb.py" \
			"./$name$([ $file = now ] && echo .out)" >gdb.txt 2>&1 ||
			fail "$name: gdb: $(tail -n 3 gdb.txt)"
	done
	met=$(python3 - <<'PY'
was, now = ({line.split()[0]: line.split()[1:] for line in open(f)} for f in ("was.frames", "now.frames"))
other = [call for call in was if now.get(call) != was[call]]
names = lambda frames: [frame.split("@")[0] for frame in frames or ()]
for call in other:
    if names(now.get(call)) != names(was[call]) or len(other) > len(was) / 20:
        print(f"at {call}: {now.get(call)} instead of {was[call]}")
print(len(was), len(other))
PY
	)
	[ "$(wc -l <<<"$met")" = 1 ] || fail "$name: gdb's stacks: $(head -n 3 <<<"$met")"
	met=$(tail -n 1 <<<"$met")
	[ "${met% *}" -ge "$least" ] || fail "$name: gdb met only ${met% *} calls"
	[ -z "${MORPH_VERBOSE:-}" ] || echo "$name: gdb: ${met% *} calls met, ${met#* } with another line"
}

# leaf NAME COMPILER FLAGS: a program with small functions of all kinds
leaf() {
	local name=$1
	shift
	"$@" -o "$name" 2>cc.err || { echo "note: $name: $(head -n 1 cc.err)"; return; }
	optimise "$name" 12
	told "$name" addr2line llvm-addr2line llvm-symbolizer
	stacks "$name" 9
}

for version in ${VERSIONS-5 4}; do
	leaf "gcc$version" gcc -O2 "-gdwarf-$version" "$data/leaf.c"
	leaf "gxx$version" g++ -x c++ -O2 "-gdwarf-$version" "$data/leaf.c"
	if has clang; then
		leaf "clang$version" clang -w -O2 "-gdwarf-$version" "$data/leaf.c"
		leaf "clangxx$version" clang++ -x c++ -w -O2 "-gdwarf-$version" "$data/leaf.c"
	fi
done

# Morph's own programs have many units, and code that the compiler inlined into the called functions.
own() { # NAME LEAST ARGS...
	local name=$1 least=$2
	shift 2
	[ -x "$BUILD/$name" ] && readelf -SW "$BUILD/$name" | grep -q '\.debug_info' || return
	cp "$BUILD/$name" .
	optimise "$name" 5
	told "$name" addr2line llvm-addr2line
	LEFT=8 optimise "$name" 20 --lab=stress-inline="${SEED:-1}"
	# binutils 2.40 names wrong files for code of headers in the original of these programs.
	told "$name" llvm-addr2line
	optimise "$name" 5
	[ "$least" = 0 ] || stacks "$name" "$least" "$@"
}

own morph-stats 0
own morphd 0
own morph-optimize 50 --all --threads=1 -o again gcc5

# perf, where it may sample
cat >main.c <<'C'
#include <stdio.h>
int get(const int *p, int i);
int main(int argc, char **argv)
{
	static int table[1024];
	long sum = 0;

	(void)argv;
	for (long i = 0; i < 50000000L * argc; i++)
		sum += get(table, (int)i);
	printf("%ld\n", sum);
	return 0;
}
C
cat >get.c <<'C'
int get(const int *p, int i)
{
	int k = i & 1023;

	k = (k * 17 + p[k]) % 1021;
	return p[k];
}
C
gcc -g -O2 -o sampled main.c get.c && optimise sampled 1
if has perf && perf record -q --call-graph dwarf,512 -e cpu-clock:u -F 200 -o perf.data ./sampled.out >/dev/null 2>&1 &&
	[ "$(perf script -i perf.data -F ip 2>/dev/null | wc -l)" -gt 20 ]; then
	perf script -i perf.data --inline -F ip,sym,srcline 2>/dev/null |
		awk 'BEGIN { RS = "" } { gsub(/[ \t\n]+/, " "); print }' >script.txt
	says script.txt ' get get.c:[0-9]* (inlined) [0-9a-f]* main main.c:10 ' "perf's frames"
else
	echo "note: perf cannot sample here"
fi

finish
