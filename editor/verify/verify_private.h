// SPDX-License-Identifier: Apache-2.0
/*
 * verify_private - types and functions that the parts of verify share. No other file includes this
 * header.
 *
 * Order of work: headers, eh (unwind sections), scan (decodes the old text once: starts
 * of instructions, possible targets, references to data), pieces, unwind, then diff: every
 * changed byte must belong to one kind of change that is proved on its own.
 */
#ifndef ME_VERIFY_PRIVATE_H
#define ME_VERIFY_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/verify.h"
#include "editor/verify/verify_decode_private.h"
#include "editor/verify/verify_eh_private.h"
#include "libprof/note/audit_table.h"
#include "libprof/note/map.h"
#include "libprof/note/path_table.h"

#define VF_NONE UINT32_MAX

/* One bit per byte address in [base, base + nr). */
struct vf_bits {
	uint64_t base, nr;
	uint64_t *word;
};

/* All bits are 0. Return: 0, -ENOMEM, -EBADMSG the range is too large. */
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

/* vf_bits_set() for bits that several threads set. */
static inline void vf_bits_share(struct vf_bits *bits, uint64_t vaddr)
{
	uint64_t i = vaddr - bits->base, bit = 1ULL << (i % 64);

	if (i < bits->nr && !(__atomic_load_n(&bits->word[i / 64], __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(&bits->word[i / 64], bit, __ATOMIC_RELAXED);
}

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

/* Bytes [start, end) of the original's file, at address @vaddr, lie in the new segment at
 * address @now. start == end: none moved. */
struct vf_moved {
	uint64_t start, end, vaddr, now;
};

/* A range of one version of an audited function. */
struct vf_version {
	uint64_t start, end;
	uint32_t function; /* index in the table */
	uint8_t version;   /* enum mp_audit_version or mp_audit_code */
};

/* Programs with more segments that hold code are refused. */
#define VF_TEXTS_MAX 8
#define VF_ENDS_MAX  24

/* A jump table that was proved: [start, end). The proof covers all of its entries. */
struct vf_proved_table {
	uint64_t start, end;
	uint8_t kind;
};

/* Counts of the checks. Each thread has its own; vf_parallel() adds them up. */
struct vf_result {
	struct me_verify_report report;
	uint64_t nr_eh_refs;	 /* references to .eh_frame that lead to the new one */
	uint64_t nr_abs_changed; /* words with absolute addresses that changed */
	/* not added up: the last one, since changed words of one table follow each other */
	struct vf_proved_table table;
	/* not added up: words of 8 bytes in a row that vf_is_table_word() found to be in no table */
	struct {
		uint64_t start, end;
	} no_table;
};

/* Marks that the checks of single places leave for the checks of the whole. All threads mark here: each
 * in entries of its own pieces, or by atomic operations. */
struct vf_marks {
	struct vf_bits pointer_kept;	    /* functions whose old address stands somewhere */
	struct vf_bits pointer_moved;	    /* functions whose copy's address stands somewhere */
	struct vf_bits version_table_bytes; /* of the section version_tables: checked entries */
	uint64_t *counted;		    /* one bit per counter that a stub counts in */
	uint16_t *unproved; /* per piece: registers that its stub sets, not proved dead */
	/* per piece: bytes before a branch, or a call through a slot, that may be re-encoded */
	uint32_t *common;
	uint64_t *pointer_now; /* per piece, with counters: the address of the function that starts
				* there; 0: not seen yet */
	uint8_t *below; /* per FDE of the original: verify_inline.c's answers; 0: not asked yet */
};

/* The list of verify_own.c. */
struct vf_owned {
	struct me_owned *list;
	size_t nr, cap;
	uint32_t nr_runs;
	bool failed;  /* out of memory */
	bool outside; /* a claim was not within the file */
};

/* Refused functions, in the order in which one thread would find them. */
struct vf_refusals {
	uint64_t blamed; /* by the last vf_refuse(): code of the original; 0: no function */
	uint32_t nr, max;
	struct {
		uint64_t order; /* smaller is earlier */
		struct me_refused what;
	} list[ME_MAX_REFUSED];
};

/* Operands that may name a jump table. */
struct vf_refs {
	struct vf_ref *list; /* sorted by @to once the scan is done */
	size_t nr, cap;
};

/*
 * The context of all checks: what is known of original and output. Steps that read fill it: vf_find_*(), vf_read_*(),
 * vf_mark_*(), the headers and the scan. Steps that check get it const, and write only through
 * @result, @marks, @refusals and @err.
 */
/* A piece may be a part of the code that replaces a call. */
struct vf_inlined {
	uint32_t behind; /* 1 + index of the piece that lacks the call; 0: an ordinary piece */
	uint32_t next;	 /* index of another part of the same code; 0: this is the last one */
};

enum {
	VF_USE_SLOTS = 4,
	VF_USE_SITES = 256,
};

/* The instructions and functions that use an imported function; verify_answers.c finds them. */
struct vf_uses {
	uint64_t slots[VF_USE_SLOTS], stubs[VF_USE_SLOTS]; /* cells of the GOT; stubs of a PLT */
	uint64_t sites[VF_USE_SITES];	    /* calls and jumps through a slot, without prefixes */
	struct vf_fde *users[VF_USE_SITES]; /* functions that use a slot or a stub */
	uint32_t nr_slots, nr_stubs, nr_sites, nr_users;
	bool unknown;	/* there may be other uses */
	bool unsure;	/* a site may be in the middle of an instruction */
	bool elsewhere; /* code that can have no copies may use a stub */
};

struct vf {
	const struct mp_elf *o, *n;	     /* original, output */
	const struct me_verify_debug *debug; /* NULL: none */
	const struct mp_elf *program; /* if @o and @n are debug files: the output @n belongs to */
	const struct vf *code;	      /* the same: what is known of the programs */
	struct mp_err *err;
	struct vf_result *result;
	struct vf_marks *marks;
	struct vf_refusals *refusals;
	unsigned int nr_threads;
	struct mp_map *map;

	uint64_t text_start, text_end;	     /* span of the original's executable sections */
	struct vf_range texts[VF_TEXTS_MAX]; /* their spans in each segment; data lies between */
	uint32_t nr_texts;
	uint64_t image_start, image_end; /* span of the original's file-backed segments */
	uint64_t alloc_end;		 /* file offset behind the last of these segments */
	struct vf_owned *owned;		 /* who checked which bytes of @n */
	const Elf64_Phdr *segment;	 /* the output's new one */
	bool has_new_phdr;		 /* the output has one program header more */
	struct vf_moved moved;		 /* bytes that moved to make room for it */
	const Elf64_Phdr *eh_frame;	 /* the output's PT_GNU_EH_FRAME; NULL: static program */
	uint64_t eh_fields[2];		 /* without relocations: fields to change; 0: none */
	uint64_t eh_label;		 /* the old address that these fields hold */
	const struct mp_section *new_text;
	const struct mp_section *counters, *runtime; /* NULL: the output counts nothing */
	uint64_t nr_counters;
	uint64_t thread_state; /* the runtime's state for counters per thread; 0: shared */
	uint64_t init_entry;   /* file offset of the dynamic entry for the runtime; 0: none */
	const struct mp_section *audit_section; /* NULL: no function has two versions */
	const struct mp_section *call_section;	/* NULL: no clock of calls */
	struct mp_audit_table *audited;
	struct vf_version *versions; /* ranges of both versions of all functions, ascending */
	uint32_t nr_versions;
	const struct mp_section *version_tables; /* NULL: no version has a table for itself */
	struct vf_uses asking;			 /* uses of _Unwind_FindEnclosingFunction() */
	const struct mp_section *answers; /* the code that answers for copies; NULL: none does */
	struct vf_bits guarded; /* new text: exits, to which only the stub before them leads */
	struct vf_bits exits;	/* old text: these exits */
	const struct mp_section *path_section; /* NULL: the output keeps no path numbers */
	struct mp_path_table *paths;
	uint32_t named_vectors; /* with polls, bit n: the original names xmm<n> */
	bool waits;		/* without counters and path numbers: there are stubs, which wait */
	struct vf_graph *graph; /* of verify_free_registers; only if stubs set registers */

	struct vf_eh old_eh, new_eh;

	struct vf_bits grid;	      /* instruction starts of the old text */
	struct vf_bits target;	      /* old text: possible targets of control */
	struct vf_bits sure_target;   /* places that certain code or a symbol leads to */
	struct vf_bits maybe_target;  /* targets of bytes outside of FDEs, if these are code */
	struct vf_bits maybe_address; /* numbers without relocation that may be code addresses */
	struct vf_bits text_ref;      /* text addresses that operands name */
	struct vf_bits data_ref;      /* data addresses that operands name */
	struct vf_bits may_lack;      /* instructions that copies may lack: verify_marker.c */
	struct vf_bits word_ref;      /* addresses that words of data name */
	struct vf_bits label_word;    /* words of data that hold a text address by relocation */
	struct vf_refs refs;
	struct vf_refs names; /* operands of functions that name code, or cells of the GOT */
	uint64_t *bases;      /* addresses in code to which code adds, or from which it subtracts */
	uint32_t nr_bases;
	uint64_t got_base;	/* _GLOBAL_OFFSET_TABLE_; 0: none */
	struct vf_range got;	/* section .got */
	uint32_t first_dynamic; /* of the original's symbols; set by vf_find_reads() */
	struct vf_bits cold;	/* starts of code that symbols call a function's cold part */
	struct vf_bits summed;	/* places inside functions to which their function adds something */

	struct vf_bits piece_start; /* old addresses */
	uint32_t *piece_rank;	    /* pieces before each 64 bits of piece_start */
	struct vf_bits cloned;	    /* old addresses of blocks with several copies */
	uint32_t *by_old;	    /* one piece per original block, ascending old_vaddr */
	uint32_t nr_by_old;
	uint32_t *empty; /* pieces without bytes, by their address, then their block's */
	uint32_t nr_empty;
	uint32_t *next_copy;	    /* per piece: another copy of the same block, or VF_NONE */
	struct vf_inlined *inlined; /* per piece */
	/* verify_ranges.c: addresses behind code at which nothing begins, and the end of memory */
	uint64_t ends[VF_ENDS_MAX], memory_end;
	uint64_t ends_low, ends_span; /* @ends lie in [low, low + span] */
	uint32_t nr_ends;
	uint32_t named_ends; /* a bit for each that an operand or a word of data names */
	bool walks_stack;    /* the original may ask for the functions that called its own */

	uint64_t *cuts; /* old text: function starts that nothing reaches over */
	uint32_t nr_cuts;

	uint32_t *section_now; /* per old section: its index now; 0: dropped */
	uint32_t symtab;       /* index of the old .symtab; 0: none */
};

/* verify_ranges.c. Before the scan: find the ends. In the scan: note the ends that an instruction names. */
void vf_find_ends(struct vf *vf);
void vf_note_end(struct vf *vf, uint64_t at, const struct vf_insn *insn);
/* Programs round the end of memory to 8, and to a page by adding 4095. */
#define VF_MEMORY_END_SPAN (7 + 4095)
/* Does @vaddr lie among the ends of code, or near that of memory? Few operands do. */
static inline bool vf_may_be_end(const struct vf *vf, uint64_t vaddr)
{
	return vaddr - vf->ends_low <= vf->ends_span ||
	       vaddr - vf->memory_end <= VF_MEMORY_END_SPAN;
}

static inline void vf_note_ends(struct vf *vf, uint64_t at, const struct vf_insn *insn)
{
	if ((insn->disp_off && vf_may_be_end(vf, insn->target)) ||
	    (insn->imm_size >= 4 && vf_may_be_end(vf, (uint64_t)insn->imm)))
		vf_note_end(vf, at, insn);
}

/* After the scan: mark functions that stay in place, since a table or bounds of a section name them. */
void vf_find_known(const struct vf *vf);
/* Find functions of which operands name bounds inside. Return: 0, -ENOMEM. */
int vf_find_bounds(const struct vf *vf);
/* verify_enclosing.c, after the scan: mark functions that the program may look for in its stack. */
void vf_find_asked(struct vf *vf);
/* verify_answers.c: find what code does with the import @name. */
void vf_find_uses(const struct vf *vf, const char *name, struct vf_uses *uses);
/* Find, and recognise, the section of the code that answers for copies. */
const struct mp_section *vf_answers(const struct vf *vf);
bool vf_is_answers_section(const struct vf *vf, const struct mp_section *sec);
/* Is the byte at @vaddr one of a call or jump that leads to this code now? *@next: behind that. */
bool vf_is_question(const struct vf *vf, uint64_t vaddr, uint64_t *next);
/* Check the code, its table, and all questions. Call after the pointers were checked. */
int vf_check_answers(const struct vf *vf);
/* Does the program ask where its code ends, or rely on where its memory ends? */
int vf_check_ranges(const struct vf *vf);

/* Set the message of a refusal, with address and symbol. Return: -EBADMSG. */
int vf_refuse(const struct vf *vf, uint64_t vaddr, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* @owner has proved these bytes of the output. Call it outside of vf_parallel(), and with ascending @off if possible. */
void vf_own(const struct vf *vf, uint64_t off, uint64_t size, enum me_owner owner);
void vf_own_at(const struct vf *vf, uint64_t vaddr, uint64_t size, enum me_owner owner);
/* Run at the end: has each byte of the output one owner? */
int vf_check_owned(const struct vf *vf);
void vf_owned_fini(struct vf_owned *owned);

/*
 * vf_go_on - @ret is the result of a check of one of many functions. If it refused the function,
 * notes that, so that the next functions can be checked, too.
 * Return: 0: go on; else @ret.
 */
int vf_go_on(const struct vf *vf, int ret);

/*
 * Give mapped pages back, which are most of verify's memory for large files. Later steps load again
 * what they need.
 */
static inline void vf_drop_pages(const struct vf *vf)
{
	mp_elf_drop_pages(vf->o);
	mp_elf_drop_pages(vf->n);
}

static inline void vf_drop_bytes(const struct mp_elf *elf, uint64_t start, uint64_t end)
{
	const uint8_t *bytes = mp_elf_bytes(elf, start, end - start);

	if (bytes)
		mp_elf_drop_bytes(elf, bytes, end - start);
}

static inline bool vf_is_text(const struct vf *vf, uint64_t vaddr)
{
	if (vaddr < vf->text_start || vaddr >= vf->text_end)
		return false;
	for (uint32_t i = 0; i < vf->nr_texts; i++)
		if (vaddr >= vf->texts[i].start && vaddr < vf->texts[i].end)
			return true;
	return false;
}

/* Return: a piece whose original starts at @old_vaddr, or NULL. */
const struct mp_map_piece *vf_piece_from(const struct vf *vf, uint64_t old_vaddr);
/* Return: a piece whose original contains @old_vaddr, or NULL. */
const struct mp_map_piece *vf_piece_holding(const struct vf *vf, uint64_t old_vaddr);
/* Return: index of the first piece whose copy starts at @new_vaddr or later. */
uint32_t vf_first_piece(const struct vf *vf, uint64_t new_vaddr);
/* Return: index of the piece with bytes that starts at @new_vaddr; nr_pieces: there is none. */
uint32_t vf_whole_piece(const struct vf *vf, uint64_t new_vaddr);
/* Does a copy of the block at @old start at @now? */
bool vf_is_copy(const struct vf *vf, uint64_t old, uint64_t now);
/* The same for a copy that is a later piece than @p, or has code. */
bool vf_is_copy_behind(const struct vf *vf, const struct mp_map_piece *p, uint64_t old,
		       uint64_t now);
/* May control that went to old address @old go to @now instead? */
bool vf_same_place(const struct vf *vf, uint64_t old, uint64_t now);

/*
 * Call @run for items 0 to @nr_items, @grain at once, on several threads. Each has a result and a
 * message of its own. The results are added to that of @vf.
 * Return: the result of the first @run that fails, with its message.
 */
int vf_parallel(const struct vf *vf, uint32_t nr_items, uint32_t grain,
		int (*run)(const struct vf *vf, void *ctx, uint32_t first, uint32_t end),
		void *ctx);
/* Fill @vf->cuts; needs the FDEs. Each cut lies at a whole word of the bitmaps of the text. */
int vf_find_cuts(struct vf *vf);
/* Find the counters and the runtime of an instrumented output. */
void vf_find_counters(struct vf *vf);
/* Is header @b header @a, extended by the counters? */
bool vf_is_phdr_with_counters(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b);
/* Is @sec one of the sections that only an instrumented output has? */
bool vf_is_counter_section(const struct vf *vf, const struct mp_section *sec);
/* Check that the runtime runs first and then continues where the original started. */
int vf_read_start(struct vf *vf);
/* Find, recognise and read the sections of an output that keeps path numbers in registers. */
void vf_find_paths(struct vf *vf);
bool vf_is_path_section(const struct vf *vf, const struct mp_section *sec);
int vf_read_paths(struct vf *vf);
/* Check what the stub @p does before it continues: bytes @b at @at. *@next: address behind
 * that. */
int vf_check_path_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		       uint64_t at, uint64_t *next);
/* Mark @p in @unproved unless @reg is proved dead at its block. Return: 0, -ENOMEM. */
int vf_check_dead(const struct vf *vf, const struct mp_map_piece *p, unsigned int reg);
/* Check instructions that poll, or note a number, at @at in the stub @p. Return: their length;
 * 0: they do something else; negative: refused. */
int vf_check_poll(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at);
int vf_check_note(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b, uint64_t at);
/* Report the function at @old_vaddr as one that is not proved. */
void vf_note_unproved(const struct vf *vf, uint64_t old_vaddr, uint16_t registers);
/* Call when all stubs were checked: refuses all marked stubs together. */
int vf_check_unproved(const struct vf *vf);
/* Build what vf_register_is_dead() needs. Call after the scan. */
int vf_read_registers(struct vf *vf);
void vf_registers_fini(struct vf *vf);
/* Find @may_lack, the instructions that serve only code markers. Call after the scan. Return: 0,
 * -ENOMEM. */
int vf_find_markers(struct vf *vf);
/* Is general register @reg dead at @vaddr of the original: does nothing read it before it is
 * set? Several threads may call this at once. Return: 1: yes, 0: not proved, -ENOMEM. */
int vf_register_is_dead(const struct vf *vf, uint64_t vaddr, unsigned int reg);
/* Does an unwinder need @reg at @vaddr to find the frame? Return: 1: yes, or not known; 0: no; -ENOMEM. */
int vf_unwinder_reads(const struct vf *vf, uint64_t vaddr, unsigned int reg);
/* Return: a bit for each general register that the instruction at @b reads or may set; all: not known. */
uint16_t vf_registers_of(const uint8_t *b, size_t avail);
/* Return: bits 8 to 15 for those of xmm8 to xmm15 that the instruction at @b names; or that any
 * instruction of the original names (needs the scan). */
uint32_t vf_vectors_of(const uint8_t *b, size_t avail);
uint32_t vf_named_vectors(const struct vf *vf);
/* May the output contain stubs: pieces that are copies of no block? */
static inline bool vf_has_stubs(const struct vf *vf)
{
	return vf->counters || vf->path_section || vf->waits;
}

/* Find and recognise the section of an output in which functions have two versions. */
void vf_find_audit(struct vf *vf);
bool vf_is_audit_section(const struct vf *vf, const struct mp_section *sec);
/* Read where the versions lie, and which pieces are exits. Needs the index of the pieces. */
int vf_read_audit(struct vf *vf);
/* Check that both versions of each function stay apart, with stubs around them. Call after the
 * pieces were checked. */
int vf_check_versions(const struct vf *vf);
/* Is @p a version's copy that ends in an indirect jump other than an exit? */
bool vf_is_switch(const struct vf *vf, const struct mp_map_piece *p);
/* Check the jump tables of audited functions. Call after the versions were checked. */
int vf_check_version_tables(const struct vf *vf);
bool vf_is_version_table_section(const struct vf *vf, const struct mp_section *sec);
/* Does @vaddr lie in the tables that versions have for themselves? */
bool vf_is_in_version_tables(const struct vf *vf, uint64_t vaddr);
/* Return: the version that holds @vaddr; NULL: none. */
const struct vf_version *vf_version_at(const struct vf *vf, uint64_t vaddr);
/* Do both addresses lie in one audited function, in different versions? */
bool vf_is_other_version(const struct vf *vf, uint64_t vaddr, uint64_t other);
/* Is @now an exit of an audited function, or a timing point, to which only a stub may lead? */
bool vf_is_guarded(const struct vf *vf, uint64_t now);
/* Is @p the stub at an exit of the audited function around it? */
bool vf_is_leave(const struct vf *vf, const struct mp_map_piece *p);
/* Return: the number of the timing point at @old_vaddr of an audited function; UINT32_MAX: none. */
uint32_t vf_point_at(const struct vf *vf, uint32_t function, uint64_t old_vaddr);
/* Is @p the stub at a timing point, which leads to its block in both versions? */
bool vf_is_point(const struct vf *vf, const struct mp_map_piece *p);
/* Return: address of the call in the stub @p of a timing point; 0: @p is none. */
uint64_t vf_point_call(const struct vf *vf, const struct mp_map_piece *p);
/* Return: the same for any stub that calls the runtime with the stack pointer below the red zone. */
uint64_t vf_lower_call(const struct vf *vf, const struct mp_map_piece *p);
/* Return: the end of @call. */
uint64_t vf_point_call_end(uint64_t call);
/* Is @now the row @old for a stack pointer below the red zone? */
bool vf_row_is_lower(const struct vf_row *old, const struct vf_row *now);
/* Does a stub start at @now that enters the versions of an audited function? */
bool vf_enters_versions(const struct vf *vf, uint64_t now);
/* Check what the stub @p of an audit does: bytes @b at @at. *@next: address behind that. */
int vf_check_audit_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
			uint64_t at, uint64_t *next);
/* Find, recognise and read the section of an output that samples calls by their number. */
void vf_find_calls(struct vf *vf);
bool vf_is_call_section(const struct vf *vf, const struct mp_section *sec);
int vf_read_calls(const struct vf *vf);
/* Return: address of the call in the stub @p that samples calls; 0: @p is another one. */
uint64_t vf_sample_call(const struct vf *vf, const struct mp_map_piece *p);
/* Check what the stub @p does: bytes @b at @at. *@next: address behind that. */
int vf_check_call_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		       uint64_t at, uint64_t *next);
/* Do counters count edges? Else the memory is for polls, audits or the clock of calls. */
static inline bool vf_counts_edges(const struct vf *vf)
{
	return vf->counters && !vf->path_section && !vf->audit_section && !vf->call_section;
}
/* If threads have their own counters, check that the original does not use %gs. Needs the scan. */
int vf_check_gs(const struct vf *vf);
/* Call after all stubs were checked: has each counter a stub? */
bool vf_all_are_counted(const struct vf *vf);
/* Check the instructions at @at in the stub @p that make sure the thread has its counters.
 * Return: their length; 0: they do something else; negative: refused. */
int vf_check_thread(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		    uint64_t at);
/* Check the stub @p: it counts, sets a register or waits, then continues at its block. */
int vf_check_stub(const struct vf *vf, const struct mp_map_piece *p);
/* Check the stub @p of an output that counts and numbers nothing: it waits. */
int vf_check_wait(const struct vf *vf, const struct mp_map_piece *p);
/* Are the arithmetic flags dead at @vaddr of the original? Without @carry, CF may be live. */
bool vf_flags_are_dead(const struct vf *vf, uint64_t vaddr, bool carry);
/* Return: where control is when it falls through the end of copy @p; UINT64_MAX: it cannot. */
uint64_t vf_falls_to(const struct vf *vf, const struct mp_map_piece *p);

/* May the new segment take the place of this program header? */
bool vf_may_drop_phdr(const struct vf *vf, const Elf64_Phdr *slot);

/*
 * verify_phdr_extend: the output has one program header more; @slot is the index of the new
 * one. First find the bytes that moved; check them when the segment is known; after the scan,
 * check all references to them.
 */
int vf_find_moved(struct vf *vf, uint32_t slot);
int vf_check_phdr_extend(const struct vf *vf);
int vf_check_moved(const struct vf *vf);
/* Is header @b header @a, which moved with its bytes? Is @b PT_PHDR @a of the larger table? */
bool vf_is_moved_phdr(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b);
bool vf_is_extended_table(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b);
/* Did this whole range of the original's file move? The others return the present address or
 * offset. */
bool vf_is_moved(const struct vf *vf, uint64_t off, uint64_t size);
uint64_t vf_vaddr_now(const struct vf *vf, uint64_t vaddr);
uint64_t vf_off_now(const struct vf *vf, uint64_t off);

/* Return: file offsets of the build-id that a PT_NOTE leads to; {0, 0}: none. */
struct vf_file_range vf_build_id(const struct mp_elf *elf);
/* The main checks, in order: headers; index of the map's pieces; scan of the old text; copies;
 * unwind data; all other differences. */
int vf_read_headers(struct vf *vf);
int vf_index_pieces(struct vf *vf);
int vf_scan(struct vf *vf);
/* verify_gap.c: set in @target those places of @maybe_target that must be believed. */
int vf_mark_gap_targets(struct vf *vf);
int vf_check_pieces(const struct vf *vf);
int vf_check_known(const struct vf *vf, const struct vf_fde *fde, uint64_t at);
/* Bytes of `call *slot(%rip)` and of `jmp *slot(%rip)`. */
#define VF_SLOT_BRANCH 6
/* Return: the slot of the PLT stub at @stub of the original; 0: there is no stub. */
uint64_t vf_stub_slot(const struct vf *vf, uint64_t stub);
/*
 * Is the instruction at offset @k of the copy @p a call, or a jump, through the slot of the PLT
 * stub that the last instruction of the original calls, or jumps to?
 */
bool vf_is_via_slot(const struct vf *vf, const struct mp_map_piece *p, uint64_t k);
/* The same for calls only. */
bool vf_is_slot_call(const struct vf *vf, const struct mp_map_piece *p, uint64_t k);
/* Is @p such a piece? It is no copy to which anything from outside may lead. */
static inline bool vf_is_inlined(const struct vf *vf, const struct mp_map_piece *p)
{
	return vf->inlined[p - vf->map->pieces].behind;
}
/* Return: the piece before all parts, which lacks the call that the inlined piece @p replaces. */
static inline const struct mp_map_piece *vf_inlined_caller(const struct vf *vf,
							   const struct mp_map_piece *p)
{
	return vf->map->pieces + vf->inlined[p - vf->map->pieces].behind - 1;
}
/* Read the unwind data of the output, and find out which personality routines verify knows. */
int vf_read_unwind(struct vf *vf);
int vf_check_unwind(const struct vf *vf);
/* Part of vf_check_unwind(): check that every byte of the new exception tables has a meaning. */
int vf_check_lsdas(const struct vf *vf);
/* Does the section hold the program's own words? The loader's tables and notes do not. */
bool vf_holds_words(const struct vf *vf, const struct mp_section *sec);
/* Mark functions of which data may hold return addresses. Call at the end of the scan. */
void vf_find_return_words(const struct vf *vf);
/* Find functions whose code the program may read, and @bases. Return: 0, -ENOMEM. */
int vf_find_reads(struct vf *vf);
/* How the program uses an address in code. */
enum vf_use {
	VF_USED,
	VF_COMPARES, /* asks whether something lies before or behind it */
	VF_READS,    /* reads from there */
	VF_COMPUTES, /* adds to it, or subtracts, and may read from there as well */
};

/* The code that an operand of @names leads to, itself or by a cell that the loader fills in; 0: none. */
uint64_t vf_named_code(const struct vf *vf, const struct vf_ref *name);
/* Find functions between two addresses of @names; @use: enum vf_use of each. Return: 0, -ENOMEM. */
int vf_find_bounded(const struct vf *vf, const uint8_t *use);
/* Mark functions of which data may know places. Needs @bases and @refs in order. */
void vf_find_places(const struct vf *vf);
/* Find functions whose own addresses are labels. Call at the end of the scan. */
int vf_find_labels(const struct vf *vf);
/* May the address @old, inside a function, be replaced by its copy's address everywhere? */
bool vf_label_may_move(const struct vf *vf, uint64_t old);
/* Static probes (SystemTap): mark them as possible targets; check that their blocks were not
 * copied. */
void vf_mark_probes(struct vf *vf);
int vf_check_probes(const struct vf *vf);
int vf_check_diff(const struct vf *vf);
/*
 * verify_padding.c: may the jump at @at, over the start of the function @fde, reach up to @end, behind the
 * function?
 */
bool vf_patch_may_reach(const struct vf *vf, const struct vf_fde *fde, uint64_t at, uint64_t end);
/* The word at @vaddr differs: prove that it is an entry of a jump table that leads to a copy
 * now. *@next: the first address behind the word. */
int vf_check_table_word(const struct vf *vf, uint64_t vaddr, uint64_t *next);
/*
 * Prove that a table of labels that only jumps use starts at @start. *@size: of its entries; *@end:
 * behind the last word that may be one.
 */
int vf_prove_table(const struct vf *vf, uint64_t start, uint8_t *size, uint64_t *end);
int vf_prove_switch(const struct vf *vf, uint64_t at, uint8_t size);
/* With relocations: do all instructions that name @start read a table of offsets there, and jump to what an
 * entry says? */
bool vf_starts_table(const struct vf *vf, uint64_t start);
/* vf_check_table_word() without relocations: proved by the instructions that read the table. */
int vf_check_switch_word(const struct vf *vf, uint64_t vaddr, uint64_t *next);
/* May @to be the start of a jump table? If so, the scan keeps the references to it. */
bool vf_may_be_switch(const struct vf *vf, uint64_t to);
/* Return: index in @refs of the first reference to @to or to a later address. */
size_t vf_first_ref(const struct vf *vf, uint64_t to);
/* Return: the only function whose operands name the table at @base, if it jumps indirectly; or
 * NULL. */
const struct vf_fde *vf_table_user(const struct vf *vf, uint64_t base);
/* vf_is_table_word - is the 8-byte word at @at an entry of a table that only one function's jumps read? */
bool vf_is_table_word(const struct vf *vf, uint64_t at);
/* Static programs: check that every reference to .eh_frame changed. */
int vf_check_eh_refs(const struct vf *vf);
/* Find the references to .eh_frame in an original without relocations. Needs its FDEs. */
void vf_find_eh_fields(struct vf *vf);
/* vf_check_table_word() for a word whose Elf64_Rela, at file offset @off, differs. */
int vf_check_table_addend(const struct vf *vf, uint64_t off);
/* Check that table words that were equal are still equal. */
int vf_check_table_values(const struct vf *vf);
/*
 * Note that the address @old was replaced by @now somewhere.
 * Return: false if @now is neither @old nor the copy of the function that starts at @old.
 */
bool vf_note_pointer(const struct vf *vf, uint64_t old, uint64_t now);
/*
 * The same for a dynamic symbol's value. Without the linker's relocations, no other word or operand of a function may
 * change, and in a program with fixed addresses not even that.
 */
bool vf_note_symbol(const struct vf *vf, uint64_t old, uint64_t now);
/* vf_note_pointer() for the 4 bytes @now at @at, which hold an absolute address by relocation. */
bool vf_note_field(const struct vf *vf, uint64_t at, const uint8_t *now);
void vf_note_operand(const struct vf *vf, uint64_t insn, uint8_t len, uint64_t to);
/* Find the output's section for each one of the original. */
int vf_read_sections(struct vf *vf);
/* Check that the map's notes hold nothing but the map, and name the calls that inlined pieces replace. */
int vf_check_map_note(const struct vf *vf);
int vf_check_symbols(const struct vf *vf);
/* Do [@start, @start + @size) cover whole copies, with some of the function at @old unless it is 0? *@last: the last. */
bool vf_is_run(const struct vf *vf, uint64_t old, uint64_t start, uint64_t size, uint32_t *last);
/* Check what is not loaded: section headers, other sections, padding. Then check .symtab. */
int vf_check_sections(const struct vf *vf);
/* Check that the output names its debug file; then that file. */
int vf_check_link(const struct vf *vf);
int vf_check_debug(const struct vf *vf);
/* Check the entries of debug information: verify/debug. */
int vf_check_debug_info(const struct vf *vf);
/* Is @sec the section .gnu_debuglink, which may differ? vf_check_debug() checks its contents. */
bool vf_is_link(const struct vf *vf, const struct mp_section *sec);
/* Check a note section of a debug file: @a before, @b now. */
int vf_check_kept_note(const struct vf *vf, const struct mp_section *a, const struct mp_section *b);
/* Run after all other checks: does every function have one address only? */
int vf_check_pointers(const struct vf *vf);

#endif
#include "editor/verify/verify_inline_private.h"
