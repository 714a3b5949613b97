# SPDX-License-Identifier: Apache-2.0
# For gdb: gdb -x inlined-gdb.py FILE. Stops once at each address of the file $PLACES ("ADDRESS NAME" in each line, of
# the file as linked), and writes "NAME FUNCTION@FILE:LINE ..." with all frames to the file $FRAMES. The program runs
# with the arguments in $ARGS.
import os

import gdb


def frames():
    """All frames: their functions and lines. gdb infers frames of tail calls from call sites, which copies lack."""
    found, frame = [], gdb.newest_frame()
    while frame is not None:
        if frame.type() == gdb.TAILCALL_FRAME:
            frame = frame.older()
            continue
        place = frame.find_sal()
        file = os.path.basename(place.symtab.filename) if place.symtab else "?"
        found.append(f"{frame.name()}@{file}:{place.line}")
        frame = frame.older()
    return " ".join(found)


class Stop(gdb.Breakpoint):
    """Removed after the first stop."""

    def __init__(self, address, name):
        super().__init__(f"*{address:#x}", internal=True)
        self.place = name

    def stop(self):
        out.write(f"{self.place} {frames()}\n")
        passed.append(self)
        self.enabled = False
        return False


out = open(os.environ["FRAMES"], "w")
passed = []
for setting in ("pagination off", "confirm off", "debuginfod enabled off", "width 0", "backtrace past-main off"):
    gdb.execute("set " + setting)
gdb.execute("set args " + os.environ.get("ARGS", ""))
gdb.execute("starti", to_string=True)
base = 0
for line in gdb.execute("info proc mappings", to_string=True).splitlines():
    words = line.split()
    if words and words[-1] == os.path.realpath(gdb.current_progspace().filename):
        base = int(words[0], 16) if os.environ["DYN"] == "1" else 0
        break
for line in open(os.environ["PLACES"]):
    address, name = line.split()
    Stop(base + int(address, 16), name)
gdb.execute("continue", to_string=True)
out.close()
