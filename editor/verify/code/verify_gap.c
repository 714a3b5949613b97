// SPDX-License-Identifier: Apache-2.0
/*
 * verify_gap - decides whether bytes outside of all FDEs are code that leads between two
 * instructions.
 *
 * Such bytes are code without unwind information, or data: tables, texts, padding. The scan
 * decoded them all and noted their targets in @maybe_target. A target that is an instruction,
 * or lies outside of FDEs, is always believed: it only forbids changes. A target between two
 * instructions would give its function a second decoding. It is believed if control reaches the
 * code that leads there, or if it lies right behind a prefix. Called by verify_scan.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/code/verify_gap.h"
#include "libprof/base/grow.h"

struct walk {
	struct vf *vf; /* its @target is filled */
	struct vf_bits seen;
	uint64_t *todo;
	size_t nr, cap;
};

static int add_place(struct walk *w, uint64_t vaddr)
{
	if (!vf_is_text(w->vf, vaddr) || vf_bits_get(&w->seen, vaddr) ||
	    vf_eh_find(&w->vf->old.eh, vaddr))
		return 0;
	return mp_push(w->todo, w->nr, w->cap, vaddr);
}

/* Control reaches @insn: its target or operand is a possible target. */
static int believe(struct walk *w, const struct vf_insn *insn)
{
	bool branch = insn->rel_size != 0;

	if (!branch && !insn->disp_off)
		return 0;
	if (vf_is_text(w->vf, insn->target))
		vf_bits_set(&w->vf->old.target, insn->target);
	return branch ? add_place(w, insn->target) : 0;
}

/* Read until control ends, or reaches code that has an FDE or was read. @whole: read up to
 * @end, even if bytes do not decode. */
static int read_on(struct walk *w, uint64_t at, uint64_t end, bool whole)
{
	const struct vf *vf = w->vf;

	while (at < end && (whole || (vf_is_text(vf, at) && !vf_bits_get(&w->seen, at) &&
				      !vf_eh_find(&vf->old.eh, at)))) {
		const uint8_t *p = mp_elf_bytes(vf->o, at, end - at);
		struct vf_insn insn;
		int ret;

		if (!p || !vf_decode(p, end - at, at, &insn)) {
			if (!whole)
				return 0;
			at++;
			continue;
		}
		vf_bits_set(&w->seen, at);
		ret = believe(w, &insn);
		if (ret)
			return ret;
		if (!whole && (insn.kind == VF_STOP || insn.kind == VF_JMP ||
			       insn.kind == VF_IJMP_REG || insn.kind == VF_IJMP_MEM || insn.int3))
			return 0;
		at += insn.len;
	}
	return 0;
}

/* Read all executable sections but .text*: the linker made their code. */
static int read_sections(struct walk *w)
{
	const struct mp_elf *o = w->vf->o;
	int ret = 0;

	for (uint32_t s = 0; s < o->nr_sections && !ret; s++) {
		const struct mp_section *sec = &o->sections[s];

		if ((sec->flags & SHF_ALLOC) && (sec->flags & SHF_EXECINSTR) &&
		    sec->type != SHT_NOBITS && strncmp(sec->name, ".text", 5))
			ret = read_on(w, sec->vaddr, sec->vaddr + sec->size, true);
	}
	return ret;
}

static int read_led(struct walk *w)
{
	const struct vf *vf = w->vf;
	int ret = 0;

	for (uint64_t at = vf_bits_next(&vf->old.sure_target, vf->old.text_start, vf->old.text_end);
	     at < vf->old.text_end && !ret;
	     at = vf_bits_next(&vf->old.sure_target, at + 1, vf->old.text_end))
		ret = add_place(w, at);
	while (w->nr && !ret) {
		uint64_t at = w->todo[--w->nr];
		const struct mp_section *sec = mp_elf_section_at(vf->o, at);

		if (sec)
			ret = read_on(w, at, sec->vaddr + sec->size, false);
	}
	return ret;
}

/* Is there nothing between @at and the start of its instruction but lock, repeat or hint
 * prefixes? */
static bool behind_prefix(const struct vf *vf, uint64_t at)
{
	for (uint64_t n = 1; n < 15; n++) {
		const uint8_t *p = mp_elf_bytes(vf->o, at - n, 2);

		if (!p)
			return false;
		switch (p[0]) {
		case 0xf2:
		case 0xf3:
			if (p[1] == 0x0f) /* here the prefix is part of the opcode */
				return false;
			/* fall through */
		case 0xf0:
		case 0x2e:
		case 0x3e: break;
		default: return false;
		}
		if (vf_bits_get(&vf->old.grid, at - n))
			return true;
	}
	return false;
}

int vf_mark_gap_targets(struct vf *vf)
{
	struct walk w = {.vf = vf};
	int ret = vf_bits_init(&w.seen, vf->old.text_start, vf->old.text_end);

	if (!ret)
		ret = read_sections(&w);
	if (!ret)
		ret = read_led(&w);
	for (uint64_t at =
		     vf_bits_next(&vf->old.maybe_target, vf->old.text_start, vf->old.text_end);
	     at < vf->old.text_end && !ret;
	     at = vf_bits_next(&vf->old.maybe_target, at + 1, vf->old.text_end))
		if (vf_bits_get(&vf->old.grid, at) || !vf_eh_find(&vf->old.eh, at) ||
		    behind_prefix(vf, at))
			vf_bits_set(&vf->old.target, at);
	vf_bits_fini(&w.seen);
	free(w.todo);
	return ret;
}
