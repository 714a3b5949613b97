# SPDX-License-Identifier: Apache-2.0
"""Reports results.json of scripts/bench/run: the table of Documentation/lab/results.md, the plot
Documentation/lab/bench.svg, and a summary for the terminal. Measures nothing."""

import os
import re

import benchplot
from markdown import wrapped

BEGIN = "<!-- bench: begin (written by make bench) -->"
END = "<!-- bench: end -->"
METRICS = ("taken_branches", "instructions", "lines", "pages", "i1_misses")


# ---- evaluation -----------------------------------------------------------

def runs_of(versions, key):
    """The counted runs of a version, one for each profile."""
    return [v for k, v in sorted(versions.items())
            if (k == key or k.startswith(key + ".")) and "taken_branches" in v]


def error_of(versions, key):
    """The error of a version, without directory names of the machine."""
    return next((re.sub(r"/\S*/", "", v["error"]) for k, v in sorted(versions.items())
                 if (k == key or k.startswith(key + ".")) and "error" in v), None)


def best_setting(versions, candidates):
    """BOLT's setting with the fewest taken branches over its profiles; None if none works."""
    def taken(setting):
        runs = runs_of(versions, "bolt-" + setting)
        return sum(r["taken_branches"] for r in runs) / len(runs)
    working = [s for s in candidates if runs_of(versions, "bolt-" + s)]
    return min(working, key=taken) if working else None


def key_of(program, version, candidates):
    """The name of a version of the table in the results."""
    if version == "bolt-best":
        return "bolt-" + (best_setting(program["versions"], candidates) or candidates[0])
    return version


def change(program, key, metric):
    """(mean, worst) over the profiles, in percent of the original; None if not counted."""
    before = program["versions"].get("original", {}).get(metric)
    values = [100 * (r[metric] / before - 1) for r in runs_of(program["versions"], key)
              if before and metric in r]
    return (sum(values) / len(values), max(values)) if values else None


def extra_misses(program, key):
    """(mean, worst) of additional cache misses, per 1,000 instructions of the original."""
    before = program["versions"].get("original", {})
    values = [1000 * (r["i1_misses"] - before["i1_misses"]) / before["instructions"]
              for r in runs_of(program["versions"], key) if "i1_misses" in r and "i1_misses" in before]
    return (sum(values) / len(values), max(values)) if values else None


def coverage(program, key):
    values = [r["moved"] for r in runs_of(program["versions"], key)]
    return 100 * min(values) if values and max(values) else None


def geometric_mean(values):
    product = 1.0
    for value in values:
        product *= value
    return product ** (1 / len(values)) if values else None


def programs_of(results, names=None):
    """Programs with counts, in the order of names if given."""
    known = results["programs"]
    return [(n, known[n]) for n in (names or sorted(known))
            if n in known and "taken_branches" in known[n]["versions"].get("original", {})]


def findings(results, names, candidates):
    """The targets with the programs that miss them: [(target, [program with figures])]."""
    if not programs_of(results, names):
        return []
    rises, slower, open_, behind, more = [], [], [], [], []
    unknown = 0
    for name, p in programs_of(results, names):
        taken = change(p, "morph", "taken_branches")
        if taken and taken[1] > 0:
            rises.append(f"{name} {taken[1]:+.1f} %")
        best = key_of(p, "bolt-best", candidates)
        bolt = change(p, best, "taken_branches")
        if taken and bolt and taken[0] > bolt[0]:
            more.append(f"{name} {taken[0]:+.1f} % (BOLT {bolt[0]:+.1f} %)")
        for label, misses in (("morph", slower), ("morph / bolt-best", behind)):
            audit = p["audits"].get(label)
            if audit and audit.get("verdict") == "slower":
                misses.append(f"{name} {speed(audit)}")
            elif audit and "speedup" not in audit:
                misses.append(f"{name}: {audit.get('error', 'no audit')}")
            elif label == "morph" and audit and (audit["interval"][0] or 0) < 1:
                open_.append(f"{name} {speed(audit)}")
            unknown += label == "morph" and not audit
    out = [("no rise in taken branches on any program, any profile", rises)]
    if unknown < len(programs_of(results, names)):
        out += [("no program slower than the original", slower),
                ("no program whose interval against the original reaches below 1", open_),
                ("no program slower than BOLT's best sampled setting makes it", behind)]
    return out + [("no more taken branches than BOLT's best sampled setting, mean", more)]


# ---- Markdown -------------------------------------------------------------

VERSIONS = (("morph", "Morph"), ("bolt-best", "BOLT, best setting"), ("bolt-usual", "BOLT, usual flags"),
            ("morph-exact", "Morph, exact profile"), ("bolt-exact", "BOLT, exact profile"))
SETTING_NAMES = {"cache": "`cache`", "exttsp": "`ext-tsp`, no splitting", "functions": "functions only"}


def both(pair, digits=1):
    """The mean, and the worst if it differs."""
    if pair is None:
        return ""
    mean, worst = (f"{v:+.{digits}f}" for v in pair)
    return mean if mean == worst else f"{mean} ({worst})"


def speed(audit):
    low, high = audit["interval"]
    text = f"{audit['speedup']:.3f}"
    return text + (f" ({low:.3f} to {high:.3f})" if low and high else "")


def audit_cell(program, label):
    audit = program["audits"].get(label)
    if not audit:
        return ""
    return speed(audit) if "speedup" in audit else "failed"


def thousands(number):
    return f"{number:,}"


def note_of(program, version, key, candidates):
    error = error_of(program["versions"], key)
    runs = runs_of(program["versions"], key)
    if not runs and error and version.startswith("bolt") and program.get("skip"):
        return f"**refused**; without `{'`, `'.join(program['skip'])}` its output: **{error}**"
    if not runs:
        return f"**{error or 'not measured'}**"
    notes = []
    if error:
        notes.append(f"**fails for some profiles: {error}**")
    if version == "bolt-best":
        notes.append(SETTING_NAMES[best_setting(program["versions"], candidates)])
    if version.startswith("bolt") and any("skip" in r for r in runs):
        notes.append("**refused**; figures are without `"
                     + "`, `".join(sorted({f for r in runs for f in r.get("skip", ())})) + "`")
    return "; ".join(notes)


def table(results, names, candidates):
    out = ["| program | version | taken branches | instructions | lines | pages | I1 misses | in moved "
           "code | time: times as fast | rewriter: s, MiB | remark |",
           "|---|---|---|---|---|---|---|---|---|---|---|"]
    for name, p in programs_of(results, names):
        o = p["versions"]["original"]
        ms = next((a["median_ms"][0] for k, a in sorted(p["audits"].items())
                   if k in ("morph", "bolt-best") and "median_ms" in a), None)
        rate = f" ({1000 * o['i1_misses'] / o['instructions']:.2f})" if "i1_misses" in o else ""
        out.append(f"| **{name}** | original | " + " | ".join(
            thousands(o[m]) if m in o else "" for m in METRICS)
            + f"{rate} | | {f'{ms:.0f} ms' if ms else ''} | | |")
        for version, title in VERSIONS:
            key = key_of(p, version, candidates)
            cells = [both(change(p, key, m), 2 if m == "instructions" else 1) for m in METRICS]
            moved = coverage(p, key)
            cost = p.get("cost", {}).get({"morph": "morph", "bolt-usual": "bolt"}.get(version), {})
            out.append(f"| | {title} | " + " | ".join(cells) + " | "
                       + (f"{moved:.1f} %" if moved is not None else "") + " | "
                       + audit_cell(p, version) + " | "
                       + (f"{cost['seconds']:.2f}, {cost['mebibytes']:.0f}" if "seconds" in cost else "")
                       + " | " + note_of(p, version, key, candidates) + " |")
        direct = audit_cell(p, "morph / bolt-best")
        if direct:
            out.append(f"| | *Morph against BOLT's best* | | | | | | | {direct} | | |")
    return out


def summary(results, names, candidates):
    """Mean and worst over all programs, version by version."""
    out = ["| over all programs | taken branches, mean of the programs; worst of all profiles | I1 misses, "
           "mean; worst | times as fast, geometric mean; least | programs |", "|---|---|---|---|---|"]
    for version, title in VERSIONS:
        cells = []
        nr = 0
        for metric in ("taken_branches", "i1_misses"):
            pairs = [(n, change(p, key_of(p, version, candidates), metric))
                     for n, p in programs_of(results, names)]
            pairs = [(n, c) for n, c in pairs if c]
            nr = max(nr, len(pairs))
            if not pairs:
                cells.append("")
                continue
            mean = sum(c[0] for _, c in pairs) / len(pairs)
            worst = max(pairs, key=lambda p: p[1][1])
            cells.append(f"{mean:+.1f} %; {worst[1][1]:+.1f} % ({worst[0]})")
        times = [(n, p["audits"][version]["speedup"]) for n, p in programs_of(results, names)
                 if "speedup" in p["audits"].get(version, {})]
        least = min(times, key=lambda t: t[1]) if times else None
        cells.append(f"{geometric_mean([t[1] for t in times]):.3f}; {least[1]:.3f} ({least[0]})"
                     if times else "")
        out.append(f"| {title} | " + " | ".join(cells) + f" | {nr} |")
    return out


def markdown(results, names, candidates):
    m = results.get("machine", {})
    out = [BEGIN, "", "![Taken branches, cache misses and time of each program](bench.svg)", ""]
    for target, misses in findings(results, names, candidates):
        out.append(f"- {target}: " + ("**met**" if not misses else "missed by " + "; ".join(misses)))
    out += ["", *summary(results, names, candidates), "",
            "Changes are percent of the original, mean over the profiles, the worst profile in brackets where it "
            "differs. Taken branches, instructions, 64-byte lines and 4 KiB pages are the program's own, on test "
            "work it was not trained with; I1 misses (32 KiB, 8 ways) are those of the whole process, for the "
            "original per 1,000 instructions in brackets: where there are few, percents mean little. Times are "
            "speed against the original, 99 % interval in brackets, of Morph's worst profile and BOLT's best.", "",
            *table(results, names, candidates), "",
            f"Measured with {m.get('morph', 'morph')} on {m.get('cpus', '?')} CPUs ({m.get('cpu', 'unknown')}), "
            f"Linux {m.get('kernel', 'unknown')}.", "", END]
    return wrapped("\n".join(out))


def replace_between(path, text):
    """Replace the text between the markers, or append it to a file without markers."""
    with open(path, encoding="utf-8") as f:
        old = f.read()
    if BEGIN in old and END in old:
        new = old[:old.index(BEGIN)] + text + old[old.index(END) + len(END):]
    else:
        new = old.rstrip("\n") + "\n\n## Every program, against BOLT\n\n    make bench\n\n" + text + "\n"
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(new)
    os.rename(path + ".new", path)


def write(results, directory, names, new, candidates):
    """Write the table between its markers in results.md, and the plot beside it.

    new: the names of programs that were not used for tuning.
    """
    rows = []
    for name, p in programs_of(results, names):
        row = {"name": name, "new": name in new, "versions": {}}
        for version, _ in VERSIONS[:3]:
            key = key_of(p, version, candidates)
            audit = p["audits"].get(version, {})
            row["versions"][version] = {
                "taken": change(p, key, "taken_branches"), "misses": extra_misses(p, key),
                "speed": (audit["speedup"], *audit["interval"]) if "speedup" in audit else None,
                "refused": version.startswith("bolt") and bool(p.get("skip") or not runs_of(
                    p["versions"], key))}
        rows.append(row)
    with open(os.path.join(directory, "bench.svg"), "w", encoding="utf-8") as f:
        f.write(benchplot.svg(rows))
    replace_between(os.path.join(directory, "results.md"), markdown(results, names, candidates))


def print_summary(results, names, candidates):
    """A short table for a terminal or a log."""
    def cell(pair):
        return f"{pair[0]:+7.1f} {pair[1]:+7.1f}" if pair else " " * 15
    print(f"{'taken branches, %: mean, worst':32}{'Morph':>15}{'BOLT best':>18}{'BOLT usual':>18}")
    for name, p in programs_of(results, names):
        cells = [cell(change(p, key_of(p, v, candidates), "taken_branches"))
                 for v in ("morph", "bolt-best", "bolt-usual")]
        print(f"{name:32}" + "   ".join(cells))
    for target, misses in findings(results, names, candidates):
        print(f"{target}: " + ("met" if not misses else "missed: " + "; ".join(misses)))
