// SPDX-License-Identifier: Apache-2.0
// Code in several segments, far from one another: calls, tail calls, switches and exceptions lead from one to the other,
// and a function has parts in both.
// link: -Wl,--section-start=.far=0x8000000 -Wl,--section-start=.farther=0x9000000
// modes: pie nopie
// moves: main
#include <cstdio>
#include <stdexcept>

#include "../hazard.h"

#define FAR	__attribute__((section(".far")))
#define FARTHER __attribute__((section(".farther")))

KEEP int near_end(int n);
KEEP FAR int far_end(int n);
KEEP FARTHER int farther_end(int n);

KEEP FAR int far_pick(int n)
{
	switch (n & 15) {
	case 0: return n + 3;
	case 1: return near_end(n);
	case 2: return farther_end(n * 3);
	case 3: return n ^ 0x55;
	case 4: return -n;
	case 5: return n / 3;
	case 6: return far_end(n);
	case 9: throw n;
	case 11: throw std::out_of_range("eleven");
	default: return n & 7;
	}
}

KEEP FARTHER int farther_end(int n)
{
	if (n % 5 == 0)
		return near_end(n + 1);
	return n % 7 ? far_end(n - 1) : n * 2;
}

KEEP FAR int far_end(int n)
{
	return n > 100 ? near_end(n - 50) : n + 1;
}

KEEP int near_end(int n)
{
	return n % 3 == 2 ? far_end(n / 2) : n - 1;
}

struct guard {
	int &n;
	~guard() { n += 3; }
};

KEEP FARTHER int catches(int n)
{
	int unwound = 0;

	try {
		guard g{unwound};
		return far_pick(n) + unwound;
	} catch (int i) {
		return i * 5 + unwound;
	}
}

// A function whose rare part lies in another segment, with jumps both ways.
__asm__(".text\n.p2align 4\n.globl parted\n.type parted, @function\n"
	"parted:\n.cfi_startproc\n"
	"	testl $1, %edi\n"
	"	jnz parted_far\n"
	"	leal 5(%rdi), %eax\n"
	"parted_back:\n"
	"	addl $2, %eax\n"
	"	cmpl $90, %eax\n"
	"	ja far_end_alias\n"
	"	ret\n"
	".cfi_endproc\n.size parted, . - parted\n"
	".section .far, \"ax\", @progbits\n.p2align 4\n"
	".type parted_far, @function\nparted_far:\n.cfi_startproc\n"
	"	leal (%rdi,%rdi,2), %eax\n"
	"	cmpl $40, %edi\n"
	"	jb parted_back\n"
	"	subl $100, %eax\n"
	"	jmp parted_back\n"
	".cfi_endproc\n.size parted_far, . - parted_far\n"
	".type far_end_alias, @function\nfar_end_alias:\n.cfi_startproc\n"
	"	leal -7(%rax), %edi\n"
	"	movl %edi, %eax\n"
	"	ret\n"
	".cfi_endproc\n.size far_end_alias, . - far_end_alias\n.text\n");
extern "C" int parted(int n);

typedef int function(int);
static function *const table[] = {near_end, far_end, farther_end, parted, catches};

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 400; i++) {
		try {
			sum = sum * 31 + catches(i) + parted(i);
			sum = sum * 31 + table[i % 5](i);
		} catch (std::exception &e) {
			sum = sum * 31 + e.what()[0];
		}
	}
	printf("%ld\n", sum);
	return 0;
}
