#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs in which somebody has uprobes, as bpftrace and perf probe set them. morph live does not change code that has one. Where one was
# set on changed code and is gone, undo takes back what the kernel left there. Copies stay as long as a probed function returns to
# them. morph-optimize reads a probed program as the file has it.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch probes
need nm
cat >target.c <<'C'
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int f(int x) { int s = 0; for (int i = 0; i < x; i++) s += i % 7 ? i : x; return s; }
__attribute__((noinline)) int g(int x) { return x > 3 ? f(x) + f(x - 1) : x; }
/* Its copy waits in the C library. */
__attribute__((noinline)) int step(int want)
{
	char c;
	if (read(0, &c, 1) != 1)
		return 0;
	if (g(40) != want || c != 'x')
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
	int want = g(40);
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

# ---- code that has a probe
probe "$PWD/target" "$(offset g)"
command_ends 4 "adopt with a probe" "$BUILD/morph" live adopt "$pid" target.live
says err.txt "somebody else has changed the code"
unprobe
text_is target || fail "the kernel leaves its breakpoint"
live adopt "$pid" target.live || fail "adopt: $(cat err.txt)"
steps "after adopt"

# ---- a probe on changed code: only taken away, nothing is as it must be
probe "$PWD/target" "$(offset g)"
command_ends 4 "undo with a probe" "$BUILD/morph" live undo "$pid"
says err.txt "somebody else has changed its code"
unprobe
[ "$(state)" = "changed by somebody else" ] || fail "behind a probe: $(cat out.txt)"
command_ends 4 "adopt behind a probe" "$BUILD/morph" live adopt "$pid" target.live
live undo "$pid" || fail "undo behind a probe: $(cat err.txt)"
text_is target || fail "undo behind a probe: the code differs from the file's"
steps "after undo behind a probe"

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
