// SPDX-License-Identifier: Apache-2.0
/* build_options - see build_options.h. */
#include "daemon/fleet/builds/build_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The options of morph-optimize that a request may name, and whether a value follows the name. */
static const struct allowed {
	const char *name;
	bool value, no_profile;
} allowed[] = {
	{"layout", true, false},	 {"min-samples", true, false}, {"since", true, false},
	{"exact-profile", false, false}, {"all", false, true},	       {"skip", true, false},
	{"only", true, false},		 {"adjust", true, false},
};

static const char value_chars[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:+-=$~@";

static const struct allowed *find(const char *word)
{
	size_t size;

	if (strncmp(word, "--", 2) != 0)
		return NULL;
	word += 2;
	size = strcspn(word, "=");
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		const struct allowed *a = &allowed[i];

		if (strlen(a->name) != size || strncmp(a->name, word, size) != 0)
			continue;
		/* @FILE would be read by the builder. */
		if (!a->value)
			return word[size] ? NULL : a;
		return word[size] && word[size + 1] && word[size + 1] != '@' &&
				       word[size + 1 + strspn(word + size + 1, value_chars)] == '\0'
			       ? a
			       : NULL;
	}
	return NULL;
}

int md_build_options_parse(const char *text, struct md_build_options *out, struct mp_err *err)
{
	char *save = NULL;

	*out = (struct md_build_options){0};
	if (strlen(text) >= sizeof(out->text))
		return mp_err_set(err, EINVAL, "the options are longer than %zu characters",
				  sizeof(out->text) - 1);
	strcpy(out->text, text);
	for (char *word = strtok_r(out->text, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		const struct allowed *a = find(word);

		if (!a)
			return mp_err_set(err, EINVAL, "%s: no option for a build", word);
		if (out->nr == MD_BUILD_WORDS_MAX)
			return mp_err_set(err, EINVAL, "more than %d options", MD_BUILD_WORDS_MAX);
		out->words[out->nr++] = word;
		out->no_profile |= a->no_profile;
	}
	return 0;
}

int md_build_options_join(char *const *words, size_t nr, struct md_build_options *out,
			  char text[1001], struct mp_err *err)
{
	size_t size = 0;

	text[0] = '\0';
	for (size_t i = 0; i < nr; i++) {
		int n = snprintf(text + size, 1001 - size, "%s%s", i ? " " : "", words[i]);

		if (strchr(words[i], ' ') || !words[i][0])
			return mp_err_set(err, EINVAL, "%s: no option for a build", words[i]);
		size += (size_t)n;
		if (size > 1000)
			return mp_err_set(err, EINVAL,
					  "the options are longer than 1000 characters");
	}
	return md_build_options_parse(text, out, err);
}
