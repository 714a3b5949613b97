// SPDX-License-Identifier: Apache-2.0
/*
 * context_pack - a calling context tree in few bytes, for the store. Called by context_codec.
 *
 * A tree has the same step, a call site or a function, in many contexts, and below it mostly the same
 * steps. So a *key* (module, address, kind) is written once. Then each node, breadth first, says which
 * children it has: which of those that followed its key before, and which others. All numbers go through
 * models that learn how likely they are (base/range_coder.h). Documentation/abi.md has the format.
 */
#ifndef MP_CONTEXT_PACK_H
#define MP_CONTEXT_PACK_H

#include "libprof/context/context_tree.h"

/* Trees with more nodes than this are not read: they would need too much memory. */
#define MP_CONTEXT_PACK_NODES_MAX (1u << 17)

/* @tree: at most so many nodes. Return: 0, -ENOMEM. Ownership: free(*@out). */
int mp_context_pack(const struct mp_context_tree *tree, uint8_t **out, size_t *size);

#endif
