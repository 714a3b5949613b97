// SPDX-License-Identifier: Apache-2.0
/* verify_wait - checks the stubs of an output that is not instrumented. */
#ifndef ME_VERIFY_WAIT_H
#define ME_VERIFY_WAIT_H

#include "editor/verify/base/verify_context.h"

/* Check the stub @p of an output that counts and numbers nothing: it waits. */
int vf_check_wait(const struct vf *vf, const struct mp_map_piece *p);

#endif
