# SPDX-License-Identifier: Apache-2.0
"""Runs programs with tests/plugin/contexts.c, and describes the seven programs of the benchmark."""

import ctypes
import os
import shutil
import subprocess

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


# ---- seven programs, whose results decide nothing in the code that is measured ----

PERL = r"""
my (%count, @rows);
sub walk { my ($n, $f) = @_; return $n < 2 ? $f->($n) : walk($n - 1, $f) + walk($n - 2, $f) }
while (<>) { $count{lc $1}++ while /(\w{3,})/g; push @rows, [split /\s+/] if /^[a-z]/ }
my @top = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print join(" ", @top[0 .. 20]), "\n", walk(15, sub { $_[0] + 1 }), "\n";
print scalar(grep { @$_ > 3 } @rows), "\n";
"""
PYTHON = r"""
import ast, json, re, sys
text = open(sys.argv[1]).read()
words = sorted(set(re.findall(r"\w+", text)), key=lambda w: (len(w), w))
class Node:
    def __init__(self, depth): self.kids = [Node(depth - 1) for _ in range(3)] if depth else []
    def total(self): return 1 + sum(k.total() for k in self.kids)
tree = ast.parse(open(json.__file__).read())
print(len(words), Node(6).total(), len(json.dumps(json.loads(json.dumps(words)))))
print(sum(isinstance(n, ast.Call) for n in ast.walk(tree)))
"""
BASH = r"""
fib() { if (( $1 < 2 )); then r=$1; else fib $(($1 - 1)); local a=$r; fib $(($1 - 2)); r=$((a + r)); fi; }
fib 12; echo $r
declare -A seen
while read -r first rest; do
	case $first in [a-z]*) seen[$first]=$(( ${seen[$first]:-0} + ${#rest} ));; esac
done <"$1"
for k in "${!seen[@]}"; do printf -v line '%s=%d' "${k//[!a-z]/_}" "${seen[$k]}"; done
echo "${#seen[@]} $line"
"""

# ---- five more, which no constant of the code that is measured was chosen with ----

TCL = r"""
proc fib n {if {$n<2} {return $n}; expr {[fib [expr {$n-1}]]+[fib [expr {$n-2}]]}}
puts [fib 13]
set f [open [lindex $argv 0]]; set d [read $f]; array set c {}
foreach w [regexp -all -inline {[a-z]{3,}} [string range $d 0 60000]] {incr c($w)}
puts [lsort [array names c]]
"""
SQL = r"""
create table t(a integer primary key, b text, c int);
with recursive r(i) as (select 1 union all select i+1 from r where i<6000)
insert into t select i, hex(i*7919%1000), i*31%997 from r;
create index x on t(c);
select count(*), sum(length(b)) from t where c in (select c from t where a%7=0);
select c, count(*) k from t group by c order by k desc, c limit 5;
"""
AWK = r"""{ for (i = 1; i <= NF; i++) c[tolower($i)]++; gsub(/[aeiou]+/, "x"); n += length($0) }
END { for (w in c) if (c[w] > 9) m++; print n, m }"""

# ---- ten more, named before the search for jumps below calls was run with any of them ----

M4 = r"""define(`fib', `ifelse(eval($1 < 2), 1, $1, `eval(fib(decr($1)) + fib(decr(decr($1))))')')dnl
define(`loop', `ifelse($1, 0, , `translit(`word$1', `a-z', `A-Z') substr(`number', eval($1 % 5)) loop(decr($1))')')dnl
fib(16) len(loop(400)) patsubst(loop(60), `O\(.\)', `<\1>')
"""
MAKE = r"""
digits := 0 1 2 3 4 5 6 7 8 9
names := $(foreach a,$(digits),$(foreach b,$(digits),$(foreach c,1 2 3 4,n$(a)$(b)$(c))))
lower = $(if $(filter $(1),$(2)),$(sort $(1) $(2)),$(subst n,m,$(patsubst n%,x%,$(1))))
all: $(names:%=%.o)
%.o: %.c ; cc $(call lower,$*,$(names)) $(notdir $<) $(words $(filter-out $*,$(names)))
%.c: ; echo $(call lower,$*,n001 n002 $*)
"""
VIM = [r"%s/\<\(\w\)\(\w*\)/\u\1\2/g", "sort", "g/the/m0",
       "let n = 0 | while n < 6000 | let n += len(split(string(n))) | endwhile", "%join", "qa!"]
BC = """s = 0; for (i = 1; i < 20000; i++) { s += i * i % 7; if (s > 3000) s -= 3000 }
define f(n) { if (n < 2) return n; return f(n - 1) + f(n - 2) }
s; f(15); scale = 80; e(1) * a(1); 3 ^ 900
"""


class Work:
    def __init__(self, name, program, args, directory):
        self.name, self.program, self.args, self.directory = name, program, args, directory


def inputs_write(directory):
    """Text and a C file from this tree, and the scripts."""
    os.makedirs(directory, exist_ok=True)
    documents = os.path.join(ROOT, "Documentation")
    text = "".join(open(os.path.join(documents, n), encoding="utf-8").read()
                   for n in sorted(os.listdir(documents)) if n.endswith(".md"))
    for name, content in (("text", text), ("short", text[:60000]), ("large", text * 2),
                          ("script.pl", PERL), ("script.py", PYTHON), ("script.sh", BASH),
                          ("script.tcl", TCL), ("script.sql", SQL), ("script.m4", M4),
                          ("script.mk", MAKE), ("script.bc", BC)):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as out:
            out.write(content)
    subprocess.run(["gcc", "-E", "-P", "-o", os.path.join(directory, "file.i"),
                    os.path.join(ROOT, "tests/data/contexts.c")], check=True)


def seven(at):
    """(name, program, arguments) with the inputs in @at."""
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                         check=True).stdout.strip()
    text, short, large = (os.path.join(at, n) for n in ("text", "short", "large"))
    return [
        ("cc1", cc1, ["-quiet", "-O2", os.path.join(at, "file.i"), "-o", "/dev/null"]),
        ("perl", "/usr/bin/perl", [os.path.join(at, "script.pl"), text]),
        ("python3.11", "/usr/bin/python3.11", ["-I", os.path.join(at, "script.py"), text]),
        ("gdb", "/usr/bin/gdb", ["-nx", "-batch", "-ex", "disassemble 0x5000,0x5800",
                                 "-ex", "info functions xz", "/usr/bin/xz"]),
        ("bash", "/usr/bin/bash", [os.path.join(at, "script.sh"), short]),
        ("openssl", "/usr/bin/openssl", ["enc", "-aes-256-cbc", "-pbkdf2", "-iter", "20000",
                                         "-nosalt", "-k", "word", "-in", text]),
        ("xz", "/usr/bin/xz", ["-T4", "--block-size=131072", "-3", "-c", short, large]),
    ]


def five(at):
    text = os.path.join(at, "text")
    return [
        ("mawk", "/usr/bin/mawk", [AWK, text]),
        ("tclsh", "/usr/bin/tclsh8.6", [os.path.join(at, "script.tcl"), text]),
        ("sqlite3", "/usr/bin/sqlite3", [":memory:", ".read " + os.path.join(at, "script.sql")]),
        ("objdump", "/usr/bin/x86_64-linux-gnu-objdump",
         ["-d", "--no-show-raw-insn", "--stop-address=0x9000", "/usr/bin/xz"]),
        ("git", "/usr/bin/git", ["-C", ROOT, "--no-pager", "log", "--oneline", "-n", "1500", "--",
                                 "Documentation"]),
    ]


def ten(at):
    text, short = (os.path.join(at, n) for n in ("text", "short"))
    documents = os.path.join(ROOT, "Documentation")
    libm = subprocess.run(["gcc", "-print-file-name=libm-2.36.a"], capture_output=True, text=True,
                          check=True).stdout.strip()
    return [
        ("m4", "/usr/bin/m4", [os.path.join(at, "script.m4")]),
        ("make", "/usr/bin/make", ["-n", "-f", os.path.join(at, "script.mk")]),
        ("find", "/usr/bin/find", [ROOT + "/editor", ROOT + "/tests", "/usr/share/doc", "-regex", r".*/[a-m][^/]*\.c",
                                   "-size", "+2k", "-o", "-name", "*_*", "-not", "-path", "*/data/*", "-printf", "%f %s\n"]),
        ("troff", "/usr/bin/troff", ["-mandoc", "-Tutf8", *(os.path.join(documents, n) for n in
                                                             ("morphd.8", "morph-stats.1"))]),
        ("vim", "/usr/bin/vim.basic", ["-u", "NONE", "-i", "NONE", "-n", "-es",
                                       *(a for c in VIM for a in ("-c", c)), short]),
        ("bc", "/usr/bin/bc", ["-l", os.path.join(at, "script.bc")]),
        ("ld", "/usr/bin/x86_64-linux-gnu-ld.bfd", ["-r", "-o", "/dev/null", "--whole-archive", libm]),
        ("sed", "/usr/bin/sed", ["-E", r"s/([a-z]+)[ ,]+([a-z]+)/\2 \1/g; /morph/I{s/e(.)/<\1>/2}; $!N; P; D", text]),
        ("nm", "/usr/bin/x86_64-linux-gnu-nm", ["-D", "-C", "/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14"]),
        ("file", "/usr/bin/file", ["-k", *(os.path.join(documents, n) for n in sorted(os.listdir(documents)))]),
    ]


def replaced(at):
    """Programs with functions that replace calls of them in versions; built by scripts/works/programs --bench."""
    text, short, large = (os.path.join(at, n) for n in ("text", "short", "large"))
    built = os.path.join(BUILD, "programs")
    return [
        ("gzip", os.path.join(built, "gzip-pie"), ["-6", "-c", large]),
        ("sort", os.path.join(built, "sort-pie"), ["-k2", *12 * [large]]),
        ("gawk", os.path.join(built, "gawk-pie"), [AWK, large]),
        ("bash", os.path.join(built, "bash-pie"), [os.path.join(at, "script.sh"), short]),
        *(w for w in ten(at) if w[0] in ("troff", "m4", "bc")),
        *(w for w in five(at) if w[0] == "mawk"),
    ]


SETS = {"seven": seven, "others": five, "further": ten, "replaced": replaced}


def programs(directory, only=(), of="seven"):
    """The programs of a set, as far as this system has them."""
    at = os.path.join(os.path.abspath(directory), "inputs")
    inputs_write(at)
    for name, program, args in SETS[of](at):
        if only and name not in only:
            continue
        if not os.path.exists(program):
            raise Failure(f"{program}: not there")
        out = os.path.join(directory, name)
        os.makedirs(out, exist_ok=True)
        yield Work(name, program, args, out)


def measured(work, period):
    """Runs @work without and with the plugin. Returns what the plugin costs."""
    plain = run(work.program, work.args, work.directory, plugin=False)
    before = open(os.path.join(work.directory, "stdout"), "rb").read()
    ran = run(work.program, work.args, work.directory, period=period)
    if plain["status"] or ran["status"]:
        raise Failure(f"{work.name}: ended with status {plain['status']}, and with "
                      f"{ran['status']} under the plugin")
    if before != open(os.path.join(work.directory, "stdout"), "rb").read():
        raise Failure(f"{work.name}: prints something else under the plugin")
    return {"seconds": ran["seconds"], "mib": ran["mib"], "plain_seconds": plain["seconds"],
            "plain_mib": plain["mib"], "slowdown": ran["seconds"] / plain["seconds"]}
