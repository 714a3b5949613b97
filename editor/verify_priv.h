// SPDX-License-Identifier: Apache-2.0
/*
 * verify_priv - what the parts of verify share. Nobody else includes this.
 *
 * Order of work: image (headers), eh (unwind sections), scan (decode the old text once: where
 * instructions start, what is a possible target, who refers to which data), pieces, unwind, then
 * diff: every changed byte must belong to one act that is proved on its own.
 */
#ifndef ME_VERIFY_PRIV_H
#define ME_VERIFY_PRIV_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "editor/verify.h"
#include "libprof/map.h"
#include "libprof/path_table.h"

#define VF_NONE UINT32_MAX

/* One bit per byte address in [base, base + nr). */
struct vf_bits {
	uint64_t base, nr;
	uint64_t *word;
};

int vf_bits_init(struct vf_bits *bits, uint64_t start, uint64_t end);
void vf_bits_fini(struct vf_bits *bits);
/* First set bit at or after @vaddr and below @end, or @end. */
uint64_t vf_bits_next(const struct vf_bits *bits, uint64_t vaddr, uint64_t end);

static inline bool vf_bits_get(const struct vf_bits *bits, uint64_t vaddr)
{
	uint64_t i = vaddr - bits->base;

	return i < bits->nr && (bits->word[i / 64] >> (i % 64) & 1);
}

static inline void vf_bits_set(struct vf_bits *bits, uint64_t vaddr)
{
	uint64_t i = vaddr - bits->base;

	if (i < bits->nr)
		bits->word[i / 64] |= 1ULL << (i % 64);
}

/* The same where several threads set bits. */
static inline void vf_bits_share(struct vf_bits *bits, uint64_t vaddr)
{
	uint64_t i = vaddr - bits->base, bit = 1ULL << (i % 64);

	if (i < bits->nr && !(__atomic_load_n(&bits->word[i / 64], __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(&bits->word[i / 64], bit, __ATOMIC_RELAXED);
}

/* ---- decoding --------------------------------------------------------------------------- */

enum vf_kind {
	VF_OTHER, /* falls through */
	VF_JCC,
	VF_JMP,	 /* direct */
	VF_CALL, /* direct */
	VF_ICALL,
	VF_IJMP_REG, /* jmp *%reg */
	VF_IJMP_MEM, /* jmp *memory */
	VF_STOP,     /* ret, iret, ud2, hlt: nothing follows */
	VF_ODD,	     /* loop, jrcxz, xbegin: a relative branch that verify does not follow */
};

struct vf_insn {
	uint8_t len, kind, cc;
	uint8_t disp_off;	   /* rip-relative: offset of its disp32; else 0 */
	uint8_t rel_off, rel_size; /* relative branch: offset and size of the displacement */
	uint8_t abs_off; /* offset of a disp32 without base and index register or with index only */
	uint8_t imm_off, imm_size;
	bool eip_relative; /* rip-relative with a 32-bit address: wraps */
	bool nop, int3, lea;
	uint64_t target; /* branch target or rip-relative operand */
	int64_t abs;	 /* value of that disp32, sign-extended */
	int64_t imm;
};

/* Decode. Return: false for what is no instruction or is cut off. */
bool vf_decode(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct vf_insn *insn);
/* The same without what is known of earlier ones; for tests, which compare both. */
bool vf_decode_anew(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct vf_insn *insn);
/* For those who need operands: Zydis as the calling thread has it. */
const ZydisDecoder *vf_full_decoder(void);

/* ---- unwind sections -------------------------------------------------------------------- */

struct vf_cie {
	uint64_t vaddr, personality; /* address as encoded, not followed */
	const uint8_t *insns;
	uint32_t insns_len;
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra;
	uint8_t version, fde_enc, lsda_enc, personality_enc;
	bool has_aug, has_personality, has_lsda, signal;
	bool known_personality; /* of the original's that have an LSDA; set by unwind */
	bool reads_as_rust;	/* set with it */
};

struct vf_fde {
	uint64_t start, size, lsda, vaddr;
	const uint8_t *insns;
	uint32_t insns_len;
	uint32_t cie;
	uint16_t flags; /* enum vf_fde_flag; set by scan, of old FDEs only */
};

enum vf_fde_flag {
	VF_FDE_BAD = 1 << 0,	     /* linear decode fails or does not meet the range's end */
	VF_FDE_OFF_GRID = 1 << 1,    /* somebody jumps between two instructions' starts */
	VF_FDE_IJMP = 1 << 2,	     /* holds an indirect jump */
	VF_FDE_IJMP_REG = 1 << 3,    /* through a register: the address may be computed */
	VF_FDE_SELF_REF = 1 << 4,    /* takes an address inside itself, not its entry's */
	VF_FDE_WORD = 1 << 5,	     /* an address inside it stands in data */
	VF_FDE_LABELS = 1 << 6,	     /* such addresses are labels: no jump of it is computed */
	VF_FDE_DIFFERENCES = 1 << 7, /* data may hold differences from one of them */
	VF_FDE_BARE = 1 << 8,	     /* is none: a symbol with a size, of code without an FDE */
};

struct vf_eh {
	const struct mp_elf *elf;
	struct vf_cie *cies; /* ascending vaddr */
	struct vf_fde *fdes; /* ascending start */
	uint32_t nr_cies, nr_fdes;
	uint32_t nr_bare; /* of @fdes: those that are none */
	/* Per VF_EH_PAGE bytes from @pages_start on, and one behind: the first FDE that ends behind its
	 * beginning. NULL: too few FDEs, or they lie too far apart. */
	uint32_t *pages;
	uint64_t pages_start;
	uint32_t nr_pages;
	uint64_t vaddr, size, hdr_vaddr;
	uint8_t count_enc, table_enc; /* of the search table */
	bool strict;		      /* our own output, which has nothing to spare */
	uint64_t new_start;	      /* in it, FDEs from here on are of copies */
};

#define VF_NR_REGS 33 /* general registers, return address, xmm0 to xmm15 */

enum vf_rule_kind {
	VF_RULE_SAME, /* not mentioned, or said to be the same */
	VF_RULE_UNDEFINED,
	VF_RULE_OFFSET,
	VF_RULE_VAL_OFFSET,
	VF_RULE_REGISTER,
	VF_RULE_EXPR,
	VF_RULE_VAL_EXPR,
};

struct vf_rule {
	uint8_t kind;
	uint32_t len; /* of @expr */
	union {
		int64_t off; /* or the register */
		const uint8_t *expr;
	};
};

struct vf_row {
	uint64_t loc;	    /* first address it holds for */
	struct vf_rule cfa; /* OFFSET: from register @cfa_reg; EXPR */
	uint64_t cfa_reg;
	uint64_t args_size;
	struct vf_rule reg[VF_NR_REGS];
};

struct vf_rows {
	struct vf_row *row; /* ascending loc; the last one holds to the FDE's end */
	uint32_t nr, cap;
};

struct vf;

/* A cursor over encoded bytes; @bad once anything was cut off or not understood. */
struct vf_cursor {
	const uint8_t *p, *end;
	uint64_t vaddr; /* of @p */
	bool bad;
	bool terse; /* numbers take no more bytes than they need */
};

uint64_t vf_cursor_fixed(struct vf_cursor *c, unsigned int size);
uint64_t vf_cursor_uleb(struct vf_cursor *c);
int64_t vf_cursor_sleb(struct vf_cursor *c);
const uint8_t *vf_cursor_skip(struct vf_cursor *c, uint64_t len);
/* A DW_EH_PE_ pointer, not an indirect one. 0 where the raw value is 0. */
uint64_t vf_cursor_encoded(struct vf_cursor *c, uint8_t enc);

/* Read PT_GNU_EH_FRAME and the .eh_frame it names; without it, the section of that name. @strict:
 * our own output, where the search table must list every FDE. */
int vf_eh_read(struct vf *vf, const struct mp_elf *elf, bool strict, struct vf_eh *eh);
void vf_eh_fini(struct vf_eh *eh);
/* The FDE that covers @vaddr, or NULL. */
struct vf_fde *vf_eh_find(const struct vf_eh *eh, uint64_t vaddr);
/* verify_bare.c: functions that symbols alone bound, as FDEs without a program. */
int vf_add_bare(struct vf_eh *eh);
/* Run @fde's program. Return: 0, -ENOMEM, -EBADMSG. */
int vf_rows_build(const struct vf_eh *eh, const struct vf_fde *fde, struct vf_rows *rows);
const struct vf_row *vf_rows_at(const struct vf_rows *rows, uint64_t vaddr);
/* verify_personality.c: @cie, an old one, names a routine that reads tables as verify_lsda does.
 * @rust: it is Rust's. */
bool vf_known_personality(struct vf *vf, const struct vf_cie *cie, bool *rust);
/* Rules alone, not the place. */
bool vf_row_equal(const struct vf_row *a, const struct vf_row *b);

/* ---- language-specific data -------------------------------------------------------------- */

struct vf_call_site {
	uint64_t start, end, pad; /* addresses; pad 0: none */
	uint64_t action;	  /* 0: none, else 1 + offset in the action table */
};

struct vf_lsda {
	const struct mp_elf *elf;
	struct vf_call_site *site; /* ascending */
	uint32_t nr, cap;
	const uint8_t *actions, *end;
	uint64_t actions_vaddr, ttype_vaddr;   /* ttype_vaddr: end of the type table, 0: none */
	uint8_t base_enc, ttype_enc, site_enc; /* base_enc: of the landing pads' base */
	bool present;
};

int vf_lsda_read(const struct mp_elf *elf, uint64_t vaddr, uint64_t func_start,
		 struct vf_lsda *lsda);
void vf_lsda_fini(struct vf_lsda *lsda);
const struct vf_call_site *vf_lsda_at(const struct vf_lsda *lsda, uint64_t vaddr);
unsigned int vf_lsda_pointer_size(uint8_t enc);
/* Entry @index (from 1, backwards from the table's end) of the types as an address, not followed. */
bool vf_lsda_type(const struct vf_lsda *lsda, uint64_t index, uint64_t *type);
/* Do both chains of actions ask for the same types in the same order? */
bool vf_lsda_same_actions(const struct vf_lsda *a, uint64_t action_a, const struct vf_lsda *b,
			  uint64_t action_b);

/* ---- the whole -------------------------------------------------------------------------- */

struct vf_ref {
	uint64_t to, insn;
};

struct vf_file_range {
	uint64_t start, end;
};

struct vf_range {
	uint64_t start, end;
};

/* Bytes [start, end) of the original's file, at @vaddr, that the new segment has at @now; start ==
 * end: none. */
struct vf_moved {
	uint64_t start, end, vaddr, now;
};

/* More segments with code no program has. */
#define VF_TEXTS_MAX 8

struct vf {
	const struct mp_elf *o, *n;	     /* original, output */
	const struct me_verify_debug *debug; /* NULL: none */
	const struct mp_elf
		*program; /* @o and @n are debug files: the output that @n is of; or NULL */
	struct mp_err *err;
	struct me_verify_report *report;
	unsigned int nr_threads;
	struct mp_map *map;

	uint64_t text_start, text_end;	     /* span of the original's executable sections */
	struct vf_range texts[VF_TEXTS_MAX]; /* and of those in each segment: data lies between */
	uint32_t nr_texts;
	uint64_t image_start, image_end; /* of its file-backed segments */
	uint64_t alloc_end;		 /* file offset behind the last of them */
	const Elf64_Phdr *segment;	 /* the output's new one */
	bool grown;			 /* its table has one program header more */
	struct vf_moved moved;		 /* what made room for this header */
	const Elf64_Phdr *eh_frame; /* its PT_GNU_EH_FRAME; NULL: a static program that registers
				      * its .eh_frame when it starts */
	uint32_t nr_eh_refs;	    /* references to .eh_frame that were led to the new one */
	uint64_t eh_fields[2];	    /* without relocations: those that must be; 0: none found */
	const struct mp_section *new_text;
	const struct mp_section *counters, *runtime; /* NULL: the output counts nothing */
	uint64_t *counted;			     /* one bit per counter that a stub counts in */
	uint64_t nr_counters;
	uint64_t thread_state; /* of the output, where threads have their own counters; 0: not so */
	uint64_t init_entry; /* file offset of the dynamic entry that leads to the runtime; 0: none */
	const struct mp_section *path_section; /* NULL: the output keeps no path numbers */
	struct mp_path_table *paths;
	uint32_t named_vectors; /* where it polls: bit n: the original names xmm<n> */
	uint16_t *unproved; /* per piece: registers that its stub sets and are not proved dead */
	struct vf_graph *graph; /* verify_registers; where stubs set registers */

	struct vf_eh old_eh, new_eh;

	struct vf_bits grid;	      /* instruction starts of the old text */
	struct vf_bits target;	      /* where control may arrive in it */
	struct vf_bits led;	      /* those outside of FDEs that are code for sure */
	struct vf_bits doubt;	      /* where bytes outside of FDEs lead to, if they are code */
	struct vf_bits chance;	      /* numbers without a relocation that may be such places */
	struct vf_bits text_ref;      /* its addresses taken by operands */
	struct vf_bits data_ref;      /* data addresses that operands name */
	struct vf_bits word_ref;      /* addresses that words of data name */
	struct vf_bits label_word;    /* words of data that hold a text address by relocation */
	struct vf_bits pointer_kept;  /* functions whose address stands where it stood */
	struct vf_bits pointer_moved; /* and where their copy's stands now */
	struct vf_ref *refs;	      /* operands that name what may be a jump table, by @to */
	size_t nr_refs, cap_refs;

	struct vf_bits piece_start; /* old addresses */
	uint32_t *piece_rank;	    /* pieces before each 64 bits of piece_start */
	struct vf_bits cloned;	    /* of them, those with more than one copy */
	uint32_t *by_old;	    /* one piece of each original, in the order of old_vaddr */
	uint32_t nr_by_old;
	uint32_t *next_copy;   /* per piece: another one of the same original, or VF_NONE */
	uint32_t *common;      /* per piece: bytes before a branch that may be encoded anew */
	uint64_t *pointer_now; /* per piece, with counters: the address of the function that starts
				* there; 0: not seen yet */

	uint64_t *cuts; /* of the old text: functions begin there, and nothing reaches over one */
	uint32_t nr_cuts;

	uint32_t *section_now; /* per old section: which one it is now; 0: dropped */
	uint32_t symtab;       /* the old .symtab; 0: none */

	uint64_t table_start, table_end; /* the table proved last */
	uint8_t table_kind;
	uint64_t nr_abs_changed;
};

/* Refuse: a message with place and symbol. Return: -EBADMSG. */
int vf_refuse(struct vf *vf, uint64_t vaddr, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static inline bool vf_is_text(const struct vf *vf, uint64_t vaddr)
{
	if (vaddr < vf->text_start || vaddr >= vf->text_end)
		return false;
	for (uint32_t i = 0; i < vf->nr_texts; i++)
		if (vaddr >= vf->texts[i].start && vaddr < vf->texts[i].end)
			return true;
	return false;
}

/* A piece whose original starts at @old_vaddr, or NULL. */
const struct mp_map_piece *vf_piece_from(const struct vf *vf, uint64_t old_vaddr);
/* A piece whose original holds @old_vaddr, or NULL. */
const struct mp_map_piece *vf_piece_holding(const struct vf *vf, uint64_t old_vaddr);
/* Of the pieces, which ascend: the first whose copy starts at @new_vaddr or behind it. */
uint32_t vf_first_piece(const struct vf *vf, uint64_t new_vaddr);
/* Does a copy of the block at @old start at @now? */
bool vf_is_copy(const struct vf *vf, uint64_t old, uint64_t now);
/* May control that went to old address @old go to @now instead? */
bool vf_same_place(const struct vf *vf, uint64_t old, uint64_t now);

/*
 * Call @run for items 0 to @nr_items, @grain at once, with a copy of @vf: what is counted in the
 * copy, and in its report, is added up. Return: as the first @run that fails, with its message.
 */
int vf_parallel(struct vf *vf, uint32_t nr_items, uint32_t grain,
		int (*run)(struct vf *vf, void *ctx, uint32_t first, uint32_t end), void *ctx);
/* Fill @vf->cuts, once the FDEs are read: each at a whole word of the bitmaps of the text. */
int vf_find_cuts(struct vf *vf);
/* The first one at @vaddr or behind it, or @vf->nr_cuts. */
uint32_t vf_first_cut(const struct vf *vf, uint64_t vaddr);
/* An instrumented output: where its counters and its runtime are. */
void vf_find_counters(struct vf *vf);
/* Header @b is @a, grown by the counters. */
bool vf_is_grown(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b);
/* One of the sections that it has besides. */
bool vf_is_counting(const struct vf *vf, const struct mp_section *sec);
/* Does the runtime run first, and then what did in the original? */
int vf_check_start(struct vf *vf);
/* The same where path numbers are kept in registers instead. */
void vf_find_paths(struct vf *vf);
bool vf_is_path_section(const struct vf *vf, const struct mp_section *sec);
int vf_read_paths(struct vf *vf);
/* What the stub @p does besides going on, at @at with bytes @b; *@next: what follows that. */
int vf_check_path_stub(struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at,
		       uint64_t *next);
/* Marks @p where it is not proved that nobody reads @reg from its block on. */
void vf_check_dead(struct vf *vf, const struct mp_map_piece *p, unsigned int reg);
/* Instructions that poll, or write down, at @at in the stub @p. Return: how long they are, 0: they are
 * something else, or negative: refused. */
int vf_check_poll(struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at);
int vf_check_note(struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at);
/* When all stubs were checked: those that were not proved are refused together. */
int vf_check_unproved(struct vf *vf);
/* What vf_register_is_dead() goes by; needs the scan. */
int vf_read_registers(struct vf *vf);
void vf_registers_fini(struct vf *vf);
/* Does nobody ask at @vaddr of the original what is in general register @reg, whoever comes next?
 * For several threads at once. */
bool vf_register_is_dead(struct vf *vf, uint64_t vaddr, unsigned int reg);
/* Does an unwinder need @reg at @vaddr to find the frame, or can nobody tell? */
bool vf_unwinder_reads(const struct vf *vf, uint64_t vaddr, unsigned int reg);
/* Of xmm8 to xmm15, bit 8 to 15, those that the instruction at @b names; and those that any of the
 * original does, which needs the scan. */
uint32_t vf_vectors_of(const uint8_t *b, size_t avail);
uint32_t vf_named_vectors(const struct vf *vf);
/* Pieces of no original may stand in the output. */
static inline bool vf_has_stubs(const struct vf *vf)
{
	return vf->counters || vf->path_section;
}

/* Where threads have counters of their own: the original must not use %gs. Needs the scan. */
int vf_check_gs(struct vf *vf);
/* After all stubs: does one count in each counter? */
bool vf_all_are_counted(const struct vf *vf);
/* A check, at @at in the stub @p, of whose counters these are. Return: how long it is, 0: it is
 * something else, or negative: refused. */
int vf_check_thread(struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at);
/* A piece of no original: counts or sets a register, and goes on. */
int vf_check_stub(struct vf *vf, const struct mp_map_piece *p);
/* Does nobody read arithmetic flags at @vaddr of the original that were set before? Without @carry
 * they may read that one. */
bool vf_flags_are_dead(struct vf *vf, uint64_t vaddr, bool carry);
/* Where control is when it falls off the end of the copy @p; UINT64_MAX: nowhere. */
uint64_t vf_falls_to(const struct vf *vf, const struct mp_map_piece *p);

/* May the original do without this program header? */
bool vf_may_spend(const struct vf *vf, const Elf64_Phdr *slot);

/*
 * verify_room: the output has one program header more, and @slot is the index of the new one. First
 * find what moved; then, when the segment is known, check it; then, after the scan, who names it.
 */
int vf_find_moved(struct vf *vf, uint32_t slot);
int vf_check_room(struct vf *vf);
int vf_check_moved(struct vf *vf);
/* Header @b is @a, which moved with its bytes; header @b is PT_PHDR @a of the larger table. */
bool vf_is_moved_phdr(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b);
bool vf_is_grown_table(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b);
/* Is this range of the original's file all among what moved? Where is an address or offset now? */
bool vf_is_moved(const struct vf *vf, uint64_t off, uint64_t size);
uint64_t vf_vaddr_now(const struct vf *vf, uint64_t vaddr);
uint64_t vf_off_now(const struct vf *vf, uint64_t off);

/* Offsets in the file. */
/* The bytes of the build-id that a PT_NOTE leads to; {0, 0}: none does. */
struct vf_file_range vf_build_id(const struct mp_elf *elf);
int vf_check_image(struct vf *vf);
int vf_index_pieces(struct vf *vf);
int vf_scan(struct vf *vf);
/* verify_gap.c: what of @doubt counts becomes @target. */
int vf_believe_gaps(struct vf *vf);
int vf_check_pieces(struct vf *vf);
int vf_check_unwind(struct vf *vf);
/* Of vf_check_unwind(): the new exception tables as a whole. */
int vf_check_lsdas(struct vf *vf);
/* Which functions' own addresses are labels; at the end of the scan. */
void vf_find_labels(struct vf *vf);
/* May the address @old, a place in a function's middle, become the copy's wherever it stands? */
bool vf_label_may_move(const struct vf *vf, uint64_t old);
/* Static probes: possible targets, whose blocks must not be copied. */
void vf_mark_probes(struct vf *vf);
int vf_check_probes(struct vf *vf);
int vf_check_diff(struct vf *vf);
/* The word that holds @vaddr differs: prove it an entry of a jump table, led to a copy. *@next: the
 * first address behind the word. */
int vf_check_table_word(struct vf *vf, uint64_t vaddr, uint64_t *next);
/* The same where no relocation tells what the word is: proved by the instructions that read it. */
int vf_check_switch_word(struct vf *vf, uint64_t vaddr, uint64_t *next);
/* May @to be the start of such a table? Its references are kept then. */
bool vf_may_be_switch(const struct vf *vf, uint64_t to);
/* The index in @refs of the first one to @to, or to what comes next. */
size_t vf_first_ref(const struct vf *vf, uint64_t to);
/* The only function whose operands name the table at @base, if it jumps indirectly; or NULL. */
const struct vf_fde *vf_table_user(const struct vf *vf, uint64_t base);
/* Static programs: did every reference to .eh_frame change? */
int vf_check_eh_refs(struct vf *vf);
/* In the original, without relocations, once its .eh_frame is read. */
void vf_find_eh_fields(struct vf *vf);
/* The same as vf_check_table_word() where the Elf64_Rela at file offset @off differs. */
int vf_check_table_addend(struct vf *vf, uint64_t off);
/* Words of data that were equal must be equal still. */
int vf_check_table_values(struct vf *vf);
/*
 * Note that the address @old stands somewhere as @now. Return: false where that is neither @old nor
 * the copy of the function that starts there.
 */
bool vf_note_pointer(struct vf *vf, uint64_t old, uint64_t now);
/* The same for the 4 bytes @now in place of the original's at @at, an absolute address by
 * relocation. */
bool vf_note_field(struct vf *vf, uint64_t at, const uint8_t *now);
void vf_note_operand(struct vf *vf, uint64_t insn, uint8_t len, uint64_t to);
/* What is not loaded: section headers, other sections, padding; then .symtab. */
int vf_check_rest(struct vf *vf);
int vf_check_symbols(struct vf *vf);
/* The same of the debug file, and whether the output leads to it. */
int vf_check_debug(struct vf *vf);
/* Of vf_check_rest(): what holds of debug files, too. */
int vf_check_sections(struct vf *vf);
/* The section .gnu_debuglink where it may be another, which vf_check_debug() looks into. */
bool vf_is_link(const struct vf *vf, const struct mp_section *sec);
/* A note of a debug file, @a before and @b now. */
int vf_check_kept_note(struct vf *vf, const struct mp_section *a, const struct mp_section *b);
/* After all others: does every function have one address? */
int vf_check_pointers(struct vf *vf);

#endif
