#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inlined-frames TOOL ORIGINAL OUTPUT MOVED - compares frames at all instructions of code that replaces calls.

At such an instruction of OUTPUT, TOOL (addr2line or one with its options) must name the frames that it names in
ORIGINAL for the same instruction of the called function, and then those that it names there for the call. A called
function of which ORIGINAL's debug information says nothing has no frame. MOVED is the program that lists these places. Prints how many instructions and calls were compared. Exit status: 1: frames differ.
"""
import os
import re
import subprocess
import sys


def read_frames(tool, file, addresses):
    """Per address: a list of (function, file:line)."""
    text = "".join(f"0x{a}\n" for a in addresses)
    options = ["-a", "-i", "-f", "-e", file]
    if os.path.basename(tool) != "eu-addr2line":
        options.insert(0, "-C")
    lines = subprocess.run([tool, *options], input=text, capture_output=True, text=True).stdout.splitlines()
    frames, now = [], None
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            now = []
            frames.append(now)
        elif line and now is not None:
            now.append(re.sub(r" \(discriminator [0-9]+\)| *\(inlined by\) *", "", line))
    return [list(zip(f[0::2], f[1::2])) for f in frames]


def plain(frames):
    """Without arguments and columns. Compilers give line 0 to code that no line stands for; readers then differ."""
    found = []
    for name, where in frames:
        file, line = re.match(r"(.*?):(\d+|\?)(:\d+)?$", where).group(1, 2)
        # Some readers name the outermost function by its symbol.
        name = re.sub(r"\.(isra|part|constprop|cold|morph)\b.*", "", name.split("(")[0])
        found.append((name, os.path.normpath(file), "?" if line == "0" else line))
    return found


def same(tool, a, b):
    # binutils 2.40 gives some innermost functions, of a header in a clone of a function, the file of the unit.
    if os.path.basename(tool) == "addr2line" and a and b and a[1:] == b[1:]:
        return (a[0][0], a[0][2]) == (b[0][0], b[0][2])
    return a == b


def main():
    tool, original, output, moved = sys.argv[1:]
    listed = subprocess.run([moved, output, "--inlined", original], capture_output=True, text=True, check=True).stdout
    triples = [line.split() for line in listed.splitlines()]
    now = read_frames(tool, output, [t[0] for t in triples])
    was = read_frames(tool, original, [t[1] for t in triples])
    calls = read_frames(tool, original, [t[2] for t in triples])
    if not len(now) == len(was) == len(calls) == len(triples):
        print(f"{tool}: {len(now)}, {len(was)}, {len(calls)} answers for {len(triples)} instructions")
        return 1
    wrong = 0
    for triple, a, b, c in zip(triples, now, was, calls):
        if all(where.split(":")[0] in ("", "??") for _, where in b):
            b = []
        if same(tool, plain(a), plain(b + c)):
            continue
        wrong += 1
        if wrong <= 4:
            print(f"{tool}: {triple[0]} of {output} is", *(f"{n} {w}" for n, w in a), "instead of",
                  *(f"{n} {w}" for n, w in b + c))
    print(f"{len(triples)} instructions of {len({t[2] for t in triples})} calls compared, {wrong} differ")
    return wrong > 0


sys.exit(main())
