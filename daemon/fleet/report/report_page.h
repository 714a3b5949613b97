// SPDX-License-Identifier: Apache-2.0
/*
 * report_page - the fleet as one HTML page: modules by cycles, versions in use, gains, roll-outs, hosts that
 * lag. The page needs no network and runs nothing: its own policy forbids both. All texts come from
 * hosts, and are escaped. Without colours the page says the same. Called by the command "report".
 */
#ifndef MD_FLEET_REPORT_PAGE_H
#define MD_FLEET_REPORT_PAGE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Each is a list of rows, with the columns of the function of sql/ that its comment names. */
struct md_fleet_report {
	json_t *modules;  /* list_modules(): the most samples first */
	json_t *gains;	  /* list_gains() */
	json_t *canaries; /* list_canaries() */
	json_t *history;  /* of canary_history, the newest first */
	json_t *hosts;	  /* list_hosts(): those that sent longest ago first */
	int64_t since_s, now_s, lag_s;
	const char *version; /* of Morph */
};

/* The caller checks @out for write errors. */
void md_fleet_report_write(const struct md_fleet_report *report, FILE *out);

#endif
