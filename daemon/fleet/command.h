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

/* The type of the variable that gets an option's value. */
enum md_option_kind {
	MD_OPTION_FLAG,	  /* bool */
	MD_OPTION_TEXT,	  /* const char * */
	MD_OPTION_NUMBER, /* double */
	MD_OPTION_TIME,	  /* int64_t, seconds since 1970 */
	MD_OPTION_LIMIT,  /* long, at least 1 */
	MD_OPTION_PLACES, /* struct md_places */
};

#define MD_PLACES_MAX 16
struct md_places {
	const char *list[MD_PLACES_MAX];
	size_t nr;
};

struct md_option {
	const char *name;
	int letter;		 /* or 0 */
	const char *value, *doc; /* doc NULL: --help does not print it */
	enum md_option_kind kind;
	size_t at;	  /* in the command's options */
	double low, high; /* MD_OPTION_NUMBER */
};
#define MD_OPTIONS_MAX 16

/* Rows of a table of options, whose values go to a @field of the command's struct options. */
#define MD_FLAG(name, field, doc)                                                                  \
	{                                                                                          \
		name, 0, NULL, doc, MD_OPTION_FLAG, offsetof(struct options, field), 0, 0          \
	}
#define MD_VALUE(kind, name, letter, field, value, doc)                                            \
	{                                                                                          \
		name, letter, value, doc, MD_OPTION_##kind, offsetof(struct options, field), 0, 0  \
	}
#define MD_NUMBER(name, field, low, high, value, doc)                                              \
	{                                                                                          \
		name, 0, value, doc, MD_OPTION_NUMBER, offsetof(struct options, field), low, high  \
	}
#define MD_JSON MD_FLAG("json", json, "Print JSON")
#define MD_OPTIONS_END                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * The beginning of each command's options: --database and --config, which all commands have, and the arguments behind
 * the options.
 */
struct md_fleet_access {
	const char *config_path, *database; /* NULL: not given */
	struct md_fleet_config config;
	char **arguments;
	int nr_arguments;
};

struct md_usage {
	const struct md_option *options; /* ends with zeros; NULL: none of its own */
	const char *arguments, *doc;	 /* for --help */
	int least, most;		 /* arguments */
	const char *lacking;		 /* message if there are fewer */
	bool in_order; /* what stands behind the first argument is no option of this command */
	/* Checks options together, with argp_error(). NULL: there is nothing to check. */
	void (*check)(void *options, struct argp_state *state);
};

/* Parses the command line into @options, which begin with a struct md_fleet_access. A mistake ends the program. */
void md_fleet_parse(const struct md_usage *usage, int argc, char **argv, void *options);
/* Reads the file and the environment; finds the database. Return: 0; else the exit status, after a message. */
int md_fleet_access_find(struct md_fleet_access *access);
/* Connects. Return: 0; else the exit status, after a message. */
int md_fleet_access_connect(struct md_fleet_access *access, PGconn **out);
/* Both, for commands that begin so. */
int md_fleet_start(const struct md_usage *usage, int argc, char **argv, void *options,
		   PGconn **out);
/* Return: the exit status for a failure @r. */
int md_fleet_status(int r);
/* The same, with a message. */
int md_fleet_failed(int r, const struct mp_err *err);

#endif
