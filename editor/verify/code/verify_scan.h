// SPDX-License-Identifier: Apache-2.0
/* verify_scan - reads the whole old text once. */
#ifndef ME_VERIFY_SCAN_H
#define ME_VERIFY_SCAN_H

#include "editor/verify/base/verify_context.h"

/* Read the old text. */
int vf_scan(struct vf *vf);

#endif
