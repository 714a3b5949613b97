#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone; only benchmarks use what it tests
# alone: it samples
# scripts/bench/figure3 and scripts/bench/pairs: the tables agree with the results, also with missing ones. One
# program passes all steps and is not made twice; times are kept from run to run.
. "$(dirname "$0")/../lib.sh"
need python3 jq
scratch figure3
export LC_ALL=C BUILD
mkdir doc
marks() {
	printf 'before\n\n<!-- figure3: begin (written by scripts/bench/figure3) -->\nold\n'
	printf '<!-- figure3: end -->\n\nafter\n'
}
marks >doc/results.md

# ---- the report: invented results, each with something missing
python3 - "$root/scripts" doc <<'EOF' || fail "the report: status $?"
import sys
import xml.dom.minidom
sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1] + folder for folder in ("/bench", "/report", "/works")]
import figure3report
from figure3works import Figure3Work

def counted(taken, instructions=1000, **more):
    return dict(taken=taken, instructions=instructions, moved=0.875, moved_branches=0.75, share=0.5,
                same=True, morph="abc", counters=7, **more)

works = [Figure3Work(n, p, "t", "u", "", "", "") for n, p in (("one", "one"), ("two", "go"))]
seconds = {"original": [1.0, 1.01, 0.99], "statistical": [1.1, 1.12, 1.09],
           "base": [0.9, 0.91, 0.89], "complete.counting": [1.8, 1.82, 1.78],
           "complete": [0.8, 0.81, 0.79]}
first = {"original": counted(1000), "statistical": counted(800), "base": counted(800),
         "complete.counting": counted(810, 1250), "complete": counted(600)}
second = {"original": counted(1000), "statistical": counted(1100),
          "complete": {"error": "it <&> failed", "morph": "abc"}}
second["statistical"]["same"] = False
data = {"machine": {"cpu": "c", "cpus": 2, "kernel": "k"}, "lacking": {"pep": "not known"},
        "kinds": [{"key": k, "title": t} for k, t in (("statistical", "timer samples"),
                  ("pep", "PEP"), ("complete", "complete"))],
        "programs": {"one": {"versions": first, "seconds": seconds},
                     "two": {"versions": second, "seconds": {}}}}
text = figure3report.tables(data, works)
cells = [l.strip("| ").split(" | ") for l in text.splitlines() if l.startswith("| ")]
row = next(c for c in cells if c[:2] == ["one", "complete"])
assert row[2:4] == ["87.5", "-40.0"] and row[6] == "same", row
assert row[7].startswith("+20.0 (+") and "slower" not in row[7], row
row = next(c for c in cells if c[:2] == ["one", "timer samples"])
assert row[3] == "-20.0" and row[7].startswith("-10.3 (-") and "**slower**" in row[7], row
row = next(c for c in cells if c[:2] == ["two (go)", "timer samples"])
assert row[3] == "+10.0" and "**different**" in row, row
row = next(c for c in cells if c[:2] == ["two (go)", "complete"])
assert row[2].startswith("it <&> failed"), row
lines = [l for l in text.splitlines() if l.startswith("- ")]
assert any(l.startswith("- no program slower: **missed by** one, timer") for l in lines), lines
assert any(l.startswith("- the same output everywhere: **missed by** two") for l in lines), lines
assert any(l.startswith("- no more taken branches than before: **missed by** two") for l in lines)
assert any("of what a complete profile saves of them 50 %" in l for l in lines), lines
assert any(l.startswith("- no profiles by PEP: not known") for l in lines), lines
row = next(c for c in cells if c[:2] == ["one", "complete"] and c[2] == "7")
assert row[3:6] == ["87.5", "75.0", "1.250"] and row[7].startswith("2.000 ("), row

figure3report.write(data, works, text, sys.argv[2])
whole = open(sys.argv[2] + "/results.md").read()
assert whole.startswith("before\n") and whole.endswith("after\n") and "old" not in whole, whole
figure3report.write(data, works, text, sys.argv[2])
assert open(sys.argv[2] + "/results.md").read() == whole, "writing twice changes the file"
svg = xml.dom.minidom.parse(sys.argv[2] + "/figure3.svg")
drawn = [t.firstChild.data for t in svg.getElementsByTagName("text")]
assert drawn.count("one") == 2 and "(go)" in drawn and "timer samples" in drawn, drawn
assert "PEP" not in drawn, drawn
EOF

# ---- pairs: every version runs in every round; after a signal, complete rounds are printed
mkdir a b
printf '#!/bin/sh\necho "$1" >>"$0.log"\n' >a/program
cp a/program b/program
chmod +x a/program b/program
command_ends 0 "pairs" "$root/scripts/bench/pairs" --json --runs 3 "$PWD/a/program" "$PWD/b/program" -- x
jq -e --arg a "$PWD/a/program" --arg b "$PWD/b/program" \
	'keys == [$a, $b] and all(.[]; length == 3)' out.txt >/dev/null || fail "pairs: $(cat out.txt)"
[ "$(sort -u a/program.log b/program.log)" = x ] || fail "pairs: not the arguments"
[ "$(cat a/program.log b/program.log | wc -l)" = 8 ] || fail "pairs: not four runs of each"
command_ends 0 "pairs --library" "$root/scripts/bench/pairs" --library --json --runs 2 "$PWD/a" "$PWD/b" \
	-- sh -c 'echo "$LD_LIBRARY_PATH" >>used'
[ "$(sort used | uniq -c | awk '{ print $1 }' | xargs)" = "3 3" ] || fail "pairs --library: $(cat used)"
printf '#!/bin/sh\nexit 3\n' >b/program
command_ends 1 "pairs of what fails" "$root/scripts/bench/pairs" "$PWD/a/program" "$PWD/b/program" --
says err.txt "status 3"
printf '#!/bin/sh\n[ "$(wc -l <"$0.log")" -lt 3 ] || { touch asleep; exec sleep 60; }\necho >>"$0.log"\n' >b/program
: >b/program.log
"$root/scripts/bench/pairs" --json --runs 50 "$PWD/a/program" "$PWD/b/program" -- y >cut 2>err.txt &
pairs=$!
until [ -e asleep ] || ! kill -0 $pairs; do sleep 0.1; done
kill $pairs; kill $pairs
wait $pairs || fail "pairs, told to end: status $?"
jq -e 'all(.[]; length == 2)' cut >/dev/null || fail "pairs, told to end: $(cat cut err.txt)"

# ---- one program with a moment of work: all steps, and then again
if ! command -v qemu-x86_64 >/dev/null; then
	echo "note: no emulator"
	[ $nr_failed = 0 ]
	exit
fi
if ! "$BUILD/morphd" run --no-kernel --db=try.db -- true 2>err.txt; then
	echo "note: no samples here: $(tail -n 1 err.txt)"
	[ $nr_failed = 0 ]
	exit
fi
cat >all.py <<'EOF'
import importlib.machinery
import importlib.util
import os
import sys
sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1] + "/scripts/" + folder for folder in ("bench", "report", "works")]
from stockworks import times
import figure3works
loader = importlib.machinery.SourceFileLoader("figure3", sys.argv[1] + "/scripts/bench/figure3")
spec = importlib.util.spec_from_loader("figure3", loader)
figure3 = importlib.util.module_from_spec(spec)
loader.exec_module(figure3)

work = figure3works.Figure3Work("gzip", "gzip", "this", "that", times(6, "{} -nc {in}/train >t"),
                                "{} -9nc {in}/test", "{} -9nc {in}/test")
figure3.WORKS = (work,)

def prepare(directory):
    os.makedirs(directory, exist_ok=True)
    for name, factor in (("train", 7), ("test", 11)):
        with open(f"{directory}/{name}", "w") as f:
            f.writelines(f"{i * factor % 9973} {i ^ factor}\n"
                         for i in range(150000 if name == "train" else 15000))

figure3.prepare = prepare
figure3.subprocess.run = (lambda run: lambda c, **kw: None if c[0].endswith(("setup", "make"))
                          else run(c, **kw))(figure3.subprocess.run)
sys.argv = ["figure3", *sys.argv[2:]]
sys.exit(figure3.main())
EOF
marks >doc/results.md
all=(python3 all.py "$root" --keep=kept --report=doc --json=all.json)
command_ends 0 "figure3" "${all[@]}"
jq -e '.programs.gzip.versions | .original and .base and ."complete.counting"
	and ([.original, .statistical, .base, ."complete.counting", .complete]
		| all(.error == null and .same)) and .statistical.moved > 0.5
	and all(.[]; .error != null or .same)
	and .complete.taken < .original.taken
	and ."complete.counting".instructions > .base.instructions' all.json >/dev/null ||
	fail "figure3: $(jq -c .programs all.json; cat err.txt)"
says doc/results.md "^| gzip | complete | "
touch -d 2001-01-01 kept/gzip/complete/gzip
command_ends 0 "figure3 --time" "${all[@]}" --time=2
command_ends 0 "figure3 --only-time" "${all[@]}" --only-time --time=1
jq -e '.programs.gzip.seconds | (keys | length >= 5) and all(.[]; length == 3)' all.json >/dev/null ||
	fail "figure3 --time: $(jq -c .programs.gzip.seconds all.json)"
[ kept/gzip/complete/gzip -ot all.py ] || fail "figure3 made anew what it had"
[ "$(ls kept/gzip/complete.counting/counts)" = "" ] || fail "counts of timed runs are left"
says doc/results.md "; 3 rounds"
# morph-optimize lists its outputs in the database, so compare only the profile's sessions.
sessions() { sqlite3 kept/gzip/complete.db 'SELECT key, start_s, last_s FROM session'; }
sessions >before
[ -s before ] || fail "figure3: no session in the database"
command_ends 0 "figure3 --again" "${all[@]}" --again
[ kept/gzip/complete/gzip -nt all.py ] || fail "figure3 --again: the old version"
[ "$(sessions)" = "$(cat before)" ] || fail "figure3 --again: another profile"
jq -e '.programs.gzip.seconds | has("complete") | not' all.json >/dev/null ||
	fail "figure3 --again: times of the version before"
[ $nr_failed = 0 ]
