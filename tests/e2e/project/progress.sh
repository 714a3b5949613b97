#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: long work is a large program under valgrind
# Long work shows a progress line on standard error, only on a terminal, and erases the line at the
# end. The test does not depend on the machine's speed: work continues after the line was seen.
. "$(dirname "$0")/../lib.sh"
scratch progress
export PATH=$BUILD:$PATH
for tool in python3 gcc; do
	command -v $tool >/dev/null || { echo "skip: $tool is missing"; exit 77; }
done
cat >prog.c <<'C'
#include <stdio.h>
int main(int argc, char **argv) { printf("%d %s\n", argc, argv[argc - 1]); return 0; }
C
gcc -O2 -fno-pie -no-pie -Wl,--build-id -Wl,--emit-relocs prog.c -o prog || exit 1
# A large program, for which the editor takes long under valgrind.
python3 - >many.c <<'P'
for i in range(1500):
    print(f"__attribute__((noinline)) int f{i}(int n) {{ int s = {i}; for (int i = 0; i < n; i++) "
          f"s = i % 7 == 3 ? s ^ i : s + (i * {i}) % 11; return s; }}")
print("int main(void) { return " + " + ".join(f"f{i}(1)" for i in range(1500)) + "; }")
P
gcc -O1 -fno-pie -no-pie -Wl,--build-id -Wl,--emit-relocs many.c -o many || exit 1
printf '#!/bin/sh\ni=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done\n' >some && chmod +x some
printf 'version: 1\npositions: instr line\nevents: Ir\nob=%s\nfl=x\nfn=main\n0x%s 0 5\ntotals: 5\n' \
	"$PWD/prog" "$(nm prog | awk '/ main$/ {print $1}')" >cg.out

cat >progress.py <<'P'
import os, pty, select, shutil, signal, subprocess, sys, time

failures = 0
ERASE = b"\r\x1b[K"


def fail(text):
    global failures
    failures += 1
    print("FAIL:", text)


class Run:
    """A program whose standard error (only that) is a terminal or a pipe."""

    def __init__(self, command, terminal=True, term="xterm", columns=80):
        if terminal:
            self.end, theirs = pty.openpty()
            import fcntl, struct, termios
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            attributes = termios.tcgetattr(theirs)
            attributes[1] &= ~termios.OPOST
            termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        else:
            self.end, theirs = os.pipe()
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=theirs, env=dict(os.environ, TERM=term))
        os.close(theirs)
        self.seen = b""

    def read(self, seconds):
        if select.select([self.end], [], [], seconds)[0]:
            try:
                data = os.read(self.end, 4096)
            except OSError:
                data = b""
            self.seen += data
            return bool(data)
        return True

    def until(self, text, seconds=300):
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end:
            if not self.read(0.1):
                break
        return text in self.seen

    def finish(self, last=b""):
        out, _ = self.child.communicate(last)
        while self.read(5):
            pass
        os.close(self.end)
        return out


def erased(run, name):
    if not run.seen.rstrip(b"\r\n").split(b"\n")[0].rpartition(ERASE)[1]:
        fail(f"{name}: not erased: {run.seen!r}")
    left = run.seen.rpartition(ERASE)[2]
    return left


text = open("cg.out", "rb").read()
half = text.index(b"fn=")

# Import: the line appears while the input pauses.
run = Run(["morph-stats", "-d", "i.db", "import", "-"])
run.child.stdin.write(text[:half])
run.child.stdin.flush()
if not run.until(b"morph-stats: reading standard input, "):
    fail(f"import: no line: {run.seen!r}")
out = run.finish(text[half:])
if run.child.returncode or b"counted" not in out:
    fail(f"import: {run.child.returncode} {out!r}")
if erased(run, "import"):
    fail(f"import: something is left: {run.seen!r}")

# A message stands on a line of its own.
run = Run(["morph-stats", "-d", "i2.db", "import", "-"])
run.child.stdin.write(text[:half])
run.child.stdin.flush()
run.until(b"reading standard input, ")
run.finish(b"nonsense\n")
if not erased(run, "a bad import").startswith(b"morph-stats: standard input:"):
    fail(f"a bad import: {run.seen!r}")

# A narrow terminal: a line that wraps could not be erased.
run = Run(["morph-stats", "-d", "i3.db", "import", "-"], columns=30)
run.child.stdin.write(text[:half])
run.child.stdin.flush()
run.until(b" s")
run.finish(text[half:])
for shown in run.seen.split(ERASE):
    if len(shown) >= 30:
        fail(f"narrow: {shown!r}")

# Quick work shows nothing. Without a terminal, no work does.
run = Run(["morph-stats", "-d", "i4.db", "import", "cg.out"])
run.finish()
for terminal, term in ((False, "xterm"), (True, "dumb")):
    name = f"terminal {terminal}, TERM {term}"
    run = Run(["morph-stats", "-d", f"n-{term}-{terminal}.db", "import", "-"], terminal, term)
    run.child.stdin.write(text[:half])
    run.child.stdin.flush()
    time.sleep(2.5)
    run.finish(text[half:])
    if run.seen or run.child.returncode:
        fail(f"{name}: {run.child.returncode} {run.seen!r}")

# An audit until its line was seen; then an interrupt, after which it still cleans up.
audit = ["morph-audit", "--pairs=:100000", "--max-seconds=300", "--indifference=0",
         "--precision=0.001", "./some", "./some"]
run = Run(audit)
if not run.until(b" pairs: B "):
    fail(f"audit: no line: {run.seen!r}")
run.child.send_signal(signal.SIGINT)
run.finish()
if not erased(run, "audit").startswith(b"morph-audit: interrupted after "):
    fail(f"audit: {run.seen!r}")
run = Run(["morph-audit", "--pairs=40:40", "./some", "./some"], terminal=False)
run.finish()
if run.seen:
    fail(f"audit without a terminal: {run.seen!r}")

# Merge and optimise take long enough under valgrind.
if shutil.which("valgrind"):
    slow = ["valgrind", "-q", "--log-file=vg.txt", "--tool=memcheck", "--track-origins=yes"]
    for name, command, want in (
            ("optimise", ["morph-optimize", "--all", "-o", "fast", "many"], b"morph-optimize: "),
            ("merge", ["morph-stats", "merge", "--again", "m.db"] + ["i.db"] * 60,
             b"morph-stats: ")):
        command[0] = shutil.which(command[0])
        # Measure how long valgrind itself takes to start.
        start = time.monotonic()
        Run(slow + [command[0], "--version"]).finish()
        begun = time.monotonic() - start
        run = Run(slow + command)
        start = time.monotonic()
        run.finish()
        if time.monotonic() - start > 5 + 3 * begun and want not in run.seen:
            fail(f"{name}: no line in so long a time: {run.seen!r}")
        if run.child.returncode:
            fail(f"{name}: {run.child.returncode} {run.seen!r}")
        if want in run.seen and erased(run, name):
            fail(f"{name}: something is left: {run.seen!r}")
        print(f"{name}: {run.seen.count(ERASE)} times: {run.seen[:60]!r}")
else:
    print("valgrind is missing: optimise and merge were too quick for a line")
sys.exit(failures != 0)
P
python3 progress.py
