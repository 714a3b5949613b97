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


def golomb(numbers, highest):
    """The bits of a list of numbers, and its parameter: see daemon/fleet/packed_counts.h."""
    def split(n, k):
        c = ((n >> k) + 1).bit_length() - 1
        return c, n - (((1 << c) - 1) << k)

    k = min(range(highest + 1), key=lambda k: sum(2 * split(n, k)[0] + k for n in numbers))
    parts = [split(n, k) for n in numbers]
    classes = max(c for c, _ in parts) + 1
    bits = ["1" if c == now else "0" for now in range(classes) for c, _ in parts if c >= now]
    for now in range(classes):
        for digit in range(now + k - 1, -1, -1):
            bits += [str(r >> digit & 1) for c, r in parts if c == now]
    return bits, k


def pack(base, counts):
    """As md_counts_pack(): the same counts in fewer bytes, if an eighth is saved."""
    plain = encode(base, counts)
    if len(plain) < 64:
        return plain
    places = [base - 1] + [a for a, _ in counts]
    far, far_k = golomb([b - a - 1 for a, b in zip(places, places[1:])], 15)
    many, many_k = golomb([n - 1 for _, n in counts], 7)
    bits = "".join(far + many)
    bits += "0" * (-len(bits) % 8)
    packed = varint(len(counts)) + int(bits, 2).to_bytes(len(bits) // 8, "big") + bytes([128 | far_k << 3 | many_k])
    return packed if len(packed) <= len(plain) - len(plain) // 8 else plain


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
    return [(c, sum(n for _, n in part), pack(c * CHUNK, part)) for c, part in parts.items()]


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
