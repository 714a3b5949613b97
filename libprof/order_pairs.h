// SPDX-License-Identifier: Apache-2.0
/*
 * order_pairs - which pairs of groups are linked, by which links, and which pair is worth most.
 *
 * For layouts that join groups two by two where the worth of joining must be worked out anew as
 * groups change; what a pair is worth, the caller decides.
 */
#ifndef MP_ORDER_PAIRS_H
#define MP_ORDER_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#define MP_PAIRS_NONE UINT32_MAX

/* Of a pair: read freely. Its links: first_link, then next_link[] (struct mp_pairs). */
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

/* The pairs that at least one of @links lies between. Return: 0, -ENOMEM (then too
 * mp_pairs_fini() is right). */
int mp_pairs_init(struct mp_pairs *pairs, uint32_t nr_groups, const struct mp_pairs_link *links,
		  uint32_t nr_links);
void mp_pairs_fini(struct mp_pairs *pairs);

/* @pair is worth @gain from now on; of 0 and less it is never the best. Return: 0, -ENOMEM. */
int mp_pairs_rate(struct mp_pairs *pairs, uint32_t pair, double gain);

/* The pair worth most, of equals the first made; MP_PAIRS_NONE: no pair is worth anything. It is
 * out of the queue then until it is rated again. */
uint32_t mp_pairs_best(struct mp_pairs *pairs);

/* Group @b becomes part of @a; pairs of the two with a third are one now, links of @b's behind. None
 * is rated anew. Return: 0, -ENOMEM. */
int mp_pairs_fold(struct mp_pairs *pairs, uint32_t a, uint32_t b);

/* The pairs of @group: those for which .gone is false. @ids is valid until the next fold. */
uint32_t mp_pairs_of(const struct mp_pairs *pairs, uint32_t group, const uint32_t **ids);

#endif
