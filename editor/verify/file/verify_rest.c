// SPDX-License-Identifier: Apache-2.0
/*
 * verify_rest - checks what no loader reads, but debuggers, strip and patchelf use: the section
 * header table, the sections that are not loaded, and the gaps between them.
 *
 * verify calls it near the end, when the new segment's contents are proved. verify_symbols
 * checks symbols.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_version_tables.h"
#include "editor/verify/file/verify_link.h"
#include "editor/verify/file/verify_phdr_extend.h"
#include "editor/verify/file/verify_rest.h"
#include "editor/verify/known/verify_answers.h"
#include "editor/verify/known/verify_live.h"
#include "editor/verify/stubs/verify_audit.h"
#include "editor/verify/stubs/verify_calls.h"
#include "editor/verify/stubs/verify_count.h"
#include "editor/verify/stubs/verify_paths.h"

static const struct {
	const char *name;
	uint32_t type;
	uint64_t flags, align;
} new_sections[] = {
	{".morph.text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 64},
	{".gcc_except_table.morph", SHT_PROGBITS, SHF_ALLOC, 8},
	{".eh_frame", SHT_PROGBITS, SHF_ALLOC, 8},
	{".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 8},
	{MP_MAP_SECTION, SHT_NOTE, SHF_ALLOC, 4},
};

enum {
	NR_NEW = sizeof(new_sections) / sizeof(new_sections[0])
};

/*
 * Debug information describes copies, too: entries keep their places, and all sections grow
 * behind their old contents. Folder debug/ checks .debug_info. The tests of readers check the other contents;
 * nothing that runs depends on them.
 */
enum may_change {
	CHANGE_NOTHING,
	CHANGE_BYTES, /* other bytes, then new ones */
	CHANGE_GROWS, /* old bytes, then new ones */
	CHANGE_ALL,
};

static const struct {
	const char *name;
	enum may_change change;
} debug_sections[] = {
	{".debug_info", CHANGE_BYTES},	   {".debug_abbrev", CHANGE_GROWS},
	{".debug_line", CHANGE_GROWS},	   {".debug_ranges", CHANGE_GROWS},
	{".debug_rnglists", CHANGE_GROWS}, {".debug_loc", CHANGE_GROWS},
	{".debug_loclists", CHANGE_GROWS}, {".debug_line_str", CHANGE_GROWS},
	{".debug_aranges", CHANGE_ALL},	   {".gdb_index", CHANGE_ALL},
};

static enum may_change may_change(const struct mp_section *sec)
{
	for (size_t i = 0; i < sizeof(debug_sections) / sizeof(debug_sections[0]); i++)
		if (sec->type == SHT_PROGBITS && !(sec->flags & SHF_ALLOC) &&
		    !strcmp(sec->name, debug_sections[i].name))
			return sec->flags & SHF_COMPRESSED ? CHANGE_ALL : debug_sections[i].change;
	return CHANGE_NOTHING;
}

/* Is it a new section of range lists, in a file that had none? */
static bool is_new_list(const struct vf *vf, const struct mp_section *sec)
{
	return (!strcmp(sec->name, ".debug_ranges") || !strcmp(sec->name, ".debug_rnglists") ||
		!strcmp(sec->name, ".debug_loc") || !strcmp(sec->name, ".debug_loclists")) &&
	       mp_elf_section(vf->o, ".debug_info") && !mp_elf_section(vf->o, sec->name) &&
	       mp_elf_section(vf->n, sec->name) == sec && sec->type == SHT_PROGBITS &&
	       !sec->flags && !sec->vaddr && sec->align == 1 && !sec->link && !sec->info &&
	       !sec->entsize;
}

/* Is it a new link to the debug file? */
static bool is_new_link(const struct vf *vf, const struct mp_section *sec)
{
	return vf_is_link(vf, sec) && !mp_elf_section(vf->o, sec->name) && sec->align == 4;
}

/* Sections that were replaced got another name: of two with one name, tools see only one. */
static const char *name_now(const char *name)
{
	if (!strcmp(name, ".eh_frame"))
		return ".morph.eh_frame_old";
	if (!strcmp(name, ".eh_frame_hdr"))
		return ".morph.eh_frame_hdr_old";
	return name;
}

/* The linker's relocations describe the original; they would be wrong for moved code. */
static bool is_dropped(const struct mp_section *sec)
{
	return sec->type == SHT_RELA && !(sec->flags & SHF_ALLOC);
}

/* The address of an old section in the output. */
static uint64_t vaddr_now(const struct vf *vf, const struct mp_section *sec)
{
	return sec->flags & SHF_ALLOC && sec->size ? vf_vaddr_now(vf, sec->vaddr) : sec->vaddr;
}

/* Is it a section of the original that moved to the new segment? */
static bool is_moved(const struct vf *vf, const struct mp_section *sec)
{
	const struct vf_moved *m = &vf->now.moved;

	return m->end > m->start && sec->vaddr >= m->now && sec->vaddr - m->now < m->end - m->start;
}

static bool is_in_segment(const struct vf *vf, const struct mp_section *sec)
{
	const Elf64_Phdr *seg = vf->now.segment;

	return sec->flags & SHF_ALLOC && sec->vaddr >= seg->p_vaddr &&
	       sec->vaddr - seg->p_vaddr <= seg->p_memsz &&
	       sec->size <= seg->p_memsz - (sec->vaddr - seg->p_vaddr);
}

/* Is it the debug file's header of the program's section @of? */
static bool is_twin(const struct mp_section *of, const struct mp_section *sec)
{
	return of && of->vaddr == sec->vaddr && of->size == sec->size && of->align == sec->align;
}

static int check_new_section(const struct vf *vf, const struct mp_section *sec, uint32_t *nr)
{
	uint32_t i = (*nr)++;

	if (i == NR_NEW || strcmp(sec->name, new_sections[i].name) ||
	    sec->type != (vf->program ? SHT_NOBITS : new_sections[i].type) ||
	    sec->flags != new_sections[i].flags || sec->align != new_sections[i].align)
		return vf_refuse(vf, sec->vaddr, "section %.40s is not one of the new ones",
				 sec->name);
	if ((vf->program ? !is_twin(mp_elf_section(vf->program, sec->name), sec)
			 : sec->off - vf->now.segment->p_offset !=
				   sec->vaddr - vf->now.segment->p_vaddr) ||
	    sec->vaddr % sec->align || sec->link || sec->info || sec->entsize)
		return vf_refuse(vf, sec->vaddr, "header of new section %.40s is wrong", sec->name);
	return 0;
}

/* Return: the first moved section behind section *@at of the output; 0: none is left. */
static uint32_t next_moved(const struct vf *vf, uint32_t *at)
{
	while (++*at < vf->n->nr_sections)
		if (vf->n->sections[*at].flags & SHF_ALLOC && is_moved(vf, &vf->n->sections[*at]))
			return *at;
	return 0;
}

/* Is it a section that only some outputs have? Others prove what lies in memory, and the link. */
static bool is_added(const struct vf *vf, const struct mp_section *sec)
{
	if (is_new_list(vf, sec)) {
		vf_own(vf, sec->off, sec->size, ME_OWNER_DEBUG_ADDED);
		return true;
	}
	if (vf_is_counter_section(vf, sec) || vf_is_path_section(vf, sec) ||
	    vf_is_audit_section(vf, sec) || vf_is_call_section(vf, sec)) {
		if (!(sec->flags & SHF_ALLOC))
			vf_own(vf, sec->off, sec->size, ME_OWNER_TABLE);
		return true;
	}
	return vf_is_live_section(vf, sec) || vf_is_version_table_section(vf, sec) ||
	       vf_is_answers_section(vf, sec) || is_new_link(vf, sec);
}

/* The output's new sections stand between those of the original. */
int vf_read_sections(struct vf *vf)
{
	const struct mp_elf *o = vf->o, *n = vf->n;
	uint32_t k = 1, nr = 0, moved = 0;
	int ret = 0;

	for (uint32_t i = 1; i < o->nr_sections; i++)
		if (o->sections[i].type == SHT_SYMTAB)
			vf->old.symtab = i;
	vf->now.section = calloc(o->nr_sections + 1, sizeof(*vf->now.section));
	if (!vf->now.section)
		return -ENOMEM;
	for (uint32_t i = 1; i < o->nr_sections; i++) {
		if (vaddr_now(vf, &o->sections[i]) != o->sections[i].vaddr) {
			vf->now.section[i] = next_moved(vf, &moved);
			if (!vf->now.section[i])
				return vf_refuse(vf, o->sections[i].vaddr, "section %.40s is gone",
						 o->sections[i].name);
			continue;
		}
		/* mold puts them last, so sections of counters may stand at their place. */
		if (is_dropped(&o->sections[i]))
			continue;
		for (; !ret && k < n->nr_sections && is_in_segment(vf, &n->sections[k]); k++)
			if (!is_moved(vf, &n->sections[k]))
				ret = check_new_section(vf, &n->sections[k], &nr);
		if (ret)
			return ret;
		if (k == n->nr_sections)
			return vf_refuse(vf, o->sections[i].vaddr, "section %.40s is gone",
					 o->sections[i].name);
		vf->now.section[i] = k++;
	}
	if (next_moved(vf, &moved))
		return vf_refuse(vf, vf->now.segment->p_vaddr,
				 "the output has a moved section that the original lacks");
	for (; !ret && k < n->nr_sections; k++)
		if (!is_moved(vf, &n->sections[k]) && !is_added(vf, &n->sections[k]))
			ret = check_new_section(vf, &n->sections[k], &nr);
	if (!ret && nr != NR_NEW)
		ret = vf_refuse(vf, vf->now.segment->p_vaddr,
				"the output has %u of %d new sections", nr, NR_NEW);
	return ret;
}

static bool same_link(const struct vf *vf, uint32_t a, uint32_t b)
{
	return a < vf->o->nr_sections && vf->now.section[a] == b;
}

static bool is_rewritten(const struct vf *vf, uint32_t old)
{
	const struct mp_section *sec = &vf->o->sections[old];

	return old == vf->o->ehdr.e_shstrndx || sec->type == SHT_SYMTAB ||
	       (vf->old.symtab && vf->o->sections[vf->old.symtab].link == old);
}

/* In a debug file, loaded sections have no bytes, except notes. */
static uint32_t type_now(const struct vf *vf, const struct mp_section *sec)
{
	return vf->program && sec->flags & SHF_ALLOC && sec->type != SHT_NOTE ? SHT_NOBITS
									      : sec->type;
}

/* What became of the bytes of a section that is not loaded. */
static void own_contents(const struct vf *vf, const struct mp_section *a,
			 const struct mp_section *b, enum may_change change)
{
	uint64_t kept = change == CHANGE_NOTHING || change == CHANGE_GROWS ? a->size : 0;

	if (vf_is_link(vf, a))
		return; /* check_link() */
	vf_own(vf, b->off, kept, ME_OWNER_KEPT);
	vf_own(vf, b->off + kept, b->size - kept,
	       change == CHANGE_BYTES || !strcmp(a->name, ".debug_info") ? ME_OWNER_DEBUG_INFO
									 : ME_OWNER_DEBUG_ADDED);
}

static const Elf64_Shdr *raw_header(const struct mp_elf *elf, uint32_t i)
{
	return (const Elf64_Shdr *)(elf->data + elf->ehdr.e_shoff) + i;
}

/* The first header and others without a type have nothing that means anything. */
static bool same_empty(const struct vf *vf, uint32_t old, uint32_t now)
{
	Elf64_Shdr a, b;

	memcpy(&a, raw_header(vf->o, old), sizeof(a));
	memcpy(&b, raw_header(vf->n, now), sizeof(b));
	if (old)
		a.sh_name = b.sh_name; /* check_names() */
	return !memcmp(&a, &b, sizeof(a));
}

static int check_header(const struct vf *vf, uint32_t old)
{
	const struct mp_section *a = &vf->o->sections[old];
	const struct mp_section *b = &vf->n->sections[vf->now.section[old]];
	bool info = a->flags & SHF_INFO_LINK || a->type == SHT_RELA;
	enum may_change change = vf_is_link(vf, a) ? CHANGE_ALL : may_change(a);

	if (a->type == SHT_NULL)
		return same_empty(vf, old, vf->now.section[old])
			       ? 0
			       : vf_refuse(vf, 0, "section header %u changed", old);
	if (strcmp(b->name, name_now(a->name)))
		return vf_refuse(vf, a->vaddr, "section %.40s is called %.40s", a->name, b->name);
	if (type_now(vf, a) != b->type || a->flags != b->flags || vaddr_now(vf, a) != b->vaddr ||
	    a->align != b->align || a->entsize != b->entsize || !same_link(vf, a->link, b->link) ||
	    (!vf->program && (a->flags & SHF_ALLOC || a->type == SHT_NOBITS) &&
	     (vaddr_now(vf, a) == a->vaddr ? a->off : vf_off_now(vf, a->off)) != b->off) ||
	    (!is_rewritten(vf, old) && change == CHANGE_NOTHING && a->size != b->size) ||
	    ((change == CHANGE_BYTES || change == CHANGE_GROWS) && a->size > b->size) ||
	    (a->type != SHT_SYMTAB &&
	     (info ? !same_link(vf, a->info, b->info) : a->info != b->info)))
		return vf_refuse(vf, a->vaddr, "header of section %.40s changed", a->name);
	if (vf->program && a->flags & SHF_ALLOC && a->type == SHT_NOTE)
		return vf_check_kept_note(vf, a, b);
	if (a->flags & SHF_ALLOC || a->type == SHT_NOBITS || is_rewritten(vf, old))
		return 0;
	if (a->off > vf->o->size || a->size > vf->o->size - a->off || b->off > vf->n->size ||
	    b->size > vf->n->size - b->off)
		return vf_refuse(vf, a->vaddr, "section %.40s is outside of the file", a->name);
	if ((change == CHANGE_NOTHING || change == CHANGE_GROWS) &&
	    memcmp(vf->o->data + a->off, vf->n->data + b->off, a->size))
		return vf_refuse(vf, a->vaddr, "contents of section %.40s changed", a->name);
	own_contents(vf, a, b, change);
	return 0;
}

static int check_headers(const struct vf *vf)
{
	const struct mp_elf *o = vf->o, *n = vf->n;
	int ret = 0;

	/* The first header is empty. The section of names must be the same one. */
	if (!o->nr_sections || !n->nr_sections || !same_empty(vf, 0, 0) ||
	    !same_link(vf, o->ehdr.e_shstrndx, n->ehdr.e_shstrndx))
		return vf_refuse(vf, 0, "the section header table does not fit the ELF header");
	for (uint32_t i = 1; i < n->nr_sections; i++) {
		Elf64_Shdr raw;

		memcpy(&raw, raw_header(n, i), sizeof(raw));
		/* The reader takes a section that no segment loads for what it is. */
		if (raw.sh_type != SHT_NULL && raw.sh_flags != n->sections[i].flags)
			return vf_refuse(vf, 0, "section %.40s claims to be loaded",
					 n->sections[i].name);
	}
	for (uint32_t i = 1; !ret && i < o->nr_sections; i++)
		if (vf->now.section[i])
			ret = check_header(vf, i);
	vf_own(vf, n->ehdr.e_shoff, n->nr_sections * sizeof(Elf64_Shdr), ME_OWNER_SHDRS);
	return ret;
}

/* Every byte of the section names belongs to one section's name. */
static int check_names(const struct vf *vf)
{
	const struct mp_section *names = &vf->n->sections[vf->n->ehdr.e_shstrndx];
	uint64_t used = 1;

	if (!names->size || vf->n->data[names->off])
		return vf_refuse(vf, 0, "the string table of section names has no empty name");
	vf_own(vf, names->off, 1, ME_OWNER_SECTION_NAMES);
	for (uint32_t i = 1; i < vf->n->nr_sections; i++) {
		uint64_t len = strlen(vf->n->sections[i].name) + 1;
		Elf64_Shdr raw;

		memcpy(&raw, raw_header(vf->n, i), sizeof(raw));
		/* The reader ends a name that the file does not. */
		if (raw.sh_name >= names->size || len > names->size - raw.sh_name ||
		    vf->n->data[names->off + raw.sh_name + len - 1])
			return vf_refuse(vf, 0, "name of section %u is cut off", i);
		vf_own(vf, names->off + raw.sh_name, len, ME_OWNER_SECTION_NAMES);
		used += len;
	}
	if (used != names->size)
		return vf_refuse(vf, 0,
				 "the string table of section names holds more than the "
				 "sections' names");
	return 0;
}

/* Notes and the name of the loader have no larger alignment. */
#define VF_MOVED_ALIGN 64u

/* A used part of the file. It begins at the next multiple of @align behind the part before, or, if that is 0, later. */
struct extent {
	uint64_t start, end, align;
};

static int by_start(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool is_zero(const uint8_t *p, uint64_t len)
{
	return !len || (!*p && !memcmp(p, p + 1, len - 1));
}

static uint64_t round_up(uint64_t value, uint64_t align)
{
	return value > UINT64_MAX - align ? UINT64_MAX : (value + align - 1) / align * align;
}

/* Return: 0: verify_headers checked where the part begins. */
static uint64_t align_of(const struct vf *vf, const struct mp_section *sec)
{
	if (vf->program)
		return sec->flags & SHF_ALLOC ? 0 : sec->align > 1 ? sec->align : 1;
	if (!is_in_segment(vf, sec))
		return sec->align > 1 ? sec->align : 1;
	if (sec->vaddr == vf->now.segment->p_vaddr)
		return 0;
	return sec->align > 8 ? sec->align : 8; /* of everything behind the code */
}

/* May the part begin there if the one before ends at @at? */
static bool may_begin(const struct vf *vf, const struct extent *part, uint64_t at)
{
	if (part->align)
		return part->start == round_up(at, part->align);
	/* The new segment follows a hole; what moved has an alignment of its own. */
	return vf->program || at == vf->old.alloc_end || part->start - at < VF_MOVED_ALIGN;
}

static int check_gaps(const struct vf *vf)
{
	const struct mp_elf *n = vf->n;
	struct extent *part = malloc((n->nr_sections + 3) * sizeof(*part));
	const Elf64_Phdr *seg = vf->now.segment;
	uint64_t at = vf->old.alloc_end, segment_end = seg->p_offset + seg->p_filesz, end = 0;
	size_t nr = 0;
	int ret = 0;

	if (!part)
		return -ENOMEM;
	for (uint32_t i = 1; i < n->nr_sections; i++) {
		const struct mp_section *sec = &n->sections[i];

		if (sec->type != SHT_NOBITS && sec->size &&
		    (vf->program || is_in_segment(vf, sec) || !(sec->flags & SHF_ALLOC)) &&
		    (vf->program || !(sec->flags & SHF_ALLOC) || !is_moved(vf, sec)))
			part[nr++] =
				(struct extent){sec->off, sec->off + sec->size, align_of(vf, sec)};
	}
	if (!vf->program && vf->now.moved.end > vf->now.moved.start) {
		uint64_t off = vf_off_now(vf, vf->now.moved.start);

		part[nr++] = (struct extent){off, off + vf->now.moved.end - vf->now.moved.start, 0};
	}
	part[nr++] = (struct extent){n->ehdr.e_shoff,
				     n->ehdr.e_shoff + n->nr_sections * sizeof(Elf64_Shdr), 8};
	part[nr++] = (struct extent){n->size, n->size, 1};
	qsort(part, nr, sizeof(*part), by_start);
	for (size_t i = 0; !ret && i < nr; i++) {
		if (part[i].start < at || part[i].end > n->size || part[i].end < part[i].start)
			ret = vf_refuse(vf, 0, "file offset %#llx belongs to two sections",
					(unsigned long long)part[i].start);
		else if (!is_zero(n->data + at, part[i].start - at) || !may_begin(vf, &part[i], at))
			ret = vf_refuse(vf, 0, "bytes at file offset %#llx belong to no section",
					(unsigned long long)at);
		else
			vf_own(vf, at, part[i].start - at, ME_OWNER_GAP);
		at = part[i].end;
		end = at <= segment_end ? at : end;
	}
	free(part);
	/* strip and patchelf work by section headers. */
	if (!ret && !vf->program && end != segment_end)
		ret = vf_refuse(vf, seg->p_vaddr + (end - seg->p_offset),
				"no section header covers the new segment here");
	return ret;
}

int vf_check_sections(const struct vf *vf)
{
	static int (*const steps[])(const struct vf *) = {
		check_headers,
		check_names,
		check_gaps,
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(steps) / sizeof(steps[0]); i++)
		ret = steps[i](vf);
	return ret;
}
