#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A function whose copy is refused costs itself, not the file: the next attempt leaves it out
# (tests/data/own_code/refused.c). verify refuses both of them in one attempt.
. "$(dirname "$0")/../lib.sh"
need gcc python3
scratch refused-copies

cat >read.py <<'X'
import json, sys
r = json.load(open("out.txt"))["functions"]
refused = {f["function"]: f["why"] for f in r["refused_copies"]}
assert sorted(refused) == sorted(sys.argv[1].split()), refused
assert all("a possible target inside the patch" in why for why in refused.values()), refused
left = {f["function"]: f["why"] for f in r["left_alone"]}
assert all(left[f] == "its copy was refused" for f in refused), left
assert r["moved"] > 0
X
gcc -O2 -fcf-protection=none -fno-pie -no-pie -o prog "$root/tests/data/own_code/refused.c" || exit 1
./prog >want.txt

# check WHAT FUNCTIONS ARGS: the output works; the report says that copies of FUNCTIONS were refused
check() {
	local what=$1 functions=$2
	shift 2
	command_ends 0 "$what" "$BUILD/morph-optimize" "$@" --report=json -o out prog
	python3 read.py "$functions" 2>err.txt || fail "$what: $(tail -n 1 err.txt)"
	./out >got.txt
	cmp -s want.txt got.txt || fail "$what: the output prints $(head -n 1 got.txt)"
	command_ends 0 "$what: verify" "$BUILD/morph-optimize" verify prog out
}

check "all" "first second" --all
check "stress" "first second" --lab=stress-layout=5
check "calls replaced" "first second" --lab=stress-layout=5 --lab=stress-inline=7
check "counters" "first second" instrument --kind=edges --all
check "path numbers" "first second" instrument --kind=pep --all
check "none of them" "" --all --skip=first,second

command_ends 0 "text" "$BUILD/morph-optimize" --all -o out prog
says out.txt "refused    the copies of 2 functions" "the text"
says out.txt "for 2 attempts" "the text"

# What is only unusual is no reason: a rule that says what holds anyway; a jump to a function that
# begins a transaction, which this test never executes; a trap of clang's.
cat >prog.c <<'X'
#include <stdio.h>
int same(int), leads(int), begins(int);
__asm__(".text\n"
	".type same, @function\n"
	"same: .cfi_startproc\n"
	".cfi_same_value rbx\n"
	"lea 1(%rdi,%rdi), %eax\n"
	"ret\n"
	".cfi_endproc\n"
	".size same, .-same\n"
	".type begins, @function\n"
	"begins: .cfi_startproc\n"
	"xbegin 1f\n"
	"xend\n"
	"1: mov $7, %eax\n"
	"ret\n"
	".cfi_endproc\n"
	".size begins, .-begins\n"
	".type leads, @function\n"
	"leads: .cfi_startproc\n"
	"cmp $77, %edi\n"
	"je 1f\n"
	"lea 2(%rdi), %eax\n"
	"ret\n"
	"1: jmp begins\n"
	".cfi_endproc\n"
	".size leads, .-leads\n");
__attribute__((noinline)) int checked(int a)
{
	int sum = 0;

	for (int i = 0; i < 1000; i++) {
		sum += i ^ a;
		if (sum > 1 << 30) {
			__asm__ volatile(".byte 0x67, 0x0f, 0xb9, 0x40, 0x02");
			__builtin_unreachable();
		}
	}
	return sum;
}
int main(int argc, char **argv)
{
	(void)argv;
	printf("%d %d %d\n", same(argc), leads(argc), checked(argc));
	return 0;
}
X
gcc -O2 -o prog prog.c || exit 1
./prog >want.txt
check "unusual, all" "" --all
check "unusual, counters" "" instrument --kind=edges --all
check "unusual, audited" "" instrument --kind=audit --all
finish
