// SPDX-License-Identifier: Apache-2.0
/*
 * command - what the commands of morph-fleet share: tables of options, how they find and connect to the database, exit
 * statuses. Each command parses its options, prints, and returns the exit status. Called by main().
 */
#ifndef MD_FLEET_COMMAND_H
#define MD_FLEET_COMMAND_H

#include <argp.h>
#include <libpq-fe.h>

#include "daemon/fleet/fleet_config.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/options.h"

/* @argv[0] is "morph-fleet COMMAND". */
int md_fleet_command_push(int argc, char **argv);
int md_fleet_command_pull(int argc, char **argv);
int md_fleet_command_modules(int argc, char **argv);
int md_fleet_command_hosts(int argc, char **argv);
int md_fleet_command_versions(int argc, char **argv);
int md_fleet_command_builds(int argc, char **argv);
int md_fleet_command_init(int argc, char **argv);
int md_fleet_command_upgrade(int argc, char **argv);
int md_fleet_command_check(int argc, char **argv);
int md_fleet_command_enrol(int argc, char **argv);
int md_fleet_command_ban(int argc, char **argv);
int md_fleet_command_unban(int argc, char **argv);
int md_fleet_command_forget(int argc, char **argv);
/* In builds/. */
int md_fleet_command_request(int argc, char **argv);
int md_fleet_command_build(int argc, char **argv);
int md_fleet_command_install(int argc, char **argv);
/* In rollout/ and report/. */
int md_fleet_command_canary(int argc, char **argv);
int md_fleet_command_renew(int argc, char **argv);
int md_fleet_command_report(int argc, char **argv);

/* ---- options ------------------------------------------------------------------------------- */

#define MD_JSON MP_FLAG("json", json, "Print JSON")

/*
 * The beginning of each command's options: --database and --config, which all commands have, and the arguments behind
 * the options.
 */
struct md_fleet_access {
	const char *config_path, *database; /* NULL: not given */
	struct md_fleet_config config;
	struct mp_words words;
};

/* Parses the command line into @options, which begin with a struct md_fleet_access. A mistake ends the program. */
void md_fleet_options(const struct mp_usage *usage, int argc, char **argv, void *options);
/* Reads the file and the environment; finds the database. Return: 0; else the exit status, after a message. */
int md_fleet_access_find(struct md_fleet_access *access);
/* Connects. Return: 0; else the exit status, after a message. */
int md_fleet_access_connect(struct md_fleet_access *access, PGconn **out);
/* Both, for commands that begin so. */
int md_fleet_start(const struct mp_usage *usage, int argc, char **argv, void *options,
		   PGconn **out);
/* Return: the exit status for a failure @r. */
int md_fleet_status(int r);
/* The same, with a message. */
int md_fleet_failed(int r, const struct mp_err *err);

#endif
