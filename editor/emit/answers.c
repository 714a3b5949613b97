// SPDX-License-Identifier: Apache-2.0
/*
 * answers - each run of copies that come from one FDE has an entry in the table, and so has the old code of each
 * function with another address.
 */
#include "editor/emit/answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/emit/copy.h"
#include "editor/evidence/enclosing.h"

/* Return: the original's FDE around @vaddr; NULL: there is none. */
static const struct mp_fde *fde_at(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_fde *fde = mp_elf_fde_before(elf, vaddr);

	return fde && vaddr - fde->start < fde->size ? fde : NULL;
}

struct adder {
	const struct mp_cfg *cfg;
	const struct me_placement *placement;
	const struct me_redirects *redirects;
	struct me_answers *out;
	uint64_t table;
	bool failed; /* out of reach */
};

/* Return: the address now of the function that begins at @start. */
static uint64_t address_now(const struct adder *a, uint64_t start)
{
	uint32_t func = mp_cfg_func_at(a->cfg, start);

	return func != MP_NONE && a->cfg->funcs[func].vaddr == start && a->redirects->functions &&
			       a->redirects->functions[func]
		       ? me_place_value(a->cfg, a->placement, start)
		       : start;
}

static void add(struct adder *a, uint64_t start, uint64_t size, uint64_t function)
{
	int64_t from = (int64_t)(start - a->table), to = (int64_t)(function - a->table);

	a->failed |= from < INT32_MIN || to < INT32_MIN;
	a->out->entries[a->out->nr_entries++] =
		(struct me_enclosing_entry){(int32_t)from, (uint32_t)size, (int32_t)to};
}

/* Old code of functions with another address. */
static void add_old(struct adder *a)
{
	for (uint32_t f = 0; f < a->cfg->nr_funcs; f++) {
		uint64_t start = a->cfg->funcs[f].vaddr, now = address_now(a, start);
		const struct mp_fde *fde = now == start ? NULL : fde_at(a->cfg->elf, start);

		if (fde && fde->start == start)
			add(a, start, fde->size, now);
	}
}

static void add_copies(struct adder *a)
{
	struct me_enclosing_entry *last = NULL;
	const struct mp_fde *of = NULL;

	for (uint32_t i = 0; i < a->placement->nr_copies; i++) {
		const struct me_copy *copy = &a->placement->copies[i];
		const struct mp_fde *fde = fde_at(a->cfg->elf, a->cfg->blocks[copy->block].vaddr);

		if (!copy->new_size)
			continue;
		if (last && fde == of) {
			last->size = (uint32_t)((int64_t)(copy->new_vaddr - a->table) +
						copy->new_size - last->start);
			continue;
		}
		of = fde;
		last = NULL;
		if (!fde)
			continue;
		add(a, copy->new_vaddr, copy->new_size, address_now(a, fde->start));
		last = &a->out->entries[a->out->nr_entries - 1];
	}
}

int me_answers_find(const struct mp_cfg *cfg, const struct me_placement *placement,
		    const struct me_redirects *redirects, uint64_t vaddr, struct me_answers *out,
		    struct mp_err *err)
{
	struct adder a = {cfg, placement, redirects, out, vaddr + ME_ENCLOSING_CODE_SIZE, false};

	*out = (struct me_answers){0};
	if (!me_enclosing_answered(cfg, &out->use))
		return 0;
	out->entries =
		malloc(((size_t)placement->nr_copies + cfg->nr_funcs + 1) * sizeof(*out->entries));
	if (!out->entries)
		return mp_err_set(err, ENOMEM, "out of memory");
	add_old(&a);
	add_copies(&a);
	if (a.failed)
		return mp_err_set(err, EPERM, "its code is out of reach of the new segment");
	out->vaddr = vaddr;
	out->size = ME_ENCLOSING_CODE_SIZE + (out->nr_entries + 1) * sizeof(*out->entries);
	return 0;
}

int me_answers_write(const struct mp_cfg *cfg, const struct me_answers *answers, uint8_t *out,
		     uint8_t *old_part, uint64_t old_end, struct mp_err *err)
{
	const struct me_import_use *use = &answers->use;
	struct me_enclosing_entry first = {(int32_t)answers->nr_entries, 0, 0};
	bool reached = true;

	reached = me_enclosing_code_write(answers->vaddr, use->slots[0], out);
	out += ME_ENCLOSING_CODE_SIZE;
	memcpy(out, &first, sizeof(first));
	if (answers->nr_entries)
		memcpy(out + sizeof(first), answers->entries,
		       answers->nr_entries * sizeof(*answers->entries));
	for (uint32_t i = 0; i < use->nr_sites; i++) {
		uint64_t at = use->sites[i], off;
		uint8_t *code;

		if (!mp_elf_vaddr_to_off(cfg->elf, at, &off) || off > old_end || old_end - off < 6)
			return mp_err_set(err, EPERM, "code lies outside of the file");
		code = old_part + off;
		/* As linkers write them in place of a call, or a jump, through a slot. */
		if (code[1] == 0x15) {
			memcpy(code, "\x67\xe8", 2);
			reached &= me_put_rel32(code + 2, at + 6, answers->vaddr);
		} else {
			code[0] = 0xe9;
			reached &= me_put_rel32(code + 1, at + 5, answers->vaddr);
			code[5] = 0x90;
		}
	}
	return reached ? 0 : mp_err_set(err, EPERM, "its code is out of reach of the new segment");
}

void me_answers_fini(struct me_answers *answers)
{
	free(answers->entries);
}
