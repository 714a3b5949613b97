// SPDX-License-Identifier: Apache-2.0
/*
 * verify_version_tables - checks the jump tables of audited functions: those that one version has
 * for itself, in section .morph.tables, and the original's, which leads to the other version.
 * Called by verify_versions, verify_pieces and verify_rest.
 *
 * Each entry leads to what the original's entry leads to, and stays in the version. That the
 * address of a table serves only to jump is verify_table_flow's task. Where this is not proved,
 * the function is reported, so that the output can be made once more without auditing it.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_tables.h"
#include "editor/verify/code/verify_version_tables.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/stubs/verify_unproved.h"
#include "editor/verify/stubs/verify_versions.h"
#include "editor/verify/code/verify_version_tables_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

bool vf_is_version_table_section(const struct vf *vf, const struct mp_section *sec)
{
	return vf->stubs.version_tables && sec == vf->stubs.version_tables &&
	       sec->type == SHT_PROGBITS && sec->flags == SHF_ALLOC && sec->align == 8 &&
	       !(sec->vaddr % 8) && !sec->link && !sec->info && !sec->entsize &&
	       sec->off - vf->now.segment->p_offset == sec->vaddr - vf->now.segment->p_vaddr;
}

bool vf_is_in_version_tables(const struct vf *vf, uint64_t vaddr)
{
	return vf->stubs.version_tables && vaddr >= vf->stubs.version_tables->vaddr &&
	       vaddr - vf->stubs.version_tables->vaddr < vf->stubs.version_tables->size;
}

/* ---- operands ------------------------------------------------------------------------------ */

/* An operand of a version's copy that names another table than the original's does. */
struct use {
	uint64_t insn, table; /* in the original */
	uint64_t now;
	uint32_t function;
	uint8_t version;
};

struct uses {
	struct use *list; /* ascending by function */
	size_t nr, cap;
	uint64_t *copies; /* the tables that they name, ascending */
};

/* The address that the operand of @insn, copied to @now, names in original and output. */
static bool read_operand(const struct vf *vf, const struct vf_insn *insn, uint64_t now,
			 struct use *use)
{
	uint8_t off = insn->disp_off ? insn->disp_off : insn->abs_off;
	const uint8_t *b = off ? mp_elf_bytes(vf->n, now + off, 4) : NULL;

	if (!b)
		return false;
	use->table = insn->disp_off ? insn->target : (uint64_t)insn->abs;
	use->now = vf_displacement_target(b, insn->disp_off ? now + insn->len : 0);
	return true;
}

/*
 * Collect the operands of @p, a piece of @function, that name copied tables, or, with @tables, any of these
 * tables.
 */
static int collect_from(const struct vf *vf, const struct mp_map_piece *p, uint32_t function,
			uint8_t version, struct uses *uses, const struct vf_version_tables *tables)
{
	uint64_t common = vf->marks->common[p - vf->map->pieces], k = 0;
	struct vf_insn insn;

	for (; k < common; k += insn.len) {
		uint64_t at = p->old_vaddr + k;
		const uint8_t *b = mp_elf_bytes(vf->o, at, p->old_size - k);
		struct use use = {.insn = at, .function = function, .version = version};
		bool wanted;

		if (!b || !vf_decode(b, p->old_size - k, at, &insn))
			return -EBADMSG;
		if (!read_operand(vf, &insn, p->new_vaddr + k, &use))
			continue;
		wanted = vf_is_in_version_tables(vf, use.now);
		for (uint32_t t = 0; tables && !wanted && t < tables->nr_tables; t++)
			wanted = tables->table[t].start == use.table;
		if (wanted && mp_push(uses->list, uses->nr, uses->cap, use))
			return -ENOMEM;
	}
	return 0;
}

/* Collects the uses of @function. */
static int collect(const struct vf *vf, uint32_t function, const struct vf_version_tables *tables,
		   struct uses *uses)
{
	struct vf_version_walk walk = {0};
	const struct mp_map_piece *p;
	int ret = 0;

	while (!ret && (p = vf_version_walk(vf, function, &walk)))
		if (p->old_size && p->new_size)
			ret = collect_from(vf, p, function, walk.version, uses, tables);
	return ret;
}

static int by_vaddr(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Collects the uses of all functions that name copied tables. */
static int collect_all(const struct vf *vf, struct uses *uses)
{
	int ret = 0;

	for (uint32_t f = 0; !ret && f < vf->stubs.audited->nr_funcs; f++)
		ret = collect(vf, f, NULL, uses);
	uses->copies = calloc(uses->nr + 1, sizeof(*uses->copies));
	if (!uses->copies)
		return -ENOMEM;
	for (size_t i = 0; i < uses->nr; i++)
		uses->copies[i] = uses->list[i].now;
	qsort(uses->copies, uses->nr, sizeof(*uses->copies), by_vaddr);
	return ret;
}

/* The first use of @function, or of one behind it. */
static size_t first_use(const struct uses *uses, uint32_t function)
{
	return mp_search(i, 0, uses->nr, uses->list[i].function < function);
}

/* ---- tables -------------------------------------------------------------------------------- */

/* The tables that operands of @function name in other places than the original's. */
static bool find_tables(const struct vf *vf, const struct uses *uses, struct vf_version_tables *out)
{
	for (size_t i = first_use(uses, out->function);
	     i < uses->nr && uses->list[i].function == out->function; i++) {
		const struct use *use = &uses->list[i];
		struct vf_version_table *t = &out->table[out->nr_tables];
		bool known = false;

		for (uint32_t k = 0; !known && k < out->nr_tables; k++)
			known = out->table[k].start == use->table;
		if (known)
			continue;
		if (out->nr_tables == VF_MAX_VERSION_TABLES)
			return false;
		*t = (struct vf_version_table){.start = use->table};
		if (vf_prove_table(vf, t->start, &t->size, &t->end) ||
		    (t->size == 8 && vf->o->ehdr.e_type != ET_EXEC))
			return false;
		out->nr_tables++;
	}
	return true;
}

static bool is_ref(const struct vf_version_tables *tables, uint64_t insn)
{
	for (uint32_t i = 0; i < tables->nr_refs; i++)
		if (tables->ref[i] == insn)
			return true;
	return false;
}

static bool add_ref(struct vf_version_tables *tables, uint64_t insn)
{
	if (is_ref(tables, insn))
		return true;
	if (tables->nr_refs == VF_MAX_VERSION_REFS)
		return false;
	tables->ref[tables->nr_refs++] = insn;
	return true;
}

/* Does the instruction at @insn name the same table in each version, and which one? */
static bool is_named(const struct uses *uses, struct vf_version_table *t, uint64_t insn)
{
	unsigned int versions = 0;

	for (size_t i = 0; i < uses->nr; i++) {
		const struct use *use = &uses->list[i];

		if (use->insn != insn || use->table != t->start)
			continue;
		if (t->now[use->version] && t->now[use->version] != use->now)
			return false;
		t->now[use->version] = use->now;
		versions |= 1u << use->version;
	}
	return versions == (1u << MP_AUDIT_NR_CODES) - 1;
}

/* Every operand of the original that names a table belongs to the function, in all versions. */
static bool find_refs(const struct vf *vf, const struct uses *uses,
		      struct vf_version_tables *tables)
{
	for (uint32_t k = 0; k < tables->nr_tables; k++) {
		struct vf_version_table *t = &tables->table[k];

		for (size_t i = vf_first_ref(vf, t->start);
		     i < vf->old.refs.nr && vf->old.refs.list[i].to == t->start; i++)
			if (!is_named(uses, t, vf->old.refs.list[i].insn) ||
			    !add_ref(tables, vf->old.refs.list[i].insn))
				return false;
		for (int v = 0; v < MP_AUDIT_NR_CODES; v++)
			if (!t->now[v])
				return false;
	}
	/* And no other operand names a copy, such as a number that is no address. */
	for (size_t i = 0; i < uses->nr; i++)
		if (vf_is_in_version_tables(vf, uses->list[i].now) &&
		    !is_ref(tables, uses->list[i].insn))
			return false;
	return true;
}

/* ---- entries ------------------------------------------------------------------------------- */

/* Is there code of the function for the label @old, or does it stay where it was? */
static bool leads_right(const struct vf *vf, uint32_t function, uint8_t version, uint64_t old,
			uint64_t now)
{
	const struct vf_version *to = vf_version_at(vf, now);
	const struct mp_map_piece *p = vf_piece_from(vf, old);
	const struct vf_version *from = p ? vf_version_at(vf, p->new_vaddr) : NULL;

	if (!vf_same_place(vf, old, now))
		return false;
	return !from || from->function != function ||
	       (to && to->function == function && to->version == version);
}

/* The first address behind @start where another copied table starts, or the section ends. */
static uint64_t end_of_copy(const struct vf *vf, const struct uses *all, uint64_t start)
{
	uint64_t end = vf->stubs.version_tables->vaddr + vf->stubs.version_tables->size;
	size_t next = mp_search(i, 0, all->nr, all->copies[i] <= start);

	return next < all->nr && all->copies[next] < end ? all->copies[next] : end;
}

/*
 * An entry that leads into old code is not proved: there, a patch may lead on to either version. The
 * editor leaves entries alone that lead to the start of a function's cold part.
 * Return: 1: they are right; 0: this is not proved, or the copy may be too short; -EBADMSG.
 */
static int check_entries(const struct vf *vf, const struct vf_version_tables *tables,
			 const struct vf_version_table *t, uint8_t version, const struct uses *all)
{
	uint64_t start = t->now[version], size = t->end - t->start;
	bool copied = vf_is_in_version_tables(vf, start);

	if (!copied && start != t->start)
		return vf_refuse(vf, start, "an audited function reads another table than %#llx",
				 (unsigned long long)t->start);
	if (copied) {
		uint64_t room = end_of_copy(vf, all, start) - start;

		if (room < size)
			return 0;
		/* Entries behind those that may be read are checked, too. */
		size = room - room % t->size;
		for (uint64_t k = 0; k < size; k++)
			vf_bits_set(&vf->marks->version_table_bytes, start + k);
	}
	for (uint64_t k = 0; k + t->size <= size; k += t->size) {
		uint64_t old = vf_version_entry(vf->o, t->start + k, t->start, t->size);
		uint64_t now = vf_version_entry(vf->n, start + k, start, t->size);

		if (old && old == now && !leads_right(vf, tables->function, version, old, now))
			return 0;
		if (!old || !now || !leads_right(vf, tables->function, version, old, now))
			return vf_refuse(
				vf, start + k,
				"table entry leads to %#llx, which is no copy of %#llx in its version",
				(unsigned long long)now, (unsigned long long)old);
	}
	return 1;
}

/* ---- functions ----------------------------------------------------------------------------- */

/* Does a version have an indirect jump without a stub before it? */
static bool has_switch(const struct vf *vf, uint32_t function)
{
	struct vf_version_walk walk = {0};
	const struct mp_map_piece *p;

	while ((p = vf_version_walk(vf, function, &walk)))
		if (p->old_size && vf_is_switch(vf, p))
			return true;
	return false;
}

/* No operand of a function without a switch may name a copied table: none of its tables is proved. */
static int check_names_none(const struct vf *vf, uint32_t function, const struct uses *all)
{
	size_t i = first_use(all, function);

	return i < all->nr && all->list[i].function == function
		       ? vf_refuse(vf, all->list[i].insn,
				   "the copy of an operand names a version's table, but its "
				   "function has no switch")
		       : 0;
}

/* Return: 1: proved; 0: not proved; negative: wrong. */
static int check_function(const struct vf *vf, struct vf_version_tables *tables,
			  const struct uses *all)
{
	struct uses own = {0};
	int ret = 0;

	if (find_tables(vf, all, tables)) {
		ret = collect(vf, tables->function, tables, &own);
		ret = ret ? ret : find_refs(vf, &own, tables);
	}
	free(own.list);
	for (uint8_t version = 0; ret > 0 && version < MP_AUDIT_NR_CODES; version++) {
		ret = vf_table_flow(vf, tables, version);
		for (uint32_t k = 0; ret > 0 && k < tables->nr_tables; k++)
			ret = check_entries(vf, tables, &tables->table[k], version, all);
	}
	return ret;
}

/* Each byte of the section is part of an entry, or zero. */
static int check_covered(const struct vf *vf)
{
	const struct mp_section *sec = vf->stubs.version_tables;

	for (uint64_t at = sec->vaddr; at < sec->vaddr + sec->size; at++) {
		const uint8_t *p = mp_elf_bytes(vf->n, at, 1);

		if (!p || (*p && !vf_bits_get(&vf->marks->version_table_bytes, at)))
			return vf_refuse(vf, at, "data that is no entry of a version's table");
	}
	vf_own(vf, sec->off, sec->size, ME_OWNER_VERSION_TABLES);
	return 0;
}

int vf_check_version_tables(const struct vf *vf)
{
	struct vf_version_tables *tables = calloc(1, sizeof(*tables));
	struct uses all = {0};
	uint64_t unproved = 0;
	int ret = tables ? collect_all(vf, &all) : -ENOMEM;

	if (!ret && vf->stubs.version_tables)
		ret = vf_bits_init(&vf->marks->version_table_bytes, vf->stubs.version_tables->vaddr,
				   vf->stubs.version_tables->vaddr +
					   vf->stubs.version_tables->size);
	for (uint32_t f = 0; !ret && f < vf->stubs.audited->nr_funcs; f++) {
		if (!has_switch(vf, f)) {
			ret = check_names_none(vf, f, &all);
			continue;
		}
		memset(tables, 0, sizeof(*tables));
		tables->function = f;
		ret = check_function(vf, tables, &all);
		if (!ret) {
			vf_note_unproved(vf, vf->stubs.audited->funcs[f].vaddr, UINT16_MAX);
			unproved = vf->stubs.audited->funcs[f].vaddr;
		}
		ret = ret < 0 ? ret : 0;
	}
	if (!ret && unproved)
		ret = vf_refuse(vf, unproved,
				"the tables of an audited switch are not proved to serve it alone");
	if (!ret && vf->stubs.version_tables)
		ret = check_covered(vf);
	free(tables);
	free(all.list);
	free(all.copies);
	return ret;
}
