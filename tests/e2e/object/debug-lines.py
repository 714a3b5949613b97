#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""debug-lines PROGRAM RELINKED FUNCTION... - do both programs give each instruction the same source lines?

Compares what binutils say: objdump's instructions, and for each of them addr2line's lines, with those of calls that
were inlined. (At the first address of an inlined call, addr2line gives the wrong name of a function for some forms of
ranges, so names do not count.) An instruction is known by its function, its text without addresses, and its lines. Each of
the relinked program must be one of the original. Jumps and no-ops are left out, since new ones were added. Prints
the number of instructions of the relinked program, and how many of them begin a line of their own in it.
"""
import re
import subprocess
import sys

INSN = re.compile(r"^\s*([0-9a-f]+):\t(\S+)\s*(.*)$")
LEFT_OUT = re.compile(r"^(j\w+|nop\w*|xchg|cs|data16|bnd|notrack|int3|lea)$")


def run(*words, text=None):
    return subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout


def name_of(symbol):
    """The function of a symbol. Both parts of a function are one; so are a class's two destructors."""
    return re.sub(r"([CD])[12](E.*)$", r"\1*\2", re.sub(r"\.cold(\.\d+)?$", "", symbol))


def instructions(program, functions):
    """(address, function, text) of each instruction of the functions."""
    function = None
    for line in run("objdump", "-d", "--no-show-raw-insn", "-w", program).splitlines():
        if line.endswith(">:"):
            function = name_of(line.split("<", 1)[1][:-2])
        found = INSN.match(line)
        zeros = found and (found[2], found[3]) == ("add", "%al,(%rax)")
        if not found or zeros or function not in functions or LEFT_OUT.match(found[2]):
            continue
        operands = found[3].split("#")[0]
        operands = re.sub(r"<.*?>|\b[0-9a-f]+ $|-?0x[0-9a-f]+\(%rip\)", "", operands).strip()
        if found[2].startswith("call"):
            operands = re.sub(r"^[0-9a-f]+", "", operands)
        # addresses of a program that is not position independent
        operands = re.sub(r"\$?0x[0-9a-f]{6,}|0x[0-9a-f]{6,}\(", "ADDRESS", operands)
        yield int(found[1], 16), function, f"{found[2]} {operands}".strip()


def lines(program, addresses):
    """addr2line's lines for each address, the innermost first."""
    asked = "".join(f"{a:#x}\n" for a in addresses)
    answers, current = [], None
    for line in run("addr2line", "-a", "-i", "-f", "-e", program, text=asked).splitlines():
        if line.startswith("0x"):
            current = []
            answers.append(current)
        else:
            # without a line, the file's name is that of a symbol
            current.append("??" if re.search(r":\?( |$)", line) else line)
    return [tuple(a[1::2]) for a in answers]


def known(program, functions):
    found = list(instructions(program, functions))
    return [(function, text, answer) for (_, function, text), answer in
            zip(found, lines(program, [a for a, _, _ in found]))]


def main():
    old, new = (known(p, {name_of(f) for f in sys.argv[3:]}) for p in sys.argv[1:3])
    strange = [x for x in new if x not in set(old)]
    for x in strange[:5]:
        print(f"only in {sys.argv[2]}: {x}", file=sys.stderr)
    if len(set(old)) < 20 or sum(x[2][0] != "??" for x in new) < len(new) / 2:
        sys.exit("too few lines")
    print(f"{len(new)} {len({x[2] for x in new})}")
    sys.exit(1 if strange else 0)


if __name__ == "__main__":
    main()
