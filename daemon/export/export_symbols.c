// SPDX-License-Identifier: Apache-2.0
/*
 * export_symbols - sorts a file's symbols once; see export_symbols.h. Decides the order of
 * several names at one address.
 */
#include "daemon/export/export_symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"

static bool is_function(const struct mp_symbol *s)
{
	return s->shndx != SHN_UNDEF && s->name[0] &&
	       (s->type == STT_FUNC || s->type == STT_GNU_IFUNC);
}

/* BOLT numbers all local symbols of a name, also those of data. */
static bool is_numbered(const struct mp_symbol *s)
{
	return s->bind == STB_LOCAL && s->shndx != SHN_UNDEF && s->name[0] && s->type != STT_FILE &&
	       s->type != STT_SECTION && s->vaddr;
}

/* Sorts by name, then by address; the .dynsym copy of a symbol follows it. */
static int compare_name(const void *a, const void *b)
{
	const struct mp_symbol *x = *(const struct mp_symbol *const *)a;
	const struct mp_symbol *y = *(const struct mp_symbol *const *)b;
	int r = strcmp(x->name, y->name);

	if (!r)
		r = (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
	return r ? r : x->dynamic - y->dynamic;
}

static int compare_vaddr(const void *a, const void *b)
{
	const struct md_export_symbol *x = a, *y = b;
	int r = (x->symbol->vaddr > y->symbol->vaddr) - (x->symbol->vaddr < y->symbol->vaddr);

	if (!r)
		r = (x->symbol->bind == STB_LOCAL) - (y->symbol->bind == STB_LOCAL);
	/* Keep the file's order: qsort() is not stable. */
	return r ? r : (x->symbol > y->symbol) - (x->symbol < y->symbol);
}

/* Adds the symbols of one name, which are sorted by address. */
static void add_name(struct md_export_symbols *out, const struct mp_symbol *const *symbols,
		     size_t nr)
{
	uint32_t number = 0, nr_functions = 0;
	uint64_t last = UINT64_MAX;
	size_t first = out->nr;

	for (size_t i = 0; i < nr; i++) {
		const struct mp_symbol *s = symbols[i];

		number += is_numbered(s);
		if (!is_function(s) || s->vaddr == last)
			continue; /* a copy: .symtab had it already */
		last = s->vaddr;
		nr_functions++;
		out->names[out->nr++] =
			(struct md_export_symbol){.symbol = s, .number = number ? number : 1};
	}
	for (size_t i = first; i < out->nr; i++) {
		out->names[i].nr_same = nr_functions - 1;
		out->names[i].name = out->nr_names;
	}
	out->nr_names += nr_functions > 0;
}

int md_export_symbols_init(struct md_export_symbols *out, const struct mp_elf *elf)
{
	const struct mp_symbol **sorted;
	size_t nr = 0;

	*out = (struct md_export_symbols){0};
	sorted = malloc(((size_t)elf->nr_symbols + 1) * sizeof(*sorted));
	out->names = malloc(((size_t)elf->nr_symbols + 1) * sizeof(*out->names));
	if (!sorted || !out->names) {
		free(sorted);
		md_export_symbols_fini(out);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (is_function(&elf->symbols[i]) || is_numbered(&elf->symbols[i]))
			sorted[nr++] = &elf->symbols[i];
	qsort(sorted, nr, sizeof(*sorted), compare_name);
	for (size_t i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr && !strcmp(sorted[i]->name, sorted[end]->name);)
			end++;
		add_name(out, sorted + i, end - i);
	}
	free(sorted);
	qsort(out->names, out->nr, sizeof(*out->names), compare_vaddr);
	return 0;
}

void md_export_symbols_fini(struct md_export_symbols *names)
{
	free(names->names);
	*names = (struct md_export_symbols){0};
}

const struct md_export_symbol *md_export_symbols_at(const struct md_export_symbols *names,
						    uint64_t vaddr, size_t *nr)
{
	size_t low = mp_search(i, 0, names->nr, names->names[i].symbol->vaddr < vaddr);

	for (*nr = 0; low + *nr < names->nr && names->names[low + *nr].symbol->vaddr == vaddr;)
		++*nr;
	return *nr ? &names->names[low] : NULL;
}

size_t md_export_symbols_format_bolt(const struct md_export_symbols *names, uint64_t vaddr,
				     char *buf, size_t size)
{
	size_t nr, len = 0;
	const struct md_export_symbol *name = md_export_symbols_at(names, vaddr, &nr);
	char number[16] = "";

	/* BOLT reads only .symtab: in a stripped file, exported functions have no name for BOLT. */
	while (name && nr && name->symbol->dynamic) {
		name++;
		nr--;
	}
	if (!name || !nr)
		return (size_t)snprintf(buf, size, "__BOLT_FDE_FUNCat%" PRIx64, vaddr);
	for (const char *p = name->symbol->name; *p; p++) {
		if ((*p == ' ' || *p == '\\') && len++ < size)
			buf[len - 1] = '\\';
		if (len++ < size)
			buf[len - 1] = *p;
	}
	if (name->symbol->bind == STB_LOCAL)
		snprintf(number, sizeof(number), "/%u", name->number);
	if (len < size)
		snprintf(buf + len, size - len, "%s", number);
	return len + strlen(number);
}
