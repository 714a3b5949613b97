# SPDX-License-Identifier: Apache-2.0
"""Everyday work of eight programs of different kinds, for scripts/bench/meter.

A unit is a script for sh that a program needs some tenths of a second for. Each program has seen units, with which its
meter is chosen, and unseen ones: other inputs. Some also have other units: unseen inputs, and partly other kinds of
work, of which nothing was seen. Units are drawn at random, and are the same for the same random numbers. $P in a script
is the version of the program, $W the directory of the inputs.
"""

import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
import zlib

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

import benchlib as lib  # noqa: E402
from benchlib import BUILD, ENV, Failure, ROOT  # noqa: E402
from machineworks import Database, run, source  # noqa: E402
from stockworks import SCRIPTS, cc1_path, in_loader_cache  # noqa: E402


class Work:
    """name; kind: in words; path: of the file whose versions count, None if it lacks; executed: of the program that
    uses it, if it is a library."""

    executed = None
    has_other = False

    def __init__(self, name, kind, path):
        self.name, self.kind = name, kind
        self.path = os.path.realpath(path) if path and os.path.exists(path) else None
        self.where = None

    def prepare(self, where):
        """Make the inputs, once, below the directory @where."""
        self.where = where
        if not os.path.exists(f"{where}/complete"):
            shutil.rmtree(where, ignore_errors=True)
            os.makedirs(where)
            self.make()
            with open(f"{where}/complete", "w", encoding="ascii"):
                pass

    def make(self):
        """What prepare() makes."""

    def start(self, version):
        """Start a server of this version (see scripts/bench/meter). Return: what stop() takes."""

    def stop(self, server):
        """End it in order."""

    def unit(self, rng, seen, other=False):
        """A script."""
        raise NotImplementedError


def system(name):
    return shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")


def files_of(directory, suffix=""):
    return sorted(os.path.join(d, f) for d, _, names in os.walk(directory) for f in names if f.endswith(suffix))


class Compiler(Work):
    """cc1 compiles preprocessed files of packages."""

    PACKAGES = {True: ("bzip2", "zlib", "less", "gzip", "m4"), False: ("patch", "file")}

    def __init__(self):
        super().__init__("cc1", "compiler", cc1_path())
        self.files = {}

    def make(self):
        for seen, packages in self.PACKAGES.items():
            for p in packages:
                out, tree = f"{self.where}/{seen}/{p}", f"{self.where}/tree"
                os.makedirs(out)
                run(["sh", "-ec",
                     "rm -rf $2 && cp -a $1 $2 && cd $2; test ! -x configure || ./configure >/dev/null 2>&1; "
                     "make -s -j2 CC='gcc -save-temps=obj' >/dev/null 2>&1 || true; i=0; find . -name '*.i' | sort | "
                     "while read f; do $4 -quiet -w -g -fpreprocessed $f -o /dev/null 2>/dev/null || continue; "
                     "i=$((i + 1)); mv $f $3/$i.i; done; test -s $3/1.i; rm -rf $2",
                     "sh", source(p), tree, out, self.path])

    def unit(self, rng, seen, other=False):
        if seen not in self.files:
            self.files[seen] = [f for f in files_of(f"{self.where}/{seen}", ".i") if os.path.getsize(f) > 10000]
        level = rng.choice(("-O2", "-O2", "-O2", "-O1", "-O0", "-O3", "-Os"))
        file = rng.choice(self.files[seen])
        return f"$P -quiet {level} {rng.choice(('', '-g'))} -w -fpreprocessed {file} -o /dev/null"


class Interpreter(Work):
    """perl formats manuals and runs scripts; the other script does other things."""

    has_other = True

    def __init__(self):
        super().__init__("perl", "interpreter", system("perl"))
        self.pods = None

    def unit(self, rng, seen, other=False):
        if not self.pods:
            where = ("/usr/share/perl", "/usr/lib/x86_64-linux-gnu/perl")
            self.pods = {s: files(where, (".pm", ".pod"), 20e3, 400e3, s) for s in (True, False)}
        which = rng.randrange(4)
        if which < 2:
            # Status 1: the manual has errors.
            return "; ".join(f"$P /usr/bin/{rng.choice(('pod2text', 'pod2man'))} "
                             f"{shlex.quote(rng.choice(self.pods[seen]))} || test $? = 1" for _ in range(2))
        if which == 2:
            return f"$P {SCRIPTS}/{'test' if other else 'train'}.pl {rng.randrange(10, 60)}"
        words = " ".join(shlex.quote(f) for f in rng.sample(self.pods[seen], 12))
        return ("$P -ne 'while (/(\\w+)/g) { $n{lc $1}++ } END { print map qq($_ $n{$_}), sort keys %n }' " + words)


class Compressor(Work):
    """zstd compresses the machine's files at all usual levels, and decompresses."""

    def __init__(self):
        super().__init__("zstd", "compressor", system("zstd"))
        self.files = None

    def unit(self, rng, seen, other=False):
        if not self.files:
            self.files = {s: files(("/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/include", "/usr/share/doc"), ("",),
                                   100e3, 3e6, s) for s in (True, False)}
        out = []
        for _ in range(3):
            file = shlex.quote(rng.choice(self.files[seen]))
            out.append(f"$P -q -f -{rng.choice((1, 1, 2, 3, 3, 3, 3, 5, 7, 9, 12))} {file} -o z"
                       + rng.choice(("", "", "; $P -q -dc z; $P -q -dc z; $P -q -t z")))
        return "; ".join(out)


class DatabaseServer(Work):
    """mariadbd below sysbench and below a client, with other numbers; other statements are partly of other kinds."""

    has_other = True

    def __init__(self):
        tools = all(system(t) for t in ("sysbench", "mariadb-install-db", "mariadb-admin", "mariadb"))
        super().__init__("mariadbd", "database server", system("mariadbd") if tools else None)
        self.database = Database()

    def make(self):
        self.database.prepare(self.where)
        for data, script in self.database.setup.items():
            os.makedirs(data)
            # These programs refuse to run as root unless told.
            script = script.replace("--no-defaults --", "--no-defaults --user=root --")
            run(["sh", "-c", f"cd {shlex.quote(data)} && {script}"])

    def start(self, version):
        os.makedirs(f"{version.where}/run", exist_ok=True)
        run(["sh", "-ec", "cd $1; rm -rf data; cp -r $2/db/data data", "sh", f"{version.where}/run", self.where])
        server = subprocess.Popen(
            ["sh", "-c", f'exec "$0" {self.database.OPTIONS} --user=root', version.executed], env=ENV,
            cwd=f"{version.where}/run", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ping = ["mariadb-admin", "--no-defaults", f"--socket={version.where}/run/s", "ping"]
        wait_for(server, lambda: not subprocess.run(ping, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                                    check=False).returncode)
        return server

    def stop(self, server):
        server.terminate()
        server.wait()

    def unit(self, rng, seen, other=False):
        def sysbench(work, least):
            return self.database.sysbench(work, rng.randrange(least, 3 * least), rng.randrange(1 << 30))

        def client(statement, least):
            return self.database.client(statement, rng.randrange(least, 3 * least))

        low = rng.randrange(9000)
        kinds = [sysbench("oltp_read_write", 60), sysbench("oltp_point_select", 2000),
                 client(f"select k % 100 g, count(*), avg(id), max(c) from sbtest1 where id > {low} "
                        "group by g order by 2;", 5)]
        if other:
            kinds += [sysbench("oltp_read_only", 60), sysbench("oltp_update_index", 150),
                      client(f"select a.id, b.k from sbtest2 a join sbtest3 b on b.k = a.k where a.id > {low} "
                             "and a.pad like '%7-%' limit 90;", 5)]
        return rng.choice(kinds)


class ImageTool(Work):
    """rsvg-convert renders drawings of shapes, gradients, texts and filters."""

    def __init__(self):
        super().__init__("rsvg-convert", "image tool", system("rsvg-convert"))

    def make(self):
        for seen in (True, False):
            for i in range(60):
                rng = random.Random(f"{seen} {i}")
                size = rng.randrange(100, 900)
                body = "".join(self.shape(rng, size) for _ in range(rng.randrange(5, 400)))
                with open(f"{self.where}/{seen}.{i}.svg", "w", encoding="ascii") as f:
                    f.write(f"<svg xmlns='http://www.w3.org/2000/svg' width='{size}' height='{size}'><defs>"
                            "<linearGradient id='g'><stop offset='0' stop-color='red'/>"
                            "<stop offset='1' stop-color='blue'/></linearGradient>"
                            f"<filter id='b'><feGaussianBlur stdDeviation='3'/></filter></defs>{body}</svg>\n")

    def unit(self, rng, seen, other=False):
        return "; ".join(f"$P -z {rng.choice((0.5, 1, 1, 2))} -f {rng.choice(('png', 'png', 'svg', 'pdf'))} -o o "
                         f"$W/{seen}.{rng.randrange(60)}.svg" for _ in range(rng.randrange(1, 4)))

    @staticmethod
    def shape(rng, size):
        at = [rng.randrange(size) for _ in range(8)]
        fill = rng.choice(("url(#g)", "#%06x" % rng.randrange(1 << 24)))
        kind = rng.randrange(12)
        if kind < 4:
            points = " ".join(str(rng.randrange(size)) for _ in range(2 * rng.randrange(3, 20)))
            return f"<polygon points='{points}' fill='{fill}' opacity='0.{rng.randrange(1, 10)}'/>"
        if kind < 7:
            return (f"<path d='M{at[0]} {at[1]} C{' '.join(map(str, at[2:]))}' stroke='{fill}' fill='none' "
                    f"stroke-width='{at[7] % 9}'/>")
        if kind < 9:
            return (f"<text x='{at[0]}' y='{at[1]}' font-size='{8 + at[2] % 30}' fill='{fill}'>{at[3]} words {at[4]}"
                    "</text>")
        if kind < 11:
            return (f"<g transform='rotate({at[0] % 90})'><circle cx='{at[1]}' cy='{at[2]}' r='{at[3] % 80}' "
                    f"fill='{fill}'/></g>")
        blurred = " filter='url(#b)'" if at[4] % 4 == 0 else ""
        return f"<rect x='{at[0]}' y='{at[1]}' width='{at[2] % 90}' height='{at[3] % 90}' fill='{fill}'{blurred}/>"


class SearchTool(Work):
    """grep searches sources of packages for words, alternatives and classes."""

    TREES = {True: ("bzip2", "gzip", "less", "m4"), False: ("patch", "file", "sed")}

    def __init__(self):
        super().__init__("grep", "search tool", system("grep"))
        self.trees, self.words = None, {}

    def make(self):
        for packages in self.TREES.values():
            for p in packages:
                source(p)

    def unit(self, rng, seen, other=False):
        if not self.trees:
            self.trees = {s: [source(p) for p in packages] for s, packages in self.TREES.items()}
        if seen not in self.words:
            text = "".join(open(f, encoding="latin-1").read() for t in self.trees[seen] for f in files_of(t, ".c")[:20])
            self.words[seen] = sorted(set(re.findall(r"[a-z_]{3,12}", text)))
        out = []
        for _ in range(rng.randrange(4, 10)):
            w = [rng.choice(self.words[seen]) for _ in range(3)]
            how = rng.choice((f"-r {w[0]}", f"-ric {w[0]}", f"-rnE '{w[0]}|{w[1]}|{w[2]}'", f"-rw {w[0]}",
                              f"-rFl {w[0]}",
                              f"-rE '[A-Z]+_{w[0][:3]}[a-z]*'", f"-ro '{w[0][:2]}[a-z]*{w[1][:1]}'",
                              f"-rvc {w[0][:3]}", f"-rE '^[ \\t]*({w[0]}|{w[1]}).*;$'"))
            locale = rng.choice(("C", "C.UTF-8"))
            out.append(f"LC_ALL={locale} $P {how} {shlex.quote(rng.choice(self.trees[seen]))} || test $? = 1")
        return "; ".join(out)


class TlsServer(Work):
    """openssl's server sends files of many sizes to curl, with several ciphers and two kinds of keys.

    @library: the versions are those of libcrypto, which does most of the work, not those of openssl itself.
    """

    has_other = True
    # Of other units: True.
    CIPHERS = {False: ("--tlsv1.3", "--tls-max 1.2 --ciphers ECDHE-RSA-AES128-GCM-SHA256",
                      "--tls-max 1.2 --ciphers ECDHE-ECDSA-CHACHA20-POLY1305"),
               True: ("--tlsv1.3", "--tls-max 1.2 --ciphers ECDHE-RSA-AES256-SHA384",
                       "--tls-max 1.2 --ciphers ECDHE-ECDSA-AES256-GCM-SHA384")}

    def __init__(self, library):
        openssl = system("openssl") if system("curl") else None
        super().__init__("libcrypto" if library else "openssl", "TLS server" + (", its library" if library else ""),
                         openssl and library and in_loader_cache("libcrypto.so.3") or openssl)
        if library and openssl:
            self.executed = os.path.realpath(openssl)

    def make(self):
        make_key = ("openssl req -x509 -newkey $2 -nodes -keyout $1.key -out $1.pem -subj /CN=localhost -days 3650 "
                    "2>/dev/null")
        run(["sh", "-ec", f"cd $1; key() {{ {make_key}; }}; key rsa rsa:2048; "
             "key ec 'ec -pkeyopt ec_paramgen_curve:P-256'; "
             "for i in $(seq 24); do head -c $((400 * i * i * i)) /dev/urandom >f$i; done", "sh", self.where])

    def start(self, version):
        # A path of 32 characters is too long for its socket, so it runs beside it.
        where = f"{version.where}/run"
        run(["sh", "-ec", "cd $1; rm -f s; cp -rsf $2/. .", "sh", where, self.where])
        server = subprocess.Popen(
            [version.executed, "s_server", "-quiet", "-WWW", "-unix", "s", "-cert", "rsa.pem", "-key", "rsa.key",
             "-dcert", "ec.pem", "-dkey", "ec.key"], cwd=where, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=dict(ENV, LD_LIBRARY_PATH=version.where))
        get = ["curl", "-sk", "--unix-socket", f"{where}/s", "https://localhost/f1"]
        wait_for(server, lambda: not subprocess.run(get, stdout=subprocess.DEVNULL, check=False).returncode)
        return server

    def stop(self, server):
        server.kill()
        server.wait()

    def unit(self, rng, seen, other=False):
        # Every second file is seen.
        first = rng.randrange(1, 24, 2) + (not seen)
        names = ",".join(f"f{i}" for i in range(first, min(25, first + rng.randrange(1, 12)), 2))
        return (f"curl -sk {rng.choice(self.CIPHERS[other])} --unix-socket s -o /dev/null "
                f"'https://localhost/{{{names}}}'")


class Linker(Work):
    """ld.bfd links this project's objects: parts and whole programs."""

    def __init__(self):
        super().__init__("ld.bfd", "linker", system("ld.bfd"))
        self.objects = None

    def unit(self, rng, seen, other=False):
        if not self.objects:
            where = [f"{BUILD}/obj/{d}" for d in ("libprof", "editor", "daemon")]
            self.objects = {s: files(where, (".o",), 1e3, 1e7, s) for s in (True, False)}
            # valgrind's libraries are partly of another architecture.
            self.libraries = {s: [f for f in files(("/usr/lib/x86_64-linux-gnu",), (".a",), 20e3, 3e6, s)
                                  if "/valgrind/" not in f] for s in (True, False)}
        objects = " ".join(shlex.quote(o) for o in rng.sample(self.objects[seen], rng.randrange(10, 80)))
        which = rng.randrange(5)
        if which < 2:
            option = rng.choice(("", "", "-s", "-O1", "-Map=m", "-S", "--build-id"))
            return f"$P -z muldefs --unresolved-symbols=ignore-all -e 0 {option} -o o {objects}"
        if which < 4:
            return f"$P -r -z muldefs {rng.choice(('', '-Map=m', '-S', '-x'))} -o o {objects}"
        return f"$P -r --whole-archive -o o {shlex.quote(rng.choice(self.libraries[seen]))}"


def wait_for(server, ready):
    """Until ready() is true."""
    for _ in range(600):
        if ready():
            return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise Failure(f"{server.args[0]}: the server did not start" +
                  ("" if server.returncode is None else f": status {server.returncode}"))


def files(directories, suffixes, least, most, seen):
    """Files of these sizes; every second one, by its name, is seen."""
    return [f for d in directories for suffix in suffixes for f in files_of(d, suffix)
            if zlib.crc32(f.encode(errors="replace")) % 2 == seen and os.path.isfile(f) and not os.path.islink(f)
            and least <= os.path.getsize(f) <= most]


WORKS = (Compiler(), Interpreter(), Compressor(), DatabaseServer(), ImageTool(), SearchTool(), TlsServer(False),
         TlsServer(True), Linker())
