// SPDX-License-Identifier: Apache-2.0
/* verify_probe - finds the static probes (SystemTap notes) where tracers put breakpoints. */
#ifndef ME_VERIFY_PROBE_H
#define ME_VERIFY_PROBE_H

#include "editor/verify/base/verify_context.h"

/* Static probes (SystemTap): mark them as possible targets; check that their blocks were not
 * copied. */
void vf_mark_probes(struct vf *vf);
int vf_check_probes(const struct vf *vf);

#endif
