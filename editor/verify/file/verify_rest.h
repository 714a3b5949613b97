// SPDX-License-Identifier: Apache-2.0
/* verify_rest - checks what no loader reads, but debuggers, strip and patchelf use. */
#ifndef ME_VERIFY_REST_H
#define ME_VERIFY_REST_H

#include "editor/verify/base/verify_context.h"

/* Find the output's section for each one of the original. */
int vf_read_sections(struct vf *vf);
/* Check what is not loaded: section headers, other sections, padding. */
int vf_check_sections(const struct vf *vf);

#endif
