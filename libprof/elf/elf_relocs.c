// SPDX-License-Identifier: Apache-2.0
/*
 * elf_relocs - reads static relocations that --emit-relocs kept, and the loader's dynamic
 * ones.
 * Dynamic ones come from PT_DYNAMIC (DT_RELA, DT_JMPREL, DT_RELR), and from allocated
 * SHT_RELA sections that PT_DYNAMIC does not cover: a static program has IRELATIVE entries
 * but no PT_DYNAMIC. Called by elf.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/elf/eh.h"
#include "libprof/elf/elf_private.h"

struct reloc_list {
	struct mp_reloc *relocs;
	uint32_t nr, room, max;
};

/* The symbol table that relocations index. */
struct sym_table {
	const uint8_t *syms;
	uint64_t nr;
};

static int reserve(struct mp_elf *elf, struct reloc_list *list, uint64_t more, struct mp_err *err)
{
	uint64_t room = list->nr + more;

	if (room > list->max)
		return mp_err_set(err, EBADMSG, "%s: %" PRIu64 " relocations are too many",
				  elf->path, room);
	if (room <= list->room)
		return 0;
	if (mp_resize(list->relocs, room))
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	list->room = (uint32_t)room;
	return 0;
}

static int append_rela(struct mp_elf *elf, struct reloc_list *list, const uint8_t *table,
		       uint64_t size, const struct sym_table *symtab, bool dynamic,
		       struct mp_err *err)
{
	uint64_t nr = size / sizeof(Elf64_Rela);
	int ret = reserve(elf, list, nr, err);

	if (ret)
		return ret;
	for (uint64_t i = 0; i < nr; i++) {
		struct mp_reloc *reloc = &list->relocs[list->nr + i];
		Elf64_Rela rela;
		Elf64_Sym sym = {.st_shndx = SHN_UNDEF};

		memcpy(&rela, table + i * sizeof(rela), sizeof(rela));
		*reloc = (struct mp_reloc){
			.vaddr = rela.r_offset,
			.addend = rela.r_addend,
			.type = ELF64_R_TYPE(rela.r_info),
			.sym = ELF64_R_SYM(rela.r_info),
			.dynamic = dynamic,
		};
		if (!reloc->sym)
			continue;
		if (reloc->sym >= symtab->nr)
			return mp_err_set(err, EBADMSG,
					  "%s: relocation at 0x%" PRIx64
					  " names symbol %u of %" PRIu64,
					  elf->path, reloc->vaddr, reloc->sym, symtab->nr);
		memcpy(&sym, symtab->syms + reloc->sym * sizeof(sym), sizeof(sym));
		reloc->sym_shndx = sym.st_shndx;
		reloc->sym_value = sym.st_shndx == SHN_UNDEF ? 0 : sym.st_value;
	}
	list->nr += (uint32_t)nr;
	return 0;
}

static int cmp_reloc(const void *a, const void *b)
{
	const struct mp_reloc *ra = a, *rb = b;

	if (ra->vaddr != rb->vaddr)
		return ra->vaddr < rb->vaddr ? -1 : 1;
	if (ra->type != rb->type)
		return ra->type < rb->type ? -1 : 1;
	return ra->addend < rb->addend ? -1 : ra->addend > rb->addend;
}

static void sort_relocs(struct reloc_list *list)
{
	/* Linkers write relocations nearly in order: test before sorting. */
	for (uint32_t i = 1; i < list->nr; i++) {
		if (list->relocs[i - 1].vaddr > list->relocs[i].vaddr) {
			qsort(list->relocs, list->nr, sizeof(*list->relocs), cmp_reloc);
			break;
		}
	}
}

/* Returns the relocations of @list, in an array of exactly their number. */
static struct mp_reloc *take_relocs(struct reloc_list *list, uint32_t *nr)
{
	struct mp_reloc *relocs = list->relocs;

	*nr = list->nr;
	if (list->nr < list->room)
		(void)mp_resize(relocs, list->nr ? list->nr : 1);
	list->relocs = NULL;
	return relocs;
}

static bool section_symbols(const struct mp_elf *elf, const struct mp_section *rela,
			    struct sym_table *table)
{
	const struct mp_section *sec;

	*table = (struct sym_table){0};
	if (!rela->link)
		return true; /* no symbols: only sym 0 is valid */
	if (rela->link >= elf->nr_sections)
		return false;
	sec = &elf->sections[rela->link];
	if (sec->type != SHT_SYMTAB && sec->type != SHT_DYNSYM)
		return false;
	table->syms = elf->data + sec->off;
	table->nr = sec->size / sizeof(Elf64_Sym);
	return true;
}

static int append_section(struct mp_elf *elf, struct reloc_list *list, const struct mp_section *sec,
			  bool dynamic, struct mp_err *err)
{
	struct sym_table symtab;

	if (sec->entsize != sizeof(Elf64_Rela) || sec->size % sizeof(Elf64_Rela))
		return mp_err_set(err, EBADMSG, "%s: %s: entries of %" PRIu64 " bytes", elf->path,
				  sec->name, sec->entsize);
	if (!section_symbols(elf, sec, &symtab))
		return mp_err_set(err, EBADMSG, "%s: %s: no symbol table", elf->path, sec->name);
	return append_rela(elf, list, elf->data + sec->off, sec->size, &symtab, dynamic, err);
}

/* The loaded section that a static relocation section applies to, or NULL. */
static const struct mp_section *static_target(const struct mp_elf *elf,
					      const struct mp_section *sec)
{
	const struct mp_section *target;

	if (sec->type != SHT_RELA || (sec->flags & SHF_ALLOC) || !sec->info ||
	    sec->info >= elf->nr_sections)
		return NULL;
	target = &elf->sections[sec->info];
	return (target->flags & SHF_ALLOC) ? target : NULL;
}

static int read_static(struct mp_elf *elf, struct mp_err *err)
{
	struct reloc_list list = {.max = MP_ELF_MAX_RELOCS};
	const struct mp_section *target;
	uint64_t total = 0;
	int ret = 0;

	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		if (static_target(elf, &elf->sections[i]))
			total += elf->sections[i].size / sizeof(Elf64_Rela);
	}
	ret = reserve(elf, &list, total, err);
	for (uint32_t i = 1; i < elf->nr_sections && !ret; i++) {
		target = static_target(elf, &elf->sections[i]);
		if (!target)
			continue;
		ret = append_section(elf, &list, &elf->sections[i], false, err);
		if (target->flags & SHF_EXECINSTR)
			elf->relinkable = true;
	}
	if (ret) {
		free(list.relocs);
		return ret;
	}
	sort_relocs(&list);
	elf->relocs = take_relocs(&list, &elf->nr_relocs);
	return 0;
}

struct dynamic {
	uint64_t rela, rela_size, jmprel, jmprel_size, relr, relr_size, symtab;
};

static void read_dynamic(const struct mp_elf *elf, struct dynamic *dyn)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type != PT_DYNAMIC)
			continue;
		for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= phdr->p_filesz;
		     at += sizeof(Elf64_Dyn)) {
			Elf64_Dyn d;

			memcpy(&d, elf->data + phdr->p_offset + at, sizeof(d));
			switch (d.d_tag) {
			case DT_NULL: return;
			case DT_RELA: dyn->rela = d.d_un.d_ptr; break;
			case DT_RELASZ: dyn->rela_size = d.d_un.d_val; break;
			case DT_JMPREL: dyn->jmprel = d.d_un.d_ptr; break;
			case DT_PLTRELSZ: dyn->jmprel_size = d.d_un.d_val; break;
			case DT_RELR: dyn->relr = d.d_un.d_ptr; break;
			case DT_RELRSZ: dyn->relr_size = d.d_un.d_val; break;
			case DT_SYMTAB: dyn->symtab = d.d_un.d_ptr; break;
			}
		}
		return;
	}
}

/* DT_SYMTAB has no size: take it from the section, else up to the end of the segment. */
static void dynamic_symbols(const struct mp_elf *elf, uint64_t vaddr, struct sym_table *table)
{
	const struct mp_section *sec = mp_elf_section_at(elf, vaddr);
	struct mp_cursor rest;

	*table = (struct sym_table){0};
	if (!vaddr)
		return;
	if (sec && sec->type == SHT_DYNSYM && sec->vaddr == vaddr) {
		table->syms = elf->data + sec->off;
		table->nr = sec->size / sizeof(Elf64_Sym);
		return;
	}
	if (mp_eh_cursor_at(elf, vaddr, &rest)) {
		table->syms = rest.p;
		table->nr = (uint64_t)(rest.end - rest.p) / sizeof(Elf64_Sym);
	}
}

static int append_dynamic_table(struct mp_elf *elf, struct reloc_list *list, uint64_t vaddr,
				uint64_t size, const struct sym_table *symtab, struct mp_err *err)
{
	const uint8_t *bytes;

	if (!vaddr || !size)
		return 0;
	bytes = mp_elf_bytes(elf, vaddr, size);
	if (!bytes)
		return mp_err_set(err, EBADMSG,
				  "%s: dynamic relocations at 0x%" PRIx64 " are not in the file",
				  elf->path, vaddr);
	return append_rela(elf, list, bytes, size, symtab, true, err);
}

static int append_relative(struct mp_elf *elf, struct reloc_list *list, uint64_t vaddr,
			   struct mp_err *err)
{
	const uint8_t *word = mp_elf_bytes(elf, vaddr, sizeof(uint64_t));
	int64_t addend = 0;
	int ret;

	if (!word)
		return mp_err_set(err, EBADMSG,
				  "%s: DT_RELR names 0x%" PRIx64 ", which is not in the file",
				  elf->path, vaddr);
	if (list->nr == list->room) {
		uint64_t grow = list->room / 2 + 64;

		if (grow > list->max - list->nr)
			grow = list->max - list->nr ? list->max - list->nr : 1;
		ret = reserve(elf, list, grow, err);
		if (ret)
			return ret;
	}
	memcpy(&addend, word, sizeof(addend));
	list->relocs[list->nr++] = (struct mp_reloc){
		.vaddr = vaddr,
		.addend = addend,
		.type = R_X86_64_RELATIVE,
		.dynamic = true,
	};
	return 0;
}

/*
 * DT_RELR: an even word is an address to relocate. An odd word is a bitmap of the 63 words
 * that follow the last address.
 */
static int append_relr(struct mp_elf *elf, struct reloc_list *list, const struct dynamic *dyn,
		       struct mp_err *err)
{
	const uint8_t *bytes;
	uint64_t next = 0;
	int ret;

	if (!dyn->relr || !dyn->relr_size)
		return 0;
	bytes = mp_elf_bytes(elf, dyn->relr, dyn->relr_size);
	if (!bytes)
		return mp_err_set(err, EBADMSG, "%s: DT_RELR is not in the file", elf->path);
	for (uint64_t at = 0; at + 8 <= dyn->relr_size; at += 8) {
		uint64_t word;

		memcpy(&word, bytes + at, sizeof(word));
		if (!(word & 1)) {
			ret = append_relative(elf, list, word, err);
			if (ret)
				return ret;
			next = word + 8;
			continue;
		}
		for (unsigned int bit = 1; bit < 64; bit++) {
			if (!(word >> bit & 1))
				continue;
			ret = append_relative(elf, list, next + (bit - 1) * 8, err);
			if (ret)
				return ret;
		}
		next += 63 * 8;
	}
	return 0;
}

static bool covered(uint64_t vaddr, uint64_t start, uint64_t size)
{
	return start && vaddr >= start && vaddr - start < size;
}

static int read_all_dynamic(struct mp_elf *elf, struct reloc_list *list, struct mp_err *err)
{
	struct dynamic dyn = {0};
	struct sym_table symtab;
	int ret;

	read_dynamic(elf, &dyn);
	dynamic_symbols(elf, dyn.symtab, &symtab);
	ret = append_dynamic_table(elf, list, dyn.rela, dyn.rela_size, &symtab, err);
	/* Some linkers count the PLT's entries in DT_RELASZ, too. */
	if (!ret && !covered(dyn.jmprel, dyn.rela, dyn.rela_size))
		ret = append_dynamic_table(elf, list, dyn.jmprel, dyn.jmprel_size, &symtab, err);
	if (!ret)
		ret = append_relr(elf, list, &dyn, err);
	for (uint32_t i = 1; i < elf->nr_sections && !ret; i++) {
		const struct mp_section *sec = &elf->sections[i];

		if (sec->type == SHT_RELA && (sec->flags & SHF_ALLOC) &&
		    !covered(sec->vaddr, dyn.rela, dyn.rela_size) &&
		    !covered(sec->vaddr, dyn.jmprel, dyn.jmprel_size))
			ret = append_section(elf, list, sec, true, err);
	}
	return ret;
}

int mp_elf_read_relocs(struct mp_elf *elf, struct mp_err *err)
{
	struct reloc_list list = {.max = MP_ELF_MAX_DYN_RELOCS};
	int ret;

	ret = read_static(elf, err);
	if (ret)
		return ret;
	ret = read_all_dynamic(elf, &list, err);
	if (ret) {
		free(list.relocs);
		return ret;
	}
	sort_relocs(&list);
	elf->dyn_relocs = take_relocs(&list, &elf->nr_dyn_relocs);
	return 0;
}
