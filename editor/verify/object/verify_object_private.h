// SPDX-License-Identifier: Apache-2.0
/* verify_object_private - two objects while they are compared. */
#ifndef ME_VERIFY_OBJECT_PRIVATE_H
#define ME_VERIFY_OBJECT_PRIVATE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/object/verify_object.h"
#include "editor/verify/read/verify_cfi.h"
#include "libprof/elf/relobj.h"

/* Newer than some <elf.h>. */
#define VO_SHT_ADDRSIG		  0x6fff4c03
#define VO_SHT_CALL_GRAPH_PROFILE 0x6fff4c09

struct vo_place {
	uint32_t section, off;
};

/* One row of an exception table. */
struct vo_row {
	uint64_t start, end; /* from the start of the FDE */
	uint64_t pad;	     /* from @base; 0: none */
	uint64_t action;
};

struct vo_table {
	uint32_t section;
	struct vo_place base; /* of landing pads */
	struct vo_row *rows;
	uint32_t nr, cap;
	uint8_t type_enc;
	uint64_t actions, types_end; /* offsets in the section */
};

struct vo_fde {
	struct vo_place start;
	uint32_t size;
	uint32_t cie_off, lsda; /* offset of the CIE; relocation of the table + 1, or 0 */
	uint32_t lsda_type;	/* that relocation's */
	struct vf_fde fde;
	struct vf_rows rows;
	bool built;
	bool loose; /* of the new object: its program has forms that unwinders may read differently */
	bool computes_jump, takes_label; /* of the original */
	/* In the new object: the function whose instructions all wait to be compared with its own. */
	const struct vo_fde *whole_of;
	struct vo_table table;
	bool table_read, table_known;
};

/* What `lea' loads from data; if a table begins there, its entries up to the next base. */
struct vo_base {
	struct vo_place at;
	uint32_t entries;
};

struct vo_side {
	bool no_memory; /* what was read is not all: the verdict does not count */
	const struct mp_relobj *obj;
	uint32_t eh_frame; /* section, or 0 */
	struct vf_eh eh;   /* CIEs only */
	struct vo_fde *fdes;
	uint32_t nr_fdes, cap_fdes;
	bool ends;	 /* .eh_frame ends in a word of zero */
	uint32_t *group; /* per section: its group, or 0 */
	struct vo_base *bases;
	uint32_t nr_bases, cap_bases;
};

struct vo_pair {
	struct vo_place old, new;
};

/* A set of pairs; a pair without a place in @new is a key. */
struct vo_set {
	struct vo_pair *slots;
	uint32_t nr, room;
};

/* An instruction of both objects that was compared. */
struct vo_compared {
	struct vo_place old, new;
	uint8_t old_len, new_len;
};

struct vo {
	struct vo_side old, new;
	struct vo_set seen;
	uint64_t nr_passed,
		code_size; /* places that were passed over; bytes of both objects' code */
	struct vo_set values, origins; /* old address -> new one, and back */
	struct vo_set ends;	       /* where functions of the original end by their symbols */
	uint32_t *counterpart;	       /* per symbol of the original: that of the new object */
	bool *unchanged; /* per section of the original: code whose bytes and fields are there */
	struct vo_pair *todo;
	uint32_t nr_todo, cap_todo;
	struct vo_compared *compared;
	uint32_t nr_compared, cap_compared;
	struct me_verify_object_report count;
	struct mp_err *err;
};

/* The target of a field that is relocated or resolved. */
struct vo_ref {
	bool code;
	struct vo_place place;	 /* if @code */
	const Elf64_Rela *reloc; /* if not */
};

static inline int vo_refuse(struct vo *vo, const struct vo_side *side, uint32_t section,
			    uint64_t off, const char *why)
{
	return mp_err_set(vo->err, EPERM, "%s %s+%#llx: %s", side == &vo->new ? "new" : "old",
			  side->obj->sections[section].name, (unsigned long long)off, why);
}

/* Reads .eh_frame. Return: 0, -EPERM, -ENOMEM. */
int vo_frame_read(struct vo *vo, struct vo_side *side);
void vo_frame_fini(struct vo_side *side);
/* The FDE that covers @place, or NULL. */
struct vo_fde *vo_frame_at(const struct vo_side *side, struct vo_place place);
/* Compares the unwind rows of two places. Return: 0, -EPERM, -ENOMEM. */
int vo_rows_same(struct vo *vo, struct vo_place old, struct vo_place new, bool *same);
/* Are both FDEs' CIEs, and what they refer to, the same? */
bool vo_cies_same(struct vo *vo, const struct vo_fde *old, const struct vo_fde *new);

/* One instruction, at offset @at of its section. */
struct vo_insn {
	uint64_t at;
	uint8_t len, kind, cc; /* @kind: enum vf_kind */
	bool bnd, nop, breakpoint;
	bool rip_relative; /* the displacement is that of an operand in memory */
	uint8_t disp_off,
		disp_size;    /* displacement of a branch, or of such an operand; 0 size: none */
	uint8_t mem_disp_off; /* another disp32 of an operand in memory; 0: none */
	uint8_t imm_off, imm_size; /* 0 size: none */
	uint64_t target;	   /* of the displacement */
};

/* Return: false: the bytes are no instruction that verify knows. */
bool vo_decode(const uint8_t *bytes, size_t avail, uint64_t at, struct vo_insn *insn);

/* Bytes that a linker may change for the relocation. */
uint32_t vo_reloc_size(const Elf64_Rela *reloc);
/* Does a relocation change one of the bytes [from, to) of the section? */
bool vo_relocated(const struct mp_relobj_section *s, uint64_t from, uint64_t to);
/* Is the changed part of the instruction at @off one of its fields, as a whole? */
bool vo_fills_field(const struct vo_insn *insn, const Elf64_Rela *reloc, uint64_t off);
/* No byte is changed by two relocations. Return: 0, -EPERM. */
int vo_relocs_apart(struct vo *vo, const struct vo_side *side);
/* Finds code that is as it was, and compares its references. Return: 0, -EPERM, -ENOMEM. */
int vo_unchanged(struct vo *vo);

/* @bias: distance from the field to its instruction's end, or minus the distance from a table's
 * base. */
struct vo_ref vo_ref_of(const struct vo_side *side, const Elf64_Rela *reloc, int64_t bias);
/* Do two relocations that do not lead to places in code say the same? */
bool vo_same_symbol(const struct vo *vo, const Elf64_Rela *old, const Elf64_Rela *new);
/* Distance of a table's entry from the table's base. Return: false: it is no entry. */
bool vo_table_distance(const struct vo_side *side, uint32_t section, const Elf64_Rela *reloc,
		       int64_t *distance);
/* Decodes all code of the original once: finds bases of tables, and marks FDEs. */
int vo_scan(struct vo *vo);

/* Is the exception table of @fde of the usual form? */
bool vo_table_known(struct vo_side *side, struct vo_fde *fde);
/* Do both FDEs refer to the old table? */
bool vo_same_table(const struct vo *vo, const struct vo_fde *old, const struct vo_fde *new);
/* Must the function of the original keep all distances? */
bool vo_whole(struct vo *vo, struct vo_fde *fde);
/* Compares what happens to exceptions in two instructions of @len bytes. */
int vo_tables_same(struct vo *vo, struct vo_place old, struct vo_place new, uint32_t len);
/* Was this section's data continued behind its old end, by exception tables? */
bool vo_has_tables(const struct vo_side *side, uint32_t section);

static inline bool vo_same_place(struct vo_place a, struct vo_place b)
{
	return a.section == b.section && a.off == b.off;
}

/* Does the instruction's field hold a distance to code? */
static inline bool vo_branches(const struct vo_insn *insn)
{
	return insn->kind == VF_JCC || insn->kind == VF_JMP || insn->kind == VF_ODD ||
	       insn->kind == VF_CALL;
}

/* Notes that a function of the original ends at @end. Return: 0, -ENOMEM. */
int vo_add_end(struct vo *vo, struct vo_place end);
/* @old must become @new; @value: as an address that programs may keep and compare. */
int vo_expect(struct vo *vo, struct vo_place old, struct vo_place new, bool value);
/* Compares code until nothing waits. */
int vo_walk(struct vo *vo);
/* Passes over jumps inside of the object, and no-ops. */
void vo_pass(struct vo *vo, const struct vo_side *side, struct vo_place *place);

/* Is it a section of debug information? */
bool vo_is_debug(const struct mp_relobj_section *s);
/* Compares what debug information says of all code that was compared. Return: 0, -EPERM, -ENOMEM. */
int vo_debug(struct vo *vo);

#endif
