// SPDX-License-Identifier: Apache-2.0
/*
 * config - what morphd is told to do: by morphd.conf(5), by the command line, or by neither.
 *
 * Decides what a setting may be, the same for both, and which of the two wins. Called by
 * morphd's main, at the start and at SIGHUP.
 */
#ifndef MD_CONFIG_H
#define MD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/err.h"

enum md_config_key {
	MD_CONFIG_SOURCE,
	MD_CONFIG_RATE,
	MD_CONFIG_INTERVAL,
	MD_CONFIG_NO_KERNEL,
	MD_CONFIG_DATABASE,
	MD_CONFIG_REGISTERS,
	MD_NR_CONFIG
};

struct md_config {
	char source[16];     /* a source's name, or "auto" */
	uint32_t rate_hz;    /* 0: so many that nobody notices */
	double interval_s;   /* between two writes to the database */
	bool no_kernel;	     /* user samples only */
	char database[4096]; /* "": the default one */
	uint16_t registers;  /* of user code, that come with samples; 0: none */
	bool given[MD_NR_CONFIG];
};

/* Every setting has its default, none is given. */
void md_config_init(struct md_config *config);

/* As the file has it: "no-kernel". */
const char *md_config_key_name(enum md_config_key key);

/* Return: 0, -EINVAL with what is wrong with @value, without its key. */
int md_config_set(struct md_config *config, enum md_config_key key, const char *value,
		  struct mp_err *err);

/*
 * md_config_read - the settings of a file: lines of `key = value', empty ones, and ones that
 * begin with #. Return: 0, -EINVAL with "FILE:LINE: what is wrong", -errno where it cannot be
 * read. @out is only changed where all of the file is right.
 */
int md_config_read(const char *path, struct md_config *out, struct mp_err *err);

/* What is given in @by wins over what @config has. */
void md_config_override(struct md_config *config, const struct md_config *by);

/* True where a collector of one cannot go on as one of the other. */
bool md_config_needs_source(const struct md_config *now, const struct md_config *then);

#endif
