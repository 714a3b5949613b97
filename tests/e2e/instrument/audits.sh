#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# A program with --kind=audit behaves like the original, whichever version runs. Each timing that
# starts ends or is abandoned. A verdict in the ring file decides which version runs, by an
# emulator's counts. Without a usable ring file, version A runs. Tampered outputs do not verify.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc g++ python3 qemu-x86_64 jq
export PATH="$BUILD:$PATH"
scratch audits

cat >work.cc <<'C'
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>
#define NOINLINE __attribute__((noinline, noclone))
extern char **environ;
static long n = 20000;
static jmp_buf back;
static volatile sig_atomic_t nr_signals;
NOINLINE long sum(const unsigned *a, long size)
{
	long s = 0;
	for (long i = 0; i < size; i++) {
		if (a[i] % 3 == 0)
			s += a[i];
		else if (a[i] & 8)
			s ^= i;
	}
	return s;
}
NOINLINE long fib(long k) { return k < 2 ? k : fib(k - 1) + fib(k - 2); }
NOINLINE long tail(const unsigned *a, long size)
{
	if (size > 50)
		return sum(a, size);
	return fib(size % 7);
}
NOINLINE long jumps(const unsigned *a, long k)
{
	if (k % 5 == 0)
		longjmp(back, 1);
	return sum(a, 40) + k;
}
NOINLINE long throws(const unsigned *a, long k)
{
	if (k % 7 == 0)
		throw k;
	return sum(a, 30);
}
struct noted {
	long *to;
	explicit noted(long *p) : to(p) { ++*to; }
	~noted() { *to += 2; }
};
NOINLINE long catches(const unsigned *a, long k)
{
	long h = 0;
	try {
		noted x(&h);
		h += throws(a, k);
	} catch (long v) {
		h += 3 * v;
	}
	return h;
}
NOINLINE long chooses(const unsigned *a, long size)
{
	long s = 1;
	for (long i = 0; i < size; i++)
		switch (a[i] % 11) {
		case 0: s += 3; break;
		case 1: s ^= i; break;
		case 2: s -= s >> 2; break;
		case 3: s = s * 3 + 1; break;
		case 4: s += fib(i % 4); break;
		case 5: s ^= 5; break;
		case 6: s += a[i]; break;
		case 7: if (i > 90) return s; break;
		case 8: s = -s; break;
		}
	return s;
}
static unsigned data[512];
static void fill() { for (unsigned i = 0; i < 512; i++) data[i] = i * 2654435761u >> 7; }
static long plain()
{
	long h = 0;
	for (long i = 0; i < n; i++) {
		h = h * 31 + tail(data, 10 + i % 200);
		if (i % 50 == 0)
			h ^= fib(12);
		h += catches(data, i) + chooses(data + i % 400, 30 + i % 70);
	}
	return h;
}
static long leaps()
{
	volatile long h = 0;
	for (volatile long i = 0; i < n; i++)
		if (!setjmp(back))
			h = h * 31 + jumps(data, i);
		else
			h ^= i;
	return h;
}
static void *thread(void *p) { *(long *)p = plain(); return NULL; }
static long threads()
{
	pthread_t t[8];
	long h[8], all = 0;
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, thread, &h[i]);
	all = plain();
	for (int i = 0; i < 8; i++) {
		pthread_join(t[i], NULL);
		all = all * 7 + h[i];
	}
	return all;
}
static long forks()
{
	long h = plain();
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();
		int status;
		if (!pid)
			_exit((int)(plain() & 63));
		waitpid(pid, &status, 0);
		h = h * 5 + WEXITSTATUS(status);
		char arg0[] = "true", *args[] = {arg0, NULL};
		if (!posix_spawnp(&pid, "true", NULL, NULL, args, environ))
			waitpid(pid, &status, 0);
		h += status;
		h ^= fib(9);
	}
	return h;
}
static void on_signal(int)
{
	static long h;
	h += sum(data, 100);
	nr_signals = nr_signals + 1;
}
static long signals()
{
	static char stack[65536];
	stack_t s = {};
	struct sigaction sa = {};
	struct itimerval every = {{0, 500}, {0, 500}}, never = {};
	s.ss_sp = stack;
	s.ss_size = sizeof(stack);
	sigaltstack(&s, NULL);
	sa.sa_handler = on_signal;
	sa.sa_flags = SA_RESTART | SA_ONSTACK;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	long h = plain();
	while (nr_signals < 20)
		h = h + 0 * fib(10);
	setitimer(ITIMER_REAL, &never, NULL);
	return h;
}
/* A handler finds main() on the stack, wherever it interrupts: in a version, a stub, the runtime. */
static volatile sig_atomic_t least = 1000;
static _Unwind_Reason_Code count(_Unwind_Context *, void *p) { ++*(int *)p; return _URC_NO_REASON; }
static void on_tick(int)
{
	int frames = 0;
	_Unwind_Backtrace(count, &frames);
	if (frames < least)
		least = frames;
	nr_signals = nr_signals + 1;
}
static long unwinds()
{
	struct itimerval every = {{0, 300}, {0, 300}}, never = {};
	long h = 0;
	signal(SIGALRM, on_tick);
	setitimer(ITIMER_REAL, &every, NULL);
	while (nr_signals < n / 20)
		for (int i = 0; i < 100; i++)
			h += sum(data, 50 + i);
	setitimer(ITIMER_REAL, &never, NULL);
	return h ? least >= 4 : 2;
}
static ucontext_t home, there;
static char other[1 << 18];
static void yields()
{
	for (;;) {
		fib(5);
		swapcontext(&there, &home);
	}
}
NOINLINE long switches(long k)
{
	swapcontext(&home, &there);
	return k + fib(k % 9);
}
static long contexts()
{
	long h = 0;
	getcontext(&there);
	there.uc_stack.ss_sp = other;
	there.uc_stack.ss_size = sizeof(other);
	makecontext(&there, yields, 0);
	for (long i = 0; i < n; i++)
		h = h * 3 + switches(i);
	return h;
}
int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "plain";
	if (argc > 2)
		n = atol(argv[2]);
	fill();
	printf("%ld\n", !strcmp(what, "leaps") ? leaps() : !strcmp(what, "threads") ? threads()
		: !strcmp(what, "forks") ? forks() : !strcmp(what, "signals") ? signals()
		: !strcmp(what, "unwinds") ? unwinds() : !strcmp(what, "contexts") ? contexts() : plain());
	if (!strcmp(what, "exits"))
		exit(3);
	if (!strcmp(what, "killed"))
		kill(getpid(), SIGKILL);
	return 0;
}
C

# The ring file and the table. ring.py check FILE: facts that hold in every ring file; prints the
# number of pairs. ring.py force FILE VERDICT: the same verdict for all functions. ring.py sum FILE
# FIELD. ring.py ran ELF EDGES: how many runs of instructions in versions A and B, and in
# those with stubs. ring.py spoil ELF
# HOW OUT: a copy in which a stub is wrong.
cat >ring.py <<'P'
import collections, struct, subprocess, sys
HEADER, FUNCTION, RECORD = "<8sIIQIIQ", "<IIQQQQQQQ", "<QQQQQIIHBBB"
def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0
def sections(elf):
    text = subprocess.run(["readelf", "-SW", elf], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        f = line.replace("[ ", "[").split()
        if len(f) > 5 and f[0].startswith("[") and f[1].startswith("."):
            yield f[1], (int(f[3], 16), int(f[4], 16), int(f[5], 16))
def table(elf):
    """Ranges of versions, and timing points per function."""
    _, off, size = dict(sections(elf))[".morph.audit"]
    with open(elf, "rb") as f:
        v = varints(f.read()[off:off + size - 8])
    signed = lambda x: (x >> 1) ^ -(x & 1)
    assert next(v) == 2
    nr, _, nr_points = next(v), next(v), next(v)
    at = end = 0
    ranges, points = [], []
    for i in range(nr):
        at += next(v)
        nr_ranges, nr_here = next(v), next(v)
        for _ in range(nr_ranges):
            version, start, size = next(v), end + signed(next(v)), next(v)
            end = start + size
            ranges.append((i, at, version, start, end))
        points.append([(at + signed(next(v)), next(v)) for _ in range(nr_here)])
    assert sum(map(len, points)) == nr_points
    return ranges, points
def ranges(elf):
    return table(elf)[0]
def read(path):
    with open(path, "rb") as f:
        d = f.read()
    magic, version, header, _, nr, nr_records, total = struct.unpack_from(HEADER, d)
    assert (magic, version, header, nr_records) == (b"MORPHAUD", 1, 4096, 16384), magic
    base = 4096 + (nr * 128 + 4095) // 4096 * 4096
    assert len(d) == base + 64 * nr_records
    functions = [struct.unpack_from(FUNCTION, d, 4096 + 128 * i) for i in range(nr)]
    records = [struct.unpack_from(RECORD, d, base + 64 * (i % nr_records))
               for i in range(max(0, total - nr_records), total)]
    return d, functions, records, total
def check(path, elf):
    _, functions, records, total = read(path)
    points = table(elf)[1]
    assert sum(sum(f[5:]) for f in functions) == total, "not all windows have records"
    for i, f in enumerate(functions):
        assert f[2] == f[3] + f[4], f"function {i}: {f[2]} starts, {f[3]} stops, {f[4]} abandoned"
    pairs = collections.defaultdict(list)
    for i, (number, pair, ticks, rounds, _, function, _, point, version, second, fate) in enumerate(records):
        if not number: # its writer was killed
            continue
        assert number == i + 1 + max(0, total - 16384) and pair and version < 2
        assert second < 2 and fate < 3 and function < len(functions)
        assert fate or (rounds and ticks), "a timed window without timings"
        assert (0 < point <= len(points[function])) if points[function] else not point
        assert fate or not point or rounds >= points[function][point - 1][1], "too few rounds"
        pairs[pair].append((second, version, fate, (function, point)))
    complete = 0
    for p in pairs.values():
        p.sort()
        assert len(p) < 3 and len({x[3] for x in p}) == 1, p
        if len(p) == 2:
            assert p[0][0] == 0 and p[1][0] == 1 and p[0][1] != p[1][1] and p[0][2] == 0, p
            complete += p[1][2] == 0
    print(complete)
def force(path, verdict):
    with open(path, "r+b") as f:
        d = f.read()
        for i in range(struct.unpack_from(HEADER, d)[4]):
            f.seek(4096 + 128 * i)
            f.write(struct.pack("<I", int(verdict)))
def ran(elf, edges):
    """Runs of instructions in versions A and B, and of those with stubs, by the emulator's counts."""
    runs = [0, 0, 0]
    where = list(ranges(elf))
    for line in open(edges):
        f = line.split()
        if f and f[0] == "block":
            at, count = int(f[1], 16), int(f[4])
            for _, _, version, start, end in where:
                if start <= at < end:
                    runs[version % 2] += count
                    runs[2] += count if version < 2 else 0
    return runs
def spoil(elf, how, out):
    where = dict(sections(elf))
    vaddr, off, size = where[".morph.text"]
    with open(elf, "rb") as f:
        d = bytearray(f.read())
    enter = d.index(b"\x65\xff\x0d", off)
    leave = d.index(b"\x65\x80\x3d", enter + 33)
    assert leave < off + size
    def move(at, by):
        struct.pack_into("<i", d, at, struct.unpack_from("<i", d, at)[0] + by)
    if how == "slot": # of another function, or the state
        move(enter + 3, 64)
    elif how == "version": # another byte
        move(enter + 22, 1)
    elif how == "number":
        d[enter + 15] ^= 1
    elif how == "runtime": # the runtime's entry for exits
        move(enter + 10, 16)
    elif how == "first": # the first jump is that of a verdict already
        struct.pack_into("<i", d, enter - 14, struct.unpack_from("<i", d, enter - 9)[0] + 5)
    elif how == "untimed": # a verdict for A leads to B
        struct.pack_into("<i", d, enter - 9, struct.unpack_from("<i", d, enter - 4)[0] + 5)
    elif how == "inside": # a verdict leads to the second instruction
        move(enter - 4, 1)
    elif how == "stubs": # a verdict leads to version A with stubs
        struct.pack_into("<i", d, enter - 9, 48)
    elif how == "dispatch": # version A twice
        struct.pack_into("<i", d, enter + 29, 0)
    elif how == "skip": # the stub that ends the timing is jumped over
        d[leave:leave + 2] = b"\xeb\x12"
    elif how == "exit":
        move(leave + 11, -16)
    elif how == "timing":
        move(leave + 3, 64)
    elif how.startswith("point"):
        # Stubs at entries look alike up to their first branch, but jump less far over the call.
        point = d.index(b"\x79\x2b\x48\x8d\x64\x24\x80\xe8", off) - 7
        assert point + 52 < off + size and d[point:point + 3] == b"\x65\xff\x0d"
        how = how[6:]
        if how == "left": # that of the other version, or of another point
            move(point + 3, 4)
        elif how == "zone": # the red zone is overwritten
            d[point + 13] = 0
        elif how == "number":
            d[point + 22] ^= 8
        elif how == "runtime":
            move(point + 15, -16)
        elif how == "version":
            move(point + 27, 1)
        elif how == "inverted":
            d[point + 33] ^= 1
        elif how == "other": # somewhere else in the other version
            move(point + 34, 1)
        elif how == "stay": # the same version
            struct.pack_into("<i", d, point + 34, 0)
        elif how == "decided": # another byte
            move(point + 41, 1)
        elif how == "untimed": # a verdict leads to the second instruction
            move(point + 48, 1)
        elif how == "timed": # a verdict leads to the version with stubs
            struct.pack_into("<i", d, point + 48, 0)
        elif how == "skip": # the stub is jumped over
            d[point:point + 2] = b"\xeb\x32"
        else:
            assert False, how
    elif how == "mixed": # a branch of version A leads to version B
        copies = {(v, i): s for i, _, v, s, _ in ranges(elf)}
        text = subprocess.run(["objdump", "-d", "-j", ".morph.text", elf], capture_output=True,
                              text=True, check=True).stdout
        jumps = [line.split() for line in text.splitlines() if "\tj" in line]
        for words in jumps:
            at = int(words[0][:-1], 16)
            inside = [(i, s) for i, _, v, s, e in ranges(elf) if v == 0 and s <= at < e]
            if inside and words[1] == "0f":
                i, start = inside[0]
                move(at - vaddr + off + 2, copies[1, i] - start)
                break
        else:
            assert False, "no long branch in a version A"
    elif how == "entry": # a table of version A leads to another label
        vaddr, off, size = where[".morph.tables"]
        words = struct.unpack_from(f"<{size // 4}i", d, off)
        other = next(w for w in words if w != words[0])
        struct.pack_into("<i", d, off, other)
    elif how == "shared": # version A reads the original's table, which leads to version B
        def leas(elf, *which):
            text = subprocess.run(["objdump", "-d", *which, elf], capture_output=True, text=True,
                                  check=True).stdout
            for line in text.splitlines():
                f = line.split()
                if "lea" in f and "#" in f:
                    yield int(f[0][:-1], 16), int(f[f.index("#") + 1], 16)
        start, _, size = where[".morph.tables"]
        at, to = next(x for x in leas(elf, "-j", ".morph.text") if start <= x[1] < start + size)
        reads = [t for _, t in leas("w1", "--disassemble=_Z7choosesPKjl")]
        assert len(set(reads)) == 1
        move(at - vaddr + off + 3, reads[0] - to)
    else:
        assert how == "none"
    with open(out, "wb") as f:
        f.write(d)
what, args = sys.argv[1], sys.argv[2:]
if what == "check":
    check(*args)
elif what == "force":
    force(*args)
elif what == "rounds": # in windows of loops that count
    print(sum(r[3] for r in read(args[0])[2] if r[7] and not r[10]))
elif what == "sum":
    field = {"starts": 2, "stops": 3, "abandoned": 4}[args[1]]
    print(sum(f[field] for f in read(args[0])[1]))
elif what == "ran":
    print(*ran(*args))
elif what == "spoil":
    spoil(*args)
P

# same WHAT PROGRAM: PROGRAM.a behaves like PROGRAM, without a word, and its ring file holds facts
same() {
	local want=0 verdict=$3
	./"$2" $1 $4 >want.txt 2>/dev/null || want=$?
	command_ends $want "$2 $1, verdict $verdict" ./"$2.a" $1 $4
	cmp want.txt out.txt || fail "$2 $1, verdict $verdict: other output"
	[ "$1" = killed ] || [ ! -s err.txt ] || fail "$2 $1, verdict $verdict: said $(cat err.txt)"
	python3 ring.py check "$2.a.counts" "$2.a" >/dev/null || fail "$2 $1, verdict $verdict: the ring file is wrong"
}

i=0
for flags in "-O2" "-O2 -fno-pie -no-pie" "-O1 -static" "-O3 -Wl,--emit-relocs -fcf-protection=full" "-Os -s -fno-pie -no-pie"; do
	i=$((i + 1))
	# shellcheck disable=SC2086
	g++ $flags -Wl,--build-id -pthread work.cc -o w$i || exit 1
	for seed in all 1 2 3; do
		layout=--lab=stress-layout=$seed
		[ $seed = all ] && layout=--all
		command_ends 0 "$flags $seed" morph-optimize instrument --kind=audit $layout --report=none w$i -o w$i.a
		rm -f w$i.a.counts
		# On a busy machine, a short run may have no window.
		for rounds in 30000 100000 300000; do
			same plain w$i 0 $rounds
			[ "$(python3 ring.py sum w$i.a.counts stops)" = 0 ] || break
		done
		[ "$(python3 ring.py sum w$i.a.counts stops)" -gt 0 ] || fail "$flags $seed: nothing was timed"
		for verdict in 1 2 3; do
			python3 ring.py force w$i.a.counts $verdict
			same plain w$i $verdict 20000
		done
	done
	# Ways to leave a function, threads, processes, stacks. The ring file collects all of them.
	rm -f w$i.a.counts
	for what in plain leaps threads forks signals contexts exits killed unwinds; do
		same $what w$i 0 20000
	done
	[ "$(python3 ring.py sum w$i.a.counts stops)" -gt 1000 ] || fail "$flags: hardly a timing"
	[ "$(python3 ring.py rounds w$i.a.counts)" -gt 100 ] || fail "$flags: hardly a round of a loop"
	[ "$(python3 ring.py sum w$i.a.counts abandoned)" -gt 0 ] || fail "$flags: no longjmp() was seen"
	for verdict in 1 2; do
		python3 ring.py force w$i.a.counts $verdict
		for what in leaps threads forks signals contexts exits; do
			same $what w$i $verdict 5000
		done
	done
done

# A verdict decides which version runs. Until a thread has looked, version A does.
morph-optimize instrument --kind=audit --lab=stress-layout=1 --report=none w1 -o q.a || fail "cannot make q.a"
./q.a plain 100 >/dev/null
for verdict in 1 2; do
	python3 ring.py force q.a.counts $verdict
	"$root/scripts/bench/branches" --edges q.edges ./q.a -- plain 3000 >/dev/null 2>err.txt || fail "emulator: $(cat err.txt)"
	python3 ring.py ran q.a q.edges >ran.txt || fail "the emulator's counts cannot be read"
	read -r a b timed <ran.txt
	[ $((verdict == 1 ? b : a)) = 0 ] && [ $((verdict == 1 ? a : b)) -gt 100000 ] ||
		fail "verdict $verdict: A ran $a times, B $b times"
	[ $((timed * 100)) -lt $((a + b)) ] || fail "verdict $verdict: with stubs, $timed of $((a + b)) ran"
done
rm -f q.a.counts
mkdir q.a.counts
"$root/scripts/bench/branches" --edges q.edges ./q.a -- plain 3000 >/dev/null 2>err.txt || fail "emulator: $(cat err.txt)"
python3 ring.py ran q.a q.edges >ran.txt
read -r a b _ <ran.txt
[ "$b" = 0 ] && [ "$a" -gt 100000 ] || fail "no ring file: A ran $a times, B $b times"
rmdir q.a.counts

# Files that cannot be used change nothing, and are not changed.
./q.a plain 100 >/dev/null
cp q.a.counts good.counts
./w1 plain 3000 >want.txt
other() { morph-optimize instrument --kind=audit --lab=stress-layout=9 --counts="$dir/q.a.counts" --report=none w2 -o other.a; }
other
for how in truncated short long foreign text verdicts records header; do
	cp good.counts q.a.counts
	case $how in
	truncated) truncate -s 8192 q.a.counts ;;
	short) truncate -s 100 q.a.counts ;;
	long) truncate -s +1 q.a.counts ;;
	foreign) rm q.a.counts && ./other.a plain 100 >/dev/null ;;
	text) yes text | head -c "$(stat -c %s good.counts)" >q.a.counts ;;
	header) printf '\377' | dd of=q.a.counts bs=1 seek=100 conv=notrunc 2>/dev/null ;;
	verdicts) python3 ring.py force q.a.counts 4294967295 ;;
	records) dd if=/dev/urandom of=q.a.counts bs=4096 seek=2 count=200 conv=notrunc 2>/dev/null ;;
	esac
	cp q.a.counts before.counts
	command_ends 0 "$how ring file" ./q.a plain 3000
	cmp want.txt out.txt || fail "$how ring file: other output"
	[ ! -s err.txt ] || fail "$how ring file: said $(cat err.txt)"
	case $how in
	verdicts | records) ;;
	*) cmp q.a.counts before.counts || fail "$how ring file was changed" ;;
	esac
done
rm -f q.a.counts
ln -s good.counts q.a.counts
cp good.counts before.counts
command_ends 0 "ring file is a link" ./q.a plain 3000
cmp good.counts before.counts || fail "a link was followed"
rm q.a.counts
(
	ulimit -f 100
	exec ./q.a plain 3000
) >out.txt 2>err.txt || fail "no room for the ring file: status $?"
cmp want.txt out.txt || fail "no room for the ring file: other output"

# %p in the path is the process.
morph-optimize instrument --kind=audit --lab=stress-layout=1 --counts="$dir/p.%p" --report=none w1 -o p.a
./p.a plain 2000 >/dev/null &
pid=$!
wait $pid || fail "p.a failed"
python3 ring.py check p.$pid p.a >/dev/null || fail "no ring file of its own for a process"

# Verify finds each wrong stub.
command_ends 0 "verify" morph-optimize verify --report=none w1 q.a
readelf -SW q.a | grep -q ' \.morph\.tables ' || fail "version A has no table of its own"
for how in none slot version number runtime first untimed inside stubs dispatch skip exit timing mixed entry shared \
	point-{left,zone,number,runtime,version,inverted,other,stay,decided,untimed,timed,skip}; do
	python3 ring.py spoil q.a $how bad.a || fail "cannot spoil: $how"
	chmod +x bad.a
	command_ends $([ $how = none ] && echo 0 || echo 4) "verify: $how" morph-optimize verify --report=none w1 bad.a
done

# What the report says, and who is left out.
command_ends 0 "report" morph-optimize instrument --kind=audit --all --report=json w1 -o r.a
json "report" '.audits.functions > 3 and .audits.fixed >= 0 and (.audits.path | endswith("r.a.counts"))'
command_ends 0 "--only" morph-optimize instrument --kind=audit --all --only=_Z3sumPKjl --report=json w1 -o r.a
json "--only" '.audits.functions == 1'
command_ends 4 "set-user-ID" sh -c 'cp w1 s && chmod u+s s && morph-optimize instrument --kind=audit --all --report=none s -o r.a'
finish
