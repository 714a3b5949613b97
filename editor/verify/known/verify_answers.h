// SPDX-License-Identifier: Apache-2.0
/*
 * verify_answers - proves that an output answers for copies when the program asks which function
 * encloses an address.
 */
#ifndef ME_VERIFY_ANSWERS_H
#define ME_VERIFY_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Find what code does with the import @name. */
void vf_find_uses(const struct vf *vf, const char *name, struct vf_uses *uses);
/* Find, and recognise, the section of the code that answers for copies. */
const struct mp_section *vf_answers(const struct vf *vf);
bool vf_is_answers_section(const struct vf *vf, const struct mp_section *sec);
/* Is the byte at @vaddr one of a call or jump that leads to this code now? *@next: behind that. */
bool vf_is_question(const struct vf *vf, uint64_t vaddr, uint64_t *next);
/* Check the code, its table, and all questions. Call after the pointers were checked. */
int vf_check_answers(const struct vf *vf);

#endif
