// SPDX-License-Identifier: Apache-2.0
/* compile - runs a compiler for tests; see compile.h. Tests run in the root of the tree. */
#include "tests/support/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool compile_has(const char *cc)
{
	char command[256];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", cc);
	return !system(command);
}

int compile_run(const char *cc, const char *flags, const char *sources, char *path)
{
	const char *dir = getenv("TMPDIR");
	char command[2048];
	int fd;

	snprintf(path, 256, "%s/morph-test-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(command, sizeof(command), "%s %s %s -o %s", cc, flags, sources, path);
	if (!system(command))
		return 0;
	unlink(path);
	return -1;
}
