// SPDX-License-Identifier: Apache-2.0
/* stats_calls - the rows of "query --by=context", --callers and --callees. Called by stats_query. */
#ifndef MD_STATS_CALLS_H
#define MD_STATS_CALLS_H

#include "daemon/stats/stats.h"

enum md_calls_what {
	MD_CALLS_CONTEXTS,
	MD_CALLS_CALLERS,
	MD_CALLS_CALLEES,
};

struct md_calls_query {
	enum md_calls_what what;
	const char *function;		      /* of CALLERS and CALLEES */
	const struct md_stats_filter *filter; /* of programs */
	int64_t since_s, start_s;
	long limit;	      /* rows; 0: all */
	double percent_limit; /* below 0: 1 % of contexts, all callers and callees */
};

/* Prints the rows of an opened store. Return: exit status. */
int md_stats_calls(struct md_cli *cli, struct mp_store *store, const struct md_calls_query *query);
/* For md_calls_read(): prints a message about a file, and adds it to the JSON array @arg. */
void md_stats_note_file(void *arg, const char *message);

#endif
