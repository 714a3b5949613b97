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

int md_fleet_config_set(struct md_fleet_config *config, const char *key, const char *value,
			struct mp_err *err)
{
	/* Keys with a word as their value, in the order of their enums. */
	const struct {
		const char *key, *words[3], *why;
		int *out;
	} lists[] = {{"names",
		      {"hashed", "plain", "no"},
		      "not hashed, plain or no",
		      (int *)&config->names},
		     {"contexts",
		      {"daily", "always", "no"},
		      "not daily, always or no",
		      (int *)&config->contexts},
		     {"install", {"rules", "all"}, "not rules or all", (int *)&config->install}};

	if (!strcmp(key, "database"))
		return set_text(config->database, sizeof(config->database), value, err);
	if (!strcmp(key, "salt-file"))
		return set_text(config->salt_file, sizeof(config->salt_file), value, err);
	if (!strcmp(key, "rate"))
		return mp_settings_number(value, 1, 1e9, false, &config->rate, err);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (strcmp(key, lists[i].key) != 0)
			continue;
		for (int word = 0; word < 3; word++)
			if (lists[i].words[word] && !strcmp(value, lists[i].words[word])) {
				*lists[i].out = word;
				return 0;
			}
		return mp_err_set(err, EINVAL, "%s", lists[i].why);
	}
	return mp_err_set(err, EINVAL, "no such key");
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
