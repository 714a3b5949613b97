# SPDX-License-Identifier: Apache-2.0
"""Decides the functions of an audited program through its ring file (Documentation/abi.md)."""

import os
import struct

HEADER, NR_FUNCTIONS_AT, FUNCTION = 4096, 24, 128


def decide(path, verdict):
    """Decide all functions for A (1) or B (2). Return: whether the ring file exists."""
    if not os.path.exists(path):
        return False
    with open(path, "r+b") as f:
        f.seek(NR_FUNCTIONS_AT)
        nr = struct.unpack("<I", f.read(4))[0]
        for i in range(nr):
            f.seek(HEADER + FUNCTION * i)
            f.write(struct.pack("<I", verdict))
    return True
