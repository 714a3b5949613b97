// SPDX-License-Identifier: Apache-2.0
/* verify_pointers - checks that each function has one address. */
#ifndef ME_VERIFY_POINTERS_H
#define ME_VERIFY_POINTERS_H

#include "editor/verify/base/verify_context.h"

/* Run after all other checks: does every function have one address only? */
int vf_check_pointers(const struct vf *vf);

#endif
