// SPDX-License-Identifier: Apache-2.0
/*
 * verify_symbols - checks .symtab: each symbol is unchanged or names the copies of its
 * function; added ones name old code or copies. Called by verify_rest.
 *
 * No run depends on it, but debuggers, profilers and later tools do.
 */
#include <string.h>

#include "editor/verify/verify_private.h"

/* For old code, and for copies; Rust's names have a suffix that Rust's traces leave out. */
static const char *const old_suffixes[] = {".morph.old", ".llvm.0", NULL};
static const char *const copy_suffixes[] = {".morph.warm", ".morph.hot", ".morph.part", ".llvm.1",
					    ".llvm.2",	   ".llvm.3",	 NULL};

static const struct mp_symbol *find_table(const struct mp_elf *elf, uint32_t *nr)
{
	*nr = 0;
	while (*nr < elf->nr_symbols && !elf->symbols[*nr].dynamic)
		++*nr;
	return elf->symbols;
}

/* Does @b cover a run of whole copies, one of them of bytes that @a covered? @a is NULL for the
 * run without the function's entry: it may hold only the cold part, which has another symbol. */
static bool is_run(const struct vf *vf, const struct mp_symbol *a, const struct mp_symbol *b)
{
	const struct mp_map_piece *pieces = vf->map->pieces;
	uint32_t i = vf_first_piece(vf, b->vaddr);
	uint64_t end = b->vaddr;
	bool own = !a;

	if (i == vf->map->nr_pieces || pieces[i].new_vaddr != b->vaddr ||
	    &vf->n->sections[b->shndx] != vf->new_text)
		return false;
	for (; i < vf->map->nr_pieces && pieces[i].new_vaddr - b->vaddr <= b->size; i++) {
		if (pieces[i].new_vaddr + pieces[i].new_size - b->vaddr > b->size)
			break;
		own |= a && pieces[i].old_vaddr - a->vaddr < (a->size ? a->size : 1);
		end = pieces[i].new_vaddr + pieces[i].new_size;
	}
	return own && end == b->vaddr + b->size;
}

static bool same_place(const struct vf *vf, const struct mp_symbol *a, const struct mp_symbol *b)
{
	uint32_t section = a->shndx;
	uint64_t vaddr = a->vaddr;

	if (section != SHN_UNDEF && section < SHN_LORESERVE) {
		section = section < vf->o->nr_sections ? vf->section_now[section] : SHN_XINDEX;
		vaddr = a->type == STT_TLS ? vaddr : vf_vaddr_now(vf, vaddr);
	}
	return vaddr == b->vaddr && a->size == b->size && section == b->shndx;
}

static bool is_function(const struct mp_symbol *sym)
{
	return sym->type == STT_FUNC && sym->shndx != SHN_UNDEF;
}

/* Offset of the name in the string table. */
static uint64_t name_off(const struct mp_elf *elf, uint32_t symtab, const struct mp_symbol *sym)
{
	return (uint64_t)((const uint8_t *)sym->name - elf->data) -
	       elf->sections[elf->sections[symtab].link].off;
}

static int check_symbol(const struct vf *vf, const struct mp_symbol *a, const struct mp_symbol *b)
{
	if (a->type != b->type || a->bind != b->bind || a->other != b->other ||
	    name_off(vf->o, vf->symtab, a) != name_off(vf->n, vf->section_now[vf->symtab], b))
		return vf_refuse(vf, a->vaddr, "symbol %.48s changed", a->name);
	if (!same_place(vf, a, b) &&
	    (!is_function(a) || b->shndx >= vf->n->nr_sections || !is_run(vf, a, b)))
		return vf_refuse(vf, a->vaddr,
				 "symbol %.48s names neither its old code or data nor copies",
				 a->name);
	return 0;
}

static bool is_named_after(const struct mp_symbol *b, const struct mp_symbol *a,
			   const char *const *suffixes)
{
	size_t len = strlen(a->name);

	if (strncmp(b->name, a->name, len))
		return false;
	while (*suffixes && strcmp(b->name + len, *suffixes))
		suffixes++;
	return *suffixes;
}

/* Is @b an added symbol, for old code or a further run of copies? These are in the order of the
 * functions' own symbols. If several functions have one name, any of them may have old code. */
static bool is_extra(const struct vf *vf, const struct mp_symbol *b, const struct mp_symbol **of,
		     const struct mp_symbol *end)
{
	if (b->type != STT_FUNC || b->bind != STB_LOCAL || b->shndx >= vf->n->nr_sections)
		return false;
	if (*of && is_named_after(b, *of, copy_suffixes))
		return b->other == (*of)->other && is_run(vf, NULL, b);
	for (*of = *of ? *of + 1 : vf->o->symbols; *of < end; ++*of)
		if (is_function(*of) && is_named_after(b, *of, old_suffixes) &&
		    b->other == (*of)->other && same_place(vf, *of, b))
			return true;
	return false;
}

/* The string table holds the old strings, then the added names, and nothing else. */
static int check_strings(const struct vf *vf, uint64_t added)
{
	const struct mp_section *a = &vf->o->sections[vf->o->sections[vf->symtab].link], *b;

	b = &vf->n->sections[vf->section_now[vf->o->sections[vf->symtab].link]];
	if (b->size != a->size + added ||
	    memcmp(vf->o->data + a->off, vf->n->data + b->off, a->size))
		return vf_refuse(vf, 0, "names of symbols changed");
	return 0;
}

int vf_check_symbols(const struct vf *vf)
{
	uint32_t nr_old, nr_new, nr_locals, i = 0, k;
	const struct mp_symbol *a = find_table(vf->o, &nr_old), *b = find_table(vf->n, &nr_new);
	const struct mp_symbol *of = NULL;
	uint64_t added = 0, strings;
	int ret = 0;

	if (!vf->symtab)
		return nr_new ? vf_refuse(vf, 0, "the output has symbols, the original has none")
			      : 0;
	strings = vf->o->sections[vf->o->sections[vf->symtab].link].size;
	nr_locals = vf->o->sections[vf->symtab].info;
	if (nr_new < nr_old || nr_locals > nr_old ||
	    vf->n->sections[vf->section_now[vf->symtab]].info != nr_locals + (nr_new - nr_old))
		return vf_refuse(vf, 0, "the number of symbols is wrong");
	for (k = 0; !ret && k < nr_new; k++) {
		if (k >= nr_locals && k < nr_locals + (nr_new - nr_old)) {
			if (name_off(vf->n, vf->section_now[vf->symtab], &b[k]) !=
				    strings + added ||
			    !is_extra(vf, &b[k], &of, a + nr_old))
				ret = vf_refuse(vf, b[k].vaddr,
						"new symbol %.48s names neither "
						"old code nor copies",
						b[k].name);
			added += strlen(b[k].name) + 1;
			continue;
		}
		ret = check_symbol(vf, &a[i++], &b[k]);
	}
	return ret ? ret : check_strings(vf, added);
}
