// SPDX-License-Identifier: Apache-2.0
/*
 * verify_results - finds caller-saved registers that a function may leave as results, and
 * registers that may pass arguments to it.
 */
#ifndef ME_VERIFY_RESULTS_H
#define ME_VERIFY_RESULTS_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/*
 * Find, per FDE, the registers that may be its results (@result_candidates), and set @passed of all
 * blocks.
 * Return: 0, -ENOMEM.
 */
int vf_find_result_candidates(const struct vf *vf, uint16_t *result_candidates);

#endif
