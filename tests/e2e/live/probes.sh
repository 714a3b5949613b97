#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs in which somebody has uprobes, as bpftrace and perf probe set them. At the beginning of a function they do no harm, before and
# behind adopt and undo, since no jump lies there. Elsewhere, morph live does not write a jump over one; one that was set on a jump is
# named by status, and undo makes all right. Copies stay as long as a probed function returns to them. morph-optimize reads a probed
# program as the file has it.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch probes
need nm objdump g++
cat >target.c <<'C'
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int f(int x) { int s = 0; for (int i = 0; i < x; i++) s += i % 7 ? i : x; return s; }
__attribute__((noinline)) int g(int x) { return x > 3 ? f(x) + f(x - 1) : x; }
/* Called by pointers, so control comes to their old beginnings: with push, sub, lea and test as first instructions. */
__attribute__((noinline)) int pushes(int x) { int y = g(x); return g(x + 1) - y; }
__attribute__((noinline)) int lowers(int x) { volatile int y[60]; for (int i = 0; i < 60; i++) y[i] = x + i; return y[x]; }
__attribute__((noinline)) int leads(int x) { return x * 5 + 7 > 90 ? x * 4 + 1 : x * 2; }
__attribute__((noinline)) int tests(int x) { if (x < 0) return g(-x); return g(x) * 3; }
int (*volatile pointers[])(int) = {pushes, lowers, leads, tests};
__attribute__((noinline)) int sum(int x)
{
	int s = 0;
	for (int i = 0; i < 4; i++)
		s += pointers[i](x) * (i + 1);
	return s + g(x);
}
/* Its copy waits in the C library. */
__attribute__((noinline)) int step(int want)
{
	char c;
	if (read(0, &c, 1) != 1)
		return 0;
	if (sum(40) != want || c != 'x')
		puts("WRONG");
	else
		puts("at");
	fflush(stdout);
	return 1;
}
/* A function with a system call of its own has no copy. This one has a page of its own. */
__attribute__((used, section(".text.apart"), aligned(4096))) void apart(void)
{
	__asm__ volatile("syscall" : : "a"(110) : "rcx", "r11", "memory");
}
int main(void)
{
	int want = sum(40);
	long parent;
	__asm__ volatile("syscall" : "=a"(parent) : "0"(110) : "rcx", "r11", "memory");
	puts("ready");
	fflush(stdout);
	while (step(want))
		;
	puts("done");
	return 0;
}
C
gcc -O1 -no-pie -o target target.c && gcc -O1 -D_GNU_SOURCE -o probe "$root/tests/e2e/live/probe.c" || exit 1
libc=$(ldd ./target | awk '$1 == "libc.so.6" { print $3 }')

# probe FILE OFFSET [PID]: set $probe
probe() {
	: >probe.txt
	./probe "$@" >probe.txt 2>probe.err &
	probe=$!
	at_exit "kill -9 $pid $probe 2>/dev/null; rm -rf '$dir'"
	awaits "grep -q set probe.txt || ! kill -0 $probe 2>/dev/null"
	grep -q set probe.txt || { echo "skip: no uprobes: $(cat probe.err)"; exit 77; }
}
# The kernel takes the breakpoints out before the program has ended.
unprobe() {
	kill "$probe"
	wait "$probe" 2>/dev/null
}
# steps: the program makes another step, and that is right
steps() {
	local before
	before=$(grep -c at run.txt)
	echo -n x >&9
	awaits "[ \$(grep -c at run.txt) -gt $before ] || ! kill -0 $pid 2>/dev/null"
	kill -0 "$pid" 2>/dev/null || fail "$1: the program has ended"
}
# offset FUNCTION: in the file
offset() {
	printf '0x%x' $((16#$(nm target | awk -v f="$1" '$3 == f { print $1 }') - 0x400000))
}

mkfifo in
exec 9<>in
input=in start ./target
version target.live target

# second FUNCTION: the offset of its second instruction
second() {
	printf '0x%x' $((16#$(objdump -d target | awk -v f="<$1>:" '$2 == f { getline; getline; sub(":", "", $1); print $1 }') - 0x400000))
}
# has_breakpoints NR: in the code of the process, which is else that of the file
has_breakpoints() {
	[ "$(text_differs | wc -l)" = "$1" ] && [ "$(text_differs | grep -c ' 314$')" = "$1" ]
}
# text_differs: place, byte of the file and byte of the process, in octal, for each byte that is another one
text_differs() {
	local range start
	range=$(awk -v f="$PWD/target" '$2 ~ /x/ && $6 == f { print $1 }' "/proc/$pid/maps")
	start=$((16#${range%%-*}))
	cmp -l <(tail -c +$((start - 0x400000 + 1)) target | head -c $((16#${range##*-} - start))) \
		<(dd if="/proc/$pid/mem" bs=4096 skip=$((start / 4096)) count=$(((16#${range##*-} - start) / 4096)) 2>/dev/null)
}
# hit NR WHAT: the probe was, when it goes
hit() {
	unprobe
	grep -qx "hits $1" probe.txt || fail "$2: $(cat probe.txt), not $1"
}

# ---- a probe at the beginning of a changed function, set behind adopt
version other.live target "$("$BUILD/morph" live place --nr=2 "$(realpath target)" | tail -n 1)"
live adopt "$pid" target.live || fail "adopt: $(cat err.txt)"
for f in pushes lowers leads tests; do
	for kind in entry return; do
		# shellcheck disable=SC2046 # one word or none
		probe "$PWD/target" "$(offset $f)" "$pid" $([ $kind = return ] || echo entry)
		steps "$f, $kind: probed"
		steps "$f, $kind: probed, again"
		[ "$(state)" = "in use" ] || fail "$f, $kind: with a probe: $(cat out.txt)"
		hit 2 "$f, $kind"
		steps "$f, $kind: behind the probe"
		[ "$(state)" = "in use" ] || fail "$f, $kind: behind a probe: $(cat out.txt)"
	done
done
probe "$PWD/target" "$(offset pushes)" "$pid" entry
[ "$(state)" = "in use" ] && [ "$(jq '.processes[0].breakpoints' out.txt)" = 1 ] || fail "a probe: $(cat out.txt)"

# ---- switching, undo and adopt under it
steps "before a switch"
live adopt "$pid" other.live || fail "switch under a probe: $(cat err.txt)"
steps "after a switch"
live undo "$pid" || fail "undo under a probe: $(cat err.txt)"
[[ $(state) = none || $(state) = "not in use, copies mapped" ]] || fail "undo under a probe: $(cat out.txt)"
has_breakpoints 1 || fail "undo under a probe: $(text_differs)"
steps "after undo under a probe"
live adopt "$pid" target.live || fail "adopt under a probe: $(cat err.txt)"
steps "after adopt under a probe"
[ "$(state)" = "in use" ] || fail "adopt under a probe: $(cat out.txt)"
hit 4 "switching"
steps "behind that probe"
[ "$(state)" = "in use" ] || fail "behind that probe: $(cat out.txt)"
live undo "$pid" || fail "undo: $(cat err.txt)"
text_is target || fail "undo: the code differs from the file's"

# ---- a probe in the middle of what a jump covers
probe "$PWD/target" "$(second pushes)" "$pid" entry
command_ends 4 "adopt with a probe in a jump's place" "$BUILD/morph" live adopt "$pid" target.live
says err.txt "somebody else has a breakpoint in code that would change"
steps "after a refusal"
hit 1 "a probe in a jump's place"
text_is target || fail "the kernel leaves its breakpoint"
live adopt "$pid" target.live || fail "adopt before a probe on a jump: $(cat err.txt)"
probe "$PWD/target" "$(second pushes)" "$pid" entry
[ "$(state)" = "changed by somebody else" ] || fail "a probe on a jump: $(cat out.txt)"
live undo "$pid" || fail "undo with a probe on a jump: $(cat err.txt)"
has_breakpoints 1 || fail "undo with a probe on a jump: $(text_differs)"
steps "after undo with a probe on a jump"
hit 1 "a probe on a jump"
text_is target || fail "behind a probe on a jump: the code differs from the file's"
live adopt "$pid" target.live || fail "adopt before a probe on a jump: $(cat err.txt)"
probe "$PWD/target" "$(second pushes)"
unprobe
[ "$(state)" = "changed by somebody else" ] || fail "behind a probe on a jump: $(cat out.txt)"
command_ends 4 "adopt behind a probe on a jump" "$BUILD/morph" live adopt "$pid" target.live
live undo "$pid" || fail "undo behind a probe on a jump: $(cat err.txt)"
text_is target || fail "undo behind a probe on a jump: the code differs from the file's"
steps "after undo behind a probe on a jump"

# ---- a switch from a version that changes another function of the page, with a probe where the new one has a jump
printf '0x%x<outside\n' "0x$(nm target | awk '$3 == "lowers" { print $1 }')" >few
counts_dir few.counts
"$BUILD/morph-optimize" instrument --kind=meter --meter=few --layout=original --counts="$PWD/few.counts/%u" --report=none \
	--live-at="$("$BUILD/morph" live place --nr=3 "$pid" "$(realpath target)" | tail -n 1)" -o few.live target || fail "few.live"
live adopt --counts=few.counts "$pid" few.live || fail "adopt of few.live: $(cat err.txt)"
probe "$PWD/target" "$(second pushes)" "$pid" entry
command_ends 4 "switch with a probe in a jump's place" "$BUILD/morph" live adopt "$pid" target.live
says err.txt "somebody else has a breakpoint in code that would change"
steps "after that refusal"
hit 1 "a probe in a jump's place, before a switch"
live undo "$pid" || fail "undo of few.live: $(cat err.txt)"
text_is target || fail "undo of few.live: the code differs from the file's"

# ---- bytes of versions that look like breakpoints: each jump to the first of these has one, 0xcc, where the second has 0xcd
version cc.live target 0x110d0000
version cd.live target 0x110e0000
# state_of FILE: of this version in the process
state_of() {
	live status "$pid" || fail "status: $(cat err.txt)"
	jq -r --arg f "$PWD/$1" '.processes[] | select(.output == $f) | .state' out.txt
}
for probed in "" pushes; do
	[ -z "$probed" ] || probe "$PWD/target" "$(offset $probed)" "$pid" entry
	for f in cc.live cd.live cc.live; do
		live adopt "$pid" $f || fail "$f, probe: $probed: $(cat err.txt)"
		[ "$(state_of $f)" = "in use" ] || fail "$f, probe: $probed: $(cat out.txt)"
		steps "$f, probe: $probed"
	done
	live undo "$pid" || fail "undo of cc.live, probe: $probed: $(cat err.txt)"
	[ -z "$probed" ] || hit 3 "cc.live and cd.live"
	text_is target || fail "undo of cc.live, probe: $probed: the code differs from the file's"
done

# ---- a probe in a page that no version changes
live adopt "$pid" target.live || fail "adopt before a probe elsewhere: $(cat err.txt)"
probe "$PWD/target" "$(offset apart)"
live undo "$pid" || fail "undo with a probe elsewhere: $(cat err.txt)"
unprobe
text_is target || fail "undo with a probe elsewhere: the code differs from the file's"

# ---- a function that returns to a copy, and the kernel knows where
live adopt "$pid" target.live || fail "adopt again: $(cat err.txt)"
steps "after adopt again"
probe "$libc" "0x$(nm -D "$libc" | awk '$3 ~ /^read@@/ { print $1 }')" "$pid"
steps "with a probed return"
# It waits in read(), whose return address only the kernel has.
awaits "[ \"\$(cut -d' ' -f1 /proc/$pid/syscall)\" = 0 ]"
grep -q '\[uprobes\]' "/proc/$pid/maps" || fail "no return is probed"
live undo "$pid" || fail "undo with a probed return: $(cat err.txt)"
[ "$(jq -r '.processes[0].state' out.txt)" = "not in use, copies mapped" ] || fail "the copies are gone: $(cat out.txt)"
text_is target || fail "undo with a probed return: the code differs from the file's"
steps "after undo with a probed return"
unprobe
steps "after the probed return"
live undo "$pid" || fail "undo of the copies: $(cat err.txt)"
[ "$(state)" = none ] || fail "the copies stay: $(cat out.txt)"
exec 9>&-
kill -9 "$pid"

# ---- the function of libc that unwinders ask, which jumps to a page of Morph's meanwhile
cat >target.cc <<'C'
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void thrower(int x) { if (x == 'x') throw x; }
__attribute__((noinline)) int catcher(int x) { try { thrower(x); } catch (int y) { return y; } return 0; }
__attribute__((noinline)) int step(void)
{
	char c;
	if (read(0, &c, 1) != 1)
		return 0;
	puts(catcher(c) == 'x' ? "at" : "WRONG");
	fflush(stdout);
	return 1;
}
int main(void)
{
	puts("ready");
	fflush(stdout);
	while (step())
		;
	return 0;
}
C
g++ -O1 -no-pie -o throws target.cc || exit 1
exec 9<>in
input=in start ./throws
version throws.live throws
live adopt "$pid" throws.live || fail "adopt of a program that throws: $(cat err.txt)"
steps "exceptions"
probe "$libc" "0x$(nm -D "$libc" | awk '$3 ~ /^_dl_find_object@/ { print $1 }')" "$pid" entry
steps "exceptions, probed"
[ "$(state)" = "in use" ] || fail "a probe of the unwinders' function: $(cat out.txt)"
live undo "$pid" || fail "undo under a probe of the unwinders' function: $(cat err.txt)"
steps "exceptions, after undo"
live adopt "$pid" throws.live || fail "adopt under a probe of the unwinders' function: $(cat err.txt)"
steps "exceptions, after adopt"
unprobe
grep -q 'hits [1-9]' probe.txt || fail "nobody has asked: $(cat probe.txt)"
steps "exceptions, behind the probe"
live undo "$pid" || fail "undo of a program that throws: $(cat err.txt)"
exec 9>&-
kill -9 "$pid"

# ---- behind first instructions, counters count as they do at the beginning in an ordinary output
for how in "" --live-at=0x20000000; do
	# shellcheck disable=SC2086
	"$BUILD/morph-optimize" instrument --kind=edges,plain --all $how --counts="$PWD/counts" --report=none -o counted target ||
		fail "no output that counts $how"
	rm -f counts count.db
	printf xxxxx | ./counted >out.txt || fail "a run that counts $how: $(cat out.txt)"
	"$BUILD/morph-stats" import --db=count.db --binary=counted counts >out.txt 2>&1 || fail "import: $(cat out.txt)"
	"$BUILD/morph-stats" query --json --db=count.db --binary=target --by=block --limit=1000 |
		jq -r '.rows[] | "\(.function) \(.address) \(.samples)"' | sort >"counted$how.txt"
done
for f in pushes lowers leads; do
	grep -q "^$f " counted.txt || fail "$f is not counted"
done
# Its beginning is too short for a jump. Here, both ways from there lead to counters.
diff counted.txt <(grep -v '^tests ' counted--live-at=0x20000000.txt) || fail "other counts with first instructions that stay"
[ "$(grep -c '^tests .* [1-9]' counted--live-at=0x20000000.txt)" -ge 2 ] || fail "a short beginning is not counted"

# ---- a file that has a probe
"$BUILD/morph-optimize" --all --report=none -o without target || fail "no output"
probe "$PWD/target" "$(offset g)"
"$BUILD/morph-optimize" --all --report=none -o with target || fail "no output of a probed file"
"$BUILD/morph-optimize" verify target with >out.txt 2>&1 || fail "verify of a probed file: $(cat out.txt)"
unprobe
"$BUILD/morph-optimize" verify target with >out.txt 2>&1 || fail "verify behind a probe: $(cat out.txt)"
cmp without with || fail "another output of a probed file"
grep WRONG run.txt && fail "the program noticed"
finish
