// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_scan - decodes the whole text once: it finds the starts of instructions, control
 * transfers, and the addresses that operands refer to. Code outside of functions
 * (hand-written, PLT) is decoded as well as possible; its branches count as weak evidence.
 * Called by cfg.
 */
#include <errno.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/cfg/cfg_private.h"

struct scan {
	struct mp_cfg_build *b;
	const struct mp_span *span;
	struct mp_func *func; /* NULL: outside of functions */
	uint32_t from, to;    /* bounds of the part or gap */
};

static int add_flow(struct mp_cfg_build *b, const struct mp_flow *flow)
{
	return mp_push(b->flows, b->nr_flows, b->cap_flows, *flow);
}

static void add_target(struct scan *s, uint32_t target)
{
	if (s->func)
		mp_bit_set(s->b->index->targets, target);
	else
		mp_bit_set(s->b->index->weak_targets, target);
}

/* True between two sections in a segment with code: a linker script may have a label there, for the end of code. */
static bool is_behind_code(const struct mp_cfg_build *b, uint32_t target)
{
	const struct mp_span *span = mp_space_span(b->index, target);

	return span && span->code && b->elf->nr_sections &&
	       !mp_elf_section_at(b->elf, mp_space_vaddr(b->index, target));
}

/* An operand holds the address of @target; with !@sure it may be another number. */
static int add_ref(struct scan *s, uint32_t at, uint32_t target, bool sure)
{
	struct mp_cfg_build *b = s->b;

	if (mp_space_is_text(b->index, target)) {
		if (s->func) {
			if (mp_push(b->code_refs, b->nr_code_refs, b->cap_code_refs,
				    (struct mp_ref){at, target}))
				return -ENOMEM;
		}
		if (!mp_bit(b->entries, target) &&
		    (sure || (s->func && target > s->from && target < s->to))) {
			if (mp_push(b->text_refs, b->nr_text_refs, b->cap_text_refs,
				    (struct mp_ref){at, target}))
				return -ENOMEM;
		}
		if (!sure) {
			mp_bit_set(b->index->weak_targets, target);
			mp_bit_set(b->gap_refs, target);
			/*
			 * A constant often equals a code address by chance. If it equals
			 * the address of a label in this function, chance is less likely.
			 */
			if (target > s->from && target < s->to && s->func) {
				mp_bit_set(b->address_taken, target);
				mp_bit_set(b->named, target);
			}
		} else {
			add_target(s, target);
			mp_bit_set(b->address_taken, target);
			mp_bit_set(b->named, target);
		}
		return 0;
	}
	if (s->func && is_behind_code(b, target) &&
	    mp_push(b->code_refs, b->nr_code_refs, b->cap_code_refs, (struct mp_ref){at, target}))
		return -ENOMEM;
	mp_bit_set(b->refs, target);
	return mp_push(b->ref_list, b->nr_refs, b->cap_refs, (struct mp_ref){at, target});
}

/* Absolute addresses in operands: only in an image with fixed addresses. */
static int scan_absolute(struct scan *s, const struct mp_insn *insn, const uint8_t *bytes,
			 uint32_t at)
{
	struct mp_cfg_build *b = s->b;
	uint64_t value = 0;
	uint32_t target;
	int32_t v32;

	if (insn->mem_disp_off) {
		memcpy(&v32, bytes + insn->mem_disp_off, 4);
		target = v32 > 0 ? mp_space_at(b->index, (uint64_t)v32) : MP_NONE;
		if (target != MP_NONE && add_ref(s, at, target, false))
			return -ENOMEM;
	}
	if (insn->imm_size != 4 && insn->imm_size != 8)
		return 0;
	memcpy(&value, bytes + insn->imm_off, insn->imm_size);
	target = mp_space_at(b->index, value);
	if (target == MP_NONE)
		return 0;
	if (mp_bit(b->entries, target))
		mp_bit_set(b->address_taken, target);
	return add_ref(s, at, target, false);
}

/* Code for any distance (-mcmodel=large) adds 8 bytes to the GOT's address. */
static int scan_got_relative(struct scan *s, const uint8_t *imm, uint32_t at)
{
	struct mp_cfg_build *b = s->b;
	uint64_t value;
	uint32_t target;

	memcpy(&value, imm, sizeof(value));
	target = b->got ? mp_space_at(b->index, b->got + value) : MP_NONE;
	if (target == MP_NONE)
		return 0;
	if (mp_bit(b->entries, target)) {
		mp_bit_set(b->address_taken, target);
		mp_bit_set(b->named, target);
	}
	return add_ref(s, at, target, false);
}

static int scan_branch(struct scan *s, const struct mp_insn *insn, uint32_t at)
{
	struct mp_flow flow = {.at = at, .target = MP_NONE, .len = insn->len, .kind = insn->kind};

	if (insn->rip_relative) {
		flow.slot = true;
	} else if (insn->disp_size) {
		flow.target = mp_space_at(s->b->index, insn->target);
		if (flow.target != MP_NONE && mp_space_is_text(s->b->index, flow.target)) {
			add_target(s, flow.target);
			if (insn->kind == MP_INSN_CALL && flow.target == at + insn->len && s->func)
				s->func->flags |= MP_FUNC_GET_PC;
		}
	}
	if (s->func && insn->kind == MP_INSN_LOOP)
		mp_func_problem(s->func, MP_PROBLEM_LOOP_INSN, insn->vaddr);
	return add_flow(s->b, &flow);
}

static int scan_insn(struct scan *s, const struct mp_insn *insn, const uint8_t *bytes, uint32_t at)
{
	struct mp_cfg_build *b = s->b;
	int ret = 0;

	mp_bit_set(b->starts, at);
	if (insn->rip_relative) {
		uint32_t target = mp_space_at(b->index, insn->target);

		if (target != MP_NONE)
			ret = add_ref(s, at, target, true);
	}
	if (!ret && !b->moves && (insn->imm_size >= 4 || insn->mem_disp_off))
		ret = scan_absolute(s, insn, bytes, at);
	if (!ret && insn->imm_size == 8)
		ret = scan_got_relative(s, bytes + insn->imm_off, at);
	if (!ret && b->moves && insn->imm_size == 8) {
		uint64_t value;

		memcpy(&value, bytes + insn->imm_off, sizeof(value));
		if (mp_space_at(b->index, value) != MP_NONE)
			mp_bit_set(b->index->weak_targets, mp_space_at(b->index, value));
	}
	if (ret)
		return ret;
	switch (insn->kind) {
	case MP_INSN_OTHER: return 0;
	case MP_INSN_SYSCALL:
		if (s->func)
			s->func->flags |= MP_FUNC_SYSCALL;
		return 0;
	default: return scan_branch(s, insn, at);
	}
}

static int scan_run(struct scan *s)
{
	struct mp_cfg_build *b = s->b;
	uint32_t at = s->from;

	while (at < s->to) {
		const uint8_t *bytes = s->span->bytes + (at - s->span->at);
		uint64_t vaddr = s->span->vaddr + (at - s->span->at);
		struct mp_insn insn;
		uint32_t next;
		int ret;

		/* Zeros between and behind functions are not code. */
		if (!s->func && !*bytes) {
			at++;
			continue;
		}
		if (mp_insn_decode(bytes, s->to - at, vaddr, &insn)) {
			struct mp_flow bad = {
				.at = at, .target = MP_NONE, .len = 1, .kind = MP_FLOW_BAD};

			if (s->func) {
				mp_func_problem(s->func, MP_PROBLEM_UNDECODABLE, vaddr);
				if (add_flow(b, &bad))
					return -ENOMEM;
			}
			at++;
			continue;
		}
		ret = scan_insn(s, &insn, bytes, at);
		if (ret)
			return ret;
		/* In a gap data may stand before code: start again at each target. */
		next = at + insn.len;
		if (!s->func)
			next = mp_bits_next(b->index->targets, at + 1, next);
		at = next;
	}
	return 0;
}

static int scan_gap(struct mp_cfg_build *b, uint32_t from, uint32_t to)
{
	uint32_t lo = mp_search(mid, 0, b->index->nr_text, b->index->text[mid].end <= from);

	/* Only text: a gap may reach over the end of a section or of a segment. */
	for (uint32_t i = lo; i < b->index->nr_text; i++) {
		struct mp_text *text = &b->index->text[i];
		struct scan s = {.b = b};
		int ret;

		s.from = text->at > from ? text->at : from;
		s.to = text->end < to ? text->end : to;
		if (text->at >= to)
			break;
		if (s.from >= s.to)
			continue;
		s.span = mp_space_span(b->index, s.from);
		ret = scan_run(&s);
		if (ret)
			return ret;
	}
	return 0;
}

/* Linkers put the symbol at the start of one of two sections. */
static void find_got(struct mp_cfg_build *b)
{
	const struct mp_section *sec = mp_elf_section(b->elf, ".got.plt");

	if (!sec)
		sec = mp_elf_section(b->elf, ".got");
	if (sec)
		b->got = sec->vaddr;
	for (uint32_t i = 0; i < b->elf->nr_symbols; i++)
		if (b->elf->symbols[i].name &&
		    !strcmp(b->elf->symbols[i].name, "_GLOBAL_OFFSET_TABLE_"))
			b->got = b->elf->symbols[i].vaddr;
}

int mp_cfg_scan(struct mp_cfg_build *b)
{
	struct mp_cfg_index *index = b->index;
	uint32_t at = 0;
	int ret;

	find_got(b);
	for (uint32_t i = 0; i < index->nr_parts; i++) {
		struct mp_part *part = &index->parts[i];
		struct scan s = {
			.b = b,
			.span = mp_space_span(index, part->at),
			.func = &b->cfg->funcs[part->func],
			.from = part->at,
			.to = part->end,
		};

		ret = scan_gap(b, at, part->at);
		if (ret)
			return ret;
		part->first_flow = b->nr_flows;
		ret = scan_run(&s);
		if (ret)
			return ret;
		part->nr_flows = b->nr_flows - part->first_flow;
		mp_space_note_read(b, part->end - at);
		at = part->end;
	}
	return scan_gap(b, at, index->nr_bytes);
}
