// SPDX-License-Identifier: Apache-2.0
/*
 * verify_cell - what the loader puts into a cell of the original, and which code an operand leads
 * to by it.
 */
#ifndef ME_VERIFY_CELL_H
#define ME_VERIFY_CELL_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/*
 * What the loader puts into @cell: the address of a function, or 0 and *@name, that of another file's.
 * Several versions have only functions that read strings and memory.
 */
uint64_t vf_loaded(const struct vf *vf, uint64_t cell, const char **name);
/* The code that an operand of @names leads to, itself or by a cell that the loader fills in; 0: none. */
uint64_t vf_named_code(const struct vf *vf, const struct vf_ref *name);

#endif
