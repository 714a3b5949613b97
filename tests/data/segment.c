// SPDX-License-Identifier: Apache-2.0
/* Instructions that do not use %gs, but differ by one byte from ones that do. A nop marks each. */
#define MARKED(code, mark) __asm__ volatile(code "; .byte 0x0f, 0x1f, 0x40, " #mark)

__attribute__((noinline)) int segment_prefix(int i)
{
	MARKED(".byte 0x2e; movq (%rsp), %rax", 0x11);
	return i + 1;
}

__attribute__((noinline)) int segment_base(int i)
{
	MARKED("wrfsbase %rax", 0x12);
	return i + 2;
}

__attribute__((noinline)) int segment_pop(int i)
{
	MARKED("pop %fs", 0x13);
	return i + 3;
}

__attribute__((noinline)) int segment_mov(int i)
{
	MARKED("mov %eax, %fs", 0x14);
	return i + 4;
}

__attribute__((noinline)) int segment_call(int i)
{
	MARKED("mov $0x1001, %edi; mov $157, %eax; syscall", 0x15);
	return i + 5;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc < 2)
		return 0;
	return segment_prefix(argc) + segment_base(argc) + segment_pop(argc) + segment_mov(argc) +
	       segment_call(argc);
}
