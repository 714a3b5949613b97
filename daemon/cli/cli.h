// SPDX-License-Identifier: Apache-2.0
/*
 * cli - what the commands of morph-stats, morph and morph-fleet share: options, messages, opening the store, times,
 * names, JSON.
 */
#ifndef MD_CLI_H
#define MD_CLI_H

#include <argp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/code/stats_filter.h"
#include "libprof/base/err.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/json.h"
#include "libprof/cli/options.h"
#include "libprof/cli/since.h"
#include "libprof/store/store.h"

/* Version of the JSON that every command prints; it grows if a field changes its meaning. */
#define MD_CLI_JSON_SCHEMA 1

struct md_cli {
	const char *db;		  /* NULL: the default path */
	const char *fleet;	  /* read a fleet's profiles instead, from this database; or NULL */
	const char *fleet_module; /* only this file or build-id of the fleet; NULL: many modules */
	bool json;
	char path[PATH_MAX]; /* of the database, once it is open */
};

/* --db and --json, an argp child of every command; its input is the struct md_cli. */
extern const struct argp md_cli_common_argp;
/* These and --fleet, for commands that read counts. */
extern const struct argp md_cli_fleet_argp;

/* The program's name in messages; "morph-stats" without a call. @name must stay valid. */
void md_cli_set_program(const char *name);

/* Reads a command's options into @options. Exits on --help and on wrong usage. */
void md_cli_parse(const struct mp_usage *usage, int argc, char **argv, void *options,
		  struct md_cli *cli);

/* Options of several commands. Those that are whole take variables of these names. */
#define MD_HELP_MODULE	 "Only the module with this path or file name"
#define MD_HELP_BUILD_ID "Only modules whose build-id begins with HEX"
#define MD_HELP_BINARY	 "Only the module of this file; read its code from FILE"
#define MD_HELP_FUNCTION "Only this function, or the one at address 0x..."
#define MD_HELP_SINCE	 "Leave out older samples: 2h, 3d, today, 2026-11-20, ..."
#define MD_OPTION_SINCE	 MP_VALUE(TIME, "since", 's', since_s, "WHEN", MD_HELP_SINCE)
#define MD_OPTION_LIMIT	 MP_VALUE(LIMIT, "limit", 'n', limit, "N", "At most N rows")
/* clang-format off */
#define MD_OPTIONS_FILTER                                                                          \
	MP_VALUE(TEXT, "module", 'm', filter.module, "NAME", MD_HELP_MODULE),                      \
	MP_VALUE(TEXT, "build-id", 0, filter.build_id, "HEX", MD_HELP_BUILD_ID),                   \
	MP_VALUE(TEXT, "binary", 0, filter.binary, "FILE", MD_HELP_BINARY)
/* clang-format on */

/* Prints "PROGRAM: ..." to stderr. Return: MP_EXIT_FAILED. */
int md_cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints a message that is not a failure. */
void md_cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Return: index of @arg in @words; -1: not found. */
int md_cli_find_word(const char *arg, const char *const *words, int nr);

/* Opens the store. Return: 0; else the exit status, after a message. */
int md_cli_open(struct md_cli *cli, enum mp_store_mode mode, struct mp_store **out);

/* Return: a new JSON object with its schema and command. */
json_t *md_cli_json_new(const char *command);
/* Prints @root. Ownership: takes @root. Return: exit status. */
int md_cli_json_print(json_t *root);

/* Writes @text to stdout, with control characters as \xNN, since paths may contain anything. */
void md_cli_put_text(const char *text);
/* Return: for instance "1.2 MiB". */
const char *md_cli_format_size(uint64_t bytes, char buf[static 32]);
/* Return: for instance "2026-11-20 14:03:05", local time; "-" for 0. */
const char *md_cli_format_time(int64_t time_s, char buf[static 32]);
/*
 * Flushes stdout. Return: exit status; a failed write, for instance to a full disk, gives a
 * failure.
 */
int md_cli_finish(int status);

/* Prints a note if the stored period begins earlier than @since_s. */
void md_cli_note_period(struct mp_store *store, int64_t since_s);

#endif
