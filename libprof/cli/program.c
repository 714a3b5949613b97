// SPDX-License-Identifier: Apache-2.0
/* program - see program.h. */
#include "libprof/cli/program.h"

#include <argp.h>
#include <stdio.h>

#include "libprof/cli/stdio.h"

#ifndef MORPH_VERSION
#define MORPH_VERSION "unknown"
#endif

void mp_program_init(const char *name)
{
	static char version[128];

	snprintf(version, sizeof(version), "%s %s", name, MORPH_VERSION);
	argp_program_version = version;
	mp_stdio_init(name);
}

const char *mp_program_version(void)
{
	return MORPH_VERSION;
}
