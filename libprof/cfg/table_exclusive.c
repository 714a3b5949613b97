// SPDX-License-Identifier: Apache-2.0
/*
 * table_exclusive - decides which tables only one function's jumps use, so that their entries
 * could be changed together: all references are known, the table is read-only, and no label
 * is known elsewhere. Called by cfg.
 */
#include <errno.h>

#include "libprof/base/search.h"
#include "libprof/cfg/cfg_words.h"

/* Bytes of the file whose pages a look at a table may load. */
#define TABLE_READS 16384u

struct check {
	struct mp_cfg_build *b;
	uint32_t *order; /* tables by address */
	uint32_t nr;
};

static uint64_t table_end(const struct mp_table *t)
{
	return t->vaddr + (uint64_t)t->nr_entries * (t->kind == MP_TABLE_REL32 ? 4 : 8);
}

static int compare_tables(const void *a, const void *b, void *ctx)
{
	const struct mp_table *tables = ctx;
	const struct mp_table *x = &tables[*(const uint32_t *)a];
	const struct mp_table *y = &tables[*(const uint32_t *)b];

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The last table that starts at or before @vaddr, if @vaddr is in it. */
static struct mp_table *table_at(const struct check *c, uint64_t vaddr)
{
	struct mp_table *tables = c->b->cfg->tables;
	uint32_t lo = mp_search(i, 0, c->nr, tables[c->order[i]].vaddr <= vaddr);

	if (!lo || vaddr >= table_end(&tables[c->order[lo - 1]]))
		return NULL;
	return &tables[c->order[lo - 1]];
}

static void check_overlaps(struct check *c)
{
	struct mp_table *tables = c->b->cfg->tables, *longest = NULL;

	for (uint32_t i = 0; i < c->nr; i++) {
		struct mp_table *t = &tables[c->order[i]];

		if (longest && t->vaddr < table_end(longest))
			t->private_refs = longest->private_refs = false;
		if (!longest || table_end(t) > table_end(longest))
			longest = t;
	}
}

/* A word of data or a relocation refers into a table. */
static void word(void *ctx, uint64_t where, uint64_t value, enum mp_word_kind kind)
{
	struct check *c = ctx;
	struct mp_table *t = table_at(c, value);
	uint32_t from;

	(void)kind;
	if (!t)
		return;
	/* Operands in code are judged elsewhere. */
	from = mp_space_at(c->b->index, where);
	if (from != MP_NONE && mp_space_is_text(c->b->index, from))
		return;
	t->private_refs = false;
}

static int note_refs(struct check *c)
{
	struct mp_cfg_build *b = c->b;
	struct mp_cfg *cfg = b->cfg;
	uint32_t *next;

	/* Count, then fill: references are grouped by table. */
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t i = 0; i < b->nr_refs; i++) {
			uint64_t value = mp_space_vaddr(b->index, b->ref_list[i].target);
			struct mp_table *t = table_at(c, value);
			uint32_t part;
			struct mp_insn insn;
			const uint8_t *bytes;

			if (!t)
				continue;
			part = mp_part_at(b->index, b->ref_list[i].at);
			if (value != t->vaddr || part == MP_NONE ||
			    b->index->parts[part].func != t->func) {
				t->private_refs = false;
				continue;
			}
			if (!fill) {
				t->nr_refs++;
				continue;
			}
			bytes = mp_space_bytes(b->index, b->ref_list[i].at, 1);
			mp_space_note_read(b, TABLE_READS);
			if (!bytes ||
			    mp_insn_decode(bytes, b->index->parts[part].end - b->ref_list[i].at, 0,
					   &insn))
				continue;
			next = &t->first_ref;
			cfg->table_refs[(*next)++] = (struct mp_table_ref){
				.insn_vaddr = mp_space_vaddr(b->index, b->ref_list[i].at),
				.field_off = insn.rip_relative	 ? insn.disp_off
					     : insn.mem_disp_off ? insn.mem_disp_off
								 : insn.imm_off,
				.rip_relative = insn.rip_relative,
			};
		}
		if (!fill) {
			for (uint32_t i = 0; i < cfg->nr_tables; i++) {
				cfg->tables[i].first_ref = cfg->nr_table_refs;
				cfg->nr_table_refs += cfg->tables[i].nr_refs;
			}
			cfg->table_refs =
				calloc((size_t)cfg->nr_table_refs + 1, sizeof(*cfg->table_refs));
			if (!cfg->table_refs)
				return -ENOMEM;
		}
	}
	for (uint32_t i = 0; i < cfg->nr_tables; i++)
		cfg->tables[i].first_ref -= cfg->tables[i].nr_refs;
	return 0;
}

/* True if one of the table's targets is in b->scratch. */
static bool any_noted(const struct mp_cfg_build *b, const struct mp_table *t)
{
	for (uint32_t i = 0; i < t->nr_entries; i++) {
		uint32_t target = mp_table_entry(b, t, i);

		if (target != MP_NONE && mp_bit(b->scratch, target))
			return true;
	}
	return false;
}

/* True if the address of one of the table's targets stands somewhere else, too. */
static bool any_taken(const struct mp_cfg_build *b, const struct mp_table *t)
{
	for (uint32_t i = 0; i < t->nr_entries; i++) {
		uint32_t target = mp_table_entry(b, t, i);

		if (target != MP_NONE && mp_marks_at(&b->marks, target) & MP_BLOCK_ADDRESS_TAKEN)
			return true;
	}
	return false;
}

/* Labels must not be compared between tables that change and tables that stay. */
static void check_shared_labels(struct check *c)
{
	struct mp_cfg_build *b = c->b;
	struct mp_cfg *cfg = b->cfg;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < cfg->nr_tables; i++) {
			const struct mp_table *t = &cfg->tables[i];

			mp_space_note_read(b, TABLE_READS);
			for (uint32_t k = 0; !t->private_refs && k < t->nr_entries; k++) {
				uint32_t target = mp_table_entry(b, t, k);

				if (target != MP_NONE)
					mp_bit_set(b->scratch, target);
			}
		}
		for (uint32_t i = 0; i < cfg->nr_tables; i++) {
			struct mp_table *t = &cfg->tables[i];

			if (!t->private_refs || !t->labels || !any_noted(b, t))
				continue;
			t->private_refs = false;
			changed = true;
		}
	}
	mp_bits_clear_all(b->scratch, b->index->nr_bytes / 64 + 1);
}

/* Another module may know the table by a symbol. */
static void check_symbols(struct check *c)
{
	const struct mp_elf *elf = c->b->elf;

	for (uint32_t i = c->b->first_dynsym; i < elf->nr_symbols; i++) {
		struct mp_table *t;

		if (elf->symbols[i].shndx == SHN_UNDEF)
			continue;
		t = table_at(c, elf->symbols[i].vaddr);
		if (t)
			t->private_refs = false;
	}
}

/*
 * True if the table's end is certain. Offsets behind the end would belong to another table,
 * with another base. Addresses mean the same in any table. But if the loader relocates
 * them, the word behind the table must be referred to separately, or be no entry.
 */
static bool end_is_known(const struct mp_cfg_build *b, const struct mp_table *t)
{
	uint32_t at = mp_space_at(b->index, table_end(t));

	if (t->kind == MP_TABLE_REL32 || b->elf->relinkable || (t->exact && !b->moves))
		return t->exact;
	return at == MP_NONE || mp_bit(b->refs, at) ||
	       mp_table_entry(b, t, t->nr_entries) == MP_NONE;
}

int mp_cfg_check_tables(struct mp_cfg_build *b)
{
	struct mp_cfg *cfg = b->cfg;
	struct check c = {.b = b, .nr = cfg->nr_tables};
	int ret;

	c.order = calloc((size_t)c.nr + 1, sizeof(*c.order));
	if (!c.order)
		return -ENOMEM;
	for (uint32_t i = 0; i < c.nr; i++) {
		struct mp_table *t = &cfg->tables[i];

		c.order[i] = i;
		mp_space_note_read(b, TABLE_READS);
		t->private_refs = end_is_known(b, t) && mp_elf_is_readonly(b->elf, t->vaddr) &&
				  mp_elf_is_readonly(b->elf, table_end(t) - 1) && !any_taken(b, t);
	}
	qsort_r(c.order, c.nr, sizeof(*c.order), compare_tables, cfg->tables);
	check_overlaps(&c);
	mp_words_walk(b, word, &c);
	check_symbols(&c);
	ret = note_refs(&c);
	if (!ret) {
		/* Without an instruction that loads it, the base comes from somewhere else. */
		for (uint32_t i = 0; i < c.nr; i++)
			if (!cfg->tables[i].nr_refs)
				cfg->tables[i].private_refs = false;
		check_shared_labels(&c);
	}
	free(c.order);
	return ret;
}
