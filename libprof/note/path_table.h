// SPDX-License-Identifier: Apache-2.0
/*
 * path_table - describes how a file with path numbers in registers numbers its paths: the
 * blocks and edges of each such function, the register that holds the number in each block,
 * and the value that each edge adds.
 *
 * The editor writes it; path_decode uses it to turn registers into paths. It lies in
 * section .morph.paths, which is not loaded. The format is in Documentation/abi.md.
 *
 * The numbers follow Ball and Larus (1996), but in the other direction: they number the
 * ways from a start to a block, instead of those from a block to the end. A number
 * therefore has a meaning at every block, not only at the path's end (partial path numbers,
 * PEP, CGO 2005, section 3.2).
 *             A  starts: 0                 A->B and A->C carry 0, C->D 0,
 *            / \                           B->D 1: at D the number 0 is ACD,
 *       0   B   C   0                      1 is ABD.
 *            \ /
 *      1, 0   D
 */
#ifndef MP_PATH_TABLE_H
#define MP_PATH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/elf/elf.h"
#include "libprof/base/err.h"

#define MP_PATH_TABLE_SECTION ".morph.paths"

/*
 * Registers have the numbers of x86's encoding: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5,
 * rsi 6, rdi 7, r8 to r15.
 */
#define MP_NR_REGISTERS 16
#define MP_REGISTER_RSP 4
#define MP_NO_REGISTER	0xff

/* One more kind beside enum mp_edge_kind: from outside of the function. */
#define MP_PATH_EDGE_OUTSIDE 0xff

struct mp_path_block {
	uint64_t vaddr; /* address in the original */
	uint32_t size;
	uint32_t term_off; /* offset of the terminating branch; @size: there is none */
	/* register of the number in the block's copy; MP_NO_REGISTER: none, so the block starts */
	uint8_t reg;
	bool starts; /* paths start here, whichever way control came: the number is 0 */
	/* the register is larger than the number by this amount, in this block alone */
	uint64_t shift;
	bool fully_reported; /* a polled program reports every path through it, here or further on */
};

struct mp_path_edge {
	uint32_t from, to; /* indexes into @blocks, of the same function; @from MP_NONE: outside */
	uint8_t kind;	   /* enum mp_edge_kind; MP_PATH_EDGE_OUTSIDE if @from is MP_NONE */
	/*
	 * The path goes on: number at @to = number at @from + @value. False: a path starts
	 * on this edge, and the number at @to = @value.
	 */
	bool carries;
	uint64_t value;
};

struct mp_path_func {
	uint32_t first_block, nr_blocks;
	uint32_t first_edge, nr_edges;
};

/*
 * Functions lie one after the other: each begins in @blocks and @edges where the one before
 * ends. A function's blocks ascend and do not overlap. Its edges ascend by (to, value).
 *
 * No two ways to a block have the same number: each edge's value is at least that of the
 * edge before plus the number of ways over that edge. Edges that carry form no cycle. A
 * block that does not start has an edge to it. Edges to a block that starts have the value
 * 0 and do not carry. Edges out of the function are left out.
 */
struct mp_path_table {
	struct mp_path_func *funcs;
	uint32_t nr_funcs;
	struct mp_path_block *blocks;
	uint32_t nr_blocks;
	struct mp_path_edge *edges;
	uint32_t nr_edges;
	/* Set by mp_path_table_read(), not needed for encoding: */
	uint32_t *by_vaddr; /* @blocks of all functions, ascending */
	uint16_t registers; /* bit n: register n holds a number somewhere */
	uint64_t hash;	    /* mp_path_table_hash() of the section */
};

/*
 * mp_path_table_encode - the whole section as bytes.
 * Return: 0, -ENOMEM, -EINVAL (not as described above; the message says where). Ownership:
 * free(*@bytes).
 */
int mp_path_table_encode(const struct mp_path_table *table, uint8_t **bytes, size_t *size,
			 struct mp_err *err);
uint64_t mp_path_table_hash(const void *bytes, size_t size);
/*
 * mp_path_table_read - reads the table of @elf, which must not be opened with MP_ELF_ID
 * alone.
 * Return: 0, -ENOENT (no path numbers), -EBADMSG (damaged), -ENOMEM.
 * Ownership: mp_path_table_free(*@out), which takes NULL.
 */
int mp_path_table_read(const struct mp_elf *elf, struct mp_path_table **out, struct mp_err *err);
/* The same for the section's bytes; @path is for messages. */
int mp_path_table_decode(const char *path, const void *bytes, size_t size,
			 struct mp_path_table **out, struct mp_err *err);
void mp_path_table_free(struct mp_path_table *table);

/* The block that holds @vaddr of the original, or MP_NONE. For a table that was read. O(log n). */
uint32_t mp_path_table_block_at(const struct mp_path_table *table, uint64_t vaddr);

#endif
