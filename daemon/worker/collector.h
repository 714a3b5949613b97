// SPDX-License-Identifier: Apache-2.0
/*
 * collector - whether the service collects into a database, since when, at what cost, and if not,
 * why. Asks the lock file, /proc and the kernel's settings; starts nothing.
 */
#ifndef MD_COLLECTOR_H
#define MD_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct md_collector {
	bool runs;
	bool may_not; /* it does not run, and would not be allowed to sample */
	pid_t pid;
	int64_t since_s;    /* start of the process; 0: not running */
	double cpu_percent; /* of one CPU, since its start */
	uint64_t rss_bytes;
	/* in words of a user: why it does not run, and what to do; "" if it runs */
	char why[320];
};

void md_collector_look(const char *db, struct md_collector *out);

#endif
