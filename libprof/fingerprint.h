// SPDX-License-Identifier: Apache-2.0
/*
 * fingerprint - what a build looks like without its addresses: enough to find its functions and
 * blocks again in another build of the same program, when the file itself is gone.
 *
 * Each function has hashes of its name and of its code. A function with samples has its blocks,
 * too: a block's hashes, the edges to its successors and its calls. The neighbours' hashes follow
 * from the edges, so they are not kept. Called by stale (matching), by store_fingerprint (which
 * keeps the bytes) and by the tests.
 */
#ifndef MP_FINGERPRINT_H
#define MP_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"
#include "libprof/profile.h"

struct mp_print_edge {
	uint32_t to;  /* block, counted from the function's first */
	uint8_t kind; /* enum mp_edge_kind */
};

struct mp_print_call {
	uint32_t off;	 /* of the call, from the block's start */
	uint32_t callee; /* function, or MP_NONE: indirect, another module's, or not known */
};

struct mp_print_block {
	uint64_t vaddr;
	uint32_t size;
	uint32_t nr_insns; /* that were hashed: no-ops and direct jumps are not */
	uint32_t term_off; /* of the branch at its end; @size: there is none */
	/* Of the instructions with registers and constants, in their order. Addresses are left out. */
	uint16_t full;
	uint16_t loose;		       /* of the opcodes alone, in any order */
	uint32_t first_edge, nr_edges; /* jumps through one table share them */
	uint32_t first_call, nr_calls;
};

struct mp_print_func {
	uint64_t vaddr;	    /* entry */
	uint32_t name;	    /* hash; 0: stripped */
	uint32_t full;	    /* of all blocks' instructions and edges */
	uint32_t loose;	    /* of all blocks' opcodes; 0 where the blocks were not kept */
	uint32_t nr_blocks; /* in all, kept or not */
	uint32_t first_block, nr_kept; /* in @blocks; @nr_kept is 0 or @nr_blocks */
	uint32_t entry; /* the block at @vaddr, from the first; MP_NONE: there is none */
};

struct mp_fingerprint {
	struct mp_print_func *funcs; /* ascending @vaddr */
	uint32_t nr_funcs;
	struct mp_print_block *blocks; /* of each function ascending @vaddr */
	uint32_t nr_blocks;
	struct mp_print_edge *edges;
	uint32_t nr_edges;
	struct mp_print_call *calls;
	uint32_t nr_calls;
};

/* All blocks together lead so many ways at most: what would be more is left out. php has 3 million. */
#define MP_PRINT_WAYS_MAX (1u << 24)

/*
 * mp_fingerprint_make - of @cfg's file. @counts (ascending vaddr): keep the blocks of functions in
 * which any of them falls, and of those that @edges begin in; both NULL: keep all blocks.
 * Return: 0, -ENOMEM. Ownership: mp_fingerprint_fini(@out).
 */
int mp_fingerprint_make(const struct mp_cfg *cfg, const struct mp_ip_count *counts,
			size_t nr_counts, const struct mp_edge_count *edges, size_t nr_edges,
			struct mp_fingerprint *out, struct mp_err *err);
void mp_fingerprint_fini(struct mp_fingerprint *print);

/* As bytes; the format is in Documentation/abi.md. Ownership: free(*@out). Return: 0, -ENOMEM. */
int mp_fingerprint_encode(const struct mp_fingerprint *print, uint8_t **out, size_t *size,
			  struct mp_err *err);
/* Anything may be in @bytes. Return: 0, -ENOMEM, -EBADMSG. Ownership: mp_fingerprint_fini(@out). */
int mp_fingerprint_decode(const uint8_t *bytes, size_t size, struct mp_fingerprint *out,
			  struct mp_err *err);

/* ---- one instruction (fingerprint_insn.c) --------------------------------------------------- */

struct mp_print_insn {
	bool hashed;	/* false: a no-op, a direct jump, a mark for indirect branches */
	uint32_t full;	/* with registers and constants, without addresses */
	uint32_t loose; /* the opcode alone */
};

/*
 * @bytes: @insn's own. A 32-bit constant from @low to @high may be an address, and is left out;
 * both 0 where the file may lie anywhere, since constants are not addresses then.
 */
struct mp_print_insn mp_print_insn(const uint8_t *bytes, const struct mp_insn *insn, uint64_t low,
				   uint64_t high);
uint32_t mp_print_mix(uint32_t a, uint32_t b);

#endif
