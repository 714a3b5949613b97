// SPDX-License-Identifier: Apache-2.0
/* words - a state machine over the characters of a command; see words.h. */
#include "daemon/policy/words.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Reads the word at *@text to @to, and moves *@text behind it. Return: 0, -EINVAL. */
static int read_word(const char **text, char *to, struct mp_err *err)
{
	const char *at = *text;
	char quote = 0;

	for (; *at && (quote || !is_blank(*at)); at++) {
		if (quote ? *at == quote : *at == '\'' || *at == '"') {
			quote = quote ? 0 : *at;
			continue;
		}
		if (*at == '\\' && quote != '\'') {
			if (!at[1])
				return mp_err_set(err, EINVAL, "a backslash at the end");
			at++;
		}
		*to++ = *at;
	}
	if (quote)
		return mp_err_set(err, EINVAL, "a %c without its end", quote);
	*to = 0;
	*text = at;
	return 0;
}

int md_words_split(const char *text, char ***out, struct mp_err *err)
{
	size_t len = strlen(text), nr = 0;
	/* A word takes a character and a blank. */
	char **words = calloc(len / 2 + 2, sizeof(*words)), *word = malloc(len + 1);
	int ret = words && word ? 0 : mp_err_set(err, ENOMEM, "out of memory");

	while (!ret) {
		while (is_blank(*text))
			text++;
		if (!*text)
			break;
		ret = read_word(&text, word, err);
		if (!ret && !(words[nr++] = strdup(word)))
			ret = mp_err_set(err, ENOMEM, "out of memory");
	}
	if (!ret && !nr)
		ret = mp_err_set(err, EINVAL, "no command");
	free(word);
	if (ret) {
		md_words_free(words);
		return ret;
	}
	*out = words;
	return 0;
}

void md_words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}
