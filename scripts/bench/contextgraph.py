# SPDX-License-Identifier: Apache-2.0
"""Compares the call graph of `morph-stats calls` with the exact one of tests/plugin/contexts.c.

Feeds the samples of a run to a database, as morphd does, and asks morph-stats. An edge is a pair:
the address behind the call (of a tail call: of the jump), and the function.
"""

import json
import os
import re
import shutil
import subprocess
import time

import contextfile as cf
import contextrun
from contextfile import Failure


def real(path):
    return os.path.realpath(path)


def exact_graph(ctx):
    """{(file, address, file, function): calls}; without calls by the kernel."""
    out = {}
    for site, function, count, _ in ctx.edges:
        obj, vaddr, length, kind = ctx.sites[site]
        if site == 0 or kind in (cf.SIGNAL, cf.STACK, cf.INTERRUPTED):
            continue
        callee, entry, _ = ctx.functions[function]
        at = vaddr if kind == cf.JUMP else vaddr + length
        key = (real(ctx.objects[obj]), at, real(ctx.objects[callee]), entry)
        out[key] = out.get(key, 0) + count
    return out


def is_elf(path):
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def lines_of(ctx, samples):
    """The lines that contexts-store reads."""
    numbers = {}
    # the program comes first
    order = sorted(ctx.objects, key=lambda o: real(ctx.objects[o]) != real(ctx.program))
    for obj in order:
        if is_elf(ctx.objects[obj]):
            numbers[obj] = len(numbers)
            yield f"module {real(ctx.objects[obj])}"
    for sample, stack in cf.samples(samples):
        callers = []
        for a in reversed(stack):
            obj, vaddr, length, kind = ctx.sites[a.site]
            if a.site == 0 or kind == cf.START:
                continue
            if kind == cf.INTERRUPTED:
                callers.append(f"a:{numbers.get(obj, -1):x}:{vaddr:x}:{a.slot:x}")
            else:
                callers.append(f"c:{numbers.get(obj, -1):x}:{vaddr + length:x}:{a.slot:x}")
        yield (f"sample {sample.thread} {numbers.get(sample.object, -1)} {sample.vaddr:x} "
               + " ".join(callers))


def sampled_graphs(ctx, samples):
    """Plain stack sampling: each sample counts for its innermost call, or for all calls of its stack."""
    innermost, all_calls = {}, {}
    for _, stack in cf.samples(samples):
        edges = []
        for a in stack:
            obj, vaddr, length, kind = ctx.sites[a.site]
            if a.site == 0 or kind not in (cf.DIRECT, cf.INDIRECT):
                continue
            callee, entry, _ = ctx.functions[ctx.whole(a.function)]
            if callee is not None:
                edges.append((real(ctx.objects[obj]), vaddr + length, real(ctx.objects[callee]),
                              entry))
        for edge in set(edges):
            all_calls[edge] = all_calls.get(edge, 0) + 1
        for edge in edges[-1:]:
            innermost[edge] = innermost.get(edge, 0) + 1
    return {"innermost": innermost, "all": all_calls}


def make_store(ctx, directory, database, *options):
    tool = os.path.join(contextrun.BUILD, "tools", "contexts-store")
    if not os.path.exists(tool):
        raise Failure(f"{tool}: not there: `make tools` builds it")
    if os.path.exists(database):
        os.unlink(database)
    lines = "\n".join(lines_of(ctx, os.path.join(directory, "samples"))) + "\n"
    made = subprocess.run([tool, *options, database], input=lines, text=True, capture_output=True, check=False)
    if made.returncode:
        raise Failure(f"{directory}: {made.stderr.strip()}")


# Libraries choose the same functions under QEMU as on any processor.
SAME_FUNCTIONS = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + ",".join(
    "-" + name for name in ("AVX", "AVX2", "AVX512F", "AVX512BW", "AVX512VL", "AVX512CD", "AVX512DQ",
                            "AVX512ER", "BMI1", "BMI2", "ERMS", "FMA", "FMA4", "FSRM", "LZCNT",
                            "MOVBE", "POPCNT", "RTM", "SSSE3", "SSE4_1", "SSE4_2",
                            "Fast_Unaligned_Load")),
    "OPENSSL_ia32cap": "0x178bfbff:0"}  # of libcrypto: SSE2


def run_native(work, database, seconds, rate):
    """Runs @work again and again for @seconds, and samples its stacks. Returns lost samples."""
    if os.path.exists(database):
        os.unlink(database)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        made = subprocess.run([os.path.join(contextrun.BUILD, "morphd"), "run", "--stacks", "--rate",
                               str(rate), "--db", database, "--", work.program, *work.args],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        if made.returncode:
            raise Failure(f"{work.name}: {made.stderr.strip()}")
    made = subprocess.run([os.path.join(contextrun.BUILD, "morph-stats"), "status", "--db", database,
                           "--json"], capture_output=True, text=True, check=True)
    return sum(json.loads(made.stdout)["samples"]["lost"].values())


def instrument(paths, out, database, kind="calls"):
    """Writes instrumented versions of modules. Returns {path: original}."""
    out = os.path.abspath(out)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    made = {}
    for path in sorted({real(p) for p in paths if is_elf(p)}):
        # programs name libraries by their sonames, which differ from names of files
        names = {os.path.basename(p) for p in paths if real(p) == path}
        version = os.path.join(out, os.path.basename(path))
        done = subprocess.run([os.path.join(contextrun.BUILD, "morph-optimize"), "instrument", "--all",
                               ("--lab=kind=" if kind == "none" else "--kind=") + kind, "--report=none", path, "-o", version]
                              + (["--counts=" + os.path.join(out, "calls" if kind == "calls" else
                                                             os.path.basename(path) + ".counts")]
                                 if kind in ("calls", "pep,poll") else [])
                              + (["--db", database] if database else []),
                              capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"  {path}: no version: {done.stderr.strip()}")
            continue
        made[version] = path
        for name in names | {soname_of(path)}:
            if name and not os.path.exists(os.path.join(out, name)):
                os.symlink(version, os.path.join(out, name))
    return made


def soname_of(path):
    listed = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\(SONAME\).*\[(.*)\]", listed)
    return found.group(1) if found else None


def run_clocked(work, made, database, seconds, rate, period):
    """Runs the versions @made again and again for @seconds, with both clocks. Returns lost samples of time."""
    out = os.path.abspath(os.path.join(work.directory, "clock"))
    program = os.path.join(out, os.path.basename(real(work.program)))
    if program not in made:
        raise Failure(f"{work.name}: the program itself has no clock")
    end, runs = time.monotonic() + seconds, 0
    while time.monotonic() < end or not runs:
        ran = subprocess.run([os.path.join(contextrun.BUILD, "morphd"), "run", "--calls",
                              os.path.join(out, "calls"), "--call-period", str(period), "--stacks",
                              "--rate", str(rate), "--db", database, "--", "env",
                              "LD_LIBRARY_PATH=" + out, program, *work.args],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, check=False)
        if ran.returncode:
            raise Failure(f"{work.name}: {ran.stderr.strip()}")
        runs += 1
    status = subprocess.run([os.path.join(contextrun.BUILD, "morph-stats"), "status", "--db", database,
                             "--json"], capture_output=True, text=True, check=True)
    return sum(json.loads(status.stdout)["samples"]["lost"].values())


def renamed(graph, made):
    """Modules of a database have the paths of their versions, if these ran last."""
    out = {}
    for (caller, at, callee, entry), weight in graph.items():
        key = (made.get(caller, caller), at, made.get(callee, callee), entry)
        out[key] = out.get(key, 0) + weight
    return out


def compare_clock(work, seconds, rate, period):
    """The same for calls that a clock of calls samples, on this machine's processor.

    The stacks of time are those of the exact run if @rate is 0, else samples of the same runs.
    """
    ctx = cf.Contexts(os.path.join(work.directory, "contexts"))
    database = os.path.join(work.directory, "clock.db")
    make_store(ctx, work.directory, database, *(["--contexts"] if rate else []))
    if rate:  # the database knows where the originals are; their samples are left out
        subprocess.run(["sqlite3", database, "DELETE FROM context; DELETE FROM ledger;"], check=True)
    made = instrument(ctx.objects.values(), os.path.join(work.directory, "clock"), database)
    lost = run_clocked(work, made, database, seconds, rate or 1, period)
    exact = exact_graph(ctx)
    columns = {c: renamed(estimated(database, None, c), made) for c in ("samples", "called", "weight")}
    calls = sum(columns["called"].values())
    return {"samples": int(sum(columns["samples"].values())), "calls": int(calls), "lost": lost,
            "edges": len(exact), "first_targets": first_targets(ctx, exact, columns["weight"]),
            "uncorrected": cf.overlap(columns["samples"], exact),
            "called": cf.overlap(columns["called"], exact) if calls else 0,
            "corrected": cf.overlap(columns["weight"], exact)}, exact, columns["weight"]


def estimated(database, program=None, column="weight"):
    """Edges that morph-stats finds, with their weights."""
    made = subprocess.run([os.path.join(contextrun.BUILD, "morph-stats"), "calls", "--db", database,
                           "--json", "--percent-limit=0"]
                          + ([f"--module={program}"] if program else []), capture_output=True, text=True,
                          check=False)
    if made.returncode:
        raise Failure(f"{database}: {made.stderr.strip()}")
    out = {}
    for row in json.loads(made.stdout)["rows"]:
        caller, callee = row["caller"], row["callee"]
        if not caller:
            continue
        at = caller["site" if "tail" in row["kind"] else "return_address"]
        key = (real(caller["module"]), int(at, 16), real(callee["module"]),
               int(callee["address"], 16))
        out[key] = out.get(key, 0) + row[column]
    return out


def compare(directory):
    """Overlaps with the exact graph of the run in @directory; the exact graph and Morph's."""
    ctx = cf.Contexts(os.path.join(directory, "contexts"))
    database = os.path.join(directory, "graph.db")
    samples = os.path.join(directory, "samples")
    make_store(ctx, directory, database)
    exact, found = exact_graph(ctx), estimated(database)
    row = {"samples": ctx.totals["samples"], "edges": len(exact)}
    for name, graph in (*sampled_graphs(ctx, samples).items(),
                        ("uncorrected", estimated(database, column="samples")),
                        ("corrected", found)):
        row[name] = cf.overlap(graph, exact)
    row["first_targets"] = first_targets(ctx, exact, found)
    return row, exact, found


def compare_native(work, seconds, rate):
    """The same for samples of this machine's processor; @work.directory has the exact run."""
    exact = exact_graph(cf.Contexts(os.path.join(work.directory, "contexts")))
    database = os.path.join(work.directory, "native.db")
    lost = run_native(work, database, seconds, rate)
    uncorrected, found = (estimated(database, real(work.program), c)
                          for c in ("samples", "weight"))
    return {"samples": sum(uncorrected.values()), "lost": lost, "edges": len(exact),
            "uncorrected": cf.overlap(uncorrected, exact),
            "corrected": cf.overlap(found, exact)}, exact, found


def compare_counted(work):
    """The same for exact counts of blocks, by callgrind, and sampled stacks of the run."""
    ctx = cf.Contexts(os.path.join(work.directory, "contexts"))
    counts, database = (os.path.join(work.directory, n) for n in ("callgrind", "counted.db"))
    # By default, callgrind counts the instructions of stubs (PLT) for the calls that lead there.
    subprocess.run(["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes", "--skip-plt=no",
                    "--callgrind-out-file=" + counts, work.program, *work.args],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    make_store(ctx, work.directory, database, "--contexts")
    subprocess.run([os.path.join(contextrun.BUILD, "morph-stats"), "import", "--db", database,
                    "--format=callgrind", counts], stdout=subprocess.DEVNULL, check=True)
    exact, found = exact_graph(ctx), estimated(database)
    return {"samples": ctx.totals["samples"], "edges": len(exact),
            "uncorrected": cf.overlap(estimated(database, column="samples"), exact),
            "corrected": cf.overlap(found, exact)}, exact, found


LARGE = (0.5, 0.1)  # percent of all calls


def first_targets(ctx, exact, found):
    """{percent: [of so many indirect sites with as many of the calls the most frequent target is found, sites]}"""
    indirect = {(real(ctx.objects[obj]), vaddr + length)
                for obj, vaddr, length, kind in ctx.sites.values() if kind == cf.INDIRECT}
    sites, guesses, total = {}, {}, sum(exact.values())
    for graph, by_site in ((exact, sites), (found, guesses)):
        for (caller, at, callee, entry), weight in graph.items():
            if (caller, at) in indirect:
                by_site.setdefault((caller, at), {})[callee, entry] = weight
    out = {}
    for least in LARGE:
        large = [s for s, targets in sites.items() if 100 * sum(targets.values()) >= least * total]
        # Two targets may be called equally often.
        right = sum(s in guesses and sites[s].get(max(guesses[s], key=guesses[s].get), 0) == max(sites[s].values())
                    for s in large)
        out[least] = [right, len(large)]
    return out


def targets_line(firsts):
    return ", ".join(f"{right} of {nr} indirect sites with {least} % of the calls"
                     for least, (right, nr) in firsts.items())


def print_errors(exact, found, nr):
    """The edges whose shares differ most."""
    sums = sum(exact.values()), sum(found.values())
    if not all(sums):
        return
    wrong = sorted(((found.get(k, 0) / sums[1] - exact.get(k, 0) / sums[0], k)
                    for k in exact.keys() | found.keys()), key=lambda w: -abs(w[0]))
    for difference, key in wrong[:nr]:
        print(f"  {100 * difference:+6.2f} % of {100 * exact.get(key, 0) / sums[0]:5.2f} %: "
              f"{os.path.basename(key[0])}+{key[1]:#x} -> {os.path.basename(key[2])}+{key[3]:#x}")
