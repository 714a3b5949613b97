#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: only benchmarks use what it tests
# The plugin contexts: its tree has the activations that programs count themselves, the paths that
# follow from their sources, and as many instructions as another plugin counts. Its stacks are paths of the
# tree, and memory has their return addresses.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need "${cc%% *}" g++ qemu-x86_64 python3 nm
scratch contexts
export BUILD
contexts=$root/scripts/bench/contexts

# runs DIR PROGRAM ARGS: run, check, and print the paths into DIR/paths
runs() {
	local out=$1
	shift
	command_ends 0 "$out runs" "$contexts" run -o "$out" --period=70 "$@"
	command_ends 0 "$out is sound" "$contexts" check "$out"
	"$contexts" print "$out" >"$out/paths" || fail "$out: cannot print"
}

# counted DIR: the program printed FUNCTION COUNT; the tree has the same counts
counted() {
	[ -s "$1/stdout" ] || fail "$1: the program printed nothing"
	awk 'FNR == NR { nr[$1] = $2; next }
		{ n = split($6, step, ";"); name = step[n]; sub(/^[!$]/, "", name); got[name] += $1 }
		END { for (f in nr) if (nr[f] != got[f]) { print f, nr[f], "but in the tree", got[f]; bad = 1 }
			exit bad }' "$1/stdout" "$1/paths" || fail "$1: other counts than the program's"
}

# path DIR ACTIVATIONS TAILS PLT PATTERN: a path that ends so; sums over all that match
path() {
	local got
	got=$(awk -v pattern="(^|;)$5\$" '$6 ~ pattern { a += $1; t += $2; p += $3 }
		END { print a + 0, t + 0, p + 0 }' "$1/paths")
	[ "$got" = "$2 $3 $4" ] || fail "$1: $5 has $got, not $2 $3 $4"
}

# total DIR NAME VALUE
total() {
	grep -qx "total $2 $3" "$1/contexts" || fail "$1: not $3 $2: $(grep "total $2 " "$1/contexts")"
}

# steps NR NAME: a path of NR times NAME
steps() {
	local out=
	for _ in $(seq "$1"); do out="$out;$2"; done
	echo "${out#;}"
}

# Tail calls only in a program of their own. The first call of a library function resolves it.
$cc -O2 -o tails "$root/tests/data/contexts.c" -pthread || exit 1
$cc -O2 -fno-optimize-sibling-calls -Wl,-z,lazy -o prog "$root/tests/data/contexts.c" -pthread || exit 1
${CXX:-g++} -O2 -fno-optimize-sibling-calls -Wl,-z,lazy -o throws "$root/tests/data/contexts.cc" || exit 1

# ---- recursion: by hand, the trees of fib(10) and even(9)
runs calls ./prog recursion jumps pointers
counted calls
path calls 1 0 0 'recursion;fib'
path calls 2 0 0 'recursion;fib;fib'
path calls 4 0 0 'recursion;fib;fib;fib'
path calls 2 0 0 "recursion;$(steps 10 fib)" # fib(1) and fib(0), by two sites
path calls 1 0 0 'recursion;even;odd;even;odd;even;odd;even;odd;even;odd'

# ---- tail calls: the function that jumps leaves the path
runs tail ./tails tails
counted tail
path tail 7 0 0 'main;tails;tail_first'
path tail 10 10 0 'main;tails;tail_second'
path tail 12 12 0 'main;tails;tail_last'
path tail 10 0 0 'tails;tail_second;leaf'
path tail 0 0 0 'tail_first;.*'
"$contexts" print --graph tail >graph || fail "no graph"
[ "$(awk '$4 == "tail_last" && / tail/ && $2 == "jump" { nr += $1 } END { print nr }' graph)" = 12 ] ||
	fail "the graph's tail calls: $(grep tail_last graph)"

# ---- an indirect site and its targets
"$contexts" print --graph calls >graph || fail "no graph"
[ "$(awk '$4 ~ /^pointed_/ && $2 == "indirect" { print $4, $1 }' graph | sort | xargs)" = \
	"pointed_a 6 pointed_b 3" ] || fail "the graph's indirect calls: $(grep pointed_ graph)"
[ "$(awk '$4 ~ /^pointed_/ { print $3 }' graph | sort -u | wc -l)" = 1 ] || fail "several sites of one call"

# ---- longjmp: what follows runs in the function that called setjmp
path calls 4 0 0 'jump_root;leaf'
path calls 0 0 0 'jump_down;leaf'
path calls 1 0 0 "jump_root;$(steps 4 jump_down)"

# ---- signals, on the same stack and on another one, left by sigreturn and by longjmp
runs signals ./prog signals
counted signals
total signals signals 15
path signals 3 0 0 'interrupted;[^!]*;!handler'
path signals 3 0 0 'fault;!handler_fault'
path signals 2 0 0 'interrupted;[^!]*;!handler_alt'
path signals 2 0 0 '!handler_alt;[^!]*;!handler'
path signals 5 0 0 'interrupted;[^!]*;!handler_jumps'
path signals 3 0 0 'fault;leaf'
path signals 5 0 0 'interrupted;leaf'

# ---- stacks that the program makes: static, on the heap, reused, and in a caller's variable
runs stacks ./prog contexts
counted stacks
total stacks stacks 10
path stacks 10 0 0 '[^;]*;[$]co_body'
path stacks 28 0 0 '[^;]*;[$]co_body;co_step'
path stacks 28 0 0 '[^;]*;[$]co_body;co_step;leaf'
runs hands ./prog hands
counted hands
total hands stacks 1
path hands 6 0 0 'hand_body;leaf'
path hands 4 0 0 'hands;on_stack;nested;leaf'

# ---- threads
runs threads ./prog threads
counted threads
total threads threads 7
path threads 12 0 0 '[^;]*;[^;]*;worker;worker_part'

# ---- the first call through a lazily bound PLT runs the resolver in the call's place
runs library ./prog library
counted library
# strtol, by one of its names, 5 times, and the resolver
[ "$(awk '$6 ~ /main;library;[^;]*$/ { nr += $3 } END { print nr }' library/paths)" = 6 ] ||
	fail "library: $(grep 'main;library' library/paths)"
[ "$(awk '/total resolved/ { print ($3 > 0) }' library/contexts)" = 1 ] || fail "no call was resolved"

# ---- C++ exceptions: cleanups and handlers run in their functions, below no dead frame. While an exception
# enters its handler, the unwinder overwrites its own return address, and a sample may see that.
command_ends 0 "throws" "$contexts" run -o throws.d --period=70 ./throws
"$contexts" check throws.d | grep -v 'another return address in memory' | grep -v sound && fail "throws: not sound"
[ "$(awk '/total bad/ { bad = $3 } /total frames/ { all = $3 } END { print (bad < all / 1000) }' \
	throws.d/contexts)" = 1 ] || fail "throws: $(grep 'total bad' throws.d/contexts)"
"$contexts" print throws.d >throws.d/paths
counted throws.d
path throws.d 6 0 0 'main;catcher'
path throws.d 6 0 0 'main;catcher;rethrower;through'
path throws.d 3 0 0 'catcher;rethrower;leaf'
path throws.d 9 0 0 'catcher;leaf'
path throws.d 3 0 0 'rethrower;through;through;through;leaf'
path throws.d 18 0 0 'through;cleanup'

# ---- another plugin counts the same instructions; the seed decides the samples only
"$root/scripts/bench/branches" --json ./prog -- recursion jumps >branches.json || fail "branches"
command_ends 0 "one" "$contexts" run -o one --seed=1 --argv0=./prog ./prog recursion jumps
command_ends 0 "two" "$contexts" run -o two --seed=2 --argv0=./prog ./prog recursion jumps
want=$(python3 -c 'import json; print(json.load(open("branches.json"))["total"]["instructions"])')
total one instructions "$want"
grep -v samples one/contexts | grep -v '^total frames' >one.txt
grep -v samples two/contexts | grep -v '^total frames' | cmp - one.txt || fail "the seed changes the tree"
cmp -s one/samples two/samples && fail "the seed does not change the samples"
command_ends 0 "the same" "$contexts" overlap one two
[ "$(grep -c 'overlap 100.00 %  correlation 1.0000' out.txt)" = 3 ] || fail "overlap: $(cat out.txt)"
command_ends 0 "another" "$contexts" overlap --json one signals
python3 -c '
import json
o = json.load(open("out.txt"))
assert 0 < o["time"]["overlap"] < 99 and 0 < o["graph"]["overlap"] < 99, o' || fail "overlap of others"
command_ends 0 "ideal" "$contexts" ideal --json calls
python3 -c '
import json
o = json.load(open("out.txt"))
assert 0.9 < o["ratio"] < 1.1 and o["samples"] > 500, o' || fail "ideal: $(cat out.txt)"

# ---- with single steps every sample has registers and memory, and each stack's return addresses are there
command_ends 0 "steps" "$contexts" run -o steps --period=300 --singlestep --stack=65536 ./prog recursion jumps signals
command_ends 0 "steps are sound" "$contexts" check steps
PYTHONDONTWRITEBYTECODE=1 python3 - "$root/scripts/bench" steps <<'END' || fail "stacks in memory"
import sys
sys.path.insert(0, sys.argv[1])
import contextfile as cf
ctx = cf.Contexts(sys.argv[2] + "/contexts")
checked = 0
for sample, stack in cf.samples(sys.argv[2] + "/samples"):
    assert sample.registers, "a sample without registers"
    sp = sample.registers[7] - cf.RED_ZONE
    for a in stack:
        obj, vaddr, size, kind = ctx.sites[a.site]
        if kind in (cf.DIRECT, cf.INDIRECT) and sp <= a.slot <= sp + len(sample.memory) - 8:
            word = int.from_bytes(sample.memory[a.slot - sp:a.slot - sp + 8], "little")
            assert word % 4096 == (vaddr + size) % 4096, (hex(word), hex(vaddr), size)
            checked += 1
    assert all(x.slot > y.slot for x, y in zip(stack[1:], stack[2:])
               if "interrupted" not in (ctx.sites[x.site][3], ctx.sites[y.site][3]))
assert checked > 500, checked
END

# ---- another unwinder finds the same return addresses from registers and memory, except where unwind tables
# do not tell, and where the copied stack ends
command_ends 0 "unwinding" "$BUILD/tools/contexts-walk" steps
read -r all right short wrong frames <out.txt
if [ "$right" -lt $((all * 95 / 100)) ] || [ "$all" -lt 400 ] || [ "$frames" -lt 1000 ]; then
	fail "unwinding: $right of $all right, $short short, $wrong wrong"
fi
command_ends 1 "unwinding nothing" "$BUILD/tools/contexts-walk" .

# ---- morphd's tree of these samples is nearly as close to the exact one as an ideal sampler's, and what it calls
# certainly new is new
command_ends 0 "morphd's tree" "$contexts" tree --least=0.9 --json=tree.json steps
command_ends 1 "a ratio that it does not reach" "$contexts" tree --least=1.5 steps
command_ends 0 "ages" "$contexts" ages --nodes=5 --without=85 --counted=85 --held=80 --json=ages.json steps
command_ends 1 "a share that it does not reach" "$contexts" ages --counted=100 steps
python3 - <<'END' || fail "morphd's tree: $(cat tree.json ages.json)"
import json
tree, ages = json.load(open("tree.json"))["steps"], json.load(open("ages.json"))["steps"]
assert tree["samples"] > 300 and tree["lost"] == 0 and tree["nodes"] > 100, tree
assert 50 < tree["overlap"] < 100 and tree["exact"] > 0.85 * tree["samples"], tree
assert ages["activations"] > 1000 and ages["certain"] > 100 and ages["certain_wrong"] == 0, ages
assert ages["certain"] < ages["new"] and ages["nodes"] > 20, ages
assert ages["right_functions"] >= ages["right_slots"] > 0.8, ages
END
# With a walk of one frame, all stacks are truncated, and nothing is known of the tree.
command_ends 1 "walks of one frame" "$contexts" tree --depth=1 steps

# ---- what is damaged is refused
head -n 100 one/contexts >cut && mkdir -p damaged && mv cut damaged/contexts
command_ends 1 "a file that ends too early" "$contexts" check damaged
sed 's/^\(node 7 [0-9]* [0-9]* [0-9]* [0-9]* [0-9]* [0-9]*\) \([0-9]*\)/\1 1\2/' one/contexts >damaged/contexts
command_ends 1 "a node with other instructions" "$contexts" check damaged
sed '0,/^edge/s/^\(edge [0-9]* [0-9]*\) /\1 1/' one/contexts >damaged/contexts
command_ends 1 "an edge with more calls" "$contexts" check damaged
command_ends 1 "a missing program" "$contexts" run -o none ./nothing-here
finish
