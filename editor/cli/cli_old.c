// SPDX-License-Identifier: Apache-2.0
/*
 * cli_old - spellings of older releases: modes that were options and are commands today. To be
 * removed one release after the commands came. Called by main().
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/cli/cli.h"

/* The words of a command line, with room for a command and its argument in front. */
struct line {
	char **words;
	int nr;
};

static bool names(const char *word, const char *option)
{
	size_t len = strlen(option);

	return !strncmp(word, option, len) && (!word[len] || word[len] == '=');
}

/* The index of the option, before any "--"; 0: it is not there. */
static int find(const struct line *line, const char *option)
{
	for (int i = 1; i < line->nr && strcmp(line->words[i], "--"); i++)
		if (names(line->words[i], option))
			return i;
	return 0;
}

static void take_out(struct line *line, int i)
{
	memmove(&line->words[i], &line->words[i + 1],
		(size_t)(line->nr - i) * sizeof(*line->words));
	line->nr--;
}

static void put_first(struct line *line, char *word)
{
	memmove(&line->words[2], &line->words[1], (size_t)line->nr * sizeof(*line->words));
	line->words[1] = word;
	line->nr++;
}

/* Takes the option at @i out. Return: its value; NULL: there is none. */
static char *take_value(struct line *line, int i)
{
	char *value = strchr(line->words[i], '=');

	take_out(line, i);
	if (value)
		return value + 1;
	value = line->words[i];
	if (value)
		take_out(line, i);
	return value;
}

/* "--@option=@value", in memory that is never freed. */
static char *option_of(const char *option, const char *value)
{
	char *word;

	if (asprintf(&word, "%s=%s", option, value) < 0) {
		fprintf(stderr, "morph-optimize: out of memory\n");
		exit(EXIT_FAILURE);
	}
	return word;
}

static void to_train(struct me_cli *cli, struct line *line, int at)
{
	int i;
	char *kind;

	take_out(line, at);
	i = find(line, "--instrument");
	kind = i ? take_value(line, i) : NULL;
	if (kind && strcmp(kind, "edges"))
		put_first(line,
			  option_of("--counters", strncmp(kind, "edges,", 6) ? kind : kind + 6));
	put_first(line, (char *)"train");
	me_cli_renamed(cli, "--train", "`morph-optimize train'");
}

static void to_instrument(struct me_cli *cli, struct line *line, int at)
{
	char *kind = take_value(line, at);

	if (kind)
		put_first(line, option_of("--kind", kind));
	put_first(line, (char *)"instrument");
	me_cli_renamed(cli, "--instrument", "`morph-optimize instrument'");
}

static void to_verify(struct me_cli *cli, struct line *line, int at)
{
	char *original = take_value(line, at);

	if (original)
		put_first(line, original);
	put_first(line, (char *)"verify");
	me_cli_renamed(cli, "--verify", "`morph-optimize verify'");
}

static void to_restore(struct me_cli *cli, struct line *line, int at)
{
	take_out(line, at);
	put_first(line, (char *)"restore");
	me_cli_renamed(cli, "--restore", "`morph-optimize restore'");
}

char **me_cli_modernize(struct me_cli *cli, int *argc, char **argv)
{
	static const struct {
		const char *option;
		void (*change)(struct me_cli *cli, struct line *line, int at);
	} modes[] = {
		{"--train", to_train},
		{"--restore", to_restore},
		{"--verify", to_verify},
		{"--instrument", to_instrument},
	};
	struct line line = {.nr = *argc};

	for (const struct me_cli_command *c = me_cli_commands; c->name; c++)
		if (*argc > 1 && !strcmp(argv[1], c->name))
			return argv;
	line.words = calloc((size_t)*argc + 3, sizeof(*argv));
	if (!line.words)
		return argv;
	memcpy(line.words, argv, (size_t)*argc * sizeof(*argv));
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		int at = find(&line, modes[i].option);

		if (!at)
			continue;
		modes[i].change(cli, &line, at);
		*argc = line.nr;
		return line.words;
	}
	free(line.words);
	return argv;
}
