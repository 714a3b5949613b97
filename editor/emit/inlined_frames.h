// SPDX-License-Identifier: Apache-2.0
/*
 * inlined_frames - what unwind must know of code that replaces calls of functions with a frame. Called by emit.
 */
#ifndef ME_INLINED_FRAMES_H
#define ME_INLINED_FRAMES_H

#include "editor/place/place.h"
#include "editor/unwind/unwind.h"

/* For each of a plan's leaves: the code beside the call, and that which lies apart. */
struct me_inlined_frames {
	struct me_placed_frame *frames;
	struct me_placed_part *parts;
};

/* Return: 0, -ENOMEM. Ownership: me_inlined_frames_fini(). */
int me_inlined_frames_init(struct me_inlined_frames *frames, const struct me_leaf *leaves,
			   uint32_t nr_leaves);
/* Return: that of the code that replaces a call at the end of @copy; NULL: it has no rows of its own. */
const struct me_placed_frame *me_inlined_frame(const struct me_inlined_frames *frames,
					       const struct me_copy *copy,
					       const struct me_leaf *leaves);
void me_inlined_frames_fini(struct me_inlined_frames *frames);

#endif
