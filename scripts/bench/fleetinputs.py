#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleetinputs - a fleet's profile beside the profile of one of its hosts; bench-fleet-inputs runs it.

Samples each program at twelve kinds of work (fleetworks.py). A host does one of them, and has few samples: drawn
from those of its kind. `morph-fleet pull' gives the robust sum of all hosts. The unseen input is the test work of
scripts/works/workloads; its exact counts are from an emulator.

Without --attack: how many taken branches a layout by the fleet's profile saves on the unseen input, and layouts by
the profiles of single hosts, one of each kind; and, as bounds, layouts by the exact counts of all hosts' work and by
those of the unseen input itself. Prints the savings by the editor's own model on exact counts
(tests/tools/accuracy), and, for the fleet and for --run=N of the hosts, those of versions that were written and run.

With --attack: honest hosts and one more host that sends the counts it likes. Prints by how many points each
strategy changes what the layout saves, on exact counts of the honest hosts' work and of the unseen input, and for
comparison what one more honest host changes. --draws=N repeats this with other honest hosts. --rule= adds the profiles
up in another way than morph-fleet pull (fleetrules.py).
"""

import argparse
import bisect
import json
import os
import random
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from statistics import median

sys.dont_write_bytecode = True

import benchlib as lib  # noqa: E402
from benchlib import BUILD, ENV, PROGRAMS, Failure, ROOT, mean, workload  # noqa: E402
from fleethosts import Draw, Fleet, read_store, varint  # noqa: E402
from fleetrules import RULES, function_starts  # noqa: E402
from fleetworks import prepare, works  # noqa: E402

FIVE = ("speedtest1", "lua", "gzip", "sort", "bash")
RATE = 9973
# Each of its processes would write a file of counts.
NOT_COUNTED = ("subshells",)
# Honest hosts that are added instead of the poisoning one.
CONTROLS, HONEST = 4, "one more honest host"


class Program:
    def __init__(self, name, opts, fleet, scratch):
        self.name, self.opts, self.fleet = name, opts, fleet
        self.binary = f"{PROGRAMS}/{name}-pie"
        self.dir = os.path.join(scratch, name)
        os.makedirs(self.dir, exist_ok=True)
        prepare(self.dir, os.path.join(BUILD, "inputs"))
        for text, level in (("text-train.txt", 6), ("mixed-train.bin", 9)):
            with open(os.path.join(self.dir, text.split("-")[0] + ".gz"), "wb") as out:
                subprocess.run(["gzip", f"-{level}nc", os.path.join(BUILD, "inputs", text)], stdout=out, check=True)
        with open(os.path.join(self.dir, "noise.gz"), "wb") as out:
            subprocess.run(["gzip", "-nc", os.path.join(self.dir, "noise")], stdout=out, check=True)

    def file(self, name):
        return os.path.join(self.dir, name)

    def made(self, name, make):
        if not os.path.exists(self.file(name)):
            make(self.file("new"))
            os.rename(self.file("new"), self.file(name))
        return self.file(name)

    # ---- real samples, and exact counts

    def work(self, command, binary):
        lines = command.replace("{}", shlex.quote(binary)).replace("$INPUTS", os.path.join(BUILD, "inputs"))
        return ["sh", "-c", f"rm -f *.db-journal [a-z].db*; {{ {lines}; }} >out"]

    def sample(self):
        self.runs = []
        for i, (kind, command) in enumerate(works(self.name)):
            db = self.made(f"{i}.samples", lambda db, command=command: lib.quiet(
                [f"{BUILD}/morphd", "run", "--no-kernel", f"--rate={RATE}", f"--db={db}", "--",
                 *self.work(command, self.binary)], self.dir))
            self.module, counts, self.text_size = read_store(db, self.binary)
            if self.opts.leave_out:
                starts = function_starts(self.binary)
                function = bisect.bisect_right(starts, int(self.opts.leave_out, 16))
                counts = Counter({a: n for a, n in counts.items() if bisect.bisect_right(starts, a) != function})
            self.runs.append((kind, counts))

    def count_test(self):
        """Exact counts of the unseen input."""
        def run(path):
            command = shlex.split(workload(self.name, "short", "PROGRAM"))[1:]
            done = subprocess.run([f"{ROOT}/scripts/bench/branches", "--json", "--argv0", self.binary, "--filter",
                                   workload(self.name, "filter"), "--callgrind", self.file("callgrind"), self.binary,
                                   "--", *command], cwd=self.dir, env=ENV, capture_output=True)
            if done.returncode:
                raise Failure(lib.last_line(done.stderr))
            lib.quiet([f"{BUILD}/morph-stats", "import", f"--db={path}", self.file("callgrind")], self.dir)
        self.test = self.made("test.db", run)

    def count_works(self, db):
        """Exact counts of the hosts' work, by a version with counters."""
        def run(path):
            version = self.file("counting")
            lib.quiet([f"{BUILD}/morph-optimize", "instrument", "--report=none", f"--db={db}",
                       f"--counts={self.file('%p.counts')}", "-o", version, self.binary], self.dir)
            for kind, command in works(self.name):
                if kind not in NOT_COUNTED:
                    lib.quiet(self.work(command, version), self.dir)
            counts = [self.file(f) for f in os.listdir(self.dir) if f.endswith(".counts")]
            lib.quiet([f"{BUILD}/morph-stats", "import", f"--db={path}", f"--binary={version}", *counts], self.dir)
            for path in counts:
                os.unlink(path)
        self.train = self.made("train.db", run)

    # ---- layouts

    def saved(self, db, source="samples", train=None):
        """Taken branches that a layout by this profile saves, in percent: on the hosts' work, on the unseen input.
        source "exact": by the exact counts of the hosts' work instead, or by those in train."""
        done = subprocess.run([f"{BUILD}/tools/accuracy", f"--samples={db}", f"--train={train or self.train}",
                               f"--test={self.test}", "--only=samples", self.binary], capture_output=True, env=ENV)
        if done.returncode:
            raise Failure(lib.last_line(done.stderr))
        rows = {r["source"]: r for r in json.loads(done.stdout)["rows"]}
        return [100 * (1 - rows[source][k]) for k in ("train", "test")]

    def foreign(self):
        """Which part of the unseen input's taken branches no host ever takes, in percent."""
        taken = {(start, to) for start, to, _ in read_edges(self.train)}
        counts = [(count, (start, to) in taken) for start, to, count in read_edges(self.test)]
        return 100 * sum(n for n, known in counts if not known) / sum(n for n, _ in counts)

    def written(self, db):
        """The same on the unseen input, of a version that is written and run."""
        out = self.file("version")
        lib.quiet(lib.morph_command(self.binary, db, out, "--min-samples=1"), self.dir)
        if not hasattr(self, "before"):
            self.before = lib.branches(self.name, self.binary, self.binary, self.dir)
        after = lib.branches(self.name, out, self.binary, self.dir)
        if any(after[k] != self.before[k] for k in ("output", "status")):
            raise Failure(f"{self.name}: the version behaves differently")
        return 100 * (1 - after["taken_branches"] / self.before["taken_branches"])

    def layout(self, profiles, *options, rule=None):
        if rule:
            profiles, options = [RULES[rule](profiles, function_starts(self.binary))], ("--cap=1",)
        self.fleet.put(self.module, profiles)
        return self.fleet.pull(self.binary, self.file("pulled.db"), *options)

    # ---- hosts

    def hosts(self, nr, rng):
        """Profiles of hosts. Their kinds take turns; some hosts have several times as many samples as others."""
        draws = [Draw(counts) for _, counts in self.runs]
        return [draws[i % len(draws)].samples(max(1, round(self.opts.samples * rng.lognormvariate(0, 0.7))), rng)
                for i in range(nr)]


# ---- the fleet's profile beside one host's ----------------------------------

def compare(p, rng):
    draws = [Draw(counts) for _, counts in p.runs]
    db = p.layout(p.hosts(p.opts.hosts, rng))
    p.count_works(db)
    fleet_own, fleet = p.saved(db)
    exact_own, exact = p.saved(db, "exact")
    best = p.saved(db, "exact", p.test)[1]
    real_fleet = p.written(db) if p.opts.run else None
    own, real = [], []
    for i, (kind, _) in enumerate(p.runs):
        db = p.layout([draws[i].samples(p.opts.samples, rng)], "--cap=1")
        own.append((p.saved(db)[1], kind))
        if p.opts.run and i % max(1, len(p.runs) // p.opts.run) == 0 and len(real) < p.opts.run:
            real.append((p.written(db), kind))
        if p.opts.verbose:
            print(f"  {p.name}: one host, {kind}: {own[-1][0]:.1f}", flush=True)
    gains = sorted(fleet - s for s, _ in own)
    cells = [p.name, f"{sum(sum(c.values()) for _, c in p.runs):,}", f"{fleet:.1f}",
             f"{mean([s for s, _ in own]):.1f}", "{:.1f} ({})".format(*min(own)), "{:.1f} ({})".format(*max(own)),
             f"{mean(gains):+.1f}", f"{median(gains):+.1f}", f"{gains[0]:+.1f}", f"{sum(g >= 4 for g in gains)} of {len(gains)}",
             f"{p.foreign():.1f}", f"{exact:.1f}", f"{best:.1f}", f"{fleet_own:.1f}", f"{exact_own:.1f}"]
    if p.opts.run:
        cells += [f"{real_fleet:.1f}", f"{mean([s for s, _ in real]):.1f}", f"{mean([real_fleet - s for s, _ in real]):+.1f}"]
    print("| " + " | ".join(cells) + " |", flush=True)
    return gains


def compare_all(programs, opts, rng):
    print(f"{opts.hosts} hosts with {opts.samples} samples each (median), of {len(works('gzip'))} kinds of work; taken branches "
          "saved on an unseen input, %")
    titles = ["program", "real samples", "fleet", "one host, mean", "worst", "best", "fleet's lead, mean",
              "median", "least", "lead of 4 points", "taken by no host", "exact counts of the hosts' work", "of the unseen input",
              "fleet, on the hosts' work", "exact counts, on the hosts' work"]
    if opts.run:
        titles += ["fleet, written", f"{opts.run} hosts, written", "lead, written"]
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|", flush=True)
    gains = [compare(p, rng) for p in programs]
    for what, value in (("mean", mean), ("median", median)):
        leads = [value(g) for g in gains]
        print(f"{what} lead of the fleet: {mean(leads):+.1f} points on average, at least 4 for {sum(l >= 4 for l in leads)} of "
              f"{len(leads)} programs")


# ---- a poisoning host -------------------------------------------------------

def read_edges(db):
    """Yields (from, to, count) of the jumps and calls in an exact profile."""
    store = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    for chunk, data in store.execute("SELECT chunk, data FROM edge_chunk"):
        at, start, to, count, first = 0, chunk << 16, 0, 1, True
        while at < len(data):
            token, at = varint(data, at)
            target, at = varint(data, at)
            if token >> 3 == 0 and not first:
                to += target + 1
            else:
                start += token >> 3
                to = start + (-(target + 1) // 2 if target & 1 else target // 2)
            if token & 3 == 3:
                count, at = varint(data, at)
            elif token & 3:
                count = token & 3
            if token & 4:
                _, at = varint(data, at)
            first = False
            yield start, to, count
    store.close()


def turned(p, honest, budget, most=None):
    """The attacker knows the exact counts, and the honest hosts' samples. It makes the less frequent ways of branches
    look more frequent: those first where this costs the fewest samples for each execution. most: where it has no more
    samples of an address than this, so that another host confirms them all."""
    _, executed, _ = read_store(p.test, p.binary)
    code, places = sorted(executed), sorted(honest)

    def mass(address):
        """Honest samples from this address on, in as many bytes as a block usually has."""
        return sum(honest[a] for a in places[bisect.bisect_left(places, address):bisect.bisect_left(places, address + 24)])

    found = []
    for start, to, taken in read_edges(p.test):
        falls = executed.get(start, 0) - taken
        after = bisect.bisect_right(code, start)
        if taken > 0 and falls > 0 and after < len(code):
            usual, other = (to, code[after]) if taken > falls else (code[after], to)
            need = max(1, 1 + int(1.5 * mass(usual)) - mass(other))
            found.append((abs(taken - falls) / need, other, need))
    counts = Counter()
    for _, address, need in sorted(found, reverse=True):
        if most:
            for place in places[bisect.bisect_left(places, address):bisect.bisect_left(places, address + 24)]:
                if place not in counts and most[place] <= budget:
                    counts[place] = most[place]
                    budget -= most[place]
        elif need <= budget and address not in counts:
            counts[address] += need
            budget -= need
    return counts


def inside(honest, starts, what, rng):
    """As many samples of each function as honest hosts have, at the wrong addresses of the function."""
    functions = {}
    for address, count in honest.items():
        functions.setdefault(bisect.bisect_right(starts, address), {})[address] = count
    counts = Counter()
    for function in functions.values():
        most, total = max(function.values()), sum(function.values())
        wrong = [most / n for n in function.values()] if what == "inverted" else rng.sample(list(function.values()), len(function))
        for address, n in zip(function, wrong):
            counts[address] = max(1, round(n * total / sum(wrong)))
    return counts


def strategies(p, profiles, honest, cap, rng):
    """(name, counts) of hosts that poison."""
    highest = Counter()
    for counts in profiles:
        highest |= counts
    places = sorted(honest)
    low, high = places[0], places[-1]
    cold = [a for a in range(low, high, 4) if a not in honest]
    near = [a + d for a in places for d in (-9, -5, 5, 9, 17) if a + d not in honest]
    shuffled = list(honest.values())
    rng.shuffle(shuffled)
    most = max(honest.values())
    yield "huge counts in cold code", Counter(dict.fromkeys(rng.sample(cold, min(len(cold), 2000)), 1 << 30))
    yield "all below the cap, in cold code", Counter(rng.choices(cold, k=cap))
    yield "beside hot code", Counter(rng.choices(near, k=4 * cap))
    yield "inverted", Counter({a: 1 + most // c for a, c in honest.items()})
    yield "shuffled", Counter(dict(zip(places, shuffled)))
    yield "each address times 10^-2 to 10^2", Counter({a: max(1, int(c * 10 ** rng.uniform(-2, 2))) for a, c in honest.items()})
    one = rng.choice(places)
    yield "one function", Counter({a: 1000 for a in range(one & ~255, (one & ~255) + 256, 3)})
    yield "one address", Counter({places[len(places) // 2]: 1 << 40})
    yield "new 64 KiB only", Counter({a: 50 for a in range((high | 0xffff) + 1, (high | 0xffff) + 9000, 5)})
    for budget, what in ((cap, "below the cap"), (3 * cap, "three times the cap")):
        counts = turned(p, honest, budget)
        yield f"{len(counts)} turned branches, {what}", counts
    starts = function_starts(p.binary)
    for what in ("inverted", "shuffled"):
        yield f"{what} in each function", inside(honest, starts, what, rng)
    yield "turned branches, as much as others confirm", turned(p, honest, cap, highest)
    yield "everything that others confirm", highest


def attack(p, rng):
    profiles = p.hosts(p.opts.honest + CONTROLS, rng)
    more, profiles = profiles[p.opts.honest:], profiles[:p.opts.honest]
    totals = sorted(sum(c.values()) for c in profiles)
    cap = totals[-(-9 * len(totals) // 10) - 1]
    honest = sum(profiles, Counter())
    before = p.saved(p.layout(profiles, *p.opts.pull, rule=p.opts.rule))
    print(f"{p.name}: {len(profiles)} honest hosts with {sum(totals)} samples, cap {cap}; saved {before[0]:.2f} % of their taken "
          f"branches, {before[1]:.2f} % on the unseen input", flush=True)
    worst = {True: (0, "none"), False: (0, "none")}
    for name, counts in [*((HONEST, c) for c in more), *strategies(p, profiles, honest, cap, rng)]:
        if not counts:
            continue
        after = p.saved(p.layout(profiles + [counts], *p.opts.pull, rule=p.opts.rule))
        change = [a - b for a, b in zip(after, before)]
        print(f"  {name}: {change[0]:+.2f} points, {change[1]:+.2f} on the unseen input", flush=True)
        worst[name == HONEST] = min(worst[name == HONEST], (min(change), name))
    print(f"  worst: {worst[False][0]:+.2f} points by {worst[False][1]}; by an honest host {worst[True][0]:+.2f}", flush=True)
    return before, worst[False][0], worst[True][0]


def attack_all(p):
    """Several draws of honest hosts. Returns the worst change in points."""
    p.count_works(p.layout(p.hosts(p.opts.hosts, random.Random(p.opts.seed))))
    draws = [attack(p, random.Random(p.opts.seed + i)) for i in range(p.opts.draws)]
    worst = [w for _, w, _ in draws]
    print(f"{p.name}, {len(draws)} draws of {p.opts.honest} hosts: saved {mean([b[0] for b, _, _ in draws]):.2f} % and "
          f"{mean([b[1] for b, _, _ in draws]):.2f} % on the unseen input; the worst strategy {mean(worst):+.2f} points on average, "
          f"{min(worst):+.2f} at worst, more than 1 in {sum(w < -1 for w in worst)}; an honest host "
          f"{min(h for _, _, h in draws):+.2f} at worst", flush=True)
    return min(worst)


def main():
    p = argparse.ArgumentParser(prog="bench-fleet-inputs", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name", nargs="*", help=f"programs (default: {' '.join(FIVE)})")
    p.add_argument("--admin", help=argparse.SUPPRESS)
    p.add_argument("--hosts", type=int, default=1000, help="hosts of the fleet (default 1000)")
    p.add_argument("--samples", type=int, default=2000, help="samples of a host in the program, median (default 2000)")
    p.add_argument("--run", type=int, default=0, help="write and run so many hosts' versions, and the fleet's")
    p.add_argument("--leave-out", metavar="ADDRESS", help="no host has samples of the function there (in hex)")
    p.add_argument("--attack", action="store_true", help="poisoning hosts instead")
    p.add_argument("--honest", type=int, default=50, help="honest hosts with --attack (default 50)")
    p.add_argument("--pull", action="append", default=[], metavar="OPTION", help="of morph-fleet pull, with --attack")
    p.add_argument("--rule", choices=sorted(RULES), help="add profiles up in this way, with --attack (fleetrules.py)")
    p.add_argument("--draws", type=int, default=1, help="draws of honest hosts, with --attack (default 1)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--verbose", action="store_true", help="print each host's result")
    p.add_argument("--keep", metavar="DIR", help="keep samples and exact counts here, and use what is there")
    opts = p.parse_args()
    fleet = Fleet(opts.admin, int(time.time()) // 86400)
    with tempfile.TemporaryDirectory(prefix="fleetinputs.") as scratch:
        programs = [Program(name, opts, fleet, os.path.abspath(opts.keep or scratch)) for name in opts.name or FIVE]
        for program in programs:
            program.sample()
            program.count_test()
        if not opts.attack:
            compare_all(programs, opts, random.Random(opts.seed))
            return 0
        worst = min(attack_all(program) for program in programs)
        print(f"the worst of all: {worst:+.2f} points")
        return 0 if worst > -1 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"bench-fleet-inputs: {failure}")
    except KeyboardInterrupt:
        sys.exit(1)
