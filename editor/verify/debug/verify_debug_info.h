// SPDX-License-Identifier: Apache-2.0
/* verify_debug_info - compares .debug_info of both files. */
#ifndef ME_VERIFY_DEBUG_INFO_H
#define ME_VERIFY_DEBUG_INFO_H

#include "editor/verify/base/verify_context.h"

/* Check the entries of debug information: verify/debug. */
int vf_check_debug_info(const struct vf *vf);

#endif
