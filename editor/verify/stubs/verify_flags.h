// SPDX-License-Identifier: Apache-2.0
/*
 * verify_flags - decides whether arithmetic flags that a stub changes may be read behind it.
 */
#ifndef ME_VERIFY_FLAGS_H
#define ME_VERIFY_FLAGS_H

#include <Zydis/Zydis.h>
#include <stdbool.h>

#include "editor/verify/base/verify_context.h"

/* The arithmetic flags. */
#define VF_FLAGS                                                                                   \
	(ZYDIS_CPUFLAG_OF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_AF |               \
	 ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_CF)

/* Prepare vf_check_flags(). Needs all FDEs of the original. Return: 0, or -ENOMEM. */
int vf_make_flag_steps(const struct vf *vf);
/*
 * Are the arithmetic flags dead where the stub @p leads in the original? Without @carry, CF may be live. The work for the
 * stubs of one function is limited by the size of the function.
 * Return: 0, or -EBADMSG with a message: they may be read, or it takes too long to find out.
 */
int vf_check_flags(const struct vf *vf, const struct mp_map_piece *p, bool carry);

/* Fill vf->stubs.returned, if the output has counters. Return: 0, -ENOMEM, or a refusal. */
int vf_read_returned_flags(struct vf *vf);

#endif
