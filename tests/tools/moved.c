// SPDX-License-Identifier: Apache-2.0
/*
 * moved - prints a line "NEW OLD" for each instruction of an optimised file's copies: its
 * address and that of the original's instruction, in hex. For tests of debuggers.
 *
 *	moved FILE [STEP]		only every STEPth instruction
 *	moved FILE --inlined ORIGINAL	"NEW OLD CALL" for each instruction of code that replaces a call
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- code that replaces calls -------------------------------------------------------------- */

#define ENDBR64_SIZE 4

/* @last: a jump in place of the return leads on behind the call, and belongs to the calling function. */
static int print_inlined(const struct mp_elf *elf, const struct mp_elf *original,
			 const struct mp_map_piece *piece, uint64_t call, bool last)
{
	const uint8_t *bytes = mp_elf_bytes(elf, piece->new_vaddr, piece->new_size);
	struct mp_insn insn, old;

	for (uint32_t off = 0; off < piece->new_size; off += insn.len) {
		uint64_t at = piece->old_vaddr + off, now = piece->new_vaddr + off;
		const uint8_t *b = mp_elf_bytes(original, at, 1);

		if (!bytes || !b ||
		    mp_insn_decode(bytes + off, piece->new_size - off, now, &insn) ||
		    mp_insn_decode(b, piece->old_size - off, at, &old))
			return -1;
		if (last && old.kind == MP_INSN_RET && insn.kind == MP_INSN_JUMP)
			break;
		printf("%" PRIx64 " %" PRIx64 " %" PRIx64 "\n", now, at, call);
		/* The branch at the end may have another length, or be followed by a jump. */
		if (off + old.len == piece->old_size)
			break;
	}
	return 0;
}

static int print_all_inlined(const struct mp_elf *elf, const struct mp_elf *original,
			     const struct mp_map *map)
{
	for (uint32_t c = 0; c < map->nr_calls; c++) {
		const struct mp_map_call *call = &map->calls[c];

		for (uint32_t i = 0; i < call->nr; i++) {
			const struct mp_map_piece *first = &map->pieces[call->first];
			/* Code that lies apart begins with another block than the function's first. */
			bool near = first->old_vaddr - call->callee <= ENDBR64_SIZE;

			if (print_inlined(elf, original, first + i, call->back - MP_MAP_CALL_SIZE,
					  near && i + 1 == call->nr))
				return -1;
		}
	}
	return 0;
}

static int print_pieces(const struct mp_elf *elf, const struct mp_map *map, unsigned long step)
{
	unsigned long nr = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < map->nr_pieces; i++)
		rc = print_piece(elf, map, &map->pieces[i], step, &nr);
	return rc;
}

int main(int argc, char **argv)
{
	bool inlined = argc == 4 && !strcmp(argv[2], "--inlined");
	unsigned long step = argc == 3 ? strtoul(argv[2], NULL, 10) : 1;
	struct mp_elf *elf = NULL, *original = NULL;
	struct mp_map *map = NULL;
	struct mp_err err = {""};
	int rc;

	if (argc < 2 || (argc > 3 && !inlined) || !step) {
		fprintf(stderr, "usage: moved FILE [STEP]\n       moved FILE --inlined ORIGINAL\n");
		return 2;
	}
	rc = mp_elf_open(argv[1], MP_ELF_SYMBOLS, &elf, &err);
	if (!rc)
		rc = mp_map_read(elf, &map, &err);
	if (!rc && inlined)
		rc = mp_elf_open(argv[3], MP_ELF_SYMBOLS, &original, &err);
	if (!rc)
		rc = inlined ? print_all_inlined(elf, original, map) : print_pieces(elf, map, step);
	if (rc)
		fprintf(stderr, "moved: %s\n", *err.msg ? err.msg : "damaged code");
	mp_map_free(map);
	mp_elf_close(original);
	mp_elf_close(elf);
	return rc ? 1 : 0;
}
