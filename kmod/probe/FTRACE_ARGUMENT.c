// SPDX-License-Identifier: GPL-2.0
/* struct ftrace_regs has a function for reading arguments, and its fields are private. */
#include <linux/ftrace.h>

unsigned long probe(struct ftrace_regs *regs);
unsigned long probe(struct ftrace_regs *regs)
{
	return ftrace_regs_get_argument(regs, 0);
}
