// SPDX-License-Identifier: Apache-2.0
/*
 * verify_symbols - checks .symtab: each symbol is unchanged or names the copies of its
 * function; added ones name old code or copies. Called by verify_rest.
 *
 * No run depends on it, but debuggers, profilers and later tools do.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/file/verify_phdr_extend.h"
#include "editor/verify/file/verify_symbols.h"
#include "editor/verify/read/verify_piece_index.h"

/*
 * For old code, and for copies. Rust's names have a suffix that Rust's traces leave out; beside these, others have none.
 */
static const char *const old_suffixes[] = {".morph.old", ".llvm.0", "", NULL};
static const char *const copy_suffixes[] = {
	".morph.warm", ".morph.hot", ".morph.part", ".llvm.1", ".llvm.2", ".llvm.3", "", NULL};

static const struct mp_symbol *find_table(const struct mp_elf *elf, uint32_t *nr)
{
	*nr = 0;
	while (*nr < elf->nr_symbols && !elf->symbols[*nr].dynamic)
		++*nr;
	return elf->symbols;
}

/* The code that the piece belongs to: inlined code to the function with the call. */
static uint64_t code_of(const struct vf *vf, const struct mp_map_piece *p)
{
	return vf_is_inlined(vf, p) ? vf_inlined_caller(vf, p)->old_vaddr : p->old_vaddr;
}

/* What is known of the output's code and symbols. */
struct known {
	const struct vf *vf;   /* of the program, not of a debug file */
	struct vf_bits starts; /* addresses in the new code at which symbols begin */
	uint32_t *run_end;     /* per piece: the next one that belongs to another FDE */
};

/* An empty piece belongs to the run around it. */
static int find_runs(struct known *known)
{
	const struct vf *vf = known->vf;
	const struct mp_map_piece *pieces = vf->map->pieces;
	uint32_t nr = vf->map->nr_pieces, start = 0, *run_end = malloc(nr * sizeof(*run_end));
	const struct vf_fde *fde = NULL;

	known->run_end = run_end;
	if (!run_end)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t code = code_of(vf, &pieces[i]);

		if (!pieces[i].new_size || (fde && code - fde->start < fde->size))
			continue;
		while (fde && start < i)
			run_end[start++] = i;
		fde = vf_eh_find(&vf->old.eh, code);
	}
	while (start < nr)
		run_end[start++] = nr;
	return 0;
}

/* Does the piece belong to the FDE? */
static bool is_of(const struct vf *vf, const struct mp_map_piece *p, const struct vf_fde *fde)
{
	return fde && code_of(vf, p) - fde->start < fde->size;
}

bool vf_is_run(const struct vf *vf, uint64_t old, uint64_t start, uint64_t size, uint32_t *last)
{
	const struct mp_map_piece *pieces = vf->map->pieces, *entry = vf_piece_from(vf, old);
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, old);
	uint32_t i = vf_first_piece(vf, start), nr = vf->map->nr_pieces, end;

	while (i < nr && pieces[i].new_vaddr == start && !pieces[i].new_size)
		i++;
	if (i == nr || pieces[i].new_vaddr != start || size > UINT64_MAX - start)
		return false;
	/* Empty pieces may follow the last one. */
	end = vf_first_piece(vf, start + size);
	while (end > i && !pieces[end - 1].new_size)
		end--;
	if (end <= i || pieces[end - 1].new_vaddr + pieces[end - 1].new_size != start + size)
		return false;
	*last = end - 1;
	return !old || is_of(vf, &pieces[i], fde) || is_of(vf, &pieces[end - 1], fde) ||
	       (entry && entry->new_vaddr - start < size);
}

/* Does @b cover a run of copies of the function @a? @a is NULL for a run without its entry. It must end
 * where copies of a function end, or where another symbol begins. */
static bool is_run(const struct vf *vf, const struct known *known, const struct mp_symbol *a,
		   const struct mp_symbol *b)
{
	const struct mp_map *map = vf->map;
	uint32_t last, next;

	if (b->shndx >= vf->n->nr_sections || &vf->n->sections[b->shndx] != vf->now.text ||
	    !vf_is_run(known->vf, a ? a->vaddr : 0, b->vaddr, b->size, &last))
		return false;
	next = last + 1;
	while (next < map->nr_pieces && !map->pieces[next].new_size)
		next++;
	return known->run_end[last] <= next ||
	       vf_bits_get(&known->starts, map->pieces[next].new_vaddr);
}

static bool same_place(const struct vf *vf, const struct mp_symbol *a, const struct mp_symbol *b)
{
	uint32_t section = a->shndx;
	uint64_t vaddr = a->vaddr;

	if (section != SHN_UNDEF && section < SHN_LORESERVE) {
		section = section < vf->o->nr_sections ? vf->now.section[section] : SHN_XINDEX;
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

static int check_symbol(const struct vf *vf, const struct known *known, const struct mp_symbol *a,
			const struct mp_symbol *b)
{
	if (a->type != b->type || a->bind != b->bind || a->other != b->other ||
	    name_off(vf->o, vf->old.symtab, a) !=
		    name_off(vf->n, vf->now.section[vf->old.symtab], b))
		return vf_refuse(vf, a->vaddr, "symbol %.48s changed", a->name);
	if (!same_place(vf, a, b) && (!is_function(a) || !is_run(vf, known, a, b)))
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
static bool is_extra(const struct vf *vf, const struct known *known, const struct mp_symbol *b,
		     const struct mp_symbol **of, const struct mp_symbol *end)
{
	if (b->type != STT_FUNC || b->bind != STB_LOCAL || b->shndx >= vf->n->nr_sections)
		return false;
	if (*of && is_named_after(b, *of, copy_suffixes) && b->other == (*of)->other &&
	    is_run(vf, known, NULL, b))
		return true;
	for (*of = *of ? *of + 1 : vf->o->symbols; *of < end; ++*of)
		if (is_function(*of) && is_named_after(b, *of, old_suffixes) &&
		    b->other == (*of)->other && same_place(vf, *of, b))
			return true;
	return false;
}

/* The string table holds the old strings, then the added names, and nothing else. */
static int check_strings(const struct vf *vf, uint64_t added)
{
	const struct mp_section *a = &vf->o->sections[vf->o->sections[vf->old.symtab].link], *b;

	b = &vf->n->sections[vf->now.section[vf->o->sections[vf->old.symtab].link]];
	if (b->size != a->size + added ||
	    memcmp(vf->o->data + a->off, vf->n->data + b->off, a->size))
		return vf_refuse(vf, 0, "names of symbols changed");
	vf_own(vf, b->off, b->size, ME_OWNER_STRINGS);
	b = &vf->n->sections[vf->now.section[vf->old.symtab]];
	vf_own(vf, b->off, b->size - b->size % sizeof(Elf64_Sym), ME_OWNER_SYMBOLS);
	return 0;
}

/* The addresses in the new code at which symbols begin. */
static int find_starts(const struct vf *vf, const struct mp_symbol *symbols, uint32_t nr,
		       struct vf_bits *starts)
{
	int ret =
		vf_bits_init(starts, vf->now.text->vaddr, vf->now.text->vaddr + vf->now.text->size);

	for (uint32_t i = 0; !ret && i < nr; i++)
		if (symbols[i].type == STT_FUNC)
			vf_bits_set(starts, symbols[i].vaddr);
	return ret;
}

int vf_check_symbols(const struct vf *vf)
{
	uint32_t nr_old, nr_new, nr_locals, i = 0, k;
	const struct mp_symbol *a = find_table(vf->o, &nr_old), *b = find_table(vf->n, &nr_new);
	const struct mp_symbol *of = NULL;
	struct known known = {.vf = vf->code ? vf->code : vf};
	uint64_t added = 0, strings;
	int ret;

	if (!vf->old.symtab)
		return nr_new ? vf_refuse(vf, 0, "the output has symbols, the original has none")
			      : 0;
	strings = vf->o->sections[vf->o->sections[vf->old.symtab].link].size;
	nr_locals = vf->o->sections[vf->old.symtab].info;
	if (nr_new < nr_old || nr_locals > nr_old ||
	    vf->n->sections[vf->now.section[vf->old.symtab]].info != nr_locals + (nr_new - nr_old))
		return vf_refuse(vf, 0, "the number of symbols is wrong");
	ret = find_starts(vf, b, nr_new, &known.starts);
	if (!ret)
		ret = find_runs(&known);
	for (k = 0; !ret && k < nr_new; k++) {
		if (k >= nr_locals && k < nr_locals + (nr_new - nr_old)) {
			if (name_off(vf->n, vf->now.section[vf->old.symtab], &b[k]) !=
				    strings + added ||
			    !is_extra(vf, &known, &b[k], &of, a + nr_old))
				ret = vf_refuse(vf, b[k].vaddr,
						"new symbol %.48s names neither "
						"old code nor copies",
						b[k].name);
			added += strlen(b[k].name) + 1;
			continue;
		}
		ret = check_symbol(vf, &known, &a[i++], &b[k]);
	}
	vf_bits_fini(&known.starts);
	free(known.run_end);
	return ret ? ret : check_strings(vf, added);
}
