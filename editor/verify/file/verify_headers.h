// SPDX-License-Identifier: Apache-2.0
/* verify_headers - checks the headers of the output. */
#ifndef ME_VERIFY_HEADERS_H
#define ME_VERIFY_HEADERS_H

#include "editor/verify/base/verify_context.h"

/* Check the headers, and find the new segment and the sections that only some outputs have. */
int vf_read_headers(struct vf *vf);

#endif
