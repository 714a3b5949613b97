// SPDX-License-Identifier: Apache-2.0
/* shell_words - prints words in a form that a shell reads back. */
#include "editor/base/shell_words.h"

#include <string.h>

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			    "_-+=./:,@%";

void me_shell_word(FILE *out, const char *word)
{
	if (*word && !word[strspn(word, plain)]) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", out);
		else
			fputc(*word, out);
	}
	fputc('\'', out);
}

void me_shell_words(FILE *out, char *const *argv)
{
	for (; *argv; argv++) {
		fputc(' ', out);
		me_shell_word(out, *argv);
	}
}
