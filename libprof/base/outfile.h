// SPDX-License-Identifier: Apache-2.0
/*
 * outfile - writes a file that appears under its name complete or not at all; without a name,
 * writes to standard output. Called by commands that write text and pictures; programs that are
 * output have editor/emit/publish, databases libprof/store.
 */
#ifndef MP_OUTFILE_H
#define MP_OUTFILE_H

#include <limits.h>
#include <signal.h>
#include <stdio.h>

#include "libprof/base/err.h"

/* Is told the temporary file's name before the file exists, and NULL once it is gone. */
typedef void mp_outfile_note(const char *temporary);

struct mp_outfile {
	FILE *file;
	const char *path; /* NULL: standard output */
	mp_outfile_note *note;
	sigset_t mask; /* of the signals, before they were blocked */
	int dir;       /* where @temporary lies; -1: there is none */
	char temporary[PATH_MAX];
};

/*
 * mp_outfile_check - before long work: could @path be written? Refuses one of the @inputs under any
 * name, a directory, and a place where no file can be made. @path NULL: standard output. @inputs end
 * with NULL, and may be missing files. Return: 0 or -errno with a message.
 */
int mp_outfile_check(const char *path, const char *const *inputs, struct mp_err *err);
/*
 * @note: NULL: SIGINT, SIGTERM and SIGHUP wait until the file is committed or abandoned. Return: 0 or
 * -errno with a message.
 */
int mp_outfile_open(const char *path, mp_outfile_note *note, struct mp_outfile *out,
		    struct mp_err *err);
/* Writes what is left and renames the file. Closes it in any case. Return: 0 or -errno. */
int mp_outfile_commit(struct mp_outfile *out, struct mp_err *err);
/* Drops the file. */
void mp_outfile_abandon(struct mp_outfile *out);

#endif
