// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_context - any bytes as a tree of calling contexts, plain or packed: refused, or read, written in both
 * forms and read again, added to itself and folded, with sums that stay exact. Its rates are probabilities, and the bounds of
 * its entries are in order.
 */
#include "libprof/context/context_codec.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/context/context_age.h"
#include "libprof/context/context_pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int (*write_fn)(const struct mp_context_tree *tree, uint8_t **out, size_t *size);

static void check_written(const struct mp_context_tree *tree, write_fn write)
{
	struct mp_context_tree again;
	uint8_t *first, *second;
	size_t size_first, size_second;

	if (write(tree, &first, &size_first) ||
	    mp_context_decode(first, size_first, &again, NULL) ||
	    again.nr_nodes != tree->nr_nodes || again.nodes[0].total != tree->nodes[0].total ||
	    again.nodes[0].total_ns != tree->nodes[0].total_ns)
		abort();
	if (write(&again, &second, &size_second) || size_first != size_second ||
	    memcmp(first, second, size_first))
		abort();
	mp_context_tree_fini(&again);
	free(first);
	free(second);
}

static uint64_t function(void *arg, const struct mp_context_key *key)
{
	(void)arg;
	return key->vaddr & ~UINT64_C(15);
}

static double calls(void *arg, const struct mp_context_key *key)
{
	(void)arg;
	return (double)(key->vaddr % 7);
}

static void check_ages(const struct mp_context_tree *tree)
{
	const struct mp_context_facts facts = {.function = function, .calls = calls};
	struct mp_context_rate *rates;
	struct mp_context_entries *entries;

	if (mp_context_rates(tree, &facts, &rates) || mp_context_entries(tree, rates, &entries))
		abort();
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		if (!(rates[i].ends >= 0 && rates[i].ends <= 1 && rates[i].same >= 0 &&
		      rates[i].same <= 1) ||
		    !isfinite(entries[i].most) || entries[i].least > entries[i].most)
			abort();
	}
	free(rates);
	free(entries);
}

static void check_folded(struct mp_context_tree *tree)
{
	uint64_t total = tree->nodes[0].total, time_ns = tree->nodes[0].total_ns;

	while (tree->nr_nodes > 2) {
		if (mp_context_fold(tree, tree->nr_nodes / 2) || tree->nodes[0].total != total ||
		    tree->nodes[0].total_ns != time_ns)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_context_tree tree, sum;

	if (mp_context_decode(data, size, &tree, NULL))
		return 0;
	check_written(&tree, mp_context_encode);
	check_written(&tree, mp_context_pack);
	check_ages(&tree);
	if (mp_context_tree_init(&sum) || mp_context_add_tree(&sum, 0, &tree, NULL, NULL))
		abort();
	if (!mp_context_add_tree(&sum, 0, &tree, NULL, NULL) &&
	    sum.nodes[0].total != 2 * tree.nodes[0].total)
		abort();
	mp_context_tree_fini(&sum);
	check_folded(&tree);
	mp_context_tree_fini(&tree);
	return 0;
}
