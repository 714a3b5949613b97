// SPDX-License-Identifier: Apache-2.0
/*
 * version_tables - gives each version of an audited function its own copy of each jump table,
 * except version B. The original's table leads to version B, as the table of any moved function
 * leads to its copies.
 *
 * The versions have the same instructions. In all but B, the operands that name the table are
 * changed to name the version's copy of the table, whose entries lead to blocks of this version.
 * Called by versions and emit.
 */
#ifndef ME_VERSION_TABLES_H
#define ME_VERSION_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "editor/place/place.h"
#include "libprof/cfg/cfg.h"

struct me_version_table {
	uint32_t table;	     /* of the cfg */
	uint32_t nr_entries; /* at least those that the cfg knows */
	uint64_t now;	     /* address of the copy */
	uint8_t version;     /* enum me_version */
};

/* An operand of a function with such a table. */
struct me_version_ref {
	uint64_t insn_vaddr;
	uint32_t table;	   /* index in @tables of the first version's copy; the others' follow */
	uint8_t field_off; /* offset of the 4-byte field in the instruction */
	bool rip_relative; /* false: absolute 32-bit address */
};

struct me_version_tables {
	struct me_version_table *tables; /* ascending @now */
	uint32_t nr_tables;
	struct me_version_ref *refs; /* ascending @insn_vaddr */
	uint32_t nr_refs;
	uint64_t vaddr, size; /* of all copies */
};

/* Why versions cannot have a copy of the table that the block jumps through. NULL: it can. */
const char *me_version_tables_why_not(const struct mp_cfg *cfg, uint32_t block);
/*
 * me_version_tables_find - the tables of all functions with two versions, to lie at @vaddr.
 * Return: 0, -ENOMEM. Ownership: me_version_tables_fini(@out).
 */
int me_version_tables_find(const struct mp_cfg *cfg, const struct me_placement *placement,
			   uint64_t vaddr, struct me_version_tables *out, struct mp_err *err);
/*
 * me_version_tables_write - writes the copies of tables, and makes operands of versions name them.
 * @segment: the bytes from address @start on, with the copied code.
 * Return: 0, -ERANGE out of reach, -EBADMSG.
 */
int me_version_tables_write(const struct mp_cfg *cfg, const struct me_placement *placement,
			    const struct me_version_tables *tables, uint64_t start,
			    uint8_t *segment, struct mp_err *err);
void me_version_tables_fini(struct me_version_tables *tables);

#endif
