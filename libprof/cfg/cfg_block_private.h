// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_block_private - one function while it is cut into blocks and its blocks are linked. Included
 * by cfg_block.c and cfg_link.c only.
 */
#ifndef MP_CFG_BLOCK_PRIVATE_H
#define MP_CFG_BLOCK_PRIVATE_H

#include <stdint.h>

struct mp_cfg_build;
struct mp_func;

struct mp_block_maker {
	struct mp_cfg_build *b;
	struct mp_func *func;
	uint32_t func_index;
	uint32_t *block_at; /* start of each block of the function */
	uint32_t *flow_of;  /* terminating flow of each block, or MP_NONE */
	uint32_t cap_at, cap_flow;
};

/*
 * mp_cfg_link_blocks - adds the edges of all blocks of the function, and its calls. @parts: the
 * numbers of its parts, ascending.
 * Return: 0, -ENOMEM.
 */
int mp_cfg_link_blocks(struct mp_block_maker *m, const uint32_t *parts);

#endif
