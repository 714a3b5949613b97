// SPDX-License-Identifier: Apache-2.0
/*
 * activation_output - adds up the counts of activations.c and writes them. Included in its middle, as it
 * uses its tables.
 */
#ifndef MORPH_TESTS_ACTIVATION_OUTPUT_H
#define MORPH_TESTS_ACTIVATION_OUTPUT_H

/* Executions of branches, and those that went the way that is less likely. */
struct sum {
	uint64_t total, taken; /* taken: of one branch */
	uint64_t unlikely;     /* if the likely way is the same for all activations */
	uint64_t by_site;      /* if it is chosen for each call site */
	uint64_t one_site;     /* less, if it is chosen for one call site, and for all others */
};

static uint64_t smaller(uint64_t total, uint64_t taken)
{
	return taken < total - taken ? taken : total - taken;
}

static uint32_t branch_of(const struct pair *p)
{
	return (uint32_t)p->key;
}

static uint32_t site_of(const struct pair *p)
{
	return (uint32_t)(p->key >> 32);
}

/* By function, then by call site. */
static int pair_compare(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	uint32_t fx = g.functions[branch_of(x)], fy = g.functions[branch_of(y)];

	if (fx != fy)
		return fx < fy ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

/* Moves the pairs to the front of their table, and sorts them. Return: their number. */
static size_t pairs_sort(struct pair *pairs, size_t nr_slots)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_slots; i++)
		if (pairs[i].key)
			pairs[nr++] = pairs[i];
	qsort(pairs, nr, sizeof(*pairs), pair_compare);
	return nr;
}

static void sum_branches(const struct pair *pairs, size_t nr, struct sum *branches,
			 struct sum *functions)
{
	for (size_t i = 0; i < nr; i++) {
		struct sum *b = &branches[branch_of(&pairs[i])];

		b->total += pairs[i].total;
		b->taken += pairs[i].taken;
		b->by_site += smaller(pairs[i].total, pairs[i].taken);
	}
	for (uint32_t i = 1; i <= g.nr_places; i++) {
		const struct sum *b = &branches[i];
		struct sum *f = &functions[g.functions[i]];

		f->total += b->total;
		f->unlikely += smaller(b->total, b->taken);
		f->by_site += b->by_site;
	}
}

/* Finds the call site for which a copy of the function saves most. */
static void sum_one_site(const struct pair *pairs, size_t nr, const struct sum *branches,
			 struct sum *functions)
{
	for (size_t i = 0, end; i < nr; i = end) {
		struct sum *f = &functions[g.functions[branch_of(&pairs[i])]];
		uint64_t gain = 0;

		for (end = i;
		     end < nr && site_of(&pairs[end]) == site_of(&pairs[i]) &&
		     g.functions[branch_of(&pairs[end])] == g.functions[branch_of(&pairs[i])];
		     end++) {
			const struct pair *p = &pairs[end];
			const struct sum *b = &branches[branch_of(p)];

			gain += smaller(b->total, b->taken) - smaller(p->total, p->taken) -
				smaller(b->total - p->total, b->taken - p->taken);
		}
		f->one_site = gain > f->one_site ? gain : f->one_site;
	}
}

static void pairs_add(struct vcpu *sum, const struct vcpu *v)
{
	for (size_t i = 0; i < v->nr_slots; i++) {
		struct pair *p;

		if (!v->pairs[i].key)
			continue;
		if (2 * sum->nr_pairs >= sum->nr_slots)
			pairs_grow(sum);
		p = pair_slot(sum, v->pairs[i].key);
		sum->nr_pairs += !p->key;
		p->key = v->pairs[i].key;
		p->total += v->pairs[i].total;
		p->taken += v->pairs[i].taken;
	}
	sum->saves += v->saves;
	sum->in_vain += v->in_vain;
	sum->whole += v->whole;
	for (uint32_t f = 0; f <= known.nr_functions; f++)
		sum->in_vain_of[f] += v->in_vain_of[f];
	sum->activations += v->activations;
	sum->lost += v->lost;
}

/*
 * branches_print - writes lines `FUNCTION SITE BRANCH TOTAL TAKEN' about the main program's branches: the
 * number of the function, the addresses of call site and branch in memory, and counts.
 */
static void branches_print(FILE *out, struct vcpu *v)
{
	uint64_t *addresses = need(calloc(g.nr_places + 1u, sizeof(*addresses)));

	for (uint32_t i = 0; i < g.nr_slots; i++)
		addresses[g.place_ids[i]] = g.places[i];
	addresses[0] = 0;
	for (size_t i = 0; i < v->nr_slots; i++) {
		const struct pair *p = &v->pairs[i];

		if (p->key)
			fprintf(out, "%u %#" PRIx64 " %#" PRIx64 " %" PRIu64 " %" PRIu64 "\n",
				g.functions[branch_of(p)], addresses[site_of(p)],
				addresses[branch_of(p)], p->total, p->taken);
	}
	free(addresses);
}

/*
 * results_print - writes lines `NAME COUNT' about the main program's code:
 *   activations	calls of its functions
 *   lost		returns to no known call, of all files
 *   saves		registers that activations pushed before they used them
 *   in-vain		those of them that the activation did not use afterwards either
 *   in-vain-whole	the same in activations that use none of the registers that they saved
 *   branches		executed conditional branches
 *   unlikely		those that went the way that this branch goes less often
 *   unlikely-by-site	the same, if the likely way is chosen for each call site of the function
 * and for each function where one of these is not 0: saves in vain, the difference of the last two, and
 * this difference if the likely way is chosen for one call site of the function, and for all others
 *   function ENTRY IN-VAIN DIFFERENCE ONE-SITE
 * Changes @v.
 */
static void results_print(FILE *out, struct vcpu *v)
{
	struct sum *branches = need(calloc(g.nr_places + 1u, sizeof(*branches)));
	struct sum *functions = need(calloc(known.nr_functions + 1u, sizeof(*functions)));
	size_t nr = pairs_sort(v->pairs, v->nr_slots);
	struct sum all = {0};

	sum_branches(v->pairs, nr, branches, functions);
	sum_one_site(v->pairs, nr, branches, functions);
	for (uint32_t f = 0; f <= known.nr_functions; f++) {
		all.total += functions[f].total;
		all.unlikely += functions[f].unlikely;
		all.by_site += functions[f].by_site;
	}
	fprintf(out, "activations %" PRIu64 "\nlost %" PRIu64 "\nsaves %" PRIu64 "\n",
		v->activations, v->lost, v->saves);
	fprintf(out, "in-vain %" PRIu64 "\nin-vain-whole %" PRIu64 "\n", v->in_vain, v->whole);
	fprintf(out, "branches %" PRIu64 "\nunlikely %" PRIu64 "\nunlikely-by-site %" PRIu64 "\n",
		all.total, all.unlikely, all.by_site);
	for (size_t i = 0; i < known.nr_codes; i++) {
		const struct code *c = &known.codes[i];
		const struct sum *f = &functions[c->function];
		uint64_t gain = f->unlikely - f->by_site;

		if (c->start == c->entry && (gain || v->in_vain_of[c->function]))
			fprintf(out, "function %#" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
				c->entry, v->in_vain_of[c->function], gain, f->one_site);
	}
	free(branches);
	free(functions);
}

#endif
