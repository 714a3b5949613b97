// SPDX-License-Identifier: Apache-2.0
/* verify_symbols - checks .symtab. */
#ifndef ME_VERIFY_SYMBOLS_H
#define ME_VERIFY_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Check .symtab and its strings. */
int vf_check_symbols(const struct vf *vf);
/* Do [@start, @start + @size) cover whole copies, with some of the function at @old unless it is 0? *@last: the last. */
bool vf_is_run(const struct vf *vf, uint64_t old, uint64_t start, uint64_t size, uint32_t *last);

#endif
