# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks: paths, commands that make a version of a program with Morph and with
BOLT, and counting. The bench scripts decide what to measure."""

import json
import math
import os
import re
import shlex
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
PROGRAMS = os.environ.get("PROGRAMS", os.path.join(BUILD, "programs"))
BOLT = "/usr/lib/llvm-19/bin"
BOLT_FLAGS = {
    "usual": ["-reorder-blocks=ext-tsp", "-reorder-functions=cdsort", "-split-functions",
              "-split-all-cold", "-icf=1"],
    "best": ["-reorder-blocks=cache", "-reorder-functions=cdsort"],
}
ENV = dict(os.environ, LC_ALL="C", BUILD=BUILD)


class Failure(Exception):
    """A command failed; the text says which and how."""


def shell(command, cwd, **kw):
    return subprocess.run(command, cwd=cwd, env=ENV, check=True, **kw)


def quiet(command, cwd):
    """Run a command; raise Failure with its last line of messages."""
    done = subprocess.run(command, cwd=cwd, env=ENV, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    if done.returncode:
        status = done.returncode
        how = f"status {status}" if status > 0 else f"killed by {signal.Signals(-status).name}"
        raise Failure(f"{os.path.basename(command[0])}: {how}: {last_line(done.stderr)}")


def last_line(text):
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"


def workload(name, kind, *program):
    """A command of scripts/works/workloads, or its filter."""
    out = subprocess.run([os.path.join(ROOT, "scripts/works/workload"), name, kind, *program],
                         check=True, capture_output=True, text=True, env=ENV)
    return out.stdout.strip()


def names(which="--names"):
    return subprocess.run([os.path.join(ROOT, "scripts/works/workload"), which], check=True,
                          capture_output=True, text=True).stdout.split()


def measured(steps, cwd):
    """Run commands one after the other: (total wall seconds, greatest resident MiB of one)."""
    seconds, peak = 0.0, 0.0
    for command in steps:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=ENV, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise Failure(f"{' '.join(map(str, command))}: status {process.returncode}")
        seconds += time.monotonic() - start
        peak = max(peak, usage.ru_maxrss / 1024)
    return seconds, peak


# ---- samples and exact counts ---------------------------------------------

def morph_sample(name, binary, cwd, db):
    """Sample the training work with Morph's own collector."""
    quiet([f"{BUILD}/morphd", "run", f"--db={db}", "--", "sh", "-c",
           workload(name, "train", binary)], cwd)


def perf_record_command(name, binary, data):
    return ["perf", "record", "--buildid-mmap", "-q", "-e", "cpu-clock:u", "-F", "4000", "-o", data,
            "--", "sh", "-c", workload(name, "train", binary)]


def perf2bolt_command(binary, data, fdata):
    return [f"{BOLT}/perf2bolt", "-p", data, "-nl", "-o", fdata, binary]


def bolt_command(binary, out, fdata, flags, skip=()):
    """@fdata: the profile; None: without one."""
    skipping = ["-skip-funcs=" + ",".join(skip)] if skip else []
    data = ["-data", fdata] if fdata else []
    return [f"{BOLT}/llvm-bolt", binary, "-o", out, *data, *flags, *skipping]


def morph_command(binary, db, out, *options):
    return [f"{BUILD}/morph-optimize", f"--db={db}", "--report=json", *options, "-o", out, binary]


REFUSED = re.compile(r"BOLT-ERROR: .* in function (\S+)\. Consider adding this function to "
                     r"--skip-funcs")


def bolt(binary, out, fdata, flags, cwd, skip=()):
    """Run llvm-bolt; if it names a function that it cannot process, repeat without that function.

    Return: the skipped functions. Raises Failure if skipping does not help.
    """
    skip = list(skip)
    while True:
        done = subprocess.run(bolt_command(binary, out, fdata, flags, skip), cwd=cwd, env=ENV,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not done.returncode:
            return skip
        named = REFUSED.search(done.stdout.decode(errors="replace"))
        if not named or named.group(1) in skip:
            raise Failure(f"llvm-bolt: status {done.returncode}: {last_line(done.stdout)}")
        skip.append(named.group(1))


# ---- counting -------------------------------------------------------------

def branches(name, binary, original, cwd, patches=None, edges=None):
    """Exact counts of one version on the short test work, and the digest of its output."""
    command = shlex.split(workload(name, "short", "PROGRAM"))[1:]
    extra = [*(["--patches", patches] if patches else []), *(["--edges", edges] if edges else [])]
    done = subprocess.run([os.path.join(ROOT, "scripts/bench/branches"), "--json", "--argv0", original,
                           "--filter", workload(name, "filter"), *extra, binary, "--", *command],
                          cwd=cwd, capture_output=True, text=True, env=ENV)
    if done.returncode:
        said = last_line(done.stderr.encode())
        raise Failure(said.removeprefix("branches: ").removeprefix(f"{binary}: "))
    counts = json.loads(done.stdout)
    main = next(f for f in counts["files"] if f["main"])
    tally = {k: main["all"][k] for k in ("instructions", "taken_branches", "cond", "indirect",
                                         "lines", "pages")}
    total = main["all"]["instructions"]
    return dict(tally, moved=main["moved"]["instructions"] / total, status=counts["status"],
                output=counts["stdout_sha256"])


def cachegrind(name, binary, cwd):
    """Misses of a typical first-level instruction cache: 32 KiB, 8 ways.

    Libraries and the dynamic linker are counted too, as they share the cache.
    """
    out = binary + ".cachegrind"
    tool = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", "--I1=32768,8,64",
            "--D1=32768,8,64", "--LL=8388608,16,64", f"--cachegrind-out-file={out}"]
    quiet([*tool, *shlex.split(workload(name, "short", binary))], cwd)
    events = summary = None
    with open(out, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("events:"):
                events = line.split()[1:]
            elif line.startswith("summary:"):
                summary = line.split()[1:]
    os.unlink(out)
    if not events or not summary:
        raise Failure(f"{binary}: cachegrind wrote no summary")
    counts = dict(zip(events, map(int, summary)))
    return {"instructions": counts["Ir"], "i1_misses": counts["I1mr"]}


def anonymous_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next((int(l.split()[1]) for l in f if l.startswith("RssAnon:")), 0)


def watched(command, cwd=None):
    """Run the command, observed every millisecond: (stdout, CPU seconds, [(wall, CPU, anonymous
    KiB)])."""
    rows = []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=ENV, stdout=out, stderr=err)
        # The clock of all its threads, ended ones included: see clock_getcpuclockid(3).
        clock = ~process.pid << 3 | 2
        while True:
            try:
                rows.append((time.monotonic() - start, time.clock_gettime(clock),
                             anonymous_kib(process.pid)))
            except OSError:
                pass
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.001)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise Failure(f"{os.path.basename(command[0])}: status {process.returncode}: "
                          + last_line(err.read()))
        return out.read(), usage.ru_utime + usage.ru_stime, rows


def mean(values):
    values = list(values)
    return sum(values) / len(values)


# Student's t, two-sided 99 %, for 1 to 30 degrees of freedom.
T99 = (63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95,
       2.92, 2.90, 2.88, 2.86, 2.85, 2.83, 2.82, 2.81, 2.80, 2.79, 2.78, 2.77, 2.76, 2.76, 2.75)


def ratio(a, b):
    """Geometric mean of a / b over the pairs, and its 99 % interval."""
    logs = [math.log(x / y) for x, y in zip(a, b)]
    t = T99[min(len(logs) - 1, len(T99)) - 1]
    middle, half = statistics.mean(logs), t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def exact_interval(count, of, level=0.95):
    """Clopper and Pearson's interval of a share of which @count in @of trials were seen."""
    def tail(p, ks):
        return sum(math.comb(of, k) * p ** k * (1 - p) ** (of - k) for k in ks)

    def solve(ks, rises):
        """The share at which the chance of a count in @ks is half of what may be missed."""
        low, high = 0.0, 1.0
        for _ in range(60):
            p = (low + high) / 2
            low, high = (p, high) if (tail(p, ks) < (1 - level) / 2) == rises else (low, p)
        return low

    return (solve(range(count, of + 1), True) if count else 0.0,
            solve(range(count + 1), False) if count < of else 1.0)


def share_of(count, of):
    """As text: a share in percent, with its exact 95 % interval."""
    low, high = exact_interval(count, of)
    return f"{100 * count / of:.2f} % (exact 95 % interval {100 * low:.2f} to {100 * high:.2f} %)"
