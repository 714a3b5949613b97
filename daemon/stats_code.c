// SPDX-License-Identifier: Apache-2.0
/*
 * stats_code - opens a module's file for query and export. Decides that identity, not the path,
 * says whether a file is the module.
 */
#include "daemon/stats_code.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool want_none(void *ctx, const struct mp_func *func)
{
	(void)ctx;
	(void)func;
	return false;
}

int md_code_open(const struct mp_module *module, const char *binary, bool blocks,
		 struct md_code *out, struct mp_err *err)
{
	const struct mp_cfg_options functions_only = {.want = want_none};
	const char *path = binary ? binary : module->path;
	int r;

	memset(out, 0, sizeof(*out));
	if (module->kind != MP_MODULE_FILE)
		return mp_err_set(err, ENOENT, "%s: no file", module->path);
	r = mp_elf_open(path, MP_ELF_ALL, &out->elf, err);
	if (r)
		return r;
	if (!mp_id_equal(&out->elf->id, &module->id)) {
		md_code_close(out);
		return mp_err_set(err, ESTALE, "%s: is not the file that was profiled", path);
	}
	out->blocks = blocks;
	r = mp_cfg_build(out->elf, blocks ? NULL : &functions_only, &out->cfg, err);
	if (r)
		md_code_close(out);
	return r;
}

void md_code_close(struct md_code *code)
{
	mp_cfg_free(code->cfg);
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

const struct mp_symbol *md_code_symbol_at(const struct md_code *code, uint64_t vaddr)
{
	const struct mp_symbol *best = NULL;

	/* Several names for one function: the one that others can see, as BOLT does. */
	for (uint32_t i = 0; i < code->elf->nr_symbols; i++) {
		const struct mp_symbol *s = &code->elf->symbols[i];

		if (s->vaddr != vaddr || s->type != STT_FUNC || s->shndx == SHN_UNDEF ||
		    !s->name[0])
			continue;
		if (!best || (best->bind == STB_LOCAL && s->bind != STB_LOCAL))
			best = s;
	}
	return best;
}

const char *md_code_function_name(const struct mp_func *func, char *buf)
{
	if (func->name[0])
		return func->name;
	snprintf(buf, 32, "0x%llx", (unsigned long long)func->vaddr);
	return buf;
}
