# SPDX-License-Identifier: Apache-2.0
"""Training and test work of the distribution's own files, for scripts/bench.

Each file has training work (shell commands), test work of another kind (one command), and the same
kind of test work for the emulator, where a second becomes a minute. In commands {} is the program,
{in} the directory of inputs that prepare() fills, {inputs} the output of scripts/works/inputs/generate.
"""

import os
import shlex
import shutil
import subprocess
import sys
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

import benchlib as lib  # noqa: E402
from benchlib import BUILD, ENV, Failure, ROOT  # noqa: E402

CACHE = os.environ.get("MORPH_CACHE", os.path.expanduser("~/.cache/morph"))
INPUTS = os.environ.get("INPUTS", os.path.join(BUILD, "inputs"))
SCRIPTS = os.path.join(ROOT, "scripts/works/inputs/stock")


def gcc_program(name):
    """A path() of a program that gcc runs."""
    def path():
        done = subprocess.run(["gcc", f"-print-prog-name={name}"], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None
    return path


cc1_path = gcc_program("cc1")


class Work:
    """A file with its training and test work.

    driver: for a library, the program that uses it; its test commands start with that program.
    """

    def __init__(self, name, train, test, short, driver=None, env=(), path=None):
        self.name, self.train, self.test, self.short = name, train, test, short
        self.driver, self.env = driver, dict(env)
        self.where = path

    @property
    def library(self):
        return self.driver is not None

    def path(self):
        """The path of the file, links followed; None if this system has none."""
        if self.where:
            path = self.where()
        elif self.library:
            path = in_loader_cache(self.name)
        else:
            # The distribution's own program, even if $PATH finds another one first.
            path = shutil.which(self.name, path="/usr/bin:/bin:/usr/local/bin")
        return os.path.realpath(path) if path and os.path.exists(path) else None

    def command(self, which, inputs, program):
        """The training (a string for sh), or the words of a test."""
        text = getattr(self, which)
        text = text.replace("{in}", inputs).replace("{inputs}", INPUTS)
        if which == "train":
            return text.replace("{}", shlex.quote(program))
        return [program if w == "{}" else w for w in shlex.split(text)]


def in_loader_cache(name):
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        if line.split()[:1] == [name] and "x86-64" in line:
            return line.split()[-1]
    return None


def times(n, command):
    return f"i=0; while [ $i -lt {n} ]; do {command} || exit; i=$((i + 1)); done"


GZIP = ("{} -nc {inputs}/text-train.txt >t.gz && {} -9nc {inputs}/mixed-train.bin >m.gz && "
        "{} -dc t.gz m.gz m.gz >t.out")
SORT = ("{} {inputs}/words-train.txt >s && {} -k2,2 -u {inputs}/words-train.txt >s && "
        "{} -t';' -k2,2n {inputs}/accounts-train.txt >s && "
        "{} -t';' -k4.6,4.7n -k5 -s {inputs}/accounts-train.txt >s")
XZ = ("{} -T1 -6c {inputs}/text-train.txt >t.xz && {} -T1 -1c {inputs}/mixed-train.bin >m.xz && "
      "{} -dc t.xz m.xz m.xz >t.out")
GIT = ("cd {in}/repo && {} log -p --stat >/dev/null && {} diff --stat HEAD~150 >/dev/null && "
       "{} fsck --full >/dev/null 2>&1 && {} grep -n word12 HEAD~40 >/dev/null && "
       "{} rev-list --objects --all >/dev/null")
GDB = ("{} -nx -batch -ex 'maint set worker-threads 0' -ex 'file " + BUILD + "/morph-optimize' "
       "-ex 'info functions me_' -ex 'info types me_' -ex 'ptype struct me_optimize_report' "
       "-ex 'list main' >g.out")
# Typical uses of the C library: streams, conversions, memory, strings, sorting.
LIBC = ("sort -t';' -k2,2n {inputs}/accounts-train.txt >s && "
        "perl " + SCRIPTS + "/train.pl 20 >p && mawk '{ n[$2] += $1 % 13 } "
        "END { for (k in n) printf \"%s %.3f %d\\n\", k, n[k] / 7, n[k] }' "
        "{in}/text >a && sqlite3 :memory: '.read " + SCRIPTS + "/train.sql' >q && "
        "bash {in}/short.bash >b")
GDB_TEST = ("{} -nx -batch -ex 'maint set worker-threads 0' -ex 'file " + BUILD + "/%s' "
            "-ex 'info scope main' -ex 'disassemble /s main' -ex 'info line main' "
            "-ex 'print sizeof(struct mp_elf) * 3' -ex 'info sources'")
SQL = "sqlite3 :memory: 'create table size(value); insert into size values(%d)' '.read " + \
    SCRIPTS + "/test.sql'"

WORKS = (
    Work("cc1", "{} -quiet -O1 -fpreprocessed {in}/sqlite3.i -o cc1.s",
         "{} -quiet -O2 -fpreprocessed {in}/subst.i -o -",
         "{} -quiet -O2 -fpreprocessed {in}/short.i -o -", path=cc1_path),
    Work("perl", "{} " + SCRIPTS + "/train.pl 400", "{} " + SCRIPTS + "/test.pl 400",
         "{} " + SCRIPTS + "/test.pl 20"),
    Work("python3.11", "{} -I " + SCRIPTS + "/train.py 200", "{} -I " + SCRIPTS + "/test.py 200",
         "{} -I " + SCRIPTS + "/test.py 10", env={"PYTHONHASHSEED": "0"}),
    Work("bash", "{} {inputs}/train.bash", "{} {inputs}/test.bash", "{} {inputs}/test.bash short"),
    Work("sort", times(4, SORT),
         "{} --parallel=1 -t : -k4,4h -k2,2nr -k3.4,3 {inputs}/numbers-test.csv "
         "{inputs}/text-test.csv",
         "{} --parallel=1 -t : -k4,4h -k2,2nr -k3.4,3 {in}/short.csv"),
    Work("gzip", times(8, GZIP),
         "{} -nc {inputs}/binary-test.bin {inputs}/text-test.csv {inputs}/numbers-test.csv",
         "{} -nc {in}/short.bin {in}/short.csv"),
    Work("libstdc++.so.6", "{in}/streams read 4000", "{in}/streams write 3000",
         "{in}/streams write 100", driver="{in}/streams"),
    Work("libsqlite3.so.0", times(12, "sqlite3 :memory: '.read " + SCRIPTS + "/train.sql' >q"),
         SQL % 120000, SQL % 4000, driver="sqlite3"),
    Work("liblzma.so.5", times(3, XZ.replace("{}", "xz")),
         "xz -T1 -4c {inputs}/binary-test.bin {inputs}/text-test.csv",
         "xz -T1 -4c {in}/short.bin {in}/short.csv", driver="xz"),
    Work("libLLVM-14.so.1", "clang-14 -O2 -S -o clang.s {in}/clang-subst.i",
         "clang-14 -O1 -S -o - {in}/clang-test.i", "clang-14 -O1 -S -o - {in}/clang-short.i",
         driver="clang-14"),
    Work("libc.so.6", times(4, LIBC), "mawk -f {in}/test.awk {in}/text {in}/text",
         "mawk -f {in}/test.awk {in}/text-short", driver="mawk"),
    Work("gdb", times(3, GDB), GDB_TEST % "morphd", GDB_TEST % "tools/steps"),
    Work("git", times(4, "(" + GIT + ")"), "{} -C {in}/repo blame -s -w HEAD -- text0",
         "{} -C {in}/repo blame -s -w HEAD~200 -- text1",
         env={"HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}),
)

# Built with a profile, as python3.11 is; for scripts/bench/accuracy.
PROFILED = (
    Work("as", times(6, "{} -o a.o {in}/sqlite3.s"), "{} -a -o a.o {in}/subst.s",
         "{} -a -o a.o {in}/subst.s"),
    Work("readelf", times(12, "{} -sW /usr/lib/x86_64-linux-gnu/libLLVM-14.so.1 >r"),
         "{} -aW /usr/bin/perl", "{} -aW /usr/bin/perl"),
)

CXX = "for f in {in}/%s*.ii; do {} -quiet %s -fpreprocessed $f -o - || exit; done"
GS = "{} -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=%s -r%d -o %s {in}/%s.ps"
FFMPEG = "ffmpeg -v error -nostdin -threads 1 -y -i {in}/%s -threads 1 %s"
# Only for scripts/bench/stock. A test is for sh, too.
LARGE = (
    Work("cc1plus", CXX % ("train.", "-O1"), CXX % ("test.", "-O2"), "", path=gcc_program("cc1plus")),
    Work("libruby-3.1.so.3.1", f"ruby3.1 {SCRIPTS}/train.rb 400", f"ruby3.1 {SCRIPTS}/test.rb 900", "",
         driver="ruby3.1"),
    Work("php8.2", f"{{}} -n {SCRIPTS}/train.php 4000", f"{{}} -n {SCRIPTS}/test.php 2500", ""),
    Work("node", f"{{}} {SCRIPTS}/train.js 400", f"{{}} {SCRIPTS}/test.js 150", ""),
    Work("libgs.so.10", times(2, GS.replace("{}", "gs") % ("png16m", 96, "g.png", "train")),
         GS.replace("{}", "gs") % ("pnggray", 150, "-", "test"), "", driver="gs"),
    Work("libavcodec.so.59", times(20, FFMPEG % ("train.avi", "-c:v mpeg2video -q:v 4 -c:a flac -f matroska a")),
         FFMPEG % ("test.mkv", "-c:v ffv1 -c:a aac -f matroska -fflags +bitexact -flags +bitexact -"), "",
         driver="ffmpeg"),
    Work("libclang-cpp.so.14", times(10, "clang-14 -fsyntax-only -Wall {in}/clang-subst.i 2>/dev/null"),
         "clang-14 -O0 -S -o - {in}/clang-test.i", "", driver="clang-14"),
    Work("libcrypto.so.3",
         times(6, "openssl crl2pkcs7 -nocrl -certfile /etc/ssl/certs/ca-certificates.crt | "
                  "openssl pkcs7 -print_certs -text -noout >c"),
         "openssl verify -CAfile /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/*.pem || test $? = 2", "",
         driver="openssl"),
)

# Macros with which bash's own sources are compiled.
BASH_DEFINES = ["-DHAVE_CONFIG_H", "-DSHELL", '-DPROGRAM="bash"', '-DCONF_HOSTTYPE="x86_64"',
                '-DCONF_OSTYPE="linux-gnu"', '-DCONF_MACHTYPE="x86_64-pc-linux-gnu"',
                '-DCONF_VENDOR="pc"', '-DPACKAGE="bash"', '-DLOCALEDIR=""']
AWK = r"""
{
	s = sprintf("%08.3f|%-10s|%x|%e", $1 / 7, $2, $1 % 4096, $1)
	gsub(/[05]/, "<&>", s)
	if (index(s, "<0><0>") || match(s, /9+\|/))
		n[substr(s, RSTART, 5) length(s)]++
	t += substr(s, 1, 4) + 0
}
END {
	for (k in n) u += n[k] * length(k)
	printf "%.6g %d\n", t, u
}
"""


def run(command, cwd, **kw):
    done = subprocess.run(command, cwd=cwd, env=ENV, stderr=subprocess.PIPE, **kw)
    if done.returncode:
        raise Failure(f"{command[0]}: status {done.returncode}: {lib.last_line(done.stderr)}")
    return done


def preprocess(directory):
    """sqlite3.c for training and parts of bash for tests, preprocessed by gcc and by clang."""
    sqlite, bash = f"{CACHE}/configured/sqlite3", f"{CACHE}/src/bash"
    if not os.path.exists(f"{sqlite}/sqlite3.c") or not os.path.exists(f"{CACHE}/configured/bash"):
        run([os.path.join(ROOT, "scripts/works/programs"), "speedtest1", "bash"], ROOT)
    build = os.path.join(directory, "bash")
    shutil.rmtree(build, ignore_errors=True)
    shutil.copytree(f"{CACHE}/configured/bash", build, symlinks=True)
    run(["make", "-C", "builtins", "builtext.h"], build, stdout=subprocess.DEVNULL)
    where = ["-I.", f"-I{bash}", f"-I{bash}/include", f"-I{bash}/lib"]
    for compiler, out, source in (
            ("gcc", "subst.i", "subst.c"), ("gcc", "short.i", "expr.c"),
            ("clang-14", "clang-subst.i", "subst.c"), ("clang-14", "clang-test.i", "execute_cmd.c"),
            ("clang-14", "clang-short.i", "stringlib.c")):
        if shutil.which(compiler):
            run([compiler, "-E", "-P", *BASH_DEFINES, *where, f"{bash}/{source}", "-o",
                 os.path.join(directory, out)], build)
    run(["gcc", "-E", "-P", f"-I{sqlite}", f"{sqlite}/sqlite3.c", "-o",
         os.path.join(directory, "sqlite3.i")], sqlite)
    for name, how in (("sqlite3", ("-O0",)), ("subst", ("-O2", "-g"))):
        run(["gcc", *how, "-S", "-fpreprocessed", f"{directory}/{name}.i", "-o",
             f"{directory}/{name}.s"], directory)


def numbers(n):
    x = 4711
    for _ in range(n):
        x = (x * 69069 + 12345) % 2 ** 31
        yield x


def write_repository(directory):
    """300 commits to three files, with the same names and times every time."""
    repo = os.path.join(directory, "repo")
    shutil.rmtree(repo, ignore_errors=True)
    run(["git", "init", "-q", "-b", "main", repo], directory)
    files = [[f"{x} word{x % 977} of line {i}" for i, x in enumerate(numbers(2500))]
             for _ in range(3)]
    stream, x = [], numbers(10 ** 9)
    for commit in range(300):
        message = f"change {commit}\n"
        stream.append(f"commit refs/heads/main\ncommitter A U Thor <a@example.org> "
                      f"{1700000000 + commit * 3600} +0000\ndata {len(message)}\n{message}")
        for nr, lines in enumerate(files):
            for _ in range(25):
                at = next(x) % len(lines)
                if at % 5 == 0:
                    lines.insert(at, f"new in {commit}: {next(x) % 1009}")
                else:
                    lines[at] = lines[at].replace("word", "word1", 1) if at % 3 else lines[at - 1]
            text = "\n".join(lines) + "\n"
            stream.append(f"M 100644 inline text{nr}\ndata {len(text)}\n{text}")
    run(["git", "-C", repo, "fast-import", "--quiet"], directory,
        input="\n".join(stream).encode())


def prepare(directory):
    """Write all inputs, once."""
    done = os.path.join(directory, ".complete")
    if os.path.exists(done):
        return
    os.makedirs(directory, exist_ok=True)
    run([os.path.join(ROOT, "scripts/works/inputs/generate"), INPUTS], ROOT, stdout=subprocess.DEVNULL)
    preprocess(directory)
    write_repository(directory)
    with open(f"{directory}/text", "w", encoding="ascii") as f:
        for x in numbers(200000):
            f.write(f"{x} word{x % 977} {'abcdefghijklmnopqrstuvwxyz'[x % 20:x % 20 + 6]}\n")
    for name, of, lines in (("text-short", "text", 4000),
                            ("short.csv", f"{INPUTS}/numbers-short.csv", 12000)):
        with open(os.path.join(directory, of), "rb") as f, open(f"{directory}/{name}", "wb") as out:
            out.writelines(line for _, line in zip(range(lines), f))
    with open(f"{INPUTS}/binary-short.bin", "rb") as f, open(f"{directory}/short.bin", "wb") as out:
        out.write(f.read(1 << 19))
    with open(f"{INPUTS}/train.bash", encoding="utf-8") as f, \
            open(f"{directory}/short.bash", "w", encoding="utf-8") as out:
        out.write(f.read().replace("scale))", "scale / 16))"))
    with open(f"{directory}/test.awk", "w", encoding="ascii") as f:
        f.write(AWK)
    run(["g++", "-O2", "-o", f"{directory}/streams", f"{SCRIPTS}/streams.cc"], directory)
    with open(done, "w", encoding="ascii"):
        pass


def prepare_large(directory):
    """The inputs of LARGE, each once; those whose tools lack are left out."""
    def lacks(*names):
        return not all(os.path.exists(f"{directory}/{n}") for n in names)

    if lacks("train.re2.ii", "test.os.ii"):
        packages = {"train": ("re2", "re2/*.cc"), "test": ("fmtlib", "src/os.cc")}
        run([f"{ROOT}/scripts/works/programs", "--sources", *(p for p, _ in packages.values())], ROOT)
        for which, (package, files) in packages.items():
            script = f"for f in {files}; do g++ -E -P -I. -Iinclude $f >{directory}/{which}.$(basename $f .cc).ii; done"
            run(["sh", "-ec", script], f"{CACHE}/src/{package}")
    if lacks("train.ps", "test.ps") and shutil.which("grops"):
        run(["sh", "-c", f"zcat -f /usr/share/man/man1/bash.1.gz /usr/share/man/man1/git.1.gz | "
             f"groff -t -man -Tps >{directory}/train.ps"], directory)
        with open(f"{directory}/test.ps", "w", encoding="ascii") as f:
            f.write(drawing())
    if lacks("train.avi", "test.mkv") and shutil.which("ffmpeg"):
        for video, audio, codec, out in (("testsrc2=size=640x360", "sine", "mpeg4", "train.avi"),
                                         ("mandelbrot=size=480x270", "anoisesrc=seed=1", "mpeg2video", "test.mkv")):
            run(["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", video, "-f", "lavfi", "-i", audio,
                 "-t", "3", "-c:v", codec, "-q:v", "4", out], directory)


def drawing():
    """Pages of curves, gradients, clipped shapes and turned text, in PostScript."""
    x, out = numbers(10 ** 9), ["%!PS", "/F { /Helvetica findfont exch scalefont setfont } def"]
    for _ in range(4):
        for _ in range(400):
            a = [next(x) % 500 for _ in range(8)]
            paint = ("stroke", "fill", "closepath eofill")[a[7] % 3]
            out.append(f"{a[0] / 500} {a[1] / 500} {a[2] / 500} setrgbcolor {a[3] % 7} setlinewidth "
                       f"{a[0]} {a[1]} moveto {' '.join(map(str, a[2:]))} curveto {paint}")
            out.append(f"gsave {a[1]} {a[2]} translate {a[3]} rotate {6 + a[4] % 20} F 0 0 moveto (text {a[5]}) show "
                       "grestore")
        out.append("gsave 300 400 200 0 360 arc clip << /ShadingType 3 /ColorSpace /DeviceRGB "
                   "/Coords [300 400 20 300 400 200] /Function << /FunctionType 2 /Domain [0 1] "
                   "/C0 [1 0 0] /C1 [0 0 1] /N 1 >> >> shfill grestore showpage")
    return "\n".join(out) + "\n"
