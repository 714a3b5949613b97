# SPDX-License-Identifier: Apache-2.0
"""Reports the results of scripts/bench/figure3: the tables of Documentation/lab/results.md and the figures
for the plot. Measures nothing."""

import math
import os
import sys
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

import figure3plot  # noqa: E402
from benchlib import mean, ratio  # noqa: E402
from markdown import wrapped  # noqa: E402

BEGIN = "<!-- figure3: begin (written by scripts/bench/figure3) -->"
END = "<!-- figure3: end -->"
PLOT = "figure3.svg"


def less(was, now):
    return 100 * (1 - now / was)


def signed(value, digits=1):
    return f"{value:+.{digits}f}".replace("-0.0", "0.0") if abs(value) < 0.05 else \
        f"{value:+.{digits}f}"


def paired(results, a, b):
    """How many times as long a takes as b, with its interval; None if that was not timed."""
    seconds = results["seconds"]
    if a not in seconds or b not in seconds or len(seconds[a]) < 2:
        return None
    return ratio(seconds[a], seconds[b])


def time_less(results, key):
    """Percent of the original's time that a version saves: mean, least, most."""
    found = paired(results, key, "original")
    if not found:
        return None
    middle, low, high = (100 * (1 - f) for f in found)
    return middle, high, low


def version(results, key):
    """The results of a version that could be made, or None."""
    value = results["versions"].get(key)
    return value if value and "error" not in value else None


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|",
                      *("| " + " | ".join(row) + " |" for row in rows)])


def label(work):
    return work.name if work.paper == work.name else f"{work.name} ({work.paper})"


def measured(data, works):
    """The works whose original was counted, each with its results."""
    for work in works:
        results = data["programs"].get(work.name, {"versions": {}})
        if version(results, "original"):
            yield work, results


def works_table(data, works):
    rows = []
    for work, results in measured(data, works):
        seconds = results["seconds"].get("original")
        rows.append([label(work), work.trained, work.tested,
                     f"{100 * version(results, 'original')['share']:.1f}",
                     f"{mean(seconds):.2f}" if seconds else ""])
    return table(("file (the paper's)", "trained with", "tested with",
                  "of the process's instructions, %", "test, s"), rows)


def result_row(work, kind, results):
    value, first = results["versions"].get(kind["key"]), version(results, "original")
    if value is None:
        return None
    head = [label(work), kind["title"]]
    if "error" in value:
        return head + [value["error"]] + [""] * 5
    time = time_less(results, kind["key"])
    slower = " **slower**" if time and time[2] < 0 else ""
    predicted = value.get("predicted")
    return head + [
        f"{100 * value['moved']:.1f}", signed(-less(first["taken"], value["taken"])),
        signed(100 * (predicted - 1)) if predicted else "",
        signed(-less(first["instructions"], value["instructions"]), 2),
        "same" if value["same"] else "**different**",
        f"{signed(time[0])} ({signed(time[1])} to {signed(time[2])}){slower}" if time else ""]


def result_table(data, works):
    rows = [result_row(work, kind, results) for work, results in measured(data, works)
            for kind in data["kinds"]]
    return table(("file (the paper's)", "profile", "in moved code %", "taken branches %",
                  "predicted %", "instructions %", "output", "time saved %"),
                 [r for r in rows if r])


def geometric(ratios):
    return math.exp(mean(map(math.log, ratios)))


def verdict(what, bad, none="met"):
    return f"- {what}: **{none if not bad else 'missed by'}**" + (f" {'; '.join(bad)}" if bad else "")


def summary(data, works):
    """Lines about all programs together."""
    lines, different, more, slower, undecided = [], [], [], [], []
    for kind in data["kinds"]:
        key, taken, times, parts, counted = kind["key"], [], [], [], 0
        for work, results in measured(data, works):
            value, first = version(results, key), version(results, "original")
            if not value:
                continue
            counted += 1
            name = f"{work.name}, {kind['title']}"
            taken.append(less(first["taken"], value["taken"]))
            if not value["same"]:
                different.append(name)
            if value["taken"] > first["taken"]:
                more.append(f"{name} {signed(-taken[-1])}")
            best = version(results, "complete")
            if best and best["taken"] < 0.95 * first["taken"]:
                parts.append(100 * taken[-1] / less(first["taken"], best["taken"]))
            time = time_less(results, key)
            if time:
                times.append(1 - time[0] / 100)
                where = slower if time[2] < 0 else undecided if time[1] < 0 else []
                where.append(f"{name} {signed(time[0])} ({signed(time[1])} to {signed(time[2])})")
        if counted:
            said = f"- {kind['title']}: {counted} programs, taken branches {signed(-mean(taken))} %"
            if parts and key != "complete":
                said += (f"; of what a complete profile saves of them {mean(parts):.0f} % in the "
                         f"mean, {min(parts):.0f} % at least, where that is 5 % or more")
            if times:
                said += (f"; time saved {signed(100 * (1 - geometric(times)))} % in the geometric "
                         f"mean, {signed(100 * (1 - max(times)))} to "
                         f"{signed(100 * (1 - min(times)))} %")
            lines.append(said)
    lines.append(verdict("the same output everywhere", different))
    lines.append(verdict("no more taken branches than before", more))
    if any(r.get("seconds") for r in data["programs"].values()):
        lines.append(verdict("no program slower", slower))
        if undecided:
            lines.append(f"- intervals on both sides of zero: {'; '.join(undecided)}")
    lines += [f"- no profiles by {k['title']}: {data['lacking'][k['key']]}" for k in data["kinds"]
              if k["key"] in data["lacking"]]
    return "\n".join(lines)


def counting_table(data, works):
    rows, ends = [], []
    for kind in data["kinds"]:
        instructions, times = [], []
        for work, results in measured(data, works):
            base, value = version(results, "base"), version(results, kind["key"] + ".counting")
            if not base or not value:
                continue
            instructions.append(value["instructions"] / base["instructions"])
            time = paired(results, kind["key"] + ".counting", "base")
            if time:
                times.append(time[0])
            rows.append([label(work), kind["title"], f"{value['counters'] or 0:,}",
                         f"{100 * value['moved']:.1f}", f"{100 * value['moved_branches']:.1f}",
                         f"{instructions[-1]:.3f}",
                         "same" if value["same"] else "**different**",
                         "{:.3f} ({:.3f} to {:.3f})".format(*time) if time else ""])
        if instructions:
            end = (f"- {kind['title']}: instructions {geometric(instructions):.3f} times in the "
                   f"geometric mean, {max(instructions):.3f} at most")
            if times:
                end += f"; time {geometric(times):.3f}, {max(times):.3f} at most"
            ends.append(end)
    if not rows:
        return ""
    return ("\nWhat counting costs: the version that counts, of the same layout without counters.\n\n"
            + table(("file (the paper's)", "profile", "counters", "instructions in counted code %",
                     "conditional branches in it %", "instructions, times", "output",
                     "time, times"), rows) + "\n\n" + "\n".join(ends))


def made_by(data):
    by = {v["morph"] for r in data["programs"].values() for v in r["versions"].values()
          if "morph" in v}
    rounds = [len(r["seconds"]["original"]) for r in data["programs"].values()
              if r.get("seconds")]
    m = data["machine"]
    return (f"Morph at commit {', '.join(sorted(by))}; {m['cpus']} CPUs ({m['cpu']}), Linux "
            f"{m['kernel']}" + ("; times were not measured" if not rounds else
                                f"; {max(rounds)} rounds" if min(rounds) == max(rounds) else
                                f"; {min(rounds)} to {max(rounds)} rounds") + ".")


def tables(data, works):
    return "\n".join([summary(data, works), "", result_table(data, works),
                      counting_table(data, works), "", works_table(data, works), "",
                      made_by(data)])


def plot_rows(data, works):
    for work, results in measured(data, works):
        taken, time = {}, {}
        for kind in data["kinds"]:
            value = version(results, kind["key"])
            if value:
                taken[kind["key"]] = (less(version(results, "original")["taken"],
                                           value["taken"]), None, None)
                saved = time_less(results, kind["key"])
                if saved:
                    time[kind["key"]] = saved
        yield {"name": work.name, "paper": work.paper, "taken": taken, "time": time}


def write(data, works, text, directory):
    """Write the plot, and the text between the markers in results.md."""
    with open(os.path.join(directory, PLOT), "w", encoding="utf-8") as f:
        f.write(figure3plot.svg(list(plot_rows(data, works)),
                                [(k["key"], k["title"]) for k in data["kinds"]]))
    path = os.path.join(directory, "results.md")
    with open(path, encoding="utf-8") as f:
        whole = f.read()
    start, end = whole.index(BEGIN) + len(BEGIN), whole.index(END)
    whole = f"{whole[:start]}\n\n![Time saved by each kind of profile]({PLOT})\n\n{wrapped(text)}\n\n" + \
        whole[end:]
    with open(path, "w", encoding="utf-8") as f:
        f.write(whole)
