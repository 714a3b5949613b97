// SPDX-License-Identifier: Apache-2.0
/* verify_debug_file - compares the output's debug file with the original's. */
#ifndef ME_VERIFY_DEBUG_FILE_H
#define ME_VERIFY_DEBUG_FILE_H

#include "editor/verify/base/verify_context.h"

/* Check the debug file. */
int vf_check_debug(const struct vf *vf);

#endif
