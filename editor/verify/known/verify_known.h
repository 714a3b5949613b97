// SPDX-License-Identifier: Apache-2.0
/* verify_known - refuses copies of functions that others know by their place. */
#ifndef ME_VERIFY_KNOWN_H
#define ME_VERIFY_KNOWN_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Does anything that others know about code of @fde forbid a copy of @at? Return: 0, or a refusal. */
int vf_check_known(const struct vf *vf, const struct vf_fde *fde, uint64_t at);

#endif
