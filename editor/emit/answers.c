// SPDX-License-Identifier: Apache-2.0
/* answers - each run of copies that come from one FDE has an entry in the table. */
#include "editor/emit/answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/emit/copy.h"
#include "editor/evidence/enclosing.h"

/* Return: where the original's FDE around @vaddr begins; 0: there is none. */
static uint64_t fde_start(const struct mp_elf *elf, uint64_t vaddr)
{
	uint32_t low = 0, high = elf->nr_fdes;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (elf->fdes[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && vaddr - elf->fdes[low - 1].start < elf->fdes[low - 1].size
		       ? elf->fdes[low - 1].start
		       : 0;
}

int me_answers_find(const struct mp_cfg *cfg, const struct me_placement *placement, uint64_t vaddr,
		    struct me_answers *out, struct mp_err *err)
{
	uint64_t table = vaddr + ME_ENCLOSING_CODE_SIZE;
	struct me_enclosing_entry *entry = NULL;

	*out = (struct me_answers){0};
	if (!me_enclosing_answered(cfg, &out->use))
		return 0;
	out->entries = malloc((placement->nr_copies + 1) * sizeof(*out->entries));
	if (!out->entries)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		const struct me_copy *copy = &placement->copies[i];
		uint64_t function = fde_start(cfg->elf, cfg->blocks[copy->block].vaddr);
		int64_t start = (int64_t)(copy->new_vaddr - table),
			to = (int64_t)(function - table);

		if (!copy->new_size)
			continue;
		if (entry && function && entry->function == to) {
			entry->size = (uint32_t)(start + copy->new_size - entry->start);
			continue;
		}
		entry = NULL;
		if (!function)
			continue;
		if (start < INT32_MIN || to < INT32_MIN)
			return mp_err_set(err, EPERM,
					  "its code is out of reach of the new segment");
		entry = &out->entries[out->nr_entries++];
		*entry = (struct me_enclosing_entry){(int32_t)start, copy->new_size, (int32_t)to};
	}
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

	if (!answers->size)
		return 0;
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
