// SPDX-License-Identifier: Apache-2.0
/* numbered_limit - keeps the number of pieces of a numbered output within a limit. Called by
 * optimize. */
#include "editor/instrument/numbered_limit.h"

#include <errno.h>
#include <stdlib.h>

/* Upper estimate of copies and stubs per block; programs have 1.4 to 1.6. */
#define PIECES_PER_BLOCK 2

struct place {
	double runs; /* executed instructions */
	uint32_t func;
};

static int compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->runs != y->runs)
		return x->runs < y->runs ? 1 : -1;
	return x->func < y->func ? -1 : x->func > y->func;
}

static double runs_of(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t func)
{
	const struct mp_func *f = &cfg->funcs[func];
	double sum = 0;

	for (uint32_t b = f->first_block; counts && b < f->first_block + f->nr_blocks; b++)
		sum += counts->block[b] * cfg->blocks[b].nr_insns;
	return sum;
}

int me_numbered_limit_apply(const struct mp_cfg *cfg, const struct mp_counts *counts,
			    uint64_t max_pieces, uint8_t *movable, const char **detail)
{
	struct place *places = malloc(((size_t)cfg->nr_funcs + 1) * sizeof(*places));
	uint64_t pieces = 0;
	uint32_t nr = 0;

	if (!places)
		return -ENOMEM;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (movable[f])
			places[nr++] = (struct place){runs_of(cfg, counts, f), f};
	qsort(places, nr, sizeof(*places), compare);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t func = places[i].func;
		uint64_t more = PIECES_PER_BLOCK * (uint64_t)cfg->funcs[func].nr_blocks;

		if (pieces + more <= max_pieces) {
			pieces += more;
			continue;
		}
		movable[func] = 0;
		detail[func] = "not numbered: other functions use all the space";
	}
	free(places);
	return 0;
}
