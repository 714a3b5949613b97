// SPDX-License-Identifier: Apache-2.0
/*
 * outfile - writes a file that appears under its name complete or not at all; without a name,
 * writes to standard output. Called by commands of morph-stats and morph that write files.
 */
#ifndef MD_OUTFILE_H
#define MD_OUTFILE_H

#include <stdio.h>

#include "libprof/base/err.h"

struct md_outfile {
	FILE *file;
	const char *path; /* NULL: standard output */
	char temporary[4096];
};

/* Return: 0 or -errno with a message. */
int md_outfile_open(const char *path, struct md_outfile *out, struct mp_err *err);
/* Writes what is left and renames the file. Closes it in any case. */
int md_outfile_commit(struct md_outfile *out, struct mp_err *err);
/* Drops the file. */
void md_outfile_abandon(struct md_outfile *out);

#endif
