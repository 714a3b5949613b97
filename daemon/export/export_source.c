// SPDX-License-Identifier: Apache-2.0
/*
 * export_source - looks in the file's symbols first, then in its debug information; see
 * export_source.h.
 */
#include "daemon/export/export_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A failed allocation must not end the program: file names then stay relative. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A directory and a file name in it, joined. */
struct md_export_path {
	UT_hash_handle hh;
	struct {
		const char *dir, *file; /* strings of the debug information, compared by address */
	} key;
	char path[];
};

int md_export_source_init(struct md_export_source *source, const struct md_export_module *m)
{
	int r;

	*source = (struct md_export_source){.code = m->code};
	if (!m->code)
		return 0;
	r = md_debuginfo_open(m->code->elf->path, &source->debug, NULL);
	if (r)
		source->debug = NULL;
	if (mp_err_is_failure(r))
		return r;
	return md_names_build(m->code->elf, source->debug, &source->names);
}

void md_export_source_fini(struct md_export_source *source)
{
	struct md_export_path *path, *next;

	HASH_ITER(hh, source->paths, path, next) {
		HASH_DEL(source->paths, path);
		free(path);
	}
	md_names_fini(&source->names);
	md_debuginfo_close(source->debug);
	*source = (struct md_export_source){0};
}

const char *md_export_source_name(const struct md_export_source *source, uint32_t f,
				  char buf[static 32])
{
	const struct mp_func *func = &source->code->cfg->funcs[f];
	const struct md_name *name;

	if (func->name[0])
		return func->name;
	name = md_names_at(&source->names, func->vaddr);
	/* Ignore the name of another symbol that merely spans this address. */
	if (name && name->function && name->vaddr == func->vaddr && name->name[0])
		return name->name;
	return md_code_function_name(func, buf);
}

static const char *whole_name(struct md_export_source *source, uint64_t vaddr, const char *file)
{
	const char *dir = file[0] == '/' ? NULL : md_debuginfo_directory(source->debug, vaddr);
	struct md_export_path want = {0}, *path;
	size_t size;

	if (!dir)
		return file;
	want.key.dir = dir;
	want.key.file = file;
	HASH_FIND(hh, source->paths, &want.key, sizeof(want.key), path);
	if (path)
		return path->path;
	size = strlen(dir) + strlen(file) + 2;
	path = calloc(1, sizeof(*path) + size);
	if (!path)
		return file;
	path->key = want.key;
	snprintf(path->path, size, "%s/%s", dir, file);
	HASH_ADD(hh, source->paths, key, sizeof(path->key), path);
	if (path->hh.tbl)
		return path->path;
	free(path);
	return file;
}

bool md_export_source_line(struct md_export_source *source, uint64_t vaddr, struct md_line *line)
{
	if (source->debug && md_debuginfo_line(source->debug, vaddr, line)) {
		line->file = whole_name(source, vaddr, line->file);
		return true;
	}
	*line = (struct md_line){0};
	return false;
}

size_t md_export_source_inlines(struct md_export_source *source, uint64_t vaddr,
				struct md_inline *out, size_t max)
{
	size_t nr = source->debug ? md_debuginfo_inlines(source->debug, vaddr, out, max) : 0;

	for (size_t i = 0; i < nr; i++)
		if (out[i].call.file)
			out[i].call.file = whole_name(source, vaddr, out[i].call.file);
	return nr;
}
