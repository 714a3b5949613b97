// SPDX-License-Identifier: Apache-2.0
/* verify_own - the list of who checked which bytes of the output. */
#ifndef ME_VERIFY_OWN_H
#define ME_VERIFY_OWN_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_report.h"

/* @owner has proved these bytes of the output. Call it outside of vf_parallel(), and with ascending @off if possible. */
void vf_own(const struct vf *vf, uint64_t off, uint64_t size, enum me_owner owner);
void vf_own_at(const struct vf *vf, uint64_t vaddr, uint64_t size, enum me_owner owner);
/* Run at the end: has each byte of the output one owner? */
int vf_check_owned(const struct vf *vf);
void vf_owned_fini(struct vf_owned *owned);

#endif
