// SPDX-License-Identifier: Apache-2.0
/* screen - runs the rows of a design; see screen.h. */
#include "editor/refine/screen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void me_screen_shuffle(uint64_t *state, unsigned int *order, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		order[i] = i;
	for (unsigned int i = nr; i > 1; i--) {
		unsigned int k, swap;

		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		k = (unsigned int)(*state % i);
		swap = order[i - 1];
		order[i - 1] = order[k];
		order[k] = swap;
	}
}

static int wishes_of_row(const struct me_screen *s, unsigned int row, struct me_wishes *out)
{
	int rc = me_wishes_copy(out, s->wishes);

	for (size_t i = 0; i < s->nr && !rc; i++) {
		unsigned int level = me_design_level(row, (unsigned int)i);

		if (level)
			rc = me_wishes_replace(out, &s->levels[i].wish[level]);
	}
	return rc;
}

/* Makes and samples the version of one row. Nothing left to move is the original. */
static int run_row(struct me_screen *s, unsigned int row, uint64_t *counts, struct mp_err *err)
{
	const struct me_runner *runner = s->options->runner;
	struct me_sampled sampled = {.counts = counts};
	struct me_wishes wishes = {0};
	char name[32];
	const char *version = name;
	bool made = false;
	int rc = wishes_of_row(s, row, &wishes);

	snprintf(name, sizeof(name), "row-%u", row);
	if (rc) {
		rc = mp_err_code(err, -rc);
	} else if (me_wishes_equal(&wishes, s->wishes)) {
		version = s->version;
	} else {
		rc = runner->make(runner->arg, &wishes, false, name, err);
		made = !rc;
	}
	if (rc == -ENODATA) {
		version = NULL;
		rc = 0;
	}
	memset(counts, 0, s->options->nr_funcs * sizeof(*counts));
	if (!rc)
		rc = runner->sample(runner->arg, version, &sampled, err);
	for (size_t i = 0; i < s->nr; i++)
		s->own[i][row] = (double)counts[s->funcs[i]];
	s->whole[row] = (double)sampled.whole;
	if (made)
		runner->drop(runner->arg, name);
	me_wishes_fini(&wishes);
	return rc;
}

int me_screen_run(struct me_screen *s, uint64_t *state, struct mp_err *err)
{
	const struct me_runner *runner = s->options->runner;
	uint64_t *counts = calloc(s->options->nr_funcs + 1, sizeof(*counts));
	unsigned int order[ME_DESIGN_ROWS];
	int rc = counts ? 0 : mp_err_set(err, ENOMEM, "out of memory");

	me_screen_shuffle(state, order, ME_DESIGN_ROWS);
	for (unsigned int i = 0; i < ME_DESIGN_ROWS && !rc; i++) {
		char what[80];

		snprintf(what, sizeof(what), "trying other places of %zu function%s: run %u of %d",
			 s->nr, s->nr == 1 ? "" : "s", i + 1, ME_DESIGN_ROWS);
		runner->say(runner->arg, what);
		rc = run_row(s, order[i], counts, err);
	}
	for (size_t i = 0; i < s->nr && !rc; i++)
		s->chosen[i] = me_design_choose(s->own[i], s->whole, (unsigned int)i);
	free(counts);
	return rc;
}
