// SPDX-License-Identifier: Apache-2.0
/* options - see options.h. */
#include "libprof/cli/options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libprof/base/settings.h"
#include "libprof/cli/args.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/since.h"
#include "libprof/cli/stdio.h"

/* Keys of options without a letter. */
#define FIRST_KEY 256
/* Of a command, with those of other tables. */
#define OPTIONS_MAX 64

/* ---- values -------------------------------------------------------------------------------- */

double mp_options_number(struct argp_state *state, const char *name, const char *arg, double low,
			 double high)
{
	struct mp_err err = {""};
	double value = low;

	if (mp_settings_number(arg, low, high, false, &value, &err))
		argp_error(state, "--%s=%s: %s", name, arg, err.msg);
	return value;
}

unsigned long mp_options_count(struct argp_state *state, const char *name, const char *arg)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(arg, &end, 10);
	if (errno || *end || end == arg || *arg == '-')
		argp_error(state, "--%s: '%s' is not a number", name, arg);
	return value;
}

/* "a, b or c" */
static void join(const char *const *words, char *buf, size_t size)
{
	size_t used = 0;

	for (const char *const *word = words; *word && used < size; word++)
		if (**word)
			used += (size_t)snprintf(buf + used, size - used, "%s%s",
						 !used	   ? ""
						 : word[1] ? ", "
							   : " or ",
						 *word);
}

static int find_word(struct argp_state *state, const struct mp_option *o, const char *arg)
{
	char all[256] = "";

	for (int i = 0; o->words[i]; i++)
		if (*arg && !strcmp(arg, o->words[i]))
			return i;
	join(o->words, all, sizeof(all));
	argp_error(state, "--%s=%s: not %s", o->name, arg, all);
	return 0;
}

static void take(const struct mp_option *o, char *arg, struct argp_state *state, void *options)
{
	void *at = (char *)options + o->at;
	char *end;

	switch (o->kind) {
	case MP_OPTION_FLAG: *(bool *)at = true; return;
	case MP_OPTION_TEXT: *(const char **)at = arg; return;
	case MP_OPTION_NUMBER:
		*(double *)at = mp_options_number(state, o->name, arg, o->low, o->high);
		return;
	case MP_OPTION_COUNT: *(uint64_t *)at = mp_options_count(state, o->name, arg); return;
	case MP_OPTION_LIMIT:
		*(long *)at = strtol(arg, &end, 10);
		if (*end || end == arg || *(long *)at < 1)
			argp_error(state, "--%s=%s: not a number above 0", o->name, arg);
		return;
	case MP_OPTION_TIME:
		if (mp_since_parse(arg, time(NULL), at))
			argp_error(state, "--%s=%s: not a time: " MP_SINCE_FORMATS, o->name, arg);
		return;
	case MP_OPTION_WORD: *(int *)at = find_word(state, o, arg); return;
	case MP_OPTION_SET: o->set(o, options, arg, state); return;
	case MP_OPTION_HEAD: return;
	}
}

/* ---- the command line ---------------------------------------------------------------------- */

struct line {
	const struct mp_usage *usage;
	void *options, *shared;
	const struct mp_option **list; /* of all tables */
	int nr;
};

static void take_word(const struct line *line, char *arg, struct argp_state *state)
{
	const struct mp_usage *usage = line->usage;
	const char **one = (const char **)((char *)line->options + usage->argument);
	struct mp_words *all = (struct mp_words *)((char *)line->options + usage->words);

	if (usage->word) {
		usage->word(line->options, arg, state);
	} else if (usage->words) {
		all->list = state->argv + state->next - 1;
		all->nr = state->argc - state->next + 1;
		state->next = state->argc;
		if (all->nr > usage->most)
			argp_error(state, "%s: too many arguments", all->list[usage->most]);
	} else {
		if (!usage->argument || *one)
			argp_error(state, "%s: too many arguments", arg);
		*one = arg;
	}
}

static void check(const struct line *line, struct argp_state *state)
{
	const struct mp_usage *usage = line->usage;
	char *options = line->options;

	if (usage->words ? ((struct mp_words *)(options + usage->words))->nr < usage->least
			 : usage->argument && usage->lacking &&
				   !*(const char **)(options + usage->argument))
		argp_error(state, "%s", usage->lacking);
	if (usage->check)
		usage->check(options, state);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const struct line *line = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		if (line->usage->shared)
			state->child_inputs[0] = line->shared;
		return 0;
	case ARGP_KEY_ARG: take_word(line, arg, state); return 0;
	case ARGP_KEY_END: check(line, state); return 0;
	default: break;
	}
	for (int i = 0; i < line->nr; i++) {
		const struct mp_option *o = line->list[i];

		if (o->kind == MP_OPTION_HEAD || key != (o->letter ? o->letter : FIRST_KEY + i))
			continue;
		take(o, arg, state, line->options);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void describe(const struct mp_option *o, int i, struct argp_option *out)
{
	if (o->kind == MP_OPTION_HEAD)
		*out = (struct argp_option){.doc = o->name, .group = o->group};
	else
		*out = (struct argp_option){.name = o->name,
					    .key = o->letter ? o->letter : FIRST_KEY + i,
					    .arg = o->value,
					    .flags = (o->doc ? 0 : OPTION_HIDDEN) |
						     (o->optional ? OPTION_ARG_OPTIONAL : 0),
					    .doc = o->doc,
					    .group = o->group};
}

static void collect(struct line *line, const struct mp_option *table)
{
	for (; table && table->name; table++, line->nr++) {
		if (line->nr == OPTIONS_MAX) {
			fprintf(stderr, "%s: too many options\n", program_invocation_short_name);
			exit(MP_EXIT_FAILED);
		}
		line->list[line->nr] = table;
	}
}

void mp_options_read(const struct mp_usage *usage, int argc, char **argv, void *options,
		     void *shared)
{
	const struct argp_child children[] = {{usage->shared, 0, NULL, 0}, {0}};
	const struct mp_option *list[OPTIONS_MAX];
	struct argp_option described[OPTIONS_MAX + 1] = {0};
	struct argp argp = {described,		parse, usage->arguments, usage->doc, children,
			    usage->help_filter, NULL};
	struct line line = {usage, options, shared, list, 0};

	collect(&line, usage->options);
	for (const struct mp_option *const *more = usage->more; more && *more; more++)
		collect(&line, *more);
	for (int i = 0; i < line.nr; i++)
		describe(list[i], i, &described[i]);
	mp_args_parse(&argp, argc, argv, usage->in_order ? ARGP_IN_ORDER : 0, &line);
	mp_stdio_parsed();
}
