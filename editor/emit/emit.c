// SPDX-License-Identifier: Apache-2.0
/*
 * emit - puts an output file together: place, copy, unwind, map, patch, then headers,
 * sections and symbols.
 */
#include "editor/emit/emit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "editor/emit/copy.h"
#include "editor/debug/debuglink.h"
#include "editor/emit/dynsym.h"
#include "editor/base/runtime.h"
#include "editor/place/sections.h"
#include "editor/place/segment.h"
#include "editor/debug/debug_file.h"
#include "editor/emit/start.h"
#include "editor/place/symbols.h"
#include "editor/unwind/unwind.h"
#include "libprof/note/map.h"

struct emitter {
	const struct mp_cfg *cfg;
	const struct mp_elf *elf;
	struct me_segment segment;
	struct me_pointers pointers;
	struct me_placement placement;
	struct me_sections sections;
	struct me_unwind unwind;
	struct me_debug *debug;
	uint8_t *link; /* new contents of .gnu_debuglink; NULL: unchanged */
	size_t link_size;
	uint32_t link_section;
	uint8_t *note;
	size_t note_size;
	uint64_t unwind_vaddr, note_vaddr;
	const struct me_plan *plan;
	struct me_start start; /* start, runtime_vaddr: only in an instrumented output */
	uint64_t runtime_vaddr;
	uint32_t table_section;
	uint8_t *old_part;    /* private copy of [0, segment.old_end) */
	uint8_t *new_segment; /* the new segment */
	size_t new_segment_size;
	struct me_emitted *out;
};

static uint64_t round_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

static int find_pointers(struct emitter *e, const struct me_plan *plan, struct mp_err *err)
{
	uint8_t *copied = calloc(e->cfg->nr_funcs + 1, 1);
	int rc;

	if (!copied)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		const struct mp_block *block = &e->cfg->blocks[plan->blocks[i].block];

		/*
		 * A block that is only a tail call may get an empty copy. Its function
		 * would then have the address of the next copy.
		 */
		if (block->vaddr == e->cfg->funcs[block->func].vaddr &&
		    !(block->term == MP_TERM_TAIL && block->term_len == block->size))
			copied[block->func] = 1;
	}
	rc = me_pointers_find(e->cfg, copied, &e->pointers, err);
	free(copied);
	return rc;
}

static int build_unwind(struct emitter *e, struct mp_err *err)
{
	uint32_t nr = e->placement.nr_copies;
	struct me_placed *placed = malloc((nr + 1) * sizeof(*placed));
	int rc;

	if (!placed)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < nr; i++) {
		const struct me_copy *copy = &e->placement.copies[i];

		placed[i] = (struct me_placed){
			.new_vaddr = copy->new_vaddr,
			.new_size = copy->new_size,
			.block = copy->block,
			.stub = copy->stub,
			.passed_by = e->placement.nr_stubs &&
				     e->placement.target_from_outside[copy->block] != i,
		};
		if (copy->falls && i + 1 < nr)
			placed[i].padding =
				(uint32_t)(copy[1].new_vaddr - copy->new_vaddr) - copy->new_size;
	}
	e->unwind_vaddr = round_up(e->placement.text_end, 8);
	rc = me_unwind_build(e->cfg, placed, nr, e->unwind_vaddr, &e->unwind, err);
	free(placed);
	return rc;
}

static int build_map(struct emitter *e, struct mp_err *err)
{
	uint32_t nr = e->placement.nr_copies;
	struct mp_map map = {.original = e->elf->id, .nr_pieces = nr};
	int rc;

	map.pieces = malloc((nr + 1) * sizeof(*map.pieces));
	if (!map.pieces)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < nr; i++) {
		const struct me_copy *copy = &e->placement.copies[i];
		const struct mp_block *block = &e->cfg->blocks[copy->block];

		map.pieces[i] = (struct mp_map_piece){copy->new_vaddr, copy->new_size,
						      copy->stub ? 0 : block->size, block->vaddr};
	}
	rc = mp_map_encode(&map, &e->note, &e->note_size, err);
	free(map.pieces);
	e->note_vaddr = round_up(e->unwind_vaddr + e->unwind.size, 8);
	return rc;
}

/* Build the new segment: code, unwind tables, map. */
static int build_new_segment(struct emitter *e, struct mp_err *err)
{
	e->new_segment_size = e->note_vaddr + e->note_size - e->segment.vaddr;
	if (e->plan->nr_counters) {
		e->runtime_vaddr = round_up(e->note_vaddr + e->note_size, 16);
		e->new_segment_size = e->runtime_vaddr + me_start_size() - e->segment.vaddr;
		e->placement.places.thread = e->runtime_vaddr + ME_RUNTIME_THREAD;
	}
	if (e->segment.displaced.size) {
		struct me_displaced *d = &e->segment.displaced;
		uint64_t end = e->segment.vaddr + e->new_segment_size;

		d->new_vaddr = end + ((d->vaddr - end) & (d->align - 1));
		e->new_segment_size = d->new_vaddr + d->size - e->segment.vaddr;
	}
	e->new_segment = calloc(1, e->new_segment_size);
	if (!e->new_segment)
		return mp_err_set(err, ENOMEM, "out of memory");
	memcpy(e->new_segment + (e->unwind_vaddr - e->segment.vaddr), e->unwind.bytes,
	       e->unwind.size);
	memcpy(e->new_segment + (e->note_vaddr - e->segment.vaddr), e->note, e->note_size);
	/* Free these before the old part is built, which takes memory for every patched page. */
	free(e->unwind.bytes);
	free(e->note);
	e->unwind.bytes = e->note = NULL;
	return me_copy_write(e->cfg, &e->placement, &e->pointers, e->new_segment, err);
}

/* The output's bytes of a section of the original. NULL: they are in neither part. */
static uint8_t *section_bytes(const struct emitter *e, const struct mp_section *s)
{
	const struct me_displaced *d = &e->segment.displaced;

	if (me_displaced_holds(d, s->off, s->size))
		return e->new_segment + (d->new_vaddr - e->segment.vaddr) + (s->off - d->off);
	if (s->off > e->segment.old_end || s->size > e->segment.old_end - s->off)
		return NULL;
	return e->old_part + s->off;
}

/* Return: the build-id; NULL if the file has none. */
static uint8_t *find_build_id(const struct emitter *e, uint32_t *len)
{
	const struct mp_section *note = mp_elf_section(e->elf, ".note.gnu.build-id");
	uint8_t *bytes = note ? section_bytes(e, note) : NULL;
	Elf64_Nhdr nhdr;
	uint64_t room;

	if (!bytes || note->type != SHT_NOTE || note->size < sizeof(nhdr) + 4)
		return NULL;
	memcpy(&nhdr, bytes, sizeof(nhdr));
	room = note->size - sizeof(nhdr) - 4;
	if (nhdr.n_type != NT_GNU_BUILD_ID || nhdr.n_namesz != 4 || nhdr.n_descsz > room)
		return NULL;
	*len = nhdr.n_descsz;
	return bytes + sizeof(nhdr) + 4;
}

/* An output is another module, so it needs another build-id: a hash of its bytes. */
static void renew_build_id(struct emitter *e)
{
	uint32_t len = 0;
	uint8_t *desc = find_build_id(e, &len);

	for (uint32_t done = 0; done < len; done += sizeof(uint64_t)) {
		uint64_t seed = XXH3_64bits_withSeed(e->new_segment, e->new_segment_size, done);
		uint64_t hash = XXH3_64bits_withSeed(e->old_part, e->segment.old_end, seed);
		uint32_t n = len - done;

		memcpy(desc + done, &hash, n < sizeof(hash) ? n : sizeof(hash));
	}
}

/*
 * Move the bytes after the table of program headers to the new segment, and update
 * their program headers.
 */
static void displace(struct emitter *e)
{
	const struct me_displaced *d = &e->segment.displaced;

	if (!d->size)
		return;
	memcpy(e->new_segment + (d->new_vaddr - e->segment.vaddr), e->old_part + d->off, d->size);
	memset(e->old_part + d->off, 0, d->size);
	for (uint32_t i = 0; i < e->segment.nr_phdrs; i++) {
		Elf64_Phdr *p = &e->segment.phdrs[i];

		if (i == e->segment.slot || p->p_type == PT_LOAD ||
		    !me_displaced_holds(d, p->p_offset, p->p_filesz))
			continue;
		p->p_vaddr = p->p_vaddr - d->vaddr + d->new_vaddr;
		p->p_paddr = p->p_vaddr;
		p->p_offset = p->p_vaddr - e->segment.vaddr + e->segment.off;
	}
}

static void write_phdrs(struct emitter *e)
{
	uint64_t hdr_vaddr = e->unwind_vaddr + e->unwind.hdr_off;
	Elf64_Phdr load = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = e->segment.off,
		.p_vaddr = e->segment.vaddr,
		.p_paddr = e->segment.vaddr,
		.p_filesz = e->new_segment_size,
		.p_memsz = e->new_segment_size,
		.p_align = e->segment.align,
	};
	Elf64_Phdr eh_frame = {
		.p_type = PT_GNU_EH_FRAME,
		.p_flags = PF_R,
		.p_offset = hdr_vaddr - e->segment.vaddr + e->segment.off,
		.p_vaddr = hdr_vaddr,
		.p_paddr = hdr_vaddr,
		.p_filesz = e->unwind.hdr_size,
		.p_memsz = e->unwind.hdr_size,
		.p_align = 4,
	};
	Elf64_Phdr *phdrs = e->segment.phdrs;
	Elf64_Ehdr ehdr;

	phdrs[e->segment.slot] = load;
	if (e->segment.eh_frame_slot != ME_NO_SLOT)
		phdrs[e->segment.eh_frame_slot] = eh_frame;
	displace(e);
	memcpy(e->old_part + e->elf->ehdr.e_phoff, phdrs, e->segment.nr_phdrs * sizeof(*phdrs));
	memcpy(&ehdr, e->old_part, sizeof(ehdr));
	ehdr.e_phnum = (uint16_t)e->segment.nr_phdrs;
	memcpy(e->old_part, &ehdr, sizeof(ehdr));
}

static int build_old_part(struct emitter *e, struct mp_err *err)
{
	int rc;

	e->old_part = mp_elf_copy(e->elf, e->segment.old_end);
	if (!e->old_part)
		return mp_err_set(err, ENOMEM, "out of memory");
	rc = me_patch_image(e->cfg, &e->placement, &e->pointers, e->old_part, e->segment.old_end,
			    &e->out->patches, err);
	if (rc)
		return rc;
	if (e->segment.eh_frame_slot == ME_NO_SLOT) {
		rc = me_patch_eh_frame(e->cfg, e->old_part, e->segment.old_end,
				       e->unwind_vaddr + e->unwind.eh_frame_off, err);
		if (rc)
			return rc;
	}
	e->out->patches.nr_pointers += me_dynsym_write(
		e->cfg, &e->placement, &e->pointers, &e->sections, e->old_part, e->segment.old_end);
	write_phdrs(e);
	if (e->plan->nr_counters)
		rc = me_start_write(&e->start, e->plan, e->runtime_vaddr, e->segment.zeros,
				    e->segment.zeros_size,
				    e->new_segment + (e->runtime_vaddr - e->segment.vaddr),
				    e->old_part, err);
	/* The hash will read all of the old part: free that much memory first. */
	mp_elf_drop_pages(e->elf);
	renew_build_id(e);
	return rc;
}

static void place_new_sections(struct emitter *e)
{
	Elf64_Shdr *s = &e->sections.shdrs[e->sections.first_new];
	uint64_t lsda = e->unwind_vaddr + e->unwind.lsda_off;

	s[ME_SECTION_TEXT].sh_addr = e->placement.base;
	s[ME_SECTION_TEXT].sh_size = e->placement.text_end - e->placement.base;
	s[ME_SECTION_LSDA].sh_addr = lsda;
	s[ME_SECTION_LSDA].sh_size = e->unwind.lsda_size;
	s[ME_SECTION_EH_FRAME].sh_addr = e->unwind_vaddr + e->unwind.eh_frame_off;
	s[ME_SECTION_EH_FRAME].sh_size = e->unwind.eh_frame_size;
	s[ME_SECTION_EH_FRAME_HDR].sh_addr = e->unwind_vaddr + e->unwind.hdr_off;
	s[ME_SECTION_EH_FRAME_HDR].sh_size = e->unwind.hdr_size;
	s[ME_SECTION_MAP].sh_addr = e->note_vaddr;
	s[ME_SECTION_MAP].sh_size = e->note_size;
	for (uint32_t n = 0; n < ME_NR_NEW_SECTIONS; n++)
		s[n].sh_offset = s[n].sh_addr - e->segment.vaddr + e->segment.off;
}

/* Update the section headers of displaced bytes. */
static void move_sections(struct emitter *e)
{
	const struct me_displaced *d = &e->segment.displaced;

	for (uint32_t i = 1; i < e->sections.nr_shdrs; i++) {
		Elf64_Shdr *h = &e->sections.shdrs[i];

		if (!e->sections.origin[i] ||
		    !me_displaced_has(d, &e->elf->sections[e->sections.origin[i]]))
			continue;
		h->sh_addr = me_displaced_vaddr(d, h->sh_addr);
		h->sh_offset = h->sh_addr - e->segment.vaddr + e->segment.off;
	}
}

/* Add a section for the table of what the stubs count or set. */
static int add_table(struct emitter *e, struct mp_err *err)
{
	if (me_sections_append(&e->sections, e->plan->table_name, SHT_PROGBITS, &e->table_section))
		return mp_err_set(err, ENOMEM, "out of memory");
	return 0;
}

/* Add the sections of a counting output: the runtime and the counters. */
static int add_counting(struct emitter *e, struct mp_err *err)
{
	struct me_sections *s = &e->sections;
	uint32_t runtime, counters;

	if (me_sections_append(s, ".morph.runtime", SHT_PROGBITS, &runtime) ||
	    me_sections_append(s, ".morph.counters", SHT_NOBITS, &counters))
		return mp_err_set(err, ENOMEM, "out of memory");
	s->shdrs[runtime].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	s->shdrs[runtime].sh_addr = e->runtime_vaddr;
	s->shdrs[runtime].sh_offset = e->runtime_vaddr - e->segment.vaddr + e->segment.off;
	s->shdrs[runtime].sh_size = me_start_size();
	s->shdrs[runtime].sh_addralign = 16;
	s->shdrs[counters].sh_flags = SHF_ALLOC | SHF_WRITE;
	s->shdrs[counters].sh_addr = e->segment.zeros;
	s->shdrs[counters].sh_offset = e->segment.old_end;
	s->shdrs[counters].sh_size = e->segment.zeros_size;
	s->shdrs[counters].sh_addralign = 0x1000;
	return 0;
}

static int name_by_build_id(const struct emitter *e, char *name, struct mp_err *err)
{
	struct mp_id id = {0};
	char text[2 * MP_BUILD_ID_MAX + 1];
	uint32_t len = 0;
	const uint8_t *desc = find_build_id(e, &len);

	if (!desc || len < 2 || len > MP_BUILD_ID_MAX)
		return mp_err_set(err, EPERM, "has no build-id, which would name its debug file");
	memcpy(id.build_id, desc, len);
	id.build_id_len = (uint8_t)len;
	mp_id_format_build_id(&id, text);
	sprintf(name, "%s.debug", text + 2);
	return 0;
}

/* Build the debug file and the link to it. */
static int build_debug_file(struct emitter *e, const struct mp_elf *debug, const char *name,
			    struct mp_err *err)
{
	const struct mp_section *note = mp_elf_section(e->elf, ".note.gnu.build-id");
	const struct me_debug_file_input in = {
		.elf = debug,
		.head = e->old_part,
		.build_id_note = note ? section_bytes(e, note) : NULL,
		.new_sections = &e->sections.shdrs[e->sections.first_new],
		.displaced = &e->segment.displaced,
	};
	const struct mp_section *old = mp_elf_section(e->elf, ME_DEBUGLINK_SECTION);
	struct me_output_parts *output = &e->out->debug_output;
	char own_name[2 * MP_BUILD_ID_MAX + sizeof(".debug")];
	int rc = name ? 0 : name_by_build_id(e, own_name, err);

	if (!rc)
		rc = me_debug_file_build(&in, e->cfg, &e->placement, output, &e->out->debug, err);
	if (rc)
		return rc;
	e->link = me_debuglink_make(name ? name : own_name, me_debuglink_crc_parts(output),
				    &e->link_size);
	if (old)
		e->link_section = e->sections.index[old - e->elf->sections];
	else if (me_sections_append(&e->sections, ME_DEBUGLINK_SECTION, SHT_PROGBITS,
				    &e->link_section))
		e->link_section = 0;
	else
		e->sections.shdrs[e->link_section].sh_addralign = 4;
	return e->link && e->link_section ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

/* Append the sections that are not loaded; .symtab, .strtab and .shstrtab are new. */
static int add_unloaded(struct emitter *e, struct me_symbols *symbols, struct mp_err *err)
{
	struct me_sections *s = &e->sections;
	int rc = 0;

	for (uint32_t i = 1; rc >= 0 && i < s->nr_shdrs; i++) {
		Elf64_Shdr *h = &s->shdrs[i];
		const uint8_t *bytes = e->elf->data + h->sh_offset;
		int own = 0;

		if (h->sh_flags & SHF_ALLOC || h->sh_type == SHT_NOBITS)
			continue;
		if (e->table_section && i == e->table_section) {
			h->sh_size = e->plan->table_size;
			rc = me_output_parts_add(&e->out->output, e->plan->table, h->sh_size, 1, 0,
						 &h->sh_offset);
			continue;
		}
		if (e->link && i == e->link_section) {
			h->sh_size = e->link_size;
			rc = me_output_parts_add(&e->out->output, e->link, h->sh_size,
						 h->sh_addralign, ME_OUTPUT_PARTS_FREE,
						 &h->sh_offset);
			e->link = NULL;
			continue;
		}
		rc = me_debug_put(e->debug, i, h, &e->out->output);
		if (rc || s->origin[i] == 0)
			continue;
		if (i == s->symtab) {
			bytes = symbols->symtab;
			h->sh_size = symbols->symtab_size;
			h->sh_info = symbols->nr_locals;
			symbols->symtab = NULL;
			own = 1;
		} else if (i == s->strtab) {
			bytes = symbols->strtab;
			h->sh_size = symbols->strtab_size;
			symbols->strtab = NULL;
			own = 1;
		} else if (i == s->shstrtab) {
			bytes = (const uint8_t *)s->names;
			h->sh_size = s->names_size;
			s->names = NULL;
			own = 1;
		}
		rc = me_output_parts_add(&e->out->output, bytes, h->sh_size, h->sh_addralign, own,
					 &h->sh_offset);
	}
	return rc < 0 ? mp_err_set(err, -rc, "out of memory") : 0;
}

static int build_symbols(struct emitter *e, struct me_symbols *symbols, struct mp_err *err)
{
	const struct me_sections *s = &e->sections;
	int rc;

	*symbols = (struct me_symbols){0};
	if (!s->symtab)
		return 0;
	if (s->strtab == 0 || s->strtab == s->shstrtab)
		return mp_err_set(err, EPERM, ".symtab shares its string table");
	rc = me_symbols_build(e->cfg, &e->placement, e->elf,
			      &e->elf->sections[s->origin[s->symtab]],
			      &e->elf->sections[s->origin[s->strtab]], s->index,
			      s->first_new + ME_SECTION_TEXT, symbols, err);
	if (!rc)
		me_displaced_symbols(&e->segment.displaced, symbols->symtab, symbols->symtab_size);
	return rc;
}

static int assemble(struct emitter *e, struct mp_err *err)
{
	struct me_output_parts *output = &e->out->output;
	struct me_symbols symbols;
	uint8_t *old_part = e->old_part, *new_segment = e->new_segment;
	Elf64_Ehdr ehdr;
	int rc;

	e->old_part = e->new_segment = NULL;
	memcpy(&ehdr, old_part, sizeof(ehdr));
	rc = me_output_parts_add(output, old_part, e->segment.old_end, 1, ME_OUTPUT_PARTS_UNMAP,
				 NULL);
	if (rc) {
		free(new_segment);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	output->size_bytes = e->segment.off;
	rc = me_output_parts_add(output, new_segment, e->new_segment_size, 1, 1, NULL);
	if (rc)
		return mp_err_set(err, ENOMEM, "out of memory");
	rc = build_symbols(e, &symbols, err);
	if (!rc)
		rc = add_unloaded(e, &symbols, err);
	me_symbols_fini(&symbols);
	if (rc)
		return rc;
	rc = me_output_parts_add(output, (uint8_t *)e->sections.shdrs,
				 e->sections.nr_shdrs * sizeof(Elf64_Shdr), 8, 1, &ehdr.e_shoff);
	e->sections.shdrs = NULL;
	if (rc)
		return mp_err_set(err, ENOMEM, "out of memory");
	ehdr.e_shnum = (uint16_t)e->sections.nr_shdrs;
	ehdr.e_shstrndx = e->sections.shstrtab;
	memcpy(old_part, &ehdr, sizeof(ehdr));
	return 0;
}

static void summarise(struct emitter *e)
{
	const struct me_placement *p = &e->placement;
	struct me_emitted *out = e->out;

	out->text_bytes = p->end - p->base;
	out->hot_bytes =
		(p->first_warm < p->nr_copies ? p->copies[p->first_warm].new_vaddr : p->end) -
		p->base;
	out->segment_bytes = e->new_segment_size;
	for (uint32_t i = 0; i < p->nr_copies; i++)
		out->copies_bytes += p->copies[i].new_size;
	out->eh_frame_bytes = e->unwind.eh_frame_size + e->unwind.hdr_size;
	out->lsda_bytes = e->unwind.lsda_size;
	out->map_bytes = e->note_size;
	out->nr_inverted = p->nr_inverted;
	out->nr_jumps_added = p->nr_jumps_added;
	out->nr_jumps_dropped = p->nr_jumps_dropped;
	out->nr_redirected = e->pointers.nr_redirected;
	out->nr_fdes_new = e->unwind.nr_fdes_new;
	out->slot_replaced = e->segment.price;
}

struct emit_request {
	const struct me_plan *plan;
	struct me_plan *spent; /* @plan if its blocks may be freed once they are placed; or NULL */
	const struct mp_elf *debug; /* the original's debug file; NULL: none */
	const char *name;	    /* of the output's debug file */
	const struct me_emit_observer *observer;
};

/* Choose the new segment, and the addresses of all copies in it. */
static int place_copies(struct emitter *e, const struct emit_request *in, struct mp_err *err)
{
	const struct me_plan *plan = in->plan;
	int rc = me_segment_choose(e->elf, plan->page_log2 ? UINT64_C(1) << plan->page_log2 : 0,
				   &e->segment, err);

	if (!rc && plan->nr_counters) {
		rc = me_start_find(e->elf, &e->start, err);
		if (!rc)
			rc = me_segment_reserve(e->elf, &e->segment, me_start_counters_size(plan),
						err);
	}
	if (!rc)
		rc = me_sections_build(e->elf, &e->segment.displaced, &e->sections, err);
	if (!rc)
		rc = find_pointers(e, plan, err);
	if (!rc)
		rc = me_place(e->cfg, plan, &e->pointers, e->segment.vaddr, &e->placement, err);
	if (!rc && in->observer)
		rc = in->observer->placed(in->observer->ctx, &e->placement, err);
	if (in->spent) {
		free(in->spent->blocks);
		in->spent->blocks = NULL;
	}
	e->placement.places.counters = e->segment.zeros;
	e->placement.places.state = e->segment.zeros + e->segment.zeros_size - ME_RUNTIME_PAGE;
	return rc;
}

/* Build the bytes that are loaded: the new segment and the old part. */
static int build_loaded(struct emitter *e, struct mp_err *err)
{
	int rc = build_unwind(e, err);

	if (!rc)
		rc = build_map(e, err);
	if (!rc)
		rc = build_new_segment(e, err);
	if (!rc)
		rc = build_old_part(e, err);
	if (!rc) {
		place_new_sections(e);
		move_sections(e);
	}
	return rc;
}

/* Build the sections that are not loaded, and put the file together. */
static int build_rest(struct emitter *e, const struct emit_request *in, struct mp_err *err)
{
	int rc = in->debug ? build_debug_file(e, in->debug, in->name, err)
			   : me_debug_build(e->cfg, &e->placement, e->elf, &e->sections, &e->debug,
					    &e->out->debug, err);

	if (!rc && in->plan->nr_counters)
		rc = add_counting(e, err);
	if (!rc && in->plan->table)
		rc = add_table(e, err);
	return rc ? rc : assemble(e, err);
}

static void emitter_fini(struct emitter *e)
{
	me_segment_fini(&e->segment);
	me_pointers_fini(&e->pointers);
	me_placement_fini(&e->placement);
	me_sections_fini(&e->sections);
	me_debug_free(e->debug);
	free(e->unwind.bytes);
	free(e->link);
	free(e->note);
	if (e->old_part)
		munmap(e->old_part, e->segment.old_end);
	free(e->new_segment);
}

static int emit(const struct mp_cfg *cfg, const struct emit_request *in, struct me_emitted *out,
		struct mp_err *err)
{
	struct emitter e = {.cfg = cfg, .elf = cfg->elf, .plan = in->plan, .out = out};
	int rc;

	*out = (struct me_emitted){0};
	rc = place_copies(&e, in, err);
	if (!rc)
		rc = build_loaded(&e, err);
	if (!rc)
		rc = build_rest(&e, in, err);
	if (!rc)
		summarise(&e);
	emitter_fini(&e);
	if (rc)
		me_emitted_fini(out);
	return rc;
}

int me_emit(const struct mp_cfg *cfg, const struct me_plan *plan, struct me_emitted *out,
	    struct mp_err *err)
{
	return emit(cfg, &(struct emit_request){.plan = plan}, out, err);
}

int me_emit_with_debug_file(const struct mp_cfg *cfg, const struct me_plan *plan,
			    const struct mp_elf *debug, const char *name, struct me_emitted *out,
			    struct mp_err *err)
{
	return emit(cfg, &(struct emit_request){.plan = plan, .debug = debug, .name = name}, out,
		    err);
}

int me_emit_free_plan(const struct mp_cfg *cfg, struct me_plan *plan, const struct mp_elf *debug,
		      const char *name, const struct me_emit_observer *observer,
		      struct me_emitted *out, struct mp_err *err)
{
	return emit(cfg, &(struct emit_request){plan, plan, debug, name, observer}, out, err);
}

void me_emitted_fini(struct me_emitted *emitted)
{
	me_output_parts_fini(&emitted->output);
	me_output_parts_fini(&emitted->debug_output);
	me_patches_fini(&emitted->patches);
}
