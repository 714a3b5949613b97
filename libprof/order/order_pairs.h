// SPDX-License-Identifier: Apache-2.0
/*
 * order_pairs - pairs of linked groups: their links, and the pair with the highest worth.
 *
 * For layouts that join groups two by two and compute the worth of joins anew as groups change.
 * The caller decides the worth of a pair.
 */
#ifndef MP_ORDER_PAIRS_H
#define MP_ORDER_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#define MP_PAIRS_NONE UINT32_MAX

/* Open for reading. Links of a pair: first_link, then next_link[] of struct mp_pairs. */
struct mp_pair {
	uint32_t a, b; /* groups */
	uint32_t first_link, last_link;
	double gain;
	uint32_t version; /* how often it was rated */
	bool gone;
};

struct mp_pairs {
	struct mp_pair *pairs;
	uint32_t nr_pairs;
	uint32_t *next_link; /* per link, MP_PAIRS_NONE: the last of its pair */
	struct mp_pairs_list *lists;
	struct mp_pairs_entry *heap;
	uint32_t *mark;
	uint32_t nr_groups, nr_heap, max_heap;
};

struct mp_pairs_link {
	uint32_t a, b; /* groups, in either order */
};

/* Makes a pair of each two groups with a link between them. Return: 0, -ENOMEM.
 * Ownership: mp_pairs_fini(), after an error as well. */
int mp_pairs_init(struct mp_pairs *pairs, uint32_t nr_groups, const struct mp_pairs_link *links,
		  uint32_t nr_links);
void mp_pairs_fini(struct mp_pairs *pairs);

/* Sets the worth of @pair. A pair of 0 or less is never the best. Return: 0, -ENOMEM. */
int mp_pairs_rate(struct mp_pairs *pairs, uint32_t pair, double gain);

/* Takes the pair with the highest worth out of the queue until it is rated again; on a tie the
 * pair that was made first. Return: MP_PAIRS_NONE: no pair has positive worth. */
uint32_t mp_pairs_best(struct mp_pairs *pairs);

/* Makes group @b part of @a. Pairs of both with the same third group become one, with the links of
 * @b last. No pair is rated again. Return: 0, -ENOMEM. */
int mp_pairs_fold(struct mp_pairs *pairs, uint32_t a, uint32_t b);

/* The pairs of @group: skip those with .gone. @ids is valid until the next fold. */
uint32_t mp_pairs_of(const struct mp_pairs *pairs, uint32_t group, const uint32_t **ids);

#endif
