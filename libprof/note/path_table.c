// SPDX-License-Identifier: Apache-2.0
/*
 * path_table - writes and reads the section that describes the path numbers in registers.
 * Documentation/abi.md has the format; an edge takes two or three bytes. The editor writes
 * the table; morphd reads it, out of files that may come from anybody.
 */
#include "libprof/note/path_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/base/search.h"
#include "libprof/base/varint.h"
#include "libprof/note/note_frame.h"

#define TABLE_VERSION 1

enum block_bits {
	BLOCK_REGISTER = 0x0f, /* rsp means none */
	BLOCK_STARTS = 1 << 4,
	BLOCK_SHIFTED = 1 << 5, /* the shift follows */
	BLOCK_FULLY_REPORTED = 1 << 6,
	BLOCK_ALL = (1 << 7) - 1,
};

/* Bits of an edge's first number, which fits in one byte. */
enum edge_bits {
	EDGE_KIND = 3, /* enum mp_edge_kind */
	EDGE_FROM_OUTSIDE = 1 << 2,
	EDGE_CARRIES = 1 << 3,
	/*
	 * the value differs from that of the edge before to the same block (or from 0): the
	 * difference follows
	 */
	EDGE_VALUE = 1 << 4,
	/* leads to the next block; without this and the next bit: to the same block */
	EDGE_TO_NEXT = 1 << 5,
	EDGE_TO_JUMPS = 1 << 6, /* leads further on: the distance follows */
	EDGE_ALL = (1 << 7) - 1,
};

/* ---- checks of a table ----------------------------------------------------------------------- */

static int refuse(struct mp_err *err, const struct mp_path_table *table, uint32_t block,
		  const char *what)
{
	return mp_err_set(err, EINVAL, "block %" PRIx64 " %s", table->blocks[block].vaddr, what);
}

static int check_block(const struct mp_path_table *table, uint32_t b, uint64_t end,
		       struct mp_err *err)
{
	const struct mp_path_block *block = &table->blocks[b];

	if (block->term_off > block->size || block->size > UINT64_MAX - block->vaddr)
		return refuse(err, table, b, "ends before it starts");
	if (block->vaddr < end)
		return refuse(err, table, b, "lies in the one before it");
	if (block->reg == MP_NO_REGISTER
		    ? !block->starts || block->shift
		    : block->reg >= MP_NR_REGISTERS || block->reg == MP_REGISTER_RSP)
		return refuse(err, table, b, "has no sensible register");
	return 0;
}

static int check_edge(const struct mp_path_table *table, const struct mp_path_func *func,
		      uint32_t e, struct mp_err *err)
{
	const struct mp_path_edge *edge = &table->edges[e];
	bool outside = edge->from == MP_NONE;

	/* An index below first_block wraps to a large number. */
	if (edge->to - func->first_block >= func->nr_blocks ||
	    (!outside && edge->from - func->first_block >= func->nr_blocks))
		return mp_err_set(err, EINVAL, "edge %u leaves its function", e);
	if (outside ? edge->kind != MP_PATH_EDGE_OUTSIDE || edge->carries
		    : edge->kind > MP_EDGE_TABLE)
		return mp_err_set(err, EINVAL, "edge %u has no sensible kind", e);
	if (table->blocks[edge->to].starts && (edge->carries || edge->value))
		return refuse(err, table, edge->to, "starts, and a way to it has a number");
	if (e > func->first_edge && edge[-1].to > edge->to)
		return mp_err_set(err, EINVAL, "edge %u is out of order", e);
	return 0;
}

enum block_state {
	STATE_NEW,
	STATE_OPEN,
	STATE_DONE
};

/* State of the walk up from each block to the blocks that its numbers build on. */
struct ways {
	uint64_t *nr;	   /* per block: limit of its numbers; 0 until it is known */
	uint32_t *next_in; /* per block: the next edge to it that is to be read */
	uint8_t *state;	   /* per block: enum block_state */
	uint32_t *stack;
};

static int ways_init(struct ways *ways, const struct mp_path_table *table)
{
	size_t nr = (size_t)table->nr_blocks + 1;

	*ways = (struct ways){
		.nr = calloc(nr, sizeof(*ways->nr)),
		.next_in = calloc(nr, sizeof(*ways->next_in)),
		.state = calloc(nr, sizeof(*ways->state)),
		.stack = calloc(nr, sizeof(*ways->stack)),
	};
	if (!ways->nr || !ways->next_in || !ways->state || !ways->stack)
		return -ENOMEM;
	for (uint32_t e = table->nr_edges; e--;)
		ways->next_in[table->edges[e].to] = e;
	return 0;
}

static void ways_fini(struct ways *ways)
{
	free(ways->nr);
	free(ways->next_in);
	free(ways->state);
	free(ways->stack);
}

/* Counts the next edge to its block; the block that it comes from is done. */
static int edge_count(const struct mp_path_table *table, struct ways *ways, uint32_t e,
		      struct mp_err *err)
{
	const struct mp_path_edge *edge = &table->edges[e];
	uint64_t nr = edge->carries ? ways->nr[edge->from] : 1;

	if (edge->value < ways->nr[edge->to])
		return refuse(err, table, edge->to, "has two ways with one number");
	if (nr > UINT64_MAX - edge->value)
		return refuse(err, table, edge->to, "has too many ways");
	ways->nr[edge->to] = edge->value + nr;
	return 0;
}

static int ways_count(const struct mp_path_table *table, struct ways *ways, uint32_t root,
		      struct mp_err *err)
{
	uint32_t depth = 0;

	ways->stack[depth++] = root;
	while (depth) {
		uint32_t b = ways->stack[depth - 1], e = ways->next_in[b];
		bool more = e < table->nr_edges && table->edges[e].to == b;
		int ret;

		ways->state[b] = STATE_OPEN;
		if (table->blocks[b].starts) {
			ways->nr[b] = 1;
			more = false;
		} else if (!more && !ways->nr[b]) {
			return refuse(err, table, b, "has no way to it and does not start");
		}
		if (!more) {
			ways->state[b] = STATE_DONE;
			depth--;
			continue;
		}
		if (table->edges[e].carries) {
			uint32_t from = table->edges[e].from;

			if (ways->state[from] == STATE_OPEN)
				return refuse(err, table, b, "lies on a circle of ways that carry");
			if (ways->state[from] == STATE_NEW) {
				ways->stack[depth++] = from;
				continue;
			}
		}
		ret = edge_count(table, ways, e, err);
		if (ret)
			return ret;
		ways->next_in[b]++;
	}
	return 0;
}

static int check_numbers(const struct mp_path_table *table, struct mp_err *err)
{
	struct ways ways;
	int ret = ways_init(&ways, table);

	if (ret)
		mp_err_code(err, -ret);
	for (uint32_t b = 0; b < table->nr_blocks && !ret; b++)
		if (ways.state[b] == STATE_NEW)
			ret = ways_count(table, &ways, b, err);
	ways_fini(&ways);
	return ret;
}

/* Return: 0, -EINVAL, -ENOMEM. */
static int check_table(const struct mp_path_table *table, struct mp_err *err)
{
	uint32_t block = 0, edge = 0;
	int ret = 0;

	if (table->nr_funcs > MP_FRAME_NR_MAX || table->nr_blocks > MP_FRAME_NR_MAX ||
	    table->nr_edges > MP_FRAME_NR_MAX)
		return mp_err_set(err, EINVAL, "too large");
	for (uint32_t f = 0; f < table->nr_funcs; f++) {
		const struct mp_path_func *func = &table->funcs[f];
		uint64_t end = 0;

		if (func->first_block != block || func->first_edge != edge ||
		    func->nr_blocks > table->nr_blocks - block ||
		    func->nr_edges > table->nr_edges - edge)
			return mp_err_set(err, EINVAL, "function %u does not follow the last", f);
		for (; block < func->first_block + func->nr_blocks && !ret; block++) {
			ret = check_block(table, block, end, err);
			end = table->blocks[block].vaddr + table->blocks[block].size;
		}
		for (; edge < func->first_edge + func->nr_edges && !ret; edge++)
			ret = check_edge(table, func, edge, err);
		if (ret)
			return ret;
	}
	if (block != table->nr_blocks || edge != table->nr_edges)
		return mp_err_set(err, EINVAL, "blocks or edges of no function");
	return check_numbers(table, err);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put_block(struct mp_varint_writer *w, const struct mp_path_block *block, uint64_t *end)
{
	uint64_t bits = block->reg == MP_NO_REGISTER ? MP_REGISTER_RSP : block->reg;

	if (block->starts)
		bits |= BLOCK_STARTS;
	if (block->shift)
		bits |= BLOCK_SHIFTED;
	if (block->fully_reported)
		bits |= BLOCK_FULLY_REPORTED;
	mp_frame_put_block(w, block->vaddr, block->size, block->term_off, end);
	mp_varint_put(w, bits);
	if (block->shift)
		mp_varint_put(w, block->shift);
}

/* Target and value of the last edge. */
struct last_edge {
	uint32_t to;
	uint64_t value;
};

static void put_edge(struct mp_varint_writer *w, const struct mp_path_edge *edge,
		     struct last_edge *last)
{
	uint64_t head = edge->from == MP_NONE ? EDGE_FROM_OUTSIDE : edge->kind;
	uint32_t step = edge->to - last->to;

	if (step)
		last->value = 0;
	if (edge->carries)
		head |= EDGE_CARRIES;
	if (edge->value != last->value)
		head |= EDGE_VALUE;
	if (step)
		head |= step == 1 ? EDGE_TO_NEXT : EDGE_TO_JUMPS;
	mp_varint_put(w, head);
	if (step > 1)
		mp_varint_put(w, step - 2);
	if (edge->from != MP_NONE)
		mp_varint_put_signed(w, (int64_t)edge->from - edge->to);
	if (edge->value != last->value)
		mp_varint_put(w, edge->value - last->value - 1);
	*last = (struct last_edge){edge->to, edge->value};
}

static void put_table(struct mp_varint_writer *w, const struct mp_path_table *table)
{
	uint64_t end = 0;

	mp_varint_put(w, TABLE_VERSION);
	mp_varint_put(w, table->nr_funcs);
	mp_varint_put(w, table->nr_blocks);
	mp_varint_put(w, table->nr_edges);
	for (uint32_t f = 0; f < table->nr_funcs; f++) {
		const struct mp_path_func *func = &table->funcs[f];
		struct last_edge last = {.to = func->first_block};

		mp_varint_put(w, func->nr_blocks);
		mp_varint_put(w, func->nr_edges);
		for (uint32_t b = 0; b < func->nr_blocks; b++)
			put_block(w, &table->blocks[func->first_block + b], &end);
		for (uint32_t e = 0; e < func->nr_edges; e++)
			put_edge(w, &table->edges[func->first_edge + e], &last);
	}
}

int mp_path_table_encode(const struct mp_path_table *table, uint8_t **bytes, size_t *size,
			 struct mp_err *err)
{
	struct mp_varint_writer w = {0};
	struct mp_err why = {{0}};
	int ret = check_table(table, &why);

	*bytes = NULL;
	if (ret == -EINVAL)
		return mp_err_set(err, EINVAL, "path table: %s", why.msg);
	if (!ret) {
		put_table(&w, table);
		mp_frame_put_checksum(&w, 0);
	}
	if (ret || w.failed) {
		free(w.bytes);
		return mp_err_set(err, ENOMEM, "path table: out of memory");
	}
	*bytes = w.bytes;
	*size = w.size;
	return 0;
}

uint64_t mp_path_table_hash(const void *bytes, size_t size)
{
	return XXH3_64bits(bytes, size);
}

/* ---- reading -------------------------------------------------------------------------------- */

static void get_block(struct mp_varint_reader *r, struct mp_path_block *block, uint64_t *end)
{
	uint64_t bits;

	mp_frame_get_block(r, &block->vaddr, &block->size, &block->term_off, end);
	bits = mp_varint_get(r);
	if (bits & ~(uint64_t)BLOCK_ALL) {
		r->failed = true;
		return;
	}
	block->reg = bits & BLOCK_REGISTER;
	if (block->reg == MP_REGISTER_RSP)
		block->reg = MP_NO_REGISTER;
	block->starts = bits & BLOCK_STARTS;
	block->fully_reported = bits & BLOCK_FULLY_REPORTED;
	if (bits & BLOCK_SHIFTED) {
		block->shift = mp_varint_get(r);
		/* Such a block has one encoding only. */
		if (!block->shift)
			r->failed = true;
	}
}

static void get_to(struct mp_varint_reader *r, uint64_t head, struct last_edge *last)
{
	uint64_t step = 1;

	if (!(head & (EDGE_TO_NEXT | EDGE_TO_JUMPS)))
		return;
	if (head & EDGE_TO_JUMPS) {
		step = mp_varint_get(r);
		if (head & EDGE_TO_NEXT || step >= MP_FRAME_NR_MAX) {
			r->failed = true;
			return;
		}
		step += 2;
	}
	last->to += (uint32_t)step;
	last->value = 0;
}

static void get_edge(struct mp_varint_reader *r, struct mp_path_edge *edge, struct last_edge *last)
{
	uint64_t head = mp_varint_get(r);

	if (head & ~(uint64_t)EDGE_ALL) {
		r->failed = true;
		return;
	}
	get_to(r, head, last);
	edge->to = last->to;
	edge->kind = head & EDGE_KIND;
	edge->carries = head & EDGE_CARRIES;
	edge->from = MP_NONE;
	if (head & EDGE_FROM_OUTSIDE) {
		if (edge->kind)
			r->failed = true;
		edge->kind = MP_PATH_EDGE_OUTSIDE;
	} else {
		int64_t diff = mp_varint_get_signed(r);

		if (diff < -(int64_t)edge->to || diff >= (int64_t)MP_FRAME_NR_MAX - edge->to)
			r->failed = true;
		else
			edge->from = (uint32_t)(edge->to + diff);
	}
	if (head & EDGE_VALUE) {
		uint64_t diff = mp_varint_get(r);

		if (diff >= UINT64_MAX - last->value)
			r->failed = true;
		else
			last->value += diff + 1;
	}
	edge->value = last->value;
	/* check_table() refuses unknown blocks later; but the numbers must not wrap here. */
	if (last->to >= MP_FRAME_NR_MAX)
		r->failed = true;
}

static void get_func(struct mp_varint_reader *r, struct mp_path_table *table, uint32_t f,
		     uint64_t *end)
{
	struct mp_path_func *func = &table->funcs[f];
	uint64_t nr_blocks = mp_varint_get(r), nr_edges = mp_varint_get(r);
	struct last_edge last = {0};

	if (f) {
		func->first_block = func[-1].first_block + func[-1].nr_blocks;
		func->first_edge = func[-1].first_edge + func[-1].nr_edges;
	}
	if (nr_blocks > table->nr_blocks - func->first_block ||
	    nr_edges > table->nr_edges - func->first_edge)
		r->failed = true;
	if (r->failed)
		return;
	func->nr_blocks = (uint32_t)nr_blocks;
	func->nr_edges = (uint32_t)nr_edges;
	for (uint32_t b = 0; b < func->nr_blocks && !r->failed; b++)
		get_block(r, &table->blocks[func->first_block + b], end);
	last.to = func->first_block;
	for (uint32_t e = 0; e < func->nr_edges && !r->failed; e++)
		get_edge(r, &table->edges[func->first_edge + e], &last);
}

static int by_vaddr(const void *a, const void *b, void *arg)
{
	const struct mp_path_block *blocks = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (blocks[x].vaddr != blocks[y].vaddr)
		return blocks[x].vaddr < blocks[y].vaddr ? -1 : 1;
	return (x > y) - (x < y);
}

static void index_fill(struct mp_path_table *table)
{
	for (uint32_t b = 0; b < table->nr_blocks; b++) {
		table->by_vaddr[b] = b;
		if (table->blocks[b].reg != MP_NO_REGISTER)
			table->registers |= 1u << table->blocks[b].reg;
	}
	qsort_r(table->by_vaddr, table->nr_blocks, sizeof(*table->by_vaddr), by_vaddr,
		table->blocks);
}

int mp_path_table_decode(const char *path, const void *data, size_t size,
			 struct mp_path_table **out, struct mp_err *err)
{
	const uint8_t *bytes = data;
	struct mp_varint_reader r;
	struct mp_path_table *table = NULL;
	uint64_t end = 0;
	int ret;

	*out = NULL;
	ret = mp_frame_open("path table", path, bytes, size, TABLE_VERSION, &r, err);
	if (ret)
		return ret;
	table = calloc(1, sizeof(*table));
	if (!table)
		return mp_frame_error("path table", path, -ENOMEM, err);
	table->nr_funcs = mp_frame_get_nr(&r, 2);
	table->nr_blocks = mp_frame_get_nr(&r, 4);
	table->nr_edges = mp_frame_get_nr(&r, 1);
	if (r.failed)
		goto err_table;
	table->funcs = calloc((size_t)table->nr_funcs + 1, sizeof(*table->funcs));
	table->blocks = calloc((size_t)table->nr_blocks + 1, sizeof(*table->blocks));
	table->edges = calloc((size_t)table->nr_edges + 1, sizeof(*table->edges));
	table->by_vaddr = calloc((size_t)table->nr_blocks + 1, sizeof(*table->by_vaddr));
	ret = -ENOMEM;
	if (!table->funcs || !table->blocks || !table->edges || !table->by_vaddr)
		goto err_table;
	ret = -EBADMSG;
	for (uint32_t f = 0; f < table->nr_funcs && !r.failed; f++)
		get_func(&r, table, f, &end);
	if (r.failed || r.p != r.end)
		goto err_table;
	ret = check_table(table, NULL);
	if (ret)
		goto err_table;
	index_fill(table);
	table->hash = mp_path_table_hash(bytes, size);
	*out = table;
	return 0;
err_table:
	mp_path_table_free(table);
	return mp_frame_error("path table", path, ret, err);
}

int mp_path_table_read(const struct mp_elf *elf, struct mp_path_table **out, struct mp_err *err)
{
	const uint8_t *bytes;
	size_t size;
	int ret;

	*out = NULL;
	ret = mp_frame_find(elf, MP_PATH_TABLE_SECTION, "path table", "keeps no path numbers",
			    &bytes, &size, err);
	return ret ? ret : mp_path_table_decode(elf->path, bytes, size, out, err);
}

void mp_path_table_free(struct mp_path_table *table)
{
	if (!table)
		return;
	free(table->funcs);
	free(table->blocks);
	free(table->edges);
	free(table->by_vaddr);
	free(table);
}

uint32_t mp_path_table_block_at(const struct mp_path_table *table, uint64_t vaddr)
{
	uint32_t low =
		mp_search(i, 0, table->nr_blocks, table->blocks[table->by_vaddr[i]].vaddr <= vaddr);

	/* Take the last of several blocks at one address: the others are empty. */
	if (!low)
		return MP_NONE;
	low = table->by_vaddr[low - 1];
	return vaddr - table->blocks[low].vaddr < table->blocks[low].size ? low : MP_NONE;
}
