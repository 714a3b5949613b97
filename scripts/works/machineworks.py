# SPDX-License-Identifier: Apache-2.0
"""What a whole machine does, for scripts/bench/machine: a build farm, a database, scripts, and all of them in turn.

A unit is a name and a script for sh. It ends with status 0 and leaves nothing behind but in its own directory. Each
part has everyday units, which are repeated, and unseen ones, which run only to be measured. The Python here only
writes scripts: which files execute them is the caller's choice.
"""

import os
import shlex
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

from benchlib import ENV, Failure, ROOT, last_line  # noqa: E402

CACHE = os.environ.get("MORPH_CACHE", os.path.expanduser("~/.cache/morph"))


class Part:
    """name: its letter; what: in words; packages: of Debian, that it needs; everyday, unseen: {name: script}."""

    def __init__(self, name, what, packages=()):
        self.name, self.what, self.packages = name, what, packages
        self.everyday, self.unseen = {}, {}
        # Run once, before all units, in a directory of its own that stays: {path of the directory: script}.
        self.setup = {}

    def prepare(self, where):
        """Make what the units need, once, below the directory @where, which every user may read."""


class Farm(Part):
    """Builds Debian's source packages with their configure scripts and make, as many jobs at once as there are CPUs."""

    EVERYDAY = ("gzip", "bzip2", "xz-utils", "zlib", "sed", "diffutils", "less", "m4")
    UNSEEN = ("grep", "patch", "file")

    def __init__(self):
        super().__init__("a", "build farm", ("build-essential",))

    def unit(self, where, package, jobs):
        source = os.path.join(where, "src", package)
        configure = "./configure >/dev/null 2>&1 && " if os.access(f"{source}/configure", os.X_OK) else ""
        return f"cp -a {shlex.quote(source)} w && cd w && {configure}make -s -j{jobs} >/dev/null 2>&1"

    def prepare(self, where):
        os.makedirs(f"{where}/src", exist_ok=True)
        for package in (*self.EVERYDAY, *self.UNSEEN):
            if not os.path.exists(f"{where}/src/{package}"):
                run(["cp", "-a", source(package), f"{where}/src/{package}.new"])
                os.rename(f"{where}/src/{package}.new", f"{where}/src/{package}")
        self.everyday = {p: self.unit(where, p, os.cpu_count()) for p in self.EVERYDAY}
        self.unseen = {p: self.unit(where, p, 1) for p in self.UNSEEN}


class Database(Part):
    """MariaDB's server below sysbench and below a client that sends reports; the server starts for each unit."""

    OPTIONS = ("--no-defaults --skip-networking --skip-grant-tables --skip-log-bin --innodb-buffer-pool-size=128M "
               "--innodb-flush-log-at-trx-commit=0 --datadir=$PWD/data --socket=$PWD/s --pid-file=$PWD/p "
               "--log-error=$PWD/l")

    def __init__(self):
        super().__init__("b", "database", ("mariadb-server", "sysbench"))

    def unit(self, where, *commands):
        """The server with a fresh copy of the tables, these commands, and an orderly end."""
        ready = "mariadb-admin --no-defaults --socket=$PWD/s"
        copy = f"cp -r {shlex.quote(where)}/data data" if where else \
            "mariadb-install-db --no-defaults --datadir=$PWD/data --skip-test-db >/dev/null 2>&1"
        return (f"PATH=$PATH:/usr/sbin; {copy} || exit\nmariadbd {self.OPTIONS} & server=$!\n"
                f"while ! {ready} ping >/dev/null 2>&1; do kill -0 $server || exit; sleep 0.1; done\n"
                + "".join(f"{c} >/dev/null || {{ kill $server; exit 1; }}\n" for c in commands)
                + f"{ready} shutdown && wait $server")

    def sysbench(self, work, events, seed, command="run"):
        return (f"sysbench --db-driver=mysql --mysql-socket=$PWD/s --mysql-user=root --mysql-db=sbtest --tables=4 "
                f"--table-size=10000 --threads=4 --time=0 --events={events} --rand-seed={seed} "
                f"--mysql-ignore-errors=1213,1020,1205,1062 {work} {command}")

    def client(self, statements, times):
        return (f"yes {shlex.quote(statements)} | head -n {times} | "
                "mariadb --no-defaults --socket=$PWD/s --database=sbtest")

    def prepare(self, where):
        data = f"{where}/db"
        self.everyday = {
            "oltp_read_write": self.unit(data, self.sysbench("oltp_read_write", 6000, 1)),
            "oltp_point_select": self.unit(data, self.sysbench("oltp_point_select", 120000, 2)),
            "reports": self.unit(data, self.client(
                "select k % 100 g, count(*), avg(id), max(c) from sbtest1 where id > 500 group by g order by 2;", 300))}
        self.unseen = {
            "oltp_read_only": self.unit(data, self.sysbench("oltp_read_only", 6000, 3)),
            "joins": self.unit(data, self.client(
                "select count(*), max(b.c) from sbtest2 a join sbtest3 b on b.k = a.k where a.pad like '%7-%';", 10))}
        self.setup = {data: self.unit(None, "mariadb --no-defaults --socket=$PWD/s -e 'create database sbtest'",
                                      self.sysbench("oltp_common", 0, 1, "prepare"))}


class Scripts(Part):
    """Scripts in Python, Perl and Ruby, of one kind every day and of another kind to be measured."""

    def __init__(self):
        super().__init__("c", "scripts", ("python3", "perl", "ruby"))

    def prepare(self, where):
        os.makedirs(where, exist_ok=True)
        run(["cp", "-r", f"{ROOT}/scripts/works/inputs/stock", f"{where}/scripts.new"])
        run(["rm", "-rf", f"{where}/scripts"])
        os.rename(f"{where}/scripts.new", f"{where}/scripts")
        programs = (("python", "/usr/bin/python3 -I", "py", 200, 900), ("perl", "/usr/bin/perl", "pl", 200, 200),
                    ("ruby", "/usr/bin/ruby", "rb", 300, 900))
        for name, program, suffix, train, test in programs:
            self.everyday[name] = f"{program} {shlex.quote(where)}/scripts/train.{suffix} {train} >/dev/null"
            self.unseen[name] = f"{program} {shlex.quote(where)}/scripts/test.{suffix} {test} >/dev/null"


class Mix(Part):
    """All of them in turn, as on a machine that does everything."""

    def __init__(self):
        super().__init__("d", "a mix of all")
        self.parts = (Farm(), Database(), Scripts())
        self.packages = tuple(p for part in self.parts for p in part.packages)

    def prepare(self, where):
        for part in self.parts:
            part.prepare(where)
            self.setup.update(part.setup)
        longest = max(len(p.everyday) for p in self.parts)
        for i in range(longest):
            for part in self.parts:
                names = list(part.everyday)
                if i < len(names):
                    self.everyday[f"{part.what}: {names[i]}"] = part.everyday[names[i]]
        for part in self.parts:
            self.unseen.update({f"{part.what}: {name}": script for name, script in part.unseen.items()})


PARTS = {"a": Farm, "b": Database, "c": Scripts, "d": Mix}


def run(command):
    done = subprocess.run(command, env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          check=False)
    if done.returncode:
        raise Failure(f"{os.path.basename(command[0])}: {last_line(done.stderr)}")


def source(package):
    """The directory of a package's source; fetched once."""
    run([f"{ROOT}/scripts/works/programs", "--sources", package])
    return f"{CACHE}/src/{package}"
