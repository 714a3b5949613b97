// SPDX-License-Identifier: Apache-2.0
/*
 * srcfile - the text of source files, line by line, for reports that interleave it.
 */
#ifndef MD_SRCFILE_H
#define MD_SRCFILE_H

#include <stddef.h>
#include <stdint.h>

struct md_srcfile {
	char *path;
	char *text;	/* NULL: cannot be shown */
	size_t *starts; /* of lines, and the end of the last */
	size_t nr_lines;
	const char *why; /* it cannot be shown; NULL: it is simply not there */
};

struct md_srcfiles {
	struct md_srcfile *files;
	size_t nr;
	int64_t built_s; /* sources written later are not what was compiled; 0: not known */
};

/*
 * md_srcfiles_get - the file @path, read at first use; paths come from debug information, so what
 * is no regular file of reasonable size is not opened. Return: NULL: no memory.
 */
const struct md_srcfile *md_srcfiles_get(struct md_srcfiles *files, const char *path);
void md_srcfiles_fini(struct md_srcfiles *files);

/* Line @line (from 1) without its end: *@len bytes. Return: NULL: there is none. */
const char *md_srcfile_line(const struct md_srcfile *file, int line, size_t *len);

#endif
