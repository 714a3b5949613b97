// SPDX-License-Identifier: Apache-2.0
/*
 * export_source - finds names and source lines of a module's code, also in separate debug
 * files. Called by the exports that show source code.
 */
#ifndef MD_EXPORT_SOURCE_H
#define MD_EXPORT_SOURCE_H

#include "daemon/code/debuginfo.h"
#include "daemon/export/export.h"
#include "daemon/code/names.h"

struct md_export_path;

struct md_export_source {
	const struct md_code *code;
	struct md_debuginfo *debug; /* NULL: no debug information */
	struct md_names names;
	struct md_export_path *paths; /* cache of completed relative file names */
};

/*
 * If @m has no code, nothing is known. Return: 0, -ENOMEM. Ownership: md_export_source_fini(),
 * also after an error.
 */
int md_export_source_init(struct md_export_source *source, const struct md_export_module *m);
void md_export_source_fini(struct md_export_source *source);

/* Return: the linker's name of function @f; "0x401000" if it has none. */
const char *md_export_source_name(const struct md_export_source *source, uint32_t f,
				  char buf[static 32]);
/*
 * Finds a source line. A relative file name is completed if its directory is known. Return:
 * false: not known; @line is then {NULL, 0}.
 */
bool md_export_source_line(struct md_export_source *source, uint64_t vaddr, struct md_line *line);
/*
 * Finds the inlined functions that hold @vaddr, outermost first; file names as above. Return:
 * how many.
 */
size_t md_export_source_inlines(struct md_export_source *source, uint64_t vaddr,
				struct md_inline *out, size_t max);

#endif
