// SPDX-License-Identifier: Apache-2.0
/*
 * verify_label - for functions that keep addresses inside themselves and jump through a register.
 */
#ifndef ME_VERIFY_LABEL_H
#define ME_VERIFY_LABEL_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Find functions whose own addresses are labels. Call at the end of the scan. */
int vf_find_labels(const struct vf *vf);
/* May the address @old, inside a function, be replaced by its copy's address everywhere? */
bool vf_label_may_move(const struct vf *vf, uint64_t old);

#endif
