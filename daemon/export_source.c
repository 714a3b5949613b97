// SPDX-License-Identifier: Apache-2.0
/*
 * export_source - asks the file's symbols first, then its debug information. Called by the exports
 * that show source code.
 */
#include "daemon/export_source.h"

#include <errno.h>

int md_export_source_init(struct md_export_source *source, const struct md_export_module *m)
{
	int r;

	*source = (struct md_export_source){.code = m->code};
	if (!m->code)
		return 0;
	r = md_debuginfo_open(m->code->elf->path, &source->debug, NULL);
	if (r)
		source->debug = NULL;
	if (r == -ENOMEM)
		return r;
	return md_names_build(m->code->elf, source->debug, &source->names);
}

void md_export_source_fini(struct md_export_source *source)
{
	md_names_fini(&source->names);
	md_debuginfo_close(source->debug);
	*source = (struct md_export_source){0};
}

const char *md_export_source_name(const struct md_export_source *source, uint32_t f, char *buf)
{
	const struct mp_func *func = &source->code->cfg->funcs[f];
	const struct md_name *name;

	if (func->name[0])
		return func->name;
	name = md_names_at(&source->names, func->vaddr);
	/* A name of something else that lies around it would mislead. */
	if (name && name->function && name->vaddr == func->vaddr && name->name[0])
		return name->name;
	return md_code_function_name(func, buf);
}

bool md_export_source_line(const struct md_export_source *source, uint64_t vaddr,
			   struct md_line *line)
{
	if (source->debug && md_debuginfo_line(source->debug, vaddr, line))
		return true;
	*line = (struct md_line){NULL, 0};
	return false;
}
