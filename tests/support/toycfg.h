// SPDX-License-Identifier: Apache-2.0
/*
 * toycfg - builds control flow graphs with counts, for tests of layout.
 *
 *	struct toy toy;
 *	toy_start(&toy, "f");				counts are exact by default
 *	toy_blocks(&toy, {MP_TERM_COND, 10}, {MP_TERM_RET, 3});	the first one is the entry
 *	c = toy_block(&toy, MP_TERM_RET, 7);		one block, where its number is of interest
 *	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 3}, {0, c, MP_EDGE_TAKEN, 7});	block by block
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
void toy_start(struct toy *toy, const char *name); /* both */
/* Each block has 4 instructions of 4 bytes. */
uint32_t toy_block(struct toy *toy, enum mp_term term, double count);
void toy_edge(struct toy *toy, uint32_t from, uint32_t to, enum mp_edge_kind kind, double count);

struct toy_block {
	enum mp_term term;
	double count;
};

struct toy_edge {
	uint32_t from, to;
	enum mp_edge_kind kind;
	double count;
};

#define TOY_ROWS(type, ...)                                                                        \
	(const struct type[]){__VA_ARGS__},                                                        \
		sizeof((const struct type[]){__VA_ARGS__}) / sizeof(struct type)
/* Several, in this order: toy_blocks(&toy, {term, count}, ...); toy_edges(&toy, {from, to, kind, count}, ...) */
#define toy_blocks(toy, ...) toy_add_blocks(toy, TOY_ROWS(toy_block, __VA_ARGS__))
#define toy_edges(toy, ...)  toy_add_edges(toy, TOY_ROWS(toy_edge, __VA_ARGS__))
void toy_add_blocks(struct toy *toy, const struct toy_block *blocks, size_t nr);
void toy_add_edges(struct toy *toy, const struct toy_edge *edges, size_t nr);

void toy_call(struct toy *toy, uint32_t block, uint32_t callee);
void toy_finish(struct toy *toy);

#endif
