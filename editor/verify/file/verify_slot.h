// SPDX-License-Identifier: Apache-2.0
/* verify_slot - decides whether the original may lose a program header, by who reads it. */
#ifndef ME_VERIFY_SLOT_H
#define ME_VERIFY_SLOT_H

#include <stdbool.h>

#include "editor/verify/base/verify_context.h"

/* May the new segment take the place of this program header? */
bool vf_may_drop_phdr(const struct vf *vf, const Elf64_Phdr *slot);

/* Is it a library: no PT_INTERP, and a complete dynamic section without DF_1_PIE? */
bool vf_is_library(const struct mp_elf *elf);

#endif
