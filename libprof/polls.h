// SPDX-License-Identifier: Apache-2.0
/*
 * polls - the memory by which a program that polls is asked which paths it takes, and says it.
 *
 * Where its paths end a program looks at @left. Whoever wants samples puts a number of bytes there;
 * the program takes sizeof(struct mp_poll) of them for each path that ends, and writes down below
 * where @left was which path that is, until nothing is left. So one look at a word is all that
 * happens in between: simplified Arnold-Grove sampling (PEP, CGO 2005, section 4.4), in which the
 * timer is the asker's, and the paths it skips at first are written down as well.
 *
 * The memory is a file's that all its processes have mapped, behind the header of counts_file.h.
 */
#ifndef MP_POLLS_H
#define MP_POLLS_H

#include <stdint.h>

#define MP_POLLS_MAX 1023 /* at a time */

/* The block at whose start the path ended, 1 + its index in the table of paths, and the number that
 * its register held there. 0: nobody has written it. */
struct mp_poll {
	uint64_t number;
	uint32_t block;
	uint32_t zero;
};

struct mp_polls {
	int32_t left; /* bytes; below 0: several were the last at once */
	uint8_t zero[4092];
	/* Those of one asking: from where @left was down to 1. [0] is for who came too late. */
	struct mp_poll polls[MP_POLLS_MAX + 1];
};

#endif
