# SPDX-License-Identifier: Apache-2.0
"""tortureprograms - the programs for scripts/check/torture, and how to build them."""

import collections
import glob
import itertools
import os
import re
import shutil
import struct
import subprocess
import tempfile

CACHE = os.environ.get("MORPH_CACHE", os.path.expanduser("~/.cache/morph"))
PACKAGE = "gcc-12-source"
FETCH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fetch-package")
CSMITH_INCLUDE = "/usr/include/csmith"

COMPILERS = ("gcc", "clang")
LEVELS = ("-O0", "-O2", "-O3", "-Os")
LINKS = {
    "pie": (["-fPIE"], ["-pie"]),
    "nopie": (["-fno-pie"], ["-no-pie"]),
    "static": (["-fno-pie"], ["-static"]),
}
SHT_SYMTAB, SHF_EXECINSTR = 2, 4
# Linked with relocations; or as distributions do, linked without and stripped.
KINDS = ("relinkable", "stripped")

# Debian's rustc, even if $PATH finds another one first.
RUSTC = os.environ.get("RUSTC", "/usr/bin/rustc")
RUST_LEVELS = ("-O0", "-O2", "-O3", "-Os")
RUST_LINKS = {
    "pie": [],
    "nopie": ["-Crelocation-model=static"],
    "static-pie": ["-Ctarget-feature=+crt-static"],
}
# gold and mold of Debian 12 crash with --emit-relocs and rustc's objects.
RUST_LINKERS = {"relinkable": ("bfd", "lld"), "stripped": ("bfd", "gold", "lld", "mold")}

Config = collections.namedtuple("Config", "compiler level link kind")
Program = collections.namedtuple("Program", "name files flags")


def config_name(config):
    return f"{config.compiler}{config.level}-{config.link}-{config.kind}"


def configs():
    return [Config(*c) for c in itertools.product(COMPILERS, LEVELS, LINKS, KINDS)]


def rust_configs():
    """The linker's name is appended to the way of linking."""
    return [Config("rustc", level, f"{link}-{linker}", kind)
            for level, link, kind in itertools.product(RUST_LEVELS, RUST_LINKS, KINDS)
            for linker in RUST_LINKERS[kind] if (link, linker) != ("static-pie", "gold")]


class Missing(Exception):
    """The programs, or the tools that make them, are not available here."""


def fetch():
    """The directory of gcc.c-torture/execute; fetched and unpacked if it is missing."""
    where = os.path.join(CACHE, "torture")
    if os.path.exists(os.path.join(where, ".complete")):
        return where
    os.makedirs(CACHE, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=CACHE) as tmp:
            print(f"  FETCH   {PACKAGE}", flush=True)
            subprocess.run([FETCH, PACKAGE, tmp], check=True)
            deb = glob.glob(os.path.join(tmp, "*.deb"))[0]
            script = (
                "set -e; dpkg-deb --fsys-tarfile \"$1\" | "
                "tar xOf - --wildcards './usr/src/gcc-12/gcc-*.tar.xz' | xz -dc | "
                "tar xf - -C \"$2\" --wildcards '*/gcc.c-torture/execute/*'")
            subprocess.run(["bash", "-c", script, "sh", deb, tmp], check=True,
                           stderr=subprocess.DEVNULL)
            found = glob.glob(os.path.join(tmp, "**", "gcc.c-torture", "execute"),
                              recursive=True)[0]
            shutil.rmtree(where, ignore_errors=True)
            shutil.move(found, where)
            open(os.path.join(where, ".complete"), "w").close()
    except (subprocess.CalledProcessError, IndexError, OSError) as e:
        raise Missing(f"{PACKAGE} cannot be fetched: {e}") from e
    return where


def is_program(path):
    """Whether the file is a program, and not a helper of execute/builtins."""
    return not path.endswith("-lib.c") and os.path.basename(os.path.dirname(path)) != "lib"


def parts(source):
    """The files that make up one program."""
    there = os.path.dirname(source)
    if os.path.basename(there) != "builtins":
        return [source]
    return [source, source[:-2] + "-lib.c", os.path.join(there, "lib", "main.c")]


def suite(names):
    """The programs of the suite; @names: if any, only these."""
    where = fetch()
    out = []
    for source in sorted(glob.glob(os.path.join(where, "**", "*.c"), recursive=True)):
        name = os.path.relpath(source, where)[:-2]
        if not is_program(source) or (names and os.path.basename(name) not in names):
            continue
        with open(source, encoding="utf-8", errors="replace") as f:
            flags = re.findall(r"dg-(?:additional-)?options \"([^\"]*)\"", f.read())
        out.append(Program(name, parts(source), " ".join(flags).split()))
    return out


def rust(names):
    """Morph's own Rust programs: panics, generics, threads; they contain std."""
    if not os.path.exists(RUSTC):
        raise Missing(f"{RUSTC} is not installed (Debian: rustc)")
    tests = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests")
    files = [*glob.glob(os.path.join(tests, "torture", "rust", "*.rs")),
             os.path.join(tests, "data", "linkers.rs")]
    return [Program("rust-" + os.path.basename(f)[:-3], [f], []) for f in sorted(files)
            if not names or os.path.basename(f)[:-3] in names]


def csmith(number, seed):
    """Programs of csmith; generate() writes them later."""
    if not shutil.which("csmith") or not os.path.exists(CSMITH_INCLUDE + "/csmith.h"):
        raise Missing("csmith is not installed (Debian: csmith, libcsmith-dev)")
    return [Program(f"csmith-{seed + i}", [], ["-I" + CSMITH_INCLUDE]) for i in range(number)]


def run(command, scratch, seconds):
    """Status and output; status 'timeout' after a timeout."""
    try:
        done = subprocess.run(command, cwd=scratch, timeout=seconds, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return "timeout", b""


def generate(program, scratch):
    """The program with its file; csmith writes the file if necessary. TimeoutError: csmith does not end."""
    if program.files:
        return program
    source = os.path.join(scratch, program.name + ".c")
    seed = program.name.split("-")[1]
    status, said = run(["csmith", "--seed", seed, "-o", source], scratch, 60)
    if status == "timeout":
        raise TimeoutError
    if status != 0:
        raise Missing(f"csmith --seed {seed}: exit {status}: {said[-200:]!r}")
    return program._replace(files=[source])


def build(program, config, exe, scratch):
    """
    Builds @exe. Returns None or the reason of a failure, and the program's own functions:
    (address, size, name) each. The functions are read before the file is stripped.
    """
    if config.compiler == "rustc":
        return build_rust(program, config, exe, scratch)
    compiling, linking = LINKS[config.link]
    objects = []
    for i, source in enumerate(program.files):
        objects.append(f"{exe}.{i}.o")
        command = [config.compiler, "-w", "-std=gnu17", *program.flags, config.level, *compiling,
                   "-c", "-o", objects[-1], source]
        if run(command, scratch, 120)[0] != 0:
            return "does not build", []
    command = [config.compiler, *linking, "-o", exe, *objects, "-lm"]
    if config.kind == "relinkable":
        command.insert(1, "-Wl,--emit-relocs")
    if run(command, scratch, 120)[0] != 0:
        return "does not build", []
    names = {n for _, _, n in functions(objects)}
    own = [f for f in functions([exe]) if f[2] in names]
    if config.kind == "stripped" and run(["strip", "-s", exe], scratch, 60)[0] != 0:
        return "does not build", []
    return None, own


def build_rust(program, config, exe, scratch):
    """The same for a Rust program. All functions count as its own: std is linked in."""
    link, linker = config.link.rsplit("-", 1)
    command = [RUSTC, "-Awarnings", f"-Copt-level={config.level[2:]}", *RUST_LINKS[link],
               f"-Clink-arg=-fuse-ld={linker}", "-o", exe, *program.files]
    if config.kind == "relinkable":
        command.append("-Clink-arg=-Wl,--emit-relocs")
    if run(command, scratch, 300)[0] != 0:
        return "does not build", []
    own = [f for f in functions([exe]) if re.match(r"_ZN|_R", f[2])]
    if config.kind == "stripped" and run(["strip", "-s", exe], scratch, 60)[0] != 0:
        return "does not build", []
    return None, own


def text_of(data, start):
    """The text at @start, up to its zero."""
    return data[start:data.index(b"\0", start)].decode(errors="replace")


def functions(files):
    """(address, size, name) of the symbols with a size in code. As nm has them, in a tenth of the time."""
    out = []
    for path in files:
        with open(path, "rb") as f:
            data = f.read()
        at, entry, number = (struct.unpack_from(form, data, off)[0] for form, off in (("<Q", 40), ("<H", 58), ("<H", 60)))
        # Of each section: type, flags, offset, size, link.
        sections = [struct.unpack_from("<4xIQ8xQQI", data, at + i * entry) for i in range(number)]
        for kind, _, off, size, link in sections:
            if kind != SHT_SYMTAB:
                continue
            for name, section, address, length in struct.iter_unpack("<I2xHQQ", data[off:off + size]):
                if length and 0 < section < number and sections[section][1] & SHF_EXECINSTR:
                    out.append((address, length, text_of(data, sections[link][2] + name)))
    return out
