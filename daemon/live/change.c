// SPDX-License-Identifier: Apache-2.0
/* change - compares an output with its original, byte for byte; see change.h. */
#include "daemon/live/change.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/note/map.h"

struct finder {
	const struct mp_elf *original, *output;
	const struct mp_map *map;
	struct md_changes *out;
	size_t max_pages, max_old, max_new, max_patches, max_words; /* room in the arrays of @out */
	uint64_t done; /* changes before this address are known */
};

/* ---- the new segment -------------------------------------------------------------------------- */

int md_changes_find_segment(const struct mp_elf *output, struct md_changes *out, struct mp_err *err)
{
	const struct mp_section *text = mp_elf_section(output, ".morph.text");

	*out = (struct md_changes){0};
	for (uint32_t i = 0; text && i < output->nr_phdrs; i++) {
		const Elf64_Phdr *p = &output->phdrs[i];

		if (p->p_type != PT_LOAD || text->vaddr < p->p_vaddr ||
		    text->vaddr - p->p_vaddr >= p->p_filesz)
			continue;
		if (p->p_flags != (PF_R | PF_X) || p->p_filesz != p->p_memsz ||
		    p->p_vaddr % MD_LIVE_PAGE || p->p_offset % MD_LIVE_PAGE)
			return mp_err_set(err, EPERM, "%s: its new segment cannot be mapped alone",
					  output->path);
		out->segment_vaddr = p->p_vaddr;
		out->segment_off = p->p_offset;
		out->segment_size = (p->p_memsz + MD_LIVE_PAGE - 1) & -(uint64_t)MD_LIVE_PAGE;
		return 0;
	}
	return mp_err_set(err, EPERM, "%s: has no copies of code", output->path);
}

static bool in_segment(const struct md_changes *c, uint64_t vaddr)
{
	return vaddr >= c->segment_vaddr && vaddr - c->segment_vaddr < c->segment_size;
}

/* ---- one change ------------------------------------------------------------------------------- */

static uint64_t rel32_target(const uint8_t *disp, uint64_t end)
{
	int32_t d;

	memcpy(&d, disp, sizeof(d));
	return end + (uint64_t)(int64_t)d;
}

/* Copies are aligned to lines of so many bytes at most. */
#define PADDING_MAX 63u

/*
 * Is there padding at @to that control runs through, up to a copy? So begins a copy of a block that was nothing but a jump to the
 * next one. Elsewhere padding consists of int3.
 */
static bool is_padding(const struct finder *f, uint64_t to)
{
	const uint8_t *byte = mp_elf_bytes(f->output, to, 1);
	bool runs = byte && *byte != 0xcc;

	for (uint32_t i = 1; runs && i <= PADDING_MAX; i++)
		if (mp_map_piece_at(f->map, to + i) < f->map->nr_pieces)
			return true;
	return false;
}

/* Is there a copy at @to? */
static bool is_copy(const struct finder *f, uint64_t to)
{
	return in_segment(f->out, to) &&
	       (mp_map_piece_at(f->map, to) < f->map->nr_pieces || is_padding(f, to));
}

static bool crosses_page(uint64_t start, uint64_t size)
{
	return start / MD_LIVE_PAGE != (start + size - 1) / MD_LIVE_PAGE;
}

/*
 * *@to: the page of @vaddr, new with the file's bytes if it is not there yet. Changes come in ascending order. Return: 0,
 * -ENOMEM, -EBADMSG: there is none, or it is no page of the file.
 */
static int page_of(struct finder *f, uint64_t vaddr, struct md_live_page **to)
{
	struct md_changes *out = f->out;
	uint64_t start = vaddr & -(uint64_t)MD_LIVE_PAGE, off = 0;
	struct md_live_page *page;

	if (out->nr_pages && out->pages[out->nr_pages - 1].vaddr == start) {
		*to = &out->pages[out->nr_pages - 1];
		return 0;
	}
	if (!mp_elf_vaddr_to_off(f->original, vaddr, &off) || off < vaddr - start)
		return -EBADMSG;
	off -= vaddr - start;
	if (off % MD_LIVE_PAGE)
		return -EBADMSG;
	if (mp_grow(out->pages, f->max_pages, out->nr_pages + 1) ||
	    mp_grow(out->old_bytes, f->max_old, (out->nr_pages + 1) * MD_LIVE_PAGE) ||
	    mp_grow(out->new_bytes, f->max_new, (out->nr_pages + 1) * MD_LIVE_PAGE))
		return -ENOMEM;
	page = &out->pages[out->nr_pages];
	*page = (struct md_live_page){start, off, out->nr_pages * MD_LIVE_PAGE};
	memset(out->old_bytes + page->at, 0, MD_LIVE_PAGE);
	if (off < f->original->size) {
		size_t n = f->original->size - off;

		memcpy(out->old_bytes + page->at, f->original->data + off,
		       n < MD_LIVE_PAGE ? n : MD_LIVE_PAGE);
	}
	memcpy(out->new_bytes + page->at, out->old_bytes + page->at, MD_LIVE_PAGE);
	out->nr_pages++;
	*to = page;
	return 0;
}

/* Takes the output's bytes for [start, start + size), which lies in one page. */
static int take(struct finder *f, uint64_t start, uint32_t size)
{
	const uint8_t *new = mp_elf_bytes(f->output, start, size);
	struct md_live_page *page = NULL;
	int r = new ? page_of(f, start, &page) : -EBADMSG;
	uint8_t *to;

	if (r)
		return r;
	to = f->out->new_bytes + page->at + start % MD_LIVE_PAGE;
	for (uint32_t i = 0; i < size; i++)
		f->out->nr_bytes += to[i] != new[i];
	memcpy(to, new, size);
	return 0;
}

/* Does a function begin at @start, with an instruction that is no jump such as a patch is? */
static bool begins_function(const struct finder *f, uint64_t start)
{
	const struct mp_fde *fde = mp_elf_fde_before(f->original, start);
	const uint8_t *was = mp_elf_bytes(f->original, start, 1);

	return fde && fde->start == start && was && *was != 0xe9;
}

static int add_patch(struct finder *f, uint64_t start)
{
	f->done = start + MD_PATCH_SIZE;
	if (crosses_page(start, MD_PATCH_SIZE)) {
		f->out->nr_left_out++;
		return 0;
	}
	if (mp_grow(f->out->patches, f->max_patches, f->out->nr_patches + 1))
		return -ENOMEM;
	f->out->patches[f->out->nr_patches++] = start;
	f->out->nr_over_first += begins_function(f, start);
	return take(f, start, MD_PATCH_SIZE);
}

static int add_branch(struct finder *f, uint64_t disp)
{
	f->done = disp + 4;
	if (crosses_page(disp, 4)) {
		f->out->nr_left_out++;
		return 0;
	}
	f->out->nr_branches++;
	return take(f, disp, 4);
}

/* Is a changed branch's displacement at @disp, with an opcode that stays? It leads to a copy. */
static bool is_branch(const struct finder *f, uint64_t disp)
{
	const uint8_t *old = mp_elf_bytes(f->original, disp - 2, 6),
		      *new = mp_elf_bytes(f->output, disp - 2, 6);
	bool short_opcode, long_opcode;

	if (!old || !new)
		return false;
	short_opcode = new[1] == old[1] && (new[1] == 0xe8 || new[1] == 0xe9);
	long_opcode = new[0] == 0x0f && old[0] == 0x0f && new[1] == old[1] &&
		      (new[1] & 0xf0) == 0x80;
	return (short_opcode || long_opcode) && is_copy(f, rel32_target(new + 2, disp + 4)) &&
	       mp_elf_is_code(f->original, rel32_target(old + 2, disp + 4));
}

static bool is_patch(const struct finder *f, uint64_t start)
{
	const uint8_t *new = mp_elf_bytes(f->output, start, MD_PATCH_SIZE);

	return new &&*new == 0xe9 && !is_branch(f, start + 1) &&
	       is_copy(f, rel32_target(new + 1, start + MD_PATCH_SIZE));
}

/* Does a copy of the code at @old begin at @to, which is_copy()? What is padding cannot be told. */
static bool is_copy_of(const struct finder *f, uint64_t to, uint64_t old)
{
	uint32_t i = mp_map_piece_at(f->map, to);

	return i == f->map->nr_pieces ||
	       (f->map->pieces[i].new_vaddr == to && f->map->pieces[i].old_vaddr == old);
}

/* Does the patch lead to a copy of what it covers? It may begin behind endbr64. */
static bool is_exact_patch(const struct finder *f, uint64_t start)
{
	uint64_t to = rel32_target(mp_elf_bytes(f->output, start + 1, 4), start + MD_PATCH_SIZE);

	return is_copy_of(f, to, start) || is_copy_of(f, to, start - 4);
}

/* Does the branch lead to a copy of what it led to? */
static bool is_exact_branch(const struct finder *f, uint64_t disp)
{
	return is_copy_of(f, rel32_target(mp_elf_bytes(f->output, disp, 4), disp + 4),
			  rel32_target(mp_elf_bytes(f->original, disp, 4), disp + 4));
}

/* The patches and branches that the differing byte at @vaddr may belong to. @exact: only those. Return: their number. */
static unsigned int find_changes(const struct finder *f, uint64_t vaddr, bool exact,
				 uint64_t *patch, uint64_t *branch)
{
	unsigned int nr = 0;

	*patch = *branch = 0;
	for (uint64_t at = vaddr - MD_PATCH_SIZE + 1; at <= vaddr; at++)
		if (at >= f->done && is_patch(f, at) && (!exact || is_exact_patch(f, at))) {
			*patch = at;
			nr++;
		}
	for (uint64_t at = vaddr - 3; at <= vaddr; at++)
		if (at >= f->done && is_branch(f, at) && (!exact || is_exact_branch(f, at))) {
			*branch = at;
			nr++;
		}
	return nr;
}

/*
 * The change that the differing byte of code at @vaddr belongs to. The output was proved, so there is one; what is
 * not known is where it begins, since its first bytes may be the original's, and other bytes may look like one. If two
 * are possible after all, neither is taken.
 */
static int add_code(struct finder *f, uint64_t vaddr, struct mp_err *err)
{
	uint64_t patch, branch;
	unsigned int nr = find_changes(f, vaddr, false, &patch, &branch);

	if (nr > 1)
		nr = find_changes(f, vaddr, true, &patch, &branch);
	if (nr == 1)
		return patch ? add_patch(f, patch) : add_branch(f, branch);
	return mp_err_set(err, EPERM,
			  "%s: changes the code at 0x%" PRIx64 " in a way that is not for running "
			  "processes; write a version with --live-at",
			  f->output->path, vaddr);
}

/* Not every output has been proved yet: the word may reach out of its segment. */
static int add_word(struct finder *f, uint64_t vaddr)
{
	const uint8_t *new = mp_elf_bytes(f->output, vaddr, 4);

	if (!new)
		return -EBADMSG;
	if (mp_grow(f->out->words, f->max_words, f->out->nr_words + 1))
		return -ENOMEM;
	memcpy(&f->out->words[f->out->nr_words++], new, 4);
	return take(f, vaddr, 4);
}

/* ---- one section ------------------------------------------------------------------------------ */

static int compare_section(struct finder *f, const struct mp_section *s, struct mp_err *err)
{
	const uint8_t *old = mp_elf_bytes(f->original, s->vaddr, s->size),
		      *new = mp_elf_bytes(f->output, s->vaddr, s->size);
	int r = old && new ? 0 : -EBADMSG;

	f->done = s->vaddr;
	for (uint64_t i = 0; !r && i < s->size; i++) {
		if (i % 256 == 0 && i + 256 <= s->size && !memcmp(old + i, new + i, 256)) {
			i += 255;
			continue;
		}
		if (old[i] == new[i] || s->vaddr + i < f->done)
			continue;
		if (s->flags & SHF_EXECINSTR) {
			r = add_code(f, s->vaddr + i, err);
			continue;
		}
		/* A word of a switch table, or half of one. */
		f->done = ((s->vaddr + i) & ~(uint64_t)3) + 4;
		r = add_word(f, f->done - 4);
	}
	if (r == -EBADMSG)
		return mp_err_set(err, EPERM, "%s: is no version of %s", f->output->path,
				  f->original->path);
	return r == -ENOMEM ? mp_err_code(err, ENOMEM) : r;
}

static int compare_words(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_vaddr(const void *a, const void *b)
{
	const struct mp_section *x = *(const struct mp_section *const *)a,
				*y = *(const struct mp_section *const *)b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Only these have changes that a process needs. */
bool md_changes_compares(const struct mp_section *s)
{
	return (s->flags & SHF_ALLOC) && !(s->flags & SHF_WRITE) && s->type == SHT_PROGBITS &&
	       s->size && strcmp(s->name, ".interp");
}

static int compare_sections(struct finder *f, struct mp_err *err)
{
	const struct mp_section **list = calloc(f->original->nr_sections + 1u, sizeof(*list));
	size_t nr = 0;
	int r = 0;

	if (!list)
		return mp_err_code(err, ENOMEM);
	for (uint32_t i = 0; i < f->original->nr_sections; i++)
		if (md_changes_compares(&f->original->sections[i]))
			list[nr++] = &f->original->sections[i];
	qsort(list, nr, sizeof(*list), compare_vaddr);
	for (size_t i = 0; !r && i < nr; i++) {
		if (i && list[i]->vaddr - list[i - 1]->vaddr < list[i - 1]->size)
			r = mp_err_set(err, EPERM, "%s: its sections overlap", f->original->path);
		else
			r = compare_section(f, list[i], err);
	}
	free(list);
	return r;
}

/* Was the file linked with --emit-relocs? Its relocations themselves need not be read. */
static bool is_relinkable(const struct mp_elf *elf)
{
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];

		if (s->type == SHT_RELA && !(s->flags & SHF_ALLOC) && s->info &&
		    s->info < elf->nr_sections &&
		    (elf->sections[s->info].flags & (SHF_ALLOC | SHF_EXECINSTR)) ==
			    (SHF_ALLOC | SHF_EXECINSTR))
			return true;
	}
	return false;
}

int md_changes_find(const struct mp_elf *original, const struct mp_elf *output,
		    struct md_changes *out, struct mp_err *err)
{
	struct finder f = {.original = original, .output = output, .out = out};
	struct mp_map *map = NULL;
	int r;

	*out = (struct md_changes){0};
	r = mp_map_read(output, &map, err);
	if (r == -ENOENT || (!r && !mp_id_equal(&map->original, &original->id)))
		r = mp_err_set(err, EPERM, "%s: is no version of %s", output->path, original->path);
	f.map = map;
	if (!r && !original->nr_sections)
		r = mp_err_set(err, EPERM, "%s: has no section headers", original->path);
	if (!r && is_relinkable(original) && !mp_elf_section(output, ".morph.live"))
		r = mp_err_set(err, EPERM,
			       "%s: may have changed pointers to functions; write a version with "
			       "--live-at",
			       output->path);
	if (!r)
		r = md_changes_find_segment(output, out, err);
	if (!r)
		r = compare_sections(&f, err);
	if (!r && out->nr_words)
		qsort(out->words, out->nr_words, sizeof(*out->words), compare_words);
	mp_map_free(map);
	return r;
}

void md_changes_fini(struct md_changes *changes)
{
	free(changes->pages);
	free(changes->old_bytes);
	free(changes->new_bytes);
	free(changes->patches);
	free(changes->words);
	*changes = (struct md_changes){0};
}

bool md_changes_inside(const struct md_changes *changes, uint64_t vaddr)
{
	size_t behind = mp_search(i, 0, changes->nr_patches, changes->patches[i] < vaddr);

	return behind && vaddr - changes->patches[behind - 1] < MD_PATCH_SIZE;
}

bool md_changes_has_patch(const struct md_changes *changes, uint64_t vaddr)
{
	size_t behind = mp_search(i, 0, changes->nr_patches, changes->patches[i] <= vaddr);

	return behind && vaddr - changes->patches[behind - 1] < MD_PATCH_SIZE;
}

bool md_changes_has_word(const struct md_changes *changes, uint64_t value)
{
	uint32_t word = (uint32_t)value, high = (uint32_t)(value >> 32);

	return (!high || high == UINT32_MAX) && changes->nr_words &&
	       bsearch(&word, changes->words, changes->nr_words, sizeof(word), compare_words);
}
