#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Calls through the slots of PLT stubs: the same behaviour with lazy and immediate binding, with stubs of
# four linkers, in static programs and libraries, with functions that a preloaded library replaces;
# the same registers, flags and frames at the callee and behind the call.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-calls.sh"
scratch plt
need gcc objdump jq setarch
data=$root/tests/data

cat >other.c <<'END'
#include <string.h>
int other_value(int n)
{
	char text[20] = "a number of letters";

	return n * 3 + (int)strlen(text + n % 10);
}
END
sed 's/n \* 3/n * 5/' other.c >interposed.c
gcc -O1 -fno-builtin -fPIC -shared -o libother.so other.c
gcc -O1 -fno-builtin -fPIC -shared -o libinterposed.so interposed.c
export LD_LIBRARY_PATH=$PWD

# optimise FILE [OPTIONS]: FILE.out is the verified output, and $calls the number of calls through slots
optimise() { optimise_calls no-inline via_slot "$@"; }

# program NAME LEAST FLAGS: in every way of binding
program() {
	local name=$1 least=$2
	shift 2
	gcc -O2 -DOTHER "$@" -o "$name" "$data/plt.c" -L. -lother 2>err.txt || { fail "$name: $(cat err.txt)"; return; }
	optimise "$name" || return
	[ "$calls" -ge "$least" ] || fail "$name: only $calls calls go through slots"
	[ "$least" -gt 0 ] || [ "$calls" = 0 ] || fail "$name: $calls calls go through slots"
	same "$name" "$name"
	same "$name" "$name" LD_BIND_NOW=1
	same "$name" "$name" LD_BIND_NOT=1
	same "$name" "$name" LD_PRELOAD="$PWD/libinterposed.so"
	[ "$("./$name.out")" != "$(LD_PRELOAD=$PWD/libinterposed.so "./$name.out")" ] ||
		fail "$name: the preloaded function is not called"
	calls=$("$BUILD/morph-optimize" --all --lab=no-slots --report=json -o "$name.out" "$name" |
		jq .code.via_slot)
	[ "$calls" = 0 ] || fail "$name: '$calls' calls go through slots with --lab=no-slots"
	for seed in 1 2; do
		optimise "$name" --lab=stress-layout=$seed && same "$name, seed $seed" "$name"
	done
}

program lazy 7 -Wl,-z,lazy
program now 7 -Wl,-z,now
program relocations 7 -Wl,-z,lazy,--emit-relocs
program fixed 7 -fno-pie -no-pie -Wl,-z,lazy
program ibt 7 -fcf-protection -Wl,-z,ibtplt,-z,lazy
program stripped 7 -Wl,-z,lazy -s
# No stub is called.
program no-plt 0 -fno-plt -fno-builtin
for ld in gold lld mold; do
	command -v ld.$ld >/dev/null || { left_out+=" $ld,"; continue; }
	# The stubs of mold set a register as well, so calls of them stay.
	least=7
	[ $ld != mold ] || least=0
	program $ld $least -fuse-ld=$ld -Wl,-z,lazy
	program $ld-now $least -fuse-ld=$ld -Wl,-z,now
done

# What copies call and jump to
optimise lazy
objdump -d --no-show-raw-insn -j .morph.text lazy.out >code.txt
# longjmp() does not return: such a call stays.
grep 'call .*@plt>' code.txt | grep -v longjmp >stubs.txt && fail "copies call stubs: $(head -3 stubs.txt)"
grep -q 'call  *\*.*(%rip)' code.txt || fail "copies make no call through a slot"
grep -q 'jmp  *\*.*(%rip)' code.txt || fail "copies make no jump through a slot"

# Indirect functions of static programs have stubs, too.
for link in -static -static-pie; do
	gcc -O2 $link -o static "$data/plt.c"
	optimise static || continue
	[ "$calls" -gt 50 ] || fail "$link: only $calls calls go through slots"
	same "$link" static
done

# A library that is loaded at run time
cat >load.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[argc - 1], RTLD_LAZY);
	int (*value)(int) = library ? (int (*)(int))dlsym(library, "other_value") : NULL;

	return value ? printf("%d %d\n", value(1), value(12)) < 0 : puts(dlerror());
}
END
gcc -O1 -o load load.c
cp libother.so loaded.so
if optimise loaded.so; then
	[ "$calls" -ge 1 ] || fail "dlopen: no call goes through a slot"
	[ "$(./load ./loaded.so)" = "$(./load ./loaded.so.out)" ] || fail "dlopen: another result"
fi

# All registers, flags and words of the stack, at the callee and behind the call. The program loads random values,
# and both write down what they see. Without address randomisation, addresses are the same, too.
cat >registers.S <<'END'
	.macro note at
	mov %rax, \at(%rip)
	mov %rbx, \at+8(%rip)
	mov %rcx, \at+16(%rip)
	mov %rdx, \at+24(%rip)
	mov %rsi, \at+32(%rip)
	mov %rdi, \at+40(%rip)
	mov %rbp, \at+48(%rip)
	mov %rsp, \at+56(%rip)
	mov %r8, \at+64(%rip)
	mov %r9, \at+72(%rip)
	mov %r10, \at+80(%rip)
	mov %r11, \at+88(%rip)
	mov %r12, \at+96(%rip)
	mov %r13, \at+104(%rip)
	mov %r14, \at+112(%rip)
	mov %r15, \at+120(%rip)
	movups %xmm0, \at+128(%rip)
	movups %xmm15, \at+144(%rip)
	.endm
#ifdef PROBE
	.text
	.globl probe
	.type probe, @function
probe:	.cfi_startproc
	note seen
	pushfq
	pop %rax
	mov %rax, seen+160(%rip)
	mov 8(%rsp), %rax
	mov %rax, seen+168(%rip)
	mov 16(%rsp), %rax
	mov %rax, seen+176(%rip)
	mov seen(%rip), %rax
	stc
	ret
	.cfi_endproc
	.size probe, .-probe
	.globl probe_seen
	.type probe_seen, @function
probe_seen:
	.cfi_startproc
	lea seen(%rip), %rax
	ret
	.cfi_endproc
	.size probe_seen, .-probe_seen
	.local seen
	.comm seen, 192, 16
#else
	.text
	.globl try
	.type try, @function
try:	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	push %rbx
	.cfi_offset %rbx, -24
	push %r12
	.cfi_offset %r12, -32
	push %r13
	.cfi_offset %r13, -40
	push %r14
	.cfi_offset %r14, -48
	push %r15
	.cfi_offset %r15, -56
	sub $24, %rsp
	mov 136(%rdi), %rax
	mov %rax, (%rsp)
	mov 144(%rdi), %rax
	mov %rax, 8(%rsp)
	movups 112(%rdi), %xmm0
	movups 128(%rdi), %xmm15
	mov (%rdi), %rax
	mov 8(%rdi), %rbx
	mov 16(%rdi), %rcx
	mov 24(%rdi), %rdx
	mov 32(%rdi), %rsi
	mov 48(%rdi), %r8
	mov 56(%rdi), %r9
	mov 64(%rdi), %r10
	mov 72(%rdi), %r11
	mov 80(%rdi), %r12
	mov 88(%rdi), %r13
	mov 96(%rdi), %r14
	mov 104(%rdi), %r15
	mov 40(%rdi), %rdi
	add %rdi, %rdi
	call probe@plt
	note behind
	pushfq
	pop behind+160(%rip)
	add $24, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size try, .-try
	.globl behind
	.comm behind, 192, 16
#endif
	.section .note.GNU-stack, "", @progbits
END
cat >states.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
void try(const unsigned long *values);
const unsigned long *probe_seen(void);
extern unsigned long behind[24];
int main(int argc, char **argv)
{
	unsigned long values[20];

	srandom((unsigned int)strtoul(argv[1], NULL, 10));
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 20; i++)
			values[i] = (unsigned long)random() << 33 ^ (unsigned long)random() << 13 ^
				    (unsigned long)random();
		try(values);
		for (int i = 0; i < 23; i++)
			printf("%lx %lx%c", probe_seen()[i], behind[i], i < 22 ? ' ' : '\n');
	}
	return argc != 2;
}
END
gcc -c -DPROBE -o probe.o registers.S && gcc -shared -o libprobe.so probe.o
for flags in -Wl,-z,lazy -Wl,-z,now "-fcf-protection -Wl,-z,ibtplt,-z,lazy"; do
	# shellcheck disable=SC2086
	gcc -O1 -fPIE -pie $flags -o states states.c registers.S -L. -lprobe
	optimise states || continue
	objdump -d --no-show-raw-insn --disassemble=try states.out | grep -q 'call  *\*.*(%rip)' ||
		fail "$flags: the copy of try() calls the stub"
	cp states states.old
	cp states.out states.new
	for seed in 1 2 3; do
		# The programs' names have the same length, as the stack holds them.
		setarch -R ./states.old $seed >old.txt
		setarch -R ./states.new $seed >new.txt
		[ "$(wc -l <old.txt)" = 50 ] || fail "$flags: the program does not run"
		cmp -s old.txt new.txt ||
			fail "$flags: seed $seed: other states: $(diff old.txt new.txt | head -4)"
	done
done

# The debugger sees the same frames at a function of a library.
if command -v gdb >/dev/null; then
	gcc -O2 -g -DOTHER -Wl,-z,lazy -o frames "$data/plt.c" -L. -lother
	optimise frames
	for file in frames frames.out; do
		gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'set breakpoint pending on' \
			-ex 'break other_value' -ex run -ex bt -ex finish "./$file" 2>&1 |
			sed -n -E 's/^#([0-9]+) .* (in )?([a-z_]+) \(.*/\1 \3/p; /^Run till/,$s/.* in ([a-z_]+) .*/back in \1/p' >$file.bt
	done
	grep -q '^1 main' frames.bt || fail "gdb shows no frame of main(): $(cat frames.bt)"
	cmp -s frames.bt frames.out.bt || fail "gdb: other frames: $(diff frames.bt frames.out.bt)"
else
	left_out+=" gdb,"
fi

finish
