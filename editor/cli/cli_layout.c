// SPDX-License-Identifier: Apache-2.0
/*
 * cli_layout - reads --layout, and --lab, which also has what only tests and experiments use: --help does not
 * print it, Documentation/contributing.md does.
 */
#include <argp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/cli/cli.h"

static bool set_line(struct me_cli *cli, const char *value)
{
	static const struct {
		const char *value;
		uint8_t log2;
	} lines[] = {{"0", 0}, {"32", 5}, {"64", 6}};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strcmp(value, lines[i].value)) {
			cli->options.layout.line_log2 = lines[i].log2;
			return true;
		}
	return false;
}

static bool set_blocks(struct me_cli *cli, const char *value)
{
	return !me_order_parse(value, &cli->options.layout.block_order);
}

static bool set_functions(struct me_cli *cli, const char *value)
{
	struct me_layout_options *layout = &cli->options.layout;

	layout->choose_functions = !strcmp(value, "auto");
	return layout->choose_functions || !mp_order_parse(value, &layout->function_order);
}

static bool set_estimator(struct me_cli *cli, const char *value)
{
	static const char *const names[] = {[MP_ESTIMATE_SCALED] = "scaled",
					    [MP_ESTIMATE_POISSON] = "poisson",
					    [MP_ESTIMATE_PATHS] = "paths"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(value, names[i])) {
			cli->options.estimator = (enum mp_estimator)i;
			return true;
		}
	return false;
}

/* The report in JSON has signed integers. */
static bool read_seed(const char *value, uint64_t *seed)
{
	return me_cli_to_number(value, seed) && *seed <= INT64_MAX;
}

static bool set_stress_layout(struct me_cli *cli, const char *value)
{
	cli->options.all = cli->options.stress = true;
	return read_seed(value, &cli->options.stress_seed);
}

static bool set_stress_inline(struct me_cli *cli, const char *value)
{
	cli->options.layout.inline_leaves = cli->options.stress_inline = true;
	return read_seed(value, &cli->options.stress_inline_seed);
}

static bool set_list_patches(struct me_cli *cli, const char *value)
{
	cli->patch_list = value;
	return *value;
}

static bool set_kind(struct me_cli *cli, const char *value)
{
	cli->options.counting.edges = false;
	cli->options.counting.none = true;
	return !strcmp(value, "none");
}

/* Keys with a value. */
static const struct setting {
	const char *key, *values, *lab_values; /* NULL: only in --lab, or no others there */
	bool (*set)(struct me_cli *cli, const char *value);
} settings[] = {
	{"blocks", "ph or original", "exttsp", set_blocks},
	{"functions", "auto, ph or original", "cds", set_functions},
	{"line", NULL, "0, 32 or 64", set_line},
	{"estimator", NULL, "paths, poisson or scaled", set_estimator},
	{"stress-layout", NULL, "a number below 2^63", set_stress_layout},
	{"stress-inline", NULL, "a number below 2^63", set_stress_inline},
	{"list-patches", NULL, "a file", set_list_patches},
	{"kind", NULL, "none", set_kind},
};

/* Keys without a value. */
static const struct flag {
	const char *key;
	size_t at; /* in struct me_layout_options */
	bool value, lab;
} flags[] = {
	{"huge-pages", offsetof(struct me_layout_options, huge_pages), true, false},
	{"original", offsetof(struct me_layout_options, original), true, false},
	{"no-tails", offsetof(struct me_layout_options, no_tails), true, true},
	{"no-slots", offsetof(struct me_layout_options, slots), false, true},
	{"no-inline", offsetof(struct me_layout_options, inline_leaves), false, true},
};

static bool set_value(struct argp_state *state, struct me_cli *cli, bool lab, const char *key,
		      const char *value)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		const struct setting *s = &settings[i];

		if (strcmp(key, s->key) || (!lab && !s->values))
			continue;
		if (!value || (!lab && !strcmp(value, s->lab_values ? s->lab_values : "")) ||
		    !s->set(cli, value))
			argp_error(state, "--%s: '%s' is not %s", lab ? "lab" : "layout",
				   value ? value : "", s->values ? s->values : s->lab_values);
		return true;
	}
	return false;
}

static bool set_flag(struct me_layout_options *layout, bool lab, const char *key)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(key, flags[i].key) || (flags[i].lab && !lab))
			continue;
		*(bool *)((char *)layout + flags[i].at) = flags[i].value;
		return true;
	}
	return false;
}

static void set_one(struct argp_state *state, struct me_cli *cli, bool lab, char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	if (!set_value(state, cli, lab, word, value) &&
	    (value || !set_flag(&cli->options.layout, lab, word)))
		argp_error(state, "--%s: '%s' is not blocks=, functions=, huge-pages or original",
			   lab ? "lab" : "layout", word);
}

/* Values are kept, and @arg is a part of the command line, which stays. */
static void set_words(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	char *word;

	while ((word = strsep(&arg, ",")))
		set_one(state, options, !o->doc, word);
}

const struct mp_option me_cli_layout_options[] = {
	MP_SET("layout", 0, set_words, "KEY[=VALUE],...",
	       "blocks=ph (default), blocks=original; functions=auto (default), functions=ph, "
	       "functions=original: the order of blocks, of functions; huge-pages: align the new code for "
	       "pages of 2 MiB; original, with instrument --kind=meter: move only what holds counters, in its old order"),
	MP_SET("lab", 0, set_words, "KEY[=VALUE],...", NULL), MP_OPTIONS_END};
