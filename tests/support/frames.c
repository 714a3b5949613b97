// SPDX-License-Identifier: Apache-2.0
/* frames - writes .eh_frame entries; see frames.h. */
#include "tests/support/frames.h"

#include <stdlib.h>
#include <string.h>

static void put(struct frames *f, const void *bytes, size_t nr)
{
	if (nr > sizeof(f->bytes) - f->size)
		abort();
	memcpy(f->bytes + f->size, bytes, nr);
	f->size += nr;
}

static void put_u32(struct frames *f, uint32_t v)
{
	put(f, &v, sizeof(v));
}

/* Pads the entry at @at with DW_CFA_nop, and writes its length. */
static void end_entry(struct frames *f, size_t at)
{
	uint32_t length;

	while (f->size % 4)
		put(f, "", 1);
	length = (uint32_t)(f->size - at - 4);
	memcpy(f->bytes + at, &length, sizeof(length));
}

void frames_cie(struct frames *f, bool signal)
{
	static const uint8_t initial[] = {0x0c, 7, 8, 0x90, 1};
	/* version, augmentation, code 1, data -8, column 16, one byte: pcrel sdata4 */
	static const uint8_t plain[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b};
	static const uint8_t sig[] = {1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b};
	size_t at = f->size;

	f->cie = at;
	put_u32(f, 0);
	put_u32(f, 0);
	if (signal)
		put(f, sig, sizeof(sig));
	else
		put(f, plain, sizeof(plain));
	/* As libc's: the FDE of a signal frame says everything. */
	if (!signal)
		put(f, initial, sizeof(initial));
	end_entry(f, at);
}

void frames_fde(struct frames *f, uint64_t start, uint32_t size, const uint8_t *program, size_t nr)
{
	size_t at = f->size;

	put_u32(f, 0);
	put_u32(f, (uint32_t)(f->size - f->cie));
	put_u32(f, (uint32_t)(start - (FRAMES_VADDR + f->size)));
	put_u32(f, size);
	put(f, "", 1);
	put(f, program, nr);
	end_entry(f, at);
}

struct mp_cursor frames_cursor(const struct frames *f)
{
	return (struct mp_cursor){
		.p = f->bytes,
		.end = f->bytes + f->size,
		.vaddr = FRAMES_VADDR,
	};
}
