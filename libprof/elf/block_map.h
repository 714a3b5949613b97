// SPDX-License-Identifier: Apache-2.0
/*
 * block_map - reads the section .llvm_bb_addr_map, in which clang says where its basic blocks lie: a later
 * compilation knows a block by its number alone. clang writes the section with -fbasic-block-sections=labels, from
 * version 19 on with -fbasic-block-address-map. Called by the export for Propeller.
 *
 * The section is a list of functions. Numbers are ULEB128, but for the bytes and the ADDRESSES (8 bytes):
 *
 *	of clang 12 to 14, a section type of its own:
 *		ADDRESS  number of blocks;  each block: OFFSET from the address, size, flags
 *	version 1, clang 15 and 16:
 *		byte 1  byte 0  as above, but OFFSET is counted from the end of the block before
 *	version 2, clang 17 to 20:
 *		byte 2  byte FEATURES  as above, but before the offset stands the block's NUMBER
 *
 * In the older versions the blocks have the numbers 0, 1, 2 in the order of the section. FEATURES, a sum:
 *
 *	8	Before the address stands the number of parts of the function. Each has an address and its blocks.
 *	1	How often the function was entered, as clang assumed; behind the blocks. Likewise:
 *	2	A frequency for each block.
 *	4	For each block: the number of its successors; for each of them: its number and probability.
 *
 * With 2 and 4, both stand together, block by block. All three are skipped.
 */
#ifndef MP_BLOCK_MAP_H
#define MP_BLOCK_MAP_H

#include <stdint.h>

#include "libprof/base/err.h"

struct mp_elf;

struct mp_mapped_block {
	uint64_t vaddr;
	uint32_t size;	 /* may be 0 */
	uint32_t number; /* clang's; each occurs once in a function */
};

struct mp_mapped_func {
	uint64_t vaddr; /* of its first block */
	uint32_t entry; /* number of this block */
	uint32_t first_block, nr_blocks;
};

/* Plain data. */
struct mp_block_map {
	struct mp_mapped_func *funcs; /* ascending by vaddr, which differ */
	uint32_t nr_funcs, max_funcs;
	/* of each function ascending by vaddr; a block of size 0 stands before the others at its address */
	struct mp_mapped_block *blocks;
	uint32_t nr_blocks, max_blocks;
};

/*
 * mp_block_map_read - reads the map of @elf. All its blocks lie in code; those of a function do not overlap, and all together
 * are no larger than the code.
 * Return: 0, -ENODATA (the file has no map), -EBADMSG (damaged), -EOPNOTSUPP (of another version), -ENOMEM; with a
 * message.
 * Ownership: mp_block_map_fini(@out), also after an error.
 */
int mp_block_map_read(const struct mp_elf *elf, struct mp_block_map *out, struct mp_err *err);
void mp_block_map_fini(struct mp_block_map *map);

#endif
