// SPDX-License-Identifier: Apache-2.0
/*
 * inline - which calls are replaced by the code of the called function, in hot copies. leaf.h says which functions can replace
 * calls; verify_inline.c proves the result. Called by rewrite.
 */
#ifndef ME_INLINE_H
#define ME_INLINE_H

#include "editor/rewrite/rewrite.h"

/* me_inline_choose - fills @r->replaced, and the leaves of the plan. @copied: per block. Return: as me_rewrite_plan(). */
int me_inline_choose(struct me_rewriting *r, const uint8_t *copied, struct mp_err *err);
/* me_inline_mark - marks the blocks of the plan that end in such a call, after the cut. Return: 0, -ENOMEM. */
int me_inline_mark(const struct me_rewriting *r, struct mp_err *err);

#endif
