/* SPDX-License-Identifier: Apache-2.0 */
/* counted_tool - the main function of tools that read a file and exact counts of its code (exact_counts.h). */
#ifndef TESTS_COUNTED_TOOL_H
#define TESTS_COUNTED_TOOL_H

#include "libprof/elf/elf.h"
#include "tests/support/exact_counts.h"

/* Prints what the tool says. Return: 0, or negative with @err. */
typedef int counted_tool_use(const struct mp_elf *elf, const struct exact_counts *counts,
			     struct mp_err *err);

/*
 * counted_tool - reads FILE and EDGES, the two arguments of the tool @name, and calls @use. @parts: of the file, MP_ELF_*.
 * Return: the exit status. Prints a message on an error.
 */
int counted_tool(int argc, char **argv, const char *name, unsigned int parts,
		 counted_tool_use *use);

#endif
