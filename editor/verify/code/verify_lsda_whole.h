// SPDX-License-Identifier: Apache-2.0
/* verify_lsda_whole - checks that every byte of the new exception tables has a meaning. */
#ifndef ME_VERIFY_LSDA_WHOLE_H
#define ME_VERIFY_LSDA_WHOLE_H

#include "editor/verify/base/verify_context.h"

/* Part of vf_check_unwind(): check that every byte of the new exception tables has a meaning. */
int vf_check_lsdas(const struct vf *vf);

#endif
