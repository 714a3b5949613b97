# SPDX-License-Identifier: Apache-2.0
"""distributionreport - tables of the results of scripts/check/distribution: of each package, kind of tests, way and seed the last run."""

import collections
import re
import statistics

SIZES = (0, 1 / 16, 1 / 4, 1, 4, 16, 1e9)  # MiB of code
RATIO_FROM = 1 / 4  # below, time and memory are those of starting


def table(titles, rows):
    print("| " + " | ".join(titles) + " |")
    print("|" + "---|" * len(titles))
    for row in rows:
        print("| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |")
    print()


def ways(ask):
    for way, seed in ask("SELECT DISTINCT way, seed FROM last WHERE way NOT LIKE 'original%' ORDER BY way, seed"):
        of = "FROM last JOIN {} t ON t.run = last.id WHERE way = ? AND seed = ?"
        tests = collections.Counter(dict(ask(f"SELECT outcome, count(*) {of.format('test')} GROUP BY outcome", way, seed)))
        files = collections.Counter(dict(ask(f"SELECT outcome, count(DISTINCT path) {of.format('file')} GROUP BY outcome", way, seed)))
        functions, moved = ask(f"SELECT sum(functions), sum(moved) FROM (SELECT DISTINCT path, functions, moved {of.format('file')})", way, seed)[0]
        yield (way, seed, *ask("SELECT count(DISTINCT package) FROM last WHERE way = ? AND seed = ?", way, seed)[0], tests["same"],
               tests["different"], tests["varies"], files["rewritten"], files["refused"] + files["nothing"], files["defect"],
               f"{moved or 0:,} of {functions or 0:,}")


def costs(files):
    """@files: (MiB of code, seconds, MiB of memory)."""
    for low, high in zip(SIZES, SIZES[1:]):
        some = [f for f in files if low <= f[0] < high]
        if some:
            row = [f"{low:g} to {high:g} MiB" if high < 1e9 else f"above {low:g} MiB", len(some)]
            for i, form in ((1, "{:.2f}"), (2, "{:.0f}")):
                row += [form.format(f([s[i] for s in some])) for f in (statistics.median, max)]
                row.append("-" if low < RATIO_FROM else form.format(max(s[i] / s[0] for s in some)))
            yield row


def packages(ask):
    for package, version in ask("SELECT package, max(version) FROM last WHERE way NOT LIKE 'original%' OR state != 'tried' "
                                "GROUP BY package ORDER BY package"):
        tests = collections.Counter(dict(ask("SELECT outcome, count(*) FROM last JOIN test t ON t.run = last.id WHERE package = ? "
                                             "GROUP BY outcome", package)))
        files = dict(ask("SELECT outcome, count(DISTINCT path) FROM last JOIN file f ON f.run = last.id WHERE package = ? GROUP BY outcome",
                         package))
        kinds = ", ".join(k for k, in ask("SELECT DISTINCT kind FROM last WHERE package = ? AND state = 'tried' ORDER BY kind DESC", package))
        yield (package, version, kinds or "none", tests["same"], tests["different"], tests["left out"] + tests["varies"],
               files.get("rewritten", 0), files.get("refused", 0) + files.get("nothing", 0))


def last(db):
    """Make the view of the last runs."""
    db.execute("CREATE TEMP VIEW last AS SELECT * FROM run WHERE id IN (SELECT max(id) FROM run GROUP BY package, kind, way, seed)")


def write(db):
    def ask(text, *args):
        return db.execute(text, args).fetchall()
    last(db)
    commits = ask("SELECT morph, count(*), min(date), max(date), coalesce('; ' || sum(also IS NOT NULL) || ' of them wrote the same by ' || "
                  "group_concat(DISTINCT also), '') FROM last WHERE morph != '' GROUP BY morph ORDER BY min(id)")
    print("By " + "; ".join(f"Morph {m} ({n} runs, {a} to {b}{also})" for m, n, a, b, also in commits) + ":\n")
    table(("way", "seed", "packages", "tests the same", "different", "vary", "files rewritten", "refused", "defects", "functions moved"), ways(ask))
    hours = ask("SELECT sum(installing) / 3600, sum(rewriting) / 3600, sum(testing) / 3600 FROM last")[0]
    print("Hours: {:.2f} of installing, {:.2f} of rewriting, {:.2f} of testing.\n".format(*(h or 0 for h in hours)))
    print("## Tests that were left out\n")
    why = collections.Counter(re.sub(r":.*", "", d) for d, in
                              ask("SELECT detail FROM last JOIN test t ON t.run = last.id WHERE outcome = 'left out'"))
    why.update("all of a package: " + re.sub(r":.*", "", s) for s, in
               ask("SELECT state FROM last WHERE way LIKE 'original%' AND state != 'tried'"))
    table(("why", "tests"), why.most_common())
    print("## Files that were refused\n")
    table(("why", "files", "of", "for example"), ask(
        "SELECT why, count(DISTINCT path), group_concat(DISTINCT way), min(path) FROM last JOIN file f ON f.run = last.id "
        "WHERE outcome IN ('refused', 'nothing') GROUP BY why ORDER BY 2 DESC"))
    print("## Time and memory, by size\n\nOf one thread, verification included.\n")
    table(("code", "runs", "seconds of CPU, median", "most", "for each MiB, most", "MiB of memory, median", "most", "for each MiB, most"), costs(ask(
        "SELECT code / 1048576.0, f.seconds, kib / 1024.0 FROM last JOIN file f ON f.run = last.id WHERE outcome = 'rewritten'")))
    print("## Packages\n\nTests and ways together; files once.\n")
    table(("package", "version", "tests", "the same", "different", "left out", "files rewritten", "refused"), packages(ask))
