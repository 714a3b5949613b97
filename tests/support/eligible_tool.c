// SPDX-License-Identifier: Apache-2.0
/* eligible_tool - see eligible_tool.h. */
#include "tests/support/eligible_tool.h"

#include <stdio.h>

#include "libprof/elf/elf.h"

int eligible_tool(int argc, char **argv, const char *name, eligible_tool_print *print)
{
	const struct mp_cfg_options options = {0};
	struct me_eligible eligible = {0};
	struct mp_cfg *cfg = NULL;
	struct mp_elf *elf;
	struct mp_err err;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE\n", name);
		return 2;
	}
	rc = mp_elf_open(argv[1], MP_ELF_ALL, &elf, &err);
	if (!rc) {
		rc = mp_cfg_build(elf, &options, &cfg, &err);
		if (!rc)
			rc = me_eligible_functions(cfg, 1, &eligible, &err);
		if (!rc)
			print(cfg, &eligible);
		me_eligible_fini(&eligible);
		mp_cfg_free(cfg);
		mp_elf_close(elf);
	}
	if (rc)
		fprintf(stderr, "%s: %s: %s\n", name, argv[1], err.msg);
	return rc ? 1 : 0;
}
