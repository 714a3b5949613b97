# SPDX-License-Identifier: Apache-2.0
"""Shared by the cost test and scripts/bench/bench-kmod: boots a guest whose clock counts instructions,
runs work in it with and without collectors, and reads the plugin's counts. This file decides what
is measured and how it is summed up; limits are in run, tables in bench-kmod."""

import collections
import os
import re
import shutil
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
LIBRARY = "/lib/x86_64-linux-gnu"
# One instruction is one nanosecond. The CPU is like that of a common server, as far as TCG can:
# without five-level page tables and other features that few machines have.
MACHINE = ["-machine", "q35,accel=tcg", "-smp", "1", "-m", "768", "-nic", "none", "-vga", "none",
           "-display", "none", "-no-reboot", "-nodefaults", "-cpu", "max,la57=off,erms=off",
           "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"]
# tsc=reliable: the emulated TSC is single and does not stop, but the kernel cannot know that.
APPEND = ("nokaslr norandmaps quiet panic=-1 oops=panic tsc=reliable clocksource=tsc nowatchdog "
          "random.trust_cpu=on rdinit=/init")

BIT_TICK, BIT_SAMPLE, BIT_SCHED, BIT_SOFTIRQ, BIT_WORK = (1 << i for i in range(5))
OTHERS = 64  # the plugin's class of code outside interrupts


class Failure(Exception):
    """Something failed that should work; the text says what."""


def command(args, **kw):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, **kw)
    if done.returncode:
        raise Failure(f"{' '.join(args)}: status {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def kernels():
    """[(release, directory)] of the kernels that can be booted, Debian's own first."""
    out = command([f"{ROOT}/scripts/kernel/kernels", "--list"])
    return [tuple(line.split(" ", 1)) for line in out.splitlines()]


# ---- the guest --------------------------------------------------------------

def module(source, release, where):
    """Builds a kernel module of the test. Returns its .ko."""
    name = os.path.basename(source)
    copy = os.path.join(where, f"{name}-{release}")
    shutil.copytree(source, copy, dirs_exist_ok=True)
    command(["make", "-C", f"/usr/src/linux-headers-{release}", f"M={copy}", "modules"])
    found = [f for f in os.listdir(copy) if f.endswith(".ko")]
    if len(found) != 1:
        raise Failure(f"{source}: {len(found)} modules built")
    return os.path.join(copy, found[0])


def plugin():
    """Builds QEMU's plugin."""
    command(["make", "--no-print-directory", "-C", ROOT, f"O={BUILD}", f"{BUILD}/plugin/kernel.so"])


def rows_of(program, where):
    """Compiles the unwind rows of a program. Returns their file."""
    command(["make", "--no-print-directory", "-C", ROOT, f"O={BUILD}", f"{BUILD}/tools/rows"])
    command([f"{BUILD}/tools/rows", f"--write={where}/rows", program])
    return f"{where}/rows"


def morphmon(release):
    """Builds morphmon. Returns its .ko."""
    command([f"{ROOT}/scripts/kernel/kmod-build", f"--build={BUILD}", release])
    return f"{BUILD}/kmod/{release}/morphmon.ko"


def cpio(files, directories):
    """An initramfs: {name: (mode, bytes)}."""
    out = bytearray()

    def entry(name, mode, data, ino):
        raw = name.encode() + b"\0"
        head = [ino, mode, 0, 0, 1, 1 << 30, len(data), 0, 0, 0, 0, len(raw), 0]
        out.extend(b"070701" + b"".join(b"%08X" % v for v in head) + raw)
        out.extend(b"\0" * (-len(out) % 4))
        out.extend(data)
        out.extend(b"\0" * (-len(out) % 4))

    for i, name in enumerate(directories):
        entry(name, 0o040755, b"", i + 1)
    for i, (name, (mode, data)) in enumerate(files.items()):
        entry(name, 0o100000 | mode, data, 1000 + i)
    entry("TRAILER!!!", 0, b"", 0)
    return bytes(out)


def with_libraries(program):
    """{name in the guest: path} of a program and its libraries."""
    out = command(["ldd", program])
    found = {"bin/" + os.path.basename(program): program}
    for path in re.findall(r"(?:=> |^\s*)(/\S+) \(", out, re.MULTILINE):
        found[f"lib/x86_64-linux-gnu/{os.path.basename(path)}"] = path
    return found


def programs(where):
    """Programs and inputs for the works that run real programs."""
    files = {"data/text": f"{where}/text", "data/program.i": f"{where}/program.i"}
    for name in "gzip", "sort", "perl":
        files.update(with_libraries(shutil.which(name)))
    files.update(with_libraries(command(["gcc", "-print-prog-name=cc1"]).strip()))
    with open(f"{where}/text", "w") as text:
        for name in sorted(os.listdir(f"{ROOT}/libprof")):
            if name.endswith(".c"):
                text.write(open(f"{ROOT}/libprof/{name}").read())
    command(["gcc", "-std=gnu17", "-I.", "-D_GNU_SOURCE", "-E", "-o", f"{where}/program.i",
             "libprof/cfg/cfg.c"], cwd=ROOT)
    return files


def initramfs(release, where, morphmon, more=None):
    sources = sorted(f"{HERE}/{f}" for f in os.listdir(HERE) if f.endswith(".c"))
    command(["gcc", "-std=gnu17", "-O2", "-g", "-Wall", "-Wextra", "-Wmissing-prototypes",
             f"-I{ROOT}", "-D_GNU_SOURCE", "-static", "-o", f"{where}/init", *sources])
    command(["gcc", "-static", "-nostdlib", "-o", f"{where}/nothing", f"{HERE}/nothing.S"])
    files = {
        "init": f"{where}/init", "init.rows": rows_of(f"{where}/init", where), "nothing": f"{where}/nothing", "bin/true": "/bin/true",
        "lib64/ld-linux-x86-64.so.2": f"{LIBRARY}/ld-linux-x86-64.so.2",
        "lib/x86_64-linux-gnu/libc.so.6": f"{LIBRARY}/libc.so.6",
        "empty.ko": module(f"{HERE}/empty", release, where),
    }
    if morphmon:
        files["morphmon.ko"] = morphmon
    files.update(more or {})
    data = {}
    for name, path in files.items():
        with open(path, "rb") as f:
            data[name] = (0o755, f.read())
    image = f"{where}/initramfs"
    with open(image, "wb") as f:
        f.write(cpio(data, ["proc", "sys", "dev", "data", "bin", "lib", "lib64", "lib/x86_64-linux-gnu"]))
    return image


# ---- results ----------------------------------------------------------------

Irq = collections.namedtuple("Irq", "classes insns added code data")
Op = collections.namedtuple("Op", "kernel user added code data")


class Window:
    """One work in one state. @samples is the collector's own count, or 0 if it has none."""

    def __init__(self):
        self.state = self.work = None
        self.nr = self.samples = self.kernel = self.user = 0
        self.irqs, self.ops = [], []
        self.profile = collections.defaultdict(collections.Counter)

    def median(self):
        """Median of an operation's instructions, without interrupts."""
        return statistics.median(o.kernel + o.user for o in self.ops)

    def lines(self):
        """Medians of an operation's distinct cache lines of code and of data."""
        return [statistics.median(v) for v in ([o.code for o in self.ops], [o.data for o in self.ops])]

    def sampling(self):
        """Instructions of interrupts for a sample alone, and the module's instructions in the other
        interrupts."""
        return sum(i.added if i.classes & BIT_TICK else i.insns
                   for i in self.irqs if i.classes & BIT_SAMPLE)

    def per_op(self):
        """Instructions of an operation, with its share of ticks and of deferred work, but without
        samples."""
        return (self.kernel + self.user - self.sampling()) / self.nr

    def added(self):
        """Mean of an operation's instructions in the module and in functions that the module
        called."""
        return statistics.mean(o.added for o in self.ops)


class Result:
    def __init__(self):
        self.facts, self.modules, self.streams = {}, {}, {}
        self.windows = {}  # (state, work): Window
        self.symbols = []  # (address, name), ascending

    def fact(self, name):
        return next((v for k, v in self.facts.items() if k.endswith("/" + name)), "unknown")

    def interrupts(self, state, classes, average, work="loop"):
        found = [i for i in self.windows[state, work].irqs if i.classes == classes]
        if not found:
            raise Failure(f"{state}: no interrupt of kind {classes}")
        return Irq(*(average(v) for v in zip(*found)))

    def per_sample(self, state, work="loop"):
        """Mean of the work's interrupts that were for a sample alone."""
        return self.interrupts(state, BIT_SAMPLE, statistics.mean, work)

    def per_tick(self, state):
        """Median of the loop's ticks, with or without a sample; not the mean, as a few ticks do
        more."""
        window = self.windows[state, "loop"]
        sampled = any(i.classes == BIT_TICK | BIT_SAMPLE for i in window.irqs)
        return self.interrupts(state, BIT_TICK | BIT_SAMPLE if sampled else BIT_TICK,
                               statistics.median)


def parse(out, console, profile):
    result, windows, names = Result(), {}, {}
    window = None
    for line in open(out):
        word, *rest = line.split()
        v = [int(x) for x in rest]
        if word == "window":
            window = windows[v[0]] = Window()
        elif word == "irq":
            window.irqs.append(Irq(*v))
        elif word == "op":
            window.ops.append(Op(*v))
        elif word == "end":
            window.kernel, window.user = v
    if profile:
        for line in open(profile):
            _, n, classes, address, count = line.split()
            windows[int(n)].profile[int(classes)][int(address, 16)] += int(count)
    state = None
    for line in open(console, errors="replace"):
        if line.startswith("FAIL: "):
            raise Failure(f"in the guest: {line[6:].strip()}")
        words = line.split()
        if line.startswith("window "):
            n, state, work, nr, samples = words[1:]
            w = windows[int(n)]
            w.state, w.work, w.nr, w.samples = state, work, int(nr), int(samples)
            result.windows[state, work] = w
        elif line.startswith("fact "):
            result.facts[words[1]] = line.split(" ", 2)[2].strip()
        elif line.startswith("symbol "):
            result.symbols.append((int(words[1], 16), words[2]))
        elif line.startswith("module "):
            result.modules[words[1]] = (int(words[2], 16), int(words[3]))
        elif line.startswith("stream "):
            result.streams[state] = [int(x) for x in re.findall(r"\d+", line)]
        elif line.startswith("done"):
            names = None
    if names is not None:
        raise Failure("the guest did not finish")
    result.symbols.sort()
    return result


def boot(kernel, image, where, states="all", works="all", share=1, profile=False, timeout=900):
    """Runs the guest to its end. Returns a Result."""
    out, console, serial = (f"{where}/{f}" for f in ("counts", "console", "serial"))
    counter = f"{BUILD}/plugin/kernel.so,out={out}"
    if profile:
        counter += f",profile={where}/profile"
    append = f"{APPEND} console=ttyS0 cost_states={states} cost_works={works} cost_share={share}"
    if profile:
        append += " cost_symbols=1"
    args = ["qemu-system-x86_64", *MACHINE, "-kernel", f"{kernel}/vmlinux", "-initrd", image,
            "-append", append, "-plugin", counter, "-serial", f"file:{serial}",
            "-chardev", f"file,id=d,path={console}",
            "-device", "isa-debugcon,iobase=0xe9,chardev=d"]
    try:
        command(args, timeout=timeout)
    except subprocess.TimeoutExpired:
        pass
    try:
        return parse(out, console, f"{where}/profile" if profile else None)
    except Failure as failure:
        tail = "".join(open(serial, errors="replace").readlines()[-20:])
        raise Failure(f"{failure}\n{tail}".strip()) from None
