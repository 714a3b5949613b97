// SPDX-License-Identifier: Apache-2.0
/*
 * verify_bounds - marks functions between two addresses that one function names close together,
 * if it reads what lies between, or asks whether something does.
 */
#ifndef ME_VERIFY_BOUNDS_H
#define ME_VERIFY_BOUNDS_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* How the program uses an address in code. */
enum vf_use {
	VF_USED,
	VF_EQUALS,   /* asks whether it is equal to something: a loop may end there */
	VF_COMPARES, /* asks whether something lies before or behind it */
	VF_READS,    /* reads from there */
	VF_ASKS,     /* reads from there, and asks whether something lies before or behind it */
	VF_COMPUTES, /* adds to it, or subtracts, and may read from there as well */
};

/*
 * Has one comparison, such as the end of a loop, or one subtraction both addresses? @perhaps: the answer where that is
 * not known.
 */
typedef bool (*vf_are_compared)(struct vf *vf, const struct vf_ref *a, const struct vf_ref *b,
				bool perhaps);

/* Find functions between two addresses of @names; @use: enum vf_use of each. Return: 0, -ENOMEM. */
int vf_find_bounded(struct vf *vf, const uint8_t *use, vf_are_compared are_compared);

#endif
