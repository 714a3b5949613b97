// SPDX-License-Identifier: Apache-2.0
/*
 * options - the command lines of `morphd` and `morphd run`. Called by morphd's main.
 *
 * Decides which options each accepts and whether they fit together. A usage error ends the
 * program with status 2.
 */
#ifndef MD_OPTIONS_H
#define MD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/attribute/call_samples.h"
#include "daemon/attribute/path_requests.h"
#include "daemon/attribute/sample_owner.h"
#include "daemon/audit/audit_reader.h"
#include "daemon/morphd/config.h"

#define MD_SELECTED_MAX 64 /* most arguments of each of --pid, --unit, --user */

struct md_options {
	struct md_config line; /* settings from the command line */
	const char *config, *record, *input;
	struct md_path_requests_config polls; /* @path NULL: no program is polled */
	struct md_call_samples_config calls;  /* @path NULL: no program samples its calls */
	struct md_audit_config audit;	      /* @path NULL: no program is audited */
	uint32_t nr_repeats;
	bool stats, json, check_config, wait;
	bool is_run;
	char **command;
	/* --pid, --unit, --user: the samples to keep */
	struct md_sample_selection selection;
	pid_t pids[MD_SELECTED_MAX];
	const char *units[MD_SELECTED_MAX];
	uint32_t uids[MD_SELECTED_MAX];
};

/* Parses the command line; with @argv[1] "run", that of `morphd run`. */
void md_options_parse(int argc, char **argv, struct md_options *out);

/* Return: true if --pid, --unit or --user was given. */
bool md_options_select(const struct md_options *o);

#endif
