// SPDX-License-Identifier: Apache-2.0
/*
 * debug_abbrev - a table of .debug_abbrev, and how an entry's one range becomes a list of ranges
 * without a change of its size in .debug_info.
 *
 * The bytes of DW_AT_low_pc and DW_AT_high_pc become those of DW_AT_ranges, an offset of 4 bytes;
 * the rest is covered by an attribute of a vendor that nobody knows, a block.
 */
#ifndef ME_DEBUG_ABBREV_H
#define ME_DEBUG_ABBREV_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/bytes.h"

#define ME_NO_ATTR UINT32_MAX

struct me_abbrev_attr {
	uint16_t name, form; /* DW_AT_*, DW_FORM_* */
};

/* What becomes of DW_AT_low_pc and DW_AT_high_pc. */
enum me_abbrev_way {
	ME_ABBREV_NO_WAY, /* there are none, or no list's offset fits in their place */
	ME_ABBREV_JOINT,  /* both together: ranges, filler */
	ME_ABBREV_KEEP,	  /* low_pc stays, a base for others; high_pc: ranges, filler */
	ME_ABBREV_ENTRY,  /* low_pc becomes entry_pc; high_pc: ranges, filler */
};

struct me_abbrev {
	uint64_t code;
	uint16_t tag;
	uint32_t first_attr, nr_attrs; /* in the table's attrs */
	uint32_t low, high;	       /* indexes of attributes; ME_NO_ATTR: none */
	int size;		       /* of an entry's values; < 0: they vary */
	bool plain;		       /* of all its attributes, none is of interest */
	const uint8_t *bytes, *end;    /* of the declaration */
	/* Of the unit at hand. */
	enum me_abbrev_way way;
	bool used, touched; /* touched: an entry by it has one range, and that moved */
	uint64_t new_code;  /* of those that become lists; 0: all become that, by the same code */
};

struct me_abbrevs {
	struct me_abbrev *abbrevs; /* by code */
	uint32_t nr;
	struct me_abbrev_attr *attrs;
	uint32_t nr_attrs;
	uint64_t off;
};

/* Return: 0, -ENOMEM, -EBADMSG. Ownership: me_abbrevs_fini(@out). */
int me_abbrevs_read(const uint8_t *data, uint64_t size, uint64_t off, unsigned int version,
		    struct me_abbrevs *out);
void me_abbrevs_fini(struct me_abbrevs *table);
struct me_abbrev *me_abbrevs_find(struct me_abbrevs *table, uint64_t code);

/* Forget the unit before; @version is the new one's. */
void me_abbrevs_begin(struct me_abbrevs *table, unsigned int version);
/*
 * The first entry's, a unit's, when what it uses is known: its low_pc stays, from which its lists
 * count. Without any, an assembler's unit say, it may go.
 */
void me_abbrev_choose_own(const struct me_abbrevs *table, struct me_abbrev *abbrev,
			  unsigned int version);
/* Give what was touched its codes, each as long as the old one. */
void me_abbrevs_choose(struct me_abbrevs *table);
/* The declarations that the unit uses, new ones too. */
void me_abbrevs_write(const struct me_abbrevs *table, unsigned int version, struct me_bytes *out);

/* Put @off, of a list, and filler into @size bytes at @field. */
void me_abbrev_fill(uint8_t *field, uint64_t size, uint32_t off);

#endif
