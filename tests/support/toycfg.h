// SPDX-License-Identifier: Apache-2.0
/*
 * toycfg - builds control flow graphs with counts, for tests of layout.
 *
 *	struct toy toy;
 *	toy_init(&toy);					counts are exact by default
 *	toy_func(&toy, "f");
 *	a = toy_block(&toy, MP_TERM_COND, 10);		the first block of a function is its entry
 *	b = toy_block(&toy, MP_TERM_RET, 3);
 *	toy_edge(&toy, a, b, MP_EDGE_FALL, 7);		add edges block by block
 *	toy_finish(&toy);
 */
#ifndef MORPH_TESTS_TOYCFG_H
#define MORPH_TESTS_TOYCFG_H

#include "editor/layout/layout.h"
#include "libprof/cfg/cfg.h"

#define TOY_MAX 512

struct toy {
	struct mp_cfg cfg;
	struct mp_counts counts;
	struct mp_func funcs[TOY_MAX];
	struct mp_block blocks[TOY_MAX];
	struct mp_edge edges[4 * TOY_MAX];
	struct mp_call calls[TOY_MAX];
	double block_counts[TOY_MAX], edge_counts[4 * TOY_MAX];
	uint64_t samples[TOY_MAX];
	uint8_t eligible[TOY_MAX];
};

void toy_init(struct toy *toy);
uint32_t toy_func(struct toy *toy, const char *name);
/* Each block has 4 instructions of 4 bytes. */
uint32_t toy_block(struct toy *toy, enum mp_term term, double count);
void toy_edge(struct toy *toy, uint32_t from, uint32_t to, enum mp_edge_kind kind, double count);
void toy_call(struct toy *toy, uint32_t block, uint32_t callee);
void toy_finish(struct toy *toy);

#endif
