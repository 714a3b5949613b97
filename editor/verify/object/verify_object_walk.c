// SPDX-License-Identifier: Apache-2.0
/*
 * verify_object_walk - compares code from pairs of places on: the old and the new instruction must
 * do the same and lead to pairs of places. Jumps that only lead on, and no-ops, are passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/mix.h"
#include "editor/verify/object/verify_object_private.h"
#include "libprof/base/grow.h"

/* ---- sets of pairs -------------------------------------------------------------------------- */

/* @before: the hash of another place, or 0. Both places may be the same. */
static uint64_t hash_place(uint64_t before, struct vo_place place)
{
	return me_mix(before + ((uint64_t)place.section << 32 | place.off));
}

/* Finds the pair, or with @by_old the pair with this old place; else the free slot for it. */
static struct vo_pair *set_slot(const struct vo_set *set, struct vo_pair pair, bool by_old)
{
	uint64_t old = hash_place(0, pair.old), hash = by_old ? old : hash_place(old, pair.new);
	uint32_t i = (uint32_t)hash & (set->room - 1);

	while (set->slots[i].old.section &&
	       !(vo_same_place(set->slots[i].old, pair.old) &&
		 (by_old || vo_same_place(set->slots[i].new, pair.new))))
		i = (i + 1) & (set->room - 1);
	return &set->slots[i];
}

/* Return: the pair that was there, or the free slot that now holds @pair; NULL: no memory. */
static struct vo_pair *set_add(struct vo_set *set, struct vo_pair pair, bool by_old, bool *added)
{
	struct vo_pair *slot;

	if (2 * (set->nr + 1) > set->room) {
		struct vo_set bigger = {.nr = set->nr, .room = set->room ? 2 * set->room : 1024};

		bigger.slots = calloc(bigger.room, sizeof(*bigger.slots));
		if (!bigger.slots)
			return NULL;
		for (uint32_t i = 0; i < set->room; i++)
			if (set->slots[i].old.section)
				*set_slot(&bigger, set->slots[i], by_old) = set->slots[i];
		free(set->slots);
		*set = bigger;
	}
	slot = set_slot(set, pair, by_old);
	*added = !slot->old.section;
	if (*added) {
		*slot = pair;
		set->nr++;
	}
	return slot;
}

int vo_expect(struct vo *vo, struct vo_place old, struct vo_place new, bool value)
{
	const struct vo_pair pair = {old, new}, back = {new, old};
	struct vo_pair *known, *origin;
	bool added;

	if (old.section >= vo->old.obj->nr_sections || new.section >= vo->new.obj->nr_sections ||
	    !mp_relobj_is_code(&vo->new.obj->sections[new.section]))
		return vo_refuse(vo, &vo->old, 0, old.off, "a reference leads out of the code");
	if (value) {
		known = set_add(&vo->values, pair, true, &added);
		origin = set_add(&vo->origins, back, true, &added);
		if (!known || !origin)
			return -ENOMEM;
		if (!vo_same_place(known->new, new) || !vo_same_place(origin->new, old))
			return vo_refuse(vo, &vo->old, old.section, old.off,
					 "an address became two addresses, or two became one");
	}
	if (!set_add(&vo->seen, pair, false, &added))
		return -ENOMEM;
	if (!added)
		return 0;
	if (vo->seen.nr > 2 * vo->code_size + 4096)
		return vo_refuse(vo, &vo->old, old.section, old.off, "has too many counterparts");
	if (mp_grow(vo->todo, vo->cap_todo, vo->nr_todo + 1))
		return -ENOMEM;
	vo->todo[vo->nr_todo++] = pair;
	return 0;
}

/* ---- one instruction -------------------------------------------------------------------------- */

struct code {
	struct vo_insn insn;
	const uint8_t *bytes;
	struct vo_place place;
	uint32_t first_reloc, nr_relocs;
};

static int decode(struct vo *vo, const struct vo_side *side, struct vo_place place,
		  struct code *code)
{
	const struct mp_relobj_section *s = &side->obj->sections[place.section];
	uint64_t size = s->header.sh_size;

	if (!mp_relobj_is_code(s) || place.off >= size ||
	    !vo_decode(s->data + place.off, size - place.off, place.off, &code->insn))
		return vo_refuse(vo, side, place.section, place.off, "is no instruction");
	code->bytes = s->data + place.off;
	code->place = place;
	code->first_reloc = mp_relobj_reloc_at(s, place.off);
	code->nr_relocs = mp_relobj_reloc_at(s, place.off + code->insn.len) - code->first_reloc;
	/* Such as one of bytes before, to which nothing leads. */
	if (vo_relocated(s, place.off, place.off))
		return vo_refuse(vo, side, place.section, place.off,
				 "is changed by a relocation that begins before it");
	for (uint32_t i = 0; i < code->nr_relocs; i++)
		if (!vo_fills_field(&code->insn, &s->relocs[code->first_reloc + i], place.off))
			return vo_refuse(vo, side, place.section, place.off,
					 "has a relocation that is not one of a field");
	return 0;
}

static struct vo_place behind(const struct code *code)
{
	return (struct vo_place){code->place.section, code->place.off + code->insn.len};
}

/* Return: the target of the branch, or of the operand with a displacement. */
static struct vo_ref field_ref(const struct vo_side *side, const struct code *code)
{
	const struct mp_relobj_section *s = &side->obj->sections[code->place.section];
	struct vo_ref ref = {.code = true,
			     .place = {code->place.section, (uint32_t)code->insn.target}};

	for (uint32_t i = 0; i < code->nr_relocs; i++) {
		const Elf64_Rela *r = &s->relocs[code->first_reloc + i];
		uint32_t type = ELF64_R_TYPE(r->r_info);

		if (r->r_offset != code->place.off + code->insn.disp_off || !vo_reloc_size(r))
			continue;
		ref = vo_ref_of(side, r, (int64_t)(code->place.off + code->insn.len - r->r_offset));
		/* An address in a field that holds a distance leads elsewhere. */
		ref.code &= type == R_X86_64_PC32 || type == R_X86_64_PLT32;
		break;
	}
	return ref;
}

/* Passes over jumps inside of the object, and no-ops. *@nr: how many, at most LIMIT: a loop. */
#define LIMIT 4096
static int skip(struct vo *vo, const struct vo_side *side, struct vo_place *place,
		struct vo_place *passed, uint32_t *nr)
{
	for (*nr = 0; *nr < LIMIT; ++*nr) {
		struct vo_ref ref;
		struct code code;
		int rc = decode(vo, side, *place, &code);

		if (rc)
			return rc;
		if (vo->nr_passed++ > 32 * vo->code_size + (1 << 20))
			return vo_refuse(vo, side, place->section, place->off,
					 "is passed over too often");
		passed[*nr] = *place;
		if (code.insn.kind == VF_JMP) {
			ref = field_ref(side, &code);
			if (!ref.code)
				return 0;
			*place = ref.place;
		} else if (code.insn.nop && !code.nr_relocs) {
			place->off += code.insn.len;
		} else {
			return 0;
		}
	}
	return 0;
}

/* ---- comparison ----------------------------------------------------------------------------- */

/* Is the field at @off that of a `lea', which only computes the address? */
static bool loads_address(const struct code *code, uint64_t off)
{
	uint64_t opcode = off - 2;

	if (off < 2 || code->bytes[opcode] != 0x8d)
		return false;
	/* Only prefixes stand before it; with those of vectors, 8d is another instruction. */
	for (uint64_t i = 0; i < opcode; i++)
		if ((code->bytes[i] & 0xf0) != 0x40 &&
		    !memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3", code->bytes[i], 10))
			return false;
	return true;
}

/* @off: of the field, if it is one of an operand in memory. What code reads there must stay. */
static bool reads_changed_code(const struct vo *vo, const struct code *old, uint64_t off,
			       struct vo_ref a, struct vo_ref b)
{
	return a.code && !vo_branches(&old->insn) && !loads_address(old, off) &&
	       !(vo_same_place(a.place, b.place) && a.place.section < vo->old.obj->nr_sections &&
		 vo->unchanged[a.place.section]);
}

static int expect_ref(struct vo *vo, const struct code *old, const struct code *new,
		      struct vo_ref a, struct vo_ref b, bool value)
{
	if (a.code != b.code || (!a.code && !vo_same_symbol(vo, a.reloc, b.reloc)))
		return vo_refuse(vo, &vo->old, old->place.section, old->place.off,
				 "refers to something else in the new object");
	(void)new;
	if (!a.code)
		return 0;
	vo->count.nr_references++;
	return vo_expect(vo, a.place, b.place, value);
}

/* All bytes but the displacement must be equal, and relocations lie at the same places. */
static int same_bytes(struct vo *vo, const struct code *old, const struct code *new)
{
	const struct vo_insn *insn = &old->insn;
	const struct mp_relobj_section *a = &vo->old.obj->sections[old->place.section];
	const struct mp_relobj_section *b = &vo->new.obj->sections[new->place.section];
	uint32_t from = insn->disp_size ? insn->disp_off : insn->len;
	uint32_t to = insn->disp_size ? from + insn->disp_size : from;
	uint32_t k = new->first_reloc, end = k + new->nr_relocs;
	int rc = 0;

	if (insn->len != new->insn.len || insn->disp_off != new->insn.disp_off ||
	    memcmp(old->bytes, new->bytes, from) ||
	    memcmp(old->bytes + to, new->bytes + to, insn->len - to))
		goto differs;
	if (insn->disp_size) {
		struct vo_ref was = field_ref(&vo->old, old), is = field_ref(&vo->new, new);

		if (reads_changed_code(vo, old, insn->disp_off, was, is))
			goto reads;
		rc = expect_ref(vo, old, new, was, is, !vo_branches(insn));
	}
	for (uint32_t i = old->first_reloc; !rc && i < old->first_reloc + old->nr_relocs; i++) {
		uint64_t off = a->relocs[i].r_offset - old->place.off;
		int64_t bias = (int64_t)(insn->len - off);
		struct vo_ref was, is;

		if (insn->disp_size && off == insn->disp_off)
			continue;
		while (k < end && insn->disp_size &&
		       b->relocs[k].r_offset - new->place.off == insn->disp_off)
			k++;
		if (k == end || b->relocs[k].r_offset - new->place.off != off ||
		    ELF64_R_TYPE(a->relocs[i].r_info) != ELF64_R_TYPE(b->relocs[k].r_info))
			goto differs;
		was = vo_ref_of(&vo->old, &a->relocs[i], bias);
		is = vo_ref_of(&vo->new, &b->relocs[k++], bias);
		if (insn->mem_disp_off && off == insn->mem_disp_off &&
		    reads_changed_code(vo, old, off, was, is))
			goto reads;
		rc = expect_ref(vo, old, new, was, is, true);
	}
	while (k < end && insn->disp_size &&
	       b->relocs[k].r_offset - new->place.off == insn->disp_off)
		k++;
	if (rc || k == end)
		return rc;
differs:
	return vo_refuse(vo, &vo->old, old->place.section, old->place.off,
			 "is another instruction in the new object");
reads:
	return vo_refuse(vo, &vo->old, old->place.section, old->place.off,
			 "reads bytes of code that changed");
}

static int compare_branch(struct vo *vo, const struct code *old, const struct code *new)
{
	struct vo_ref a = field_ref(&vo->old, old), b = field_ref(&vo->new, new);
	bool inverted = new->insn.cc == (old->insn.cc ^ 1);
	int rc;

	if (new->insn.kind != VF_JCC || (new->insn.cc != old->insn.cc && !inverted) ||
	    (inverted && (!a.code || !b.code)) || old->nr_relocs > 1 || new->nr_relocs > 1 ||
	    old->insn.bnd != new->insn.bnd)
		return vo_refuse(vo, &vo->old, old->place.section, old->place.off,
				 "is another branch in the new object");
	if (!inverted) {
		rc = expect_ref(vo, old, new, a, b, false);
		return rc ? rc : vo_expect(vo, behind(old), behind(new), false);
	}
	rc = vo_expect(vo, a.place, behind(new), false);
	return rc ? rc : vo_expect(vo, behind(old), b.place, false);
}

int vo_add_end(struct vo *vo, struct vo_place end)
{
	bool added;

	return set_add(&vo->ends, (struct vo_pair){.old = end}, true, &added) ? 0 : -ENOMEM;
}

/* Does the function end behind @code? Code without unwind information ends where its symbol does. */
static bool ends_function(const struct vo *vo, const struct code *code)
{
	const struct vo_fde *fde = vo_frame_at(&vo->old, code->place);
	const struct vo_pair end = {.old = behind(code)};

	if (fde)
		return end.old.off == fde->start.off + fde->size;
	return (vo->ends.room && set_slot(&vo->ends, end, true)->old.section) ||
	       end.old.off == vo->old.obj->sections[code->place.section].header.sh_size;
}

/*
 * Linkers replace the two instructions that look a thread-local variable up by other ones. Nothing
 * may stand between them.
 */
static int expect_tls_call(struct vo *vo, const struct code *old, const struct code *new)
{
	const struct mp_relobj_section *s = &vo->old.obj->sections[old->place.section];
	struct code call;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < old->nr_relocs; i++) {
		uint32_t type = ELF64_R_TYPE(s->relocs[old->first_reloc + i].r_info);

		if (type != R_X86_64_TLSGD && type != R_X86_64_TLSLD)
			continue;
		rc = decode(vo, &vo->new, behind(new), &call);
		if (!rc && call.insn.kind != VF_CALL && call.insn.kind != VF_ICALL)
			rc = vo_refuse(vo, &vo->new, new->place.section, new->place.off,
				       "is not followed by the call that belongs to it");
	}
	return rc;
}

static int compare_insns(struct vo *vo, const struct code *old, const struct code *new)
{
	int rc;

	if (old->insn.kind == VF_JCC)
		return compare_branch(vo, old, new);
	rc = same_bytes(vo, old, new);
	if (!rc)
		rc = vo_tables_same(vo, old->place, new->place, old->insn.len);
	if (rc || old->insn.kind == VF_JMP || old->insn.kind == VF_IJMP_REG ||
	    old->insn.kind == VF_IJMP_MEM || old->insn.kind == VF_STOP)
		return rc;
	/* A call at the function's end does not return. A handler of a breakpoint returns behind it, unless it ends there. */
	if ((old->insn.kind == VF_CALL || old->insn.kind == VF_ICALL || old->insn.breakpoint) &&
	    ends_function(vo, old))
		return 0;
	rc = expect_tls_call(vo, old, new);
	return rc ? rc : vo_expect(vo, behind(old), behind(new), false);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Functions with exception tables, and those that may compute addresses in themselves, keep all
 * distances; every instruction of them is compared. */
static int expect_whole(struct vo *vo, const struct vo_fde *old, struct vo_fde *new)
{
	int rc = 0;

	if (new->whole_of == old)
		return 0;
	if (new->whole_of)
		return vo_refuse(vo, &vo->new, new->start.section, new->start.off,
				 "stands for two functions that keep all distances");
	new->whole_of = old;
	for (uint32_t off = 0; !rc && off < old->size;) {
		struct vo_place a = {old->start.section, old->start.off + off};
		struct vo_place b = {new->start.section, new->start.off + off};
		struct code code = {0};

		rc = decode(vo, &vo->old, a, &code);
		if (!rc)
			rc = vo_expect(vo, a, b, false);
		off += code.insn.len;
	}
	return rc;
}

/* A table of another form is not compared, so it must fit as it is. */
bool vo_whole(struct vo *vo, struct vo_fde *fde)
{
	return (fde->computes_jump && fde->takes_label) ||
	       (fde->lsda && !vo_table_known(&vo->old, fde));
}

static int compare_functions(struct vo *vo, struct vo_place old, struct vo_place new)
{
	struct vo_fde *a = vo_frame_at(&vo->old, old), *b = vo_frame_at(&vo->new, new);
	const Elf64_Shdr *x = &vo->old.obj->sections[old.section].header;
	const Elf64_Shdr *y = &vo->new.obj->sections[new.section].header;
	bool whole = a && vo_whole(vo, a);
	const char *why = NULL;

	if (!a && !(vo->unchanged[old.section] && vo_same_place(old, new)))
		why = "lies outside of functions, in a section that changed";
	else if (x->sh_flags != y->sh_flags ||
		 vo->old.group[old.section] != vo->new.group[new.section])
		why = "lies in a section of another kind in the new object";
	else if (!a != !b || (a && !vo_cies_same(vo, a, b)))
		why = "has other unwind information in the new object";
	else if (a && (!a->lsda != !b->lsda || a->lsda_type != b->lsda_type ||
		       (whole && a->lsda && !vo_same_table(vo, a, b))))
		why = "has another exception table in the new object";
	else if (whole && (a->size != b->size || old.off - a->start.off != new.off - b->start.off))
		why = "lies elsewhere in its function in the new object";
	if (why)
		return vo_refuse(vo, &vo->old, old.section, old.off, why);
	return whole ? expect_whole(vo, a, b) : 0;
}

static int compare_rows(struct vo *vo, struct vo_place from, struct vo_place old,
			struct vo_place new, const struct vo_place *passed, uint32_t nr)
{
	bool same, also;
	int rc = vo_rows_same(vo, old, new, &same);

	/* In jumps that were added, the row is that of the place before or behind the jump. */
	for (uint32_t i = 0; !rc && same && i < nr; i++) {
		rc = vo_rows_same(vo, old, passed[i], &same);
		if (!rc && !same) {
			rc = vo_rows_same(vo, from, passed[i], &also);
			same = also;
		}
	}
	if (rc || same)
		return rc;
	return vo_refuse(vo, &vo->old, old.section, old.off,
			 "has another unwind row in the new object");
}

/* Does control that passed LIMIT places and came to @place pass it again and again? */
static bool loops(struct vo_place place, const struct vo_place *passed)
{
	for (uint32_t i = 0; i < LIMIT; i++)
		if (vo_same_place(place, passed[i]))
			return true;
	return false;
}

static int compare_pair(struct vo *vo, struct vo_pair pair)
{
	static _Thread_local struct vo_place old_passed[LIMIT], new_passed[LIMIT];
	struct vo_place from = pair.old;
	uint32_t nr_old, nr_new;
	struct code old, new;
	bool added, loop;
	int rc = skip(vo, &vo->old, &pair.old, old_passed, &nr_old);

	if (!rc)
		rc = skip(vo, &vo->new, &pair.new, new_passed, &nr_new);
	if (rc)
		return rc;
	loop = nr_old == LIMIT || nr_new == LIMIT; /* for (;;); in both, unless it is refused */
	if (loop &&
	    !(nr_old == nr_new && loops(pair.old, old_passed) && loops(pair.new, new_passed)))
		return vo_refuse(vo, &vo->old, from.section, from.off,
				 "loops in one of the objects only, or has too many no-ops");
	rc = compare_rows(vo, from, pair.old, pair.new, new_passed, nr_new);
	if (!rc && nr_old + nr_new) {
		if (!set_add(&vo->seen, pair, false, &added))
			return -ENOMEM;
		if (!added)
			return 0;
	}
	if (!rc)
		rc = compare_functions(vo, pair.old, pair.new);
	if (rc || loop)
		return rc;
	rc = decode(vo, &vo->old, pair.old, &old);
	if (!rc)
		rc = decode(vo, &vo->new, pair.new, &new);
	if (rc)
		return rc;
	vo->count.nr_insns++;
	if (mp_grow(vo->compared, vo->cap_compared, (uint64_t)vo->nr_compared + 1))
		return -ENOMEM;
	vo->compared[vo->nr_compared++] =
		(struct vo_compared){pair.old, pair.new, old.insn.len, new.insn.len};
	return compare_insns(vo, &old, &new);
}

int vo_walk(struct vo *vo)
{
	int rc = 0;

	while (!rc && vo->nr_todo)
		rc = compare_pair(vo, vo->todo[--vo->nr_todo]);
	return rc;
}

void vo_pass(struct vo *vo, const struct vo_side *side, struct vo_place *place)
{
	static _Thread_local struct vo_place passed[LIMIT];
	struct vo_place end = *place;
	struct mp_err *err = vo->err, ignored;
	uint32_t nr;

	/* If bytes cannot be decoded, @place does not change, and nothing is reported. */
	vo->err = &ignored;
	if (!skip(vo, side, &end, passed, &nr) && nr < LIMIT)
		*place = end;
	vo->err = err;
}
