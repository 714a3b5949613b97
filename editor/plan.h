// SPDX-License-Identifier: Apache-2.0
/*
 * plan - layout's only output and emit's only input: the blocks that move, their order, and
 * why.
 *
 * Plain data: indexes into a struct mp_cfg, and addresses of the original. Layout is tested
 * without an ELF file. verify trusts nothing in it.
 */
#ifndef ME_PLAN_H
#define ME_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum me_zone {
	ME_ZONE_HOT,  /* blocks that run: packed, ordered by affinity */
	ME_ZONE_WARM, /* copied in case they run (unsampled is not cold), behind hot code */
	ME_NR_ZONES
};

/* Copies of an audited function. Control in one version stays there. */
enum me_version {
	ME_VERSION_NEW,		     /* B, in the new order; or a function has but one version */
	ME_VERSION_ORIGINAL,	     /* A, in the original's order; the stub at the entry as well */
	ME_VERSION_ORIGINAL_UNTIMED, /* the same order as A, without stubs */
	ME_VERSION_NEW_UNTIMED,	     /* the same order as B, without stubs */
	ME_NR_VERSIONS
};

enum me_why {
	ME_WHY_ORIGINAL,  /* hot copy without reordering */
	ME_WHY_FLOW,	  /* inferred to run */
	ME_WHY_UNSAMPLED, /* no evidence either way */
	ME_WHY_TAIL,	  /* a clone: saves a jump to a short exit */
	ME_WHY_STUB,	  /* a stub: counts, or keeps numbers */
};

struct me_plan_block {
	uint32_t block; /* cfg block index; unique, but for clones and stubs */
	uint8_t zone;	/* enum me_zone */
	uint8_t why;	/* enum me_why */
	/* The new address is the next one that is @align_offset modulo 1 << @align_log2. */
	uint8_t align_log2, align_offset;
	uint8_t new_line;    /* its cache line holds no code of the blocks before it */
	uint8_t favour_fall; /* if neither successor follows: the fall-through is likelier */
	uint8_t clone;	     /* one more copy; only the block before it falls into it */
	uint8_t run;	     /* number of blocks, from here on, to keep in few lines */
	uint8_t stub;	     /* no copy, but a stub before @block: the next of @stubs */
	uint8_t version;     /* enum me_version */
	uint8_t left_out; /* the copy has no instruction of the block, which only falls through */
};

/* The paths to a block that lead through a stub. */
enum me_stub_arrivals {
	ME_STUB_ALL,	 /* all paths */
	ME_STUB_OUTSIDE, /* from outside of the function */
	ME_STUB_EDGE,	 /* from the end of one block */
	ME_STUB_POLL,	 /* from the stub that polls before the block */
};

enum me_stub_does {
	ME_STUB_COUNTS, /* adds 1 to @counter (instrument.h) */
	ME_STUB_SETS,	/* @reg = @value (number.h) */
	ME_STUB_ADDS,	/* @reg = @reg_from + @value */
	ME_STUB_PASSES, /* nothing; it polls */
	ME_STUB_NOTES,	/* notes @reg for block @counter (poll_code.h) */
	ME_STUB_WAITS,	/* runs @value nops of one byte (layout/adjust.h) */
	ME_STUB_ENTERS, /* goes to a version of audited function @counter (audit_code.h) */
	ME_STUB_LEAVES, /* stops the timing of audited function @counter */
	ME_STUB_TIMES,	/* counts rounds of a loop of it, which may end a timing and begin one */
};

/* Size of a cache line, for @new_line. */
#define ME_LINE_LOG2 6

/* How counters behave when several threads count at once. */
enum me_counters {
	ME_COUNTERS_PLAIN,   /* some counts are lost */
	ME_COUNTERS_ATOMIC,  /* exact, but processors wait for each other */
	ME_COUNTERS_THREADS, /* each thread has counters of its own */
};

/* A stub: one instruction, perhaps a check before and a poll behind it; then control goes to
 * the block. */
struct me_stub {
	uint32_t counter; /* index; of ME_STUB_NOTES: block in the table */
	/* value that is set, at least 0, or added; number of nops; of ME_STUB_ENTERS: the function
	 * has timing points; of ME_STUB_TIMES: least rounds */
	int32_t value;
	uint32_t from;	       /* of ME_STUB_EDGE: cfg block index */
	uint8_t arrivals;      /* enum me_stub_arrivals */
	uint8_t does;	       /* enum me_stub_does */
	uint8_t reg, reg_from; /* as instructions encode them */
	uint8_t scratch;       /* of ME_STUB_NOTES: another register */
	bool checks;	       /* first makes sure that the thread has counters */
	uint8_t point;	       /* of ME_STUB_TIMES: index of the timing point */
	uint8_t version;       /* of ME_STUB_TIMES: enum mp_audit_version */
	uint8_t vector;	       /* xmm8 to xmm15 saves @scratch; 0: @scratch is free */
	bool polls;	       /* if a poll is due, control takes the stub that notes */
};

/* Addresses that instructions of stubs use. */
struct me_stub_places {
	uint64_t counters;     /* of the first counter, or the polls */
	uint64_t state;	       /* of struct me_thread_state, with counters per thread */
	uint64_t thread;       /* of the runtime's entry for a thread without counters */
	uint64_t notes;	       /* of the stub that notes, for a stub that polls */
	uint64_t enter, leave; /* of the runtime's entries for audits */
	uint64_t point;	       /* of the runtime's entry for loops */
	/* of version B, for the stub at the entry of an audited function; of the same block in the
	 * other version, for a stub in a loop */
	uint64_t other;
	uint64_t untimed[2]; /* of both versions without stubs, for the stub at the entry */
};

enum me_site_kind {
	ME_SITE_WORD,  /* 8 bytes of data, and the addend of a dynamic relocation */
	ME_SITE_ABS32, /* 4 bytes, absolute: an immediate, or data */
	ME_SITE_REL32, /* displacement of a lea, relative to the field's end */
};

/* A place in the file that holds the address of a function or a label. */
struct me_site {
	uint64_t vaddr;	 /* of the field */
	uint64_t target; /* old address of the function's entry, or of the label */
	uint8_t kind;	 /* enum me_site_kind */
};

/* Functions and labels whose addresses become those of their copies (evidence/redirect.h). */
struct me_redirects {
	uint8_t *functions;    /* per cfg function; NULL: no function, and no label */
	uint8_t *labels;       /* per cfg function: its labels with copies change, too */
	struct me_site *sites; /* ascending vaddr; each holds the address of one of these */
	uint32_t nr_sites;
	uint32_t nr_functions; /* without those to which no reference leads */
	uint32_t nr_labels;    /* functions whose labels change */
};

static inline void me_redirects_fini(struct me_redirects *redirects)
{
	free(redirects->functions);
	free(redirects->labels);
	free(redirects->sites);
	*redirects = (struct me_redirects){0};
}

/* Blocks in the order of their new addresses: all of ME_ZONE_HOT first, then ME_ZONE_WARM; inside
 * a zone the blocks of one function are contiguous. A function's entry block is in the plan if
 * any of its blocks is, and first among its blocks in its zone; stubs may precede it. */
struct me_plan {
	struct me_plan_block *blocks;
	uint32_t nr_blocks;
	struct me_redirects redirects;
	uint8_t line_log2;     /* size of a fetch; 0: runs do not matter */
	uint8_t page_log2;     /* page size that the new code fills up to; 0: none */
	struct me_stub *stubs; /* the stubs among @blocks, in order */
	uint32_t nr_stubs;
	uint32_t nr_counters; /* of 8 bytes */
	uint8_t counters;     /* enum me_counters */
	bool polls;	      /* the counters are a struct mp_polls, and a page behind it */
	uint32_t nr_audited;  /* functions with two versions: the counters are their slots */
	/* what the stubs mean, by edge_table or path_table; NULL: nothing, or emit makes it */
	uint8_t *table;
	size_t table_size;
	const char *table_name;	 /* name of the table's section; not owned */
	const char *counts_path; /* file that a run maps its counters to; not owned */
};

/* Frees what @plan holds, not @plan itself. */
static inline void me_plan_fini(struct me_plan *plan)
{
	free(plan->blocks);
	free(plan->stubs);
	free(plan->table);
	me_redirects_fini(&plan->redirects);
	plan->blocks = NULL;
	plan->stubs = NULL;
	plan->table = NULL;
	plan->nr_blocks = plan->nr_stubs = 0;
}

#endif
