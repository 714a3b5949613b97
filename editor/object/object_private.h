// SPDX-License-Identifier: Apache-2.0
/*
 * object_private - one relocatable object while it is rewritten. The steps, in their order:
 *
 *   object_code       instructions, functions, what each reference to code means
 *   object_match      which function of the profiled program each function is; the new order
 *   object_pieces     fragments: runs of blocks that become sections
 *   object_emit       bytes and relocations of the code
 *   object_frame      .eh_frame
 *   object_lsda       exception tables
 *   object_symbols    symbol table, and where a reference leads now
 *   debug/            debug information
 *   object_write      the file
 */
#ifndef ME_OBJECT_PRIVATE_H
#define ME_OBJECT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/base/bytes.h"
#include "editor/object/object.h"
#include "libprof/base/err.h"
#include "libprof/elf/relobj.h"
#include "libprof/insn/insn.h"

#define ME_NONE UINT32_MAX

/* Newer than some <elf.h>. */
#ifndef SHT_LLVM_CALL_GRAPH_PROFILE
#define SHT_LLVM_CALL_GRAPH_PROFILE 0x6fff4c09
#endif
#define SHT_LLVM_ADDRSIG 0x6fff4c03

enum me_oinsn_flag {
	ME_OINSN_TARGET = 1 << 0, /* a reference or a branch leads here */
	ME_OINSN_NOP = 1 << 1,	  /* does nothing, and has no relocation */
	ME_OINSN_FIXED = 1 << 2,  /* a branch that has no other encoding */
	ME_OINSN_PAD = 1 << 3,	  /* a landing pad */
};

/* One instruction of the object. All instructions of all sections are in one array. */
struct me_oinsn {
	uint32_t off; /* in its section */
	uint32_t func;
	uint32_t code;	/* index in me_object.codes */
	uint32_t reloc; /* first relocation inside; ME_NONE: none, or only that of @to */
	uint32_t to;	/* instruction to which the field at @field leads; ME_NONE: none */
	uint32_t item;	/* its place in the output; ME_NONE: padding that is left out */
	uint8_t len, kind, cc, field, field_size, flags;
};

/* A section of code. */
struct me_ocode {
	uint32_t section;
	uint32_t first_insn, nr_insns;
	uint32_t *at;	    /* offset -> instruction, or ME_NONE */
	const char *closed; /* why all of its code stays in place; NULL: functions may leave it */
	uint32_t nr_funcs;
	uint32_t out; /* index in me_object.outs */
};

struct me_ofde {
	uint32_t off, size; /* of the entry in .eh_frame */
	uint32_t cie_off;
	uint32_t code, start, len;
	uint32_t func; /* ME_NONE: of a section that is closed */
};

/* One row of an exception table, as distances from the function's start. */
struct me_osite {
	uint32_t start, end;
	uint32_t pad;	 /* 0: none */
	uint32_t action; /* 0: none, else 1 + offset in the actions */
};

struct me_olsda {
	uint32_t section, off; /* where the table begins */
	uint64_t value;	       /* of the symbol to which the FDE refers */
	struct me_osite *sites;
	uint32_t nr_sites, cap_sites;
	const uint8_t *actions;
	size_t actions_size;
	uint8_t type_enc;
	uint32_t nr_types, types_end; /* type i is 4 * i bytes before @types_end in the section */
};

/* Bytes and relocations that are appended to a section of data, at the next multiple of 4. */
struct me_extra {
	struct me_bytes bytes, relocs;
};

struct me_ofunc {
	uint32_t code, start, end;
	uint32_t first_insn, nr_insns;
	uint32_t symbol;
	uint32_t fde;
	const char *whole;     /* why it stays in one piece; NULL: its blocks may be reordered */
	bool rigid;	       /* its exception table is kept: no instruction changes its length */
	struct me_olsda *lsda; /* its exception table, if it is written anew */
	bool computes_jump, takes_label;
	bool hot;	       /* it gets sections of its own */
	bool matched;	       /* it is in the profiled program */
	uint32_t program_func; /* if @matched */
	uint64_t heat;	       /* how often it runs, by the profile */
	uint32_t first_fragment, nr_fragments;
};

/* Blocks of one function that stay together: instructions [first, first + nr). */
struct me_piece {
	uint32_t first, nr;
	uint8_t align_log2, align_offset;
	bool clone;
};

/* Pieces of one function in one output section. */
struct me_fragment {
	uint32_t func, out;
	bool cold;
	uint32_t first_piece, nr_pieces;
	uint32_t first_item, nr_items;
	uint32_t start, end; /* in the output section */
	uint32_t align;
};

/* One thing in an output section: a copied instruction, an added branch, or padding. */
struct me_item {
	uint32_t insn;	   /* ME_NONE: a jump that was added, or padding */
	uint32_t to;	   /* instruction to which the branch or operand leads */
	uint32_t row;	   /* the instruction of the original whose unwind row holds here */
	uint32_t out, off; /* output section, and where in it */
	uint8_t size, cc;
	enum {
		ME_ITEM_COPY,
		ME_ITEM_JUMP,
		ME_ITEM_COND,
		ME_ITEM_PADDING,
		ME_ITEM_DROPPED
	} kind;
	uint8_t align_log2, align_offset; /* of padding */
	bool far;			  /* a branch with 32 bits */
};

/* A section of code of the output. */
struct me_out {
	uint32_t section; /* index in the output */
	uint32_t old;	  /* index of the original's section that it is, or was a part of */
	bool added;
	char *name; /* NULL: the old one */
	uint32_t align, size;
	uint32_t symbol;	/* STT_SECTION symbol, index in the output */
	struct me_bytes bytes;	/* unused if the section is closed */
	struct me_bytes relocs; /* Elf64_Rela */
	bool closed;
};

/* The new contents of a section of debug information. */
struct me_odebug_section {
	struct me_bytes bytes, relocs;
	bool written; /* if not, the section stays as it is */
};

/* .debug_ranges or .debug_rnglists, if the output needs one and the original has none. */
struct me_oadded_lists {
	bool needed;
	uint32_t section, symbol; /* in the output; 0: it is not added */
	struct me_odebug_section made;
};

/* An address in data that `lea' loads: the base of a table. Ascending. */
struct me_base {
	uint32_t section, off;
};

struct me_object {
	const struct mp_relobj *in;
	struct me_ocode *codes;
	uint32_t nr_codes;
	uint32_t *code_of; /* section -> code, or ME_NONE */
	struct me_oinsn *insns;
	uint32_t nr_insns, cap_insns;
	struct me_ofde *fdes;
	uint32_t nr_fdes, cap_fdes;
	uint32_t eh_frame; /* section, or 0 */
	struct me_ofunc *funcs;
	uint32_t nr_funcs, cap_funcs;
	struct me_base *bases;
	uint32_t nr_bases, cap_bases;
	struct me_piece *pieces;
	uint32_t nr_pieces, cap_pieces;
	struct me_fragment *fragments;
	uint32_t nr_fragments, cap_fragments;
	struct me_item *items;
	uint32_t nr_items, cap_items;
	struct me_out *outs;
	uint32_t nr_outs, cap_outs;
	struct me_extra *extras;	 /* per old section */
	struct me_bytes symbols, names;	 /* the new symbol table and its strings */
	uint32_t nr_locals, nr_inserted; /* old local symbols; symbols behind them */
	struct me_bytes frame, frame_relocs;
	struct me_bytes calls, call_relocs; /* .llvm.call-graph-profile */
	struct me_odebug_section *debug;    /* per old section; NULL: no debug information */
	struct me_oadded_lists lists[2];    /* .debug_ranges, .debug_rnglists */
	struct me_object_report *report;
};

/* The kinds of targets that a relocation has. */
enum me_oref_kind {
	ME_OREF_KEEP,	/* the symbol alone says it: data, another file, a function by its name */
	ME_OREF_PLACE,	/* an instruction */
	ME_OREF_UNKNOWN /* code, but not at a place that is understood */
};

struct me_oref {
	enum me_oref_kind kind;
	uint32_t insn;
	int64_t bias; /* place = value of the symbol + addend + bias */
};

/*
 * me_object_refer - what @reloc, which applies to @section, refers to. @code_bias: the distance
 * from the field to the end of its instruction, in code.
 */
struct me_oref me_object_refer(const struct me_object *o, uint32_t section, const Elf64_Rela *reloc,
			       int64_t code_bias);
/* Reads the code. Return: 0; -EPERM: the object cannot be rewritten; -ENOMEM. */
int me_object_code(struct me_object *o, struct mp_err *err);
/* Decodes all code, and notes the fields that relocations fill. */
int me_object_decode(struct me_object *o, struct mp_err *err);
/* Reads .eh_frame: each FDE becomes a function if its section is open. */
int me_object_functions(struct me_object *o, struct mp_err *err);
/* Return: the function's first instruction at @off, or ME_NONE. */
uint32_t me_object_insn_at(const struct me_object *o, uint32_t code, uint64_t off);
static inline uint32_t me_oinsn_end(const struct me_oinsn *insn)
{
	return insn->off + insn->len;
}

/* Makes fragments of the plan's order. */
int me_object_match(struct me_object *o, const struct me_object_plan *plan, struct mp_err *err);
/* Collects calls between functions for the linker. Call it when the symbols have their indexes. */
int me_object_calls(struct me_object *o, const struct me_object_plan *plan, struct mp_err *err);
/* One piece in one fragment; appends. */
int me_object_add_piece(struct me_object *o, const struct me_piece *piece, struct mp_err *err);
int me_object_add_fragment(struct me_object *o, uint32_t func, bool cold, uint32_t first_piece,
			   struct mp_err *err);
/* Gives each fragment its output section, and the functions that stay their fragment. */
int me_object_sections(struct me_object *o, struct mp_err *err);

/* Places items, chooses the lengths of branches. */
int me_object_place(struct me_object *o, struct mp_err *err);
/* Writes code and its relocations. */
int me_object_emit(struct me_object *o, struct mp_err *err);

/* Makes the new symbol table; the output sections get symbols. Call it behind place. */
int me_object_symbols(struct me_object *o, struct mp_err *err);
/* Index of an old symbol in the output. */
static inline uint32_t me_object_symbol(const struct me_object *o, uint32_t symbol)
{
	return symbol < o->nr_locals ? symbol : symbol + o->nr_inserted;
}
/*
 * me_object_translate - the relocation as the output has it, but for its offset. Return: 0, -EPERM.
 */
int me_object_translate(const struct me_object *o, uint32_t section, const Elf64_Rela *reloc,
			int64_t code_bias, Elf64_Rela *out, struct mp_err *err);
/* Finds the output section of an instruction, and its offset there. Return: false: it was left out. */
bool me_object_place_of(const struct me_object *o, uint32_t insn, uint32_t *out, uint32_t *off);

/* Reads the exception table of @func, and marks landing pads. Return: false: not understood. */
bool me_object_read_lsda(struct me_object *o, struct me_ofunc *func);
void me_olsda_free(struct me_olsda *lsda);
/* Writes the exception table of a fragment; it begins at *@off of the old table's section. */
int me_object_put_lsda(struct me_object *o, const struct me_fragment *fragment, uint64_t *off,
		       struct mp_err *err);
int me_object_frame(struct me_object *o, struct mp_err *err);
/* Is it a section of debug information? */
bool me_object_is_debug(const struct mp_relobj_section *s);
/* Which sections of ranges must be added, for units whose code may be in several ranges? */
void me_object_debug_needs(const struct me_object *o, bool *ranges, bool *rnglists);
/* Writes debug information. Call it when the symbols have their indexes. Return: 0, -EPERM, -ENOMEM. */
int me_object_debug(struct me_object *o, struct mp_err *err);
/* Writes the whole file. */
int me_object_write(struct me_object *o, struct me_bytes *file, struct mp_err *err);

#endif
