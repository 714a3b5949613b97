// SPDX-License-Identifier: Apache-2.0
/*
 * lsda_put - writes the exception table of a copy.
 *
 * Landing pads may lie in old and in new code, and an offset of 0 means "no pad". So
 * the table has an explicit base below every pad.
 *
 * C++'s routines take a base relative to its own field. Rust's must not get
 * such a base: std of 1.63 adds the address after the field, later versions the
 * field's. All versions of Rust agree on a distance from the FDE's start, but LLVM's
 * C++ routine aborts on that. LLVM's C routine skips any base. So tables of C have none, and
 * numbers of four bytes, which may be negative.
 */
#include <stdlib.h>

#include "editor/unwind/lsda.h"
#include "libprof/elf/eh.h"

static bool put_relative32(struct me_bytes *out, uint64_t out_vaddr, uint64_t target)
{
	int64_t rel = (int64_t)(target - (out_vaddr + out->size));

	me_bytes_u32(out, (uint32_t)rel);
	return rel == (int32_t)rel;
}

static uint64_t pad_base(const struct me_call_site *sites, uint32_t nr)
{
	uint64_t lowest = UINT64_MAX;

	for (uint32_t i = 0; i < nr; i++) {
		if (sites[i].pad && sites[i].pad < lowest)
			lowest = sites[i].pad;
	}
	return lowest == UINT64_MAX ? 0 : lowest - 1;
}

/* Return: false if a landing pad is out of reach, or at the start of a table without base. */
static bool put_fixed_sites(struct me_bytes *out, const struct me_call_site *sites, uint32_t nr,
			    uint64_t start)
{
	bool reach = true;

	for (uint32_t i = 0; i < nr; i++) {
		int64_t pad = sites[i].pad ? (int64_t)(sites[i].pad - start) : 0;

		reach &= pad == (int32_t)pad && (pad || !sites[i].pad);
		me_bytes_u32(out, (uint32_t)(sites[i].start - start));
		me_bytes_u32(out, (uint32_t)sites[i].size);
		me_bytes_u32(out, (uint32_t)pad);
		me_bytes_uleb(out, sites[i].action);
	}
	return reach;
}

static void put_sites(struct me_bytes *out, const struct me_call_site *sites, uint32_t nr,
		      uint64_t start, uint64_t lpstart)
{
	for (uint32_t i = 0; i < nr; i++) {
		me_bytes_uleb(out, sites[i].start - start);
		me_bytes_uleb(out, sites[i].size);
		me_bytes_uleb(out, sites[i].pad ? sites[i].pad - lpstart : 0);
		me_bytes_uleb(out, sites[i].action);
	}
}

static bool any_action(const struct me_call_site *sites, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (sites[i].action)
			return true;
	}
	return false;
}

/*
 * The distance from the end of its own field to the end of the types. It depends on its
 * own width, since the padding before the types does.
 */
static uint64_t type_offset(size_t at, size_t between, size_t types_size, unsigned int *width,
			    size_t *padding)
{
	for (*width = 1;; ++*width) {
		size_t types_at = at + *width + between;
		uint64_t off;

		*padding = -types_at & 3;
		off = between + *padding + types_size;
		if (me_uleb_size(off) <= *width)
			return off;
	}
}

static bool put_types(struct me_bytes *out, uint64_t out_vaddr, const struct me_lsda *lsda)
{
	unsigned int size = mp_pe_size(lsda->type_enc);
	bool relative = (lsda->type_enc & 0x70) == MP_EH_PE_PCREL;
	bool reach = true;

	for (uint32_t i = lsda->nr_types; i-- > 0;) {
		uint64_t v = lsda->types[i];

		if (v && relative)
			v -= out_vaddr + out->size;
		if (size == 8) {
			me_bytes_u64(out, v);
			continue;
		}
		me_bytes_u32(out, (uint32_t)v);
		if (relative && (int64_t)v != (int32_t)v)
			reach = false;
	}
	return reach;
}

bool me_lsda_put(struct me_bytes *out, uint64_t out_vaddr, const struct me_lsda *lsda,
		 const struct me_call_site *sites, uint32_t nr_sites, uint64_t start)
{
	uint64_t lpstart = lsda->baseless ? 0 : pad_base(sites, nr_sites), off;
	bool actions = any_action(sites, nr_sites), types, reach = true;
	struct me_bytes table = {0};
	unsigned int width;
	size_t padding;

	if (lsda->baseless)
		reach = put_fixed_sites(&table, sites, nr_sites, start);
	else
		put_sites(&table, sites, nr_sites, start, lpstart);
	me_bytes_align(out, 4);
	if (lpstart && lsda->from_start) {
		int64_t rel = (int64_t)(lpstart - start);

		me_bytes_u8(out, MP_EH_PE_FUNCREL | MP_EH_PE_SDATA4);
		me_bytes_u32(out, (uint32_t)rel);
		reach = rel == (int32_t)rel;
	} else if (lpstart) {
		me_bytes_u8(out, MP_EH_PE_PCREL | MP_EH_PE_SDATA4);
		reach = put_relative32(out, out_vaddr, lpstart);
	} else {
		me_bytes_u8(out, MP_EH_PE_OMIT);
	}
	types = actions && lsda->type_enc != MP_EH_PE_OMIT;
	me_bytes_u8(out, types ? lsda->type_enc : MP_EH_PE_OMIT);
	off = 0;
	padding = 0;
	if (types) {
		off = type_offset(out->size,
				  1 + me_uleb_size(table.size) + table.size + lsda->actions_size,
				  lsda->nr_types * (size_t)mp_pe_size(lsda->type_enc), &width,
				  &padding);
		me_bytes_uleb_padded(out, off, width);
	}
	me_bytes_u8(out, lsda->baseless ? MP_EH_PE_SDATA4 : MP_EH_PE_ULEB128);
	me_bytes_uleb(out, table.size);
	me_bytes_put(out, table.data, table.size);
	if (actions)
		me_bytes_put(out, lsda->actions, lsda->actions_size);
	if (types) {
		for (size_t i = 0; i < padding; i++)
			me_bytes_u8(out, 0);
		if (!put_types(out, out_vaddr, lsda))
			reach = false;
		me_bytes_put(out, lsda->specs, lsda->specs_size);
	}
	if (table.failed)
		out->failed = true;
	me_bytes_fini(&table);
	return reach;
}
