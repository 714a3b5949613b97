// SPDX-License-Identifier: Apache-2.0
/*
 * plan - the blocks that move, their order, and why. Layout's only output; emit's only input,
 * beside instrumentation.h for an output with stubs.
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

struct me_leaf;

struct me_plan_block {
	uint32_t block; /* cfg block index; unique, but for clones and stubs */
	uint8_t zone;	/* enum me_zone */
	uint8_t why;	/* enum me_why */
	/* The new address is the next one that is @align_offset modulo 1 << @align_log2. */
	uint8_t align_log2, align_offset;
	uint8_t new_line;    /* its cache line holds no code of the blocks before it */
	uint8_t favour_fall; /* if neither successor follows: the fall-through is likelier */
	uint8_t clone;	  /* one more copy; only the block before it falls into it, unless @apart */
	uint8_t run;	  /* number of blocks, from here on, to keep in few lines */
	uint8_t loop;	  /* the same for the loop that begins here; 0: none does */
	uint8_t pad;	  /* the loop is worth no-ops before it, which execute */
	uint8_t stub;	  /* no copy, but a stub before @block (instrumentation.h) */
	uint8_t version;  /* enum me_version */
	uint8_t left_out; /* the copy has no instruction of the block, which only falls through */
	/* The call or jump of a PLT stub at the block's end goes through the stub's slot. */
	uint8_t via_slot;
	/*
	 * A called function's instructions replace the call at the block's end: 1 + index in the plan's
	 * leaves; 0: none do.
	 */
	uint16_t inlined;
	/* Only that part of a called function's instructions that lies apart from the block's copy. */
	uint8_t apart;
	float heat; /* how often the block is executed, if a run or a loop begins here */
};

/* Size of a cache line, for @new_line. */
#define ME_LINE_LOG2 6

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

/* A call that the called function's code replaces. */
struct me_plan_call {
	uint64_t end;  /* of the call's instruction */
	uint16_t leaf; /* 1 + index in the plan's leaves; a plan's file lacks it */
	uint8_t last; /* the part that stands last beside the call, as me_leaf_find() numbers them; 0: none is moved */
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
 * any of its blocks is, and first among its blocks in its zone; stubs may precede it. What lies
 * apart is behind all of them, in the order of the blocks that it belongs to. */
struct me_plan {
	struct me_plan_block *blocks;
	uint32_t nr_blocks;
	struct me_redirects redirects;
	struct me_leaf *leaves; /* functions that replace calls (rewrite/leaf.h) */
	uint32_t nr_leaves;
	uint8_t line_log2; /* size of a fetch; 0: runs do not matter */
	uint8_t page_log2; /* page size that the new code fills up to; 0: none */
	/* For processes that run already: the new segment begins here, or at the next aligned address. 0: for none. */
	uint64_t live_at;
};

/* Frees what @plan holds, not @plan itself. */
static inline void me_plan_fini(struct me_plan *plan)
{
	free(plan->blocks);
	free(plan->leaves);
	me_redirects_fini(&plan->redirects);
	plan->blocks = NULL;
	plan->leaves = NULL;
	plan->nr_blocks = plan->nr_leaves = 0;
}

#endif
