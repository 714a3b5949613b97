// SPDX-License-Identifier: Apache-2.0
/*
 * table_entry - reads the entries of a possible jump table and finds how far it may reach.
 * With kept relocations, an entry without one is no entry. It decodes no instructions.
 * Called by table.
 */
#include "libprof/cfg/cfg_private.h"

#define MAX_ENTRIES 65536

/* True for differences from a label: the assembler makes them, without relocations. */
static bool has_label_base(const struct mp_cfg_build *b, const struct mp_table *table)
{
	uint32_t at = mp_space_at(b->index, table->base);

	return table->kind == MP_TABLE_REL32 && at != MP_NONE && mp_space_is_text(b->index, at);
}

static uint32_t entry_rel32(const struct mp_cfg_build *b, const struct mp_table *table,
			    uint64_t where)
{
	uint32_t at = mp_space_at(b->index, where);
	const uint8_t *bytes = at == MP_NONE ? NULL : mp_space_bytes(b->index, at, 4);
	int32_t value;

	if (!bytes)
		return MP_NONE;
	if (b->elf->relinkable) {
		const struct mp_reloc *rel = mp_elf_reloc_at(b->elf, where);

		if (has_label_base(b, table) ? rel != NULL : !rel || rel->type != R_X86_64_PC32)
			return MP_NONE;
	}
	memcpy(&value, bytes, 4);
	return mp_space_at(b->index, table->base + (uint64_t)(int64_t)value);
}

static uint32_t entry_abs64(const struct mp_cfg_build *b, uint64_t where)
{
	const struct mp_elf *elf = b->elf;
	const struct mp_reloc *rel;
	const uint8_t *bytes;
	uint64_t value;
	uint32_t at;

	if (b->moves) {
		rel = mp_elf_dyn_reloc_at(elf, where);
		if (!rel || rel->type != R_X86_64_RELATIVE)
			return MP_NONE;
		return mp_space_at(b->index, (uint64_t)rel->addend);
	}
	if (elf->relinkable) {
		rel = mp_elf_reloc_at(elf, where);
		if (!rel || rel->type != R_X86_64_64)
			return MP_NONE;
	}
	at = mp_space_at(b->index, where);
	bytes = at == MP_NONE ? NULL : mp_space_bytes(b->index, at, 8);
	if (!bytes)
		return MP_NONE;
	memcpy(&value, bytes, 8);
	return mp_space_at(b->index, value);
}

uint32_t mp_table_entry(const struct mp_cfg_build *b, const struct mp_table *table, uint32_t i)
{
	if (table->kind == MP_TABLE_REL32)
		return entry_rel32(b, table, table->vaddr + 4ull * i);
	return entry_abs64(b, table->vaddr + 8ull * i);
}

uint32_t mp_table_orphan(const struct mp_cfg_build *b, uint32_t target)
{
	uint32_t part = mp_part_at(b->index, target);

	if (part == MP_NONE || !mp_bit(b->orphans, b->index->parts[part].at) ||
	    !mp_bit(b->starts, target))
		return MP_NONE;
	return part;
}

enum where {
	OUTSIDE,
	INSIDE,	    /* an instruction of the function */
	FIRST_INSN, /* its first instruction, like a pointer to the function */
	MAYBE,	    /* in a range that may belong to the function */
};

static enum where where_is(const struct mp_cfg_build *b, const struct mp_table *table,
			   uint32_t target)
{
	uint32_t part;

	if (!mp_space_is_text(b->index, target))
		return OUTSIDE;
	part = mp_part_at(b->index, target);
	if (part != MP_NONE && b->index->parts[part].func == table->func) {
		if (!mp_bit(b->starts, target))
			return OUTSIDE;
		return mp_bit(b->entries, target) ? FIRST_INSN : INSIDE;
	}
	if (part != MP_NONE && mp_table_orphan(b, target) != MP_NONE)
		return MAYBE;
	/* The function's end: the target of a case that the compiler proved impossible. */
	part = target ? mp_part_at(b->index, target - 1) : MP_NONE;
	return part != MP_NONE && b->index->parts[part].func == table->func &&
			       b->index->parts[part].end == target
		       ? INSIDE
		       : OUTSIDE;
}

/*
 * Looks for each byte of the file, and those that any file may have. Compilers and interpreters need one for fifty bytes;
 * a few millions for a thousand labels, each with a jump of its own.
 */
#define LOOKS_PER_BYTE 4
#define LOOKS_LEAST    (1u << 23)

void mp_table_looks_begin(struct mp_cfg_build *b)
{
	b->table_looks = LOOKS_PER_BYTE * (uint64_t)b->elf->size + LOOKS_LEAST;
}

static void use_up(struct mp_cfg_build *b, uint64_t nr)
{
	b->table_looks -= nr < b->table_looks ? nr : b->table_looks;
}

bool mp_table_look(struct mp_cfg_build *b, uint32_t func, uint32_t jump, uint64_t nr)
{
	use_up(b, nr);
	if (!b->table_looks)
		mp_func_problem(&b->cfg->funcs[func], MP_PROBLEM_UNRESOLVED_JUMP,
				mp_space_vaddr(b->index, jump));
	return b->table_looks;
}

uint32_t mp_table_run(struct mp_cfg_build *b, const struct mp_table *table, uint32_t least,
		      bool *stop)
{
	uint32_t size = table->kind == MP_TABLE_REL32 ? 4 : 8, i;
	bool own = false;

	*stop = true;
	for (i = 0; i < MAX_ENTRIES; i++) {
		uint64_t address = table->vaddr + (uint64_t)size * i;
		uint32_t at = mp_space_at(b->index, address), target;
		enum where where;

		if (at == MP_NONE || mp_space_is_text(b->index, at) ||
		    (i && i >= least && mp_bit(b->refs, at)))
			break;
		target = mp_table_entry(b, table, i);
		if (target == MP_NONE) {
			/* Kept relocations prove that no entry follows. */
			*stop = b->elf->relinkable;
			break;
		}
		where = where_is(b, table, target);
		if (where == OUTSIDE) {
			*stop = false;
			break;
		}
		own |= where == INSIDE;
	}
	use_up(b, i + 1);
	/*
	 * Without an entry that leads into the middle of the function, this is a table of
	 * pointers to functions. Nothing tells where a table of plain numbers ends.
	 */
	if (!own || has_label_base(b, table))
		*stop = false;
	return own ? i : 0;
}

void mp_table_mark_beyond(struct mp_cfg_build *b, const struct mp_table *table)
{
	uint32_t size = table->kind == MP_TABLE_REL32 ? 4 : 8;

	for (uint32_t i = table->nr_entries; i < MAX_ENTRIES; i++) {
		uint32_t at = mp_space_at(b->index, table->vaddr + (uint64_t)size * i), target;

		if (at == MP_NONE || mp_space_is_text(b->index, at) || mp_bit(b->in_table, at))
			return;
		target = mp_table_entry(b, table, i);
		if (target == MP_NONE || where_is(b, table, target) == OUTSIDE)
			return;
		if (mp_space_is_text(b->index, target))
			mp_bit_set(b->index->targets, target);
	}
}
