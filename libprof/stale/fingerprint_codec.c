// SPDX-License-Identifier: Apache-2.0
/*
 * fingerprint_codec - converts a fingerprint to bytes and back. It defines the format
 * (Documentation/abi.md). A store is untrusted, so each number is checked before it is
 * used. Called by store_fingerprint.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/stale/fingerprint.h"
#include "libprof/base/varint.h"

#define VERSION 1
/* Fewest bytes of each element: they bound how many elements the rest of the input can hold. */
#define FUNC_MIN  2
#define BLOCK_MIN 9
#define EDGE_MIN  1
#define CALL_MIN  2
/* From this number on, the number of edges is stored as a number of its own. */
#define MANY_EDGES 3
/* No block or function is larger, since mp_elf_open() takes no larger file. */
#define SIZE_MAX_BYTES (1u << 31)

/* ---- writing -------------------------------------------------------------------------------- */

static void put_hash(struct mp_varint_writer *w, uint32_t hash, size_t size)
{
	uint8_t bytes[4] = {(uint8_t)hash, (uint8_t)(hash >> 8), (uint8_t)(hash >> 16),
			    (uint8_t)(hash >> 24)};

	mp_varint_put_bytes(w, bytes, size);
}

/* Distance back to a block with the same edges; 0: the block has edges of its own. */
static uint32_t shared_with(const struct mp_print_block *block, uint32_t index)
{
	for (uint32_t back = 1; back <= index; back++)
		if (block[-(int64_t)back].first_edge == block->first_edge &&
		    block[-(int64_t)back].nr_edges == block->nr_edges)
			return back;
	return 0;
}

static void put_edges(struct mp_varint_writer *w, const struct mp_fingerprint *print,
		      uint32_t index, const struct mp_print_block *block)
{
	for (uint32_t e = 0; e < block->nr_edges; e++) {
		const struct mp_print_edge *edge = &print->edges[block->first_edge + e];
		int64_t distance = (int64_t)edge->to - index;

		mp_varint_put_signed(w, distance * 4 + (distance < 0 ? -edge->kind : edge->kind));
	}
}

static void put_block(struct mp_varint_writer *w, const struct mp_fingerprint *print, uint32_t func,
		      uint32_t index, const struct mp_print_block *block, uint64_t *end)
{
	uint32_t back = block->nr_edges >= MANY_EDGES ? shared_with(block, index) : 0;
	uint32_t few = block->nr_edges < MANY_EDGES ? block->nr_edges : MANY_EDGES;

	mp_varint_put_signed(w, (int64_t)(block->vaddr - *end));
	*end = block->vaddr + block->size;
	mp_varint_put(w, block->size);
	mp_varint_put(w, block->nr_insns);
	mp_varint_put(w, block->size - block->term_off);
	put_hash(w, block->full, 2);
	put_hash(w, block->loose, 2);
	mp_varint_put(w, (uint64_t)block->nr_calls << 2 | few);
	if (few == MANY_EDGES)
		mp_varint_put(w, back);
	if (few == MANY_EDGES && !back)
		mp_varint_put(w, block->nr_edges - MANY_EDGES);
	if (!back)
		put_edges(w, print, index, block);
	for (uint32_t c = 0; c < block->nr_calls; c++) {
		const struct mp_print_call *call = &print->calls[block->first_call + c];

		mp_varint_put(w, call->off);
		mp_varint_put_signed(w, call->callee == MP_NONE ? 0
								: (int64_t)call->callee - func +
									  (call->callee >= func));
	}
}

static void put_func(struct mp_varint_writer *w, const struct mp_fingerprint *print, uint32_t f,
		     uint64_t *before)
{
	const struct mp_print_func *func = &print->funcs[f];
	uint64_t end = func->vaddr;

	mp_varint_put(w, func->vaddr - *before);
	*before = func->vaddr;
	mp_varint_put(w, (uint64_t)func->nr_blocks << 2 | (func->name ? 2u : 0) |
				 (func->nr_kept ? 1u : 0));
	if (func->name)
		put_hash(w, func->name, 4);
	if (func->nr_blocks)
		put_hash(w, func->full, 4);
	if (!func->nr_kept)
		return;
	put_hash(w, func->loose, 4);
	mp_varint_put(w, func->entry == MP_NONE ? 0 : (uint64_t)func->entry + 1);
	for (uint32_t b = 0; b < func->nr_kept; b++)
		put_block(w, print, f, b, &print->blocks[func->first_block + b], &end);
}

int mp_fingerprint_encode(const struct mp_fingerprint *print, uint8_t **out, size_t *size,
			  struct mp_err *err)
{
	struct mp_varint_writer w = {0};
	uint64_t before = 0;

	mp_varint_put(&w, VERSION);
	mp_varint_put(&w, print->nr_funcs);
	mp_varint_put(&w, print->nr_blocks);
	mp_varint_put(&w, print->nr_edges);
	mp_varint_put(&w, print->nr_calls);
	for (uint32_t f = 0; f < print->nr_funcs; f++)
		put_func(&w, print, f, &before);
	if (w.failed) {
		free(w.bytes);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	*out = w.bytes;
	*size = w.size;
	return 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reading {
	struct mp_varint_reader r;
	struct mp_fingerprint *out;
	uint32_t nr_blocks, nr_edges, nr_calls; /* numbers that the header gives */
	/* edges of all blocks; shared edges count for each block */
	uint64_t nr_ways;
	bool bad;
};

static uint32_t get_hash(struct reading *in, size_t size)
{
	const uint8_t *bytes = mp_varint_get_bytes(&in->r, size);
	uint32_t hash = 0;

	for (size_t i = 0; bytes && i < size; i++)
		hash |= (uint32_t)bytes[i] << (8 * i);
	return hash;
}

/* Reads a number in [@low, @high]; any other number is damage. */
static uint32_t get_within(struct reading *in, uint64_t low, uint64_t high)
{
	uint64_t v = mp_varint_get(&in->r);

	in->bad |= v < low || v > high;
	return in->bad ? 0 : (uint32_t)v;
}

static void get_edge(struct reading *in, uint32_t index, uint32_t nr_blocks)
{
	struct mp_print_edge *edge = &in->out->edges[in->out->nr_edges++];
	int64_t v = mp_varint_get_signed(&in->r), to;

	/*
	 * A positive distance has the kind added, a negative one subtracted. Division
	 * rounds towards zero, so it gives the distance.
	 */
	edge->kind = (uint8_t)(v < 0 ? -(v % 4) : v % 4);
	if (v / 4 > INT32_MAX || v / 4 < -(int64_t)INT32_MAX) {
		in->bad = true;
		return;
	}
	to = (int64_t)index + v / 4;
	in->bad |= to < 0 || to >= nr_blocks;
	edge->to = in->bad ? 0 : (uint32_t)to;
}

static void get_call(struct reading *in, uint32_t func, uint32_t size)
{
	struct mp_print_call *call = &in->out->calls[in->out->nr_calls++];
	int64_t distance, callee;

	call->off = get_within(in, 0, size);
	distance = mp_varint_get_signed(&in->r);
	call->callee = MP_NONE;
	if (!distance)
		return;
	if (distance > INT32_MAX || distance < -(int64_t)INT32_MAX) {
		in->bad = true;
		return;
	}
	callee = (int64_t)func + distance - (distance > 0);
	in->bad |= callee < 0 || callee >= in->out->nr_funcs;
	call->callee = in->bad ? MP_NONE : (uint32_t)callee;
}

static void get_block(struct reading *in, uint32_t f, uint32_t index, uint64_t *end)
{
	struct mp_fingerprint *out = in->out;
	const struct mp_print_func *func = &out->funcs[f];
	struct mp_print_block *block = &out->blocks[out->nr_blocks++];
	uint32_t back = 0;
	uint64_t v;

	block->vaddr = *end + (uint64_t)mp_varint_get_signed(&in->r);
	block->size = get_within(in, 0, SIZE_MAX_BYTES);
	block->nr_insns = get_within(in, 0, block->size);
	block->term_off = block->size - get_within(in, 0, block->size);
	block->full = (uint16_t)get_hash(in, 2);
	block->loose = (uint16_t)get_hash(in, 2);
	*end = block->vaddr + block->size;
	v = mp_varint_get(&in->r);
	block->first_edge = out->nr_edges;
	block->first_call = out->nr_calls;
	block->nr_edges = v & 3;
	if (block->nr_edges == MANY_EDGES)
		back = get_within(in, 0, index);
	if (back) {
		block->first_edge = block[-(int64_t)back].first_edge;
		block->nr_edges = block[-(int64_t)back].nr_edges;
		in->bad |= block->nr_edges < MANY_EDGES;
	} else if (block->nr_edges == MANY_EDGES) {
		block->nr_edges += get_within(in, 0, in->nr_edges);
	}
	in->nr_ways += block->nr_edges;
	in->bad |= (!back && block->nr_edges > in->nr_edges - out->nr_edges) ||
		   in->nr_ways > MP_PRINT_WAYS_MAX || v >> 2 > in->nr_calls - out->nr_calls;
	if (in->bad || in->r.failed) {
		block->nr_edges = 0;
		return;
	}
	block->nr_calls = (uint32_t)(v >> 2);
	for (uint32_t e = 0; e < block->nr_edges && !back; e++)
		get_edge(in, index, func->nr_blocks);
	for (uint32_t c = 0; c < block->nr_calls; c++)
		get_call(in, f, block->size);
}

static void get_func(struct reading *in, uint32_t f, uint64_t *before)
{
	struct mp_fingerprint *out = in->out;
	struct mp_print_func *func = &out->funcs[f];
	uint64_t distance = mp_varint_get(&in->r), v, end;

	in->bad |= __builtin_add_overflow(*before, distance, &func->vaddr);
	*before = end = func->vaddr;
	v = mp_varint_get(&in->r);
	in->bad |= v >> 2 > MP_MAX_BLOCKS;
	if (in->bad)
		return;
	func->nr_blocks = (uint32_t)(v >> 2);
	func->first_block = out->nr_blocks;
	func->entry = MP_NONE;
	func->name = v & 2 ? get_hash(in, 4) : 0;
	func->full = func->nr_blocks ? get_hash(in, 4) : 0;
	if (!(v & 1))
		return;
	func->loose = get_hash(in, 4);
	func->entry = get_within(in, 0, func->nr_blocks) - 1; /* 0 is MP_NONE */
	in->bad |= func->nr_blocks > in->nr_blocks - out->nr_blocks;
	for (uint32_t b = 0; b < func->nr_blocks && !in->bad && !in->r.failed; b++)
		get_block(in, f, b, &end);
	func->nr_kept = func->nr_blocks;
}

/*
 * Reads a number of elements, which the rest of the input must be able to hold, and
 * allocates them.
 */
static void *get_array(struct reading *in, uint32_t *nr, size_t bytes_min, size_t size)
{
	*nr = get_within(in, 0, (uint64_t)(in->r.end - in->r.p) / bytes_min);
	return in->bad || in->r.failed ? NULL : calloc((size_t)*nr + 1, size);
}

int mp_fingerprint_decode(const uint8_t *bytes, size_t size, struct mp_fingerprint *out,
			  struct mp_err *err)
{
	struct reading in = {.r = {bytes, bytes + size, false}, .out = out};
	uint32_t nr_funcs;
	uint64_t before = 0, version;
	bool room;

	*out = (struct mp_fingerprint){0};
	version = mp_varint_get(&in.r);
	if (!in.r.failed && version != VERSION)
		return mp_err_set(err, EBADMSG, "fingerprint: version %llu is not known",
				  (unsigned long long)version);
	out->funcs = get_array(&in, &nr_funcs, FUNC_MIN, sizeof(*out->funcs));
	out->blocks = get_array(&in, &in.nr_blocks, BLOCK_MIN, sizeof(*out->blocks));
	out->edges = get_array(&in, &in.nr_edges, EDGE_MIN, sizeof(*out->edges));
	out->calls = get_array(&in, &in.nr_calls, CALL_MIN, sizeof(*out->calls));
	room = out->funcs && out->blocks && out->edges && out->calls;
	out->nr_funcs = room ? nr_funcs : 0;
	for (uint32_t f = 0; room && f < nr_funcs && !in.bad && !in.r.failed; f++)
		get_func(&in, f, &before);
	if (room && !in.bad && !in.r.failed && in.r.p == in.r.end &&
	    out->nr_blocks == in.nr_blocks && out->nr_edges == in.nr_edges &&
	    out->nr_calls == in.nr_calls)
		return 0;
	mp_fingerprint_fini(out);
	if (!room && !in.bad && !in.r.failed)
		return mp_err_set(err, ENOMEM, "out of memory");
	return mp_err_set(err, EBADMSG, "fingerprint: damaged");
}
