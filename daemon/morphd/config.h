// SPDX-License-Identifier: Apache-2.0
/*
 * config - morphd's settings, from morphd.conf(5) and from the command line.
 *
 * Decides which values are valid, for both alike, and that the command line wins. Called by
 * morphd's main, at the start and at SIGHUP.
 */
#ifndef MD_CONFIG_H
#define MD_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/source/source.h"
#include "libprof/base/err.h"

enum md_config_key {
	MD_CONFIG_SOURCE,
	MD_CONFIG_RATE,
	MD_CONFIG_INTERVAL,
	MD_CONFIG_NO_KERNEL,
	MD_CONFIG_DATABASE,
	MD_CONFIG_REGISTERS,
	MD_CONFIG_STACKS,
	MD_NR_CONFIG
};

struct md_config {
	char source[16];	 /* name of a source, or "auto" */
	uint32_t rate_hz;	 /* samples per second and CPU; 0: chosen from the measured cost */
	double interval_s;	 /* time between two writes to the database */
	bool no_kernel;		 /* user samples only */
	char database[PATH_MAX]; /* "": the default path */
	uint32_t registers;	 /* set of user registers that each sample carries; 0: none */
	bool ways;		 /* of branches are counted by these registers */
	bool may_take_ways;	 /* nobody said which registers: see md_config_wants_ways() */
	enum md_stacks stacks;
	bool given[MD_NR_CONFIG];
};

/* Sets every setting to its default. */
void md_config_init(struct md_config *config);

/* Return: 0, -EINVAL with what is wrong with @value. The message does not name the key. */
int md_config_set(struct md_config *config, enum md_config_key key, const char *value,
		  struct mp_err *err);

/*
 * md_config_read - read the settings of a file. Its lines are `key = value', empty, or begin
 * with #. Return: 0, -EINVAL with "FILE:LINE: what is wrong", -errno: it cannot be read. @out
 * changes only if the whole file is valid.
 */
int md_config_read(const char *path, struct md_config *out, struct mp_err *err);

/*
 * Return: true if registers for ways of branches should be tried though nobody asked for them. Where
 * branch stacks or the callers of samples are read, ways add little.
 */
bool md_config_wants_ways(const struct md_config *config);

/* Copies the settings that @by gives over those of @config. */
void md_config_override(struct md_config *config, const struct md_config *by);

/* Return: true if a collector that runs with @now must be restarted for @then. */
bool md_config_needs_source(const struct md_config *now, const struct md_config *then);

#endif
