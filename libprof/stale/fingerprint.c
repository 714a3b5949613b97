// SPDX-License-Identifier: Apache-2.0
/*
 * fingerprint - makes a fingerprint of an existing file. It decides which functions keep
 * their blocks, and how the hashes of blocks and functions are composed. Called by stale,
 * by morph-stats remember and by morph-optimize.
 */
#include "libprof/stale/fingerprint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "libprof/base/grow.h"

/* State while a fingerprint is made. */
struct making {
	const struct mp_cfg *cfg;
	struct mp_fingerprint *out;
	uint32_t room_blocks, room_edges, room_calls;
	uint64_t low, high; /* range of constants that may be addresses; both 0: none */
	uint32_t call;	    /* index of the next element of cfg->calls */
	uint32_t table;	    /* the function's last block that jumps through a table */
	uint64_t nr_ways;   /* edges of all blocks; shared edges count for each block */
	uint64_t nr_read;   /* bytes that were read since the file's pages were dropped */
};

/*
 * Leaves out the number of a function's copy, since another build may give another:
 * foo.isra.0, foo.isra.3.
 */
static uint32_t name_hash(const char *name)
{
	size_t len = strlen(name), end = len;
	uint32_t hash;

	while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	if (end && end < len && name[end - 1] == '.')
		len = end - 1;
	hash = (uint32_t)XXH3_64bits(name, len);
	return !len ? 0 : hash ? hash : 1;
}

/* A position-dependent file has addresses as constants. */
static void find_addresses(struct making *m)
{
	const struct mp_elf *elf = m->cfg->elf;

	if (!elf || elf->ehdr.e_type != ET_EXEC)
		return;
	m->low = UINT64_MAX;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type != PT_LOAD)
			continue;
		m->low = p->p_vaddr < m->low ? p->p_vaddr : m->low;
		m->high = p->p_vaddr + p->p_memsz > m->high ? p->p_vaddr + p->p_memsz : m->high;
	}
}

static uint32_t callee_of(struct making *m, uint32_t block, uint64_t vaddr)
{
	const struct mp_cfg *cfg = m->cfg;

	/* Blocks and calls both ascend, so earlier calls are not needed again. */
	while (m->call < cfg->nr_calls && cfg->calls[m->call].block < block)
		m->call++;
	for (uint32_t c = m->call; c < cfg->nr_calls && cfg->calls[c].block == block; c++)
		if (mp_call_insn(cfg, &cfg->calls[c]) == vaddr)
			return cfg->calls[c].callee;
	return MP_NONE;
}

static int add_call(struct making *m, struct mp_print_block *to, uint32_t off, uint32_t callee)
{
	struct mp_fingerprint *out = m->out;

	if (mp_push(out->calls, out->nr_calls, m->room_calls, (struct mp_print_call){off, callee}))
		return -ENOMEM;
	to->nr_calls++;
	return 0;
}

/* Also adds the block's hashes to the function's. */
static int hash_block(struct making *m, uint32_t b, struct mp_print_block *to,
		      struct mp_print_func *func)
{
	const struct mp_block *block = &m->cfg->blocks[b];
	const uint8_t *bytes = m->cfg->elf ? mp_elf_bytes(m->cfg->elf, block->vaddr, block->size)
					   : NULL;
	uint32_t full = 0, loose = 0;
	struct mp_insn insn;

	to->vaddr = block->vaddr;
	to->size = block->size;
	to->term_off = block->size - block->term_len;
	to->first_call = m->out->nr_calls;
	for (uint32_t at = 0; bytes && at < block->size; at += insn.len) {
		struct mp_print_insn hashes;

		if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			break;
		hashes = mp_print_insn(bytes + at, &insn, m->low, m->high);
		if (hashes.hashed) {
			full = mp_print_mix(full, hashes.full);
			loose += hashes.loose;
			to->nr_insns++;
		}
		if ((insn.kind == MP_INSN_CALL || insn.kind == MP_INSN_ICALL) &&
		    add_call(m, to, at, callee_of(m, b, block->vaddr + at)))
			return -ENOMEM;
	}
	to->full = (uint16_t)full;
	to->loose = (uint16_t)loose;
	func->full = mp_print_mix(func->full, full);
	func->loose = mp_print_mix(func->loose, loose);
	return 0;
}

/*
 * An interpreter has hundreds of jumps through one table with hundreds of entries: keep its
 * edges once.
 */
static bool share_edges(struct making *m, const struct mp_func *func, uint32_t first_edge,
			uint32_t nr_edges, struct mp_print_block *to)
{
	const struct mp_print_block *before;

	if (m->table == MP_NONE)
		return false;
	before = &m->out->blocks[m->table];
	if (before->nr_edges != nr_edges)
		return false;
	for (uint32_t e = 0; e < nr_edges; e++)
		if (m->out->edges[before->first_edge + e].to !=
			    m->cfg->edges[first_edge + e].to - func->first_block ||
		    m->out->edges[before->first_edge + e].kind !=
			    m->cfg->edges[first_edge + e].kind)
			return false;
	to->first_edge = before->first_edge;
	to->nr_edges = nr_edges;
	return true;
}

static int add_edges(struct making *m, const struct mp_func *func, const struct mp_block *block,
		     struct mp_print_block *to)
{
	struct mp_fingerprint *out = m->out;

	to->first_edge = out->nr_edges;
	m->nr_ways += block->nr_edges;
	if (m->nr_ways > MP_PRINT_WAYS_MAX)
		return 0;
	if (block->term == MP_TERM_TABLE && block->nr_edges &&
	    share_edges(m, func, block->first_edge, block->nr_edges, to))
		return 0;
	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++) {
		const struct mp_edge *edge = &m->cfg->edges[e];

		if (mp_push(out->edges, out->nr_edges, m->room_edges,
			    (struct mp_print_edge){.to = edge->to - func->first_block,
						   .kind = (uint8_t)edge->kind}))
			return -ENOMEM;
		to->nr_edges++;
	}
	return 0;
}

/* Appends the function's blocks; the function's own hashes are made of theirs. */
static int add_func(struct making *m, const struct mp_func *func, struct mp_print_func *to)
{
	struct mp_fingerprint *out = m->out;

	*to = (struct mp_print_func){.vaddr = func->vaddr,
				     .name = name_hash(func->name),
				     .nr_blocks = func->nr_blocks,
				     .first_block = out->nr_blocks,
				     .nr_kept = func->nr_blocks,
				     .entry = MP_NONE};
	m->table = MP_NONE;
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &m->cfg->blocks[b];
		struct mp_print_block print = {0};

		if (mp_grow(out->blocks, m->room_blocks, out->nr_blocks + 1) ||
		    hash_block(m, b, &print, to) || add_edges(m, func, block, &print))
			return -ENOMEM;
		if (block->vaddr == func->vaddr)
			to->entry = b - func->first_block;
		for (uint32_t e = print.first_edge; e < print.first_edge + print.nr_edges; e++)
			to->full =
				mp_print_mix(to->full, out->edges[e].to << 2 | out->edges[e].kind);
		if (block->term == MP_TERM_TABLE && print.nr_edges)
			m->table = out->nr_blocks;
		out->blocks[out->nr_blocks++] = print;
	}
	return 0;
}

/* Drops the blocks of a function without samples, after its hashes are known. */
static void drop_blocks(struct making *m, struct mp_print_func *func)
{
	struct mp_fingerprint *out = m->out;

	if (!func->nr_kept)
		return;
	for (uint32_t b = func->first_block; b < out->nr_blocks; b++)
		m->nr_ways -= out->blocks[b].nr_edges;
	out->nr_edges = out->blocks[func->first_block].first_edge;
	out->nr_calls = out->blocks[func->first_block].first_call;
	out->nr_blocks = func->first_block;
	func->nr_kept = 0;
	func->loose = 0;
	func->entry = MP_NONE;
}

/* Marks the functions that hold an address of @counts or the start of one of @edges. */
static void mark_sampled(const struct mp_cfg *cfg, const struct mp_ip_count *counts,
			 size_t nr_counts, const struct mp_edge_count *edges, size_t nr_edges,
			 uint8_t *sampled)
{
	for (size_t i = 0; i < nr_counts; i++) {
		uint32_t f = mp_cfg_func_at(cfg, counts[i].vaddr);

		if (f != MP_NONE)
			sampled[f] = 1;
	}
	for (size_t i = 0; i < nr_edges; i++) {
		uint32_t f = mp_cfg_func_at(cfg, edges[i].from);

		if (f != MP_NONE)
			sampled[f] = 1;
	}
}

int mp_fingerprint_make(const struct mp_cfg *cfg, const struct mp_ip_count *counts,
			size_t nr_counts, const struct mp_edge_count *edges, size_t nr_edges,
			struct mp_fingerprint *out, struct mp_err *err)
{
	struct making m = {.cfg = cfg, .out = out};
	uint8_t *sampled = calloc((size_t)cfg->nr_funcs + 1, 1);
	int r = 0;

	*out = (struct mp_fingerprint){0};
	out->funcs = calloc((size_t)cfg->nr_funcs + 1, sizeof(*out->funcs));
	if (!sampled || !out->funcs)
		r = -ENOMEM;
	find_addresses(&m);
	if (!r && (counts || edges))
		mark_sampled(cfg, counts, nr_counts, edges, nr_edges, sampled);
	for (uint32_t f = 0; f < cfg->nr_funcs && !r; f++) {
		r = add_func(&m, &cfg->funcs[f], &out->funcs[f]);
		if (!r && (counts || edges) && !sampled[f])
			drop_blocks(&m, &out->funcs[f]);
		out->nr_funcs++;
		m.nr_read += cfg->funcs[f].size;
		if (m.nr_read >= MP_ELF_READ_AT_ONCE) {
			mp_elf_drop_pages(cfg->elf);
			m.nr_read = 0;
		}
	}
	free(sampled);
	if (!r)
		return 0;
	mp_fingerprint_fini(out);
	return mp_err_set(err, ENOMEM, "out of memory");
}

void mp_fingerprint_fini(struct mp_fingerprint *print)
{
	free(print->funcs);
	free(print->blocks);
	free(print->edges);
	free(print->calls);
	*print = (struct mp_fingerprint){0};
}
