// SPDX-License-Identifier: Apache-2.0
/* fleet_config - see fleet_config.h. */
#include "daemon/fleet/fleet_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/infile.h"
#include "libprof/base/settings.h"

static int set_text(char *out, size_t size, const char *value, struct mp_err *err)
{
	if (!value[0])
		return mp_err_set(err, EINVAL, "is empty");
	if (snprintf(out, size, "%s", value) >= (int)size)
		return mp_err_set(err, EINVAL, "is too long");
	return 0;
}

/* Return: the place of @value among the three @words; -1: it is none of them. */
static int find_word(const char *value, const char *const words[3])
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(value, words[i]))
			return i;
	return -1;
}

int md_fleet_config_set(struct md_fleet_config *config, const char *key, const char *value,
			struct mp_err *err)
{
	static const char *const names[] = {"hashed", "plain", "no"};
	static const char *const times[] = {"daily", "always", "no"};
	int i;

	if (!strcmp(key, "database"))
		return set_text(config->database, sizeof(config->database), value, err);
	if (!strcmp(key, "salt-file"))
		return set_text(config->salt_file, sizeof(config->salt_file), value, err);
	if (!strcmp(key, "rate"))
		return mp_settings_number(value, 1, 1e9, false, &config->rate, err);
	if (!strcmp(key, "contexts")) {
		i = find_word(value, times);
		if (i < 0)
			return mp_err_set(err, EINVAL, "not daily, always or no");
		config->contexts = (enum mp_fleet_when)i;
		return 0;
	}
	if (!strcmp(key, "install")) {
		config->install = !strcmp(value, "all") ? MD_INSTALL_ALL : MD_INSTALL_RULES;
		return config->install == MD_INSTALL_ALL || !strcmp(value, "rules")
			       ? 0
			       : mp_err_set(err, EINVAL, "not rules or all");
	}
	if (strcmp(key, "names"))
		return mp_err_set(err, EINVAL, "no such key");
	i = find_word(value, names);
	if (i < 0)
		return mp_err_set(err, EINVAL, "not hashed, plain or no");
	config->names = (enum md_names)i;
	return 0;
}

static int take(const struct mp_setting *setting, void *arg, struct mp_err *err)
{
	struct mp_err why = {""};

	if (!md_fleet_config_set(arg, setting->name, setting->value, &why))
		return 0;
	return mp_setting_refuse_value(setting, why.msg, err);
}

int md_fleet_config_read(struct md_fleet_config *config, const char *path, struct mp_err *err)
{
	const char *name = path ? path : MD_FLEET_CONFIG;
	FILE *file;
	int r = mp_infile_stream(name, &file, err);

	if (r)
		return !path && r == -ENOENT ? 0 : r;
	r = mp_settings_read(file, name, take, config, err);
	fclose(file);
	return r;
}
