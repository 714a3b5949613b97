// SPDX-License-Identifier: Apache-2.0
/* verify_link - the link from the output to its debug file, and notes that both files have. */
#ifndef ME_VERIFY_LINK_H
#define ME_VERIFY_LINK_H

#include <stdbool.h>

#include "editor/verify/base/verify_context.h"

/* Check that the output names its debug file. */
int vf_check_link(const struct vf *vf);
/* Is @sec the section .gnu_debuglink, which may differ? vf_check_debug() checks its contents. */
bool vf_is_link(const struct vf *vf, const struct mp_section *sec);
/* Check a note section of a debug file: @a before, @b now. */
int vf_check_kept_note(const struct vf *vf, const struct mp_section *a, const struct mp_section *b);

#endif
