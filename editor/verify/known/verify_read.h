// SPDX-License-Identifier: Apache-2.0
/*
 * verify_read - marks functions whose bytes the original may read as data, and finds the
 * addresses in code that it computes with.
 */
#ifndef ME_VERIFY_READ_H
#define ME_VERIFY_READ_H

#include "editor/verify/base/verify_context.h"

/* Find functions whose code the program may read, and @bases. Return: 0, -ENOMEM. */
int vf_find_reads(struct vf *vf);

#endif
