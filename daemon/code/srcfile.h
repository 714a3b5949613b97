// SPDX-License-Identifier: Apache-2.0
/*
 * srcfile - reads source files, line by line, for reports that show them. Called by
 * annotate_print.
 */
#ifndef MD_SRCFILE_H
#define MD_SRCFILE_H

#include <stddef.h>
#include <stdint.h>

struct md_srcfile {
	char *path;
	char *text;	/* NULL: cannot be shown */
	size_t *starts; /* offsets of the lines, and the end of the last one */
	size_t nr_lines;
	const char *why; /* why it cannot be shown; NULL: the file does not exist */
};

struct md_srcfiles {
	struct md_srcfile *files;
	size_t nr;
	int64_t built_s; /* files written later are not the compiled sources; 0: not known */
	int failed;	 /* 0; -errno: a file could not be read */
};

/*
 * md_srcfiles_get - the file @path, read at first use. Paths come from debug information, so
 * only a regular file of reasonable size is read. Return: NULL: no memory.
 */
const struct md_srcfile *md_srcfiles_get(struct md_srcfiles *files, const char *path);
void md_srcfiles_fini(struct md_srcfiles *files);

/* Return: line @line (from 1), *@len bytes without its newline; NULL: there is none. */
const char *md_srcfile_line(const struct md_srcfile *file, int line, size_t *len);

#endif
