// SPDX-License-Identifier: Apache-2.0
/*
 * verify_read - marks functions whose bytes the original may read as data, and finds the
 * addresses in code that it computes with.
 */
#ifndef ME_VERIFY_READ_H
#define ME_VERIFY_READ_H

#include "editor/verify/base/verify_context.h"

/*
 * Has one comparison, such as the end of a loop, or one subtraction both addresses? @perhaps: the answer where that is
 * not known.
 */
bool vf_are_compared(struct vf *vf, const struct vf_ref *a, const struct vf_ref *b, bool perhaps);

/* Find functions whose code the program may read, and @bases. Return: 0, -ENOMEM. */
int vf_find_reads(struct vf *vf);

#endif
