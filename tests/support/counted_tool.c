// SPDX-License-Identifier: Apache-2.0
/* counted_tool - see counted_tool.h. */
#include "tests/support/counted_tool.h"

#include <stdio.h>

int counted_tool(int argc, char **argv, const char *name, unsigned int parts, counted_tool_use *use)
{
	struct exact_counts counts;
	struct mp_elf *elf;
	struct mp_err err;
	int rc;

	if (argc != 3) {
		fprintf(stderr, "usage: %s FILE EDGES\n", name);
		return 2;
	}
	rc = mp_elf_open(argv[1], parts, &elf, &err);
	if (!rc) {
		rc = exact_counts_read(argv[2], &counts, &err);
		if (!rc)
			rc = use(elf, &counts, &err);
		exact_counts_fini(&counts);
		mp_elf_close(elf);
	}
	if (rc)
		fprintf(stderr, "%s: %s\n", name, err.msg);
	return rc ? 1 : 0;
}
