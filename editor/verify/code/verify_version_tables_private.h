// SPDX-License-Identifier: Apache-2.0
/*
 * verify_version_tables_private - what verify_version_tables and verify_table_flow share: the jump
 * tables of one audited function.
 */
#ifndef ME_VERIFY_VERSION_TABLES_PRIVATE_H
#define ME_VERIFY_VERSION_TABLES_PRIVATE_H

#include "editor/verify/base/verify_context.h"

/* Functions with more tables, or more operands that name them, are not proved. */
#define VF_MAX_VERSION_TABLES 64
#define VF_MAX_VERSION_REFS   64

/* A table of the original that is proved to hold labels only. */
struct vf_version_table {
	uint64_t start, end;
	uint8_t size;			 /* of an entry: 8: addresses; 4: offsets from @start */
	uint64_t now[MP_AUDIT_NR_CODES]; /* per version: the table that its operands name */
};

struct vf_version_tables {
	uint32_t function; /* index in the table of audited functions */
	struct vf_version_table table[VF_MAX_VERSION_TABLES];
	uint32_t nr_tables;
	uint64_t ref[VF_MAX_VERSION_REFS]; /* instructions of the original that name a table */
	uint32_t nr_refs;
};

/* Return: the label in entry @at of the table, as @elf has it. 0: cannot be read. */
uint64_t vf_version_entry(const struct mp_elf *elf, uint64_t at, uint64_t start, uint8_t size);
/*
 * vf_table_flow - answers two questions for one version. Do the addresses of these tables serve
 * only to jump through the tables? Does each indirect jump without a stub before it jump through
 * one of them? Return: 1: yes; 0: this is not proved; -ENOMEM.
 */
int vf_table_flow(const struct vf *vf, const struct vf_version_tables *tables, uint8_t version);

#endif
