// SPDX-License-Identifier: Apache-2.0
/*
 * outfile - a file that appears under its name whole or not at all; standard output where no name
 * is given. Called by the commands that draw.
 */
#ifndef MD_OUTFILE_H
#define MD_OUTFILE_H

#include <stdio.h>

#include "libprof/err.h"

struct md_outfile {
	FILE *file;
	const char *path; /* NULL: standard output */
	char temporary[4096];
};

/* Return: 0 or -errno with a message. */
int md_outfile_open(const char *path, struct md_outfile *out, struct mp_err *err);
/* Write what is left, and give the file its name. Closes it in any case. */
int md_outfile_commit(struct md_outfile *out, struct mp_err *err);
/* It is not to be after all. */
void md_outfile_abandon(struct md_outfile *out);

#endif
