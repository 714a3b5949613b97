// SPDX-License-Identifier: Apache-2.0
/* settings - lines `name = value'; see settings.h. */
#include "libprof/base/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No sensible file is that large; a file that was named by mistake often is. */
#define FILE_MAX_BYTES 65536

static const char blanks[] = " \t\r\n\v\f";

char *mp_settings_trim(char *text)
{
	size_t len;

	text += strspn(text, blanks);
	len = strlen(text);
	while (len && strchr(blanks, text[len - 1]))
		len--;
	text[len] = 0;
	return text;
}

int mp_settings_number(const char *text, double low, double high, bool whole, double *out,
		       struct mp_err *err)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	/* Check the range first: converting a number out of range to an integer is undefined. */
	if (errno || end == text || *end || !(value >= low && value <= high) ||
	    (whole && value != (double)(uint64_t)value))
		return mp_err_set(err, EINVAL, "not a %snumber from %g to %g",
				  whole ? "whole " : "", low, high);
	*out = value;
	return 0;
}

int mp_setting_refuse(const struct mp_setting *s, const char *why, struct mp_err *err)
{
	return mp_err_set(err, EINVAL, "%s:%u: %.40s%s%s", s->path, s->line, s->name,
			  s->name[0] ? ": " : "", why);
}

int mp_setting_refuse_value(const struct mp_setting *s, const char *why, struct mp_err *err)
{
	return mp_err_set(err, EINVAL, "%s:%u: %s = %.40s: %s", s->path, s->line, s->name, s->value,
			  why);
}

static int take_line(struct mp_setting *setting, char *text, mp_setting_take *take, void *arg,
		     struct mp_err *err)
{
	char *name = mp_settings_trim(text), *value = strchr(name, '=');

	setting->name = "";
	if (!name[0] || name[0] == '#')
		return 0;
	if (!value || value == name)
		return mp_setting_refuse(setting, "a line is `key = value', or begins with #", err);
	*value++ = 0;
	setting->name = mp_settings_trim(name);
	setting->value = mp_settings_trim(value);
	return take(setting, arg, err);
}

/* @text has @size bytes and a closing 0; it is modified. */
static int take_text(const char *path, char *text, size_t size, mp_setting_take *take, void *arg,
		     struct mp_err *err)
{
	struct mp_setting setting = {.path = path, .name = "", .value = ""};
	char *end;
	int ret = 0;

	while (!ret && size) {
		setting.line++;
		end = memchr(text, '\n', size);
		if (!end)
			end = text + size;
		size -= end - text;
		size -= size > 0;
		setting.name = "";
		if (memchr(text, 0, end - text))
			return mp_setting_refuse(&setting, "not text", err);
		*end = 0;
		ret = take_line(&setting, text, take, arg, err);
		text = end + 1;
	}
	return ret;
}

int mp_settings_read(FILE *file, const char *path, mp_setting_take *take, void *arg,
		     struct mp_err *err)
{
	char *text = malloc(FILE_MAX_BYTES + 2);
	size_t size;
	int ret;

	if (!text)
		return mp_err_set(err, ENOMEM, "%s: out of memory", path);
	size = fread(text, 1, FILE_MAX_BYTES + 1, file);
	text[size] = 0;
	if (ferror(file))
		ret = mp_err_set(err, errno, "%s: cannot read: %s", path, strerror(errno));
	else if (size > FILE_MAX_BYTES)
		ret = mp_err_set(err, EINVAL, "%s: too long for a configuration", path);
	else
		ret = take_text(path, text, size, take, arg, err);
	free(text);
	return ret;
}
