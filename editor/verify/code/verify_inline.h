// SPDX-License-Identifier: Apache-2.0
/* verify_inline - proves that a function's instructions may stand in place of a call of it. */
#ifndef ME_VERIFY_INLINE_H
#define ME_VERIFY_INLINE_H

#include "editor/verify/base/verify_context.h"

/* Make room for what is known of each FDE of the original. Call after the scan. Return: 0, -ENOMEM. */
int vf_make_answers(const struct vf *vf);
/* Check that the function from which the inlined piece @p comes may replace the call. Its instructions
 * are compared by verify_pieces. */
int vf_check_callee(const struct vf *vf, const struct mp_map_piece *p);

#endif
