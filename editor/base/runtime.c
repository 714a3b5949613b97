// SPDX-License-Identifier: Apache-2.0
/*
 * runtime - holds the machine code that the Makefile builds from editor/runtime/, and its unwind
 * information.
 */
#include "editor/base/runtime.h"

#include <string.h>

const uint8_t me_runtime_blob[] __attribute__((aligned(16))) = {
#include "runtime_blob.h"
};

const uint32_t me_runtime_blob_size = sizeof(me_runtime_blob);

_Static_assert(sizeof(me_runtime_blob) % 16 == 0, "the parameters follow directly");

/* As linked directly behind the blob. */
static const uint8_t frames[] = {
#include "runtime_frames.h"
};

const uint32_t me_runtime_frames_size = sizeof(frames);

_Static_assert(sizeof(frames) % 4 == 0, "an FDE may follow directly");

/* An FDE's length, the distance to its CIE, and its code's address, relative to that field. */
enum {
	CIE_AT = 4,
	START_AT = 8,
	SIZE_AT = 12,
	LEAST = 16,
};

static uint32_t word(uint32_t off)
{
	uint32_t value;

	memcpy(&value, frames + off, sizeof(value));
	return value;
}

bool me_runtime_frames_next(uint32_t *off, uint32_t *frame, uint64_t *start, uint64_t *size)
{
	while (*off + LEAST <= me_runtime_frames_size && word(*off)) {
		*frame = *off;
		*off += word(*off) + 4;
		if (!word(*frame + CIE_AT))
			continue;
		*start = (uint64_t)sizeof(me_runtime_blob) + *frame + START_AT +
			 (uint64_t)(int64_t)(int32_t)word(*frame + START_AT);
		*size = word(*frame + SIZE_AT);
		return true;
	}
	return false;
}

void me_runtime_frames_write(uint64_t runtime, uint64_t vaddr, uint8_t *out)
{
	uint32_t off = 0, frame;
	uint64_t start, size;

	memcpy(out, frames, me_runtime_frames_size);
	while (me_runtime_frames_next(&off, &frame, &start, &size)) {
		uint32_t disp = (uint32_t)(runtime + start - (vaddr + frame + START_AT));

		memcpy(out + frame + START_AT, &disp, sizeof(disp));
	}
}
