#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: several kinds of files, and all registers behind each of many calls
# Small functions in place of calls of them: the same behaviour in several kinds of files, the same registers,
# flags and memory behind the calls of random functions, with and without branches, frames and exceptions in
# such code.
# Functions and callers of other kinds keep their calls. SEED in the environment: other random functions.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-calls.sh"
scratch inline
need gcc g++ objdump jq setarch
data=$root/tests/data

# optimise FILE [OPTIONS]: FILE.out is the verified output, and $calls the number of replaced calls
optimise() { optimise_calls no-slots inlined "$@"; }

# program NAME LEAST COMPILER FLAGS
program() {
	local name=$1 least=$2
	shift 2
	"$@" -o "$name" 2>err.txt || { fail "$name: $(cat err.txt)"; return; }
	optimise "$name" || return
	[ "$calls" -ge "$least" ] || fail "$name: only $calls calls were replaced"
	same "$name" "$name"
	for seed in 1 2 3; do
		optimise "$name" --lab=stress-layout=$seed && same "$name, seed $seed" "$name"
	done
	optimise_calls line=64 inlined "$name" && same "$name with slots" "$name"
	calls=$("$BUILD/morph-optimize" --all --lab=no-inline --report=json -o "$name.out" "$name" |
		jq .code.inlined)
	[ "$calls" = 0 ] || fail "$name: '$calls' calls were replaced with --lab=no-inline"
}

program pie 15 gcc -O2 "$data/leaf.c"
program fixed 15 gcc -O2 -fno-pie -no-pie "$data/leaf.c"
program relocations 15 gcc -O2 -Wl,--emit-relocs "$data/leaf.c"
program landing 15 gcc -O2 -fcf-protection "$data/leaf.c"
program static 15 gcc -O2 -static "$data/leaf.c"
program stripped 15 gcc -O2 -s "$data/leaf.c"
# Code without optimisation keeps its arguments in the stack: only the function that does nothing has no frame.
program frames 0 gcc -O0 "$data/leaf.c"
# A handler throws out of a function that was inlined.
program exceptions 18 g++ -x c++ -O2 -fnon-call-exceptions "$data/leaf.c"
program exceptions-fixed 18 g++ -x c++ -O2 -fno-pie -no-pie -fnon-call-exceptions "$data/leaf.c"
if command -v clang-19 >/dev/null || command -v clang-14 >/dev/null; then
	clang=$(command -v clang-19 || command -v clang-14)
	program clang 0 "$clang" -O2 -w "$data/leaf.c"
else
	left_out+=" clang,"
fi

# Functions that save registers or use the stack, among them one whose calling function finds its frame by %rbp. A trap
# behind each instruction unwinds to the program's start: the same registers and frame as in the original.
steps() { # NAME LEAST COMPILER FLAGS
	program "$1" "${@:2}"
	for seed in 0 3 7 11 15; do
		optimise "$1" $([ $seed = 0 ] || echo --lab=stress-inline=$seed) || continue
		[ $seed = 0 ] || [ "$calls" -ge 8 ] || fail "$1, seed $seed: only $calls calls were replaced"
		same "$1, seed $seed" "$1"
		"./$1.out" steps >steps.txt || fail "$1, seed $seed: the unwinder is wrong"
		[ "$(sed -n 2p steps.txt)" = "steps, 0 wrong" ] || fail "$1, seed $seed: $(cat steps.txt)"
	done
}
steps stack 4 gcc -O2 "$data/leaf_stack.c"
steps stack-fixed 4 gcc -O1 -fno-pie -no-pie "$data/leaf_stack.c"
steps stack-relocations 4 gcc -O2 -fcf-protection -Wl,--emit-relocs "$data/leaf_stack.c"
steps stack-exceptions 4 g++ -x c++ -O2 -fnon-call-exceptions "$data/leaf_stack.c"
if [ -n "${clang:-}" ]; then
	steps stack-clang 2 "$clang" -O2 -w "$data/leaf_stack.c"
fi
steps stack-debug 4 gcc -O2 -g "$data/leaf_stack.c"

# Functions that call others, or end in jumps to others, which replace calls by a profile or at random: the unwinder goes on from what they call, and exceptions pass.
steps calls 2 gcc -O2 "$data/leaf_calls.c"
steps calls-fixed 2 gcc -O1 -fno-pie -no-pie "$data/leaf_calls.c"
steps calls-relocations 2 gcc -O2 -fcf-protection -Wl,--emit-relocs "$data/leaf_calls.c"
steps calls-lazy 2 gcc -O2 -Wl,-z,lazy "$data/leaf_calls.c"
steps calls-exceptions 2 g++ -x c++ -O2 "$data/leaf_calls.c"
if [ -n "${clang:-}" ]; then
	steps calls-clang 2 "$clang" -O2 -w "$data/leaf_calls.c"
fi
# Functions with a part for cold code: this part stands in place of calls, too, but not in a file with debug information.
steps cold 3 gcc -O2 "$data/leaf_cold.c"
steps cold-fixed 3 gcc -O2 -fno-pie -no-pie -Wl,--emit-relocs "$data/leaf_cold.c"
optimise cold --lab=stress-inline=3
for name in plain tails loops array stops; do
	start=$(nm cold | awk -v name="$name.cold" '$3 == name { print $1 }')
	[ "$("$BUILD/tools/moved" cold.out | grep -c " $(printf %x "0x${start:-0}")\$")" -ge 2 ] ||
		fail "the cold part of $name() at '$start' stands in place of no call"
done
gcc -O2 -g -o cold-debug "$data/leaf_cold.c"
optimise cold --lab=stress-inline=7 && most=$calls
optimise cold-debug --lab=stress-inline=7 && same cold-debug cold-debug
[ "$calls" -gt 0 ] && [ "$calls" -lt "$most" ] ||
	fail "$calls instead of $most calls were replaced in a file with debug information"
# No symbol covers code of another function: what lies apart has symbols of its own.
for seed in 3 7 11; do
	optimise calls --lab=stress-layout=$seed --lab=stress-inline=$seed || continue
	nm -S calls.out | grep -q ' t .*\.morph\.part$' || fail "seed $seed: no symbol of code that lies apart"
	nm -S calls.out | python3 -c '
import sys
symbols = sorted((int(w[0], 16), int(w[1], 16), w[3]) for w in map(str.split, sys.stdin) if len(w) == 4 and w[2] in "tT")
for a, b in zip(symbols, symbols[1:]):
    if a[0] != b[0] and a[0] + a[1] > b[0]:
        print(a[2], "covers", b[2])' >overlaps.txt
	[ ! -s overlaps.txt ] || fail "seed $seed: $(head -3 overlaps.txt)"
done
# Such functions keep their frames where the file asks for them, or where that is not known.
sed 's/(walk_stack \*)dlsym(RTLD_DEFAULT, "_Unwind_Backtrace")/_Unwind_Backtrace/' "$data/steps.h" >steps.h
cp "$data/leaf_calls.c" .
gcc -O2 -o calls-walks leaf_calls.c
optimise calls --lab=stress-inline=3 && most=$calls
optimise calls-walks --lab=stress-inline=3 && same calls-walks calls-walks
[ "$calls" -gt 0 ] && [ "$calls" -le $((most - 10)) ] ||
	fail "$calls instead of $most calls were replaced in a file that walks its stack"

# The debugger finds the same frames from the middle of such code, and the registers of the first function.
if command -v gdb >/dev/null; then
	optimise stack-fixed --lab=stress-inline=3
	range=$(nm -S stack-fixed | awk '$4 == "asm_array" { print $1, $2 }')
	"$BUILD/tools/moved" stack-fixed.out >moved.txt
	nr=0
	while read -r at; do
		gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex "break *$at" -ex run -ex bt -ex 'frame function enter' \
			-ex 'p $rbx == 0x3333 && $rbp == 0x6666 && $r12 == 0xcccc && $r15 == 0xffff' ./stack-fixed.out >bt.txt 2>&1
		grep -q '^#0 .* asm_array' bt.txt && continue # its own copy
		nr=$((nr + 1))
		grep -q '^#0 .* work' bt.txt || fail "gdb at $at: not in work(): $(grep '^#' bt.txt)"
		grep -q '^#1 .* enter' bt.txt || fail "gdb at $at: not called by enter(): $(grep '^#' bt.txt)"
		grep -q '= 1$' bt.txt || fail "gdb at $at: other registers in enter(): $(tail -2 bt.txt)"
	done < <(python3 - "$range" <<'END'
import sys
start, size = (int(x, 16) for x in sys.argv[1].split())
# Behind the saved register, and in the middle
for line in open("moved.txt"):
    new, old = (int(x, 16) for x in line.split())
    if old - start in (5, 15):
        print(hex(new))
END
	)
	[ $nr -ge 2 ] || fail "gdb stopped at $nr places in the code of asm_array()"
fi

# Files that count keep all calls.
"$BUILD/morph-optimize" instrument --report=json -o counting pie 2>err.txt >report.json &&
	[ "$(jq '.code.inlined // 0' report.json)" != 0 ] && fail "a file with counters lacks calls"

# Random functions: all registers, flags and memory behind each call, in the original and in the output
python3 - "${SEED:-1}" >random.S <<'END'
import random, sys
random.seed(int(sys.argv[1]))
W64 = "rax rbx rcx rdx rsi rdi rbp r8 r9 r10 r11 r12 r13 r14 r15".split()
W32 = "eax ebx ecx edx esi edi ebp r8d r9d r10d r11d r12d r13d r14d r15d".split()
NR = 200
def insn():
    a, b = random.choice(W64), random.choice(W64)
    c, d = random.choice(W32), random.choice(W32)
    x, y = random.randrange(16), random.randrange(16)
    return random.choice([
        f"mov %{a}, %{b}", f"add %{a}, %{b}", f"adc %{c}, %{d}", f"sub ${random.randrange(1 << 31)}, %{c}",
        f"lea 5(%{a},%{b},4), %{a}" , f"xor %{c}, %{d}", f"test %{a}, %{b}", f"cmp %{c}, %{d}",
        f"setc %al", f"cmovs %{a}, %{b}", f"imul %{c}, %{d}", f"shl $3, %{a}", f"ror $7, %{c}",
        f"bswap %{a}", f"movd %{c}, %xmm{x}", f"pxor %xmm{x}, %xmm{y}", f"movq %xmm{x}, %{a}",
        f"paddd %xmm{x}, %xmm{y}", f"mov memory+{8 * random.randrange(8)}(%rip), %{a}",
        f"mov %{a}, memory+{8 * random.randrange(8)}(%rip)", f"addq $3, memory+8(%rip)",
        f"lea memory(%rip), %{a}", f"xchg %{a}, %{b}", f"bt $5, %{a}", "cltq", "cqto", "mul %rbx",
        f"lock xadd %{a}, memory+16(%rip)", "nopw (%rax)", f"movzbl %al, %{c}"])
frame = 0 # bytes of the current function's variables
def insn_stack():
    a, x, at = random.choice(W64), random.randrange(16), 8 * random.randrange(frame // 8)
    return random.choice([
        f"mov %{a}, {at}(%rsp)", f"add {at}(%rsp), %{a}", f"lea {at}(%rsp), %{a}", f"incl {at}(%rsp)",
        f"movq %xmm{x}, {at}(%rsp)", f"movups %xmm{x}, -{at + 24}(%rsp)", f"mov %{a}, -{at + 8}(%rsp)",
        f"cmovs {at}(%rsp), %{a}", "mov %rsp, %rdx", f"xchg %{a}, {at}(%rsp)",
        f"mov {frame + 8 * len(saved) + 16}(%rsp), %{a}"])
def block():
    for _ in range(random.randrange(4)):
        print(insn_stack() if frame and random.randrange(2) else insn())
saved = []
def begin(i):
    """Half of the functions use the stack."""
    global frame, saved
    frame, saved = (8 * random.randrange(1, 8), random.sample(["rbx", "r12", "r14", "rbp"], random.randrange(4))) \
        if i % 4 > 1 else (0, [])
    if i % 8 == 7:
        frame = 0
    for reg in saved:
        print(f"push %{reg}\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %{reg}, 0")
    if frame:
        print(f"sub ${frame}, %rsp\n.cfi_adjust_cfa_offset {frame}")
        for at in range(0, frame, 8): # What it would find there else differs.
            print(f"movq ${random.randrange(1 << 31)}, {at}(%rsp)")
def leave(i):
    print(".cfi_remember_state")
    if frame:
        print(f"lea {frame}(%rsp), %rsp\n.cfi_adjust_cfa_offset -{frame}")
    for reg in reversed(saved):
        print(f"pop %{reg}\n.cfi_adjust_cfa_offset -8\n.cfi_restore %{reg}")
    print("rep ret" if i % 7 == 0 else "ret")
    print(".cfi_restore_state")
CONDITIONS = "e ne s ns c nc o no p np l ge le g be a".split()
def branches(i):
    """Blocks that lead to one another without loops, in any order, with several returns."""
    nr = random.randrange(2, 6)
    order = [0] + random.sample(range(1, nr), nr - 1)
    reached = {0}
    for k, b in enumerate(order):
        later = [x for x in range(nr) if x > b]
        print(f".L{i}_{b}:")
        block()
        falls = order[k + 1] if k + 1 < nr and order[k + 1] > b else None
        if not later:
            leave(i)
        elif falls is not None and random.randrange(2):
            print(f"j{random.choice(CONDITIONS)} .L{i}_{random.choice(later)}")
        elif random.randrange(3) == 0:
            leave(i)
        else:
            print(f"j{random.choice(CONDITIONS)} .L{i}_{b + 1}")
            print(f"jmp .L{i}_{random.choice(later)}")
print(".text")
for i in range(NR):
    print(f".type leaf_{i}, @function\nleaf_{i}: .cfi_startproc")
    if i % 3 == 0:
        print("endbr64")
    begin(i)
    if i % 2:
        branches(i)
    else:
        for _ in range(random.randrange(9)):
            print(insn_stack() if frame and random.randrange(2) else insn())
        leave(i)
    print(f".cfi_endproc\n.size leaf_{i}, .-leaf_{i}")
    print(f".type try_{i}, @function\ntry_{i}: .cfi_startproc\nenter_try\ncall leaf_{i}\nleave_try")
    print(f".cfi_endproc\n.size try_{i}, .-try_{i}")
print('.section .data.rel.ro, "aw", @progbits\n.globl tries, nr_tries\ntries:')
for i in range(NR):
    print(f".quad try_{i}")
print(f"nr_tries: .quad {NR}")
END
cat >macros.S <<'END'
	.macro enter_try
	.irp reg, rbp, rbx, r12, r13, r14, r15
	push %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %\reg, 0
	.endr
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups 16*\n(%rdi), %xmm\n
	.endr
	pushq 376(%rdi)
	.cfi_adjust_cfa_offset 8
	popfq
	.cfi_adjust_cfa_offset -8
	mov 256(%rdi), %rax
	mov 264(%rdi), %rbx
	mov 272(%rdi), %rcx
	mov 280(%rdi), %rdx
	mov 288(%rdi), %rsi
	mov 304(%rdi), %rbp
	mov 312(%rdi), %r8
	mov 320(%rdi), %r9
	mov 328(%rdi), %r10
	mov 336(%rdi), %r11
	mov 344(%rdi), %r12
	mov 352(%rdi), %r13
	mov 360(%rdi), %r14
	mov 368(%rdi), %r15
	mov 296(%rdi), %rdi
	.endm
	.macro leave_try
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups %xmm\n, seen+16*\n(%rip)
	.endr
	mov %rax, seen+256(%rip)
	mov %rbx, seen+264(%rip)
	mov %rcx, seen+272(%rip)
	mov %rdx, seen+280(%rip)
	mov %rsi, seen+288(%rip)
	mov %rdi, seen+296(%rip)
	mov %rbp, seen+304(%rip)
	mov %r8, seen+312(%rip)
	mov %r9, seen+320(%rip)
	mov %r10, seen+328(%rip)
	mov %r11, seen+336(%rip)
	mov %r12, seen+344(%rip)
	mov %r13, seen+352(%rip)
	mov %r14, seen+360(%rip)
	mov %r15, seen+368(%rip)
	mov %rsp, seen+384(%rip)
	pushfq
	.cfi_adjust_cfa_offset 8
	popq seen+376(%rip)
	.cfi_adjust_cfa_offset -8
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	.irp reg, r15, r14, r13, r12, rbx, rbp
	pop %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\reg
	.endr
	ret
	.endm
END
cat macros.S random.S >states.S
printf '\t.globl memory, seen\n\t.comm memory, 64, 16\n\t.comm seen, 400, 16\n' >>states.S
printf '\t.section .note.GNU-stack, "", @progbits\n' >>states.S
cat >states.c <<'END'
#include <stdio.h>
#include <stdlib.h>
extern void (*const tries[])(const unsigned long *);
extern const unsigned long nr_tries;
extern unsigned long memory[8], seen[50];
static unsigned long any(void)
{
	return (unsigned long)random() << 33 ^ (unsigned long)random() << 13 ^ (unsigned long)random();
}
int main(int argc, char **argv)
{
	static unsigned long values[50];

	srandom((unsigned int)strtoul(argv[1], NULL, 10));
	for (unsigned long t = 0; t < nr_tries; t++)
		for (int round = 0; round < 5; round++) {
			for (int i = 0; i < 50; i++)
				values[i] = any();
			values[47] = (any() & 0x8d5) | 2; /* arithmetic flags */
			for (int i = 0; i < 8; i++)
				memory[i] = any();
			tries[t](values);
			printf("%lu", t);
			for (int i = 0; i < 49; i++)
				printf(" %lx", seen[i]);
			for (int i = 0; i < 8; i++)
				printf(" %lx", memory[i]);
			putchar('\n');
		}
	return argc != 2;
}
END
for flags in "-fPIE -pie" "-fno-pie -no-pie" "-fPIE -pie -Wl,--emit-relocs"; do
	# shellcheck disable=SC2086
	gcc -O1 $flags -o states states.c states.S || { fail "$flags: does not build"; continue; }
	optimise states --lab=stress-inline=3 || continue
	# A random function may be longer than the limit allows, or have a block that nothing leads to.
	[ "$calls" -ge 150 ] || fail "$flags: only $calls of 200 calls were replaced"
	objdump -d --no-show-raw-insn --disassemble=try_2 states.out | grep -q call &&
		fail "$flags: the copy of try_2() has a call"
	cp states states.old
	cp states.out states.new
	for seed in 1 2 3; do
		# The programs' names have the same length, as the stack holds them.
		setarch -R ./states.old $seed >old.txt
		setarch -R ./states.new $seed >new.txt
		[ "$(wc -l <old.txt)" = 1000 ] || fail "$flags: the program does not run"
		cmp -s old.txt new.txt ||
			fail "$flags: seed $seed: other states: $(diff old.txt new.txt | head -4 | cut -c1-200)"
	done
done

# The map leads samples in inlined code to the function that it comes from.
program fixed 15 gcc -O2 -g -fno-pie -no-pie "$data/leaf.c"
optimise fixed
range=$(nm -S fixed | awk '$4 == "mix" { print $1, $2 }')
"$BUILD/tools/moved" fixed.out >moved.txt
text=$(objdump -h fixed.out | awk '$2 == ".morph.text" { print $4, $3 }')
inlined=$(python3 - "$range" "$text" <<'END'
import sys
start, size = (int(x, 16) for x in sys.argv[1].split())
runs, last = [], None
for line in open("moved.txt"):
    new, old = (int(x, 16) for x in line.split())
    inside = start <= old < start + size
    if inside and not last:
        runs.append(new)
    last = inside
print(len(runs), *[hex(r) for r in runs])
END
)
[ "${inlined%% *}" = 2 ] || fail "the code of mix() lies in ${inlined%% *} places, not in its copy and one caller"

# The debugger shows the frame of the called function there, and the caller's at the line of the call.
if command -v gdb >/dev/null; then
	call=$(grep -n 'm = mix(m' "$data/leaf.c" | cut -d: -f1)
	nr=0
	for at in ${inlined#* }; do
		gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex "break *$at" -ex run -ex bt ./fixed.out >bt.txt 2>&1
		grep -q '^#' bt.txt || continue # its own copy, which never runs
		nr=$((nr + 1))
		grep -q '^#0 .*mix (' bt.txt || fail "gdb: no frame of mix(): $(grep '^#' bt.txt)"
		grep -q "^#1 .*work (.*leaf.c:$call" bt.txt || fail "gdb: no frame of work() at line $call: $(grep '^#' bt.txt)"
		grep -q '^#2 .*main (' bt.txt || fail "gdb: the caller of work() is not main(): $(grep '^#' bt.txt)"
	done
	[ $nr = 1 ] || fail "gdb stopped in $nr inlined bodies of mix()"
else
	left_out+=" gdb,"
fi

finish
