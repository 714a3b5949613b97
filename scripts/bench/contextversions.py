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


def sample(program, args, database, least, rate):
    """Runs @program again and again until @least samples have contexts."""
    for _ in range(1000):
        made = subprocess.run([os.path.join(contextrun.BUILD, "morphd"), "run", "--stacks", "--no-kernel", "--rate",
                               str(rate), "--db", database, "--", program, *args], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if made.returncode:
            raise Failure(f"{program}: {made.stderr.strip()}")
        rows = tree(database)
        if sum(rows.values()) >= least:
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


def make_version(work, database):
    """Optimises by the samples of @database, which is emptied. Returns (version, replaced calls)."""
    out = os.path.join(work.directory, "version")
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    version = os.path.join(out, os.path.basename(work.program))
    report = json.loads(tool("morph-optimize", "--db", database, "--report=json", "-o", version,
                             os.path.realpath(work.program)))
    subprocess.run(["sqlite3", database, "DELETE FROM bucket; DELETE FROM chunk; DELETE FROM context;"
                    "DELETE FROM ledger; DELETE FROM copy_bucket; DELETE FROM copy_chunk;"], check=True)
    return version, report["code"]["inlined"]


def compare(work, least, rate, exact=None):
    """A row of figures for @work. @exact: the call graph of the exact run."""
    database, again, of_version = (os.path.join(work.directory, n + ".db") for n in ("first", "again", "version"))
    for path in (p + end for p in (database, again, of_version) for end in ("", "-wal", "-shm", ".lock")):
        if os.path.exists(path):
            os.unlink(path)
    first = sample(work.program, work.args, database, least, rate)
    second = sample(work.program, work.args, again, least, rate)
    shutil.copy(database, of_version)
    version, inlined = make_version(work, of_version)
    moved = sample(version, work.args, of_version, least, rate)
    row = {"inlined": inlined, "samples": sum(moved.values())}
    for name, rows in (("again", second), ("version", moved)):
        row["tree_" + name] = cf.overlap(rows, first)
        row["edges_" + name] = cf.overlap(edges_of(rows), edges_of(first))
    for name, db in (("again", again), ("version", of_version)) if exact else ():
        for column, key in (("samples", "uncorrected"), ("weight", "corrected")):
            found = contextgraph.estimated(db, contextgraph.real(work.program), column)
            row[f"{key}_{name}"] = cf.overlap(found, exact)
    return row


COLUMNS = ("tree_again", "tree_version", "edges_again", "edges_version", "uncorrected_again", "uncorrected_version",
           "corrected_again", "corrected_version")


def table(rows):
    """Yields the lines of a table, with means."""
    yield ("| program | replaced calls | samples | tree: again | version | callers: again | version | "
           "graph by samples: original | version | corrected: original | version |")
    yield "|---|" + "---|" * 10
    for name, row in rows:
        yield (f"| {name} | {row['inlined']} | {row['samples']:,} | "
               + " | ".join(f"{row[c]:.1f} %" if c in row else "-" for c in COLUMNS) + " |")
