// SPDX-License-Identifier: Apache-2.0
/*
 * publish - makes an output appear whole or not at all: temporary file, fsync, rename. Called
 * by optimize.
 */
#ifndef ME_PUBLISH_H
#define ME_PUBLISH_H

#include <signal.h>
#include <sys/types.h>

#include "editor/place/output_parts.h"
#include "libprof/base/err.h"

struct me_publish {
	char *temporary; /* path of the file while it is being written and verified */
	char *final;	 /* NULL: a dry run, the temporary file is removed in the end */
	int fd;
	int dir;	   /* of @final; -1: none */
	mode_t mode;	   /* permission bits of the finished file */
	sigset_t old_mask; /* signals wait until the temporary file is gone */
};

/*
 * me_publish_begin - makes a temporary file beside @output (dry run, @output NULL: in $TMPDIR
 * or /tmp). Its permission bits will be those of @input without set-id bits. Refuses an @output
 * that is @input itself, or that is not a regular file.
 * Return: 0 or -errno. me_publish_end() always.
 */
int me_publish_begin(struct me_publish *publish, const char *input, const char *output,
		     struct mp_err *err);
/* The refusals of me_publish_begin(), before long work. Return: 0 or -errno. */
int me_publish_check(const char *input, const char *output, struct mp_err *err);
/* Write @output to the temporary file. Return: 0 or -errno. */
int me_publish_write(struct me_publish *publish, const struct me_output_parts *output,
		     struct mp_err *err);
/* Set the permission bits, sync, rename; a dry run does nothing. Return: 0 or -errno. */
int me_publish_commit(struct me_publish *publish, struct mp_err *err);
/* Remove the temporary file unless it was committed. */
void me_publish_end(struct me_publish *publish);
/* Remove the temporary files of all that has begun. For a signal handler that ends the process. */
void me_publish_remove_all(void);

#endif
