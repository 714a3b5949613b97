// SPDX-License-Identifier: Apache-2.0
/*
 * unwind_frame - writes .eh_frame and .eh_frame_hdr: the original's entries at their new place,
 * then those of copies. All pointers become pc-relative and four bytes wide. Called by unwind.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "editor/base/enclosing_code.h"
#include "editor/base/runtime.h"
#include "editor/unwind/unwind_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

#define ENC_REL32 (MP_EH_PE_PCREL | MP_EH_PE_SDATA4)

struct known_cie {
	uint64_t old_vaddr;
	size_t off; /* in the new .eh_frame */
	struct mp_eh_cie cie;
};

struct writer {
	const struct mp_elf *elf;
	struct me_frames *out;
	uint64_t vaddr;		/* of the new .eh_frame */
	struct known_cie *cies; /* ascending old_vaddr */
	uint32_t nr_cies, cap_cies;
	bool out_of_reach;
	struct mp_err *err;
};

static int no_memory(const struct writer *w)
{
	return mp_err_set(w->err, ENOMEM, "out of memory");
}

static int refuse(const struct writer *w, uint64_t vaddr, const char *why)
{
	return mp_err_set(w->err, EBADMSG, "%s: .eh_frame at 0x%" PRIx64 ": %s", w->elf->path,
			  vaddr, why);
}

/* 0 stays 0: all readers take it for "none". */
static void put_relative32(struct writer *w, uint64_t target)
{
	struct me_bytes *out = &w->out->eh_frame;
	int64_t rel = target ? (int64_t)(target - (w->vaddr + out->size)) : 0;

	if (rel != (int32_t)rel)
		w->out_of_reach = true;
	me_bytes_u32(out, (uint32_t)rel);
}

/* Pad the entry with DW_CFA_nop (0) to a multiple of four, then set its length. */
static void finish_entry(struct writer *w, size_t start)
{
	struct me_bytes *out = &w->out->eh_frame;

	me_bytes_align(out, 4);
	me_bytes_patch_u32(out, start, (uint32_t)(out->size - start - 4));
}

static bool absolute(uint8_t enc)
{
	return enc != MP_EH_PE_OMIT && (enc & 0x70) != MP_EH_PE_PCREL;
}

static int put_cie(struct writer *w, const struct mp_eh_cie *cie)
{
	struct me_bytes *out = &w->out->eh_frame;
	bool personality = cie->personality != 0, lsda = cie->lsda_enc != MP_EH_PE_OMIT;
	size_t start = out->size;
	bool set_loc;

	/* In a position-independent file such a pointer needs a relocation. */
	if (w->elf->ehdr.e_type != ET_EXEC &&
	    (absolute(cie->fde_enc) || (personality && absolute(cie->personality_enc)) ||
	     (lsda && absolute(cie->lsda_enc))))
		return refuse(w, cie->vaddr, "absolute pointers");
	if (cie->ra_reg > UINT8_MAX)
		return refuse(w, cie->vaddr, "unknown return address register");
	if (mp_grow(w->cies, w->cap_cies, w->nr_cies + 1))
		return no_memory(w);
	w->cies[w->nr_cies++] = (struct known_cie){cie->vaddr, start, *cie};
	me_bytes_u32(out, 0);
	me_bytes_u32(out, 0);
	me_bytes_u8(out, 1);
	me_bytes_u8(out, 'z');
	if (personality)
		me_bytes_u8(out, 'P');
	if (lsda)
		me_bytes_u8(out, 'L');
	me_bytes_u8(out, 'R');
	if (cie->signal_frame)
		me_bytes_u8(out, 'S');
	me_bytes_u8(out, 0);
	me_bytes_uleb(out, cie->code_align);
	me_bytes_sleb(out, cie->data_align);
	me_bytes_u8(out, (uint8_t)cie->ra_reg);
	me_bytes_uleb(out, (personality ? 5 : 0) + (lsda ? 1 : 0) + 1);
	if (personality) {
		me_bytes_u8(out, ENC_REL32 | (cie->personality_enc & MP_EH_PE_INDIRECT));
		put_relative32(w, cie->personality);
	}
	if (lsda)
		me_bytes_u8(out, ENC_REL32);
	me_bytes_u8(out, ENC_REL32);
	me_bytes_put(out, cie->program,
		     me_cfi_program_end(cie, cie->program, cie->program_size, &set_loc));
	if (set_loc)
		return refuse(w, cie->vaddr, "a CIE that sets a location");
	finish_entry(w, start);
	return 0;
}

static const struct known_cie *find_cie(const struct writer *w, uint64_t old_vaddr)
{
	uint32_t lo = mp_search(i, 0, w->nr_cies, w->cies[i].old_vaddr < old_vaddr);

	return lo < w->nr_cies && w->cies[lo].old_vaddr == old_vaddr ? &w->cies[lo] : NULL;
}

/* Write an FDE up to its program. Return: offset of the entry. */
static size_t start_fde(struct writer *w, const struct known_cie *known, uint64_t pc, uint64_t size,
			uint64_t lsda)
{
	struct me_bytes *out = &w->out->eh_frame;
	bool has_lsda = known->cie.lsda_enc != MP_EH_PE_OMIT;
	size_t start = out->size;

	if (size > INT32_MAX)
		w->out_of_reach = true;
	me_bytes_u32(out, 0);
	me_bytes_u32(out, (uint32_t)(out->size - known->off));
	put_relative32(w, pc);
	me_bytes_u32(out, (uint32_t)size);
	me_bytes_uleb(out, has_lsda ? 4 : 0);
	if (has_lsda)
		put_relative32(w, lsda);
	return start;
}

static int add_entry(struct writer *w, uint64_t pc, uint64_t size, size_t off)
{
	struct me_frames *out = w->out;

	if (mp_grow(out->entries, out->cap, out->nr + 1))
		return no_memory(w);
	out->entries[out->nr++] = (struct me_frame_entry){pc, size, w->vaddr + off};
	return 0;
}

static int put_old_fde(struct writer *w, const struct mp_eh_cie *cie, const struct mp_eh_fde *fde)
{
	const struct known_cie *known = find_cie(w, cie->vaddr);
	size_t start, end;
	bool set_loc;

	/* A linker leaves FDEs of dropped code. */
	if (!fde->start || !fde->size)
		return 0;
	if (!known)
		return refuse(w, fde->vaddr, "an FDE before its CIE");
	start = start_fde(w, known, fde->start, fde->size, fde->lsda);
	end = me_cfi_program_end(cie, fde->program, fde->program_size, &set_loc);
	/* LLVM's unwinder takes the address for a distance. */
	if (set_loc)
		return refuse(w, fde->vaddr, "an FDE that sets a location");
	me_bytes_put(&w->out->eh_frame, fde->program, end);
	finish_entry(w, start);
	return add_entry(w, fde->start, fde->size, start);
}

static bool has_dynamic_reloc(const struct mp_elf *elf, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++) {
		if (elf->dyn_relocs[i].vaddr >= start && elf->dyn_relocs[i].vaddr < end)
			return true;
	}
	return false;
}

static int put_old(struct writer *w)
{
	struct mp_cursor first, cur;
	struct mp_eh_cie cie = {0};
	struct mp_eh_fde fde;
	bool sized;
	int ret;

	if (!mp_eh_frame_find(w->elf, &first, &sized))
		return mp_err_set(w->err, EBADMSG, "%s: no .eh_frame", w->elf->path);
	cur = first;
	while (cur.p < cur.end) {
		uint64_t at = cur.vaddr;

		ret = mp_eh_next(&cur, &first, &cie, &fde);
		if (ret < 0)
			return refuse(w, at,
				      ret == -EOPNOTSUPP ? "entry of an unknown kind" : "damaged");
		if (ret == 0 && !sized)
			break;
		if (ret == 1)
			ret = put_cie(w, &cie);
		else if (ret == 2)
			ret = put_old_fde(w, &cie, &fde);
		if (ret)
			return ret;
	}
	if (has_dynamic_reloc(w->elf, first.vaddr, cur.vaddr))
		return refuse(w, first.vaddr, "dynamic relocations");
	return 0;
}

static int put_new(struct writer *w, const struct me_runs *runs)
{
	for (uint32_t i = 0; i < runs->nr; i++) {
		const struct me_run *run = &runs->runs[i];
		const struct known_cie *known = find_cie(w, run->cie_vaddr);
		size_t start;
		int ret;

		if (!known)
			return refuse(w, run->cie_vaddr, "a CIE is missing");
		start = start_fde(w, known, run->start, run->size, run->lsda);
		/* If all programs are empty, there is no buffer. */
		if (run->program_size)
			me_bytes_put(&w->out->eh_frame, runs->programs.data + run->program_off,
				     run->program_size);
		finish_entry(w, start);
		ret = add_entry(w, run->start, run->size, start);
		if (ret)
			return ret;
	}
	return 0;
}

static int put_runtime(struct writer *w, uint64_t runtime)
{
	struct me_bytes *out = &w->out->eh_frame;
	size_t at = out->size;
	uint8_t *bytes = malloc(me_runtime_frames_size);
	uint32_t off = 0, frame;
	uint64_t start, size;
	int ret = 0;

	if (!bytes)
		return no_memory(w);
	me_runtime_frames_write(runtime, w->vaddr + at, bytes);
	me_bytes_put(out, bytes, me_runtime_frames_size);
	free(bytes);
	while (!ret && me_runtime_frames_next(&off, &frame, &start, &size))
		ret = add_entry(w, runtime + start, size, at + frame);
	return ret;
}

static int put_answers(struct writer *w, uint64_t answers)
{
	struct me_bytes *out = &w->out->eh_frame;
	uint8_t bytes[ME_ENCLOSING_FRAMES_SIZE];
	size_t at = out->size;

	w->out_of_reach |= !me_enclosing_frames_write(answers, w->vaddr + at, bytes);
	me_bytes_put(out, bytes, sizeof(bytes));
	return add_entry(w, answers, ME_ENCLOSING_CODE_SIZE, at + ME_ENCLOSING_FDE);
}

int me_frames_build(const struct mp_elf *elf, const struct me_runs *runs, uint64_t vaddr,
		    uint64_t runtime, uint64_t answers, struct me_frames *frames,
		    struct mp_err *err)
{
	struct writer w = {
		.elf = elf,
		.out = frames,
		.vaddr = vaddr,
		.err = err,
	};
	int ret;

	ret = put_old(&w);
	if (!ret)
		ret = put_new(&w, runs);
	if (!ret && runtime)
		ret = put_runtime(&w, runtime);
	if (!ret && answers)
		ret = put_answers(&w, answers);
	me_bytes_u32(&frames->eh_frame, 0);
	if (!ret && frames->eh_frame.failed)
		ret = no_memory(&w);
	if (!ret && w.out_of_reach)
		ret = refuse(&w, vaddr, "code out of reach of 32-bit offsets");
	free(w.cies);
	return ret;
}

static int cmp_entry(const void *a, const void *b)
{
	const struct me_frame_entry *ea = a, *eb = b;

	if (ea->start != eb->start)
		return ea->start < eb->start ? -1 : 1;
	return ea->fde_vaddr < eb->fde_vaddr ? -1 : ea->fde_vaddr > eb->fde_vaddr;
}

int me_frames_put_hdr(struct me_frames *frames, uint64_t eh_frame_vaddr, uint64_t vaddr,
		      const struct mp_elf *elf, struct mp_err *err)
{
	struct me_bytes *out = &frames->hdr;
	bool reach = true;

	qsort(frames->entries, frames->nr, sizeof(*frames->entries), cmp_entry);
	me_bytes_u8(out, 1);
	me_bytes_u8(out, ENC_REL32);
	me_bytes_u8(out, MP_EH_PE_UDATA4);
	me_bytes_u8(out, MP_EH_PE_DATAREL | MP_EH_PE_SDATA4);
	me_bytes_u32(out, (uint32_t)(eh_frame_vaddr - (vaddr + out->size)));
	me_bytes_u32(out, frames->nr);
	for (uint32_t i = 0; i < frames->nr; i++) {
		int64_t pc = (int64_t)(frames->entries[i].start - vaddr);
		int64_t fde = (int64_t)(frames->entries[i].fde_vaddr - vaddr);

		if (pc != (int32_t)pc || fde != (int32_t)fde)
			reach = false;
		me_bytes_u32(out, (uint32_t)pc);
		me_bytes_u32(out, (uint32_t)fde);
	}
	if (out->failed)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (!reach)
		return mp_err_set(err, EBADMSG, "%s: code out of reach of .eh_frame_hdr",
				  elf->path);
	return 0;
}

void me_frames_fini(struct me_frames *frames)
{
	me_bytes_fini(&frames->eh_frame);
	me_bytes_fini(&frames->hdr);
	free(frames->entries);
	*frames = (struct me_frames){0};
}
