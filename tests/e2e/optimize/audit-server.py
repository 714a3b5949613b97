#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server for tests/e2e/optimize/audit-servers.sh: audit-server.py SOCKET MODE. Each request costs WORK rounds."""
import os
import signal
import socket
import sys
import time

WORK = int(os.environ.get("WORK", "100000"))
path, mode = sys.argv[1:3]
if mode == "never":
    print("waiting for the moon", file=sys.stderr, flush=True)
    time.sleep(4321)
if mode == "refuses":
    print("no configuration", file=sys.stderr)
    sys.exit(4)
if mode in ("deaf", "stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mode == "discards":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.path.exists(path):
    os.unlink(path)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(16)
if mode == "daemon" and os.fork():
    os._exit(0)
if mode == "daemon":
    os.setsid()
requests = 0
while True:
    try:
        connection = listener.accept()[0]
        if not connection.recv(1):
            connection.close()
            continue
        requests += 1
        if mode == "dies" and requests == 2:
            print("out of luck", file=sys.stderr, flush=True)
            os._exit(3)
        if mode == "leaves" and requests == 2:
            if os.fork() == 0:
                time.sleep(4321)
            os.kill(os.getpid(), signal.SIGSEGV)
        child = os.fork() if mode in ("forks", "discards") else -1
        if child <= 0:
            for i in range(WORK):
                pass
            connection.send(b"done\n")
        connection.close()
        if child == 0:
            os._exit(0)
        if child > 0 and mode == "forks":
            os.waitpid(child, 0)
    except (BrokenPipeError, ConnectionResetError):
        pass
