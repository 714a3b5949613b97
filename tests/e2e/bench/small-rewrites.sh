#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What scripts/bench/bench-small-rewrites counts, on programs with known counts: jumps to jumps, loads of
# constants, no-ops, functions that are the same, registers saved in vain, branches by call site, calls through slots,
# jumps from function to function.
. "$(dirname "$0")/../lib.sh"
need qemu-x86_64 gcc setarch
scratch small-rewrites

cat >known.S <<'END'
	.text
	.macro begin name
	.type \name, @function
\name:	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

	.globl _start
	begin _start
	mov	$10, %r8d
1:	mov	%r8d, %edi
	call	saver
	dec	%r8d
	jnz	1b
	mov	$100, %r8d
2:	xor	%edi, %edi
	call	habit
	mov	$1, %edi
	call	habit
	dec	%r8d
	jnz	2b
	mov	$20, %r8d
3:	call	jumps
	call	constants
	call	first
	call	second
	dec	%r8d
	jnz	3b
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	end _start

	/* Saves two registers. For odd numbers it uses one of them. */
	begin saver
	push	%rbx
	push	%rbp
	test	$1, %edi
	jz	1f
	mov	%edi, %ebx
1:	pop	%rbp
	pop	%rbx
	ret
	end saver

	begin habit
	test	%edi, %edi
	jz	1f
	nop
1:	ret
	end habit

	begin first
	test	%eax, %eax
	jz	1f
	nop
1:	jmp	habit
	end first
	begin second
	test	%eax, %eax
	jz	1f
	nop
1:	jmp	habit
	end second
	/* It leads elsewhere. */
	begin third
	test	%eax, %eax
	jz	1f
	nop
1:	jmp	saver
	end third

	/* Each kind once. */
	begin jumps
	cmp	%eax, %eax
	je	1f		/* a branch to a jump */
	ud2
1:	jmp	2f		/* a jump to a jump */
2:	jmp	3f
3:	jne	4f		/* a branch around a jump */
	jmp	5f
4:	ud2
5:	call	through		/* a call of a jump */
	call	8f
	jmp	6f		/* a jump to a return */
	ud2
8:	call	7f		/* a call before a return */
	ret
	nop
7:	sub	$8, %rsp
	call	6f		/* a call before the stack is given back */
	add	$8, %rsp
6:	ret
	end jumps
	begin through
	jmp	habit
	end through

	begin constants
	mov	small(%rip), %eax
	add	small(%rip), %eax
	movzbl	small(%rip), %eax
	mov	small(%rip), %rax
	mov	large(%rip), %rax
	movss	small(%rip), %xmm0
	cmpl	$1, small(%rip)
	mov	changes(%rip), %eax
	mov	%eax, changes(%rip)
	ret
	end constants

	.section .rodata
	.balign 8
small:	.quad	5
large:	.quad	0x123456789abcdef
	.data
changes: .long	1
	.section .note.GNU-stack, "", @progbits
END
gcc -nostdlib -static -o known known.S || exit 1

# run PLUGIN,ARGUMENTS COMMAND...
run() {
	local plugin=$1
	shift
	setarch -R qemu-x86_64 -seed 1 -plugin "$BUILD/plugin/$plugin" "$@" 2>err.txt || fail "$*: $(cat err.txt)"
}

# expect FILE NAME COUNT
expect() {
	local got
	got=$(sed -n "s/^$2 //p" "$1")
	[ "$got" = "$3" ] || fail "$1: $2 is '$got', not $3"
}

run branches.so,out=counts,edges=edges ./known
for tool in jump-targets spare-insns same-functions save-places register-uses; do
	"$BUILD/tools/$tool" known edges >"$tool" 2>err.txt || fail "$tool: $(cat err.txt)"
done
for kind in branch-to-jump jump-to-jump around-jump call-to-jump jump-to-return call-return; do
	expect jump-targets $kind 20
done
expect jump-targets call-end 40
expect spare-insns immediate 80
expect spare-insns longer 20
expect spare-insns vector 20
expect spare-insns other 20
# Of habit 160, of first and second 20 each
expect spare-insns nops 200
expect same-functions fold-functions 1
expect same-functions fold-run-bytes "$((0x$(nm -S known | awk '$4 == "second" { print $2 }')))"

# saver: twice two registers; one is never used, the other five times of ten
expect save-places now 40
expect save-places best 10
# Two instructions step over both places.
expect save-places kept 30

# Jumps from function to function in copies. Only "through" runs there: _start stays, and calls the old first and second.
gcc -nostdlib -static -Wl,--build-id,--eh-frame-hdr -o linked known.S || exit 1
"$BUILD/morph-optimize" --all --lab=no-inline --report=none -o moved linked 2>err.txt || fail "moved: $(cat err.txt)"
run branches.so,out=counts,edges=moved.edges,object=moved ./moved
"$BUILD/tools/tail-jumps" moved moved.edges >tail-jumps 2>err.txt || fail "tail-jumps: $(cat err.txt)"
expect tail-jumps jumps 20
expect tail-jumps branches 0
expect tail-jumps neighbours 20
grep -q '^site jump 0x.* 20 through habit$' tail-jumps || fail "tail-jumps: not this place: $(cat tail-jumps)"

run activations.so,out=activations,facts=register-uses ./known
expect activations saves 20
expect activations in-vain 15
expect activations in-vain-whole 10
entry() {
	nm known | awk -v name="$1" '$3 == name { sub("^0*", "0x", $1); print $1 }'
}
grep -q "^function $(entry saver) 15 0 0$" activations || fail "no line of saver: $(cat activations)"
grep -q "^function $(entry habit) 0 100 100$" activations || fail "no line of habit: $(cat activations)"
# Of habit's branch, 100 for each argument go another way, and 60 from other sites. The loops go on.
# The loops, saver, habit, jumps, the two functions that are the same.
expect activations branches $((10 + 100 + 20 + 10 + 200 + 60 + 2 * 20 + 2 * 20))
expect activations unlikely $((1 + 5 + 1 + 1 + 100))
expect activations unlikely-by-site $((1 + 5 + 1 + 1))
# _start, saver, habit, four functions, "through" and habit from there, three calls in "jumps", habit from the two
# functions that are the same
expect activations activations $((1 + 10 + 200 + 4 * 20 + 2 * 20 + 3 * 20 + 2 * 20))

for _ in 1 2; do
	run activations.so,out=again,facts=register-uses,branches=branches ./known
done
cmp activations again || fail "a list of branches changes the counts"
[ "$(awk '{ n += $4 } END { print n }' branches)" = 960 ] || fail "not all branches of two runs: $(cat branches)"
[ "$(awk -v f="$(awk -v e="$(entry habit)" '$5 == e { print $4 }' register-uses)" '$1 == f { print $4, $5 }' branches |
	sort -u | tr '\n' ',')" = "100 0,100 100,20 0," ] || fail "not habit's branches: $(cat branches)"

# ---- slots ----
cat >lib.c <<'END'
__attribute__((noinline)) int callee(int x) { return 3 * x + 1; }
int caller(int x) { return callee(x) + 1; }
END
cat >main.c <<'END'
int caller(int);
int main(void)
{
	volatile int sum = 0;

	for (int i = 0; i < 50; i++)
		sum = caller(sum);
	return 0;
}
END
# slots NAME FLAGS...: of the calls of callee
slots() {
	gcc -O1 -fPIC -fno-inline -shared "${@:2}" -Wl,-z,now -o libknown.so lib.c ||
		fail "$1: does not compile"
	gcc -O1 -o main main.c -L. -lknown -Wl,-rpath,"$PWD" -Wl,-z,now || fail "$1: does not link"
	run branches.so,out=counts,edges=edges,object=libknown.so ./main
	"$BUILD/tools/slot-calls" libknown.so edges >"$1" 2>err.txt || fail "slot-calls: $(cat err.txt)"
}
slots interposable -fsemantic-interposition
expect interposable interposable 50
expect interposable fixed 0
slots symbolic -fsemantic-interposition -fno-plt -Wl,-Bsymbolic,--no-relax
expect symbolic interposable 0
expect symbolic fixed 50
slots direct -fsemantic-interposition -Wl,-Bsymbolic
expect direct fixed 0

# ---- bad input ----
for tool in jump-targets spare-insns same-functions save-places slot-calls register-uses tail-jumps; do
	for args in "known missing" "missing edges" "known known.S"; do
		# shellcheck disable=SC2086 # Two words.
		if "$BUILD/tools/$tool" $args >/dev/null 2>err.txt; then
			fail "$tool accepts $args"
		fi
		[ "$(wc -l <err.txt)" = 1 ] || fail "$tool $args: not one message: $(cat err.txt)"
	done
done
for wrong in out=x facts=register-uses out=x,facts=known.S what=x; do
	if setarch -R qemu-x86_64 -plugin "$BUILD/plugin/activations.so,$wrong" ./known >out.txt 2>&1; then
		fail "accepts $wrong"
	fi
done
finish
