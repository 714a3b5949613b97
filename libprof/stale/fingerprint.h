// SPDX-License-Identifier: Apache-2.0
/*
 * fingerprint - describes a build without its addresses. It suffices to find the functions
 * and blocks again in another build of the same program when the file itself is gone.
 *
 * Each function has hashes of its name and of its code. A function with samples also has
 * its blocks: a block's hashes, the edges to its successors, and its calls. Hashes of
 * neighbours follow from the edges and are not kept. Called by stale (matching), by
 * store_fingerprint (which keeps the bytes) and by the tests.
 */
#ifndef MP_FINGERPRINT_H
#define MP_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"
#include "libprof/infer/profile.h"

struct mp_print_edge {
	uint32_t to;  /* block, relative to the function's first */
	uint8_t kind; /* enum mp_edge_kind */
};

struct mp_print_call {
	uint32_t off;	 /* offset of the call in the block */
	uint32_t callee; /* function; MP_NONE: indirect, in another module, or unknown */
};

struct mp_print_block {
	uint64_t vaddr;
	uint32_t size;
	uint32_t nr_insns; /* hashed ones only: no-ops and direct jumps are left out */
	uint32_t term_off; /* offset of the branch at the end; @size: there is none */
	/* Hash of the instructions in order, with registers and constants, without addresses. */
	uint16_t full;
	uint16_t loose;		       /* hash of the opcodes alone, in any order */
	uint32_t first_edge, nr_edges; /* jumps through one table share their edges */
	uint32_t first_call, nr_calls;
};

struct mp_print_func {
	uint64_t vaddr;	    /* entry */
	uint32_t name;	    /* hash; 0: stripped */
	uint32_t full;	    /* hash of all blocks' instructions and edges */
	uint32_t loose;	    /* hash of all blocks' opcodes; 0 if the blocks were not kept */
	uint32_t nr_blocks; /* all blocks, kept or not */
	uint32_t first_block, nr_kept; /* in @blocks; @nr_kept is 0 or @nr_blocks */
	uint32_t entry; /* index of the block at @vaddr, from the first; MP_NONE: none */
};

struct mp_fingerprint {
	struct mp_print_func *funcs; /* ascending @vaddr */
	uint32_t nr_funcs;
	struct mp_print_block *blocks; /* ascending @vaddr within each function */
	uint32_t nr_blocks;
	struct mp_print_edge *edges;
	uint32_t nr_edges;
	struct mp_print_call *calls;
	uint32_t nr_calls;
};

/* Limit of the edges of all blocks together; further edges are left out. php has 3 million. */
#define MP_PRINT_WAYS_MAX (1u << 24)

/*
 * mp_fingerprint_make - fingerprint of @cfg's file. Keeps the blocks of functions that hold
 * an address of @counts (ascending vaddr) or the start of one of @edges; both NULL: of all
 * functions.
 * Return: 0, -ENOMEM. Ownership: mp_fingerprint_fini(@out).
 */
int mp_fingerprint_make(const struct mp_cfg *cfg, const struct mp_ip_count *counts,
			size_t nr_counts, const struct mp_edge_count *edges, size_t nr_edges,
			struct mp_fingerprint *out, struct mp_err *err);
void mp_fingerprint_fini(struct mp_fingerprint *print);

/*
 * Converts to bytes; the format is in Documentation/abi.md. Return: 0, -ENOMEM. Ownership:
 * free(*@out).
 */
int mp_fingerprint_encode(const struct mp_fingerprint *print, uint8_t **out, size_t *size,
			  struct mp_err *err);
/* @bytes are untrusted. Return: 0, -ENOMEM, -EBADMSG. Ownership: mp_fingerprint_fini(@out). */
int mp_fingerprint_decode(const uint8_t *bytes, size_t size, struct mp_fingerprint *out,
			  struct mp_err *err);

/* ---- one instruction (fingerprint_insn.c) --------------------------------------------------- */

struct mp_print_insn {
	bool hashed;	/* false: a no-op, a direct jump, or endbr64 */
	uint32_t full;	/* with registers and constants, without addresses */
	uint32_t loose; /* the opcode alone */
};

/*
 * @bytes: those of @insn. A 32-bit constant in [@low, @high) may be an address, and is left
 * out. Both are 0 for a position-independent file, whose constants are no addresses.
 */
struct mp_print_insn mp_print_insn(const uint8_t *bytes, const struct mp_insn *insn, uint64_t low,
				   uint64_t high);
uint32_t mp_print_mix(uint32_t a, uint32_t b);

#endif
