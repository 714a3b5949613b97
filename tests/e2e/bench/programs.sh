#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: a program is built and counted under an emulator
# The benchmark's own scripts: counting a program and continuing work, and
# agreement of the table and plot with the results. Also a program that only
# benchmarks use: with everything moved, it behaves the same.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root" || exit 1
nr_failed=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}
export LC_ALL=C
dir=$TMPDIR/bench
mkdir -p "$dir/doc"

# ---- the report: invented results that miss some targets
printf 'before\n\n<!-- bench: begin (written by make bench) -->\nold\n<!-- bench: end -->\n\nafter\n' \
	>"$dir/doc/results.md"
python3 - "$root/scripts/report" "$dir/doc" <<'EOF' || fail "the report: status $?"
import sys
import xml.dom.minidom
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import benchreport

def counted(taken, **more):
    return dict(taken_branches=taken, instructions=5000, lines=100, pages=9, i1_misses=50, moved=0.9,
                file="x", **more)

def program(morph, cache, functions, verdict, **more):
    versions = {"original": counted(1000), "bolt-usual.0": counted(1500)}
    versions.update({f"morph.{i}": counted(t) for i, t in enumerate(morph)})
    versions.update({f"bolt-cache.{i}": counted(t) for i, t in enumerate(cache)})
    versions.update({f"bolt-functions.{i}": counted(t) for i, t in enumerate(functions)})
    audit = {"verdict": verdict, "speedup": 0.97, "interval": [0.95, 0.99], "median_ms": [10, 11]}
    return dict(versions=versions, audits={"morph": audit}, **more)

names = ["one", "two", "three"]
results = {"schema": 1, "programs": {
    "one": program((600, 700), (900,), (1000,), "faster"),
    "two": program((990, 1010), (1200,), (950,), "slower"),
    "three": {"versions": {"original": counted(1000), "morph.0": counted(800),
                           "bolt-usual.0": {"error": "it said no <&>"}}, "audits": {}}}}
candidates = ("cache", "functions")
benchreport.write(results, sys.argv[2], names, ["two"], candidates)
text = open(sys.argv[2] + "/results.md").read()
assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text, text
assert text.count(benchreport.BEGIN) == 1 and text.count(benchreport.END) == 1
cells = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
row = next(c for c in cells if c[1].startswith("Morph") and c[2] == "-35.0 (-30.0)")
assert row[7] == "90.0 %" and row[8] == "0.970 (0.950 to 0.990)", row
assert any("functions only" in c[-1] and c[2] == "-5.0" for c in cells), "two: BOLT's best"
assert any("it said no" in c[-1] for c in cells), "three: the error"
found = dict(benchreport.findings(results, names, candidates))
assert found["no rise in taken branches on any program, any profile"] == ["two +1.0 %"], found
assert [f.split()[0] for f in found["no program slower than the original"]] == ["two"], found
assert [f.split()[0] for f in found["no more taken branches than BOLT's best sampled setting, mean"]] \
    == ["two"], found
svg = xml.dom.minidom.parse(sys.argv[2] + "/bench.svg")
drawn = [t.firstChild.data for t in svg.getElementsByTagName("text")]
assert all(n in drawn for n in names), drawn
again = open(sys.argv[2] + "/results.md").read()
benchreport.write(results, sys.argv[2], names, ["two"], candidates)
assert open(sys.argv[2] + "/results.md").read() == again, "writing twice changes the file"
EOF

# ---- a real program, counted briefly; nothing is measured twice
if command -v qemu-x86_64 >/dev/null && scripts/works/programs --inputs gzip >"$TMPDIR/build.log" 2>&1; then
	mkdir "$dir/build"
	for f in morphd morph-optimize morph-stats morph-audit plugin programs inputs; do
		ln -s "$(realpath "$BUILD/$f")" "$dir/build/$f"
	done
	quick=(scripts/bench/run --programs gzip --quick --no-bolt --profiles 1 --report "$dir/doc")
	BUILD=$dir/build "${quick[@]}" >"$dir/out.1" || fail "bench gzip: status $?"
	results=$dir/build/bench/results.json
	jq -e '.schema == 1 and (.programs.gzip.versions | keys == ["morph.0", "original"])
		and ([.programs.gzip.versions[].taken_branches] | min > 1000000)
		and .programs.gzip.versions["morph.0"].moved > 0.5
		and ([.programs.gzip.versions[].output] | unique | length == 1)' "$results" >/dev/null ||
		fail "results: $(jq -c . "$results")"
	cp "$results" "$dir/results.1"
	touch -d 2001-01-01 "$dir/build/bench/gzip/morph.0.db"
	BUILD=$dir/build "${quick[@]}" >"$dir/out.2" || fail "bench again: status $?"
	cmp -s "$results" "$dir/results.1" && cmp -s "$dir/out.1" "$dir/out.2" ||
		fail "bench again: measured what was measured"
	grep -q '^| \*\*gzip\*\* | original | [0-9,]* |' "$dir/doc/results.md" || fail "no row of gzip"
	BUILD=$dir/build scripts/bench/run --programs nothing >"$dir/out.3" 2>&1
	[ $? = 2 ] || fail "an unknown program: not status 2"
else
	echo "note: no emulator, or gzip could not be built"
fi

# ---- a program that only benchmarks use: everything moved, in two orders
if ! scripts/works/programs --inputs --bench tcc >"$TMPDIR/build.log" 2>&1; then
	tail -n 3 "$TMPDIR/build.log"
	echo "note: tcc could not be built (no network?)"
else
	mkdir "$dir/a" "$dir/b" && cp "$BUILD/programs/tcc-pie" "$dir/a/tcc"
	for seed in "" 3; do
		"$BUILD/morph-optimize" --all ${seed:+--lab=stress-layout=$seed} --report=none -o "$dir/b/tcc" \
			"$dir/a/tcc" || { fail "tcc seed ${seed:-none}: status $?"; continue; }
		for side in a b; do
			sh -c "$(scripts/works/workload tcc short "$dir/$side/tcc")" >"$dir/$side/out" 2>&1 ||
				fail "tcc $side seed ${seed:-none}: status $?"
		done
		[ -s "$dir/a/out" ] && cmp -s "$dir/a/out" "$dir/b/out" || fail "tcc seed ${seed:-none}: output differs"
	done
fi
[ $nr_failed = 0 ]
