// SPDX-License-Identifier: Apache-2.0
/*
 * verify_unwind - checks that the unwinder finds the same at each copied instruction as at the
 * original, and the same as before in old code.
 */
#ifndef ME_VERIFY_UNWIND_H
#define ME_VERIFY_UNWIND_H

#include "editor/verify/base/verify_context.h"

/* Read the unwind data of the output, and find out which personality routines verify knows. */
int vf_read_unwind(struct vf *vf);
/* Check the unwind data of old code and of copies. */
int vf_check_unwind(const struct vf *vf);

#endif
