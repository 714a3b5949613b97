// SPDX-License-Identifier: Apache-2.0
/*
 * verify_eh_startup - finds the operands by which a static program's start-up code names its
 * .eh_frame, without relocations.
 */
#ifndef ME_VERIFY_EH_STARTUP_H
#define ME_VERIFY_EH_STARTUP_H

#include "editor/verify/base/verify_context.h"

/* Find the references to .eh_frame in an original without relocations. Needs its FDEs. */
void vf_find_eh_fields(struct vf *vf);

#endif
