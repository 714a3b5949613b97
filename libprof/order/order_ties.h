// SPDX-License-Identifier: Apache-2.0
/*
 * order_ties - weighted ties between groups that are merged two by two.
 *
 * A priority queue for order_ph; knows nothing of functions and their order.
 */
#ifndef MP_ORDER_TIES_H
#define MP_ORDER_TIES_H

#include <stdbool.h>
#include <stdint.h>

struct mp_ties;

/* For groups 0 .. @nr_groups - 1. Return: 0, -ENOMEM. Ownership: mp_ties_free(), takes NULL. */
int mp_ties_new(uint32_t nr_groups, uint32_t nr_ties, struct mp_ties **out);
void mp_ties_free(struct mp_ties *ties);

/*
 * mp_ties_add - add @weight to the tie of @a and @b. @pair is the caller's number for the origin
 * of the weight; a tie keeps the smallest number that was added.
 * Return: 0, -ENOMEM.
 */
int mp_ties_add(struct mp_ties *ties, uint32_t a, uint32_t b, double weight, uint32_t pair);

/* The heaviest tie. Fold @b into @a, which has more ties. Return: false: no tie is left. */
bool mp_ties_heaviest(struct mp_ties *ties, uint32_t *a, uint32_t *b, uint32_t *pair);

/* Makes group @b part of @a, with all ties of @b. Return: 0, -ENOMEM. */
int mp_ties_fold(struct mp_ties *ties, uint32_t a, uint32_t b);

#endif
