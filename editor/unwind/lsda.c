// SPDX-License-Identifier: Apache-2.0
/*
 * lsda - reads the exception tables of old code. Refuses any table that it does not
 * fully understand.
 */
#include "editor/unwind/lsda.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"
#include "libprof/elf/eh.h"

static const char unreadable[] = "unreadable LSDA";

/* Return: -EPERM, with the reason why the table cannot be carried over. */
static int refuse(const char **why, const char *reason)
{
	*why = reason;
	return -EPERM;
}

/* Limits for hostile tables; larger than in any real function. */
#define MAX_TYPES (1u << 16)
#define MAX_SITES (1u << 20)
#define MAX_STEPS (1u << 20)

static int add_site(struct me_lsda *lsda, const struct me_call_site *site, const char **why)
{
	if (lsda->nr_sites == lsda->cap_sites) {
		uint32_t cap = lsda->cap_sites ? lsda->cap_sites * 2 : 32;
		struct me_call_site *sites;

		if (cap > MAX_SITES)
			return refuse(why, unreadable);
		sites = reallocarray(lsda->sites, cap, sizeof(*sites));
		if (!sites)
			return -ENOMEM;
		lsda->sites = sites;
		lsda->cap_sites = cap;
	}
	lsda->sites[lsda->nr_sites++] = *site;
	return 0;
}

static int read_sites(struct mp_cursor *cur, uint8_t enc, uint64_t start, uint64_t size,
		      uint64_t lpstart, struct me_lsda *lsda, const char **why)
{
	uint64_t end = 0;

	if (enc & 0xf0)
		return refuse(why, "call sites in an unknown encoding");
	while (cur->p < cur->end) {
		uint64_t off = mp_cursor_pointer(cur, enc, 0), len = mp_cursor_pointer(cur, enc, 0);
		uint64_t pad = mp_cursor_pointer(cur, enc, 0), action = mp_cursor_uleb(cur);
		struct me_call_site site = {
			.start = start + off,
			.size = len,
			.pad = pad ? lpstart + pad : 0,
			.action = action,
		};
		int rc;

		if (cur->bad)
			return refuse(why, unreadable);
		/*
		 * The personality routine takes the first match, and stops at the first
		 * range after the address: it needs ranges in ascending order.
		 */
		if (off < end || off > size || len > size - off)
			return refuse(why, "call sites out of order or range");
		end = off + len;
		if (!len)
			continue;
		rc = add_site(lsda, &site, why);
		if (rc)
			return rc;
	}
	return 0;
}

/* Sizes of the tables that reachable actions refer to. */
struct extent {
	uint64_t actions, specs; /* bytes */
	uint64_t nr_types;
	uint32_t steps; /* in all chains so far */
};

/* An exception specification: type filters, ended by a zero. */
static int walk_spec(const struct mp_cursor *specs, int64_t filter, struct extent *extent,
		     const char **why)
{
	struct mp_cursor cur = *specs;
	uint64_t type;

	if (!specs->p)
		return refuse(why, unreadable);
	mp_cursor_skip(&cur, (uint64_t)(-(filter + 1)));
	do {
		type = mp_cursor_uleb(&cur);
		if (cur.bad || type > MAX_TYPES || extent->steps++ > MAX_STEPS)
			return refuse(why, unreadable);
		if (type > extent->nr_types)
			extent->nr_types = type;
	} while (type);
	if ((uint64_t)(cur.p - specs->p) > extent->specs)
		extent->specs = (uint64_t)(cur.p - specs->p);
	return 0;
}

static int walk_action(const struct mp_cursor *actions, uint64_t action,
		       const struct mp_cursor *specs, struct extent *extent, const char **why)
{
	uint64_t at = action - 1;

	while (extent->steps++ < MAX_STEPS) {
		struct mp_cursor cur = *actions;
		int64_t filter, next;
		uint64_t next_at;
		int rc;

		mp_cursor_skip(&cur, at);
		filter = mp_cursor_sleb(&cur);
		next_at = cur.vaddr - actions->vaddr;
		next = mp_cursor_sleb(&cur);
		if (cur.bad || filter > MAX_TYPES)
			return refuse(why, unreadable);
		if (cur.vaddr - actions->vaddr > extent->actions)
			extent->actions = cur.vaddr - actions->vaddr;
		if (filter > 0 && (uint64_t)filter > extent->nr_types)
			extent->nr_types = (uint64_t)filter;
		if (filter < 0) {
			rc = walk_spec(specs, filter, extent, why);
			if (rc)
				return rc;
		}
		if (!next)
			return 0;
		at = next_at + (uint64_t)next;
	}
	return refuse(why, "actions of the LSDA form a cycle");
}

static bool has_dynamic_reloc(const struct mp_elf *elf, uint64_t start, uint64_t end)
{
	uint32_t lo = mp_search(i, 0, elf->nr_dyn_relocs, elf->dyn_relocs[i].vaddr < start);

	return lo < elf->nr_dyn_relocs && elf->dyn_relocs[lo].vaddr < end;
}

static int read_types(const struct mp_elf *elf, uint64_t base, uint64_t nr, struct me_lsda *lsda,
		      const char **why)
{
	unsigned int size = mp_pe_size(lsda->type_enc);
	uint8_t relative = lsda->type_enc & 0x70;

	if (!nr)
		return 0;
	if (lsda->type_enc == MP_EH_PE_OMIT)
		return refuse(why, unreadable);
	if (size < 4 || (relative && relative != MP_EH_PE_PCREL))
		return refuse(why, "LSDA type table in an unknown encoding");
	if (nr > base / size)
		return refuse(why, unreadable);
	if (has_dynamic_reloc(elf, base - nr * size, base) ||
	    (!relative && elf->ehdr.e_type != ET_EXEC))
		return refuse(why,
			      "absolute pointer in LSDA type table needs a dynamic relocation");
	if (nr > lsda->cap_types) {
		uint64_t *types = reallocarray(lsda->types, nr, sizeof(*types));

		if (!types)
			return -ENOMEM;
		lsda->types = types;
		lsda->cap_types = (uint32_t)nr;
	}
	for (uint64_t i = 0; i < nr; i++) {
		struct mp_cursor cur = {.vaddr = base - (i + 1) * size};

		cur.p = mp_elf_bytes(elf, cur.vaddr, size);
		if (!cur.p)
			return refuse(why, unreadable);
		cur.end = cur.p + size;
		lsda->types[i] = mp_cursor_pointer(&cur, lsda->type_enc, 0);
	}
	lsda->nr_types = (uint32_t)nr;
	return 0;
}

static int read_actions(const struct mp_elf *elf, const struct mp_cursor *actions,
			uint64_t type_base, struct me_lsda *lsda, const char **why)
{
	struct mp_cursor specs = {0};
	struct extent extent = {0};
	uint64_t last = 0;
	int rc;

	if (type_base && !mp_eh_cursor_at(elf, type_base, &specs))
		specs = (struct mp_cursor){0};
	for (uint32_t i = 0; i < lsda->nr_sites; i++) {
		uint64_t action = lsda->sites[i].action;

		/* Neighbours often share a chain: do not walk it again. */
		if (!action || action == last)
			continue;
		last = action;
		rc = walk_action(actions, action, &specs, &extent, why);
		if (rc)
			return rc;
	}
	lsda->actions = actions->p;
	lsda->actions_size = extent.actions;
	lsda->specs = specs.p;
	lsda->specs_size = extent.specs;
	return read_types(elf, type_base, extent.nr_types, lsda, why);
}

int me_lsda_read(const struct mp_elf *elf, uint64_t vaddr, uint64_t start, uint64_t size,
		 struct me_lsda *lsda, const char **why)
{
	uint64_t lpstart = start, type_base = 0, table_size;
	struct mp_cursor cur, table;
	int rc;
	uint8_t enc;

	lsda->nr_sites = 0;
	lsda->nr_types = 0;
	lsda->type_enc = MP_EH_PE_OMIT;
	if (!mp_eh_cursor_at(elf, vaddr, &cur))
		return refuse(why, unreadable);
	lsda->base_enc = enc = mp_cursor_u8(&cur);
	lsda->from_start = lsda->baseless = false;
	if ((enc & 0xf0) == MP_EH_PE_FUNCREL) {
		lpstart = start + mp_cursor_pointer(&cur, enc & 0x0f, 0);
	} else if (enc != MP_EH_PE_OMIT) {
		if (enc & (MP_EH_PE_INDIRECT | 0x60))
			return refuse(why, "LSDA with an unknown landing pad base");
		lpstart = mp_cursor_pointer(&cur, enc, 0);
	}
	lsda->type_enc = mp_cursor_u8(&cur);
	if (lsda->type_enc != MP_EH_PE_OMIT) {
		uint64_t off = mp_cursor_uleb(&cur);

		if (cur.bad || off > (uint64_t)(cur.end - cur.p))
			return refuse(why, unreadable);
		type_base = cur.vaddr + off;
	}
	enc = mp_cursor_u8(&cur);
	table_size = mp_cursor_uleb(&cur);
	table = cur;
	mp_cursor_skip(&cur, table_size);
	if (cur.bad)
		return refuse(why, unreadable);
	table.end = cur.p;
	rc = read_sites(&table, enc, start, size, lpstart, lsda, why);
	return rc ? rc : read_actions(elf, &cur, type_base, lsda, why);
}

void me_lsda_fini(struct me_lsda *lsda)
{
	free(lsda->sites);
	free(lsda->types);
	*lsda = (struct me_lsda){0};
}

uint32_t me_lsda_site_at(const struct me_lsda *lsda, uint64_t vaddr)
{
	return mp_search(i, 0, lsda->nr_sites, lsda->sites[i].start + lsda->sites[i].size <= vaddr);
}
