#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that were refused as a whole: sections that claim to be loaded, programs with fixed addresses
# that have no program header to spare; and one that is refused with its reason: gigabytes of .bss.
. "$(dirname "$0")/../lib.sh"
need gcc objcopy python3 readelf
scratch odd-files

cat >prog.c <<'X'
#include <stdio.h>
#ifdef GIGABYTES
char far_away[GIGABYTES << 30];
#endif
__attribute__((noinline)) int turn(int a) { return a % 3 ? a * 7 : a - 1; }
int main(int argc, char **argv)
{
	int sum = 0;

	(void)argv;
	for (int i = 0; i < 100; i++)
		sum += turn(i + argc);
#ifdef GIGABYTES
	far_away[GIGABYTES << 29] = (char)sum;
#endif
	printf("%d\n", sum);
	return 0;
}
X

# works WHAT PROGRAM: the output does what the program does
works() {
	"./$2" >want.txt
	echo "status $?" >>want.txt
	command_ends 0 "$1" "$BUILD/morph-optimize" --lab=stress-layout=3 -o out "$2"
	mv out.txt report.txt
	./out >got.txt
	echo "status $?" >>got.txt
	cmp -s want.txt got.txt || fail "$1: $(head -n 2 got.txt | tr '\n' ' ')"
	rm -f out
}

# Data that no segment loads: the flag of its section is of no effect, and the output lacks it.
head -c 5000 /dev/zero >blob
gcc -O2 -o plain prog.c || exit 1
objcopy --add-section .blob=blob --set-section-flags .blob=alloc,readonly,data plain prog 2>/dev/null
works "a section at address 0" prog
objcopy --add-section .blob=blob --set-section-flags .blob=alloc,readonly,data \
	--change-section-address .blob=0x10000000 plain prog 2>/dev/null
works "a section far away" prog

# A static program with fixed addresses, as older linkers made it: the notes behind the table move.
cat >static.c <<'X'
__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start: .cfi_startproc\n"
	".cfi_undefined rip\n"
	"mov (%rsp), %edi\n"
	"and $-16, %rsp\n"
	"call work\n"
	"mov %eax, %edi\n"
	"mov $60, %eax\n"
	"syscall\n"
	".cfi_endproc\n"
	".size _start, .-_start\n"
	".section .note.test, \"a\", @note\n"
	".globl note\n"
	"note: .long 4, 48, 1\n"
	".ascii \"tst\\0\"\n"
	".zero 48\n"
	".text\n");
#ifdef NAMED
extern char note[];
char *volatile named = note;
#endif
__attribute__((noinline)) int turn(int a) { return a % 3 ? a * 7 : a - 1; }
int work(int argc)
{
	int sum = 0;

	for (int i = 0; i < 10; i++)
		sum += turn(i + argc);
#ifdef NAMED
	sum += named[0];
#endif
	return sum & 127;
}
X
fixed() {
	gcc -O2 -static -no-pie -fno-pie -nostdlib -fcf-protection=none -Wa,-mx86-used-note=no \
		-fno-stack-protector -Wl,-z,noseparate-code,--eh-frame-hdr,--build-id "$@" static.c || exit 1
}
fixed -o static
works "a static program" static
says report.txt "the space behind the table" "a static program"
fixed -o static -DNAMED
command_ends 4 "bytes that data names" "$BUILD/morph-optimize" --all -o out static
says err.txt "uses bytes behind its program headers" "bytes that data names"

# patchelf writes X behind the longer table, where the interpreter's name was.
if command -v patchelf >/dev/null && gcc -O2 -fuse-ld=lld -fPIE -pie -o prog prog.c 2>/dev/null; then
	patchelf --set-rpath "/$(printf 'x/%.0s' $(seq 1 3000))" prog
	works "lld and patchelf" prog
else
	left_out=" lld and patchelf"
fi

gcc -O2 -mcmodel=medium -DGIGABYTES=3L -o prog prog.c || exit 1
command_ends 4 "3 GiB of .bss" "$BUILD/morph-optimize" --all -o out prog
says err.txt "2 GiB of memory or more" "3 GiB of .bss"
finish
