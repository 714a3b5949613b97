// SPDX-License-Identifier: Apache-2.0
/*
 * cfg - runs the passes that turn an ELF file into functions, blocks, edges and tables, and
 * answers questions about addresses afterwards. The passes decide; see cfg_private.h.
 */
#include "libprof/cfg/cfg.h"

#include <errno.h>

#include "libprof/base/assert.h"
#include "libprof/base/search.h"
#include "libprof/cfg/cfg_private.h"

static void free_index(struct mp_cfg_index *index)
{
	if (!index)
		return;
	free(index->spans);
	free(index->text);
	free(index->parts);
	free(index->part_hint);
	free(index->block_hint);
	free(index->targets);
	free(index->weak_targets);
	free(index);
}

void mp_cfg_free(struct mp_cfg *cfg)
{
	if (!cfg)
		return;
	free(cfg->funcs);
	free(cfg->ranges);
	free(cfg->blocks);
	free(cfg->edges);
	free(cfg->tables);
	free(cfg->table_refs);
	free(cfg->label_refs);
	free(cfg->calls);
	free_index(cfg->private_data);
	free(cfg);
}

static mp_bits *const *bitmaps(struct mp_cfg_build *b, mp_bits *list[], size_t *nr)
{
	mp_bits *all[] = {
		&b->index->targets, &b->index->weak_targets,
		&b->starts,	    &b->address_taken,
		&b->pointed,	    &b->entries,
		&b->pads,	    &b->table_targets,
		&b->entered,	    &b->refs,
		&b->in_table,	    &b->tabled,
		&b->pointer_jumps,  &b->tails,
		&b->orphans,	    &b->scratch,
		&b->named,	    &b->gap_targets,
		&b->gap_refs,	    &b->may_miss_table,
		&b->computed,	    &b->non_label_words,
	};

	*nr = sizeof(all) / sizeof(all[0]);
	memcpy(list, all, sizeof(all));
	return list;
}

#define MAX_BITMAPS 32

static int init_build(struct mp_cfg_build *b, struct mp_err *err)
{
	mp_bits *list[MAX_BITMAPS];
	size_t nr;
	int ret;

	ret = mp_space_init(b->elf, b->index, err);
	if (ret)
		return ret;
	bitmaps(b, list, &nr);
	for (size_t i = 0; i < nr; i++) {
		*list[i] = mp_space_bitmap(b->index);
		if (!*list[i])
			return mp_err_set(err, ENOMEM, "%s: out of memory", b->elf->path);
	}
	b->moves = b->elf->ehdr.e_type == ET_DYN;
	b->first_dynsym = b->elf->nr_symbols;
	while (b->first_dynsym && b->elf->symbols[b->first_dynsym - 1].dynamic)
		b->first_dynsym--;
	return 0;
}

static void fini_build(struct mp_cfg_build *b)
{
	mp_bits *list[MAX_BITMAPS];
	size_t nr;

	bitmaps(b, list, &nr);
	/* The first two bitmaps, targets and weak_targets, stay with the result. */
	for (size_t i = 2; i < nr; i++)
		free(*list[i]);
	free(b->flows);
	free(b->ref_list);
	free(b->text_refs);
	free(b->code_refs);
	free(b->bases);
	free(b->summed);
	free(b->uses);
	free(b->table_lengths);
	free(b->far_links);
	free(b->part_funcs);
	free(b->part_ranges);
	free(b->part_of_range);
	mp_marks_fini(&b->marks);
}

/* Evidence that may be chance makes a target only where an instruction starts. */
static void accept_weak(struct mp_cfg_build *b)
{
	uint32_t first = b->index->first_word;

	mp_bits_or_common(b->index->targets + first, b->index->weak_targets + first,
			  b->starts + first, b->index->nr_words);
}

/* Adds every address that an operand names, in functions and outside of them. */
static void add_refs(struct mp_cfg_build *b)
{
	mp_bits_or(b->gap_refs, b->refs, b->index->nr_bytes / 64 + 1);
	mp_bits_or(b->gap_refs + b->index->first_word, b->named + b->index->first_word,
		   b->index->nr_words);
}

static void drop(void *array)
{
	void **p = array;

	free(*p);
	*p = NULL;
}

/* Frees what the passes that find functions and tables do not leave to later ones. */
static void drop_joined(struct mp_cfg_build *b)
{
	drop(&b->pointed);
	drop(&b->table_lengths);
	drop(&b->far_links);
	drop(&b->part_funcs);
	drop(&b->part_ranges);
}

/*
 * Frees everything that block making and later passes do not use, since blocks and edges
 * need about as much memory.
 */
static void drop_found(struct mp_cfg_build *b)
{
	drop(&b->orphans);
	drop(&b->computed);
	drop(&b->non_label_words);
	drop(&b->pointer_jumps);
	drop(&b->text_refs);
	drop(&b->code_refs);
	if (!b->elf->relinkable) /* else mp_cfg_find_offsets() needs them */
		drop(&b->entries);
}

static void *shrink(void *array, uint32_t nr, size_t size)
{
	void *p = nr ? realloc(array, nr * size) : NULL;

	return p ? p : array;
}

/* What cfg.h says of orders. */
static void check_orders(const struct mp_cfg *cfg)
{
	uint64_t end = 0;

	mp_assert(mp_ascends(cfg->funcs, cfg->nr_funcs, vaddr));
	mp_assert(mp_ascends(cfg->calls, cfg->nr_calls, block));
	mp_assert(mp_ascends(cfg->label_refs, cfg->nr_label_refs, insn_vaddr));
	for (uint32_t p = 0; p < mp_cfg_nr_parts(cfg); p++) {
		uint32_t first, nr = mp_cfg_part_blocks(cfg, p, &first);

		mp_assert(first + nr <= cfg->nr_blocks);
		mp_assert(mp_ascends(cfg->blocks + first, nr, vaddr));
		mp_assert(!nr || cfg->blocks[first].vaddr >= end);
		if (nr)
			end = cfg->blocks[first + nr - 1].vaddr;
	}
}

static int run_passes(struct mp_cfg_build *b)
{
	struct mp_cfg *cfg = b->cfg;
	bool again = true;
	int ret;

	ret = mp_cfg_find_funcs(b);
	if (!ret)
		ret = mp_cfg_find_targets(b);
	if (!ret)
		ret = mp_cfg_scan(b);
	if (ret)
		return ret;
	mp_cfg_find_relative(b, b->refs);
	accept_weak(b);
	ret = mp_cfg_read_gaps(b);
	if (ret)
		return ret;
	add_refs(b);
	mp_cfg_find_relative(b, b->gap_refs);
	drop(&b->gap_refs);
	/*
	 * A switch may jump right into a cold part. Only its table tells whose part that
	 * is, so both passes repeat.
	 */
	for (int round = 0; again && round < 3; round++) {
		ret = mp_cfg_join_cold(b);
		if (!ret)
			ret = mp_cfg_find_tables(b, &again);
		if (ret)
			return ret;
	}
	drop_joined(b);
	mp_cfg_find_taken(b);
	ret = mp_cfg_find_reads(b);
	if (!ret)
		mp_cfg_find_places(b);
	if (!ret)
		ret = mp_cfg_find_returns(b);
	if (!ret)
		ret = mp_cfg_find_noreturn(b);
	if (!ret)
		mp_cfg_find_return_words(b);
	if (!ret)
		ret = mp_cfg_find_labels(b);
	if (!ret)
		ret = mp_cfg_find_label_uses(b);
	drop_found(b);
	if (!ret)
		ret = mp_cfg_make_blocks(b);
	if (!ret)
		mp_cfg_judge_bare(b);
	if (!ret)
		ret = mp_cfg_check_tables(b);
	if (!ret)
		ret = mp_cfg_find_unreached(b);
	if (!ret)
		mp_cfg_find_offsets(b);
	if (!ret)
		ret = mp_cfg_mark_sure(b);
	if (!ret)
		mp_cfg_mark_probes(b);
	/* The last one, since a function keeps the first problem that is found. */
	if (!ret)
		mp_cfg_find_relocated(b, b->refs);
	cfg->blocks = shrink(cfg->blocks, cfg->nr_blocks, sizeof(*cfg->blocks));
	cfg->edges = shrink(cfg->edges, cfg->nr_edges, sizeof(*cfg->edges));
	cfg->label_refs = shrink(cfg->label_refs, cfg->nr_label_refs, sizeof(*cfg->label_refs));
	cfg->calls = shrink(cfg->calls, cfg->nr_calls, sizeof(*cfg->calls));
	cfg->tables = shrink(cfg->tables, cfg->nr_tables, sizeof(*cfg->tables));
	return ret;
}

int mp_cfg_build(const struct mp_elf *elf, const struct mp_cfg_options *options,
		 struct mp_cfg **out, struct mp_err *err)
{
	struct mp_cfg *cfg = calloc(1, sizeof(*cfg));
	struct mp_cfg_build b = {.elf = elf, .cfg = cfg, .options = options};
	int ret;

	*out = NULL;
	if (!cfg)
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	cfg->elf = elf;
	cfg->private_data = b.index = calloc(1, sizeof(*b.index));
	if (!b.index) {
		mp_cfg_free(cfg);
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	}
	ret = init_build(&b, err);
	if (!ret) {
		ret = run_passes(&b);
		if (ret)
			mp_err_set(err, -ret, "%s: %s", elf->path,
				   ret == -ENOMEM ? "out of memory" : "damaged code");
		else
			check_orders(cfg);
	}
	fini_build(&b);
	if (ret) {
		mp_cfg_free(cfg);
		return ret;
	}
	*out = cfg;
	return 0;
}

uint32_t mp_cfg_falls_to(const struct mp_cfg *cfg, uint32_t block)
{
	const struct mp_block *b = &cfg->blocks[block];

	for (uint32_t e = b->first_edge; e < b->first_edge + b->nr_edges; e++)
		if (cfg->edges[e].kind == MP_EDGE_FALL)
			return cfg->edges[e].to;
	return MP_NONE;
}

uint32_t mp_cfg_call_from(const struct mp_cfg *cfg, uint32_t low, uint32_t high, uint32_t block)
{
	return mp_search(i, low, high, cfg->calls[i].block < block);
}

uint32_t mp_cfg_block_starting(const struct mp_cfg *cfg, uint64_t vaddr)
{
	uint32_t block = mp_cfg_block_at(cfg, vaddr);

	return block != MP_NONE && cfg->blocks[block].vaddr == vaddr ? block : MP_NONE;
}

uint32_t mp_cfg_nr_parts(const struct mp_cfg *cfg)
{
	const struct mp_cfg_index *index = cfg->private_data;

	return index->nr_parts;
}

uint32_t mp_cfg_part_blocks(const struct mp_cfg *cfg, uint32_t part, uint32_t *first)
{
	const struct mp_cfg_index *index = cfg->private_data;

	*first = index->parts[part].first_block;
	return index->parts[part].nr_blocks;
}

bool mp_cfg_may_be_target(const struct mp_cfg *cfg, uint64_t vaddr)
{
	const struct mp_cfg_index *index = cfg->private_data;
	uint32_t at = mp_space_at(index, vaddr);

	return at != MP_NONE && (mp_bit(index->targets, at) || mp_bit(index->weak_targets, at));
}

bool mp_cfg_is_target(const struct mp_cfg *cfg, uint64_t vaddr)
{
	const struct mp_cfg_index *index = cfg->private_data;
	uint32_t at = mp_space_at(index, vaddr);

	return at != MP_NONE && mp_bit(index->targets, at);
}

bool mp_cfg_is_weak_target(const struct mp_cfg *cfg, uint64_t vaddr)
{
	const struct mp_cfg_index *index = cfg->private_data;
	uint32_t at = mp_space_at(index, vaddr);

	return at != MP_NONE && mp_bit(index->weak_targets, at);
}

void mp_cfg_note_target(struct mp_cfg *cfg, uint64_t vaddr)
{
	struct mp_cfg_index *index = cfg->private_data;
	uint32_t at = mp_space_at(index, vaddr);

	if (at != MP_NONE)
		mp_bit_set(index->weak_targets, at);
}

const char *mp_problem_name(enum mp_problem problem)
{
	static const char *const names[MP_NR_PROBLEMS] = {
		[MP_PROBLEM_NONE] = "none",
		[MP_PROBLEM_UNDECODABLE] = "undecodable",
		[MP_PROBLEM_OFF_GRID] = "target inside an instruction",
		[MP_PROBLEM_UNRESOLVED_JUMP] = "unresolved indirect jump",
		[MP_PROBLEM_LOOP_INSN] = "loop instruction",
		[MP_PROBLEM_FALLS_OUT] = "falls out of the function",
		[MP_PROBLEM_NO_FDE] = "no unwind information",
		[MP_PROBLEM_OVERLAP] = "overlapping functions",
		[MP_PROBLEM_SIGNAL_FRAME] = "signal frame",
		[MP_PROBLEM_BAD_LSDA] = "unreadable exception table",
		[MP_PROBLEM_MID_ESCAPE] = "an address in its middle is used as a value",
		[MP_PROBLEM_SPECIAL] = "not a compiler's function",
		[MP_PROBLEM_RETURNS_ELSEWHERE] = "a call returns to another place",
		[MP_PROBLEM_UNREACHED] = "code that no known jump or call reaches",
		[MP_PROBLEM_WRITABLE] = "code in writable memory",
		[MP_PROBLEM_READ] = "the program reads its code",
		[MP_PROBLEM_RETURN_WORD] = "data may hold a return address in it",
	};

	return (unsigned int)problem < MP_NR_PROBLEMS ? names[problem] : "unknown";
}
