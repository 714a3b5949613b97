// SPDX-License-Identifier: Apache-2.0
/*
 * polls - shared memory by which a polled program is asked for its paths and reports them.
 *
 * A program tests @left where its paths end. A collector stores a number of bytes there.
 * For each path that ends, the program subtracts sizeof(struct mp_poll) from @left, and
 * writes the path at the offset that @left had, until nothing is left. In between it only
 * tests one word: simplified Arnold-Grove sampling (PEP, CGO 2005, section 4.4). The timer
 * is the collector's, and the paths that the method skips at first are also written.
 *
 * All processes of the program map the file, behind the header of counts_file.h.
 */
#ifndef MP_POLLS_H
#define MP_POLLS_H

#include <stdint.h>

#define MP_POLLS_MAX 1023 /* per request */

/*
 * The block at whose start the path ended (1 + its index in the path table) and the number
 * in its register. 0: not written.
 */
struct mp_poll {
	uint64_t number;
	uint32_t block;
	uint32_t zero;
};

struct mp_polls {
	int32_t left; /* bytes; below 0: several processes took the last ones at once */
	uint8_t zero[4092];
	/*
	 * Paths of one request: from the initial @left down to 1. [0] takes those that came
	 * too late.
	 */
	struct mp_poll polls[MP_POLLS_MAX + 1];
};

#endif
