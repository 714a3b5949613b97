// SPDX-License-Identifier: Apache-2.0
/* cli_adjust - reads --adjust: functions that the user places otherwise than the counts suggest. */
#include <argp.h>

#include "editor/cli/cli.h"
#include "editor/layout/adjust_text.h"

/*
 * Appends the words of @arg to @words, and checks their form. Which functions they name is found
 * out when the file has been read.
 */
static void set_adjust(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	struct me_words *words = &((struct me_cli *)options)->options.adjust_words;
	struct mp_err err = {""};
	size_t i = words->nr, name_len;
	struct me_adjust wish;
	bool from_file;
	int rc = me_words_add(words, arg, &err);

	for (; i < words->nr && !rc; i++)
		rc = me_adjust_parse(me_words_text(words, i, &from_file), &name_len, &wish, &err);
	if (rc)
		argp_error(state, "--%s: %s", o->name, err.msg);
}

const struct mp_option me_cli_adjust_options[] = {
	MP_SET("adjust", 0, set_adjust, "FUNCTION:HOW,...|@FILE",
	       "Place these functions otherwise than the counts suggest: start=N, loop=N: the copy, or its "
	       "hottest loop, begins N bytes (0 to 63) behind the start of a cache line; order=original: "
	       "its blocks keep their order; end: behind all other hot functions; stay: not copied; "
	       "wait=N, for tests: so many nops in each round of that loop"),
	MP_OPTIONS_END};
