# SPDX-License-Identifier: Apache-2.0
"""torturereport - tables of the results of scripts/check/torture."""

import collections
import contextlib
import csv
import json
import os
import sys

# Start-up code and PLTs, which do not come from the compiler.
SPECIAL = "not a compiler's function"
NO_FDE = "no unwind information"
RESULTS = ("same", "broken", "failed", "refused", "skipped")


def read(paths):
    """The files' first lines, and the runs; if several files have a run, the last file counts."""
    heads, runs = [], {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            heads.append(json.loads(f.readline()))
            for line in f:
                if line.endswith("\n"):
                    run = json.loads(line)
                    runs[run["program"], run["config"]] = run
    return heads, list(runs.values())


def table(titles, rows):
    print("| " + " | ".join(titles) + " |")
    print("|" + "---|" * len(titles))
    for row in rows:
        print("| " + " | ".join(str(c) for c in row) + " |")
    print()


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"


class Sum:
    """The totals of the runs whose files were rewritten."""

    def __init__(self):
        self.counts = collections.Counter()
        self.left = collections.Counter()
        self.left_own = collections.Counter()
        self.considered = self.moved = self.own = self.blocks = 0
        self.executed = self.executed_moved = self.nr_executed = 0
        self.shares = []

    def add(self, run):
        self.counts[run["result"]] += 1
        if "considered" not in run:
            return
        self.considered += run["considered"]
        self.moved += run["moved"]
        self.left.update(run["left"])
        self.own += run["own"]
        self.left_own.update(run["left_own"])
        self.blocks += run["blocks"]
        if run.get("executed"):
            self.nr_executed += 1
            self.executed += run["executed"]
            self.executed_moved += run["executed_moved"]
            self.shares.append(run["executed_moved"] / run["executed"])

    def with_fde(self):
        return self.considered - self.left[NO_FDE]

    def compiled(self):
        return self.with_fde() - self.left[SPECIAL]

    def row(self):
        own = self.own - self.left_own[NO_FDE] - self.left_own[SPECIAL]
        return [sum(self.counts.values()), *(self.counts[r] for r in RESULTS),
                percent(self.moved, self.with_fde()), percent(self.moved, self.compiled()),
                percent(own - sum(n for w, n in self.left_own.items()
                                  if w not in (NO_FDE, SPECIAL)), own)]


def sums(runs, key):
    out = collections.defaultdict(Sum)
    for run in runs:
        out[key(run)].add(run)
    return out


def kind(run):
    return " ".join(run["config"].split("-")[-2:])


def print_functions(by_kind):
    print("Functions with an FDE, and of them: moved; left alone, with the reason. `own` are those that come from the "
          "program's\nsource, not from start-up files or the C library.\n")
    rows = []
    for name, s in sorted(by_kind.items()):
        own = s.own - s.left_own[NO_FDE]
        rows.append([name, s.with_fde(), s.moved, percent(s.moved, s.with_fde()), s.compiled(),
                     percent(s.moved, s.compiled()), own,
                     percent(own - sum(s.left_own.values()) + s.left_own[NO_FDE], own)])
    table(["linked", "with an FDE", "moved", "%", "without start-up code and PLTs", "moved, %",
           "own", "moved, %"], rows)
    reasons = collections.Counter()
    for s in by_kind.values():
        reasons.update(s.left)
    names = sorted(by_kind)
    rows = []
    for why, n in reasons.most_common():
        if why != NO_FDE:
            rows.append([why, n, *(by_kind[k].left[why] for k in names),
                         sum(s.left_own[why] for s in by_kind.values())])
    table(["left alone because", "all", *names, "of them own"], rows)


def print_executed(by_kind):
    rows = [[name, s.nr_executed, s.executed, percent(s.executed_moved, s.executed),
             percent(sum(s.shares), len(s.shares)), percent(min(s.shares), 1)]
            for name, s in sorted(by_kind.items()) if s.nr_executed]
    if not rows:
        return
    print("Instructions of the program's own code, counted under the emulator.\n")
    table(["linked", "programs counted", "instructions", "in moved code, %",
           "mean of programs, %", "least, %"], rows)


def write_others(runs, path):
    with open(path, "w", encoding="utf-8", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["result", "why", "program", "configuration", "layout seed"])
        out.writerows(sorted([r["result"], r["why"], r["program"], r["config"],
                              str(r.get("layout", ""))]
                             for r in runs if r["result"] != "same"))


def write(paths, prefix):
    """Prints the tables, or writes them to files of this prefix. Return: 1 if any run is bad."""
    heads, runs = read(paths)
    if not prefix:
        return write_tables(heads, runs)
    write_others(runs, prefix + ".csv")
    with open(prefix + ".md", "w", encoding="utf-8") as f, contextlib.redirect_stdout(f):
        print("<!-- SPDX-License-Identifier: Apache-2.0 -->")
        print("Written by `scripts/check/torture --report`; which runs are not the same after, "
              f"{os.path.basename(prefix)}.csv says.\n")
        return write_tables(heads, runs)


def write_tables(heads, runs):
    editors = ", ".join(sorted({h["editor"] for h in heads}))
    seeds = ", ".join(sorted({str(h["seed"]) for h in heads}))
    print(f"morph-optimize of commit {editors}, seed {seeds}: {len(runs)} runs of "
          f"{len({r['program'] for r in runs})} programs.\n")
    titles = ["runs", *RESULTS, "with an FDE moved, %", "without start-up code and PLTs, %",
              "own, %"]
    by_config = sums(runs, lambda r: r["config"])
    rows = [[name, *s.row()] for name, s in sorted(by_config.items())]
    total = sums(runs, lambda r: "all")["all"] if runs else Sum()
    table(["configuration", *titles], [*rows, ["all", *total.row()]])
    by_kind = sums(runs, kind)
    print_functions(by_kind)
    print_executed(by_kind)
    whys = collections.Counter((r["result"], r["why"]) for r in runs if r["result"] != "same")
    if whys:
        table(["result", "why", "runs"],
              [[result, why, n] for (result, why), n in whys.most_common()])
    bad = total.counts["broken"] + total.counts["failed"]
    print(f"{len(runs)} runs: {total.counts['same']} the same after, "
          f"{total.counts['broken']} broken, {total.counts['failed']} failed, "
          f"{total.counts['refused']} refused, {total.counts['skipped']} skipped; "
          f"{total.blocks} blocks moved")
    sys.stdout.flush()
    return 1 if bad or not total.counts["same"] else 0
