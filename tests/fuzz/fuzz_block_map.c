// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_block_map - any bytes as clang's map of basic blocks: refused, or the map has what block_map.h promises.
 *
 * The first byte chooses the type of the section, the rest is the section. The code lies from 0x1000 to 0x1100.
 */
#include <stdlib.h>

#include "libprof/elf/block_map.h"
#include "libprof/elf/elf.h"
#include "tests/support/tiny_elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_func(const struct mp_elf *elf, const struct mp_block_map *map, uint32_t f)
{
	const struct mp_mapped_func *func = &map->funcs[f];
	const struct mp_mapped_block *blocks = map->blocks + func->first_block;
	bool has_entry = false;

	check(!f || map->funcs[f - 1].vaddr < func->vaddr);
	check(func->nr_blocks && func->nr_blocks <= map->nr_blocks - func->first_block);
	for (uint32_t i = 0; i < func->nr_blocks; i++) {
		check(mp_elf_is_code(elf, blocks[i].vaddr));
		check(!i || blocks[i - 1].vaddr + blocks[i - 1].size <= blocks[i].vaddr);
		has_entry |= blocks[i].number == func->entry && blocks[i].vaddr == func->vaddr;
		for (uint32_t k = 0; k < i && i < 100; k++)
			check(blocks[k].number != blocks[i].number);
	}
	check(has_entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t code[0x100];
	struct tiny_section sections[] = {
		{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof(code), 0, 0,
		 0},
		{".llvm_bb_addr_map", 0x6fff4c08, 0, 0, data + 1, size - 1, 0, 0, 0},
	};
	struct mp_block_map map;
	struct mp_elf *elf;
	struct mp_err err;
	size_t file_size;
	uint8_t *file;

	if (!size)
		return 0;
	sections[1].type += data[0] & 2;
	file = tiny_elf_build(sections, 2, NULL, 0, &file_size);
	check(!mp_elf_open_memory("fuzz", file, file_size, MP_ELF_ALL, &elf, &err));
	if (!mp_block_map_read(elf, &map, &err))
		for (uint32_t f = 0; f < map.nr_funcs; f++)
			check_func(elf, &map, f);
	mp_block_map_fini(&map);
	mp_elf_close(elf);
	free(file);
	return 0;
}
