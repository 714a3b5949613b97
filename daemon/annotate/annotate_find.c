// SPDX-License-Identifier: Apache-2.0
/*
 * annotate_find - matches a user's name with the symbols of a file; see annotate_find.h.
 * Decides that a better match hides worse ones, and that several names at one address are one
 * function.
 */
#include "daemon/annotate/annotate_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/annotate/annotate.h"
#include "daemon/code/names.h"
#include "libprof/base/grow.h"

void md_ann_source_fini(struct md_ann_source *source)
{
	free(source->path);
	mp_map_free(source->map);
	free(source->counts);
	free(source->edges);
	free(source->ways);
}

static bool parse_address(const char *text, uint64_t *out)
{
	unsigned long long value;
	char *end;

	if (strncmp(text, "0x", 2) && strncmp(text, "0X", 2))
		return false;
	errno = 0;
	value = strtoull(text, &end, 16);
	if (errno || end <= text + 2 || *end)
		return false;
	*out = value;
	return true;
}

int md_ann_function_parse(const char *text, const char *address, struct md_ann_function *out)
{
	const char *at = text ? strrchr(text, '@') : NULL;
	size_t len = text ? strlen(text) : 0;

	memset(out, 0, sizeof(*out));
	if (text && parse_address(text, &out->vaddr)) {
		if (address)
			return -EINVAL;
		out->has_vaddr = true;
		return 0;
	}
	/* Only "@0x" begins an address: printf@@GLIBC_2.2.5 is a plain name. */
	if (at && at > text && !strncmp(at, "@0x", 3)) {
		if (address || !parse_address(at + 1, &out->vaddr))
			return -EINVAL;
		out->has_vaddr = true;
		len = (size_t)(at - text);
	}
	if (address) {
		if (!parse_address(address, &out->vaddr))
			return -EINVAL;
		out->has_vaddr = true;
	}
	if (text && !len)
		return -EINVAL;
	if (text) {
		out->name = strndup(text, len);
		if (!out->name)
			return -ENOMEM;
	}
	/* Other commands print "func" for a function without a name. */
	if (out->has_vaddr && out->name && !strcmp(out->name, "func")) {
		free(out->name);
		out->name = NULL;
	}
	return 0;
}

static int add(struct md_ann_candidates *out, size_t source, uint64_t vaddr, uint64_t samples,
	       const char *name, enum md_name_match match)
{
	char *text = md_demangle(name);

	if (!text)
		text = strdup(name);
	if (!text || mp_resize(out->all, out->nr + 1)) {
		free(text);
		return -ENOMEM;
	}
	out->all[out->nr++] = (struct md_ann_candidate){source, vaddr, samples, text, match};
	return 0;
}

static uint64_t samples_in(const struct md_ann_source *source, uint64_t vaddr, uint64_t size)
{
	if (source->map)
		return md_sample_table_mapped(source->map, source->counts, source->nr_counts, vaddr,
					      size);
	return md_sample_table_in(source->counts, source->nr_counts, vaddr, size);
}

static int find_names(const struct md_ann_source *source, size_t index,
		      const struct md_ann_function *wanted, const struct md_names *names,
		      struct md_ann_candidates *out)
{
	size_t first = out->nr;

	for (size_t i = 0; i < names->nr; i++) {
		const struct md_name *name = &names->names[i];
		enum md_name_match match;
		int r;

		if (!name->function ||
		    (wanted->has_vaddr && wanted->vaddr - name->vaddr >= name->size &&
		     wanted->vaddr != name->vaddr))
			continue;
		match = md_name_match(name->name, wanted->name);
		if (match == MD_NAME_OTHER)
			continue;
		if (out->nr > first && out->all[out->nr - 1].vaddr == name->vaddr) {
			if (match > out->all[out->nr - 1].match)
				out->all[out->nr - 1].match = match;
			continue;
		}
		r = add(out, index, name->vaddr, samples_in(source, name->vaddr, name->size),
			name->name, match);
		if (r)
			return r;
	}
	return 0;
}

int md_ann_find(const struct md_ann_source *source, size_t index,
		const struct md_ann_function *wanted, struct md_ann_candidates *out,
		struct mp_err *err)
{
	struct md_debuginfo *debug = NULL;
	struct md_names names = {0};
	struct mp_elf *elf;
	int r = mp_elf_open(source->path, MP_ELF_SYMBOLS, &elf, err);

	if (r)
		return r;
	if (!wanted->name) {
		if (mp_elf_is_code(elf, wanted->vaddr))
			r = add(out, index, wanted->vaddr, samples_in(source, wanted->vaddr, 1), "",
				MD_NAME_EXACT);
	} else {
		/* A separate debug file may have the names of a stripped file. */
		if (!elf->has_symtab)
			md_debuginfo_open(source->path, &debug, NULL);
		out->nr_stripped += !elf->has_symtab;
		r = md_names_build(elf, debug, &names);
		if (!r)
			r = find_names(source, index, wanted, &names, out);
	}
	md_names_fini(&names);
	md_debuginfo_close(debug);
	mp_elf_close(elf);
	return r ? mp_err_code(err, -r) : 0;
}

static int compare(const void *a, const void *b)
{
	const struct md_ann_candidate *x = a, *y = b;

	if (x->match != y->match)
		return x->match > y->match ? -1 : 1;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

void md_ann_candidates_sort(struct md_ann_candidates *candidates)
{
	size_t nr = 0;

	if (!candidates->nr)
		return;
	qsort(candidates->all, candidates->nr, sizeof(*candidates->all), compare);
	while (nr < candidates->nr && candidates->all[nr].match == candidates->all[0].match)
		nr++;
	for (size_t i = nr; i < candidates->nr; i++)
		free(candidates->all[i].name);
	candidates->nr = nr;
}

void md_ann_candidates_fini(struct md_ann_candidates *candidates)
{
	for (size_t i = 0; i < candidates->nr; i++)
		free(candidates->all[i].name);
	free(candidates->all);
	memset(candidates, 0, sizeof(*candidates));
}
