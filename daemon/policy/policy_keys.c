// SPDX-License-Identifier: Apache-2.0
/*
 * policy_keys - the keys of morph.conf and of rules: which there are, and what their values may be.
 * Called by policy for each line.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/policy/policy_private.h"
#include "daemon/policy/words.h"
#include "libprof/base/grow.h"

enum kind {
	KIND_MODE,
	KIND_YES_NO,
	KIND_NUMBER,   /* double */
	KIND_COUNT,    /* uint64_t */
	KIND_PERCENT,  /* double, 0.02 for 2 % */
	KIND_TIME,     /* double, seconds */
	KIND_SIZE,     /* uint64_t, bytes */
	KIND_USER,     /* char * */
	KIND_UNIT,     /* char * */
	KIND_WORDS,    /* char **, a command */
	KIND_PATTERNS, /* char **, one more for each line */
	KIND_NAMES,    /* char **, several in a line, and several lines */
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	double low, high;
};

#define MAIN(field) offsetof(struct md_policy, field)
#define RULE(field) offsetof(struct md_rule, field)

static const struct key main_keys[] = {
	{"mode", KIND_MODE, MAIN(mode), 0, 0},
	{"share", KIND_PERCENT, MAIN(share), 0, 100},
	{"only", KIND_PATTERNS, MAIN(only), 0, 0},
	{"exclude", KIND_PATTERNS, MAIN(excludes), 0, 0},
	{"counting", KIND_YES_NO, MAIN(counting), 0, 0},
	{"live", KIND_YES_NO, MAIN(live), 0, 0},
	{"cost", KIND_PERCENT, MAIN(cost), 0, 100},
	{"min-samples", KIND_COUNT, MAIN(min_samples), 1, 1e12},
	{"disk", KIND_SIZE, MAIN(disk_bytes), 0, 1e15},
	{"audit-time", KIND_TIME, MAIN(audit_s), 1, 86400},
	{"load", KIND_NUMBER, MAIN(max_load), 0, 1000},
	{"battery", KIND_YES_NO, MAIN(on_battery), 0, 0},
	{"busy", KIND_PERCENT, MAIN(busy_share), 0, 100},
	{"probation", KIND_TIME, MAIN(probation_s), 0, 86400 * 365.0},
	{"retry", KIND_TIME, MAIN(retry_s), 1, 86400 * 3650.0},
	{"retention", KIND_TIME, MAIN(retention_s), 86400, 86400 * 3650.0},
	{"ageing", KIND_PERCENT, MAIN(age_by), 1, 100},
	{"worse", KIND_PERCENT, MAIN(worse_by), 0.1, 1000},
};

static const struct key rule_keys[] = {
	{"program", KIND_PATTERNS, RULE(programs), 0, 0},
	{"package", KIND_NAMES, RULE(packages), 0, 0},
	{"mode", KIND_MODE, RULE(mode), 0, 0},
	{"train", KIND_WORDS, RULE(train), 0, 0},
	{"command", KIND_WORDS, RULE(command), 0, 0},
	{"instrument", KIND_YES_NO, RULE(instrument), 0, 0},
	{"live", KIND_YES_NO, RULE(live), 0, 0},
	{"user", KIND_USER, RULE(user), 0, 0},
	{"unit", KIND_UNIT, RULE(unit), 0, 0},
	{"audit-time", KIND_TIME, RULE(audit_s), 1, 86400},
};

#define NR_KEYS(keys) (sizeof(keys) / sizeof((keys)[0]))
_Static_assert(NR_KEYS(main_keys) <= MD_MAX_KEYS && NR_KEYS(rule_keys) <= MD_MAX_KEYS,
	       "lines[] has room for each");

/* ---- values ------------------------------------------------------------------------------- */

static int choose(const char *value, const char *const *words, const char *why, int *out,
		  struct mp_err *err)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(value, words[i])) {
			*out = i;
			return 0;
		}
	return mp_err_set(err, EINVAL, "%s", why);
}

static int set_choice(enum kind kind, const char *value, void *field, struct mp_err *err)
{
	static const char *const modes[] = {"advise", "adopt", NULL};
	static const char *const answers[] = {"no", "yes", NULL};
	int chosen = 0, ret;

	if (kind == KIND_MODE) {
		ret = choose(value, modes, "neither advise nor adopt", &chosen, err);
		if (!ret)
			*(enum md_policy_mode *)field = (enum md_policy_mode)chosen;
	} else {
		ret = choose(value, answers, "neither yes nor no", &chosen, err);
		if (!ret)
			*(bool *)field = chosen;
	}
	return ret;
}

/* Cuts the unit off @text, a copy. @units: characters, each with its factor. */
static double cut_unit(char *text, const char *units, const double *factors)
{
	size_t len = strlen(text);
	const char *unit = len > 1 ? strchr(units, text[len - 1]) : NULL;

	if (!unit)
		return 1;
	text[len - 1] = 0;
	return factors[unit - units];
}

static int set_number(const struct key *key, const char *value, void *field, struct mp_err *err)
{
	static const double times[] = {1, 60, 3600, 86400}, sizes[] = {1024, 1 << 20, 1 << 30};
	char text[64];
	double number, factor = 1;
	bool whole = key->kind == KIND_COUNT;
	int ret;

	if (snprintf(text, sizeof(text), "%s", value) >= (int)sizeof(text))
		return mp_err_set(err, EINVAL, "not a number");
	if (key->kind == KIND_TIME)
		factor = cut_unit(text, "smhd", times);
	else if (key->kind == KIND_SIZE)
		factor = cut_unit(text, "KMG", sizes);
	else if (key->kind == KIND_PERCENT)
		cut_unit(text, "%", (const double[]){1});
	ret = mp_settings_number(mp_settings_trim(text), key->low / factor, key->high / factor,
				 whole, &number, err);
	if (ret)
		return ret;
	if (key->kind == KIND_COUNT || key->kind == KIND_SIZE)
		*(uint64_t *)field = (uint64_t)(number * factor);
	else
		*(double *)field = key->kind == KIND_PERCENT ? number / 100 : number * factor;
	return 0;
}

static bool is_unit_name(const char *value)
{
	size_t len = strlen(value);

	return len > 8 && !strcmp(value + len - 8, ".service") &&
	       strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			     ":-_.\\@") == len &&
	       value[0] != '-';
}

static int set_text(enum kind kind, const char *value, char **field, struct mp_err *err)
{
	if (kind == KIND_USER && !getpwnam(value))
		return mp_err_set(err, EINVAL, "there is no such user");
	if (kind == KIND_UNIT && !is_unit_name(value))
		return mp_err_set(err, EINVAL, "not the name of a service");
	free(*field);
	*field = strdup(value);
	return *field ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

/* Appends a copy of @text to a vector that ends with NULL. Return: 0, -ENOMEM. */
static int append(char ***list, const char *text)
{
	size_t nr = 0;

	while (*list && (*list)[nr])
		nr++;
	if (mp_resize(*list, nr + 2))
		return -ENOMEM;
	(*list)[nr] = strdup(text);
	(*list)[nr + 1] = NULL;
	return (*list)[nr] ? 0 : -ENOMEM;
}

static int set_names(const char *value, char ***field, struct mp_err *err)
{
	char **words;
	int ret = md_words_split(value, &words, err);

	if (ret)
		return ret;
	for (size_t i = 0; !ret && words[i]; i++) {
		size_t len = strlen(words[i]);

		/* As dpkg allows: the name is part of the name of a file. */
		if (strspn(words[i], "abcdefghijklmnopqrstuvwxyz0123456789+-.:") != len ||
		    words[i][0] == '.')
			ret = mp_err_set(err, EINVAL, "not the name of a package");
		else if (append(field, words[i]))
			ret = mp_err_set(err, ENOMEM, "out of memory");
	}
	md_words_free(words);
	return ret;
}

static int set_command(const char *value, char ***field, struct mp_err *err)
{
	char **words;
	int ret = md_words_split(value, &words, err);

	if (!ret && words[0][0] != '/') {
		md_words_free(words);
		return mp_err_set(err, EINVAL, "the program of a command must begin with /");
	}
	if (!ret) {
		md_words_free(*field);
		*field = words;
	}
	return ret;
}

static int set(const struct key *key, const char *value, void *field, struct mp_err *err)
{
	switch (key->kind) {
	case KIND_MODE:
	case KIND_YES_NO: return set_choice(key->kind, value, field, err);
	case KIND_NUMBER:
	case KIND_COUNT:
	case KIND_PERCENT:
	case KIND_TIME:
	case KIND_SIZE: return set_number(key, value, field, err);
	case KIND_USER:
	case KIND_UNIT: return set_text(key->kind, value, field, err);
	case KIND_WORDS: return set_command(value, field, err);
	case KIND_NAMES: return set_names(value, field, err);
	case KIND_PATTERNS:
		if (value[0] != '/')
			return mp_err_set(err, EINVAL, "a pattern of paths must begin with /");
		return append(field, value) ? mp_err_set(err, ENOMEM, "out of memory") : 0;
	}
	return 0;
}

/* ---- lines -------------------------------------------------------------------------------- */

static bool may_repeat(enum kind kind)
{
	return kind == KIND_PATTERNS || kind == KIND_NAMES;
}

static int refuse_name(const struct mp_setting *s, const struct key *keys, size_t nr,
		       struct mp_err *err)
{
	char text[600] = "no such key; the keys are";

	for (size_t i = 0; i < nr; i++) {
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s %s", i ? "," : "", keys[i].name);
	}
	snprintf(
		text + strlen(text), sizeof(text) - strlen(text),
		"; cost limits what all work takes, morph-audit measures what a rule cannot describe, "
		"/usr/bin/env --chdir=DIR runs a command in a directory (before: directory = DIR), and core "
		"files are looked for where systemd keeps them (before: coredumps = DIR)");
	return mp_setting_refuse(s, text, err);
}

static int take(const struct mp_setting *s, const struct key *keys, size_t nr,
		struct md_policy_file *file, struct mp_err *err)
{
	struct mp_err why = {""};
	size_t i = 0;

	while (i < nr && strcmp(keys[i].name, s->name))
		i++;
	if (i == nr)
		return refuse_name(s, keys, nr, err);
	if (file->lines[i] && !may_repeat(keys[i].kind))
		return mp_err_set(err, EINVAL, "%s:%u: %s: already set in line %u", s->path,
				  s->line, s->name, file->lines[i]);
	file->lines[i] = s->line;
	if (!s->value[0])
		return mp_setting_refuse(s, "no value", err);
	if (set(&keys[i], s->value, (char *)file->into + keys[i].offset, &why))
		return mp_setting_refuse_value(s, why.msg, err);
	return 0;
}

int md_policy_take_main(const struct mp_setting *setting, void *arg, struct mp_err *err)
{
	return take(setting, main_keys, NR_KEYS(main_keys), arg, err);
}

int md_policy_take_rule(const struct mp_setting *setting, void *arg, struct mp_err *err)
{
	return take(setting, rule_keys, NR_KEYS(rule_keys), arg, err);
}

/* ---- a whole rule ------------------------------------------------------------------------- */

/* The line that set @name; 0: no line did. */
static unsigned int line_of(const struct md_policy_file *file, const char *name)
{
	for (size_t i = 0; i < NR_KEYS(rule_keys); i++)
		if (!strcmp(rule_keys[i].name, name))
			return file->lines[i];
	return 0;
}

static int refuse(const struct md_rule *rule, const struct md_policy_file *file, const char *key,
		  const char *why, struct mp_err *err)
{
	unsigned int line = line_of(file, key);

	return mp_err_set(err, EINVAL, "%s:%u: %s", rule->file, line ? line : 1, why);
}

int md_policy_check_rule(struct md_rule *rule, const struct md_policy_file *file,
			 struct mp_err *err)
{
	const char *other = rule->train ? "train" : rule->command ? "command" : NULL;

	rule->has_mode = line_of(file, "mode");
	rule->has_live = line_of(file, "live");
	if (!rule->programs && !rule->packages)
		return refuse(rule, file, "program", "neither program nor package", err);
	if (rule->instrument && other)
		return refuse(
			rule, file, other,
			"with instrument, everyday use trains and audits: neither train nor command",
			err);
	if (rule->live && (rule->instrument || other))
		return refuse(
			rule, file, "live",
			"with live, everyday use trains and decides: neither train, command nor instrument",
			err);
	rule->audit = rule->instrument ? MD_AUDIT_IN_PROCESS
		      : other	       ? MD_AUDIT_COMMAND
				       : MD_AUDIT_NONE;
	return 0;
}
