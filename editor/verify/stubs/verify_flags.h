// SPDX-License-Identifier: Apache-2.0
/*
 * verify_flags - decides whether arithmetic flags that were set before an address may be read
 * behind it.
 */
#ifndef ME_VERIFY_FLAGS_H
#define ME_VERIFY_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Are the arithmetic flags dead at @vaddr of the original? Without @carry, CF may be live. */
bool vf_flags_are_dead(const struct vf *vf, uint64_t vaddr, bool carry);

#endif
