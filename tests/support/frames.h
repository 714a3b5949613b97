// SPDX-License-Identifier: Apache-2.0
/* frames - .eh_frame sections made by hand, entry by entry. Used by tests of unwind rows. */
#ifndef TESTS_FRAMES_H
#define TESTS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/eh.h"

/* The load address of the section. */
#define FRAMES_VADDR 0x100000

struct frames {
	uint8_t bytes[8192];
	size_t size, cie; /* @cie: offset of the last CIE */
};

/* Adds a CIE: CFA = rsp + 8, the return address at CFA - 8. @signal: of signal frames, without a
 * program. */
void frames_cie(struct frames *f, bool signal);
/* Adds an FDE of the last CIE. */
void frames_fde(struct frames *f, uint64_t start, uint32_t size, const uint8_t *program, size_t nr);
#define FRAMES_FDE(f, start, size, ...)                                                            \
	frames_fde(f, start, size, (const uint8_t[]){__VA_ARGS__},                                 \
		   sizeof((const uint8_t[]){__VA_ARGS__}))
struct mp_cursor frames_cursor(const struct frames *f);

#endif
