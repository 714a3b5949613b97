# SPDX-License-Identifier: Apache-2.0
"""Compares the stacks of a program and of a version in which functions replace calls of them.

Both run on this machine's processor under `morphd run --stacks`; the version's samples count for the original. Trees of
contexts are compared with each other, call graphs with the exact one of tests/plugin/contexts.c.
"""

import json
import os
import shutil
import subprocess

import contextfile as cf
import contextgraph
import contextrun
from contextfile import Failure


def tool(name, *args):
    made = subprocess.run([os.path.join(contextrun.BUILD, name), *args], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if made.returncode:
        raise Failure(f"{name} {' '.join(args[:4])}: {made.stderr.strip()}")
    return made.stdout


def sample(program, args, database, opts, record=None):
    """Runs @program again and again until enough samples have contexts. @record: called with each run's recording."""
    recording = database + ".rec"
    for _ in range(1000):
        made = subprocess.run([os.path.join(contextrun.BUILD, "morphd"), "run", "--stacks", "--no-kernel", "--rate",
                               str(opts.rate), "--db", database, *(["--record", recording] if record else []), "--",
                               program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        if made.returncode:
            raise Failure(f"{program}: {made.stderr.strip()}")
        if record:
            record(recording)
            os.unlink(recording)
        rows = tree(database)
        if sum(rows.values()) >= opts.samples:
            return rows
    raise Failure(f"{program}: too few samples")


def tree(database):
    """{path of functions: samples that ended there}"""
    out = {}
    for row in json.loads(tool("morph-stats", "query", "--by=context", "-p", "0", "--db", database, "--json"))["rows"]:
        if row["self_samples"]:
            key = tuple(row["path"])
            out[key] = out.get(key, 0) + row["self_samples"]
    return out


def edges_of(rows):
    """The same as {(caller, callee): samples below}, each edge once in a path."""
    out = {}
    for path, nr in rows.items():
        for edge in set(zip(path, path[1:])):
            out[edge] = out.get(edge, 0) + nr
    return out


def make_version(work, database, stress):
    """Optimises by the samples of @database, which is emptied. @stress: 0, or the seed of --lab=stress-inline.

    Returns (version, replaced calls).
    """
    out = os.path.join(work.directory, "version")
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    version = os.path.join(out, os.path.basename(work.program))
    report = json.loads(tool("morph-optimize", "--db", database, "--report=json", "-o", version,
                             *([f"--lab=stress-inline={stress}"] if stress else []), os.path.realpath(work.program)))
    subprocess.run(["sqlite3", database, "DELETE FROM bucket; DELETE FROM chunk; DELETE FROM context;"
                    "DELETE FROM ledger; DELETE FROM copy_bucket; DELETE FROM copy_chunk;"], check=True)
    return version, report["code"]["inlined"]


def compare(work, opts, exact=None):
    """A row of figures for @work. @exact: the call graph of the exact run."""
    databases = {n: os.path.join(work.directory, n + ".db") for n in ("first", "again", "version", "before")}
    for path in (p + end for p in databases.values() for end in ("", "-wal", "-shm", ".lock", ".rec")):
        if os.path.exists(path):
            os.unlink(path)
    trees = {n: sample(work.program, work.args, databases[n], opts) for n in ("first", "again")}
    shutil.copy(databases["first"], databases["version"])
    version, inlined = make_version(work, databases["version"], opts.stress)
    shutil.copy(databases["version"], databases["before"])

    def replay(recording):
        subprocess.run([os.path.join(opts.before, "morphd"), "--source=replay", "--input", recording, "--db",
                        databases["before"]], stderr=subprocess.DEVNULL, check=True)

    trees["version"] = sample(version, work.args, databases["version"], opts, replay if opts.before else None)
    compared = ["again", "before", "version"] if opts.before else ["again", "version"]
    if opts.before:
        trees["before"] = tree(databases["before"])
    row = {"inlined": inlined, "samples": sum(trees["version"].values())}
    for name in compared:
        row["tree_" + name] = cf.overlap(trees[name], trees["first"])
        row["callers_" + name] = cf.overlap(edges_of(trees[name]), edges_of(trees["first"]))
        if exact:
            row["graph_" + name] = cf.overlap(contextgraph.estimated(
                databases[name], contextgraph.real(work.program), "samples"), exact)
            row["corrected_" + name] = cf.overlap(contextgraph.estimated(
                databases[name], contextgraph.real(work.program)), exact)
    return row


COMPARISONS = {"tree": "tree", "callers": "callers", "graph": "call graph by samples", "corrected": "corrected"}
NAMES = {"again": "original", "before": "without frames", "version": "version"}


def head_of(row):
    """The head of a table whose rows are as @row."""
    columns = [f"{COMPARISONS[c]}: {NAMES[n]}" for c in COMPARISONS for n in NAMES if f"{c}_{n}" in row]
    return "| program | replaced calls | samples | " + " | ".join(columns) + " |\n|---|" + "---|" * (2 + len(columns))


def line_of(name, row):
    return (f"| {name} | {row['inlined']} | {row['samples']:,} | "
            + " | ".join(f"{row[f'{c}_{n}']:.1f} %" for c in COMPARISONS for n in NAMES if f"{c}_{n}" in row) + " |")
