// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_config - the settings of a host for its fleet: /etc/morph/fleet.conf, and options with the same
 * names. Called by the commands for hosts.
 */
#ifndef MD_FLEET_CONFIG_H
#define MD_FLEET_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/fleet/file_names.h"
#include "libprof/store/fleet/store_fleet.h"

#ifndef MORPH_SYSCONFDIR
#define MORPH_SYSCONFDIR "/etc"
#endif
#define MD_FLEET_CONFIG MORPH_SYSCONFDIR "/morph/fleet.conf"

/* Which files `install --all' may replace. */
enum md_fleet_install {
	MD_INSTALL_RULES, /* those that a rule of the policy names */
	MD_INSTALL_ALL	  /* all that the store knows and nothing forbids */
};

struct md_fleet_config {
	char database[4096]; /* libpq's conninfo; "": not known */
	enum md_names names;
	char salt_file[PATH_MAX];    /* "": none */
	double rate;		     /* KiB per second; 0: no limit */
	enum mp_fleet_when contexts; /* and paths and sampled calls */
	enum md_fleet_install install;
};

/* Sets one key from a file or an option. Return: 0, -EINVAL with a message that names the value only. */
int md_fleet_config_set(struct md_fleet_config *config, const char *key, const char *value,
			struct mp_err *err);
/*
 * Reads @path; NULL: the default file, which may be missing. Options are to be set afterwards.
 * Return: 0, -EINVAL with "PATH:LINE: ...", -errno.
 */
int md_fleet_config_read(struct md_fleet_config *config, const char *path, struct mp_err *err);

#endif
