// SPDX-License-Identifier: GPL-2.0
/* What function tracing saved is asked for its arguments, and may not be looked into. */
#include <linux/ftrace.h>

unsigned long probe(struct ftrace_regs *regs);
unsigned long probe(struct ftrace_regs *regs)
{
	return ftrace_regs_get_argument(regs, 0);
}
