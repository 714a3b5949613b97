// SPDX-License-Identifier: Apache-2.0
/*
 * backup_record - what is known of one backed-up original: what it is, where it was and with which
 * attributes, and which outputs were put in its place. A JSON file beside the original's bytes, so
 * that a person can restore by hand. Called by backup.
 */
#ifndef ME_BACKUP_RECORD_H
#define ME_BACKUP_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "editor/attributes.h"
#include "editor/digest.h"
#include "libprof/err.h"
#include "libprof/id.h"

#define ME_BACKUP_SCHEMA 1

/* The debug file of an output. */
struct me_backup_debug {
	char *path; /* absolute; NULL: it has none of its own */
	struct me_digest digest;
	bool made_directory; /* and the directory it is in was not there before */
};

/* A file that Morph made: strip changes its digest and keeps its id. */
struct me_backup_output {
	struct mp_id id;
	struct me_digest digest;
	struct me_backup_debug debug;
};

/* Return: the record, NULL: out of memory. Ownership: json_decref(). */
json_t *me_record_new(const struct mp_id *id, const struct me_digest *digest, uint64_t size);
/* The file @name of the directory. Return: 0, -ENOENT, -EBADMSG damaged, else -errno. */
int me_record_load(int dir_fd, const char *name, json_t **out, struct mp_err *err);
/* Whole or not at all, synced (the directory is left to the caller). Return: 0 or -errno. */
int me_record_save(int dir_fd, const char *name, const json_t *record, struct mp_err *err);

bool me_record_is_of(const json_t *record, const struct mp_id *id);
bool me_record_digest(const json_t *record, struct me_digest *out);
/* The original was at @path (absolute) with @attributes; replaces what is known of that path. */
int me_record_put_place(json_t *record, const char *path, const struct me_attributes *attributes);
/* @output is about to be put at @path. The latest few hundred are kept. */
int me_record_add_output(json_t *record, const char *path, const struct me_backup_output *output,
			 int64_t now_s);
/*
 * me_record_next_debug - of the outputs that were put at @path, but for @except (may be NULL), the next one
 * with a debug file; *@at is 0 at first. Return: is there one? Ownership: free(@out->path).
 */
bool me_record_next_debug(const json_t *record, const char *path, const struct mp_id *except,
			  size_t *at, struct me_backup_debug *out);
/* No output at @path has the debug file @debug any more. */
void me_record_drop_debug(json_t *record, const char *path, const char *debug);
/*
 * me_record_next_user - of the outputs with the debug file @debug, the next that was put elsewhere than
 * at @path. Return: is there one? Ownership: free(*@other); @output_id is the text of its build-id.
 */
bool me_record_next_user(const json_t *record, const char *path, const char *debug, size_t *at,
			 char **other, const char **output_id);
/* How sure it is that @output at @path was made from this original. Return: 0 no, more is surer. */
int me_record_score(const json_t *record, const char *path, const struct me_backup_output *output);
/* When the original (at @path, if it was there, else at any path) was last written. */
bool me_record_mtime(const json_t *record, const char *path, struct timespec *out);

#endif
