#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleetrows - rows of a simulated fleet, for bench-fleet and tests of sums.

    fleetrows.py copy MODULE HOSTS ADDRESSES DAY   evidence of hosts 1..HOSTS, as COPY's text
    fleetrows.py sum MODULE HOSTS ADDRESSES        the true sum: lines "address count"
    fleetrows.py push MODULE ADDRESSES DAY HOST    arguments of fleet.push_rows() for one host

A module has 1 MiB of text. All hosts run the same hot code, each with an input of its own: some addresses are
far more popular than others, and a host has samples of about ADDRESSES of them. There are 200 different hosts;
the others repeat them.
"""

import random
import sys

TEXT, FIRST, CHUNK = 1 << 20, 0x400000, 1 << 16
DIFFERENT = 200


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(base, counts):
    """As mp_chunk_encode(): counts is a sorted list of (address, count)."""
    out, following, last = bytearray(), base, 1
    for address, count in counts:
        how = 0 if count == last else count if count < 3 else 3
        out += varint((address - following) << 2 | how)
        if how == 3:
            out += varint(count)
        following, last = address + 1, count
    return bytes(out)


def profile(host, addresses):
    """{address: count} of a host."""
    shared = random.Random(addresses)
    places = shared.sample(range(TEXT), min(4 * addresses, TEXT // 4))
    rng = random.Random(host % DIFFERENT)
    load = rng.lognormvariate(0, 1)
    found = {}
    # The popularity of the i-th place falls as 1 / i. A host reaches most of the popular places, and few of the others.
    for i, place in enumerate(places):
        if rng.random() < 1 / (1 + 2 * i / addresses):
            found[FIRST + place] = max(1, int(load * 8 * addresses / (i + 1) * rng.uniform(0.5, 1.5)))
    return found


def chunks(counts):
    """[(chunk, total, bytes)] of a profile."""
    parts = {}
    for address in sorted(counts):
        parts.setdefault(address // CHUNK, []).append((address, counts[address]))
    return [(c, sum(n for _, n in part), encode(c * CHUNK, part)) for c, part in parts.items()]


def main():
    what, module = sys.argv[1:3]
    numbers = [int(a) for a in sys.argv[3:]]
    if what == "push":
        addresses, day, host = numbers
        rows = chunks(profile(host, addresses))
        n = len(rows)
        print(f"array_fill('\\x{module}'::bytea, ARRAY[{n}]), array_fill(0::smallint, ARRAY[{n}]), array_fill({day}, ARRAY[{n}]), "
              f"array_fill(NULL::int, ARRAY[{n}]), array_fill({day}, ARRAY[{n}]), "
              f"ARRAY[{','.join(str(c) for c, _, _ in rows)}]::bigint[], array_fill(false, ARRAY[{n}]), "
              f"ARRAY[{','.join(str(t) for _, t, _ in rows)}]::bigint[], "
              "ARRAY[" + ",".join(f"'\\x{data.hex()}'" for _, _, data in rows) + "]::bytea[]")
        return
    hosts, addresses = numbers[:2]
    profiles = [profile(h, addresses) for h in range(min(hosts, DIFFERENT))]
    if what == "sum":
        total = {}
        for host in range(hosts):
            for address, count in profiles[host % DIFFERENT].items():
                total[address] = total.get(address, 0) + count
        for address in sorted(total):
            print(address, total[address])
        return
    day = numbers[2]
    encoded = [[(c, t, data.hex()) for c, t, data in chunks(p)] for p in profiles]
    for host in range(hosts):
        for chunk, total, data in encoded[host % DIFFERENT]:
            print(f"\\\\x{module}\t0\t{chunk}\t{day}\t{host + 1}\t1\t{day}\tf\t1\t{total}\t\\\\x{data}")


if __name__ == "__main__":
    main()
