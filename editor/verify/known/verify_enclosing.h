// SPDX-License-Identifier: Apache-2.0
/* verify_enclosing - marks functions that a program may look for among the frames of its stack. */
#ifndef ME_VERIFY_ENCLOSING_H
#define ME_VERIFY_ENCLOSING_H

#include "editor/verify/base/verify_context.h"

/* C, after the scan: mark functions that the program may look for in its stack. */
void vf_find_asked(struct vf *vf);

#endif
