// SPDX-License-Identifier: Apache-2.0
/*
 * verify_dwarf - DWARF 2 to 5 as verify reads it, with offsets of 4 bytes and addresses of 8. Called by the readers of
 * unwind sections, by verify/debug and by verify/object/debug. Numbers are checked where they are read, since all files
 * may be hostile.
 */
#ifndef ME_VERIFY_DWARF_H
#define ME_VERIFY_DWARF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---- bytes --------------------------------------------------------------------------------- */

/* A cursor over encoded bytes. @bad is set once a value was cut off or not understood; then all values are 0. */
struct vf_cursor {
	const uint8_t *p, *end;
	bool bad;
	bool terse;	/* set @bad for a LEB128 number that is longer than needed */
	uint64_t vaddr; /* of @p */
};

static inline struct vf_cursor vf_cursor_over(const uint8_t *p, const uint8_t *end)
{
	return (struct vf_cursor){.p = p, .end = end};
}

/* A cursor over [@off, @size) of @data. */
static inline struct vf_cursor vf_cursor_at(const uint8_t *data, uint64_t size, uint64_t off)
{
	if (!data || off > size)
		return (struct vf_cursor){.p = data, .end = data, .bad = true};
	return vf_cursor_over(data + off, data + size);
}

/* Skip @len bytes. Return: the bytes; NULL if @bad. */
static inline const uint8_t *vf_cursor_skip(struct vf_cursor *c, uint64_t len)
{
	const uint8_t *p = c->p;

	if (c->bad || len > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		return NULL;
	}
	c->p += len;
	c->vaddr += len;
	return p;
}

/* Read a number of @size bytes. */
static inline uint64_t vf_cursor_fixed(struct vf_cursor *c, unsigned int size)
{
	const uint8_t *p = vf_cursor_skip(c, size);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, size);
	return v;
}

uint64_t vf_cursor_long_uleb(struct vf_cursor *c);

/* Numbers of more than 64 bits, or of more than 10 bytes, set @bad. */
static inline uint64_t vf_cursor_uleb(struct vf_cursor *c)
{
	if (!c->bad && c->p < c->end && *c->p < 0x80)
		return *vf_cursor_skip(c, 1);
	return vf_cursor_long_uleb(c);
}

int64_t vf_cursor_sleb(struct vf_cursor *c);
/* Skip a LEB128 number of any length. */
void vf_cursor_skip_leb(struct vf_cursor *c);
/* Bytes of a DW_EH_PE_ pointer; 0: they vary, or the encoding is not known. */
unsigned int vf_pointer_size(uint8_t enc);
/* Read a DW_EH_PE_ pointer that is not indirect. Return: 0 if the raw value is 0. */
uint64_t vf_cursor_encoded(struct vf_cursor *c, uint8_t enc);

/* ---- work ---------------------------------------------------------------------------------- */

/*
 * Many entries may name one list, many units one table of abbreviations or one line program, and scopes may be nested. All
 * that is looked at is paid for: bytes, attributes, entries, rows, elements of lists, pieces of code. What can be spent
 * is in proportion to the size of both files. When nothing is left, all reading fails, and the files are refused.
 */
struct vd_work {
	uint64_t left;
};

/*
 * For each byte of debug information, of both files. Files of compilers need less than a sixteenth of it. Both figures
 * are 16 times those of the editor (debug.c) for the original alone: it writes nothing that is refused for this.
 */
#define VD_WORK_PER_BYTE 128
#define VD_WORK_LEAST	 (UINT64_C(1) << 24)
#define VD_TOO_LONG	 "debug information takes too long to compare"

static inline struct vd_work vd_work_for(uint64_t bytes)
{
	return (struct vd_work){VD_WORK_PER_BYTE * bytes + VD_WORK_LEAST};
}

/* Return: is there anything left? */
static inline bool vd_spend(struct vd_work *work, uint64_t amount)
{
	work->left -= amount < work->left ? amount : work->left;
	return work->left;
}

/* ---- units --------------------------------------------------------------------------------- */

/* An attribute in the vendors' range that outputs fill unused bytes with. */
#define VD_FILLER 0x2d4d

struct vd_attr {
	uint16_t name, form;
	int64_t value; /* DW_FORM_implicit_const */
};

struct vd_abbrev {
	uint64_t code;
	uint16_t tag;
	bool children;
	bool plain;   /* no attribute's value may change */
	int32_t size; /* bytes of all values; -1: not fixed */
	uint32_t first_attr, nr_attrs;
	/* of an original's: the abbreviation of the output that was compared last, and whether it is the same */
	const struct vd_abbrev *last;
	bool same;
};

struct vd_abbrevs {
	struct vd_abbrev *list; /* by code */
	uint32_t nr, cap;
	struct vd_attr *attrs;
	uint32_t nr_attrs, cap_attrs;
};

struct vd_file;

struct vd_unit {
	struct vd_work *work;
	const uint8_t *data;	  /* the section */
	uint64_t off, first, end; /* in the section; @first: of the first entry */
	uint64_t abbrev_off;	  /* in .debug_abbrev */
	uint64_t abbrev_field;	  /* where that stands */
	unsigned int version, type;
	struct vd_abbrevs abbrevs;
	/* Of a linked file. UINT64_MAX: there is no such base. */
	const struct vd_file *file;
	uint64_t base; /* DW_AT_low_pc */
	uint64_t addr_base, rnglists_base, loclists_base, str_offsets_base, line_off;
};

struct vd_entry {
	uint64_t off;		  /* in the section */
	struct vd_abbrev *abbrev; /* NULL: the end of a list of siblings */
	const uint8_t *values, *end;
};

struct vd_value {
	const uint8_t *p; /* NULL: absent */
	uint64_t size;
	unsigned int form;
	int64_t constant; /* DW_FORM_implicit_const */
};

/* The values of an entry, one after the other. */
struct vd_values {
	const struct vd_unit *u;
	const struct vd_abbrev *abbrev;
	struct vf_cursor c;
	uint32_t next;
	const struct vd_attr *attr; /* of @value */
	struct vd_value value;
};

/* Skip a value of @form. */
void vd_skip_form(struct vf_cursor *c, unsigned int form, unsigned int version);
bool vd_form_is_address(unsigned int form);
bool vd_form_is_reference(unsigned int form);
bool vd_form_is_expression(unsigned int form);

/* Read a table for units of @version. Return: 0, -ENOMEM, -EBADMSG. Ownership: vd_abbrevs_fini(), after an error, too. */
int vd_abbrevs_read(struct vf_cursor c, unsigned int version, struct vd_work *work,
		    struct vd_abbrevs *out);
void vd_abbrevs_fini(struct vd_abbrevs *abbrevs);
static inline const struct vd_attr *vd_attr(const struct vd_unit *u, const struct vd_abbrev *a,
					    uint32_t i)
{
	return &u->abbrevs.attrs[a->first_attr + i];
}
static inline bool vd_same_attr(const struct vd_attr *a, const struct vd_attr *b)
{
	return a->name == b->name && a->form == b->form && a->value == b->value;
}

/*
 * Read the header of the unit at @off of a section, which holds units of @type unless they say their type. The
 * abbreviations stay, and out->work. Return: false: there is none.
 */
bool vd_unit_header(const uint8_t *data, uint64_t size, uint64_t off, unsigned int type,
		    struct vd_unit *out);
/* A cursor at offset @off of the section, up to the end of @unit. */
struct vf_cursor vd_unit_at(const struct vd_unit *unit, uint64_t off);
/* Read an entry. Return: false: there is none. */
bool vd_entry_read(const struct vd_unit *unit, struct vf_cursor *c, struct vd_entry *out);
/* The last value of attribute @name. */
struct vd_value vd_entry_find(const struct vd_unit *unit, const struct vd_entry *e,
			      unsigned int name);
struct vd_values vd_values_of(const struct vd_unit *unit, const struct vd_entry *e);
/* Go to the next value. Return: false: there is none. */
bool vd_values_next(struct vd_values *values);

/* The value as a number of at most 8 bytes. */
uint64_t vd_value_fixed(const struct vd_value *v);
/* A number in any form; 0: the value is absent or no number. */
uint64_t vd_value_number(const struct vd_value *v);
/* A number of @v's form, of DW_FORM_udata's kind or in its bytes. */
uint64_t vd_value_index(const struct vd_value *v);
/* The expression @v. */
struct vf_cursor vd_value_expression(const struct vd_value *v);

/* ---- lists --------------------------------------------------------------------------------- */

/* An address: of a linked file, with @section 0; or a place in a section of an object, or a number there, with 0. */
struct vd_addr {
	uint32_t section;
	uint64_t off;
};

/* Where a reader of lists finds addresses. */
struct vd_addresses {
	/* The 8 bytes at @p; NULL: the address itself. */
	struct vd_addr (*field)(const void *ctx, const uint8_t *p);
	/* The address with number @index. Return: false: there is none. */
	bool (*indexed)(const void *ctx, uint64_t index, struct vd_addr *out);
	const void *ctx;
};

struct vd_list {
	struct vd_work *work;
	struct vf_cursor c;
	struct vd_addresses from;
	unsigned int version;
	bool locations, last;
	struct vd_addr base;
};

struct vd_range {
	struct vd_addr start, end;
	bool anywhere;	       /* a default location, without a range */
	struct vf_cursor expr; /* of a location */
};

/* Read the next range, passing over bases. Return: false: there is none; or the list is damaged: then list->c.bad. */
bool vd_list_next(struct vd_list *list, struct vd_range *out);

/* ---- line programs ------------------------------------------------------------------------- */

enum {
	VD_STMT = 1,
	VD_BLOCK = 2,
	VD_PROLOGUE_END = 4,
	VD_EPILOGUE_BEGIN = 8,
};

struct vd_row {
	uint64_t address, file, line, column, isa, discriminator;
	uint8_t flags;
};

struct vd_line {
	struct vd_work *work;
	struct vf_cursor c;  /* at the next opcode; up to the program's end */
	const uint8_t *code; /* the first opcode */
	unsigned int version;
	uint8_t min_insn, max_ops, default_stmt, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *lengths; /* operands of standard opcodes */
	struct vd_row row;
	const uint8_t *field; /* of VD_LINE_ADDRESS: the address */
};

enum vd_line_event {
	VD_LINE_NOTHING,
	VD_LINE_ROW,	 /* a row was appended: call vd_line_next_row() */
	VD_LINE_ADDRESS, /* the address was set */
	VD_LINE_END,	 /* the sequence ends: call vd_line_reset() */
	VD_LINE_UNKNOWN, /* an extended opcode that adds no row */
};

/* Read the header of the program at @c. Return: false: there is none. */
bool vd_line_open(struct vf_cursor c, struct vd_work *work, struct vd_line *out);
void vd_line_reset(struct vd_line *line);
/* Execute one opcode; line->c.bad: it is damaged. */
enum vd_line_event vd_line_step(struct vd_line *line);
void vd_line_next_row(struct vd_line *line);

#endif
