#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/bench/meter takes windows of a stock program with threads, chooses a meter, measures it with unseen work, and
# tries versions. What it says agrees with the windows that it saves.
# check-all: it works for a minute
. "$(dirname "$0")/../lib.sh"
need python3 zstd
scratch meter
export BUILD MORPH_NO_SETUP=1
meter=$root/scripts/bench/meter

command_ends 2 "a program that there is not" "$meter" --program=none
if [ "$(id -u)" != 0 ]; then
	command_ends 1 "not root" "$meter" --program=zstd --dir="$PWD/work"
	finish
	exit
fi
command_ends 0 "zstd" "$meter" --json --program=zstd --window=0.15 --counting=4 --unseen=1 --trials=2 --pairs=4 \
	--block=0.05 --paired=4 --save=saved.gz --dir="$PWD/work"
python3 - out.txt saved.gz <<'PY' || fail "the answer: $(head -c 2000 out.txt)"
import gzip, json, math, statistics, sys
(r,) = json.load(open(sys.argv[1], encoding="ascii"))
rows = [json.loads(line) for line in gzip.open(sys.argv[2], "rt")]
seen, unseen = ([w for w in rows if w["phase"] == p] for p in ("seen", "unseen"))
(meter,) = (w for w in rows if w["phase"] == "meter")
assert r["program"] == "zstd" and r["seen_windows"] == len(seen) >= 16, r
assert sum(w["cpu_s"] for w in seen) >= 4 and all(w["cpu_s"] >= 0.15 for w in seen + unseen), r
# The program counts in several threads, and nothing is lost of that.
assert all(len(w["index"]) == len(w["counts"]) > 100 and min(w["counts"]) > 0 for w in seen), "windows"
assert 1 <= r["counters"] == len(meter["places"]) == len(meter["weights"]) <= 8, meter
rate = sum(n for w in seen for i, n in zip(w["index"], w["counts"]) if i in meter["index"]) / sum(
    w["cpu_s"] for w in seen)
assert math.isclose(rate, meter["rate"], rel_tol=0.01), (rate, meter)
logs = [math.log(w["cpu_s"] / sum(meter["weights"][i] * n for i, n in zip(w["index"], w["counts"]))) for w in unseen
        if w["counts"]]
assert math.isclose(statistics.stdev(logs), r["unseen"]["deviation"], rel_tol=1e-6), r
# A short command may be counted, in which the version's start shows.
assert r["cost"] is None or 0 < r["cost"] < 0.05, r
trials = r["trials"]
assert [t["what"] for t in trials] == ["equal", "equal", "planted slower", "planted faster"], trials
# Four pairs decide nothing.
assert all(t["verdict"] == "undecided" and t["pairs"] + t["dropped"] == 4 for t in trials), trials
low, middle, high = trials[2]["paired"][1], trials[2]["paired"][0], trials[2]["paired"][2]
assert low <= middle <= high and math.isclose(trials[3]["paired"][0], 1 / middle), trials
PY
command_ends 0 "as a table" "$meter" --program=zstd --window=0.15 --counting=3 --unseen=0.5 --dir="$PWD/work"
says out.txt "^| zstd | compressor | " "a table"
! pgrep -f "$PWD/work" >/dev/null || fail "processes are left: $(pgrep -af "$PWD/work")"
finish
