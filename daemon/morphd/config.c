// SPDX-License-Identifier: Apache-2.0
/* config - parses settings; see config.h. */
#include "daemon/morphd/config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "daemon/morphd/defaults.h"
#include "daemon/source/perf_event.h"
#include "libprof/base/infile.h"
#include "libprof/base/settings.h"

static const char *const key_names[MD_NR_CONFIG] = {
	[MD_CONFIG_SOURCE] = "source",	   [MD_CONFIG_RATE] = "rate",
	[MD_CONFIG_INTERVAL] = "interval", [MD_CONFIG_NO_KERNEL] = "no-kernel",
	[MD_CONFIG_DATABASE] = "database", [MD_CONFIG_REGISTERS] = "registers",
	[MD_CONFIG_STACKS] = "stacks",
};

void md_config_init(struct md_config *config)
{
	*config = (struct md_config){
		.source = "auto", .interval_s = MD_INTERVAL_S, .may_take_ways = true};
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
		memset(config->source, 0, sizeof(config->source)); /* compared as a whole */
		snprintf(config->source, sizeof(config->source), "%s", value);
		break;
	case MD_CONFIG_RATE:
		if (strcmp(value, "auto"))
			ret = mp_settings_number(value, 1, 100000, true, &number, err);
		if (!ret)
			config->rate_hz = (uint32_t)number;
		break;
	case MD_CONFIG_INTERVAL:
		ret = mp_settings_number(value, 0.001, 86400, false, &config->interval_s, err);
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
		if (strcmp(value, "paths") && strcmp(value, "branches") && strcmp(value, "no") &&
		    strcmp(value, "auto"))
			return mp_err_set(err, EINVAL, "neither paths, branches, no nor auto");
		config->may_take_ways = !strcmp(value, "auto");
		config->ways = !strcmp(value, "branches");
		config->registers = config->ways	      ? MORPH_REGS_BRANCHES
				    : !strcmp(value, "paths") ? MORPH_REGS_PATHS
							      : 0;
		break;
	case MD_CONFIG_STACKS:
		if (strcmp(value, "yes") && strcmp(value, "no") && strcmp(value, "auto"))
			return mp_err_set(err, EINVAL, "neither yes, no nor auto");
		config->stacks = !strcmp(value, "yes")	? MD_STACKS_YES
				 : !strcmp(value, "no") ? MD_STACKS_NO
							: MD_STACKS_AUTO;
		break;
	case MD_NR_CONFIG: return mp_err_set(err, EINVAL, "no such key");
	}
	if (!ret)
		config->given[key] = true;
	return ret;
}

bool md_config_wants_ways(const struct md_config *config)
{
	return config->may_take_ways && config->stacks != MD_STACKS_YES && !md_perf_has_branches();
}

/* The fields that each key sets. */
static const struct field {
	enum md_config_key key;
	bool source; /* another value needs another source */
	size_t at, size;
} fields[] = {
#define FIELD(key, source, name)                                                                   \
	{                                                                                          \
		MD_CONFIG_##key, source, offsetof(struct md_config, name),                         \
			sizeof(((struct md_config *)NULL)->name)                                   \
	}
	FIELD(SOURCE, true, source),	    FIELD(RATE, true, rate_hz),
	FIELD(INTERVAL, false, interval_s), FIELD(NO_KERNEL, true, no_kernel),
	FIELD(DATABASE, false, database),   FIELD(REGISTERS, true, registers),
	FIELD(REGISTERS, true, ways),	    FIELD(REGISTERS, true, may_take_ways),
	FIELD(STACKS, true, stacks),
};
#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

void md_config_override(struct md_config *config, const struct md_config *by)
{
	for (size_t i = 0; i < NR_FIELDS; i++)
		if (by->given[fields[i].key])
			memcpy((char *)config + fields[i].at, (const char *)by + fields[i].at,
			       fields[i].size);
}

bool md_config_needs_source(const struct md_config *now, const struct md_config *then)
{
	for (size_t i = 0; i < NR_FIELDS; i++)
		if (fields[i].source && memcmp((const char *)now + fields[i].at,
					       (const char *)then + fields[i].at, fields[i].size))
			return true;
	return false;
}

/* ---- the file ----------------------------------------------------------------------------- */

static int find_key(const char *name)
{
	int key;

	for (key = 0; key < MD_NR_CONFIG; key++)
		if (!strcmp(name, key_names[key]))
			return key;
	return -ENOENT;
}

struct reading {
	struct md_config config;
	unsigned int lines[MD_NR_CONFIG]; /* where each key was set; 0: nowhere */
};

static int take(const struct mp_setting *s, void *arg, struct mp_err *err)
{
	struct reading *r = arg;
	struct mp_err why = {{0}};
	int key = find_key(s->name);

	if (key < 0)
		return mp_setting_refuse(
			s,
			"no such key; the keys are source, rate, interval, no-kernel, "
			"database, registers and stacks",
			err);
	if (r->lines[key])
		return mp_err_set(err, EINVAL, "%s:%u: %s: already set in line %u", s->path,
				  s->line, s->name, r->lines[key]);
	r->lines[key] = s->line;
	if (!s->value[0])
		return mp_setting_refuse(s, "no value", err);
	if (md_config_set(&r->config, (enum md_config_key)key, s->value, &why))
		return mp_setting_refuse_value(s, why.msg, err);
	if (key == MD_CONFIG_SOURCE && !strcmp(s->value, "replay"))
		return mp_setting_refuse(s, "only the command line can choose replay, with --input",
					 err);
	if (key == MD_CONFIG_DATABASE && s->value[0] != '/')
		return mp_setting_refuse(s, "the path must begin with /", err);
	return 0;
}

int md_config_read(const char *path, struct md_config *out, struct mp_err *err)
{
	struct reading r = {0};
	FILE *f;
	int ret = mp_infile_stream(path, &f, err);

	if (ret)
		return ret;
	md_config_init(&r.config);
	ret = mp_settings_read(f, path, take, &r, err);
	if (!ret)
		*out = r.config;
	fclose(f);
	return ret;
}
