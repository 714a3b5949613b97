#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The call graph of `morph-stats calls`: its edges beside those that a program has by its source and those
# that the plugin contexts counts; what the command prints and refuses.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need "${cc%% *}" qemu-x86_64 python3 jq nm strip
scratch callgraph
export BUILD
contexts=$root/scripts/bench/contexts
[ -x "$BUILD/tools/contexts-store" ] || fail "tools/contexts-store: not built"

$cc -O2 -fno-inline -fno-unroll-loops -fno-tree-vectorize -fno-ipa-icf -o named "$root/tests/data/callgraph.c" || fail "$cc"
strip -o program named
command_ends 0 "run" "$contexts" run --period=900 -o run "$PWD/program"
command_ends 0 "check" "$contexts" check run
command_ends 0 "graph" "$contexts" graph --json=graph.json run
cat graph.json >>out.txt
# Plain stack sampling cannot know that work() is called as often from dense() as from sparse().
jq -e '.run | .corrected >= 80 and .corrected >= .innermost + 11 and .corrected >= .uncorrected + 11 and
	.samples > 4000' graph.json >jq.out || fail "overlaps: $(cat graph.json)"

# ---- the edges, by the addresses of the program that has names
ends 0 "calls" calls --db run/graph.db --json -p 0
cp out.txt calls.json
python3 - >numbers.json <<'PY' || fail "symbols"
import json, subprocess
out = subprocess.run(["nm", "named"], capture_output=True, text=True, check=True).stdout
print(json.dumps({w[2]: hex(int(w[0], 16)) for w in map(str.split, out.splitlines()) if len(w) == 3}))
PY
# share CALLER CALLEE KIND LEAST MOST: the edge has so many calls for each of dense() to work()
share() {
	jq -e --slurpfile at numbers.json --arg caller "$1" --arg callee "$2" --arg kind "$3" \
		--argjson least "$4" --argjson most "$5" '
		def name: .address as $a | $at[0] | to_entries | map(select(.value == $a)) | .[0].key;
		def calls($caller; $callee): [.rows[] | select(.caller != null and .callee.module == .caller.module and
			(.caller | name) == $caller and (.callee | name) == $callee) | {weight, kind}];
		(calls("dense"; "work") | map(.weight) | add) as $unit | calls($caller; $callee) |
		length == 1 and .[0].kind == $kind and .[0].weight / $unit >= $least and .[0].weight / $unit <= $most
		' calls.json >jq.out || fail "$1 -> $2: not one $3 edge of $4 to $5"
}
share sparse work direct 0.6 1.5
share indirect quick indirect 0.6 1.5
share indirect thunk indirect 0.1 0.5
share thunk slow tail 0.1 0.5
share tails ends_in_tail_call direct 0.6 1.5
share callback traverse indirect 0.6 1.5
share traverse visit 'indirect tail' 0.6 1.5
share ends_in_tail_call quick tail 0.15 1.1
share ends_in_tail_call slow tail 0.2 1.1
jq -e --arg program "$(realpath program)" '[.rows[] | select(.caller != null and .caller.module == $program and
	(.callee.module | test("libc")) and .kind == "direct") | .percent] | max > 5' calls.json >jq.out ||
	fail "no calls of strlen"
jq -e '([.rows[].percent] | add) > 99.9 and ([.rows[].percent] | add) < 100.1 and
	all(.rows[]; .weight > 0 and .certainly_new >= 0) and
	([.rows[].weight] == ([.rows[].weight] | sort | reverse))' calls.json >jq.out || fail "sums or order"

# ---- text, limits, a library, and what is refused
ends 0 "text" calls --db run/graph.db -n 3
[ "$(wc -l <out.txt)" = 5 ] || fail "-n 3 prints $(wc -l <out.txt) lines"
says out.txt ' -> ' "an edge"
says out.txt 'Clock: time' "the clock"
ends 0 "limit" calls --db run/graph.db --json -p 5
json "at least 5 %" '(.rows | length) > 3 and all(.rows[]; .percent >= 5)'
ends 0 "program" calls --db run/graph.db --json -m program -p 0
json "the only program" "(.rows | length) == $(jq '.rows | length' calls.json)"
ends 0 "library" calls --db run/graph.db --json -m libc.so.6 -p 0
json "edges of the library" '(.rows | length) > 3 and
	all(.rows[]; (.caller.module // "" | test("/libc.so.6")) or (.callee.module | test("/libc.so.6")))'
ends 3 "another program" calls --db run/graph.db -m no-such-program
ends 2 "a bad limit" calls --db run/graph.db -n 0
ends 2 "a bad percentage" calls --db run/graph.db -p 101
ends 2 "too many arguments" calls --db run/graph.db more
# ---- callgrind's format with inclusive cost from stacks
ends 0 "callgrind" export --format=callgrind --calls --db run/graph.db
cp out.txt callgrind.out
python3 - "$(jq .total_samples calls.json)" "$(jq -r .work numbers.json)" <<'PY' || fail "callgrind's format"
import sys
own, calls, function, callee, count = {}, {}, None, None, None
for line in open("callgrind.out"):
    key, _, value = line.rstrip("\n").partition("=")
    if key == "fn":
        function, callee = value, None
    elif key == "cfn":
        callee = value
    elif key == "calls":
        count = int(value.split()[0])
    elif line[0] == "0" and callee:
        assert (function, callee) not in calls or "_" in function + callee, (function, callee)
        calls[function, callee] = (count, int(line.split()[1]))
        callee = None
    elif line[0] == "0":
        own[function] = own.get(function, 0) + int(line.split()[1])
total, work = int(sys.argv[1]), sys.argv[2]
assert sum(own.values()) == total, (sum(own.values()), total)
into = [v for (_, callee), v in calls.items() if callee == work]
# Nothing is below work(): its own samples are those of its two callers.
assert len(into) == 2 and sum(samples for _, samples in into) == own[work], into
dense, sparse = sorted(into, key=lambda v: v[1])
assert sparse[1] > 3 * dense[1] and 0.5 < sparse[0] / dense[0] < 2, into
PY
if command -v callgrind_annotate >/dev/null; then
	command_ends 0 "callgrind_annotate" callgrind_annotate --inclusive=yes callgrind.out
fi

# ---- two programs in one database: a program has its part of the counts of the libraries
seq 3000 -1 1 >numbers
command_ends 0 "run of sort" "$contexts" run --period=900 -o other "$(command -v sort)" numbers
command_ends 0 "graph of sort" "$contexts" graph other
cp run/graph.db both.db
ends 0 "merge" merge --again both.db other/graph.db
ends 0 "one of two programs" calls --db both.db --json -m program -p 0
jq -e --slurpfile alone calls.json '[.rows[:8][] | {at: .caller.site, to: .callee.address, percent}] |
	all(.[]; . as $row | $alone[0].rows | map(select(.caller.site == $row.at and .callee.address == $row.to)) |
		.[0].percent - $row.percent | . < 2 and . > -2)' out.txt >jq.out || fail "another graph with another program"
ends 0 "both programs" calls --db both.db --json -p 0
json "both programs" '[.rows[].callee.module] | any(test("/program")) and any(test("/sort$"))'

# The file is gone: the edges are not known, and a message says so.
mv program gone
ends 0 "without the program's file" calls --db run/graph.db --json
json "a note names the file" '.notes | any(test("program"))'
mv gone program
finish
