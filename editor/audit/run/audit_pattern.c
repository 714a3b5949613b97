// SPDX-License-Identifier: Apache-2.0
/* audit_pattern - compiles the expression, and reads the number that it finds. */
#include "editor/audit/run/audit_pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char stderr_prefix[] = "stderr:";

static const char *pattern_body(const char *text)
{
	size_t len = sizeof(stderr_prefix) - 1;

	return strncmp(text, stderr_prefix, len) ? text : text + len;
}

bool me_pattern_is(const char *text)
{
	const char *body = pattern_body(text);
	size_t len = strlen(body);

	return len >= 2 && body[0] == '/' && body[len - 1] == '/';
}

int me_pattern_parse(struct me_pattern *pattern, const char *text, struct mp_err *err)
{
	const char *body = pattern_body(text);
	char *expression, why[200];
	int code;

	memset(pattern, 0, sizeof(*pattern));
	if (!me_pattern_is(text))
		return mp_err_set(err, EINVAL, "'%s' is not /REGEX/ or stderr:/REGEX/", text);
	/* Exports print the pattern in one line. */
	for (const char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			return mp_err_set(err, EINVAL, "'%s': holds a control character", text);
	expression = strndup(body + 1, strlen(body) - 2);
	if (!expression)
		return mp_err_set(err, ENOMEM, "out of memory");
	code = regcomp(&pattern->regex, expression, REG_EXTENDED | REG_NEWLINE);
	free(expression);
	if (code) {
		regerror(code, &pattern->regex, why, sizeof(why));
		return mp_err_set(err, EINVAL, "'%s': %s", text, why);
	}
	if (!pattern->regex.re_nsub) {
		regfree(&pattern->regex);
		return mp_err_set(err, EINVAL,
				  "'%s': no group in parentheses says where the number is", text);
	}
	pattern->text = text;
	pattern->from_stderr = body != text;
	return 0;
}

void me_pattern_fini(struct me_pattern *pattern)
{
	if (pattern->text)
		regfree(&pattern->regex);
	pattern->text = NULL;
}

static int pattern_read(const struct me_pattern *pattern, const char *digits, double *number,
			struct mp_err *err)
{
	char *end;

	*number = strtod(digits, &end);
	/* strtod() also reads hexadecimal numbers, "inf" and "nan". */
	if (end == digits || *end || digits[strspn(digits, "+-.0123456789eE")])
		return mp_err_set(err, EINVAL, "%s: '%.60s' is not a number", pattern->text,
				  digits);
	if (*number <= 0)
		return mp_err_set(err, ERANGE, "%s: '%.60s' is not above 0", pattern->text, digits);
	if (!(*number >= ME_PATTERN_MIN && *number <= ME_PATTERN_MAX))
		return mp_err_set(err, ERANGE, "%s: '%.60s' is not from %g to %g", pattern->text,
				  digits, ME_PATTERN_MIN, ME_PATTERN_MAX);
	return 0;
}

int me_pattern_number(const struct me_pattern *pattern, const char *output, size_t size,
		      double *number, struct mp_err *err)
{
	regmatch_t match[2] = {{.rm_so = 0, .rm_eo = (regoff_t)size}};
	char *digits;
	int ret;

	/* REG_STARTEND: the output may hold zero bytes, and does not end in one. */
	if (regexec(&pattern->regex, output ? output : "", 2, match, REG_STARTEND))
		return mp_err_set(err, ENOENT, "nothing in %s (%zu bytes) matches %s",
				  pattern->from_stderr ? "standard error" : "standard output", size,
				  pattern->text);
	if (match[1].rm_so < 0)
		return mp_err_set(err, ENOENT, "%s: the first group matches nothing",
				  pattern->text);
	digits = strndup(output + match[1].rm_so, (size_t)(match[1].rm_eo - match[1].rm_so));
	if (!digits)
		return mp_err_set(err, ENOMEM, "out of memory");
	ret = pattern_read(pattern, digits, number, err);
	free(digits);
	return ret;
}
