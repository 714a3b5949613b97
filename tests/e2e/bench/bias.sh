#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# The two programs of Lee's paper on sampling bias: how often each caller calls work(), by samples of time
# (uncorrected) and by `morph-stats calls` with a clock of calls (corrected), beside the true numbers. Prints
# all of them.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc jq nm python3
export PATH="$BUILD:$PATH"
scratch bias
morphd run --source=perf --record probe -- true 2>err || {
	echo "skip: no sampling on this machine: $(head -n 1 err)"
	exit 77
}

# overlap PROGRAM CALLER...: prints four lines, and leaves how far off the caller is that is most wrong, in percent
overlap() {
	python3 - "$@" <<'PY'
import json, subprocess, sys
program, callers = sys.argv[1], sys.argv[2:]
names = {}
for line in subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines():
    words = line.split()
    if len(words) == 3:
        names.setdefault(hex(int(words[0], 16)), words[2])
graph = json.load(open(program + ".json"))
assert graph["clock"] == "calls", graph["clock"]
def numbers(column):
    sums = dict.fromkeys(callers, 0)
    for row in graph["rows"]:
        caller = row["caller"] and names.get(row["caller"]["address"])
        if caller in sums and names.get(row["callee"]["address"]) == "work":
            sums[caller] += row[column]
    return [sums[c] for c in callers]
true = [int(n) for n in open(program + ".says").read().split()]
share = lambda list: [n / max(sum(list), 1e-9) for n in list]
out = {}
for name, list in (("true", true), ("uncorrected", numbers("samples")), ("sampled calls", numbers("called")),
                   ("corrected", numbers("weight"))):
    of = share(list)
    overlap = 100 * sum(map(min, of, share(true)))
    out[name] = max(100 * abs(a / b - 1) for a, b in zip(of, share(true)))
    print(f"{program} {name}:", ", ".join(f"{c} {100 * s:.2f} %" for c, s in zip(callers, of)),
          f"(overlap {overlap:.2f} %, worst caller {out[name]:.1f} % off)", file=sys.stderr)
print(json.dumps(out))
PY
}

# measure PROGRAM TURNS CALLER...
measure() {
	local p=$1 turns=$2
	shift 2
	gcc -O2 -fno-inline -fno-unroll-loops -fno-tree-vectorize -fno-ipa-icf -Wl,--build-id \
		-o "$p" "$root/tests/data/bias/$p.c" -lpthread || fail "gcc: $p"
	command_ends 0 "instrument $p" morph-optimize instrument --all --kind=calls --counts=calls --report=none "$p" -o "$p.i"
	# On a busy machine the collector may miss how a short run began.
	for _ in 1 2 3; do
		rm -f calls "$p.db"
		command_ends 0 "run $p" morphd run --source=perf --stacks --rate=1000 --calls=calls --call-period=20 --db="$p.db" -- ./"$p.i" "$turns"
		grep -v '^morphd' out.txt >"$p.says"
		cp err.txt run.err
		morph-stats calls --db="$p.db" --binary "$p" --json -p 0 >"$p.json" 2>err.txt &&
			jq -e '.clock == "calls"' "$p.json" >jq.out && break
	done
	overlap "$p" "$@" >"$p.overlap" 2>table || fail "$p: $(cat table run.err)"
	cat table
}

measure bias-density 400000 call_2 call_10 call_100
jq -e '.corrected <= 3 and .uncorrected > 100' bias-density.overlap >jq.out ||
	fail "density: $(cat bias-density.overlap)"
measure bias-latency 3000 first second
jq -e '.corrected <= 5' bias-latency.overlap >jq.out || fail "latency: $(cat bias-latency.overlap)"
finish
