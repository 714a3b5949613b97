// SPDX-License-Identifier: Apache-2.0
/*
 * verify_odebug_private - debug information of two objects while it is compared. Only files of this folder include
 * this header. Numbers are checked where they are read, since both files may be hostile.
 */
#ifndef VERIFY_ODEBUG_PRIVATE_H
#define VERIFY_ODEBUG_PRIVATE_H

#include <dwarf.h>

#include "editor/verify/dwarf/verify_dwarf.h"
#include "editor/verify/object/verify_object_private.h"

/* Attributes of the new object that readers skip: former view numbers. */
#define OD_LOCVIEWS   0x2d4e
#define OD_ENTRY_VIEW 0x2d4f

/* A range of code, and the expression that holds there. */
struct od_range {
	uint32_t section;
	uint64_t start, end;
	uint64_t expr, expr_size; /* in the section of the list */
	bool anywhere;
};

struct od_list {
	struct od_range *list;
	uint32_t nr, cap;
	uint32_t section; /* that holds the expressions */
	bool sorted;	  /* by section and start, and no two overlap */
	uint32_t near;	  /* if sorted: the range that was found last */
};

struct od_unit {
	uint32_t section;
	struct vd_unit u;
	bool has_table; /* its abbreviations are read: those of an earlier unit, perhaps */
	struct vd_addr base;
};

struct od_row {
	uint32_t section, program;
	bool end; /* of a sequence: what follows has no line */
	struct vd_row row;
};

struct od_side {
	struct vo_side *side;
	uint32_t line, abbrev, addr, ranges, rnglists, loc, loclists,
		aranges;     /* sections; 0: none */
	struct od_row *rows; /* of code, by place; a row that ends a sequence stands before others */
	uint32_t nr_rows, cap_rows;
	uint64_t *programs; /* offsets of line programs */
	uint32_t nr_programs, cap_programs;
	struct od_unit unit;
};

/* An instruction that both objects have. */
struct od_pair {
	struct vo_place old, new;
	uint8_t old_len, new_len;
};

struct od {
	struct vo *vo;
	struct od_side old, new;
	struct od_pair *by_old, *by_new;
	uint32_t nr_pairs;
	struct vd_work work;
	const char *why;		   /* an entry differs */
	struct od_list was, now;	   /* locations of the value at hand */
	struct od_list code_was, code_now; /* code of the entry at hand */
	/* The last two expressions that were found to be the same. */
	struct od_pair same;
	uint64_t same_size;
};

/* ---- verify_odebug_fields.c ---- */
static inline int od_refuse(struct od *od, const struct od_side *side, uint32_t section,
			    uint64_t off, const char *why)
{
	return vo_refuse(od->vo, side->side, section, off, od->work.left ? why : VD_TOO_LONG);
}

struct vf_cursor od_cursor_at(const struct od_side *side, uint32_t section, uint64_t off);
/* The offset in the section of a byte of it. */
uint64_t od_offset(const struct od_side *side, uint32_t section, const uint8_t *p);
/* The field of @size bytes at @off: what its relocation leads to, or its number. */
struct vd_addr od_field(const struct od_side *side, uint32_t section, uint64_t off,
			unsigned int size);
/* ---- verify_odebug_pairs.c ---- */
/*
 * od_same_bytes - are both fields of @size bytes the same, with the same relocations? Those to code
 * must lead to a pair, those to line programs to the same one.
 */
bool od_same_bytes(struct od *od, struct vo_place old, struct vo_place new, uint64_t size);
int od_pairs(struct od *od);
/* May the new place stand for the old one? @behind: both are the ends of instructions. */
bool od_is_pair(struct od *od, struct vo_place old, struct vo_place new, bool behind);
bool od_add_range(struct od_list *list, const struct od_range *range);
/* Does the same hold in both lists at each pair of instructions, at their first and last bytes? */
bool od_same_lists(struct od *od, struct od_list *old, struct od_list *new);

/* ---- verify_odebug_line.c ---- */
int od_lines(struct od *od);

/* ---- verify_odebug_lists.c ---- */
/* Reads the list at @off. Return: 0, -ENOMEM, -EPERM. */
int od_read_list(struct od *od, struct od_side *side, bool locations, uint64_t off,
		 struct od_list *out);
/* The address with number @index. */
bool od_indexed(const struct od_side *side, uint64_t index, struct vd_addr *out);

/* ---- verify_odebug_unit.c ---- */
/* Reads the header at @off, the abbreviations, and the bases. Return: 0, -ENOMEM, -EPERM. */
int od_unit(struct od *od, struct od_side *side, uint32_t section, uint64_t off);

/* ---- verify_odebug_entry.c ---- */
/* Compares all entries of a section. */
int od_entries(struct od *od, uint32_t section);

#endif
