// SPDX-License-Identifier: Apache-2.0
/*
 * stats - what the commands of morph-stats share: options, messages, opening the store, times,
 * names, JSON.
 *
 * Each command is one file (stats_<command>.c) and returns an exit status.
 */
#ifndef MD_STATS_H
#define MD_STATS_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/code/stats_filter.h"
#include "libprof/base/err.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/since.h"
#include "libprof/store/store.h"

/* Version of the JSON that every command prints; it grows if a field changes its meaning. */
#define MD_STATS_JSON_SCHEMA 1

struct md_stats {
	const char *db;		  /* NULL: the default path */
	const char *fleet;	  /* read a fleet's profiles instead, from this database; or NULL */
	const char *fleet_module; /* only this file or build-id of the fleet; NULL: many modules */
	bool json;
	char path[4096]; /* of the database, once it is open */
};

/* The commands. @argv[0] is "morph-stats COMMAND". Return: exit status. */
int md_stats_status(struct md_stats *stats, int argc, char **argv);
int md_stats_query(struct md_stats *stats, int argc, char **argv);
int md_stats_call_graph(struct md_stats *stats, int argc, char **argv);
int md_stats_activity(struct md_stats *stats, int argc, char **argv);
int md_stats_import(struct md_stats *stats, int argc, char **argv);
int md_stats_export(struct md_stats *stats, int argc, char **argv);
int md_stats_diff(struct md_stats *stats, int argc, char **argv);
int md_stats_merge(struct md_stats *stats, int argc, char **argv);
int md_stats_remember(struct md_stats *stats, int argc, char **argv);
int md_stats_trials(struct md_stats *stats, int argc, char **argv);
int md_stats_annotate(struct md_stats *stats, int argc, char **argv);
int md_stats_heat(struct md_stats *stats, int argc, char **argv);
int md_stats_flame(struct md_stats *stats, int argc, char **argv);
int md_stats_audit(struct md_stats *stats, int argc, char **argv);

/* --db and --json, an argp child of every command; its input is the struct md_stats. */
extern const struct argp md_stats_common_argp;
/* These and --fleet, for commands that read counts. */
extern const struct argp md_stats_fleet_argp;

/* The program's name in messages; "morph-stats" without a call. @name must stay valid. */
void md_stats_set_program(const char *name);

/* Parses a command's arguments. Exits on --help and on wrong usage. */
void md_stats_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Prints "PROGRAM: ..." to stderr. Return: MP_EXIT_FAILED. */
int md_stats_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints a message that is not a failure. */
void md_stats_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --since=WHEN of a command. Parse errors are usage errors. */
void md_stats_since(struct argp_state *state, const char *arg, int64_t *since_s);
/* --limit=N of a command: rows, at least 1. Parse errors are usage errors. */
void md_stats_limit(struct argp_state *state, const char *arg, long *limit);
/* @option: its name, for messages. 0 to 100. Parse errors are usage errors. */
void md_stats_percent(struct argp_state *state, const char *option, const char *arg,
		      double *percent);
/* Return: index of @arg in @words; -1: not found. */
int md_stats_find_word(const char *arg, const char *const *words, int nr);

/* Opens the store. Return: 0; else the exit status, after a message. */
int md_stats_open(struct md_stats *stats, enum mp_store_mode mode, struct mp_store **out);

/* Return: a new JSON object with its schema and command. */
json_t *md_stats_json_new(const char *command);
/* Prints @root. Ownership: takes @root. Return: exit status. */
int md_stats_json_print(json_t *root);
/* Makes a string of any bytes: invalid UTF-8 becomes U+FFFD. */
json_t *md_stats_json_string(const char *text);

/* Writes @text to stdout, with control characters as \xNN, since paths may contain anything. */
void md_stats_put_text(const char *text);
/* Return: for instance "1.2 MiB". @buf holds 32 bytes. */
const char *md_stats_format_size(uint64_t bytes, char *buf);
/* Return: for instance "2026-11-20 14:03:05", local time; "-" for 0. @buf holds 32 bytes. */
const char *md_stats_format_time(int64_t time_s, char *buf);
/*
 * Flushes stdout. Return: exit status; a failed write, for instance to a full disk, gives a
 * failure.
 */
int md_stats_finish(int status);

/* Prints a note if the stored period begins earlier than @since_s. */
void md_stats_note_period(struct mp_store *store, int64_t since_s);

#endif
