// SPDX-License-Identifier: Apache-2.0
/* execute - what one instruction that falls through does to registers and flags. */
#ifndef MP_FORESEE_EXECUTE_PRIVATE_H
#define MP_FORESEE_EXECUTE_PRIVATE_H

#include "libprof/foresee/operand_private.h"

/* The run-time address to which a call or jump through its operand leads. Return: false: not known. */
bool mp_target_read(const struct mp_processor *p, const struct mp_decoded *d, uint64_t *target);
/* Executes @d, which falls through. What does not follow from what is known becomes unknown. */
void mp_execute(struct mp_processor *p, const struct mp_decoded *d);

/* @value: NULL: not known. */
void mp_push(struct mp_processor *p, const uint64_t *value);
/* Return: false: the value is not known. */
bool mp_pop(struct mp_processor *p, uint64_t *value);

/*
 * Parts of mp_execute(), named for what the instruction does. Return: false: the result is not known, and nothing has
 * changed.
 */
bool mp_push_operand(struct mp_processor *p, const struct mp_decoded *d);
bool mp_pop_operand(struct mp_processor *p, const struct mp_decoded *d);
bool mp_leave(struct mp_processor *p, const struct mp_decoded *d);
/* mul, imul, div and idiv of one operand. */
bool mp_multiply_wide(struct mp_processor *p, const struct mp_decoded *d, bool is_signed);
bool mp_divide(struct mp_processor *p, const struct mp_decoded *d, bool is_signed);
bool mp_bit_test(struct mp_processor *p, const struct mp_decoded *d);
bool mp_bit_find(struct mp_processor *p, const struct mp_decoded *d);
bool mp_bit_count(struct mp_processor *p, const struct mp_decoded *d);
bool mp_byte_swap(struct mp_processor *p, const struct mp_decoded *d);

#endif
