// SPDX-License-Identifier: Apache-2.0
/*
 * path_table - how a file that keeps path numbers in a register numbers its paths: the blocks and
 * edges of each such function, which register holds the number where, and what edges add to it.
 *
 * Written by the editor, read by whoever makes paths out of registers (path_decode). It lies in
 * the section .morph.paths, which is not loaded; format in Documentation/abi.md.
 *
 * The numbers are those of Ball and Larus (1996) turned round: not the ways from a block to the end
 * are numbered but those from a start to the block, so that a number says something at every block
 * and not at the path's end alone (partial path numbers, PEP, CGO 2005, section 3.2).
 *
 *            A  starts: 0                 A->B and A->C carry 0, C->D 0,
 *           / \                           B->D 1: at D the number 0 is ACD,
 *      0   B   C   0                      1 is ABD.
 *           \ /
 *     1, 0   D
 */
#ifndef MP_PATH_TABLE_H
#define MP_PATH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/elf.h"
#include "libprof/err.h"

#define MP_PATH_TABLE_SECTION ".morph.paths"

/* Registers have the numbers that x86 encodes them by: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5,
 * rsi 6, rdi 7, r8 to r15. */
#define MP_NR_REGISTERS 16
#define MP_REGISTER_RSP 4
#define MP_NO_REGISTER	0xff

/* A kind beside those of enum mp_edge_kind: from outside of the function. */
#define MP_PATH_EDGE_OUTSIDE 0xff

struct mp_path_block {
	uint64_t vaddr; /* in the original */
	uint32_t size;
	uint32_t term_off; /* where the terminating branch starts; @size: there is none */
	uint8_t reg; /* holds the number in the block's copy; MP_NO_REGISTER: none, so it starts */
	bool starts; /* a path starts here whatever way control came: the number is 0 */
	uint64_t shift; /* the register exceeds the number by it, in this block alone */
	bool told; /* each path through it is said by a program that is asked, here or further on */
};

struct mp_path_edge {
	uint32_t from, to; /* indexes into @blocks, of the same function; from MP_NONE: outside */
	uint8_t kind;	   /* enum mp_edge_kind; MP_PATH_EDGE_OUTSIDE where @from is MP_NONE */
	bool carries;	   /* the path goes on: number at @to = number at @from + @value. Otherwise
			    * one starts on this edge: number at @to = @value */
	uint64_t value;
};

struct mp_path_func {
	uint32_t first_block, nr_blocks;
	uint32_t first_edge, nr_edges;
};

/*
 * The functions lie one after the other: each begins in @blocks and @edges where the one before
 * ends. A function's blocks ascend and do not overlap; its edges ascend by (to, value), and no two
 * ways to a block have the same number: each edge's value is at least the one before it plus the
 * number of ways that that one stands for. Edges that carry form no circle. A block that does not
 * start has an edge that leads to it; edges to one that does have the value 0 and do not carry.
 * Edges out of the function are not here.
 */
struct mp_path_table {
	struct mp_path_func *funcs;
	uint32_t nr_funcs;
	struct mp_path_block *blocks;
	uint32_t nr_blocks;
	struct mp_path_edge *edges;
	uint32_t nr_edges;
	/* Set by mp_path_table_read(), not needed to encode: */
	uint32_t *by_vaddr; /* @blocks of all functions, ascending */
	uint16_t registers; /* bit n: register n holds a number somewhere */
	uint64_t hash;	    /* mp_path_table_hash() of the section */
};

/*
 * mp_path_table_encode - the section's whole bytes.
 * Return: 0, -ENOMEM, -EINVAL (not as described above: says where). Ownership: free(*@bytes).
 */
int mp_path_table_encode(const struct mp_path_table *table, uint8_t **bytes, size_t *size,
			 struct mp_err *err);
uint64_t mp_path_table_hash(const void *bytes, size_t size);
/*
 * mp_path_table_read - the table of @elf, which was not opened for its id alone.
 * Return: 0, -ENOENT no path numbers, -EBADMSG damaged, -ENOMEM. Ownership:
 * mp_path_table_free(*@out), which takes NULL.
 */
int mp_path_table_read(const struct mp_elf *elf, struct mp_path_table **out, struct mp_err *err);
/* The same of the section's bytes, wherever they are; @path is for messages. */
int mp_path_table_decode(const char *path, const void *bytes, size_t size,
			 struct mp_path_table **out, struct mp_err *err);
void mp_path_table_free(struct mp_path_table *table);

/* The block of a table that was read that holds @vaddr of the original, or MP_NONE. O(log n). */
uint32_t mp_path_table_block_at(const struct mp_path_table *table, uint64_t vaddr);

#endif
