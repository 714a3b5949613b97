// SPDX-License-Identifier: Apache-2.0
/* verify_return_words - marks functions of which data may hold return addresses. */
#ifndef ME_VERIFY_RETURN_WORDS_H
#define ME_VERIFY_RETURN_WORDS_H

#include "editor/verify/base/verify_context.h"

/* Mark functions of which data may hold return addresses. Call at the end of the scan. */
void vf_find_return_words(const struct vf *vf);

#endif
