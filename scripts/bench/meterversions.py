# SPDX-License-Identifier: Apache-2.0
"""Versions of a program that count, for scripts/bench/meter: written, run, and watched as the worker watches them."""

import contextlib
import json
import os
import shutil
import subprocess

import benchlib as lib
from benchlib import BUILD, ENV, Failure


class Tool:
    """build/tools/everyday, which answers each line with one."""

    def __init__(self, *words):
        self.process = subprocess.Popen([f"{BUILD}/tools/everyday", *map(str, words)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failure(self.process.stderr.read().strip() or "everyday: it said nothing")
        return json.loads(line)

    def ask(self, line):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        return self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


class Version:
    """A version of a work's file, in a directory of its own, with its counts."""

    def __init__(self, work, where, *options):
        self.work, self.where = work, where
        shutil.rmtree(where, ignore_errors=True)
        os.makedirs(f"{where}/run")
        os.makedirs(f"{where}/counts")
        os.chmod(f"{where}/counts", 0o1777)
        self.file = f"{where}/{os.path.basename(work.path)}"
        lib.quiet([f"{BUILD}/morph-optimize", "instrument", "--all", "--report=none", f"--counts={where}/counts/%u",
                   *options, "-o", self.file, work.path], where)
        self.executed = self.file
        if work.executed:
            self.executed = f"{where}/{os.path.basename(work.executed)}"
            shutil.copy2(work.executed, self.executed)

    def windows(self):
        return Tool("windows", self.file, f"{self.where}/counts", self.executed)

    @contextlib.contextmanager
    def serving(self):
        """The work's server, if it has one, runs."""
        server = self.work.start(self)
        try:
            yield
        finally:
            self.work.stop(server)

    def run(self, unit):
        """Run a unit. Return: CPU seconds of all its processes."""
        process = subprocess.Popen(["sh", "-ec", unit], cwd=f"{self.where}/run", stdin=subprocess.DEVNULL,
                                   env=dict(ENV, P=self.executed, W=self.work.where),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise Failure(f"{self.work.name}: {unit[:300]}: status {process.returncode}: {lib.last_line(said)}")
        return usage.ru_utime + usage.ru_stime


def metered(work, where, places, *options):
    """A version with counters at @places."""
    with open(f"{where}.places", "w", encoding="ascii") as f:
        f.writelines(f"{p}\n" for p in places)
    kind = [] if any(o.startswith("--kind") for o in options) else ["--kind=meter"]
    return Version(work, where, "--layout=original", f"--meter={where}.places", *kind, *options)


def placed(counting, tool, counters, where, places, *options):
    """A version with one more place: the first of @counters that may hold a stub."""
    last = f"{counting.work.name}: no other counter"
    for counter in counters:
        try:
            return metered(counting.work, where, [*places, tool.ask(f"place {counter}")["place"]], *options)
        except Failure as failure:
            last = failure
    raise Failure(last)
