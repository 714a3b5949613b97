#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sample-reference - LLVM's sample profile of callgrind's counts, without Morph.

Takes executions of each instruction from callgrind's file (--dump-instr=yes), and lines, inlined functions and
discriminators from llvm-symbolizer. Each line gets the largest count of its instructions, as llvm-profgen does.
"""

import json
import re
import subprocess
import sys


def instructions(path, binary):
    """Executions by address of the object whose name ends with @binary."""
    counts, names, address, ob, skip = {}, {}, 0, "", False
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            line = line.strip()
            if named := re.match(r"ob=\((\d+)\)(?: (.*))?", line):
                if named[2]:
                    names[named[1]] = named[2]
                ob = names[named[1]]
            elif line.startswith("calls="):
                skip = True
            elif cost := re.match(r"(0x[0-9a-f]+|[+-]\d+|\*) (?:[+-]?\d+|\*) (\d+)$", line):
                word = cost[1]
                if word != "*":
                    address = int(word, 16) if word.startswith("0x") else address + int(word)
                if not skip and ob.endswith("/" + binary):
                    counts[address] = counts.get(address, 0) + int(cost[2])
                skip = False
            elif named := re.match(r"cob=\((\d+)\) (.*)", line):
                names[named[1]] = named[2]
    return counts


def component(d):
    """One part of LLVM's discriminators, and the rest."""
    if d & 1:
        return 0, d >> 1
    if d & 0x40:
        return d >> 1 & 0x1f | d >> 2 & 0xfe0, d >> 14
    return d >> 1 & 0x1f, d >> 7


def parts(d):
    base, rest = component(d)
    return base, component(rest)[0] or 1


class Body:
    def __init__(self):
        self.head, self.spots, self.calls = 0, {}, {}

    def total(self):
        return sum(self.spots.values()) + sum(c.total() for c in self.calls.values())

    def put(self, depth):
        for (off, disc), n in sorted(self.spots.items()):
            print(f"{' ' * depth}{off}{f'.{disc}' if disc else ''}: {n}")
        for (off, disc, name), body in sorted(self.calls.items()):
            print(f"{' ' * depth}{off}{f'.{disc}' if disc else ''}: {name}:{body.total()}")
            body.put(depth + 1)


def main():
    symbolizer, *callgrinds, binary = sys.argv[1:]
    counts = {}
    for callgrind in callgrinds:
        for address, n in instructions(callgrind, binary.rsplit("/", maxsplit=1)[-1]).items():
            counts[address] = counts.get(address, 0) + n
    done = subprocess.run([symbolizer, "--inlining", "--output-style=JSON", "--functions=linkage", "--no-demangle",
                           f"--obj={binary}"], input="\n".join(map(hex, sorted(counts))), text=True,
                          stdout=subprocess.PIPE, check=True)
    functions = {}
    for found in json.loads(done.stdout) if done.stdout.startswith("[") else map(json.loads, done.stdout.splitlines()):
        frames, n = found["Symbol"][::-1], counts[int(found["Address"], 16)]
        if not frames or not frames[-1]["Line"] or any(not f["StartLine"] for f in frames):
            continue
        body = functions.setdefault(frames[0]["FunctionName"], Body())
        for f, g in zip(frames, frames[1:]):
            key = (f["Line"] - f["StartLine"] & 0xffff, parts(f["Discriminator"])[0], g["FunctionName"])
            body = body.calls.setdefault(key, Body())
        last = frames[-1]
        base, factor = parts(last["Discriminator"])
        key = (last["Line"] - last["StartLine"] & 0xffff, base)
        body.spots[key] = max(body.spots.get(key, 0), n * factor)
    for name, body in sorted(functions.items()):
        print(f"{name}:{body.total()}:{body.head}")
        body.put(1)


if __name__ == "__main__":
    main()
