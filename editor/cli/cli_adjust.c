// SPDX-License-Identifier: Apache-2.0
/* cli_adjust - reads --adjust: functions that the user places otherwise than the counts suggest. */
#include <argp.h>

#include "editor/cli/cli.h"
#include "editor/layout/adjust_text.h"

enum key {
	KEY_ADJUST = 0x800,
};

static const struct argp_option adjust_options[] = {
	{"adjust", KEY_ADJUST, "FUNCTION:HOW,...|@FILE", 0,
	 "Place these functions otherwise than the counts suggest: start=N, loop=N: the copy, or its "
	 "hottest loop, begins N bytes (0 to 63) behind the start of a cache line; order=original: "
	 "its blocks keep their order; end: behind all other hot functions; stay: not copied; "
	 "wait=N, for tests: so many nops in each round of that loop",
	 1},
	{0}};

/*
 * Appends the words of @arg to @words, and checks their form. Which functions they name is found
 * out when the file has been read.
 */
static void read_adjust(struct argp_state *state, struct me_words *words, const char *arg)
{
	struct mp_err err = {""};
	size_t i = words->nr, name_len;
	struct me_adjust wish;
	bool from_file;
	int rc = me_words_add(words, arg, &err);

	for (; i < words->nr && !rc; i++)
		rc = me_adjust_parse(me_words_text(words, i, &from_file), &name_len, &wish, &err);
	if (rc)
		argp_error(state, "--adjust: %s", err.msg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct me_cli *cli = state->input;

	if (key != KEY_ADJUST)
		return ARGP_ERR_UNKNOWN;
	read_adjust(state, &cli->options.adjust_words, arg);
	return 0;
}

const struct argp me_cli_adjust_argp = {adjust_options, parse, NULL, NULL, NULL, NULL, NULL};
