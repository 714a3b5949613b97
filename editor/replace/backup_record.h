// SPDX-License-Identifier: Apache-2.0
/*
 * backup_record - facts about one kept original: id, places with attributes, and the
 * outputs that replaced it. They are stored as JSON beside the original's bytes, so
 * that a person can restore by hand. Called by backup.
 */
#ifndef ME_BACKUP_RECORD_H
#define ME_BACKUP_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "editor/base/attributes.h"
#include "editor/base/digest.h"
#include "libprof/base/err.h"
#include "libprof/elf/id.h"

#define ME_BACKUP_SCHEMA 1

/* The debug file of an output. */
struct me_backup_debug {
	char *path; /* absolute; NULL: the output has no debug file of its own */
	struct me_digest digest;
	bool made_directory; /* Morph made the directory of @path */
};

/* A file that Morph made. strip changes its digest, but not its id. */
struct me_backup_output {
	struct mp_id id;
	struct me_digest digest;
	struct me_backup_debug debug;
};

/* Return: the record; NULL if out of memory. Ownership: json_decref(). */
json_t *me_record_new(const struct mp_id *id, const struct me_digest *digest, uint64_t size);
/*
 * me_record_load - read the file @name of the directory. Return: 0, -ENOENT, -EBADMSG
 * damaged, else -errno. Ownership: json_decref(*@out).
 */
int me_record_load(int dir_fd, const char *name, json_t **out, struct mp_err *err);
/*
 * me_record_save - write and sync the file, completely or not at all. The caller syncs
 * the directory. Return: 0 or -errno.
 */
int me_record_save(int dir_fd, const char *name, const json_t *record, struct mp_err *err);

/* me_record_is_of - is this the record of the original @id? */
bool me_record_is_of(const json_t *record, const struct mp_id *id);
/* me_record_digest - the digest of the original's bytes. Return: false if it is damaged. */
bool me_record_digest(const json_t *record, struct me_digest *out);
/*
 * me_record_put_place - the original lies at @path (absolute) and has @attributes.
 * Replaces an earlier entry for @path. Return: 0 or -ENOMEM.
 */
int me_record_put_place(json_t *record, const char *path, const struct me_attributes *attributes);
/*
 * me_record_add_output - @output will be put at @path. Only the latest few hundred
 * outputs are kept. Return: 0 or -ENOMEM.
 */
int me_record_add_output(json_t *record, const char *path, const struct me_backup_output *output,
			 int64_t now_s);
/*
 * me_record_next_debug - the next debug file of an output that was put at @path. Skips
 * the output @except (may be NULL). *@at: position, 0 at first. Return: is there one?
 * Ownership: free(@out->path).
 */
bool me_record_next_debug(const json_t *record, const char *path, const struct mp_id *except,
			  size_t *at, struct me_backup_debug *out);
/* me_record_drop_debug - forget that outputs at @path have the debug file @debug. */
void me_record_drop_debug(json_t *record, const char *path, const char *debug);
/*
 * me_record_next_user - the next output that uses the debug file @debug but was put at
 * another place than @path. *@at: position, 0 at first. Return: is there one?
 * Ownership: free(*@other); *@output_id is its build-id as text, owned by @record.
 */
bool me_record_next_user(const json_t *record, const char *path, const char *debug, size_t *at,
			 char **other, const char **output_id);
/*
 * me_record_score - how certainly @output at @path was made from this original. Return:
 * 0 if not; the higher, the more certain.
 */
int me_record_score(const json_t *record, const char *path, const struct me_backup_output *output);
/*
 * me_record_mtime - when the original was last written: at @path if it was there, else
 * at its first place. Return: false if the record does not say.
 */
bool me_record_mtime(const json_t *record, const char *path, struct timespec *out);

#endif
