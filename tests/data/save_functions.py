#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""save_functions SEED NUMBER - writes assembly code of random functions that save registers and do not always need
them: with branches, loops, several returns, jumps to other functions, parts in .text.unlikely, calls, variables in
the stack. tests/data/saves.c calls them."""
import random
import sys

random.seed(int(sys.argv[1]))
NR = int(sys.argv[2])
FREE = "rax rcx rdx rsi rdi r8 r9 r10 r11".split()
KEPT = "rbx rbp r12 r13 r14 r15".split()


class Function:
    def __init__(self, number):
        self.name = f"made{number}"
        self.saved = random.sample(KEPT, random.randrange(1, 7))
        if random.randrange(3):  # as compilers order them
            self.saved.sort(key="r15 r14 r13 r12 rbp rbx".split().index)
        self.frame = 8 * random.choice([0, 0, 1, 2, 3, 5, 20])
        self.nr = random.randrange(2, 9)
        self.lean = random.randrange(1, 6)  # one block in so many changes saved registers
        self.cold = set(random.sample(range(1, self.nr), random.randrange(min(3, self.nr))))

    def insn(self, may_change):
        a, b = random.choice(FREE), random.choice(FREE + KEPT)
        if may_change and random.randrange(2):
            a = random.choice(self.saved)
        kinds = [f"mov %{b}, %{a}", f"add %{b}, %{a}", f"lea 5(%{a},%{b},2), %{a}", f"xor ${random.randrange(999)}, %{a}",
                 f"cmp %{b}, %{a}", f"test %{b}, %{a}", f"adc $0, %{a}", f"imul $7, %{a}", f"shl $3, %{a}",
                 f"cmovs %{b}, %{a}", f"movzbl %{'al'}, %eax", f"bswap %{a}"]
        if self.frame:
            at = 8 * random.randrange(self.frame // 8)
            kinds += [f"mov %{b}, {at}(%rsp)", f"add {at}(%rsp), %{a}", f"incq {at}(%rsp)", f"mov {at}(%rsp), %{a}"]
        return random.choice(kinds)

    def begin(self):
        print(f" .text\n .globl {self.name}\n .type {self.name}, @function\n{self.name}: .cfi_startproc")
        if random.randrange(2):
            print(" endbr64")
        if not random.randrange(4):  # a return before anything is saved
            print(f" test ${random.choice([1, 7])}, %sil\n jne 1f\n lea 9(%rdi), %rax\n ret\n1:")
        for reg in self.saved:
            print(f" push %{reg}\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %{reg}, 0")
            if not random.randrange(8):
                print(f" mov %rsi, %{random.choice('rdx rcx r8'.split())}")
        if self.frame:
            print(f" {random.choice([f'sub ${self.frame}, %rsp', f'lea -{self.frame}(%rsp), %rsp'])}")
            print(f" .cfi_adjust_cfa_offset {self.frame}")
        for at in range(0, self.frame, 8):
            print(f" movq ${at + 3}, {at}(%rsp)")

    def end(self):
        print(" mov %rdi, %rax" if random.randrange(2) else " add %rdx, %rax")
        print(" .cfi_remember_state")
        if self.frame:
            print(f" add ${self.frame}, %rsp\n .cfi_adjust_cfa_offset -{self.frame}")
        for reg in reversed(self.saved):
            restore = f"\n .cfi_restore %{reg}" if random.randrange(2) else ""
            print(f" pop %{reg}\n .cfi_adjust_cfa_offset -8{restore}")
        print(random.choice([" ret", " ret", " ret", " jmp helper_plain", " jmp helper_saves"]))
        print(" .cfi_restore_state")

    def goto(self, at, later):
        target = random.choice(later)
        print(f" {random.choice('je jne js jns jc jnc jbe ja'.split())} {self.name}_{target}")

    def block(self, at):
        print(f"{self.name}_{at}:")
        may_change = random.randrange(self.lean) == 0
        for _ in range(random.randrange(5)):
            print(f" {self.insn(may_change)}")
        if not random.randrange(4):
            print(f" call {random.choice(['helper_plain', 'helper_saves', 'helper_plain@PLT'])}")
        later = [k for k in range(at + 1, self.nr)]
        if not random.randrange(8) and not at in self.cold:  # a loop
            print(f" and $15, %edi\n{self.name}_loop{at}:\n {self.insn(False).replace('rdi', 'rdx')}\n dec %rdi\n"
                  f" jns {self.name}_loop{at}")
        if later:
            print(f" test ${random.choice([1, 3, 15, 255])}, %{random.choice(['sil', 'dil', 'al'])}")
            self.goto(at, later)

    def whole(self):
        self.begin()
        order = [k for k in range(self.nr) if k not in self.cold]
        print(f" jmp {self.name}_{order[0]}" if order[0] else "")
        for at in order:
            self.block(at)
            following = [k for k in order if k > at]
            if not following or not random.randrange(3):
                self.end()
            elif random.randrange(5) == 0:
                print(f" jmp {self.name}_{random.choice(following)}")
        print(f" .cfi_endproc\n .size {self.name}, .-{self.name}")
        if self.cold:
            print(f" .section .text.unlikely,\"ax\",@progbits\n .type {self.name}.cold, @function\n"
                  f"{self.name}.cold: .cfi_startproc\n .cfi_def_cfa_offset {8 + 8 * len(self.saved) + self.frame}")
            for i, reg in enumerate(self.saved):
                print(f" .cfi_offset %{reg}, {-16 - 8 * i}")
            for at in sorted(self.cold):
                self.block(at)
                following = [k for k in order if k > at]
                if following:
                    print(f" jmp {self.name}_{random.choice(following)}")
                else:
                    self.end()
            print(f" .cfi_endproc\n .size {self.name}.cold, .-{self.name}.cold")


print(""" .text
 .globl helper_plain, helper_saves
 .type helper_plain, @function
helper_plain: .cfi_startproc
 lea 3(%rdi,%rsi), %rax
 mov %rax, %rcx
 xor %r8d, %r8d
 ret
 .cfi_endproc
 .size helper_plain, .-helper_plain
 .type helper_saves, @function
helper_saves: .cfi_startproc
 push %rbx
 .cfi_def_cfa_offset 16
 .cfi_offset %rbx, -16
 push %r14
 .cfi_def_cfa_offset 24
 .cfi_offset %r14, -24
 lea 3(%rdi,%rsi,2), %rbx
 imul $5, %rbx, %r14
 call helper_plain
 add %r14, %rax
 pop %r14
 .cfi_def_cfa_offset 16
 pop %rbx
 .cfi_def_cfa_offset 8
 ret
 .cfi_endproc
 .size helper_saves, .-helper_saves""")
for n in range(NR):
    Function(n).whole()
print(" .section .data.rel.ro,\"aw\"\n .globl made\n .balign 8\nmade:")
for n in range(NR):
    print(f" .quad made{n}")
print(f" .section .rodata\n .globl nr_made\n .balign 4\nnr_made: .long {NR}\n .section .note.GNU-stack,\"\",@progbits")
