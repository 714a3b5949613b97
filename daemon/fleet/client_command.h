// SPDX-License-Identifier: Apache-2.0
/*
 * client_command - the commands of morph-fleet for hosts: they send counts and read profiles. Each
 * parses its options, prints, and returns the exit status. Called by main().
 */
#ifndef MD_FLEET_CLIENT_COMMAND_H
#define MD_FLEET_CLIENT_COMMAND_H

#include <argp.h>
#include <libpq-fe.h>

#include "daemon/fleet/fleet_config.h"

enum md_fleet_exit {
	MD_FLEET_DONE = 0,
	MD_FLEET_FAILED = 1,
	MD_FLEET_USAGE = 2,
	MD_FLEET_NO_PROFILE = 3,
	MD_FLEET_REFUSED = 4, /* a build is not what it should be */
	MD_FLEET_LATER = 75,  /* the server is gone, or takes no more today: try again later */
};

/* @argv[0] is "morph-fleet COMMAND". */
int md_fleet_command_push(int argc, char **argv);
int md_fleet_command_pull(int argc, char **argv);
int md_fleet_command_modules(int argc, char **argv);
int md_fleet_command_hosts(int argc, char **argv);
int md_fleet_command_versions(int argc, char **argv);
int md_fleet_command_builds(int argc, char **argv);
/* In builds/. */
int md_fleet_command_request(int argc, char **argv);
int md_fleet_command_build(int argc, char **argv);
int md_fleet_command_install(int argc, char **argv);
/* In rollout/ and report/. */
int md_fleet_command_canary(int argc, char **argv);
int md_fleet_command_renew(int argc, char **argv);
int md_fleet_command_report(int argc, char **argv);

/* The version of this program, as fleet.build has it. */
const char *md_fleet_version(void);

/* Return: the number that --@option has. One outside of @low to @high ends the program with a message. */
double md_fleet_number(struct argp_state *state, const char *option, const char *arg, double low,
		       double high);

/* The options --database and --config, as an argp child. Its input is a struct md_fleet_access. */
struct md_fleet_access {
	const char *config_path, *database; /* NULL: not given */
	struct md_fleet_config config;
};
extern const struct argp md_fleet_access_argp;
/* Reads the file and the environment; finds the database. Return: 0; else the exit status, after a message. */
int md_fleet_access_find(struct md_fleet_access *access);
/* Connects. Return: 0; else the exit status, after a message. */
int md_fleet_access_connect(struct md_fleet_access *access, PGconn **out);

#endif
