// SPDX-License-Identifier: Apache-2.0
/*
 * debug_abbrev - a table of .debug_abbrev. Decides how an entry's single range becomes
 * a list of ranges without changing the entry's size in .debug_info. Called by debug_unit.
 *
 * The bytes of DW_AT_low_pc and DW_AT_high_pc become those of DW_AT_ranges, an offset
 * of 4 bytes. A filler attribute, a block with an unused vendor number, covers the rest.
 */
#ifndef ME_DEBUG_ABBREV_H
#define ME_DEBUG_ABBREV_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/base/bytes.h"

#define ME_NO_ATTR UINT32_MAX

struct me_abbrev_attr {
	uint16_t name, form; /* DW_AT_*, DW_FORM_* */
};

/* How DW_AT_low_pc and DW_AT_high_pc are replaced. */
enum me_abbrev_change {
	ME_ABBREV_NONE,	     /* not at all: they are missing, or too small for a list's offset */
	ME_ABBREV_BOTH,	     /* both together by ranges and filler */
	ME_ABBREV_HIGH_ONLY, /* low_pc stays as the base of lists; high_pc: ranges, filler */
	ME_ABBREV_ENTRY_PC,  /* low_pc becomes entry_pc; high_pc: ranges, filler */
};

struct me_abbrev {
	uint64_t code;
	uint16_t tag;
	uint32_t first_attr, nr_attrs; /* index and number in the table's attrs */
	uint32_t low, high;	       /* indexes of attributes; ME_NO_ATTR: none */
	int size;		       /* bytes of an entry's values; < 0: not fixed */
	bool plain;		       /* none of its attributes is of interest here */
	bool children;
	const uint8_t *bytes, *end; /* of the declaration */
	/* For the current unit: */
	enum me_abbrev_change change;
	bool used, touched; /* touched: one of its entries has a single range, which moved */
	uint64_t new_code;  /* of entries that get a list; 0: @code, so all entries get one */
};

struct me_abbrevs {
	struct me_abbrev *abbrevs; /* sorted by code */
	uint32_t nr, cap;
	struct me_abbrev_attr *attrs;
	uint32_t nr_attrs, cap_attrs;
	uint64_t off;
};

/*
 * me_abbrevs_read - read the table at @off. Return: 0, -ENOMEM, -EBADMSG. Ownership:
 * me_abbrevs_fini(@out).
 */
int me_abbrevs_read(const uint8_t *data, uint64_t size, uint64_t off, unsigned int version,
		    struct me_abbrevs *out);
void me_abbrevs_fini(struct me_abbrevs *table);
/* Return: the abbreviation of @code; NULL if there is none. */
struct me_abbrev *me_abbrevs_find(struct me_abbrevs *table, uint64_t code);

/* me_abbrev_constant - the value of attribute @i in the declaration (DW_FORM_implicit_const), as signed LEB128. */
struct mp_cursor me_abbrev_constant(const struct me_abbrev *abbrev, uint32_t i);
/* me_abbrevs_begin - start a unit of @version: set each @change anew, clear @used and @touched. */
void me_abbrevs_begin(struct me_abbrevs *table, unsigned int version);
/*
 * me_abbrev_choose_own - choose how the range of the unit's own entry is replaced, once the used
 * abbreviations are known. The entry's low_pc must stay if lists may count from it. In a unit
 * without lists (of an assembler, say) low_pc may be replaced.
 */
void me_abbrev_choose_own(const struct me_abbrevs *table, struct me_abbrev *abbrev,
			  unsigned int version);
/*
 * me_abbrevs_choose - give each touched abbreviation a new code of the same length, if
 * one is free.
 */
void me_abbrevs_choose(struct me_abbrevs *table);
/* me_abbrevs_write - write the declarations that the unit uses, including new ones. */
void me_abbrevs_write(const struct me_abbrevs *table, unsigned int version, struct me_bytes *out);

/* me_abbrev_write - write one declaration, as entries of the extended unit use it. */
void me_abbrev_write(const struct me_abbrevs *table, const struct me_abbrev *abbrev,
		     unsigned int version, struct me_bytes *out);
/*
 * me_abbrev_declare - write the declaration with another code. @listed: entries have lists in place of one range.
 * @no_views: view numbers of locations and entries become attributes that no reader knows.
 */
void me_abbrev_declare(const struct me_abbrevs *table, const struct me_abbrev *abbrev,
		       unsigned int version, uint64_t code, bool listed, bool no_views,
		       struct me_bytes *out);
/* me_abbrevs_free_code - the first code that neither the table nor a changed entry uses. */
uint64_t me_abbrevs_free_code(const struct me_abbrevs *table);

/* me_abbrev_fill - write the list's offset @off and filler into the @size bytes at @field. */
void me_abbrev_fill(uint8_t *field, uint64_t size, uint32_t off);

#endif
