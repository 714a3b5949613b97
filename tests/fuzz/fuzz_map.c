// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_map - any bytes as the descriptors of a map note and, behind byte 0xff, of the note of replaced calls: refused,
 * or read and written back identically.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/note/map_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Adds a note at @to. A valid checksum is appended, else nothing behind the check would be reached. Return: its size. */
static size_t put_note(uint8_t *to, uint32_t type, const uint8_t *desc, size_t size)
{
	static const uint8_t name[8] = "Morph";
	Elf64_Nhdr nhdr = {.n_namesz = 6, .n_descsz = (uint32_t)(size + 8), .n_type = type};
	uint64_t sum = XXH3_64bits(desc, size);

	memcpy(to, &nhdr, sizeof(nhdr));
	memcpy(to + sizeof(nhdr), name, sizeof(name));
	if (size)
		memcpy(to + sizeof(nhdr) + sizeof(name), desc, size);
	memcpy(to + sizeof(nhdr) + sizeof(name) + size, &sum, sizeof(sum));
	return (sizeof(nhdr) + sizeof(name) + size + sizeof(sum) + 3) & ~(size_t)3;
}

/* Uses a map as morphd does. */
static void use(const struct mp_map *map)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < map->nr_pieces; i++) {
		const struct mp_map_call *call = mp_map_call_of_piece(map, i);

		mp_map_original(map, map->pieces[i].new_vaddr + i);
		if (call && (i < call->first || i - call->first >= call->nr))
			abort();
		call = mp_map_call_at(map, map->pieces[i].new_vaddr + i);
		if (call && call->first >= map->nr_pieces)
			abort();
	}
	for (uint32_t i = 0; i < map->nr_calls; i++) {
		if (!mp_map_call_follows(map, &map->calls[i], next))
			abort();
		next = map->calls[i].first + map->calls[i].nr;
	}
	mp_map_original(map, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *second = size ? memchr(data, 0xff, size) : NULL;
	size_t first_size = second ? (size_t)(second - data) : size, note_size;
	uint8_t *note = calloc(1, size + 80), *again;
	struct mp_elf elf = {.path = (char *)"fuzz", .map_note = note};
	struct mp_map *map, *same;

	note_size = put_note(note, MP_MAP_NOTE_TYPE, data, first_size);
	if (second)
		note_size += put_note(note + note_size, MP_MAP_CALLS_NOTE_TYPE, second + 1,
				      size - first_size - 1);
	elf.map_note_size = note_size;
	if (!mp_map_read(&elf, &map, NULL)) {
		use(map);
		if (mp_map_encode(map, &again, &note_size, NULL))
			abort();
		elf.map_note = again;
		elf.map_note_size = note_size;
		if (mp_map_read(&elf, &same, NULL) || same->nr_pieces != map->nr_pieces ||
		    !mp_map_same_calls(map, same))
			abort();
		mp_map_free(same);
		free(again);
		mp_map_free(map);
	}
	free(note);
	return 0;
}
