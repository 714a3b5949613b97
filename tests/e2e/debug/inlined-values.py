# SPDX-License-Identifier: Apache-2.0
# For gdb: gdb -x inlined-values.py FILE. The file $PLACES has lines "ADDRESS OLD CALL", addresses in hex: of the file,
# of the original's instruction, and of its call. Stops at each ADDRESS, up to $VISITS times for each call, and writes
# "OLD CALL VISIT FRAMES FUNCTION.VARIABLE=VALUE ..." to the file $VALUES: the names of all frames, and the variables of all
# functions from the one with the call on. With $CALLED=1, ADDRESS is in the called function. $DYN=1: the file is position-independent. The program runs
# with the arguments in $ARGS.
import os

import gdb

visits_max = int(os.environ["VISITS"])
called = os.environ.get("CALLED") == "1"
visits = {}


def text(frame, symbol):
    try:
        value = frame.read_var(symbol)
        found = str(value.format_string(max_elements=0, repeat_threshold=0)) if not value.is_optimized_out else "?"
    except (gdb.error, gdb.MemoryError) as error:
        found = "?" if "optimized out" in str(error) else f"!{error}"
    return "?" if "optimized out" in found else found.replace(" ", "_")


def variables(frame):
    """Variables and arguments of the frame's function, in all blocks around, by name and line."""
    found, block = [], frame.block()
    while block is not None and not block.is_global and not block.is_static:
        for symbol in block:
            if symbol.is_variable or symbol.is_argument:
                if symbol.addr_class not in (gdb.SYMBOL_LOC_STATIC, gdb.SYMBOL_LOC_OPTIMIZED_OUT):
                    name = f"{frame.name()}.{symbol.name}@{symbol.line}".replace(" ", "_")
                    found.append(f"{name}={text(frame, symbol)}")
        if block.function is not None:
            break
        block = block.superblock
    return found


def names():
    """All frames but those that gdb infers from call sites of tail calls, which copies lack."""
    found, frame = [], gdb.newest_frame()
    while frame is not None:
        if frame.type() != gdb.TAILCALL_FRAME:
            found.append(str(frame.name()).replace(" ", "_"))
        frame = frame.older()
    return ",".join(found)


def outer(frame):
    """The first frame of the physical function around."""
    while frame.type() == gdb.INLINE_FRAME:
        frame = frame.older()
    return frame


class Stop(gdb.Breakpoint):
    def __init__(self, address, keys):
        super().__init__(f"*{base + address:#x}", internal=True)
        self.keys = keys

    def stop(self):
        frame = outer(gdb.newest_frame())
        if called:
            frame = frame.older()
            call = frame.pc() - 5 - base
            key = next((k for k in self.keys if k[1] == call), None)
            frame = outer(frame)
        else:
            key = next(iter(self.keys))
        if key is None:
            return False
        nr = visits[key] = visits.get(key, 0) + 1
        if nr > visits_max:
            return False
        found = []
        while frame is not None:
            try:
                found += variables(frame)
            except RuntimeError:
                found.append("?")
            frame = frame.older()
        out.write(f"{key[0]:x} {key[1]:x} {nr} {names()} {' '.join(found)}\n")
        return False


out = open(os.environ["VALUES"], "w")
for setting in ("pagination off", "confirm off", "debuginfod enabled off", "width 0", "print frame-arguments none"):
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
    at, old, call = (int(word, 16) for word in line.split())
    places.setdefault(at, set()).add((old, call))
stops = [Stop(at, keys) for at, keys in places.items()]
gdb.execute("continue", to_string=True)
out.close()
