// SPDX-License-Identifier: Apache-2.0
/*
 * context_age - which of the activations that look old are old? Called by readers of trees.
 *
 * A loop that calls a function again from the same place makes an activation that looks old. Between two
 * samples of a thread, an activation that was on the stack ended with some probability, its rate:
 *
 *  least: the samples show that it ended, since another activation stands in its place or none does
 *  most:  also those endings that cannot be seen, if what a sample sees did not depend on the last one:
 *	a new activation then looks the same as often as the activation's share of its caller's samples
 *
 * Samples alone cannot tell rates between the two apart: an activation that lasts for many samples, with
 * pauses that are shorter than the distance of samples, and one that is called anew for each sample look
 * the same. Where the number of calls is known, the mean length of an activation decides; elsewhere the
 * geometric mean of both bounds is taken.
 */
#ifndef MP_CONTEXT_AGE_H
#define MP_CONTEXT_AGE_H

#include "libprof/context/context_tree.h"

/* What a reader knows beside the tree. Each function may be NULL. */
struct mp_context_facts {
	/* Return: the start of the function at @key's address; 0: not known. */
	uint64_t (*function)(void *arg, const struct mp_context_key *key);
	/* Return: the number of calls that return to @key's address; 0: not known. */
	double (*calls)(void *arg, const struct mp_context_key *key);
	void *arg;
};

/* Of the activation that stands at a node. */
struct mp_context_rate {
	double least, most; /* bounds of the share that ended between two samples */
	double highest;	    /* more than that is unlikely, if the samples are a draw of many */
	double ends;	    /* estimate of the share */
	double same;	    /* probability that a new activation looks the same */
};

/* Return: 0, -ENOMEM. Ownership: free(*@out), which has an element for each node. */
int mp_context_rates(const struct mp_context_tree *tree, const struct mp_context_facts *facts,
		     struct mp_context_rate **out);

/*
 * Entries of a node, as samples see them: in how many of its samples the activation there had begun after
 * the thread's last sample. @least is certain; more than @most is unlikely.
 */
struct mp_context_entries {
	double least, estimate, most;
};

/* Return: 0, -ENOMEM. Ownership: free(*@out), which has an element for each node. */
int mp_context_entries(const struct mp_context_tree *tree, const struct mp_context_rate *rates,
		       struct mp_context_entries **out);

#endif
