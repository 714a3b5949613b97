# SPDX-License-Identifier: Apache-2.0
"""Which instructions of a counted run belong to audits: to stubs, by kind and function, or to the
runtime. The stubs are found by their bytes (editor/place/audit_code.h)."""

import bisect
import collections
import re
import struct
import subprocess

from benchlib import Failure

# The runtime with symbols, and the address at which it is linked (Makefile).
RUNTIME, RUNTIME_AT = "runtime/at-0x10000.elf", 0x10000
WORD = rb"[\s\S]{4}"
CALL = rb"\x48\x8d\x64\x24\x80\xe8" + WORD + rb"\xa9(" + WORD + rb")"
COMPARE = rb"\x65\x80\x3d" + WORD + rb"\x00"
DECREMENT = rb"\x65\xff\x0d" + WORD
# The bytes of each kind of stub, and where its instructions begin.
STUBS = {
    "enter": (rb"\xe9[\s\S]{4}\xe9[\s\S]{4}\xe9[\s\S]{4}" + DECREMENT + rb"\x79\x0f" + CALL + COMPARE +
              rb"\x0f\x85" + WORD, (0, 5, 10, 15, 22, 24, 29, 34, 39, 47)),
    "leave": (COMPARE + rb"\x74\x0f" + CALL, (0, 8, 10, 15, 20)),
    "point": (DECREMENT + rb"\x79\x2b" + CALL + COMPARE + rb"\x0f[\x84\x85]" + WORD + COMPARE +
              rb"\x0f\x85" + WORD, (0, 7, 9, 14, 19, 24, 32, 38, 46)),
}
FUNCTION = 0xff  # of the number in a stub


def section(text, name):
    """Address, offset and size, in readelf's @text."""
    found = re.search(rf" {re.escape(name)} +\S+ +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", text)
    if not found:
        raise Failure(f"no section {name}")
    return [int(x, 16) for x in found.groups()]


def stub_addresses(elf):
    """Of each instruction in a stub: its kind and its function's number. And the runtime's range."""
    text = subprocess.run(["readelf", "-SW", elf], capture_output=True, text=True, check=True).stdout
    vaddr, off, size = section(text, ".morph.text")
    runtime, _, runtime_size = section(text, ".morph.runtime")
    with open(elf, "rb") as f:
        code = f.read()[off:off + size]
    found = {}
    for kind, (pattern, starts) in STUBS.items():
        for match in re.finditer(pattern, code):
            function = struct.unpack("<I", match.group(1))[0] & FUNCTION
            for start in starts:
                found[vaddr + match.start() + start] = kind, function
    if not any(kind == "enter" for kind, _ in found.values()):
        raise Failure(f"{elf}: no stub at an entry was found")
    return found, range(runtime, runtime + runtime_size)


def cost(elf, edges):
    """Of the counts that `branches --edges' wrote: {"others", "runtime", "stubs": {(kind, function): number}}."""
    found, runtime = stub_addresses(elf)
    addresses = sorted(found)
    total, in_runtime, stubs = 0, 0, collections.Counter()
    with open(edges, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if not words or words[0] != "block":
                continue
            start, size, insns, count = int(words[1], 16), *map(int, words[2:5])
            total += insns * count
            if start in runtime:
                in_runtime += insns * count
            for i in range(bisect.bisect_left(addresses, start), bisect.bisect_left(addresses, start + size)):
                stubs[found[addresses[i]]] += count
    return {"others": total - in_runtime - sum(stubs.values()), "runtime": in_runtime, "stubs": stubs}


def runtime_functions(elf, edges, build):
    """Of a run that `branches --edges' counted: (name, instructions, calls) of the runtime's functions, the most
    costly first. @build: where the runtime was built."""
    _, runtime = stub_addresses(elf)
    text = subprocess.run(["nm", f"{build}/{RUNTIME}"], capture_output=True, text=True, check=True).stdout
    symbols = sorted((int(at, 16) - RUNTIME_AT + runtime.start, name)
                     for at, name in re.findall(r"^(\w+) [tT] (\S+)$", text, re.M))
    starts = [at for at, _ in symbols]
    insns, calls = collections.Counter(), collections.Counter()
    with open(edges, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if not words or words[0] != "block" or int(words[1], 16) not in runtime:
                continue
            at, nr, count = int(words[1], 16), int(words[3]), int(words[4])
            start, name = symbols[bisect.bisect_right(starts, at) - 1]
            insns[name] += nr * count
            calls[name] += count if at == start else 0
    return [(name, n, calls[name]) for name, n in insns.most_common()]


def share(counts):
    """Instructions of stubs and runtime, beside all others."""
    return (counts["runtime"] + sum(counts["stubs"].values())) / counts["others"]
