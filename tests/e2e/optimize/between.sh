#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions between two that a program reads in a loop stay. Those between two that it only names near each other move, as
# the verifier knows as well.
. "$(dirname "$0")/../lib.sh"
scratch between
need gcc jq

# whole NAME CODE [FUNCTIONS [FLAG]]: a program whose "user" is this code. Functions lie between "low" and "high".
whole() {
	{
		printf '.text\n.globl main\n.type main, @function\nmain: .cfi_startproc\n'
		printf ' sub $8, %%rsp\n .cfi_def_cfa_offset 16\n lea box(%%rip), %%rdi\n call user\n'
		printf ' xor %%eax, %%eax\n add $8, %%rsp\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n.size main, .-main\n'
		for f in low middle $(seq -f 'more%g' "${3:-1}") high; do
			printf '.p2align 4\n.type %s, @function\n%s: .cfi_startproc\n' "$f" "$f"
			printf ' test %%edi, %%edi\n je 1f\n mov $3, %%eax\n ret\n1: mov $4, %%eax\n ret\n .cfi_endproc\n.size %s, .-%s\n' "$f" "$f"
		done
		printf '.p2align 4\n.type user, @function\nuser: .cfi_startproc\n%b\n .cfi_endproc\n.size user, .-user\n' "$2"
		printf '.data\n.p2align 3\nbox: .quad box, middle, more1\n.section .note.GNU-stack,"",@progbits\n'
	} >"$1.s"
	gcc ${4:-} -Wl,--build-id -o "$1" "$1.s" || fail "$1: does not assemble"
	"./$1" || fail "$1: does not run"
	"$BUILD/morph-optimize" --all --report=json -o "$1.new" "$1" >"$1.json" || fail "$1: no output"
	"./$1.new" || fail "$1: its version does not run"
}
is_read() {
	jq -e '[.functions.left_alone[] | select(.function == "middle" and .why == "the program reads its code")] | length == 1' \
		"$1.json" >/dev/null
}
stays() { whole "$@"; is_read "$1" || fail "$1: what it reads has moved"; }
moves() { whole "$@"; ! is_read "$1" || fail "$1: nothing reads what stays"; }


stays loop 'lea low(%rip), %rax\n lea high(%rip), %rdx\n1: movzbl (%rax), %ecx\n inc %rax\n cmp %rdx, %rax\n jne 1b\n ret'
stays loop-by-frame 'lea low(%rip), %rax\n mov %rax, -16(%rsp)\n lea high(%rip), %rax\n mov %rax, -24(%rsp)
1: mov -16(%rsp), %rax\n movzbl (%rax), %ecx\n incq -16(%rsp)\n mov -16(%rsp), %rdx\n cmp -24(%rsp), %rdx\n jne 1b\n ret'
# The word of the frame serves for something else, and a pointer from data is compared with a function.
moves other-word 'lea low(%rip), %rax\n mov %rax, -16(%rsp)\n xor %eax, %eax\n jmp 2f\n1: mov -16(%rsp), %rcx\n mov (%rcx), %rax
 mov 8(%rdi), %rsi\n lea high(%rip), %rdx\n cmp %rdx, %rsi\n ret\n2: mov %rdi, -16(%rsp)\n jmp 1b'
# Two words of the frame serve for something else.
moves two-words 'lea low(%rip), %rax\n mov %rax, -16(%rsp)\n lea high(%rip), %rax\n mov %rax, -24(%rsp)\n xor %eax, %eax\n jmp 2f
1: mov -16(%rsp), %rcx\n mov (%rcx), %rax\n mov -24(%rsp), %rcx\n mov (%rcx), %rax\n ret
2: mov %rdi, -16(%rsp)\n mov %rdi, -24(%rsp)\n jmp 1b'
# The end is a number, or a string instruction reads.
stays number 'lea low(%rip), %rax\n1: movzbl (%rax), %ecx\n inc %rax\n cmp $high, %rax\n jne 1b\n ret' 1 -no-pie
stays string 'lea low(%rip), %rsi\n lea high(%rip), %rdx\n1: lodsb\n cmp %rdx, %rsi\n jne 1b\n ret'
# Loops whose condition stands behind them, and that never end.
whole no-end 'lea low(%rip), %rax\n test %edi, %edi\n jne 4f\n1: jmp 3f\n2: nop\n jmp 1b\n3: test %edi, %edi\n je 2b\n4: ret'
# A size is computed. Where many functions lie between, both ends must be in that.
size='lea low(%rip), %rax\n lea high(%rip), %rdx\n sub %rax, %rdx\n1: movzbl (%rax), %ecx\n inc %rax\n dec %rdx\n jne 1b\n ret'
sums='lea low(%rip), %rax\n add %rdi, %rax\n lea high(%rip), %rdx\n add %rdi, %rdx\n ret'
stays size "$size"
stays size-of-many "$size" 6000
stays sums "$sums"
moves sums-of-many "$sums" 6000
finish
