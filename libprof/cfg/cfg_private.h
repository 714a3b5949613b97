// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_private - data and functions that the passes of mp_cfg_build() share.
 *
 * The loaded bytes of the file form one space of small indexes ("at"): the PT_LOADs one
 * after the other. Facts about single bytes are bitmaps over it. Every control transfer is
 * one small record, so that each byte is decoded once. Only this folder includes this header.
 */
#ifndef MP_CFG_PRIVATE_H
#define MP_CFG_PRIVATE_H

#include <stdlib.h>
#include <string.h>

#include "libprof/cfg/cfg.h"

struct mp_span {
	uint64_t vaddr, size;
	uint32_t at; /* index of its first byte */
	bool code;   /* lies in a PT_LOAD with PF_X */
	const uint8_t *bytes;
};

typedef uint64_t *mp_bits;

static inline bool mp_bit(const uint64_t *bits, uint32_t at)
{
	return bits[at >> 6] >> (at & 63) & 1;
}

static inline void mp_bit_set(uint64_t *bits, uint32_t at)
{
	bits[at >> 6] |= 1ull << (at & 63);
}

static inline void mp_bit_clear(uint64_t *bits, uint32_t at)
{
	bits[at >> 6] &= ~(1ull << (at & 63));
}

/* First set bit in [from, to), or @to. */
uint32_t mp_bits_next(const uint64_t *bits, uint32_t from, uint32_t to);
uint32_t mp_bits_count(const uint64_t *bits, uint32_t from, uint32_t to);
/*
 * Operations on bitmaps of @nr_words words. They write only words that change: most of a
 * bitmap is never set, and memory that is never written takes no page.
 */
void mp_bits_clear_all(uint64_t *bits, uint32_t nr_words);
void mp_bits_or(uint64_t *bits, const uint64_t *other, uint32_t nr_words);
void mp_bits_or_common(uint64_t *bits, const uint64_t *x, const uint64_t *y, uint32_t nr_words);

/* One control transfer, or an undecodable byte (MP_FLOW_BAD); sorted by @at. */
#define MP_FLOW_BAD 0x7f
struct mp_flow {
	uint32_t at;
	uint32_t target; /* index of the target; MP_NONE: outside the file, or indirect */
	uint8_t len, kind;
	bool noreturn : 1; /* a call that does not return */
	bool slot : 1;	   /* indirect through a fixed cell, [rip + disp32] */
	/* of an indirect jump, set by mp_marks_pack() from the bitmaps of the same names */
	bool tabled : 1, tail : 1, may_miss_table : 1;
};

_Static_assert(sizeof(struct mp_flow) == 12, "flows have grown");

/*
 * An operand that refers to a byte of the file: [rip + disp32], or an absolute 32-bit field
 * in a file with fixed addresses.
 */
struct mp_ref {
	uint32_t at; /* index of the instruction */
	uint32_t target;
};

/* Place of a range; sorted. The ranges of cfg->ranges overlap only in damaged files. */
struct mp_part {
	uint32_t at, end;
	uint32_t range; /* index in cfg->ranges */
	uint32_t func;
	uint32_t first_flow, nr_flows;
	uint32_t first_block, nr_blocks;
};

#define MP_HINT_SHIFT	    9
#define MP_BLOCK_HINT_SHIFT 7

/* cfg->private_data points to this after building. */
struct mp_cfg_index {
	struct mp_span *spans;
	uint32_t nr_spans;
	struct mp_span main_span; /* the largest span: lookups try it first */
	uint32_t nr_bytes;	  /* bytes of all spans: the size of the bitmaps */
	struct mp_text {
		uint32_t at, end;
	} * text; /* executable sections, ascending; without sections: PF_X segments */
	uint32_t nr_text;
	struct mp_text main_text; /* the largest text: lookups try it first */
	/*
	 * The words of a bitmap that text and functions have. To read the others, where nothing is
	 * ever set, costs a page fault for each page of them.
	 */
	uint32_t first_word, nr_words;
	struct mp_part *parts;
	uint32_t nr_parts;
	/*
	 * per page of 1 << MP_HINT_SHIFT bytes: the first part that ends in the page or
	 * behind it
	 */
	uint32_t *part_hint;
	/*
	 * per 1 << MP_BLOCK_HINT_SHIFT bytes: the block that holds the first of these
	 * bytes, if that byte lies in a part with blocks
	 */
	uint32_t *block_hint;
	mp_bits targets;
	/* evidence that may be chance: counts only where an instruction starts */
	mp_bits weak_targets;
};

/*
 * What is known of the starts of blocks, in one byte for each such place: as enum mp_block_flag.
 * A bitmap for each fact would take several times as much.
 */
struct mp_marks {
	mp_bits known;	/* places with a mark */
	uint32_t *rank; /* per word of @known: number of marks before */
	uint8_t *mark;	/* by ascending place */
};

struct mp_cfg_build {
	const struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct mp_cfg_index *index;
	const struct mp_cfg_options *options;
	mp_bits starts;	       /* an instruction starts here */
	mp_bits address_taken; /* the address stands in data or in an operand */
	mp_bits named;	       /* an operand in code holds the address */
	mp_bits pointed;       /* a word of data holds the address, even a word of a table */
	mp_bits entries;       /* a function starts here */
	mp_bits pads;	       /* a landing pad starts here */
	mp_bits table_targets;
	mp_bits entered;	/* another function branches here, or any code calls it */
	mp_bits refs;		/* something refers to this byte of data (tables end there) */
	mp_bits in_table;	/* first byte of an entry in a recognised table */
	mp_bits tabled;		/* an indirect jump here goes through known tables */
	mp_bits pointer_jumps;	/* an indirect jump here uses a pointer as its target */
	mp_bits tails;		/* an indirect jump here leaves its function */
	mp_bits may_miss_table; /* an indirect jump here may also go to places that no table lists */
	/* an indirect jump here goes to an address that arithmetic computes */
	mp_bits computed;
	/* the address stands at a place where compilers put no label's address */
	mp_bits non_label_words;
	mp_bits gap_targets; /* code outside of functions, or between instructions, may lead here */
	mp_bits gap_refs;    /* such code may name this byte */
	mp_bits scratch;     /* all bits are 0 between uses */
	struct mp_marks marks; /* replaces some of these bitmaps while blocks are made */
	uint32_t nr_read;      /* bytes of the file that were read since its pages were dropped */
	struct mp_flow *flows;
	uint32_t nr_flows, cap_flows;
	struct mp_ref *ref_list;
	uint32_t nr_refs, cap_refs;
	struct mp_ref *text_refs; /* references to code, but not to the entries of functions */
	uint32_t nr_text_refs, cap_text_refs;
	struct mp_ref *code_refs; /* references of functions to any code */
	uint32_t nr_code_refs, cap_code_refs;
	uint64_t *bases; /* addresses in code to which code adds, or from which it subtracts */
	uint32_t nr_bases, cap_bases;
	uint32_t loop_steps; /* instructions that were read for mp_meet */
	uint32_t *summed;    /* places to which their own function adds something */
	uint32_t nr_summed, cap_summed;
	uint64_t got; /* _GLOBAL_OFFSET_TABLE_, from which code for any distance counts; 0: none */
	uint32_t cap_tables, cap_table_refs, cap_blocks, cap_edges, cap_calls;
	/*
	 * Looks at entries of tables that are left in this pass. Many jumps may share a long table: the work must not
	 * grow with the square of the file's size. Without any left, a jump counts as one that is not understood.
	 */
	uint64_t table_looks;
	/* jump -> table: one indirect jump may use several tables, several jumps one table */
	struct mp_table_use {
		uint32_t jump, table;
	} * uses;
	uint32_t nr_uses, cap_uses;
	/* a landing pad or table entry in another range: counts as a jump between them */
	struct mp_far_link {
		uint32_t from_part, target;
	} * far_links;
	uint32_t nr_far_links, cap_far_links;
	/* cfg->funcs and cfg->ranges before cfg_cold joins them: one range per function */
	struct mp_func *part_funcs;
	struct mp_range *part_ranges;
	mp_bits orphans; /* starts of ranges that only a table may lead to */
	struct mp_table_length
		*table_lengths; /* private to table and table_jump: one element per table */
	uint32_t cap_lengths;
	uint32_t *part_of_range;
	uint32_t first_dynsym; /* elf->symbols from this index on are .dynsym */
	bool moves;	       /* ET_DYN: every absolute address has a relocation */
	bool had_tables;       /* mp_cfg_find_tables() was called before */
};

/* ---- cfg_space.c: addresses and indexes ---- */
int mp_space_init(const struct mp_elf *elf, struct mp_cfg_index *index, struct mp_err *err);
/* The span that holds @vaddr or @at, or NULL. */
const struct mp_span *mp_space_span_of(const struct mp_cfg_index *index, uint64_t vaddr);
const struct mp_span *mp_space_span(const struct mp_cfg_index *index, uint32_t at);

/* Index of @vaddr, or MP_NONE. */
static inline uint32_t mp_space_at(const struct mp_cfg_index *index, uint64_t vaddr)
{
	const struct mp_span *span = &index->main_span;

	if (vaddr - span->vaddr >= span->size)
		span = mp_space_span_of(index, vaddr);
	return span ? span->at + (uint32_t)(vaddr - span->vaddr) : MP_NONE;
}

/* Address of @at; UINT64_MAX if @at is no index. */
static inline uint64_t mp_space_vaddr(const struct mp_cfg_index *index, uint32_t at)
{
	const struct mp_span *span = &index->main_span;

	if (at - span->at >= span->size)
		span = mp_space_span(index, at);
	return span ? span->vaddr + (at - span->at) : UINT64_MAX;
}

/* @len bytes at @at within one span, or NULL. */
const uint8_t *mp_space_bytes(const struct mp_cfg_index *index, uint32_t at, uint32_t len);
/* True if @at lies in executable sections (or segments). */
bool mp_space_is_text(const struct mp_cfg_index *index, uint32_t at);
mp_bits mp_space_bitmap(const struct mp_cfg_index *index);
/* The part that holds @at, or MP_NONE. */
uint32_t mp_part_at(const struct mp_cfg_index *index, uint32_t at);

/* Index of the first element of b->ref_list at or behind @at. */
uint32_t mp_ref_first(const struct mp_cfg_build *b, uint32_t at);
/* The same for b->text_refs, until cfg_label sorts them anew. */
uint32_t mp_text_ref_first(const struct mp_cfg_build *b, uint32_t at);

/*
 * Notes that a pass has read @size bytes of the text. Now and then this drops the pages of the
 * file: every pass reads the whole text, and its pages would stay memory of this process.
 */
static inline void mp_space_note_read(struct mp_cfg_build *b, uint32_t size)
{
	b->nr_read += size;
	if (b->nr_read < MP_ELF_READ_AT_ONCE)
		return;
	b->nr_read = 0;
	mp_elf_drop_pages(b->elf);
}

/* ---- cfg_func.c: functions and their ranges ---- */
int mp_cfg_find_funcs(struct mp_cfg_build *b);
/* ---- cfg_cold.c: .cold parts join their functions ---- */
int mp_cfg_join_cold(struct mp_cfg_build *b);
int mp_cfg_add_far_link(struct mp_cfg_build *b, uint32_t from_part, uint32_t target);
/* ---- cfg_scan.c: decode everything once ---- */
int mp_cfg_scan(struct mp_cfg_build *b);
/* ---- cfg_relative.c: @refs: possible starts of tables ---- */
void mp_cfg_find_relative(struct mp_cfg_build *b, const mp_bits refs);
void mp_cfg_find_relocated(struct mp_cfg_build *b, const mp_bits refs);
/* ---- cfg_gap.c: code outside of functions, and second readings ---- */
int mp_cfg_read_gaps(struct mp_cfg_build *b);
/* ---- cfg_target.c: evidence outside of code ---- */
int mp_cfg_find_targets(struct mp_cfg_build *b);
/* ---- cfg_taken.c ---- */
/* After tables are known: finds addresses that stand somewhere else than in a table's entries. */
void mp_cfg_find_taken(struct mp_cfg_build *b);
/*
 * At the end: finds data words that relocations make relative to their own place, outside
 * of tables.
 */
void mp_cfg_find_offsets(struct mp_cfg_build *b);
/* ---- known/cfg_borders.c ---- */
/*
 * The instruction at @at names @target. @used: the program reads from there, computes with it (@computed), or asks which
 * addresses lie behind. Otherwise it is a label outside of functions.
 */
struct mp_border {
	uint32_t at, target;
	bool loads;			     /* by a cell that the loader fills in */
	bool used;			     /* read, compared for order, or computed with */
	bool read, computed, ordered, equal; /* @equal: compared in any way */
};

/*
 * Does one instruction compare both addresses, as the end of a loop does, or subtract one from the other? @perhaps: what
 * is not known counts as well.
 */
typedef bool (*mp_meet)(struct mp_cfg_build *b, const struct mp_border *x,
			const struct mp_border *y, bool perhaps);
/*
 * Leaves functions alone that lie between two borders which one function names close together: functions are stored, or
 * handed on, side by side everywhere, so the program must ask for the order of both or compute with them, or they must
 * @meet. Sorts @list. Return: 0, -ENOMEM.
 */
int mp_cfg_mark_between(struct mp_cfg_build *b, struct mp_border *list, uint32_t nr, mp_meet meet);
/* Does the code at @at ask whether one number was below another? Before that, it may do something else. */
bool mp_cfg_asks_order(const struct mp_cfg_build *b, uint32_t at);
/*
 * Vector registers are not followed: pairs of addresses are stored by them. Does code from @at on do anything else with
 * numbers in some? Reads @most instructions.
 */
bool mp_cfg_sums_vectors(const struct mp_cfg_build *b, uint32_t at, int most);
/* ---- known/cfg_read.c ---- */
/* Functions whose bytes the program may read are left alone; finds b->bases. Return: 0, -ENOMEM. */
int mp_cfg_find_reads(struct mp_cfg_build *b);
/* ---- cfg_place.c ---- */
/* After tables are known: functions of which data may know a place are left alone. */
void mp_cfg_find_places(struct mp_cfg_build *b);
/* ---- cfg_label.c ---- */
/* After cfg_taken and cfg_noreturn: finds functions whose labels are values and all known. */
int mp_cfg_find_labels(struct mp_cfg_build *b);
/* ---- cfg_label_use.c ---- */
/* Marks functions that may compute with labels. Return: 0, -ENOMEM. */
int mp_cfg_find_label_uses(struct mp_cfg_build *b);
/* ---- cfg_probe.c ---- */
/* Before blocks are made: makes each probe the start of a block. */
void mp_cfg_find_probes(struct mp_cfg_build *b);
/* After blocks are made: flags the blocks with probes. */
void mp_cfg_mark_probes(struct mp_cfg_build *b);
/* ---- cfg_sure.c ---- */
int mp_cfg_mark_sure(struct mp_cfg_build *b);
/* ---- cfg_lsda.c ---- */
/* Calls @pad for each landing pad. Return: 0, -EBADMSG unreadable. */
int mp_lsda_pads(const struct mp_cfg_index *index, const struct mp_fde *fde,
		 void (*pad)(void *ctx, uint64_t vaddr), void *ctx);
/* ---- cfg_cfa.c ---- */
/* True if the unwind row at @vaddr has the canonical frame address at rsp + 8, as on entry. */
bool mp_cfa_is_entry_row(const struct mp_cfg_index *index, const struct mp_fde *fde,
			 uint64_t vaddr);
/* ---- cfg_reach.c ---- */
int mp_cfg_find_unreached(struct mp_cfg_build *b);
/* ---- cfg_bare.c ---- */
/*
 * After blocks are made: a function without unwind information gets a problem unless it is
 * a leaf.
 */
void mp_cfg_judge_bare(struct mp_cfg_build *b);
/* ---- cfg_return.c ---- */
int mp_cfg_find_returns(struct mp_cfg_build *b);
/* ---- cfg_return_word.c: functions whose return addresses may stand in data ---- */
void mp_cfg_find_return_words(struct mp_cfg_build *b);
/* The call in @part that ends at @at, or NULL. */
const struct mp_flow *mp_call_before(const struct mp_cfg_build *b, const struct mp_part *part,
				     uint32_t at);
/* ---- cfg_noreturn.c ---- */
/* Does a function of this name, of another module, never return? */
bool mp_cfg_is_noreturn_name(const char *name);
int mp_cfg_find_noreturn(struct mp_cfg_build *b);
/* ---- table.c: indirect jumps ---- */
/*
 * *@again: table entries lead to ranges that belong to no function yet; join them and call
 * again.
 */
int mp_cfg_find_tables(struct mp_cfg_build *b, bool *again);
/* Afterwards: index of the first element of b->uses for @jump, or for a later jump. */
uint32_t mp_table_first_use(const struct mp_cfg_build *b, uint32_t jump);
/* ---- table_entry.c ---- */
/* Index of the place that entry @i of @table leads to; MP_NONE: there is no such entry. */
uint32_t mp_table_entry(const struct mp_cfg_build *b, const struct mp_table *table, uint32_t i);
/* The orphan that @target lies in, or MP_NONE. */
uint32_t mp_table_orphan(const struct mp_cfg_build *b, uint32_t target);
/* Begins a pass in which entries are looked at: so many times, in proportion to the file's size. */
void mp_table_looks_begin(struct mp_cfg_build *b);
/*
 * @nr entries of tables are looked at for the jump at @jump of @func. Return: false: no looks are left, and the function
 * has a problem.
 */
bool mp_table_look(struct mp_cfg_build *b, uint32_t func, uint32_t jump, uint64_t nr);
/*
 * Number of entries from the start that lead into the function. Uses up a look for each. Ends where another object
 * begins, but not before @least entries. *@stop: the next word is no entry at all, rather
 * than one that leads somewhere else.
 */
uint32_t mp_table_run(struct mp_cfg_build *b, const struct mp_table *table, uint32_t least,
		      bool *stop);
/* Makes targets of further words that lead into the function, in case the end is wrong. */
void mp_table_mark_beyond(struct mp_cfg_build *b, const struct mp_table *table);
/* ---- table_exclusive.c ---- */
int mp_cfg_check_tables(struct mp_cfg_build *b);
/* ---- cfg_mark.c: less memory while blocks are made ---- */
/*
 * Moves what is known of single places from bitmaps to b->marks and b->flows, and frees the
 * bitmaps. To be called when all of it is known. Return: 0, -ENOMEM.
 */
int mp_marks_pack(struct mp_cfg_build *b);
/* Return: the facts about place @at: MP_BLOCK_LANDING_PAD, TABLE_TARGET, ADDRESS_TAKEN, OTHER_ENTRY, NAMED. */
uint8_t mp_marks_at(const struct mp_marks *marks, uint32_t at);
void mp_marks_fini(struct mp_marks *marks);
/* ---- cfg_block.c: blocks, edges, calls ---- */
int mp_cfg_make_blocks(struct mp_cfg_build *b);

static inline void mp_func_problem(struct mp_func *func, enum mp_problem problem, uint64_t vaddr)
{
	if (problem == MP_PROBLEM_OFF_GRID)
		func->flags |= MP_FUNC_OFF_GRID;
	if (func->problem != MP_PROBLEM_NONE)
		return;
	func->problem = (uint8_t)problem;
	func->problem_vaddr = vaddr;
}

#endif
