// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_config - any bytes as morphd.conf: either an error with a position and no setting
 * changed, or settings that the command line would accept.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/morphd/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct md_config *config)
{
	struct md_config again;
	struct mp_err err;
	char number[64];

	md_config_init(&again);
	if (md_config_set(&again, MD_CONFIG_SOURCE, config->source, &err))
		abort();
	snprintf(number, sizeof(number), "%u", config->rate_hz);
	if (config->rate_hz && md_config_set(&again, MD_CONFIG_RATE, number, &err))
		abort();
	snprintf(number, sizeof(number), "%.17g", config->interval_s);
	if (md_config_set(&again, MD_CONFIG_INTERVAL, number, &err))
		abort();
	if (config->given[MD_CONFIG_DATABASE]
		    ? config->database[0] != '/' ||
			      md_config_set(&again, MD_CONFIG_DATABASE, config->database, &err)
		    : config->database[0] != 0)
		abort();
	again.no_kernel = config->no_kernel;
	if (again.rate_hz != config->rate_hz || again.interval_s != config->interval_s ||
	    md_config_needs_source(&again, config))
		abort();
	md_config_override(&again, config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct md_config config, before;
	struct mp_err err = {{0}};
	static char path[64];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("morphd.conf", 0);
		if (fd < 0)
			abort();
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	memset(&config, 0xa5, sizeof(config));
	before = config;
	if (!md_config_read(path, &config, &err))
		check(&config);
	else if (strncmp(err.msg, path, strlen(path)) || memcmp(&config, &before, sizeof(config)))
		abort();
	return 0;
}
