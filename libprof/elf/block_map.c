// SPDX-License-Identifier: Apache-2.0
/*
 * block_map - see block_map.h, which describes the format. The section may be hostile.
 */
#include "libprof/elf/block_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "libprof/base/dwarf_cursor.h"
#include "libprof/base/grow.h"
#include "libprof/elf/elf_private.h"

/* Section types; <elf.h> lacks them. */
#define SHT_LLVM_BB_ADDR_MAP_V0 0x6fff4c08
#define SHT_LLVM_BB_ADDR_MAP	0x6fff4c0a

#define VERSION_MAX   2
#define HAS_ENTRIES   1
#define HAS_FREQUENCY 2
#define HAS_BRANCHES  4
#define HAS_PARTS     8
#define FEATURES      15

struct reader {
	const struct mp_elf *elf;
	const struct mp_section *section;
	struct mp_cursor at;
	uint8_t version, features; /* of this function */
	struct mp_block_map *map;
	struct mp_err *err;
};

static int damaged(const struct reader *r, const char *what)
{
	uint64_t off = (uint64_t)(r->at.p - r->elf->data) - r->section->off;

	return mp_err_set(r->err, EBADMSG, "%s: %s is damaged at byte %" PRIu64 ": %s",
			  r->elf->path, r->section->name, off, what);
}

static bool is_code(const struct mp_elf *elf, const struct mp_mapped_block *block)
{
	return mp_elf_is_code(elf, block->vaddr) &&
	       (!block->size || mp_elf_is_code(elf, block->vaddr + block->size - 1));
}

/*
 * Reads a block of the part at @base. *@end: where the block before ended, from there. Linkers give parts that they
 * left out the address 0.
 */
static int read_block(struct reader *r, uint64_t base, uint64_t *end, struct mp_mapped_block *block)
{
	uint64_t number = r->version < 2 ? block->number : mp_cursor_uleb(&r->at);
	uint64_t off = mp_cursor_uleb(&r->at), size = mp_cursor_uleb(&r->at);

	mp_cursor_uleb(&r->at); /* flags */
	if (r->at.bad || number > UINT32_MAX || off > UINT32_MAX || size > UINT32_MAX)
		return damaged(r, "no block");
	off += r->version ? *end : 0;
	*end = off + size;
	*block = (struct mp_mapped_block){base + off, (uint32_t)size, (uint32_t)number};
	return !base || is_code(r->elf, block) ? 0 : damaged(r, "a block outside of the code");
}

/* Reads a part of @func. *@nr_read: blocks before; is set to include those of this part. */
static int read_part(struct reader *r, struct mp_mapped_func *func, uint32_t *nr_read)
{
	uint64_t base = mp_cursor_u64(&r->at), nr = mp_cursor_uleb(&r->at), end = 0;
	struct mp_block_map *map = r->map;
	int ret = r->at.bad ? damaged(r, "no address of a function") : 0;

	for (uint64_t i = 0; i < nr && !ret; i++) {
		struct mp_mapped_block block = {.number = *nr_read};

		ret = read_block(r, base, &end, &block);
		if (ret || !++*nr_read || !base)
			continue;
		if (mp_push(map->blocks, map->nr_blocks, map->max_blocks, block))
			ret = mp_err_code(r->err, ENOMEM);
		else if (!func->nr_blocks++) {
			func->vaddr = block.vaddr;
			func->entry = block.number;
		}
	}
	return ret;
}

/* Skips what clang assumed of the function's @nr_blocks. */
static int skip_analysis(struct reader *r, uint32_t nr_blocks)
{
	if (r->features & HAS_ENTRIES)
		mp_cursor_uleb(&r->at);
	for (uint32_t i = 0; i < nr_blocks && !r->at.bad; i++) {
		if (r->features & HAS_FREQUENCY)
			mp_cursor_uleb(&r->at);
		if (!(r->features & HAS_BRANCHES))
			continue;
		for (uint64_t nr = mp_cursor_uleb(&r->at); nr && !r->at.bad; nr--) {
			mp_cursor_uleb(&r->at);
			mp_cursor_uleb(&r->at);
		}
	}
	return r->at.bad ? damaged(r, "no frequencies") : 0;
}

static int compare_number(const void *a, const void *b)
{
	const struct mp_mapped_block *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int compare_block(const void *a, const void *b)
{
	const struct mp_mapped_block *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (!x->size != !y->size)
		return x->size ? 1 : -1;
	return compare_number(a, b);
}

/*
 * clang refuses clusters with a number that occurs twice. Blocks that overlap could be as many as the file has bytes.
 */
static int sort_blocks(const struct reader *r, const struct mp_mapped_func *func)
{
	struct mp_mapped_block *blocks;

	if (!func->nr_blocks)
		return 0; /* there may be no array */
	blocks = r->map->blocks + func->first_block;
	qsort(blocks, func->nr_blocks, sizeof(*blocks), compare_number);
	for (uint32_t i = 1; i < func->nr_blocks; i++)
		if (blocks[i].number == blocks[i - 1].number)
			return damaged(r, "two blocks of a function with the same number");
	qsort(blocks, func->nr_blocks, sizeof(*blocks), compare_block);
	for (uint32_t i = 1; i < func->nr_blocks; i++)
		if (blocks[i].vaddr - blocks[i - 1].vaddr < blocks[i - 1].size)
			return damaged(r, "blocks of a function that overlap");
	return 0;
}

static int read_version(struct reader *r)
{
	r->version = mp_cursor_u8(&r->at);
	r->features = mp_cursor_u8(&r->at);
	if (r->at.bad)
		return damaged(r, "no version");
	if (!r->version || r->version > VERSION_MAX || r->features & ~FEATURES ||
	    (r->version < 2 && r->features))
		return mp_err_set(r->err, EOPNOTSUPP,
				  "%s: %s has version %u with features %u, which is not known",
				  r->elf->path, r->section->name, r->version, r->features);
	return 0;
}

static int read_function(struct reader *r)
{
	struct mp_block_map *map = r->map;
	struct mp_mapped_func func = {.first_block = map->nr_blocks};
	uint64_t nr_parts = 1;
	uint32_t nr_read = 0;
	int ret = r->section->type == SHT_LLVM_BB_ADDR_MAP ? read_version(r) : 0;

	if (!ret && r->features & HAS_PARTS)
		nr_parts = mp_cursor_uleb(&r->at);
	for (; nr_parts && !ret; nr_parts--)
		ret = read_part(r, &func, &nr_read);
	if (!ret)
		ret = skip_analysis(r, nr_read);
	if (!ret)
		ret = sort_blocks(r, &func);
	if (!ret && func.nr_blocks && mp_push(map->funcs, map->nr_funcs, map->max_funcs, func))
		ret = mp_err_code(r->err, ENOMEM);
	return ret;
}

static int compare_func(const void *a, const void *b)
{
	const struct mp_mapped_func *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->first_block > y->first_block) - (x->first_block < y->first_block);
}

/* Linkers that fold equal functions leave several of one address. */
static void sort_funcs(struct mp_block_map *map)
{
	uint32_t nr = 0;

	if (map->nr_funcs)
		qsort(map->funcs, map->nr_funcs, sizeof(*map->funcs), compare_func);
	for (uint32_t i = 0; i < map->nr_funcs; i++)
		if (!nr || map->funcs[nr - 1].vaddr != map->funcs[i].vaddr)
			map->funcs[nr++] = map->funcs[i];
	map->nr_funcs = nr;
}

/*
 * Code belongs to one function. Without this rule, a few bytes of a map for each function could make its blocks many
 * times as many as the file has.
 */
static int check_size(const struct mp_elf *elf, const struct mp_block_map *map, struct mp_err *err)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_LOAD && elf->phdrs[i].p_flags & PF_X)
			left += elf->phdrs[i].p_filesz;
	for (uint32_t f = 0; f < map->nr_funcs; f++)
		for (uint32_t i = 0; i < map->funcs[f].nr_blocks; i++) {
			uint64_t size = map->blocks[map->funcs[f].first_block + i].size;

			if (size > left)
				return mp_err_set(err, EBADMSG,
						  "%s: the map of basic blocks is damaged: "
						  "functions overlap",
						  elf->path);
			left -= size;
		}
	return 0;
}

int mp_block_map_read(const struct mp_elf *elf, struct mp_block_map *out, struct mp_err *err)
{
	struct reader r = {.elf = elf, .map = out, .err = err};
	bool any = false;
	int ret = 0;

	*out = (struct mp_block_map){0};
	for (uint32_t i = 1; i < elf->nr_sections && !ret; i++) {
		r.section = &elf->sections[i];
		if (r.section->type != SHT_LLVM_BB_ADDR_MAP &&
		    r.section->type != SHT_LLVM_BB_ADDR_MAP_V0)
			continue;
		any = true;
		r.version = r.features = 0;
		r.at = mp_cursor_over(elf->data + r.section->off,
				      elf->data + r.section->off + r.section->size);
		if (r.section->flags & SHF_COMPRESSED)
			ret = mp_err_set(err, EOPNOTSUPP, "%s: %s is compressed", elf->path,
					 r.section->name);
		while (!ret && r.at.p < r.at.end)
			ret = read_function(&r);
	}
	if (!ret && !any)
		ret = mp_err_set(
			err, ENODATA,
			"%s: has no map of basic blocks: compile with -fbasic-block-sections=labels "
			"(from clang 19 on: -fbasic-block-address-map)",
			elf->path);
	sort_funcs(out);
	return ret ? ret : check_size(elf, out, err);
}

void mp_block_map_fini(struct mp_block_map *map)
{
	free(map->funcs);
	free(map->blocks);
	*map = (struct mp_block_map){0};
}
