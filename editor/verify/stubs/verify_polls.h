// SPDX-License-Identifier: Apache-2.0
/* verify_polls - checks the code of an output that can be polled for its paths. */
#ifndef ME_VERIFY_POLLS_H
#define ME_VERIFY_POLLS_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Check instructions that poll, or note a number, at @at in the stub @p. Return: their length;
 * 0: they do something else; negative: refused. */
int vf_check_poll(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at);
int vf_check_note(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at);

#endif
