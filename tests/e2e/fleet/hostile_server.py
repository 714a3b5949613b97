#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_server - speaks PostgreSQL's protocol at a socket, and answers otherwise than a server of Morph's fleet.

hostile_server.py DIR: listens at DIR/.s.PGSQL.5432. A client's database says how it is answered.
"""

import os
import socket
import struct
import sys
import threading
import time


def message(kind, body=b""):
    return kind + struct.pack("!I", 4 + len(body)) + body


READY = message(b"Z", b"I")
DONE = message(b"C", b"SELECT 1\0")


def row(*values):
    body = struct.pack("!H", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!I", len(value)) + value
    return message(b"D", body)


def columns(nr, kind=25):
    return message(b"T", struct.pack("!H", nr) + b"".join(
        b"c%d\0" % i + struct.pack("!IHIhih", 0, 0, kind, -1, -1, 0) for i in range(nr)))


def rows(*list_of_rows, nr=1):
    return columns(nr) + b"".join(list_of_rows) + DONE + READY


# Whole answers, by the name of the database.
ANSWERS = {
    "none": DONE + READY,
    "empty": rows(),
    "no-columns": rows(row(), nr=0),
    "null": rows(row(None)),
    "two-columns": rows(row(b"[]", b"[]"), nr=2),
    "no-json": rows(row(b"[{")),
    "nul": rows(row(b'[{"answer": "ke\0ep"}]')),
    "escaped-nul": rows(row(b'[{"answer": "keep\\u0000", "action": "install\\u0000"}]')),
    "no-utf8": rows(row(b'[{"answer": "\xff\xfe", "action": "\xc3"}]')),
    "types": rows(row(b'[{"answer": 1, "cause": [], "lease_s": "x", "action": {}, "module": 3, "options": null}]')),
    "numbers": rows(row(b'[{"answer": "lease", "cause": "", "lease_s": 1e300}]')),
    "negative": rows(row(b'[{"answer": "lease", "cause": "", "lease_s": -1}]')),
    "no-object": rows(row(b"[1, null, []]")),
    "deep": rows(row(b"[" * 100000)),
    "error": message(b"E", b"SERROR\0C57014\0M\x1b[2J\xff\n\0\0") + READY,
    "bare-error": message(b"E", b"\0") + READY,
    "copy-in": message(b"G", b"\0\0\0"),
    "copy-out": message(b"H", b"\0\0\0"),
    "copy-both": message(b"W", b"\0\0\0"),
    "unknown": message(b"?", b"x" * 10),
    "short": b"D\0\0\0\x02",
    "huge": b"D" + struct.pack("!I", 0x7ffffff0),
}
# Answers without an end, in pieces.
ENDLESS = {
    "silent": b"",
    "results": DONE * 100,
    "rows": row(b"x" * 100000),
    "notices": message(b"N", b"SNOTICE\0C00000\0M\x1b[2Jlook\0\0"),
    "parameters": message(b"S", b"name\0value\0"),
}


def read(conn, size):
    data = b""
    while len(data) < size:
        more = conn.recv(size - len(data))
        if not more:
            raise OSError
        data += more
    return data


def answer(conn, name):
    if name in ANSWERS:
        conn.sendall(ANSWERS[name])
        return
    if name in ("rows",):
        conn.sendall(columns(1))
    while True:
        if ENDLESS[name]:
            conn.sendall(ENDLESS[name])
        time.sleep(0.01)


def serve(conn):
    with conn:
        try:
            words = read(conn, struct.unpack("!I", read(conn, 4))[0] - 4)[4:].split(b"\0")
            name = dict(zip(words[::2], words[1::2])).get(b"database", b"").decode()
            conn.sendall(message(b"R", b"\0\0\0\0") + message(b"S", b"client_encoding\0UTF8\0") + READY)
            first = True
            while True:
                kind, size = read(conn, 1), struct.unpack("!I", read(conn, 4))[0]
                read(conn, size - 4)
                if kind == b"X":
                    return
                if kind == b"Q" and first:  # what a client sets for its connection
                    first = False
                    conn.sendall(message(b"C", b"SET\0") * 3 + READY)
                elif kind in b"QS":
                    answer(conn, name)
        except OSError:
            pass


def main():
    listener = socket.socket(socket.AF_UNIX)
    path = os.path.join(sys.argv[1], ".s.PGSQL.5432")
    listener.bind(path + ".new")
    listener.listen(64)
    os.rename(path + ".new", path)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    if sys.argv[1] == "--names":
        print("\n".join([*ANSWERS, *ENDLESS]))
    else:
        main()
