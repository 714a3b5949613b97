// SPDX-License-Identifier: Apache-2.0
/*
 * object_decode - the instructions of an object, and which of their fields refer to what. Every
 * byte of code must be an instruction, and every relocation must fill a field of one. Called by
 * object_code.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "libprof/base/grow.h"

static int refuse(struct mp_err *err, const char *why)
{
	return mp_err_set(err, EPERM, "%s", why);
}

uint32_t me_object_insn_at(const struct me_object *o, uint32_t code, uint64_t off)
{
	const struct me_ocode *c = &o->codes[code];

	return off < o->in->sections[c->section].header.sh_size ? c->at[off] : ME_NONE;
}

/* Does the relocation at @at, counted from the instruction's start, fill a field? */
static bool fills_field(const struct mp_insn *insn, uint32_t at, uint32_t type)
{
	if (type == R_X86_64_TLSDESC_CALL || type == R_X86_64_NONE)
		return at == 0;
	return (insn->disp_size && at == insn->disp_off) ||
	       (insn->imm_size && at == insn->imm_off) ||
	       (insn->mem_disp_off && at == insn->mem_disp_off);
}

/* A branch has a short and a long form unless it has prefixes, or is loop or jrcxz. */
static bool has_forms(const struct mp_insn *insn)
{
	if (insn->kind == MP_INSN_JUMP)
		return insn->len == 2 || insn->len == 5;
	return insn->kind == MP_INSN_COND && (insn->len == 2 || insn->len == 6);
}

static bool is_branch(const struct mp_insn *insn)
{
	return insn->kind == MP_INSN_COND || insn->kind == MP_INSN_JUMP ||
	       insn->kind == MP_INSN_LOOP;
}

/* Fields without relocations hold distances inside the section; @to is an offset until
 * resolve_targets(). */
static int note_fields(struct me_object *o, const struct mp_insn *insn, struct me_oinsn *to,
		       struct mp_err *err)
{
	const struct mp_relobj_section *s = &o->in->sections[o->codes[to->code].section];
	uint32_t r = mp_relobj_reloc_at(s, insn->vaddr);
	bool relocated = false;

	to->reloc = ME_NONE;
	to->to = ME_NONE;
	for (; r < s->nr_relocs && s->relocs[r].r_offset < insn->vaddr + insn->len; r++) {
		uint32_t at = (uint32_t)(s->relocs[r].r_offset - insn->vaddr);

		if (!fills_field(insn, at, ELF64_R_TYPE(s->relocs[r].r_info)))
			return refuse(err, "a relocation fills no field of an instruction");
		relocated |= insn->disp_size && at == insn->disp_off;
		if (to->reloc == ME_NONE)
			to->reloc = r;
	}
	if (insn->disp_size && !relocated) {
		if (insn->target >= s->header.sh_size)
			return refuse(err, "code refers to a place outside of its section");
		to->to = (uint32_t)insn->target;
	}
	return 0;
}

static int decode_section(struct me_object *o, uint32_t code, struct mp_err *err)
{
	struct me_ocode *c = &o->codes[code];
	const struct mp_relobj_section *s = &o->in->sections[c->section];
	uint32_t size = (uint32_t)s->header.sh_size;
	int rc = 0;

	c->first_insn = o->nr_insns;
	c->at = malloc(((size_t)size + 1) * sizeof(*c->at));
	if (!c->at)
		return mp_err_set(err, ENOMEM, "out of memory");
	memset(c->at, 0xff, ((size_t)size + 1) * sizeof(*c->at));
	for (uint32_t off = 0; !rc && off < size;) {
		struct me_oinsn *to;
		struct mp_insn insn;

		if (mp_grow(o->insns, o->cap_insns, o->nr_insns + 1))
			return mp_err_set(err, ENOMEM, "out of memory");
		if (mp_insn_decode(s->data + off, size - off, off, &insn))
			return refuse(err, "bytes among the code are no instruction");
		to = &o->insns[o->nr_insns];
		*to = (struct me_oinsn){.off = off,
					.func = ME_NONE,
					.code = code,
					.item = ME_NONE,
					.len = insn.len,
					.kind = insn.kind,
					.cc = insn.cc,
					.field = insn.disp_off,
					.field_size = insn.disp_size};
		rc = note_fields(o, &insn, to, err);
		if (insn.nop && to->reloc == ME_NONE)
			to->flags |= ME_OINSN_NOP;
		if (is_branch(&insn) && !has_forms(&insn))
			to->flags |= ME_OINSN_FIXED;
		c->at[off] = o->nr_insns++;
		off += insn.len;
	}
	c->nr_insns = o->nr_insns - c->first_insn;
	return rc;
}

/* Offsets in sections become instructions. */
static int resolve_targets(struct me_object *o, struct mp_err *err)
{
	for (uint32_t i = 0; i < o->nr_insns; i++) {
		struct me_oinsn *insn = &o->insns[i];

		if (insn->to == ME_NONE)
			continue;
		insn->to = me_object_insn_at(o, insn->code, insn->to);
		if (insn->to == ME_NONE)
			return refuse(err, "code refers to the middle of an instruction");
		o->insns[insn->to].flags |= ME_OINSN_TARGET;
	}
	return 0;
}

int me_object_decode(struct me_object *o, struct mp_err *err)
{
	int rc = 0;

	o->codes = calloc(o->in->nr_sections, sizeof(*o->codes));
	o->code_of = malloc(o->in->nr_sections * sizeof(*o->code_of));
	if (!o->codes || !o->code_of)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < o->in->nr_sections; i++) {
		o->code_of[i] = ME_NONE;
		if (!mp_relobj_is_code(&o->in->sections[i]))
			continue;
		o->codes[o->nr_codes].section = i;
		o->code_of[i] = o->nr_codes++;
	}
	for (uint32_t c = 0; !rc && c < o->nr_codes; c++)
		rc = decode_section(o, c, err);
	return rc ? rc : resolve_targets(o, err);
}
