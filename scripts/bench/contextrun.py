# SPDX-License-Identifier: Apache-2.0
"""Runs programs with tests/plugin/contexts.c, and describes the seven programs of the benchmark."""

import ctypes
import os
import resource
import shutil
import subprocess
import time

from contextfile import Failure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))


def fixed_addresses():
    """In the child: the same addresses in each run."""
    ADDR_NO_RANDOMIZE = 0x0040000
    libc = ctypes.CDLL(None)
    libc.personality(ctypes.c_ulong(libc.personality(0xffffffff) | ADDR_NO_RANDOMIZE))


def quoted(path):
    """A path quoted for the comma-separated list of -plugin."""
    return os.path.abspath(path).replace(",", ",,")


def emulated(command, stdin, stdout, cwd=None):
    """Runs @command. Returns its status, CPU seconds and greatest MiB."""
    with open(stdin or os.devnull, "rb") as source, open(stdout, "wb") as sink:
        child = subprocess.Popen(command, stdin=source, stdout=sink, cwd=cwd,
                                 preexec_fn=fixed_addresses)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return {"status": child.returncode, "seconds": used.ru_utime + used.ru_stime,
            "mib": used.ru_maxrss / 1024}


def run(program, args, out, period=100000, seed=1, stack=0, single=False, stdin=None, argv0=None,
        plugin=True, cwd=None):
    """Runs @program; the results are out/contexts, out/samples and out/stdout."""
    qemu = shutil.which("qemu-x86_64")
    path = os.path.join(BUILD, "plugin", "contexts.so")
    if not qemu:
        raise Failure("qemu-x86_64: not found (Debian: qemu-user)")
    if not os.path.exists(path):
        raise Failure(f"{path}: not there: `make plugins` builds it")
    if not os.access(program, os.X_OK):
        raise Failure(f"{program}: not there or not executable")
    command = [qemu, "-seed", "1", "-0", argv0 or program]
    if single:
        command.append("-singlestep")
    if plugin:
        for name in ("contexts", "samples"):
            if os.path.exists(os.path.join(out, name)):
                os.unlink(os.path.join(out, name))
        command += ["-plugin", ",".join(
            [quoted(path), "out=" + quoted(os.path.join(out, "contexts")),
             "samples=" + quoted(os.path.join(out, "samples")),
             f"period={period}", f"seed={seed}", f"stack={stack}"])]
    ran = emulated(command + [program] + list(args), stdin, os.path.join(out, "stdout"), cwd)
    if plugin and not os.path.exists(os.path.join(out, "contexts")):
        raise Failure(f"{program}: ended with status {ran['status']} and left no contexts")
    return ran
