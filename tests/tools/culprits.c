// SPDX-License-Identifier: Apache-2.0
/*
 * culprits - names culprits from counts: how often does editor/refine/culprits.c name a function where
 * nothing changed? Used by scripts/bench/bench-refine. Input: one run a line, "0" or "1" (a run of the
 * version under test), then the samples of each function. Prints the function's number, its factor
 * and p, one culprit a line. usage: culprits ALPHA < COUNTS
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/refine/culprits.h"

enum {
	RUNS_MAX = 64
};

/* Return: the number of counts in @line, which are appended to *@counts. */
static size_t read_counts(char *line, uint64_t **counts, size_t have)
{
	size_t nr = 0;
	char *word, *rest = line;

	while ((word = strsep(&rest, " \n")))
		if (*word) {
			*counts = realloc(*counts, (have + nr + 1) * sizeof(**counts));
			if (!*counts)
				exit(1);
			(*counts)[have + nr++] = strtoull(word, NULL, 10);
		}
	return nr;
}

int main(int argc, char **argv)
{
	bool changed[RUNS_MAX];
	struct me_samples samples = {.changed = changed};
	struct me_culprit *culprits = NULL;
	uint64_t *counts = NULL;
	char *line = NULL;
	size_t size = 0, have = 0, nr = 0;

	while (samples.nr_runs < RUNS_MAX && getline(&line, &size, stdin) > 2) {
		changed[samples.nr_runs] = line[0] == '1';
		samples.nr_funcs = read_counts(line + 2, &counts, have);
		have += samples.nr_funcs;
		samples.nr_runs++;
	}
	samples.counts = counts;
	if (argc != 2 || have != samples.nr_runs * samples.nr_funcs ||
	    me_culprits_find(&samples, strtod(argv[1], NULL), &culprits, &nr)) {
		fputs("culprits: wrong input\n", stderr);
		return 1;
	}
	for (size_t i = 0; i < nr; i++)
		printf("%u %.3f %.3g\n", culprits[i].func, culprits[i].factor, culprits[i].p);
	free(culprits);
	free(counts);
	free(line);
	return 0;
}
