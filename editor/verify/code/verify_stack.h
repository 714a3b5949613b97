// SPDX-License-Identifier: Apache-2.0
/*
 * verify_stack - proves that a called function uses the stack in a way that stays right in place
 * of the call.
 */
#ifndef ME_VERIFY_STACK_H
#define ME_VERIFY_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/*
 * Check how a function uses the stack, in all parts of the code that begins with piece @first.
 * @lowered: vf_lowers(). Return: 0, -ENOMEM, or a refusal.
 */
int vf_check_stack(const struct vf *vf, uint32_t first, bool lowered);

#endif
