// SPDX-License-Identifier: Apache-2.0
/* places - writes the list of places for a meter, from a version that counts edges. */
#ifndef MORPH_TESTS_PLACES_H
#define MORPH_TESTS_PLACES_H

#include "libprof/note/edge_place.h"
#include "tests/unit/files.h"

/* Writes the places of the @nr counters @which of the counting version @file, one a line, to @path. */
static inline void places_write(const char *file, const uint32_t *which, uint32_t nr,
				const char *path)
{
	char line[MP_EDGE_PLACE_TEXT], text[MP_METER_PLACES_MAX * MP_EDGE_PLACE_TEXT] = "";
	struct mp_edge_place place, again;
	struct mp_edge_table *table;
	struct mp_elf *elf;
	struct mp_err err;

	ck_assert_int_eq(mp_elf_open(file, MP_ELF_ALL, &elf, &err), 0);
	ck_assert_int_eq(mp_edge_table_read(elf, &table, &err), 0);
	for (uint32_t i = 0; i < nr; i++) {
		ck_assert(mp_edge_place_of(table, which[i], &place));
		mp_edge_place_format(&place, line);
		ck_assert(mp_edge_place_parse(line, &again));
		ck_assert_mem_eq(&place, &again, sizeof(place));
		strcat(strcat(text, line), "\n");
	}
	mp_edge_table_free(table);
	mp_elf_close(elf);
	write_text(path, text);
}

#endif
