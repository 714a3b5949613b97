// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_map - any bytes as the descriptor of a map note: refused, or read and written back
 * identically.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/note/map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t name[8] = "Morph";
	Elf64_Nhdr nhdr = {.n_namesz = 6, .n_type = MP_MAP_NOTE_TYPE};
	size_t note_size = sizeof(nhdr) + sizeof(name) + size + 8;
	uint8_t *note = malloc(note_size), *again;
	struct mp_elf elf = {.path = (char *)"fuzz", .map_note = note, .map_note_size = note_size};
	struct mp_map *map;
	uint64_t sum = XXH3_64bits(data, size);

	/* Append a valid checksum, else nothing behind the check would be reached. */
	nhdr.n_descsz = (uint32_t)(size + 8);
	memcpy(note, &nhdr, sizeof(nhdr));
	memcpy(note + sizeof(nhdr), name, sizeof(name));
	if (size)
		memcpy(note + sizeof(nhdr) + sizeof(name), data, size);
	memcpy(note + sizeof(nhdr) + sizeof(name) + size, &sum, sizeof(sum));
	if (!mp_map_read(&elf, &map, NULL)) {
		for (uint32_t i = 0; i < map->nr_pieces; i++)
			mp_map_original(map, map->pieces[i].new_vaddr + i);
		mp_map_original(map, sum);
		if (mp_map_encode(map, &again, &note_size, NULL))
			abort();
		free(again);
		mp_map_free(map);
	}
	free(note);
	return 0;
}
