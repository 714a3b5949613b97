// SPDX-License-Identifier: Apache-2.0
/*
 * verify_personality - decides which personality routines read exception tables as verify_lsda
 * does.
 */
#ifndef ME_VERIFY_PERSONALITY_H
#define ME_VERIFY_PERSONALITY_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Does @cie of the original name a routine that reads tables as
 * verify_lsda does? *@language: whose routine it is. Return: 1, 0, -ENOMEM. */
int vf_known_personality(const struct vf *vf, const struct vf_cie *cie, uint8_t *language);

#endif
