// SPDX-License-Identifier: Apache-2.0
/* names - collects and sorts symbols; see names.h. */
#include "daemon/code/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/demangle.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/insn/insn.h"

static void add(struct md_names *names, const struct md_name *name)
{
	if (mp_grow(names->names, names->max, names->nr + 1)) {
		names->elf = NULL; /* no memory; md_names_build() checks it */
		return;
	}
	names->names[names->nr++] = *name;
}

static void add_debug_symbol(void *ctx, const char *text, uint64_t vaddr, uint64_t size)
{
	struct md_name name = {vaddr, size, text, true, true};

	add(ctx, &name);
}

static int compare(const void *a, const void *b)
{
	const struct md_name *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->function != y->function)
		return x->function ? -1 : 1;
	if (x->local != y->local)
		return x->local ? 1 : -1;
	return strcmp(x->name, y->name);
}

int md_names_build(const struct mp_elf *elf, struct md_debuginfo *debug, struct md_names *out)
{
	memset(out, 0, sizeof(*out));
	out->elf = elf;
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *s = &elf->symbols[i];
		bool function = s->type == STT_FUNC || s->type == STT_GNU_IFUNC;
		struct md_name name = {s->vaddr, s->size, s->name, function, s->bind == STB_LOCAL};

		if ((function || s->type == STT_OBJECT) && s->shndx != SHN_UNDEF && s->name[0])
			add(out, &name);
	}
	/* Add the symbols that strip removed. The file's own symbols sort first. */
	if (debug && !elf->has_symtab)
		md_debuginfo_each_symbol(debug, add_debug_symbol, out);
	if (!out->elf) {
		md_names_fini(out);
		return -ENOMEM;
	}
	if (out->nr)
		qsort(out->names, out->nr, sizeof(*out->names), compare);
	return 0;
}

void md_names_fini(struct md_names *names)
{
	free(names->names);
	memset(names, 0, sizeof(*names));
}

const struct md_name *md_names_at(const struct md_names *names, uint64_t vaddr)
{
	const struct md_name *name;
	size_t low = mp_search(i, 0, names->nr, names->names[i].vaddr <= vaddr);

	if (!low)
		return NULL;
	name = &names->names[low - 1];
	while (name > names->names && name[-1].vaddr == name->vaddr)
		name--;
	return vaddr == name->vaddr || vaddr - name->vaddr < name->size ? name : NULL;
}

const char *md_names_plt(const struct md_names *names, uint64_t vaddr)
{
	const struct mp_elf *elf = names->elf;
	const struct mp_section *sec = mp_elf_section_at(elf, vaddr);
	struct mp_insn insn;

	if (!sec || strncmp(sec->name, ".plt", 4))
		return NULL;
	for (int i = 0; i < 3; i++, vaddr += insn.len) {
		const uint8_t *bytes = mp_elf_bytes(elf, vaddr, 8);

		if (!bytes || mp_insn_decode(bytes, 8, vaddr, &insn))
			return NULL;
		if (insn.kind == MP_INSN_IJUMP)
			break;
	}
	if (insn.kind != MP_INSN_IJUMP || !insn.rip_relative)
		return NULL;
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++) {
		const struct mp_reloc *reloc = &elf->dyn_relocs[i];

		if (reloc->vaddr != insn.target || !reloc->sym)
			continue;
		for (uint32_t k = 0; k < elf->nr_symbols; k++)
			if (elf->symbols[k].dynamic && elf->symbols[k].index == reloc->sym)
				return elf->symbols[k].name;
	}
	return NULL;
}

char *md_names_format(const struct md_names *names, uint64_t vaddr)
{
	const struct md_name *name = md_names_at(names, vaddr);
	const char *plt = name ? NULL : md_names_plt(names, vaddr);
	char *text, *brief, *full = NULL;
	int r;

	if (!name && !plt)
		return NULL;
	text = md_demangle(name ? name->name : plt);
	brief = text ? md_name_brief(text) : strdup(name ? name->name : plt);
	free(text);
	if (!brief)
		return NULL;
	if (plt)
		r = asprintf(&full, "%s@plt", brief);
	else if (vaddr != name->vaddr)
		r = asprintf(&full, "%s+0x%llx", brief, (unsigned long long)(vaddr - name->vaddr));
	else
		r = asprintf(&full, "%s", brief);
	free(brief);
	return r < 0 ? NULL : full;
}
