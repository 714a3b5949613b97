// SPDX-License-Identifier: Apache-2.0
/*
 * edge_places - prints the places of the counters of a version that counts edges, one a line, as `instrument --meter`
 * reads them. For scripts/check/mutate-outputs.
 *
 *	edge-places FILE
 */
#include <stdio.h>

#include "libprof/elf/elf.h"
#include "libprof/note/edge_place.h"
#include "libprof/note/edge_table.h"

static void print_places(const struct mp_edge_table *table)
{
	struct mp_edge_place place;
	char text[MP_EDGE_PLACE_TEXT];

	for (uint32_t i = 0; mp_edge_place_of(table, i, &place); i++) {
		mp_edge_place_format(&place, text);
		puts(text);
	}
}

int main(int argc, char **argv)
{
	struct mp_edge_table *table = NULL;
	struct mp_elf *elf = NULL;
	struct mp_err err = {""};
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: edge-places FILE\n");
		return 2;
	}
	rc = mp_elf_open(argv[1], MP_ELF_ALL, &elf, &err);
	if (!rc)
		rc = mp_edge_table_read(elf, &table, &err);
	if (rc)
		fprintf(stderr, "edge-places: %s: %s\n", argv[1], err.msg);
	else
		print_places(table);
	mp_edge_table_free(table);
	mp_elf_close(elf);
	return rc != 0;
}
