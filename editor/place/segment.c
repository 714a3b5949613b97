// SPDX-License-Identifier: Apache-2.0
/*
 * segment - chooses place and program header of the new segment. The header is, in this order:
 * a spare PT_NOTE, a PT_PHDR that no loader reads, one of two PT_LOADs that can be merged, a
 * new entry of the table. emit calls this before anything is placed.
 */
#include "editor/place/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/round.h"

#define ALIGN_MAX (UINT64_C(1) << 30) /* the largest pages */
#define HOLE_MAX  (UINT64_C(2) << 20) /* or the file's size, if that is more */
/* Jumps and unwind tables reach 2 GiB; the new segment itself needs room, too. */
#define REACH_MAX ((UINT64_C(1) << 31) - (UINT64_C(64) << 20))

/*
 * A PT_NOTE that PT_GNU_PROPERTY covers, too, is spare: kernel and ld.so read properties
 * through the latter. It never holds the build-id, which only a PT_NOTE leads to.
 */
static bool note_is_spare(const struct mp_elf *elf, uint32_t index)
{
	const Elf64_Phdr *note = &elf->phdrs[index];

	if (note->p_type != PT_NOTE)
		return false;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_GNU_PROPERTY && p->p_offset == note->p_offset &&
		    p->p_filesz == note->p_filesz)
			return true;
	}
	return false;
}

/* A word of 32 bits that need not be aligned. */
static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Are the properties without effect: needs only the baseline, lists used ISAs, no features? */
static bool properties_are_idle(const uint8_t *desc, uint64_t size)
{
	uint64_t at = 0;

	while (size - at >= 8) {
		uint32_t type = word_at(desc + at), len = word_at(desc + at + 4);

		if (len != 4 || size - at < 12)
			return false;
		switch (type) {
		case GNU_PROPERTY_X86_ISA_1_NEEDED:
			if (word_at(desc + at + 8) & ~GNU_PROPERTY_X86_ISA_1_BASELINE)
				return false;
			break;
		case GNU_PROPERTY_X86_FEATURE_1_AND:
			if (word_at(desc + at + 8))
				return false;
			break;
		case GNU_PROPERTY_X86_ISA_1_USED: break;
		default: return false;
		}
		at += 16;
		if (at >= size)
			return true;
	}
	return at == size;
}

/*
 * gold writes no PT_GNU_PROPERTY, so only a PT_NOTE leads to .note.gnu.property. It is spare if
 * these properties have no effect. It covers one note, so no build-id.
 */
static bool note_is_idle(const struct mp_elf *elf, uint32_t index)
{
	const Elf64_Phdr *p = &elf->phdrs[index];
	Elf64_Nhdr nh;

	if (p->p_type != PT_NOTE || !elf->data || p->p_filesz < sizeof(nh) + 4 ||
	    p->p_offset > elf->size || p->p_filesz > elf->size - p->p_offset)
		return false;
	memcpy(&nh, elf->data + p->p_offset, sizeof(nh));
	return nh.n_type == NT_GNU_PROPERTY_TYPE_0 && nh.n_namesz == 4 &&
	       !memcmp(elf->data + p->p_offset + sizeof(nh), "GNU", 4) &&
	       p->p_filesz == sizeof(nh) + 4 + nh.n_descsz &&
	       properties_are_idle(elf->data + p->p_offset + sizeof(nh) + 4, nh.n_descsz);
}

static bool is_pie_or_unknown(const struct mp_elf *elf, const Elf64_Phdr *dynamic)
{
	const uint8_t *at = elf->data + dynamic->p_offset;

	if (!elf->data || dynamic->p_offset > elf->size ||
	    dynamic->p_filesz > elf->size - dynamic->p_offset)
		return true;
	for (uint64_t nr = dynamic->p_filesz / sizeof(Elf64_Dyn); nr; nr--) {
		Elf64_Dyn dyn;

		memcpy(&dyn, at, sizeof(dyn));
		at += sizeof(dyn);
		if (dyn.d_tag == DT_NULL)
			return false;
		if (dyn.d_tag == DT_FLAGS_1 && dyn.d_un.d_val & DF_1_PIE)
			return true;
	}
	return true;
}

/*
 * PT_PHDR tells ld.so and start-up code of a position-independent program its load address. A
 * program with fixed addresses knows it, and ld.so finds a shared object's table through its
 * PT_LOAD (GNU ld gives shared objects no PT_PHDR at all).
 */
static bool nobody_reads_phdr(const struct mp_elf *elf)
{
	const Elf64_Phdr *dynamic = NULL;
	bool interpreted = false, loaded = false;
	uint64_t end = elf->ehdr.e_phoff + elf->nr_phdrs * sizeof(Elf64_Phdr);

	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_DYNAMIC)
			dynamic = p;
		else if (p->p_type == PT_INTERP)
			interpreted = true;
		else if (p->p_type == PT_LOAD && p->p_offset <= elf->ehdr.e_phoff &&
			 end <= p->p_offset + p->p_filesz)
			loaded = true;
	}
	if (!loaded)
		return false;
	if (elf->ehdr.e_type == ET_EXEC)
		return true;
	return elf->ehdr.e_type == ET_DYN && dynamic && !interpreted &&
	       !is_pie_or_unknown(elf, dynamic);
}

/*
 * Two neighbouring read-only PT_LOADs that are contiguous in file and memory can be one. Bytes
 * that were only readable become executable, too, as in every file linked with -z
 * noseparate-code.
 */
static bool loads_can_merge(const Elf64_Phdr *a, const Elf64_Phdr *b, uint64_t align)
{
	return a->p_type == PT_LOAD && b->p_type == PT_LOAD && !(a->p_flags & PF_W) &&
	       !(b->p_flags & PF_W) && a->p_filesz == a->p_memsz &&
	       a->p_vaddr - a->p_offset == b->p_vaddr - b->p_offset &&
	       mp_round_up(a->p_vaddr + a->p_memsz, align) == (b->p_vaddr & ~(align - 1));
}

static bool take_note(const struct mp_elf *elf, uint32_t last_load, struct me_segment *out)
{
	for (uint32_t i = last_load + 1; i < elf->nr_phdrs; i++) {
		if (note_is_spare(elf, i))
			out->price = ".note.gnu.property, still found through PT_GNU_PROPERTY";
		else if (note_is_idle(elf, i))
			out->price = ".note.gnu.property, which has no effect";
		else
			continue;
		out->slot = i;
		return true;
	}
	return false;
}

/* Headers between PT_PHDR and the last PT_LOAD move up, so that the new one is last. */
static bool take_phdr(const struct mp_elf *elf, uint32_t last_load, struct me_segment *out)
{
	Elf64_Phdr *p = out->phdrs;
	uint32_t i = 0;

	while (i < elf->nr_phdrs && p[i].p_type != PT_PHDR)
		i++;
	if (i == elf->nr_phdrs || !nobody_reads_phdr(elf))
		return false;
	out->price = "PT_PHDR, which only position-independent programs need";
	out->slot = i;
	if (i < last_load) {
		memmove(&p[i], &p[i + 1], (last_load - i) * sizeof(*p));
		if (out->eh_frame_slot > i && out->eh_frame_slot <= last_load)
			out->eh_frame_slot--;
		out->slot = last_load;
	}
	return true;
}

/* PT_LOADs ascend, so those behind the merged pair move up, and the last slot becomes free. */
static bool take_merged_load(uint32_t last_load, struct me_segment *out)
{
	Elf64_Phdr *p = out->phdrs;

	for (uint32_t i = 0; i < last_load; i++) {
		if (!loads_can_merge(&p[i], &p[i + 1], out->page))
			continue;
		for (uint32_t k = i + 1; k <= last_load; k++) {
			if (p[k].p_type != PT_LOAD)
				return false;
		}
		p[i].p_flags |= p[i + 1].p_flags;
		p[i].p_filesz = p[i + 1].p_offset + p[i + 1].p_filesz - p[i].p_offset;
		p[i].p_memsz = p[i + 1].p_vaddr + p[i + 1].p_memsz - p[i].p_vaddr;
		memmove(&p[i + 1], &p[i + 2], (last_load - i - 1) * sizeof(*p));
		out->slot = last_load;
		out->price = "the read-only segment before the code, now part of the executable "
			     "segment";
		return true;
	}
	return false;
}

/* Add an entry behind the last PT_LOAD. The bytes behind the table will move to the new
 * segment. */
static bool take_room(const struct mp_elf *elf, uint32_t last_load, struct me_segment *out)
{
	Elf64_Phdr *p = out->phdrs;

	if (!me_phdr_extend_find(elf, &out->displaced))
		return false;
	out->slot = last_load + 1;
	memmove(&p[out->slot + 1], &p[out->slot], (elf->nr_phdrs - out->slot) * sizeof(*p));
	out->nr_phdrs = elf->nr_phdrs + 1;
	out->grown = true;
	if (out->eh_frame_slot != ME_NO_SLOT && out->eh_frame_slot > last_load)
		out->eh_frame_slot++;
	for (uint32_t i = 0; i < out->nr_phdrs; i++) {
		if (i == out->slot || p[i].p_type != PT_PHDR)
			continue;
		p[i].p_filesz += sizeof(*p);
		p[i].p_memsz += sizeof(*p);
	}
	out->price = "the space behind the table; .interp or notes there moved to the new segment";
	return true;
}

/* Find the ends of segments and of their contents, and the headers of interest. */
static uint32_t scan(const struct mp_elf *elf, uint64_t align, struct me_segment *out)
{
	uint64_t vaddr_end = 0;
	uint32_t last_load = 0;

	out->lowest = UINT64_MAX;
	out->page = 0x1000;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_GNU_EH_FRAME)
			out->eh_frame_slot = i;
		if (p->p_type != PT_LOAD)
			continue;
		last_load = i;
		if (p->p_vaddr < out->lowest)
			out->lowest = p->p_vaddr;
		if (p->p_vaddr + p->p_memsz > vaddr_end)
			vaddr_end = p->p_vaddr + p->p_memsz;
		if (p->p_offset + p->p_filesz > out->old_end)
			out->old_end = p->p_offset + p->p_filesz;
		if (p->p_align > out->page)
			out->page = p->p_align;
	}
	out->align = align > out->page ? align : out->page;
	out->vaddr = mp_round_up(vaddr_end, out->align);
	return last_load;
}

/*
 * Choose an offset as far from the address as .text's from its own: some tools use one distance
 * for all code of a file, so perf finds a copy's lines and bytes. A hole as long as .bss lies
 * before it. If that hole would be too long for the file, the next possible offset is used.
 */
static void choose_offset(const struct mp_elf *elf, struct me_segment *out)
{
	const struct mp_section *text = mp_elf_section(elf, ".text");
	uint64_t hole_max = out->old_end > HOLE_MAX ? out->old_end : HOLE_MAX, off;

	out->off = mp_round_up(out->old_end, out->align);
	if (!text || text->type != SHT_PROGBITS)
		return;
	off = out->vaddr - (text->vaddr - text->off);
	if (off > out->off && off - out->off <= hole_max && !((off - out->off) & (out->align - 1)))
		out->off = off;
}

/* Return: 0, -EPERM: the segment cannot lie there. */
static int move_to(uint64_t live_at, struct me_segment *out, struct mp_err *err)
{
	if (live_at < out->vaddr)
		return mp_err_set(
			err, EPERM,
			"its own segments take the address %#llx: the first free one is %#llx",
			(unsigned long long)live_at, (unsigned long long)out->vaddr);
	if (live_at - out->lowest > REACH_MAX)
		return mp_err_set(err, EPERM, "the address %#llx is out of the reach of its code",
				  (unsigned long long)live_at);
	out->live_at = live_at;
	out->vaddr = mp_round_up(live_at, out->align);
	return 0;
}

int me_segment_choose(const struct mp_elf *elf, uint64_t align, uint64_t live_at,
		      struct me_segment *out, struct mp_err *err)
{
	uint32_t last_load;

	*out = (struct me_segment){
		.nr_phdrs = elf->nr_phdrs, .slot = ME_NO_SLOT, .eh_frame_slot = ME_NO_SLOT};
	last_load = scan(elf, align, out);
	if (out->page & (out->page - 1))
		return mp_err_set(err, EPERM, "segment alignment is no power of two");
	if (out->page > ALIGN_MAX)
		return mp_err_set(err, EPERM, "segment alignment is larger than any page");
	if (out->vaddr > out->lowest && out->vaddr - out->lowest > REACH_MAX)
		return mp_err_set(
			err, EPERM,
			"its segments take some 2 GiB of memory or more (.bss?): new code "
			"behind them would be out of reach");
	if (live_at && move_to(live_at, out, err))
		return -EPERM;
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];

		/* Sections that are not loaded are aligned so, and the file grows by that. */
		if (!(s->flags & SHF_ALLOC) && s->align > ALIGN_MAX)
			return mp_err_set(err, EPERM,
					  "section %.48s has an alignment larger than any page",
					  s->name);
		if (s->flags & SHF_ALLOC && s->type != SHT_NOBITS &&
		    s->off + s->size > out->old_end)
			return mp_err_set(err, EPERM, "section %s lies outside every segment",
					  s->name);
	}
	out->phdrs = malloc((elf->nr_phdrs + 1) * sizeof(*out->phdrs));
	if (!out->phdrs)
		return mp_err_set(err, ENOMEM, "out of memory");
	memcpy(out->phdrs, elf->phdrs, elf->nr_phdrs * sizeof(*out->phdrs));
	if (!take_note(elf, last_load, out) && !take_phdr(elf, last_load, out) &&
	    !take_merged_load(last_load, out) && !take_room(elf, last_load, out)) {
		me_segment_fini(out);
		return mp_err_set(err, EPERM,
				  "no program header can be spared for a new segment, and there is "
				  "no room for one more (lld leaves one with "
				  "-Wl,-z,separate-loadable-segments)");
	}
	choose_offset(elf, out);
	return 0;
}

int me_segment_reserve(const struct mp_elf *elf, struct me_segment *segment, uint64_t size,
		       struct mp_err *err)
{
	Elf64_Phdr *last = NULL;

	for (uint32_t i = 0; i < segment->nr_phdrs; i++) {
		Elf64_Phdr *p = &segment->phdrs[i];

		if (i != segment->slot && p->p_type == PT_LOAD &&
		    (!last || p->p_vaddr >= last->p_vaddr))
			last = p;
	}
	if (!last || !(last->p_flags & PF_W))
		return mp_err_set(err, EPERM,
				  "its last segment is not writable: there is no place for "
				  "counters");
	segment->zeros = segment->live_at ? segment->live_at
					  : mp_round_up(last->p_vaddr + last->p_memsz, 0x1000);
	segment->zeros_size = mp_round_up(size, 0x1000);
	last->p_memsz = segment->zeros + segment->zeros_size - last->p_vaddr;
	segment->vaddr = mp_round_up(last->p_vaddr + last->p_memsz, segment->align);
	choose_offset(elf, segment);
	return 0;
}

void me_segment_fini(struct me_segment *segment)
{
	free(segment->phdrs);
	segment->phdrs = NULL;
}
