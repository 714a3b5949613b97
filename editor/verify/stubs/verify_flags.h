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

/* Return: how many bytes of code follow from @at on: of its FDE, or of the code around it; 0: outside of all code. */
uint64_t vf_code_left(const struct vf *vf, uint64_t at);
/* Return: those of @flags, set before @vaddr of the original, that may be read from there on. *@steps grows by the work. */
uint32_t vf_flags_read(const struct vf *vf, uint64_t vaddr, uint32_t flags, uint64_t *steps);
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
