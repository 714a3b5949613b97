// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_private - debug information of one object while it is rewritten. Only files of this
 * folder include this header. The steps, in their order:
 *
 *   object_debug         sections; object_debug_relocs: relocations
 *   object_debug_code    where old code is now
 *   object_debug_line    line programs; object_debug_line_put writes them
 *   object_debug_unit    units and tables of abbreviations
 *   object_debug_entry   entries of .debug_info
 *   object_debug_lists   lists of ranges and locations; object_debug_lists_put writes them
 *   object_debug_index   .debug_addr and .debug_aranges
 *
 * No entry of .debug_info changes its size, so no offset into it changes. Lines, lists and
 * abbreviations are written anew.
 */
#ifndef ME_OBJECT_DEBUG_PRIVATE_H
#define ME_OBJECT_DEBUG_PRIVATE_H

#include <dwarf.h>
#include <errno.h>

#include "editor/base/bytes.h"
#include "editor/debug/read/debug_abbrev.h"
#include "editor/debug/read/debug_form.h"
#include "editor/debug/read/debug_header.h"
#include "editor/debug/read/debug_list.h"
#include "editor/object/object_private.h"

/* Code of the output that stands for a range of old code. */
struct me_ointerval {
	uint32_t out, start, end;
	uint32_t first_item, last_item;
};

struct me_ointervals {
	struct me_ointerval *list;
	uint32_t nr, cap;
};

/* Something that stood at @old of its section and stands at @new now. */
struct me_oshift {
	uint64_t old, new;
};

struct me_oshifts {
	struct me_oshift *list; /* ascending */
	uint32_t nr, cap;
};

/* A table of abbreviations. */
struct me_otable {
	struct me_abbrevs abbrevs;
	unsigned int version;
};

/* A unit of .debug_info or .debug_types. */
struct me_ounit {
	uint32_t section;
	uint64_t off, first, end; /* @first: of the first entry */
	unsigned int version;
	uint32_t table;
	struct me_addr base; /* from which its lists count */
	uint64_t addr_base, rnglists_base, loclists_base;
	bool has_rnglists_base, has_loclists_base;
};

enum me_olists_kind {
	ME_OLISTS_RANGES,   /* .debug_ranges */
	ME_OLISTS_LOC,	    /* .debug_loc */
	ME_OLISTS_RNGLISTS, /* .debug_rnglists */
	ME_OLISTS_LOCLISTS, /* .debug_loclists */
	ME_OLISTS_NR
};

/* A section of lists. */
struct me_olists {
	uint32_t section; /* of the original; 0: none */
	uint32_t symbol;  /* in the output; 0: none */
	struct me_bytes bytes, relocs;
	/* DWARF 5: the contribution of the current unit. @header: where it begins; table: offsets of
	 * lists that entries name by number. */
	bool open;
	size_t header, table;
	uint32_t nr_table;
};

/* Units use an address of .debug_addr for one of these places, or for both. */
enum me_ouse {
	ME_OUSE_START = 1 << 0,	 /* the place of an instruction */
	ME_OUSE_BEHIND = 1 << 1, /* the place behind one */
};

struct me_odebug {
	struct me_object *o;
	struct mp_err *err;
	uint32_t line, abbrev, addr, aranges; /* sections; 0: none */
	struct me_olists lists[ME_OLISTS_NR];
	struct me_oshifts lines, tables; /* of programs and of abbreviations */
	/* Items by the instruction that they stand for: items[first[i] .. first[i + 1]). */
	uint32_t *first_owned, *owned;
	uint8_t *reached;		/* per item: control may come there */
	struct me_ointervals now, more; /* scratch */
	struct me_otable *abbrevs;
	uint32_t nr_abbrevs, cap_abbrevs;
	struct me_ounit *units;
	uint32_t nr_units, cap_units;
	uint8_t *uses; /* per byte of .debug_addr: enum me_ouse of the entry that begins there */
};

/* Refuses the object. @why follows "its debug information". Return: -EPERM. */
static inline int me_odebug_refuse(const struct me_odebug *d, const char *why)
{
	return mp_err_set(d->err, EPERM, "its debug information %s", why);
}

static inline int me_odebug_no_memory(const struct me_odebug *d)
{
	return mp_err_set(d->err, ENOMEM, "out of memory");
}

/* ---- object_debug_relocs.c ---- */
/* The relocation at @off of a section; NULL: none. */
const Elf64_Rela *me_odebug_reloc_at(const struct me_odebug *d, uint32_t section, uint64_t off);
/* Return: the value of the field of @size bytes at @off: a place if it is relocated, else a number. */
struct me_addr me_odebug_field(const struct me_odebug *d, uint32_t section, uint64_t off,
			       unsigned int size);
/* Is the place in code that moves? */
bool me_odebug_moves(const struct me_odebug *d, struct me_addr addr);
/*
 * me_odebug_put_relocs - append the relocations of [from, to) of @section, as they are now, @by bytes further. Those
 * that lead to code need @in_expr: they are in an expression. Return: 0, -EPERM.
 */
int me_odebug_put_relocs(struct me_odebug *d, uint32_t section, uint64_t from, uint64_t to,
			 int64_t by, bool in_expr, struct me_bytes *relocs);
/* The field at @off gets an address of code of the output, or another symbol with an addend. */
void me_odebug_put_reloc(struct me_bytes *relocs, uint64_t off, uint32_t symbol, uint32_t type,
			 uint64_t addend);
/* Return: false: there is no memory. */
bool me_odebug_add_shift(struct me_oshifts *shifts, uint64_t old, uint64_t new);
/* Number of relocations of the section in [from, to). */
uint32_t me_odebug_nr_relocs(const struct me_odebug *d, uint32_t section, uint64_t from,
			     uint64_t to);
static inline const struct mp_relobj_section *me_odebug_section(const struct me_odebug *d,
								uint32_t section)
{
	return &d->o->in->sections[section];
}

/* ---- object_debug_code.c ---- */
int me_odebug_code(struct me_odebug *d);
/* me_odebug_map - append where the old code [start, end) of a section is now. Return: 0, -ENOMEM, -EPERM. */
int me_odebug_map(struct me_odebug *d, uint32_t section, uint64_t start, uint64_t end,
		  struct me_ointervals *out);
/*
 * me_odebug_place - where the instruction at @addr is now (@use ME_OUSE_START), or what stands
 * behind the instruction that ends there. Return: false: there is no such instruction.
 */
bool me_odebug_place(const struct me_odebug *d, struct me_addr addr, enum me_ouse use,
		     uint32_t *out, uint32_t *off);

/* ---- object_debug_line.c ---- */
int me_odebug_lines(struct me_odebug *d);

/* ---- object_debug_unit.c ---- */
int me_odebug_units(struct me_odebug *d);
/* Writes .debug_abbrev. */
int me_odebug_put_abbrevs(struct me_odebug *d);
/* The address @v, of a unit's entry. Return: 0, -EPERM. */
int me_odebug_address(struct me_odebug *d, const struct me_ounit *unit, const struct me_value *v,
		      struct me_addr *out);
/* The address that has number @index. *@at: where it stands in .debug_addr. */
int me_odebug_indexed(struct me_odebug *d, const struct me_ounit *unit, uint64_t index,
		      struct me_addr *out, uint64_t *at);

/* ---- object_debug_entry.c ---- */
/* Finds the entries whose code is in several ranges now. */
int me_odebug_find_split(struct me_odebug *d);
/* Writes .debug_info and .debug_types, and all lists. */
int me_odebug_entries(struct me_odebug *d);

/* ---- object_debug_lists.c ---- */
struct me_oentry {
	uint32_t section; /* of the code; 0: it stands for code that is not in the object */
	uint64_t start, end;
	uint64_t expr, expr_size; /* of locations: the expression, in the section of the list */
	bool anywhere;		  /* DW_LLE_default_location */
	bool entry;		  /* readers take the start of the first range for the entry */
};

struct me_olist {
	struct me_oentry *entries;
	uint32_t nr, cap;
};

/* Puts the new ranges of the code of @e into @out, which is empty before. In object_debug_code.c. */
int me_odebug_map_entry(struct me_odebug *d, const struct me_oentry *e, struct me_ointervals *out);
/* Reads the list at @off of the section of @kind. Return: 0, -ENOMEM, -EPERM. */
int me_odebug_read_list(struct me_odebug *d, const struct me_ounit *unit, enum me_olists_kind kind,
			uint64_t off, struct me_olist *out);
/* The offset of list number @index. */
int me_odebug_list_off(struct me_odebug *d, const struct me_ounit *unit, enum me_olists_kind kind,
		       uint64_t index, uint64_t *off);

/* ---- object_debug_lists_put.c ---- */
/* The section that has lists of the unit. */
enum me_olists_kind me_odebug_kind(const struct me_ounit *unit, bool locations);
/* Writes the list; *@off: where it stands now. */
int me_odebug_put_list(struct me_odebug *d, const struct me_ounit *unit, enum me_olists_kind kind,
		       const struct me_olist *list, uint64_t *off);
/* Sets the offset of list number @index of the unit. */
int me_odebug_number_list(struct me_odebug *d, const struct me_ounit *unit,
			  enum me_olists_kind kind, uint64_t index, uint64_t off);
/* Begins the contribution of the unit, if none is open. */
int me_odebug_open_lists(struct me_odebug *d, const struct me_ounit *unit,
			 enum me_olists_kind kind);
void me_odebug_close_lists(struct me_odebug *d);

/* ---- object_debug_index.c ---- */
int me_odebug_addrs(struct me_odebug *d);
int me_odebug_aranges(struct me_odebug *d);

#endif
