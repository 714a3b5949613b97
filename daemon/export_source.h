// SPDX-License-Identifier: Apache-2.0
/*
 * export_source - names and source lines of a module's code, also from separate debug files.
 */
#ifndef MD_EXPORT_SOURCE_H
#define MD_EXPORT_SOURCE_H

#include "daemon/debuginfo.h"
#include "daemon/export.h"
#include "daemon/names.h"

struct md_export_path;

struct md_export_source {
	const struct md_code *code;
	struct md_debuginfo *debug; /* NULL: there is none */
	struct md_names names;
	struct md_export_path *paths; /* files whose names were relative */
};

/* Without code all is unknown. Return: 0, -ENOMEM. Ownership: md_export_source_fini(), also after
 * an error. */
int md_export_source_init(struct md_export_source *source, const struct md_export_module *m);
void md_export_source_fini(struct md_export_source *source);

/* As a linker knows it; "0x401000" where nobody does. @buf holds 32. */
const char *md_export_source_name(const struct md_export_source *source, uint32_t f, char *buf);
/* The file's name is whole, where its directory is known. Return: false: nothing is known, and
 * @line is {NULL, 0}. */
bool md_export_source_line(struct md_export_source *source, uint64_t vaddr, struct md_line *line);
/* Inlined functions that hold @vaddr, outermost first, likewise. Return: how many. */
size_t md_export_source_inlines(struct md_export_source *source, uint64_t vaddr,
				struct md_inline *out, size_t max);

#endif
