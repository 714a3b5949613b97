// SPDX-License-Identifier: Apache-2.0
/*
 * stats_code - opens a module's file; see stats_code.h. Decides that the file's identity must
 * match; its path does not matter.
 */
#include "daemon/code/stats_code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/names.h"
#include "daemon/code/originals.h"

static bool want_none(void *ctx, const struct mp_func *func)
{
	(void)ctx;
	(void)func;
	return false;
}

/* Opens @path if it is the module. Return: 0, -ESTALE another file, -errno. */
static int open_file(const char *path, const struct mp_id *id, struct mp_elf **out,
		     struct mp_err *err)
{
	int r = mp_elf_open(path, MP_ELF_ALL, out, err);

	if (r || mp_id_equal(&(*out)->id, id))
		return r;
	mp_elf_close(*out);
	*out = NULL;
	return mp_err_set(err, ESTALE, "%s: is not the file that was profiled", path);
}

/*
 * Opens the original where it is kept, or beside its output. @r and @err describe why the module's path could not be
 * opened; they stay if no original is found. Return: 0, @r, or a failure of the machine.
 */
static int open_original(const struct mp_module *module, int r, struct mp_elf **out,
			 struct mp_err *err)
{
	char *path = NULL;
	struct mp_err why = {0};
	int s = md_original_find(&module->id, module->path, &path);

	if (mp_err_is_failure(s))
		r = mp_err_code(err, -s);
	else if (s == -EACCES)
		mp_err_set(err, -r, "%.150s; %s may not be read", err->msg, path);
	else if (!s)
		s = open_file(path, &module->id, out, &why);
	if (!s)
		r = 0;
	else if (why.msg[0] && mp_err_is_failure(s)) {
		*err = why;
		r = s;
	}
	free(path);
	return r;
}

/* strip keeps only the names in .dynsym; the debug file has the others. */
static int name_functions(struct md_code *code, struct mp_err *err)
{
	struct md_names names = {0};
	int r = md_original_symbols(&code->elf->id, &code->debug_file);

	if (!r && code->debug_file)
		r = md_names_build(code->debug_file, NULL, &names);
	if (r)
		return mp_err_code(err, -r);
	for (uint32_t i = 0; i < code->cfg->nr_funcs; i++) {
		struct mp_func *func = &code->cfg->funcs[i];
		const struct md_name *name = func->name[0] ? NULL
							   : md_names_at(&names, func->vaddr);

		if (name && name->function && name->vaddr == func->vaddr)
			func->name = name->name;
	}
	md_names_fini(&names);
	return 0;
}

int md_code_open(const struct mp_module *module, const char *binary, bool blocks,
		 struct md_code *out, struct mp_err *err)
{
	const struct mp_cfg_options functions_only = {.want = want_none};
	const char *path = binary ? binary : module->path;
	struct mp_id original;
	struct mp_err local, why;
	bool is_of = !binary;
	int r, s;

	memset(out, 0, sizeof(*out));
	err = err ? err : &local;
	if (module->kind != MP_MODULE_FILE)
		return mp_err_set(err, ENOENT, "%s: not a file", module->path);
	r = open_file(path, &module->id, &out->elf, err);
	if (r == -ESTALE && binary) {
		s = md_original_id(binary, &original, &why);
		if (mp_err_is_failure(s)) {
			*err = why;
			return s;
		}
		is_of = !s && mp_id_equal(&original, &module->id);
	}
	if (r && is_of && !mp_err_is_failure(r))
		r = open_original(module, r, &out->elf, err);
	if (r)
		return r;
	out->blocks = blocks;
	r = mp_cfg_build(out->elf, blocks ? NULL : &functions_only, &out->cfg, err);
	if (!r && !out->elf->has_symtab)
		r = name_functions(out, err);
	if (r)
		md_code_close(out);
	return r;
}

void md_code_close(struct md_code *code)
{
	mp_cfg_free(code->cfg);
	mp_elf_close(code->debug_file);
	mp_elf_close(code->elf);
	memset(code, 0, sizeof(*code));
}

uint32_t md_code_range_at(const struct md_code *code, uint64_t vaddr)
{
	uint32_t f = mp_cfg_func_at(code->cfg, vaddr);
	const struct mp_func *func;

	if (f == MP_NONE)
		return MP_NONE;
	func = &code->cfg->funcs[f];
	for (uint32_t i = func->first_range; i < func->first_range + func->nr_ranges; i++)
		if (vaddr - code->cfg->ranges[i].start < code->cfg->ranges[i].size)
			return i;
	return MP_NONE;
}

const char *md_code_function_name(const struct mp_func *func, char buf[static 32])
{
	if (func->name[0])
		return func->name;
	snprintf(buf, 32, "0x%llx", (unsigned long long)func->vaddr);
	return buf;
}
