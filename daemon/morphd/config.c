// SPDX-License-Identifier: Apache-2.0
/* config - parses settings; see config.h. */
#include "daemon/morphd/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/source/source.h"

/* No sensible file is that large; a file that was named by mistake often is. */
#define FILE_MAX_BYTES 65536

static const char *const key_names[MD_NR_CONFIG] = {
	[MD_CONFIG_SOURCE] = "source",	   [MD_CONFIG_RATE] = "rate",
	[MD_CONFIG_INTERVAL] = "interval", [MD_CONFIG_NO_KERNEL] = "no-kernel",
	[MD_CONFIG_DATABASE] = "database", [MD_CONFIG_REGISTERS] = "registers",
};

const char *md_config_key_name(enum md_config_key key)
{
	return key_names[key];
}

void md_config_init(struct md_config *config)
{
	*config = (struct md_config){.source = "auto", .interval_s = 10};
}

static int set_number(const char *text, double low, double high, bool whole, double *out,
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

int md_config_set(struct md_config *config, enum md_config_key key, const char *value,
		  struct mp_err *err)
{
	double number = 0;
	int ret = 0;

	switch (key) {
	case MD_CONFIG_SOURCE:
		if (strcmp(value, "auto") && !md_source_find(value))
			return mp_err_set(err, EINVAL, "not kmod, bpf, perf, replay or auto");
		snprintf(config->source, sizeof(config->source), "%s", value);
		break;
	case MD_CONFIG_RATE:
		if (strcmp(value, "auto"))
			ret = set_number(value, 1, 100000, true, &number, err);
		if (!ret)
			config->rate_hz = (uint32_t)number;
		break;
	case MD_CONFIG_INTERVAL:
		ret = set_number(value, 0.001, 86400, false, &config->interval_s, err);
		break;
	case MD_CONFIG_NO_KERNEL:
		if (strcmp(value, "yes") && strcmp(value, "no"))
			return mp_err_set(err, EINVAL, "neither yes nor no");
		config->no_kernel = !strcmp(value, "yes");
		break;
	case MD_CONFIG_DATABASE:
		if (!value[0])
			return mp_err_set(err, EINVAL, "an empty name");
		if (strlen(value) >= sizeof(config->database))
			return mp_err_set(err, EINVAL, "the name is too long");
		snprintf(config->database, sizeof(config->database), "%s", value);
		break;
	case MD_CONFIG_REGISTERS:
		if (strcmp(value, "paths") && strcmp(value, "no"))
			return mp_err_set(err, EINVAL, "neither paths nor no");
		config->registers = strcmp(value, "no") ? MORPH_REGS_PATHS : 0;
		break;
	case MD_NR_CONFIG: return mp_err_set(err, EINVAL, "no such key");
	}
	if (!ret)
		config->given[key] = true;
	return ret;
}

void md_config_override(struct md_config *config, const struct md_config *by)
{
	if (by->given[MD_CONFIG_SOURCE])
		memcpy(config->source, by->source, sizeof(config->source));
	if (by->given[MD_CONFIG_RATE])
		config->rate_hz = by->rate_hz;
	if (by->given[MD_CONFIG_INTERVAL])
		config->interval_s = by->interval_s;
	if (by->given[MD_CONFIG_NO_KERNEL])
		config->no_kernel = by->no_kernel;
	if (by->given[MD_CONFIG_DATABASE])
		memcpy(config->database, by->database, sizeof(config->database));
	if (by->given[MD_CONFIG_REGISTERS])
		config->registers = by->registers;
}

bool md_config_needs_source(const struct md_config *now, const struct md_config *then)
{
	return strcmp(now->source, then->source) || now->rate_hz != then->rate_hz ||
	       now->no_kernel != then->no_kernel || now->registers != then->registers;
}

/* ---- the file ----------------------------------------------------------------------------- */

static const char blanks[] = " \t\r\n\v\f";

/* Cuts blanks at both ends. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, blanks);
	len = strlen(text);
	while (len && strchr(blanks, text[len - 1]))
		len--;
	text[len] = 0;
	return text;
}

static int find_key(const char *name)
{
	int key;

	for (key = 0; key < MD_NR_CONFIG; key++)
		if (!strcmp(name, key_names[key]))
			return key;
	return -ENOENT;
}

/* Adds file, line and key to the message of md_config_set(). */
static int refuse(struct mp_err *err, const char *path, unsigned int line, const char *key,
		  const char *why)
{
	return mp_err_set(err, EINVAL, "%s:%u: %.40s%s%s", path, line, key, key[0] ? ": " : "",
			  why);
}

static int take_line(const char *path, unsigned int line, char *text, struct md_config *config,
		     unsigned int *lines, struct mp_err *err)
{
	struct mp_err why = {{0}};
	char *name = trim(text), *value = strchr(name, '=');
	int key;

	if (!name[0] || name[0] == '#')
		return 0;
	if (!value || value == name)
		return refuse(err, path, line, "", "a line is `key = value', or begins with #");
	*value++ = 0;
	name = trim(name);
	value = trim(value);
	key = find_key(name);
	if (key < 0)
		return refuse(
			err, path, line, name,
			"no such key; the keys are source, rate, interval, no-kernel, database "
			"and registers");
	if (lines[key])
		return mp_err_set(err, EINVAL, "%s:%u: %s: already set in line %u", path, line,
				  name, lines[key]);
	lines[key] = line;
	if (!value[0])
		return refuse(err, path, line, name, "no value");
	if (md_config_set(config, key, value, &why))
		return mp_err_set(err, EINVAL, "%s:%u: %s = %.40s: %s", path, line, name, value,
				  why.msg);
	if (key == MD_CONFIG_SOURCE && !strcmp(value, "replay"))
		return refuse(err, path, line, name,
			      "only the command line can choose replay, with --input");
	if (key == MD_CONFIG_DATABASE && value[0] != '/')
		return refuse(err, path, line, name, "the path must begin with /");
	return 0;
}

/* @text has @size bytes and a closing 0; it is modified. */
static int take_text(const char *path, char *text, size_t size, struct md_config *config,
		     struct mp_err *err)
{
	unsigned int lines[MD_NR_CONFIG] = {0}, line;
	char *end;
	int ret = 0;

	for (line = 1; !ret && size; line++) {
		end = memchr(text, '\n', size);
		if (!end)
			end = text + size;
		size -= end - text;
		size -= size > 0;
		if (memchr(text, 0, end - text))
			return refuse(err, path, line, "", "not text");
		*end = 0;
		ret = take_line(path, line, text, config, lines, err);
		text = end + 1;
	}
	return ret;
}

int md_config_read(const char *path, struct md_config *out, struct mp_err *err)
{
	struct md_config config;
	FILE *f = fopen(path, "re");
	char *text = malloc(FILE_MAX_BYTES + 2);
	size_t size;
	int ret = 0;

	if (!f)
		ret = mp_err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	else if (!text)
		ret = mp_err_set(err, ENOMEM, "%s: no memory", path);
	if (ret)
		goto out;
	size = fread(text, 1, FILE_MAX_BYTES + 1, f);
	if (ferror(f))
		ret = mp_err_set(err, errno, "%s: cannot read: %s", path, strerror(errno));
	else if (size > FILE_MAX_BYTES)
		ret = mp_err_set(err, EINVAL, "%s: too long for a configuration", path);
	if (ret)
		goto out;
	text[size] = 0;
	md_config_init(&config);
	ret = take_text(path, text, size, &config, err);
	if (!ret)
		*out = config;
out:
	free(text);
	if (f)
		fclose(f);
	return ret;
}
