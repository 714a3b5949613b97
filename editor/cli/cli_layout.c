// SPDX-License-Identifier: Apache-2.0
/*
 * cli_layout - reads --layout, which collects the choices for experiments with layouts.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/cli/cli.h"

enum key {
	KEY_LAYOUT = 0x100,
};

static const struct argp_option layout_options[] = {
	{"layout", KEY_LAYOUT, "KEY[=VALUE],...", 0,
	 "Choices for experiments: blocks=ph (default), blocks=exttsp, blocks=original; "
	 "functions=auto (default), functions=ph, functions=cds, functions=original; line=64 "
	 "(default), line=32, line=0: keep runs of hot code in lines of so many bytes;"
	 " no-tails: copy no short way out twice; no-slots: copies call functions of libraries through "
	 "stubs, as before; no-inline: no code of a leaf function replaces calls of it; "
	 "huge-pages: align the new code for pages of 2 MiB",
	 0},
	{0}};

static bool set_line(struct me_layout_options *layout, const char *value)
{
	static const struct {
		const char *value;
		uint8_t log2;
	} lines[] = {{"0", 0}, {"32", 5}, {"64", 6}};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strcmp(value, lines[i].value)) {
			layout->line_log2 = lines[i].log2;
			return true;
		}
	return false;
}

static bool set_blocks(struct me_layout_options *layout, const char *value)
{
	return !me_order_parse(value, &layout->block_order);
}

static bool set_functions(struct me_layout_options *layout, const char *value)
{
	layout->choose_functions = !strcmp(value, "auto");
	return layout->choose_functions || !mp_order_parse(value, &layout->function_order);
}

/* Keys with a value. */
static const struct {
	const char *key, *values;
	bool (*set)(struct me_layout_options *layout, const char *value);
} settings[] = {
	{"blocks", "ph, exttsp or original", set_blocks},
	{"functions", "auto, ph, cds or original", set_functions},
	{"line", "0, 32 or 64", set_line},
};

/* Keys without a value. Return: false: no such key. */
static bool set_flag(struct me_layout_options *layout, const char *key)
{
	if (!strcmp(key, "no-tails"))
		layout->no_tails = true;
	else if (!strcmp(key, "no-slots"))
		layout->slots = false;
	else if (!strcmp(key, "no-inline"))
		layout->inline_leaves = false;
	else if (!strcmp(key, "huge-pages"))
		layout->huge_pages = true;
	else
		return false;
	return true;
}

static void set_one(struct argp_state *state, struct me_layout_options *layout, char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strcmp(word, settings[i].key))
			continue;
		if (!value || !settings[i].set(layout, value))
			argp_error(state, "--layout: '%s' is not %s", value ? value : "",
				   settings[i].values);
		return;
	}
	if (value || !set_flag(layout, word))
		argp_error(state,
			   "--layout: '%s' is not blocks=, functions=, line=, no-tails, no-slots, "
			   "no-inline or huge-pages",
			   word);
}

void me_cli_layout(struct argp_state *state, struct me_layout_options *layout, const char *arg)
{
	char *words = strdup(arg), *rest = words, *word;

	if (!words)
		argp_failure(state, EXIT_FAILURE, 0, "out of memory");
	while ((word = strsep(&rest, ",")))
		set_one(state, layout, word);
	free(words);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct me_cli *cli = state->input;

	switch (key) {
	case KEY_LAYOUT: me_cli_layout(state, &cli->options.layout, arg); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp me_cli_layout_argp = {layout_options, parse, NULL, NULL, NULL, NULL, NULL};
