// SPDX-License-Identifier: Apache-2.0
/*
 * scratch - a directory that the running test may fill, in $TMPDIR or /tmp.
 *
 *	FIXTURE(scratch_make, scratch_remove);
 */
#ifndef MORPH_TESTS_SCRATCH_H
#define MORPH_TESTS_SCRATCH_H

#include "tests/unit/suite.h"

static char dir[200];

static inline void scratch_make(void)
{
	snprintf(dir, sizeof(dir), "%s/%s.XXXXXX", getenv("TMPDIR") ?: "/tmp",
		 program_invocation_short_name);
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static inline void scratch_remove(void)
{
	char command[sizeof(dir) + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

#endif
