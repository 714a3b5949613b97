# SPDX-License-Identifier: Apache-2.0
"""One of the distribution's own files, for benchmarks: sampled, counted, rewritten, run and
compared. For a library, a program that uses the library runs with LD_LIBRARY_PATH. The scripts
decide which versions to make and how to evaluate the figures."""

import json
import os
import shutil
import subprocess

import benchlib as lib
from benchlib import BUILD, ENV, Failure, ROOT

# The layout of a version with counters, but without the counters.
SAME_LAYOUT = ("instrument", "--lab=kind=none")


class StockFile:
    """A version is a directory that holds a file of the same name: `original', `sampled', ..."""

    def __init__(self, work, inputs, directory):
        self.work, self.inputs, self.dir = work, inputs, directory
        self.stock = work.path()
        os.makedirs(directory, exist_ok=True)

    def file(self, name):
        return os.path.join(self.dir, name)

    def version(self, key):
        return self.file(f"{key}/{self.work.name}")

    def forget(self, *names):
        """Remove the files of an earlier run: versions, stores and files beside the stores."""
        for name in names:
            shutil.rmtree(self.file(name), ignore_errors=True)
            for suffix in ("", "-shm", "-wal", ".lock"):
                if os.path.isfile(self.file(name + suffix)):
                    os.unlink(self.file(name + suffix))

    def original(self):
        """Copy the original to a directory of its own, as each version has one."""
        if not os.path.exists(self.version("original")):
            os.makedirs(self.file("original"), exist_ok=True)
            shutil.copy2(self.stock, self.version("original"))

    def environment(self, key=None):
        """The program's environment; for a library also the directory of this version."""
        env = [f"{k}={v}" for k, v in self.work.env.items()]
        if self.work.library and key:
            env.append(f"LD_LIBRARY_PATH={self.file(key)}")
        return env

    def words(self, key, which):
        """The command of a test with this version."""
        command = self.work.command(which, self.inputs, self.version(key))
        return [shutil.which(command[0]) or command[0], *command[1:]]

    # ---- profiles ---------------------------------------------------------

    def train(self, key=None, *prefix):
        """Run the training work with this version; without a key, with the stock file in place."""
        program = self.version(key) if key else self.stock
        lib.quiet([*prefix, "env", *self.environment(key), "sh", "-c",
                   self.work.command("train", self.inputs, program)], self.dir)

    def sample(self, db, key=None, *options):
        """Timer samples of the training work, of the stock file or of a version."""
        self.forget(db)
        self.train(key, f"{BUILD}/morphd", "run", "--no-kernel", "--rate=4000", *options,
                   f"--db={self.file(db)}", "--")

    def sample_paths(self, key, db, rate=4000):
        """Timer samples of a version that keeps path numbers, with the registers."""
        self.forget(db)
        self.train(key, f"{BUILD}/morphd", "run", "--no-kernel", "--source=perf",
                   "--registers=paths", f"--rate={rate}", f"--db={self.file(db)}", "--")

    def sample_polls(self, key, db):
        """Timer samples of a version that polls, and its answers to polls."""
        self.sample(db, key, f"--polls={self.file(key)}/polls")

    def import_counts(self, key, db):
        """Import the counts of a version with counters; each process wrote a file of its own."""
        self.forget(db)
        where = self.file(f"{key}/counts")
        counted = sorted(os.path.join(where, f) for f in os.listdir(where))
        if not counted:
            raise Failure(f"{self.work.name}: {key}: counted nothing")
        lib.quiet([f"{BUILD}/morph-stats", "import", f"--db={self.file(db)}",
                   f"--binary={self.version(key)}", *counted], self.dir)
        self.empty_counts(key)

    # ---- versions ---------------------------------------------------------

    def optimize(self, key, *options):
        """Write a version; return morph-optimize's report."""
        self.forget(key)
        os.makedirs(self.file(f"{key}/counts"))
        # morphd believes that a version's samples are the original's only if it finds the original, as here beside it.
        shutil.copy2(self.stock, self.file(f"{key}/original"))
        patches = self.file(f"{key}/patches")
        done = subprocess.run([f"{BUILD}/morph-optimize", *options, "--json", f"--lab=list-patches={patches}",
                               self.stock, "-o", self.version(key)],
                              cwd=self.dir, env=ENV, capture_output=True, text=True)
        if done.returncode:
            raise Failure(lib.last_line(done.stderr.encode()).removeprefix("morph-optimize: "))
        if self.work.library:
            # A first line names the file of these ranges, which is not the main program.
            with open(patches, encoding="ascii") as f:
                text = f.read()
            with open(patches, "w", encoding="ascii") as f:
                f.write(f"file={os.path.realpath(self.version(key))}\n{text}")
        return json.loads(done.stdout)

    def counting(self, key, what, *options):
        """A version with counters; each process writes a file of its own."""
        return self.optimize(key, "instrument", f"--kind={what}",
                             f"--counts={self.file(key)}/counts/%p", *options)

    def numbering(self, key, *options):
        """A version that keeps path numbers in registers."""
        return self.optimize(key, "instrument", "--kind=pep", *options)

    def polling(self, key, *options):
        """A version with path numbers that is also polled for its paths."""
        return self.optimize(key, "instrument", "--kind=pep,poll", f"--counts={self.file(key)}/polls",
                             *options)

    # ---- runs -------------------------------------------------------------

    def count(self, key, which="short"):
        """Exact counts of this file's code in a test, and a digest of the output."""
        binary, *args = self.words(key, which)
        patches = self.file(f"{key}/patches")
        clean = getattr(self.work, "clean", "cat")
        done = subprocess.run(
            [os.path.join(ROOT, "scripts/bench/branches"), "--json",
             "--argv0", binary if self.work.library else self.stock,
             *(f"--env={e}" for e in self.environment(key)),
             *([f"--patches={patches}"] if os.path.exists(patches) else []),
             *([f"--filter={clean}"] if clean != "cat" else []), binary, "--", *args],
            cwd=self.dir, env=ENV, capture_output=True, text=True)
        if done.returncode:
            raise Failure(lib.last_line(done.stderr.encode()).removeprefix("branches: "))
        counts = json.loads(done.stdout)
        mine = self.counted(counts, key)
        return {"instructions": mine["all"]["instructions"], "taken": mine["all"]["taken_branches"],
                "indirect": mine["all"]["indirect"],
                "moved": mine["moved"]["instructions"] / mine["all"]["instructions"],
                "moved_branches": mine["moved"]["cond"] / max(1, mine["all"]["cond"]),
                "share": mine["all"]["instructions"] / counts["total"]["instructions"],
                "output": counts["stdout_sha256"], "status": counts["status"]}

    def counted(self, counts, key):
        if not self.work.library:
            return next(f for f in counts["files"] if f["main"])
        real = os.path.realpath(self.version(key))
        mine = next((f for f in counts["files"] if os.path.realpath(f["path"]) == real), None)
        if not mine:
            raise Failure(f"{self.version(key)}: nothing of it ran")
        return mine

    def run_whole(self, key):
        """A test on the processor itself: digest and status."""
        binary, *args = self.words(key, "test")
        done = subprocess.run(["bash", "-c", 'clean=$1; shift; exec -a "$0" "$@" | sh -c "$clean" | '
                               'sha256sum; echo "status ${PIPESTATUS[0]}"',
                               binary if self.work.library else self.stock,
                               getattr(self.work, "clean", "cat"), binary, *args],
                              cwd=self.dir, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=dict(ENV, **dict(e.split("=", 1) for e in self.environment(key))))
        return done.stdout.replace("\n", " ").strip()

    def pairs(self, keys, runs, seed=1):
        """Seconds of every run of these versions in turn, measured by scripts/bench/pairs."""
        binary, *args = self.words(keys[0], "test")
        library = self.work.library
        where = {self.file(key) if library else self.version(key): key for key in keys}
        command = [os.path.join(ROOT, "scripts/bench/pairs"), "--json", f"--runs={runs}",
                   f"--seed={seed}", *(["--library"] if library else []), *where, "--",
                   *([binary] if library else []), *args]
        process = subprocess.Popen(
            command, cwd=self.dir, env=dict(ENV, **dict(e.split("=", 1)
                                                        for e in self.environment())),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        interrupted = False
        while True:
            try:
                out, err = process.communicate()
                break
            except KeyboardInterrupt:
                # When terminated, scripts/bench/pairs prints the rounds that it has.
                interrupted = True
                process.terminate()
        for key in keys:
            self.empty_counts(key)
        if process.returncode:
            raise Failure(lib.last_line(err.encode()).removeprefix("pairs: "))
        return {where[k]: v for k, v in json.loads(out).items()}, interrupted

    def empty_counts(self, key):
        where = self.file(f"{key}/counts")
        if os.path.isdir(where):
            shutil.rmtree(where)
            os.makedirs(where)
