// SPDX-License-Identifier: Apache-2.0
/*
 * print - chooses the functions that are printed, and holds the words that print_*.c share; see
 * print.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/print/print_private.h"

static const char *const names[ME_NR_PRINTS] = {
	[ME_PRINT_CFG] = "cfg",
	[ME_PRINT_COUNTS] = "counts",
	[ME_PRINT_PLAN] = "plan",
	[ME_PRINT_PLACE] = "place",
};

int me_print_parse(struct me_print_options *options, const char *text, struct mp_err *err)
{
	size_t len = strcspn(text, ":");
	int what = 0;

	while (what < ME_NR_PRINTS &&
	       (strlen(names[what]) != len || strncmp(text, names[what], len)))
		what++;
	if (what == ME_NR_PRINTS)
		return mp_err_set(err, EINVAL, "'%s' is not cfg, counts, plan or place", text);
	options->on[what] = true;
	if (!text[len])
		return 0;
	if (!text[len + 1])
		return mp_err_set(err, EINVAL, "'%s': which function?", text);
	return me_words_add(&options->functions[what], text + len + 1, err);
}

void me_print_fini(struct me_print_options *options)
{
	for (int what = 0; what < ME_NR_PRINTS; what++)
		me_words_fini(&options->functions[what]);
}

/* ---- which functions ---------------------------------------------------------------------- */

/* Chooses the functions with blocks in the plan: no others change. */
static void choose_planned(const struct me_print *data, unsigned char *chosen)
{
	memset(chosen, 0, data->cfg->nr_funcs);
	for (uint32_t i = 0; i < data->plan->nr_blocks; i++)
		chosen[data->cfg->blocks[data->plan->blocks[i].block].func] = 1;
}

static int choose(const struct me_print_options *options, enum me_print_what what,
		  const struct me_print *data, unsigned char *chosen, struct mp_err *err)
{
	const struct me_words *words = &options->functions[what];

	if (words->nr)
		return me_select_functions(data->cfg, words, chosen, err);
	if (what == ME_PRINT_PLAN || what == ME_PRINT_PLACE)
		choose_planned(data, chosen);
	else
		memset(chosen, 1, data->cfg->nr_funcs);
	return 0;
}

static void index_fini(struct me_print_index *index)
{
	free(index->first);
	free(index->copy);
}

static int index_init(const struct me_print *data, struct me_print_index *index)
{
	const struct mp_cfg *cfg = data->cfg;
	size_t nr_funcs = (size_t)cfg->nr_funcs + 1, nr_blocks = (size_t)cfg->nr_blocks + 1;

	*index = (struct me_print_index){0};
	if (!data->plan)
		return 0;
	index->first = malloc(nr_funcs * sizeof(*index->first));
	index->copy = malloc(nr_blocks * sizeof(*index->copy));
	if (!index->first || !index->copy)
		return -ENOMEM;
	memset(index->first, 0xff, nr_funcs * sizeof(*index->first));
	memset(index->copy, 0xff, nr_blocks * sizeof(*index->copy));
	for (uint32_t i = 0; i < data->plan->nr_blocks; i++) {
		const struct me_plan_block *planned = &data->plan->blocks[i];
		uint32_t *first = &index->first[cfg->blocks[planned->block].func][planned->zone];

		if (*first == MP_NONE)
			*first = i;
		if (!planned->stub && !planned->clone)
			index->copy[planned->block] = i;
	}
	return 0;
}

static void print_function(const struct me_print_options *options, enum me_print_what what,
			   const struct me_print *data, const struct me_print_index *index,
			   uint32_t func)
{
	if (options->dot)
		me_print_dot(options->out, what, data, index, func);
	else if (what == ME_PRINT_CFG)
		me_print_cfg(options->out, data, func);
	else if (what == ME_PRINT_COUNTS)
		me_print_counts(options->out, data, func);
	else if (what == ME_PRINT_PLAN)
		me_print_plan(options->out, data, index, func);
	else
		me_print_place(options->out, data, index, func);
}

int me_print(const struct me_print_options *options, enum me_print_what what,
	     const struct me_print *data, struct mp_err *err)
{
	struct me_print_index index;
	unsigned char *chosen;
	int rc;

	if (!options || !options->on[what] || (what == ME_PRINT_COUNTS && !data->counts))
		return 0;
	chosen = calloc((size_t)data->cfg->nr_funcs + 1, 1);
	rc = index_init(data, &index) || !chosen ? mp_err_set(err, ENOMEM, "out of memory") : 0;
	if (!rc)
		rc = choose(options, what, data, chosen, err);
	for (uint32_t f = 0; f < data->cfg->nr_funcs && !rc; f++)
		if (chosen[f])
			print_function(options, what, data, &index, f);
	free(chosen);
	index_fini(&index);
	if (!rc && ferror(options->out))
		rc = mp_err_set(err, EIO, "--print: cannot be written");
	return rc;
}
