// SPDX-License-Identifier: Apache-2.0
/* import_symbols - finds addresses of names in fdata; see import_symbols.h. */
#include "daemon/import/import_symbols.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"

struct entry {
	const char *name;
	const char *file; /* source file of a local symbol; NULL: not known */
	uint64_t vaddr;
	uint32_t order; /* position in the symbol table */
	bool local;
};

struct md_symbol_index {
	struct entry *entries; /* sorted by name, address, order */
	size_t nr;
};

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int by_name = strcmp(x->name, y->name);

	if (by_name)
		return by_name;
	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

struct md_symbol_index *md_symbol_index_new(const struct mp_elf *elf)
{
	struct md_symbol_index *names = calloc(1, sizeof(*names));
	const char *file = NULL;

	if (names)
		names->entries = malloc(((size_t)elf->nr_symbols + 1) * sizeof(*names->entries));
	if (!names || !names->entries) {
		md_symbol_index_free(names);
		return NULL;
	}
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *s = &elf->symbols[i];

		/* An STT_FILE symbol precedes the local symbols of its file. */
		if (s->type == STT_FILE)
			file = s->name && *s->name ? s->name : NULL;
		if (s->type == STT_FILE || s->type == STT_SECTION || s->type == STT_TLS ||
		    s->shndx == SHN_UNDEF || !s->vaddr || !s->name || !*s->name)
			continue;
		if (s->dynamic && elf->has_symtab)
			continue;
		names->entries[names->nr++] = (struct entry){
			.name = s->name,
			.file = s->bind == STB_LOCAL ? file : NULL,
			.vaddr = s->vaddr,
			.order = i,
			.local = s->bind == STB_LOCAL,
		};
	}
	if (names->nr)
		qsort(names->entries, names->nr, sizeof(*names->entries), compare);
	return names;
}

void md_symbol_index_free(struct md_symbol_index *names)
{
	if (!names)
		return;
	free(names->entries);
	free(names);
}

/*
 * Finds the entries named by the @len bytes at @name; *@end is behind the last. Return: the
 * first, or NULL.
 */
static const struct entry *find_range(const struct md_symbol_index *names, const char *name,
				      size_t len, const struct entry **end)
{
	size_t lo = mp_search(i, 0, names->nr, strncmp(names->entries[i].name, name, len) < 0), hi;

	/* Longer names with this prefix follow the name itself. */
	if (lo == names->nr || strncmp(names->entries[lo].name, name, len) ||
	    names->entries[lo].name[len])
		return NULL;
	for (hi = lo + 1;
	     hi < names->nr && !strcmp(names->entries[hi].name, names->entries[lo].name);)
		hi++;
	*end = &names->entries[hi];
	return &names->entries[lo];
}

/* Finds an unnumbered name: the global symbol, or the only local address with this name. */
static bool find_plain(const struct md_symbol_index *names, const char *name, uint64_t *vaddr)
{
	const struct entry *end = NULL, *e = find_range(names, name, strlen(name), &end);
	const struct entry *found = e;

	for (; e && e < end; e++) {
		if (!e->local && found->local)
			found = e;
		else if (e->local == found->local && e->vaddr != found->vaddr)
			return false;
	}
	if (found)
		*vaddr = found->vaddr;
	return found;
}

/* Finds the @number-th local symbol of this name; if @file is given, among those of @file. */
static bool find_local(const struct md_symbol_index *names, const char *name, size_t len,
		       const char *file, size_t file_len, uint64_t number, uint64_t *vaddr)
{
	const struct entry *end = NULL, *e = find_range(names, name, len, &end);

	for (; e && e < end; e++) {
		if (!e->local)
			continue;
		if (file &&
		    (!e->file || strlen(e->file) != file_len || strncmp(e->file, file, file_len)))
			continue;
		if (--number)
			continue;
		*vaddr = e->vaddr;
		return true;
	}
	return false;
}

static bool find_numbered(const struct md_symbol_index *names, const char *name, uint64_t *vaddr)
{
	const char *slash = strrchr(name, '/'), *file;
	uint64_t number;
	char *end;

	if (!slash || slash == name || !isdigit((unsigned char)slash[1]))
		return false;
	errno = 0;
	number = strtoull(slash + 1, &end, 10);
	if (errno || *end || !number)
		return false;
	if (find_local(names, name, (size_t)(slash - name), NULL, 0, number, vaddr))
		return true;
	/* The name and the file may contain slashes. */
	for (file = memchr(name, '/', (size_t)(slash - name)); file && file < slash;
	     file = memchr(file + 1, '/', (size_t)(slash - file - 1)))
		if (file > name && find_local(names, name, (size_t)(file - name), file + 1,
					      (size_t)(slash - file - 1), number, vaddr))
			return true;
	return false;
}

static bool find_by_address(const char *name, uint64_t *vaddr)
{
	static const char *const prefixes[] = {"__BOLT_FDE_FUNCat", "ANONYMOUS."};
	char *end;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], len) || !isxdigit((unsigned char)name[len]))
			continue;
		errno = 0;
		*vaddr = strtoull(name + len, &end, 16);
		/* These names may be numbered too. */
		return !errno && (!*end || *end == '/');
	}
	return false;
}

bool md_symbol_index_find(const struct md_symbol_index *names, const char *name, uint64_t *vaddr)
{
	return find_plain(names, name, vaddr) || find_numbered(names, name, vaddr) ||
	       find_by_address(name, vaddr);
}
