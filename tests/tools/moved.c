// SPDX-License-Identifier: Apache-2.0
/*
 * moved - prints a line "NEW OLD" for each instruction of an optimised file's copies: its
 * address and that of the original's instruction, in hex. For tests of debuggers.
 *
 *	moved FILE [STEP]	only every STEPth instruction
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/insn/insn.h"
#include "libprof/note/map.h"

static int print_piece(const struct mp_elf *elf, const struct mp_map *map,
		       const struct mp_map_piece *piece, unsigned long step, unsigned long *nr)
{
	const uint8_t *bytes = mp_elf_bytes(elf, piece->new_vaddr, piece->new_size);
	struct mp_insn insn;

	if (!bytes)
		return -1;
	for (uint32_t off = 0; off < piece->new_size; off += insn.len) {
		uint64_t at = piece->new_vaddr + off;

		if (mp_insn_decode(bytes + off, piece->new_size - off, at, &insn))
			return -1;
		if ((*nr)++ % step == 0)
			printf("%" PRIx64 " %" PRIx64 "\n", at, mp_map_original(map, at));
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long step = argc > 2 ? strtoul(argv[2], NULL, 10) : 1, nr = 0;
	struct mp_map *map = NULL;
	struct mp_elf *elf = NULL;
	struct mp_err err = {""};
	int rc;

	if (argc < 2 || argc > 3 || !step) {
		fprintf(stderr, "usage: moved FILE [STEP]\n");
		return 2;
	}
	rc = mp_elf_open(argv[1], MP_ELF_SYMBOLS, &elf, &err);
	if (!rc)
		rc = mp_map_read(elf, &map, &err);
	for (uint32_t i = 0; !rc && i < map->nr_pieces; i++)
		rc = print_piece(elf, map, &map->pieces[i], step, &nr);
	if (rc)
		fprintf(stderr, "moved: %s\n", *err.msg ? err.msg : "damaged code");
	mp_map_free(map);
	mp_elf_close(elf);
	return rc ? 1 : 0;
}
