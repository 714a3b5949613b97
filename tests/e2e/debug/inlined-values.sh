#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: gdb is asked for each variable at every instruction
# Functions that save registers or use the stack, in place of calls, in one piece and in two: at each instruction of this
# code, gdb shows the original's frames, and each variable of the calling functions has the original's value or is
# optimized out.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/e2e/debug/lib-readers.sh
. "$root/tests/e2e/debug/lib-readers.sh"
scratch inlined-values
need jq python3
here=$root/tests/e2e/debug
data=$root/tests/data

# values NAME OUT LEAST: stops at each instruction in place of calls; at LEAST times at least, a variable has its value.
values() {
	local name=$1 out=$2 least=$3 dyn=0 file
	readelf -h "$name" | grep -q DYN && dyn=1
	"$moved" "$out" --inlined "$name" >places || fail "$out: its code in place of calls"
	awk '{ print $2, $2, $3 }' places | sort -u >was.places
	cp places now.places
	# Addresses in the stack depend on the length of the program's name, and of the environment.
	mkdir -p was now
	cp "$name" was/program
	cp "$out" now/program
	for file in was now; do
		VISITS=2 VALUES=$file.values PLACES=$file.places DYN=$dyn ARGS=4 CALLED=$([ $file = was ] && echo 1 || echo 0) \
			timeout 120 gdb -q -nx -batch -x "$here/inlined-values.py" \
			./$file/program >gdb.txt 2>&1 ||
			fail "$out: gdb: $(tail -n 3 gdb.txt)"
	done
	python3 - "$least" >compared.txt <<'PY' || fail "$out: $(head -n 5 compared.txt)"
import sys
def read(file):
    return {tuple(w[:3]): (w[3].split(","), dict(x.split("=", 1) for x in w[4:] if "=" in x))
            for w in map(str.split, open(file))}
was, now = read("was.values"), read("now.values")
same = lost = 0
# A call within a function in place of a call leads to a copy, which has no code in place of that call.
calls = {k[1] for k in now}
wrong = [f"at {k}: met only once" for k in set(was) ^ set(now) if k[1] in calls]
# At the first instruction of each piece of code, gdb shows the calling function alone, as if the call were still to come.
places = [[int(x, 16) for x in line.split()] for line in open("places")]
firsts = {(f"{old:x}", f"{call:x}") for at, old, call in places
          if not any(c == call and at - 15 <= a < at for a, _, c in places)}
for key in sorted(set(was) & set(now)):
    frames, old = was[key]
    if now[key][0] != frames and not (key[:2] in firsts and now[key][0] == frames[1:]):
        wrong.append(f"at {key}: the frames {now[key][0]} instead of {frames}")
    for name, value in now[key][1].items():
        same += value == old.get(name) and value != "?"
        lost += value == "?" and old.get(name) != "?"
        if value not in ("?", old.get(name)):
            wrong.append(f"at {key}: {name} is {value} instead of {old.get(name)}")
    wrong += [f"at {key}: no {name}" for name in old if name not in now[key][1]]
if same < int(sys.argv[1]):
    wrong.append(f"only {same} values")
print(*wrong[:5] or [f"{len(now)} stops, {same} values, {lost} optimized out"], sep="\n")
sys.exit(bool(wrong))
PY
	[ -z "${MORPH_VERBOSE:-}" ] || echo "$out: $(head -n 1 compared.txt)"
}

# check NAME LEAST COMPILER FLAGS...
check() {
	local name=$1 least=$2 seed
	shift 2
	"$@" -w -o "$name" "$data/leaf_values.c" ${halves:+-DONLY_CALLING called.o} 2>cc.err || { echo "note: $name: $(head -n 1 cc.err)"; return; }
	for seed in 7 11; do
		command_ends 0 "$name.$seed" "$BUILD/morph-optimize" --all --lab=stress-inline=$seed --report=json \
			-o "$name.$seed" "$name"
		jq -e '.code.inlined >= 3 and .debug.inlined == .code.inlined and .debug.units_left == 0' \
			out.txt >/dev/null || fail "$name.$seed: $(jq -c '.code.inlined, .debug' out.txt)"
		[ "$("./$name" 9)" = "$("./$name.$seed" 9)" ] || fail "$name.$seed: another output"
		no_new_errors "$name" "$name.$seed"
		values "$name" "$name.$seed" "$least"
	done
}

for version in ${VERSIONS-5 4}; do
	check "g$version" 1000 gcc -O2 -g "-gdwarf-$version"
	# Locations of whole scopes
	check "single$version" 1000 gcc -O2 -fno-var-tracking -g "-gdwarf-$version"
	has clang && check "c$version" 500 clang -O2 -g "-gdwarf-$version"
done
check gxx 500 g++ -x c++ -O2 -g
# Functions that call others replace calls, too. Their own variables are not known then.
check deep 0 gcc -O2 -g -DDEEP
# Functions with frame pointers stay calls, but not calls in such functions.
gcc -O2 -g -DONLY_CALLED -c -o called.o "$data/leaf_values.c"
halves=1
has clang && check cframe 500 clang -O1 -fno-omit-frame-pointer -g
check unoptimised 1000 gcc -O0 -g
check frame 500 gcc -O2 -fno-omit-frame-pointer -fno-pie -no-pie -g
finish
