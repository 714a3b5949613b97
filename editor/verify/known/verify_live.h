// SPDX-License-Identifier: Apache-2.0
/*
 * verify_live - what must hold of an output that may be put into processes that run already: there, threads return
 * into old code, and the loader does not know the copies. Only code and constant data may change, which verify_diff
 * checks.
 */
#ifndef ME_VERIFY_LIVE_H
#define ME_VERIFY_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Sets vf->now.live: does the output say that it is for such processes? */
void vf_find_live(struct vf *vf);
bool vf_is_live_section(const struct vf *vf, const struct mp_section *sec);
/* Marks functions that must have no copies then. Call it when the old code was decoded. Return: 0, -EBADMSG. */
int vf_mark_live(struct vf *vf);
/*
 * Does a function, or a part of one, begin at @at? The kernel may execute its first instruction as the file has
 * it.
 */
bool vf_is_entry(const struct vf *vf, uint64_t at);
/* May a thread return from a call of @fde to a place behind @at and before @end? */
bool vf_returns_into(const struct vf *vf, const struct vf_fde *fde, uint64_t at, uint64_t end);
/* Refuses if a function's or a label's address is that of its copy anywhere. Call it when pointers were checked. */
int vf_check_live(const struct vf *vf);

#endif
