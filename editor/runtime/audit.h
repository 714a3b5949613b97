/* SPDX-License-Identifier: Apache-2.0 */
/* audit - draws versions and times them; audit_point does so in loops. Called by attach.c and
 * start.S. */
#ifndef ME_RUNTIME_AUDIT_H
#define ME_RUNTIME_AUDIT_H

#include <stdbool.h>

#include "editor/base/runtime.h"

/*
 * me_audit_start - begins to audit. @fd: the open ring file; negative: there is none, and version
 * A runs. @fsgsbase: user space may read and write the bases of %fs and %gs.
 */
void me_audit_start(const struct me_runtime_params *params, int fd, bool fsgsbase);
/*
 * me_runtime_audit_enter, me_runtime_audit_leave, me_runtime_audit_point - control is in the stub
 * at the entry, at an exit, or at a timing point of an audited function. @ret: address of the
 * return address of the stub's call, behind which the stub's number stands. @now: time-stamp.
 */
void me_runtime_audit_enter(const struct me_runtime_params *params, const uint64_t *ret);
void me_runtime_audit_point(const struct me_runtime_params *params, const uint64_t *ret,
			    uint64_t now);
void me_runtime_audit_leave(const struct me_runtime_params *params, const uint64_t *ret,
			    uint64_t now);

#endif
