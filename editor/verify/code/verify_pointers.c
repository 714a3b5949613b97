// SPDX-License-Identifier: Apache-2.0
/*
 * verify_pointers - checks that each function has one address: either all places hold its old
 * address, or all hold its copy's. Called by the parts of verify, and by verify at the end.
 *
 * Words of data, their relocations, and operands are noted when they are checked: those that
 * changed by diff and pieces, the others by the scan and by the check of words. In the end no
 * function may have been noted both ways.
 */
#include <stdlib.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_note.h"
#include "editor/verify/code/verify_pointers.h"
#include "editor/verify/code/verify_tables.h"
#include "editor/verify/read/verify_parallel.h"
#include "editor/verify/read/verify_piece_index.h"
#include "libprof/base/grow.h"

static void note_kept(const struct vf *vf, uint64_t vaddr)
{
	vf_note_pointer(vf, vaddr, vaddr);
}

static bool is_unwind_data(const struct mp_section *sec)
{
	return !strcmp(sec->name, ".eh_frame") || !strcmp(sec->name, ".eh_frame_hdr") ||
	       !strncmp(sec->name, ".gcc_except_table", strlen(".gcc_except_table"));
}

/* Note relocated data of 4 bytes, and movabs. Operands, 8-byte words and offsets are noted
 * elsewhere. */
static void note_reloc(const struct vf *vf, const struct mp_reloc *rel)
{
	uint64_t to = rel->sym_value + (uint64_t)rel->addend;
	bool code = vf_is_text(vf, rel->vaddr);
	const struct mp_section *sec;
	const uint8_t *a, *b;

	switch (rel->type) {
	case R_X86_64_64:
		if (!code)
			return;
		break;
	case R_X86_64_32:
	case R_X86_64_32S:
		if (code)
			return;
		break;
	case R_X86_64_IRELATIVE: break;
	default: return;
	}
	sec = mp_elf_section_at(vf->o, rel->vaddr);
	if (!sec || is_unwind_data(sec))
		return;
	a = mp_elf_bytes(vf->o, rel->vaddr, 4);
	b = mp_elf_bytes(vf->n, rel->vaddr, 4);
	if (a && b && !memcmp(a, b, 4))
		note_kept(vf, to);
}

/* Moved addresses in words of data: entries of tables that only jumps read, and other words. */
struct words {
	struct vf_bits tables, others;
};

static void note_word(const struct vf *vf, struct words *words, uint64_t vaddr, uint64_t to)
{
	if (vf_bits_get(&vf->marks->pointer_moved, to))
		vf_bits_set(vf_is_table_word(vf, vaddr) ? &words->tables : &words->others, to);
}

/* Return: 0, -ENOMEM. */
static int find_words(const struct vf *vf, struct words *words)
{
	const struct mp_elf *o = vf->o;
	int ret = vf_bits_init(&words->tables, vf->old.text_start, vf->old.text_end);

	if (!ret)
		ret = vf_bits_init(&words->others, vf->old.text_start, vf->old.text_end);
	for (uint32_t i = 0; !ret && i < o->nr_dyn_relocs; i++)
		if (o->dyn_relocs[i].type == R_X86_64_RELATIVE)
			note_word(vf, words, o->dyn_relocs[i].vaddr,
				  (uint64_t)o->dyn_relocs[i].addend);
	for (uint32_t i = 0; !ret && i < o->nr_relocs; i++)
		if (o->relocs[i].type == R_X86_64_64 || vf_is_absolute(&o->relocs[i]))
			note_word(vf, words, o->relocs[i].vaddr,
				  o->relocs[i].sym_value + (uint64_t)o->relocs[i].addend);
	return ret;
}

/* Does @to stand only in tables that only jumps read? No program compares it with other values. */
static bool is_only_jumped_to(const struct words *words, uint64_t to)
{
	return vf_bits_get(&words->tables, to) && !vf_bits_get(&words->others, to);
}

/*
 * Note an offset in data that leads to code; it counts from @base if that is not 0. Unless it
 * is a switch's, a program may compute any address from it. Then the address it counts from
 * lies somewhere in the same section. The rule does not concern labels that
 * a program only jumps to.
 */
static void note_offset(const struct vf *vf, const struct words *words, const struct mp_reloc *rel,
			const struct mp_section *sec, uint64_t base, bool is_switch)
{
	uint64_t to = rel->sym_value + (uint64_t)rel->addend, before = rel->vaddr - sec->vaddr, end;
	const uint8_t *p = mp_elf_bytes(vf->o, rel->vaddr, 4);
	int32_t word;

	if (is_switch && p) {
		memcpy(&word, p, 4);
		note_kept(vf, base + (uint64_t)(int64_t)word);
		return;
	}
	end = to + (sec->size - before) + 1;
	if (end > vf->old.text_end)
		end = vf->old.text_end;
	to = vf_bits_next(&vf->marks->pointer_moved, to > before ? to - before : 0, end);
	for (; to < end; to = vf_bits_next(&vf->marks->pointer_moved, to + 1, end))
		if (!is_only_jumped_to(words, to))
			vf_bits_set(&vf->marks->pointer_kept, to);
}

/* Note all offsets in data. A run of offsets counts from its start, if code names that. */
static int note_offsets(const struct vf *vf)
{
	uint64_t base = 0, next = 0, asked = 0;
	struct words words = {0};
	bool is_switch = false;
	int ret = find_words(vf, &words);

	for (uint32_t i = 0; !ret && i < vf->o->nr_relocs; i++) {
		const struct mp_reloc *rel = &vf->o->relocs[i];
		const struct mp_section *sec;
		const uint8_t *a, *b;

		if (rel->type == R_X86_64_64 || vf_is_absolute(rel) || rel->type == R_X86_64_NONE ||
		    vf_is_text(vf, rel->vaddr))
			continue;
		sec = mp_elf_section_at(vf->o, rel->vaddr);
		if (!sec || is_unwind_data(sec))
			continue;
		if (vf_bits_get(&vf->old.data_ref, rel->vaddr))
			base = rel->vaddr;
		else if (rel->vaddr != next)
			base = 0;
		next = rel->vaddr + 4;
		if (base && base != asked) {
			is_switch = vf_table_user(vf, base);
			asked = base;
		}
		a = mp_elf_bytes(vf->o, rel->vaddr, 4);
		b = mp_elf_bytes(vf->n, rel->vaddr, 4);
		if (a && b && !memcmp(a, b, 4))
			note_offset(vf, &words, rel, sec, base, base && is_switch);
	}
	vf_bits_fini(&words.tables);
	vf_bits_fini(&words.others);
	return ret;
}

/* In programs with fixed addresses, tables that the linker made have no relocations. */
static void note_got(const struct vf *vf, const struct mp_section *sec)
{
	const uint8_t *p = mp_elf_bytes(vf->n, sec->vaddr, sec->size);
	uint64_t word;

	for (uint64_t k = 0; p && k + 8 <= sec->size; k += 8) {
		memcpy(&word, p + k, 8);
		note_kept(vf, word);
	}
}

/* Note dynamic symbols that did not change. The check of bytes noted those that did. */
static void note_dynsym(const struct vf *vf, const struct mp_section *sec)
{
	for (uint64_t k = 0; k + sizeof(Elf64_Sym) <= sec->size; k += sizeof(Elf64_Sym)) {
		Elf64_Sym a, b;

		if (sec->off + k + sizeof(a) > vf->o->size ||
		    sec->off + k + sizeof(b) > vf->n->size)
			return;
		memcpy(&a, vf->o->data + sec->off + k, sizeof(a));
		memcpy(&b, vf->n->data + sec->off + k, sizeof(b));
		if (a.st_shndx != SHN_UNDEF &&
		    (a.st_value == b.st_value || ELF64_ST_TYPE(a.st_info) == STT_GNU_IFUNC))
			note_kept(vf, a.st_value);
	}
}

/*
 * Note references to functions that no other check notes; these did not change. A word that the
 * loader fills from a dynamic symbol follows the symbol, unless it has an addend.
 */
static int note_fixed(const struct vf *vf)
{
	const struct mp_elf *o = vf->o;

	note_kept(vf, o->ehdr.e_entry);
	for (uint32_t i = 0; i < o->nr_symbols; i++)
		if (o->symbols[i].type == STT_GNU_IFUNC && o->symbols[i].shndx != SHN_UNDEF)
			note_kept(vf, o->symbols[i].vaddr);
	for (uint32_t i = 0; i < o->nr_sections; i++)
		if (o->sections[i].type == SHT_DYNSYM)
			note_dynsym(vf, &o->sections[i]);
	for (uint32_t i = 0; i < o->nr_dyn_relocs; i++)
		if (o->dyn_relocs[i].sym && o->dyn_relocs[i].addend)
			note_kept(vf, o->dyn_relocs[i].sym_value);
	for (uint32_t i = 0; i < o->nr_relocs; i++)
		note_reloc(vf, &o->relocs[i]);
	for (uint32_t i = 0; i < o->nr_dyn_relocs; i++)
		if (o->dyn_relocs[i].type == R_X86_64_IRELATIVE)
			note_kept(vf, (uint64_t)o->dyn_relocs[i].addend);
	for (uint32_t i = 0; i < o->nr_sections; i++)
		if (o->ehdr.e_type == ET_EXEC && o->sections[i].type == SHT_PROGBITS &&
		    !strncmp(o->sections[i].name, ".got", 4))
			note_got(vf, &o->sections[i]);
	return note_offsets(vf);
}

struct moved {
	uint64_t old, now;
};

static int by_now(const void *a, const void *b)
{
	const struct moved *x = a, *y = b;

	if (x->now != y->now)
		return x->now < y->now ? -1 : 1;
	return x->old < y->old ? -1 : x->old > y->old;
}

/* A copy may be empty (a dropped jump), but two functions must not get the same address. */
static int check_distinct(const struct vf *vf)
{
	const struct vf_bits *bits = &vf->marks->pointer_moved;
	struct moved *moved = NULL;
	uint32_t nr = 0, cap = 0;
	int ret = 0;

	for (uint64_t old = vf_bits_next(bits, vf->old.text_start, vf->old.text_end);
	     !ret && old < vf->old.text_end; old = vf_bits_next(bits, old + 1, vf->old.text_end)) {
		const struct mp_map_piece *copy = vf_piece_from(vf, old);
		uint64_t now = vf->marks->pointer_now[copy - vf->map->pieces];

		ret = mp_push(moved, nr, cap, ((struct moved){old, now ? now : copy->new_vaddr}));
	}
	if (nr)
		qsort(moved, nr, sizeof(*moved), by_now);
	for (uint32_t i = 1; !ret && i < nr; i++)
		if (moved[i].now == moved[i - 1].now)
			ret = vf_refuse(vf, moved[i].old,
					"pointers to it have the same address as those to %#llx",
					(unsigned long long)moved[i - 1].old);
	free(moved);
	return ret;
}

int vf_check_pointers(const struct vf *vf)
{
	uint64_t both;
	int ret;

	if (!vf->result->report.nr_pointers)
		return 0;
	ret = note_fixed(vf);
	if (ret)
		return ret;
	both = vf_bits_next(&vf->marks->pointer_moved, vf->old.text_start, vf->old.text_end);
	for (; !ret && both < vf->old.text_end;
	     both = vf_bits_next(&vf->marks->pointer_moved, both + 1, vf->old.text_end))
		if (vf_bits_get(&vf->marks->pointer_kept, both))
			ret = vf_go_on(vf, vf_refuse(vf, both,
						     "some pointers to this function hold its old "
						     "address, others its copy's"));
	return ret ? ret : check_distinct(vf);
}
