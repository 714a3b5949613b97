// SPDX-License-Identifier: Apache-2.0
/*
 * verify_context - what is known of original and output: the context of all checks. Steps that read fill it; steps that
 * check get it const.
 *
 * Order of work: headers, eh (unwind sections), scan (decodes the old text once: starts
 * of instructions, possible targets, references to data), pieces, unwind, then diff: every
 * changed byte must belong to one kind of change that is proved on its own.
 */
#ifndef ME_VERIFY_CONTEXT_H
#define ME_VERIFY_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_report.h"
#include "libprof/elf/elf.h"
#include "libprof/note/audit_table.h"
#include "libprof/note/edge_table.h"
#include "libprof/note/map.h"
#include "libprof/note/path_table.h"

struct vf_graph;

#define VF_NONE UINT32_MAX

struct vf_ref {
	uint64_t to, insn;
};

/* [start, end), of addresses or of places in a file. */
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
	uint64_t *flag_steps; /* the same: instructions that verify_flags.c followed for its stubs */
	uint64_t unwind_work; /* bytes of unwind information that were read for copies */
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

/* Facts about the original, which verify finds without the map. */
struct vf_old {
	struct vf_eh eh;
	uint64_t text_start, text_end;	     /* span of the original's executable sections */
	struct vf_range texts[VF_TEXTS_MAX]; /* their spans in each segment; data lies between */
	uint32_t nr_texts;
	uint64_t image_start, image_end; /* span of the original's file-backed segments */
	uint64_t alloc_end;		 /* file offset behind the last of these segments */
	struct vf_uses asking;		 /* uses of _Unwind_FindEnclosingFunction() */
	struct vf_bits grid;		 /* instruction starts of the old text */
	struct vf_bits target;		 /* old text: possible targets of control */
	struct vf_bits sure_target;	 /* places that certain code or a symbol leads to */
	struct vf_bits maybe_target;	 /* targets of bytes outside of FDEs, if these are code */
	struct vf_bits maybe_address;	 /* numbers without relocation that may be code addresses */
	struct vf_bits text_ref;	 /* text addresses that operands name */
	struct vf_bits data_ref;	 /* data addresses that operands name */
	struct vf_bits entries;		 /* of functions; only for outputs for running processes */
	struct vf_bits may_lack;	 /* instructions that copies may lack: verify_marker.c */
	struct vf_bits word_ref;	 /* addresses that words of data name */
	struct vf_bits label_word;	 /* words of data that hold a text address by relocation */
	struct vf_refs refs;
	struct vf_refs names; /* operands of functions that name code, or cells of the GOT */
	uint64_t *bases;      /* addresses in code to which code adds, or from which it subtracts */
	uint32_t nr_bases;
	uint32_t loop_steps;	/* instructions that were read for vf_are_compared */
	uint64_t got_base;	/* _GLOBAL_OFFSET_TABLE_; 0: none */
	struct vf_range got;	/* section .got */
	uint32_t first_dynamic; /* of the original's symbols; set by vf_find_reads() */
	struct vf_bits cold;	/* starts of code that symbols call a function's cold part */
	struct vf_bits summed;	/* places inside functions to which their function adds something */
	/* verify_ranges.c: addresses behind code at which nothing begins, and the end of memory */
	uint64_t ends[VF_ENDS_MAX], memory_end;
	uint64_t ends_low, ends_span; /* @ends lie in [low, low + span] */
	uint32_t nr_ends;
	uint32_t named_ends; /* a bit for each that an operand or a word of data names */
	bool walks_stack;    /* the original may ask for the functions that called its own */
	uint64_t *cuts;	     /* old text: function starts that nothing reaches over */
	uint32_t nr_cuts;
	uint32_t symtab; /* index of the old .symtab; 0: none */
};

/* Facts about the output's headers, sections and unwind information. */
struct vf_now {
	struct vf_eh eh;
	const Elf64_Phdr *segment;  /* the output's new one */
	bool has_new_phdr;	    /* the output has one program header more */
	struct vf_moved moved;	    /* bytes that moved to make room for it */
	const Elf64_Phdr *eh_frame; /* the output's PT_GNU_EH_FRAME; NULL: static program */
	uint64_t eh_fields[2];	    /* without relocations: fields to change; 0: none */
	uint64_t eh_label;	    /* the old address that these fields hold */
	const struct mp_section *text;
	const struct mp_section *live; /* MP_LIVE_SECTION; NULL: not for processes that run already */
	const struct mp_section *answers; /* the code that answers for copies; NULL: none does */
	uint32_t *section;		  /* per old section: its index now; 0: dropped */
};

/* Outputs with stubs: counters, path numbers, versions of audited functions. */
struct vf_stubs {
	const struct mp_section *counters, *runtime; /* NULL: the output counts nothing */
	uint64_t nr_counters;
	uint64_t thread_state; /* the runtime's state for counters per thread; 0: shared */
	uint64_t init_entry;   /* file offset of the dynamic entry for the runtime; 0: none */
	const struct mp_section *meter_section; /* NULL: not only a few places are counted */
	struct mp_edge_table *meter;
	const struct mp_section *audit_section; /* NULL: no function has two versions */
	const struct mp_section *call_section;	/* NULL: no clock of calls */
	struct mp_audit_table *audited;
	struct vf_version *versions; /* ranges of both versions of all functions, ascending */
	uint32_t nr_versions;
	const struct mp_section *version_tables; /* NULL: no version has a table for itself */
	struct vf_bits guarded; /* new text: exits, to which only the stub before them leads */
	struct vf_bits exits;	/* old text: these exits */
	const struct mp_section *path_section; /* NULL: the output keeps no path numbers */
	struct mp_path_table *paths;
	uint32_t named_vectors; /* with polls, bit n: the original names xmm<n> */
	bool waits;		/* without counters and path numbers: there are stubs, which wait */
	uint32_t *returned; /* per FDE of the original: flags that its callers may read; NULL: no counters */
	uint32_t returned_outside; /* the same for code without unwind information */
	struct vf_graph *graph;	   /* of verify_free_registers; only if stubs set registers */
};

/* The map's pieces by their old and new addresses. */
struct vf_index {
	struct vf_bits piece_start; /* old addresses */
	uint32_t *piece_rank;	    /* pieces before each 64 bits of piece_start */
	struct vf_bits cloned;	    /* old addresses of blocks with several copies */
	uint32_t *by_old;	    /* one piece per original block, ascending old_vaddr */
	uint32_t nr_by_old;
	uint32_t *empty; /* pieces without bytes, by their address, then their block's */
	uint32_t nr_empty;
	uint32_t *next_copy;	    /* per piece: another copy of the same block, or VF_NONE */
	struct vf_inlined *inlined; /* per piece */
};

/*
 * The context of all checks: what is known of original and output. Steps that read fill it: vf_find_*(), vf_read_*(),
 * vf_mark_*(), the headers and the scan. Steps that check get it const, and write only through
 * @result, @marks, @refusals and @err.
 */
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
	unsigned int worker; /* in a call of vf_parallel(): which thread, below MP_PARALLEL_MAX */
	struct mp_map *map;
	struct vf_owned *owned; /* who checked which bytes of @n */

	struct vf_old old;
	struct vf_now now;
	struct vf_stubs stubs;
	struct vf_index index;
};

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

/* Does the section hold code that the file has? */
static inline bool vf_is_text_section(const struct mp_section *sec)
{
	return (sec->flags & SHF_ALLOC) && (sec->flags & SHF_EXECINSTR) &&
	       sec->type != SHT_NOBITS && sec->size;
}

static inline bool vf_is_text(const struct vf *vf, uint64_t vaddr)
{
	if (vaddr < vf->old.text_start || vaddr >= vf->old.text_end)
		return false;
	for (uint32_t i = 0; i < vf->old.nr_texts; i++)
		if (vaddr >= vf->old.texts[i].start && vaddr < vf->old.texts[i].end)
			return true;
	return false;
}

/* Return: index of the first piece whose copy starts at @new_vaddr or later. */
uint32_t vf_first_piece(const struct vf *vf, uint64_t new_vaddr);

/* May the output contain stubs: pieces that are copies of no block? */
static inline bool vf_has_stubs(const struct vf *vf)
{
	return vf->stubs.counters || vf->stubs.path_section || vf->stubs.waits;
}

/* Return: the version that holds @vaddr; NULL: none. */
const struct vf_version *vf_version_at(const struct vf *vf, uint64_t vaddr);

/* Is @now an exit of an audited function, or a timing point, to which only a stub may lead? */
static inline bool vf_is_guarded(const struct vf *vf, uint64_t now)
{
	return vf->stubs.audit_section && vf_bits_get(&vf->stubs.guarded, now);
}

/* Do counters count edges? Else the memory is for polls, audits or the clock of calls. */
static inline bool vf_counts_edges(const struct vf *vf)
{
	return vf->stubs.counters && !vf->stubs.path_section && !vf->stubs.audit_section &&
	       !vf->stubs.call_section;
}

/* Is @p such a piece? It is no copy to which anything from outside may lead. */
static inline bool vf_is_inlined(const struct vf *vf, const struct mp_map_piece *p)
{
	return vf->index.inlined[p - vf->map->pieces].behind;
}

/* Return: the piece before all parts, which lacks the call that the inlined piece @p replaces. */
static inline const struct mp_map_piece *vf_inlined_caller(const struct vf *vf,
							   const struct mp_map_piece *p)
{
	return vf->map->pieces + vf->index.inlined[p - vf->map->pieces].behind - 1;
}

/* Return: index in @refs of the first reference to @to or to a later address. */
size_t vf_first_ref(const struct vf *vf, uint64_t to);

#endif
