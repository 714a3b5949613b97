// SPDX-License-Identifier: Apache-2.0
/* adjust_text - reads and writes the text of adjustments. Called by optimize, and by the command
 * line and the report of morph-optimize. */
#include "editor/layout/adjust_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct form {
	const char *text; /* ends in = if a number follows */
	uint8_t kind;
} forms[] = {
	{"start=", ME_ADJUST_START},
	{"loop=", ME_ADJUST_LOOP},
	{"order=original", ME_ADJUST_ORIGINAL},
	{"end", ME_ADJUST_END},
	{"stay", ME_ADJUST_STAY},
	{"wait=", ME_ADJUST_WAIT},
};

/* Reads a number without sign or spaces, of at most four digits. */
static bool parse_bytes(const char *text, uint16_t *bytes)
{
	unsigned int value = 0;
	size_t len = strspn(text, "0123456789");

	if (!len || len > 4 || text[len])
		return false;
	for (; *text; text++)
		value = 10 * value + (unsigned int)(*text - '0');
	*bytes = (uint16_t)value;
	return true;
}

static bool parse_how(const char *how, struct me_adjust *out)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t len = strlen(forms[i].text);

		out->kind = forms[i].kind;
		if (forms[i].text[len - 1] != '=' && !strcmp(how, forms[i].text))
			return true;
		if (forms[i].text[len - 1] == '=' && !strncmp(how, forms[i].text, len))
			return parse_bytes(how + len, &out->bytes);
	}
	return false;
}

int me_adjust_parse(const char *text, size_t *name_len, struct me_adjust *out, struct mp_err *err)
{
	const char *colon = strrchr(text, ':');
	struct me_adjustment alone = {0};

	*out = (struct me_adjust){0};
	if (!colon || colon == text)
		return mp_err_set(err, EINVAL, "'%s' is not FUNCTION:HOW", text);
	*name_len = (size_t)(colon - text);
	if (!parse_how(colon + 1, out) || me_adjustment_add(&alone, out->kind, out->bytes))
		return mp_err_set(err, EINVAL, "'%s' is not " ME_ADJUST_FORMS " (N from 1 to %d)",
				  colon + 1, ME_ADJUST_WAIT_MAX);
	return 0;
}

char *me_adjust_format(const struct me_adjustment *adjustment, enum me_adjust_kind kind,
		       char buf[ME_ADJUST_TEXT_MAX])
{
	const char *text = "";

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (forms[i].kind == kind)
			text = forms[i].text;
	if (*text && text[strlen(text) - 1] == '=')
		snprintf(buf, ME_ADJUST_TEXT_MAX, "%s%u", text,
			 (unsigned int)adjustment->bytes[kind]);
	else
		snprintf(buf, ME_ADJUST_TEXT_MAX, "%s", text);
	return buf;
}
