# SPDX-License-Identifier: Apache-2.0
# For gdb: gdb -x inlined-gdb.py FILE. The file $PLACES has lines "ADDRESS CALL", addresses of the file as linked, in hex.
# Stops at each ADDRESS, and writes "CALL FUNCTION@FILE:LINE ..." with all frames to the file $FRAMES, once for each CALL.
# With $CALLED=1, ADDRESS is in a called function, and CALL must be where the function returns to, minus a call's 5 bytes.
# $DYN=1: the file is position-independent. The program runs with the arguments in $ARGS.
import os

import gdb

# A function that is called often has been called from most places by then.
STOPS_MAX = 400


def frames():
    """All frames: their functions and lines. gdb infers frames of tail calls from call sites, which copies lack."""
    found, frame = [], gdb.newest_frame()
    while frame is not None:
        if frame.type() != gdb.TAILCALL_FRAME:
            place = frame.find_sal()
            file = os.path.basename(place.symtab.filename) if place.symtab else "?"
            found.append(f"{frame.name()}@{file}:{place.line}")
        frame = frame.older()
    return " ".join(found)


def call():
    """The address of the call of the function at hand."""
    frame = gdb.newest_frame()
    while frame.type() == gdb.INLINE_FRAME:
        frame = frame.older()
    return frame.older().pc() - 5 - base


class Stop(gdb.Breakpoint):
    """Disabled when all of its calls were met."""

    def __init__(self, address, calls):
        super().__init__(f"*{base + address:#x}", internal=True)
        self.calls, self.nr = calls, 0

    def stop(self):
        self.nr += 1
        met = call() if os.environ.get("CALLED") == "1" else next(iter(self.calls))
        if met in self.calls:
            self.calls.remove(met)
            out.write(f"{met:x} {frames()}\n")
        if not self.calls or self.nr == STOPS_MAX:
            self.enabled = False
        return False


out = open(os.environ["FRAMES"], "w")
for setting in ("pagination off", "confirm off", "debuginfod enabled off", "width 0"):
    gdb.execute("set " + setting)
gdb.execute("set args " + os.environ.get("ARGS", ""))
gdb.execute("starti", to_string=True)
base = 0
for line in gdb.execute("info proc mappings", to_string=True).splitlines():
    words = line.split()
    if words and words[-1] == os.path.realpath(gdb.current_progspace().filename):
        base = int(words[0], 16) if os.environ["DYN"] == "1" else 0
        break
places = {}
for line in open(os.environ["PLACES"]):
    at, of = (int(word, 16) for word in line.split())
    places.setdefault(at, set()).add(of)
stops = [Stop(at, of) for at, of in places.items()]
gdb.execute("continue", to_string=True)
out.close()
