// SPDX-License-Identifier: Apache-2.0
/* inlined_frames - one description for all copies of the same function: only the call's row differs. */
#include "editor/emit/inlined_frames.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/rewrite/leaf.h"

_Static_assert(ME_LEAF_NEVER == ME_PLACED_NEVER, "unwind knows parts whose frame does not end");

static void describe(const struct me_leaf *leaf, uint8_t first, uint8_t end, uint16_t size,
		     struct me_placed_part *parts, struct me_placed_frame *frame)
{
	*frame = (struct me_placed_frame){.parts = parts + first,
					  .nr_parts = end - first,
					  .raised = me_leaf_raised(leaf),
					  .size = size};
	for (uint8_t i = first; i < end; i++)
		parts[i] = (struct me_placed_part){leaf->parts[i].vaddr, leaf->parts[i].off,
						   leaf->parts[i].size, me_leaf_frame_end(leaf, i)};
}

int me_inlined_frames_init(struct me_inlined_frames *frames, const struct me_leaf *leaves,
			   uint32_t nr_leaves)
{
	struct me_placed_part *parts;
	size_t nr_parts = 0;

	for (uint32_t i = 0; i < nr_leaves; i++)
		nr_parts += leaves[i].nr_parts;
	frames->frames = calloc(2 * (size_t)nr_leaves + 1, sizeof(*frames->frames));
	frames->parts = parts = calloc(nr_parts + 1, sizeof(*frames->parts));
	if (!frames->frames || !parts) {
		me_inlined_frames_fini(frames);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < nr_leaves; i++) {
		const struct me_leaf *leaf = &leaves[i];

		describe(leaf, 0, leaf->nr_near, leaf->size, parts, &frames->frames[2 * i]);
		describe(leaf, leaf->nr_near, leaf->nr_parts, leaf->apart_size, parts,
			 &frames->frames[2 * i + 1]);
		parts += leaf->nr_parts;
	}
	return 0;
}

const struct me_placed_frame *me_inlined_frame(const struct me_inlined_frames *frames,
					       const struct me_copy *copy,
					       const struct me_leaf *leaves)
{
	if (!copy->inlined || !leaves[copy->leaf].frame)
		return NULL;
	return &frames->frames[2 * (size_t)copy->leaf + copy->apart];
}

void me_inlined_frames_fini(struct me_inlined_frames *frames)
{
	free(frames->frames);
	free(frames->parts);
	*frames = (struct me_inlined_frames){0};
}
