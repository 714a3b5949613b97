// SPDX-License-Identifier: Apache-2.0
/* version_tables - which tables are copied, and what their copies hold. */
#include "editor/place/version_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/evidence/patch_fit.h"
#include "libprof/base/search.h"

/* Entries that seem to follow the known ones are copied, too, up to this number. */
#define MAX_ENTRIES 65536

/* The versions that have tables for themselves. */
#define FIRST_VERSION ME_VERSION_ORIGINAL
#define NR_COPIES     (ME_NR_VERSIONS - FIRST_VERSION)

static uint32_t entry_size(const struct mp_table *table)
{
	return table->kind == MP_TABLE_REL32 ? 4 : 8;
}

/* Does each known entry lead into the function, and not to its entry? */
static bool stays_inside(const struct mp_cfg *cfg, const struct mp_block *block)
{
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
		const struct mp_block *to = &cfg->blocks[cfg->edges[e].to];

		if (to->func != block->func || to->flags & MP_BLOCK_ENTRY)
			return false;
	}
	return true;
}

/* Do the operands that name the table have four bytes? Those of the large code model have eight. */
static bool has_short_operands(const struct mp_cfg *cfg, const struct mp_table *table)
{
	for (uint32_t i = 0; i < table->nr_refs; i++) {
		const struct mp_table_ref *ref = &cfg->table_refs[table->first_ref + i];
		uint32_t b = mp_cfg_block_at(cfg, ref->insn_vaddr);
		uint64_t size =
			b == MP_NONE ? 0
				     : cfg->blocks[b].vaddr + cfg->blocks[b].size - ref->insn_vaddr;
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, ref->insn_vaddr, size);
		struct mp_insn insn;

		if (!size || !bytes || mp_insn_decode(bytes, size, ref->insn_vaddr, &insn) ||
		    insn.len != ref->field_off + 4)
			return false;
	}
	return true;
}

const char *me_version_tables_why_not(const struct mp_cfg *cfg, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];
	const struct mp_table *table = block->table == MP_NONE ? NULL : &cfg->tables[block->table];

	if (!table)
		return "not audited: its switch has several tables";
	if (table->labels)
		return "not audited: a table of it holds labels";
	if (table->func != block->func || !table->nr_refs || !me_patch_leads_table(cfg, table))
		return "not audited: the table of its switch may be read elsewhere";
	if (table->kind == MP_TABLE_REL32
		    ? table->base != table->vaddr
		    : cfg->elf->ehdr.e_type != ET_EXEC || !has_short_operands(cfg, table))
		return "not audited: the table of its switch cannot be copied";
	if (!stays_inside(cfg, block))
		return "not audited: its switch leads out of it, or to its entry";
	return NULL;
}

/* The old address that entry @i leads to. Return: false: it cannot be read. */
static bool read_entry(const struct mp_cfg *cfg, const struct mp_table *table, uint32_t i,
		       uint64_t *target)
{
	uint32_t size = entry_size(table);
	const uint8_t *p = mp_elf_bytes(cfg->elf, table->vaddr + (uint64_t)i * size, size);
	int32_t offset;

	if (!p)
		return false;
	if (table->kind == MP_TABLE_ABS64) {
		memcpy(target, p, sizeof(*target));
		return true;
	}
	memcpy(&offset, p, sizeof(offset));
	*target = table->base + (uint64_t)(int64_t)offset;
	return true;
}

static bool is_code(const struct mp_cfg *cfg, uint64_t vaddr)
{
	const struct mp_section *sec = mp_elf_section_at(cfg->elf, vaddr);

	return sec && sec->flags & SHF_EXECINSTR;
}

/* The first start of another table behind @table. */
static uint64_t next_table(const struct mp_cfg *cfg, const struct mp_table *table)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t t = 0; t < cfg->nr_tables; t++)
		if (cfg->tables[t].vaddr > table->vaddr && cfg->tables[t].vaddr < next)
			next = cfg->tables[t].vaddr;
	return next;
}

/* The known entries, and what follows if it looks like entries: verify wants as many as may be. */
static uint32_t count_entries(const struct mp_cfg *cfg, const struct mp_table *table)
{
	const struct mp_section *sec = mp_elf_section_at(cfg->elf, table->vaddr);
	uint64_t end = next_table(cfg, table), target;
	uint32_t nr = table->nr_entries, size = entry_size(table);

	if (sec && sec->vaddr + sec->size < end)
		end = sec->vaddr + sec->size;
	while (nr < MAX_ENTRIES && table->vaddr + (uint64_t)(nr + 1) * size <= end &&
	       read_entry(cfg, table, nr, &target) && is_code(cfg, target))
		nr++;
	return nr;
}

static int compare_refs(const void *a, const void *b)
{
	const struct me_version_ref *x = a, *y = b;

	return x->insn_vaddr < y->insn_vaddr ? -1 : x->insn_vaddr > y->insn_vaddr;
}

static void add(const struct mp_cfg *cfg, uint32_t t, struct me_version_tables *out)
{
	const struct mp_table *table = &cfg->tables[t];

	uint32_t nr_entries = count_entries(cfg, table), first = out->nr_tables;

	for (uint8_t v = FIRST_VERSION; v < ME_NR_VERSIONS; v++) {
		out->tables[out->nr_tables++] = (struct me_version_table){
			.table = t,
			.nr_entries = nr_entries,
			.now = out->vaddr + out->size,
			.version = v,
		};
		out->size += (uint64_t)nr_entries * entry_size(table);
	}
	for (uint32_t i = 0; i < table->nr_refs; i++) {
		const struct mp_table_ref *ref = &cfg->table_refs[table->first_ref + i];

		out->refs[out->nr_refs++] = (struct me_version_ref){
			ref->insn_vaddr, first, ref->field_off, ref->rip_relative};
	}
}

/* Has the function of the table two versions, and does one of its jumps use the table? */
static bool is_wanted(const struct mp_cfg *cfg, const struct me_placement *placement, uint32_t t)
{
	uint32_t block = cfg->tables[t].block;

	return placement->of_version[FIRST_VERSION] && block != MP_NONE &&
	       cfg->blocks[block].func == cfg->tables[t].func &&
	       placement->of_version[FIRST_VERSION][block] != MP_NONE;
}

int me_version_tables_find(const struct mp_cfg *cfg, const struct me_placement *placement,
			   uint64_t vaddr, struct me_version_tables *out, struct mp_err *err)
{
	uint32_t nr_refs = 0;

	*out = (struct me_version_tables){.vaddr = vaddr};
	for (uint32_t t = 0; t < cfg->nr_tables; t++)
		nr_refs += is_wanted(cfg, placement, t) ? cfg->tables[t].nr_refs : 0;
	if (!nr_refs)
		return 0;
	out->tables = malloc((size_t)cfg->nr_tables * NR_COPIES * sizeof(*out->tables));
	out->refs = malloc((size_t)nr_refs * sizeof(*out->refs));
	if (!out->tables || !out->refs) {
		me_version_tables_fini(out);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	/* Tables with entries of eight bytes come first, so that all are aligned. */
	for (int kind = 0; kind < 2; kind++)
		for (uint32_t t = 0; t < cfg->nr_tables; t++)
			if (is_wanted(cfg, placement, t) &&
			    cfg->tables[t].kind == (kind ? MP_TABLE_REL32 : MP_TABLE_ABS64))
				add(cfg, t, out);
	qsort(out->refs, out->nr_refs, sizeof(*out->refs), compare_refs);
	return 0;
}

/* Return: the address in @version of @func that stands for the old address @target. */
static uint64_t place_in(const struct mp_cfg *cfg, const struct me_placement *placement,
			 uint8_t version, uint32_t func, uint64_t target)
{
	uint32_t block = mp_cfg_block_starting(cfg, target);
	uint32_t copy = block == MP_NONE ? MP_NONE : placement->of_version[version][block];

	return copy == MP_NONE || cfg->blocks[block].func != func
		       ? target
		       : placement->copies[copy].new_vaddr;
}

static int write_table(const struct mp_cfg *cfg, const struct me_placement *placement,
		       const struct me_version_table *copy, uint8_t *out)
{
	const struct mp_table *table = &cfg->tables[copy->table];

	for (uint32_t e = 0; e < copy->nr_entries; e++, out += entry_size(table)) {
		uint64_t target;
		int32_t word;

		if (!read_entry(cfg, table, e, &target))
			return -EBADMSG;
		target = place_in(cfg, placement, copy->version, table->func, target);
		if (table->kind == MP_TABLE_ABS64) {
			memcpy(out, &target, sizeof(target));
			continue;
		}
		target -= copy->now;
		word = (int32_t)target;
		if ((uint64_t)(int64_t)word != target)
			return -ERANGE;
		memcpy(out, &word, sizeof(word));
	}
	return 0;
}

/* Make the operands of @copy at @out name its version's tables. */
static int lead(const struct mp_cfg *cfg, const struct me_version_tables *tables,
		const struct me_copy *copy, uint8_t *out)
{
	uint64_t start = cfg->blocks[copy->block].vaddr;
	uint32_t lo = mp_search(i, 0, tables->nr_refs, tables->refs[i].insn_vaddr < start);

	for (; lo < tables->nr_refs && tables->refs[lo].insn_vaddr - start < copy->body_size;
	     lo++) {
		const struct me_version_ref *ref = &tables->refs[lo];
		uint64_t off = ref->insn_vaddr - start + ref->field_off;
		/* The displacement is the last field of these instructions. */
		uint64_t from = ref->rip_relative ? copy->new_vaddr + off + 4 : 0;
		uint32_t table = ref->table + copy->version - FIRST_VERSION;
		int64_t value = (int64_t)(tables->tables[table].now - from);
		int32_t word = (int32_t)value;

		if (word != value || off + 4 > copy->body_size)
			return -ERANGE;
		memcpy(out + off, &word, sizeof(word));
	}
	return 0;
}

int me_version_tables_write(const struct mp_cfg *cfg, const struct me_placement *placement,
			    const struct me_version_tables *tables, uint64_t start,
			    uint8_t *segment, struct mp_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < tables->nr_tables; i++)
		rc = write_table(cfg, placement, &tables->tables[i],
				 segment + (tables->tables[i].now - start));
	for (uint32_t i = 0; !rc && tables->nr_refs && i < placement->nr_copies; i++) {
		const struct me_copy *copy = &placement->copies[i];

		if (copy->version != ME_VERSION_NEW && !copy->stub)
			rc = lead(cfg, tables, copy, segment + (copy->new_vaddr - start));
	}
	return rc ? mp_err_set(err, -rc, "the copy of a table cannot be written") : 0;
}

void me_version_tables_fini(struct me_version_tables *tables)
{
	free(tables->tables);
	free(tables->refs);
	*tables = (struct me_version_tables){0};
}
