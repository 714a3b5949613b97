// SPDX-License-Identifier: Apache-2.0
/* verify_threads - checks an output whose threads have their own counters. */
#ifndef ME_VERIFY_THREADS_H
#define ME_VERIFY_THREADS_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* If threads have their own counters, check that the original does not use %gs. Needs the scan. */
int vf_check_gs(const struct vf *vf);
/* Check the instructions at @at in the stub @p that make sure the thread has its counters.
 * Return: their length; 0: they do something else; negative: refused. */
int vf_check_thread(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		    uint64_t at);

/* Return: the address of the call in the check of the stub @p, at which the stack pointer is lower; 0: there is none. */
uint64_t vf_thread_call(const struct vf *vf, const struct mp_map_piece *p);

#endif
