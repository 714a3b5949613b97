// SPDX-License-Identifier: Apache-2.0
/*
 * stats - what the commands of morph-stats share: options, the way out, time, names, JSON.
 *
 * One file per command (stats_<command>.c); each gives an exit status.
 */
#ifndef MD_STATS_H
#define MD_STATS_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/stats_filter.h"
#include "libprof/err.h"
#include "libprof/since.h"
#include "libprof/store.h"

/* Version of the JSON that every command prints; grows when a field changes its meaning. */
#define MD_STATS_JSON_SCHEMA 1

enum md_exit {
	MD_EXIT_DONE = 0,
	MD_EXIT_FAILED = 1,
	MD_EXIT_USAGE = 2,
	MD_EXIT_NO_PROFILE = 3,
};

struct md_stats {
	const char *db; /* NULL: the default path */
	bool json;
	char path[4096]; /* of the database, once it is open */
};

/* Each command: @argv[0] is "morph-stats COMMAND". Return: exit status. */
int md_stats_status(struct md_stats *stats, int argc, char **argv);
int md_stats_query(struct md_stats *stats, int argc, char **argv);
int md_stats_activity(struct md_stats *stats, int argc, char **argv);
int md_stats_import(struct md_stats *stats, int argc, char **argv);
int md_stats_export(struct md_stats *stats, int argc, char **argv);
int md_stats_diff(struct md_stats *stats, int argc, char **argv);
int md_stats_merge(struct md_stats *stats, int argc, char **argv);
int md_stats_remember(struct md_stats *stats, int argc, char **argv);
int md_stats_annotate(struct md_stats *stats, int argc, char **argv);
int md_stats_heat(struct md_stats *stats, int argc, char **argv);
int md_stats_flame(struct md_stats *stats, int argc, char **argv);

/* --db and --json, to be an argp child of every command; its input is the struct md_stats. */
extern const struct argp md_stats_common_argp;

/* Parse a command's line. Return: 0, or the exit status + 1 (help, usage) as a negative number. */
void md_stats_parse(const struct argp *argp, int argc, char **argv, void *input);

/* "morph-stats: ..." on stderr. Return: MD_EXIT_FAILED. */
int md_stats_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for a message that is no failure. */
void md_stats_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The index of @arg among @words, -1: it is none of them. */
int md_stats_find_word(const char *arg, const char *const *words, int nr);

/* Open the store; message and exit status on failure, 0 otherwise. */
int md_stats_open(struct md_stats *stats, enum mp_store_mode mode, struct mp_store **out);

/* A new JSON object that says its schema and command. */
json_t *md_stats_json_new(const char *command);
/* Print it and drop it. Return: exit status. */
int md_stats_json_print(json_t *root);
/* A string that may hold any bytes: what is not UTF-8 becomes U+FFFD. */
json_t *md_stats_json_string(const char *text);

/* Write @text to stdout with control characters as \xNN: paths may hold anything. */
void md_stats_put_text(const char *text);
/* "1.2 MiB". @buf holds 32. */
const char *md_stats_format_size(uint64_t bytes, char *buf);
/* "2026-11-20 14:03:05", local time; "-" for 0. @buf holds 32. */
const char *md_stats_format_time(int64_t time_s, char *buf);
/* Flush stdout. Return: exit status: a full disk behind a redirection must not look like success. */
int md_stats_finish(int status);

/* Say where the asked period really begins, when that is earlier. */
void md_stats_note_period(struct mp_store *store, int64_t since_s);

#endif
