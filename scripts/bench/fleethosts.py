# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks of fleets: profiles of hosts that are drawn from real samples, put into a fleet's
database and read as morph-fleet pull reads them."""

import itertools
import os
import sqlite3
import subprocess
from collections import Counter

from benchlib import BUILD, ENV, Failure, last_line
from fleetrows import CHUNK, encode


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def decode(base, data):
    """As mp_chunk_decode(): yields (address, count)."""
    at, following, count = 0, base, 1
    while at < len(data):
        token, at = varint(data, at)
        if token & 3 == 3:
            count, at = varint(data, at)
        elif token & 3:
            count = token & 3
        following += token >> 2
        yield following, count
        following += 1


def read_store(db, path):
    """The key of the module in the fleet, in hex, and its counts."""
    store = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    key, text_hash, build_id, size = store.execute(
        "SELECT key, text_hash, build_id, text_size FROM module WHERE path = ? ORDER BY last_s DESC LIMIT 1",
        (os.path.realpath(path),)).fetchone() or (None, 0, b"", 0)
    if key is None:
        raise Failure(f"{db}: no samples of {path}")
    counts = Counter()
    for chunk, data in store.execute(
            "SELECT c.chunk, c.data FROM chunk c JOIN bucket b ON b.key = c.bucket WHERE b.module = ?", (key,)):
        for address, count in decode(chunk * CHUNK, data):
            counts[address] += count
    store.close()
    return f"{text_hash & (1 << 64) - 1:016x}{build_id.hex()}", counts, size


class Draw:
    """Draws samples from a profile."""

    def __init__(self, counts):
        self.places = sorted(counts)
        self.sums = list(itertools.accumulate(counts[p] for p in self.places))

    def samples(self, nr, rng):
        return Counter(rng.choices(self.places, cum_weights=self.sums, k=nr))


class Fleet:
    """A fleet's database, which holds one set of hosts at a time."""

    def __init__(self, admin, today):
        self.admin, self.today = admin, today

    def sql(self, statement, text=None):
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.admin,
                               "-c", statement], input=text, capture_output=True, text=True)
        if done.returncode:
            raise Failure(last_line(done.stderr.encode()))
        return done.stdout.strip()

    def put(self, module, profiles):
        """Replace what the database has. profiles: the counts of each host."""
        rows = []
        for host, counts in enumerate(profiles, 1):
            parts = {}
            for address in sorted(counts):
                parts.setdefault(address // CHUNK, []).append((address, counts[address]))
            for chunk, part in parts.items():
                rows.append(f"\\\\x{module}\t0\t{chunk}\t{self.today}\t{host}\t1\t{self.today}\tf\t1\t"
                            f"{sum(n for _, n in part)}\t\\\\x{encode(chunk * CHUNK, part).hex()}\n")
        self.sql(f"TRUNCATE fleet.evidence; INSERT INTO fleet.module(module, kind) VALUES ('\\x{module}', 0) "
                 "ON CONFLICT DO NOTHING; INSERT INTO fleet.host(name) SELECT 'simulated' || i FROM "
                 f"generate_series(1, {len(profiles)}) i ON CONFLICT DO NOTHING")
        self.sql("COPY fleet.evidence FROM STDIN", "".join(rows))
        self.sql("ANALYZE fleet.evidence")

    def pull(self, binary, db, *options):
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(db + suffix):
                os.unlink(db + suffix)
        done = subprocess.run([f"{BUILD}/morph-fleet", "pull", "-d", self.admin, "-o", db, *options, binary],
                              capture_output=True, env=ENV)
        if done.returncode:
            raise Failure(f"morph-fleet pull: {last_line(done.stderr)}")
        return db
