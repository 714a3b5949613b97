// SPDX-License-Identifier: Apache-2.0
/*
 * path-note ORIGINAL COPY NOTE PATHS - writes what makes tests/e2e/morphd/paths.S a rewritten file:
 * its map note and its table of paths, from the labels of both builds.
 *
 * path-note --list DB ORIGINAL COPY - puts COPY into DB's list of outputs, because verify
 * cannot confirm a copy that was made by hand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/elf/elf.h"
#include "libprof/note/map.h"
#include "libprof/note/path_table.h"
#include "libprof/store/store_outputs.h"

static struct mp_err err;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "path-note: %s: %s\n", what, err.msg);
	exit(1);
}

static uint64_t address_of(const struct mp_elf *elf, const char *name)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (!strcmp(elf->symbols[i].name, name))
			return elf->symbols[i].vaddr;
	die(name);
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(bytes, 1, size, f) != size || fclose(f))
		die(path);
}

#define NR_LABELS 9

/*
 * In the order of the copy. An added label begins code without an original, up to the next
 * label.
 */
static const struct {
	const char *name;
	bool added;
} labels[NR_LABELS] = {{"blk_a", false}, {"to_b", true},   {"blk_b", false},
		       {"to_d", true},	 {"to_c", true},   {"blk_c", false},
		       {"blk_d", false}, {"blk_e", false}, {"blk_f", false}};

static void write_note(const struct mp_elf *old, const struct mp_elf *new, const char *path)
{
	struct mp_map_piece pieces[NR_LABELS];
	struct mp_map map = {.original = old->id, .pieces = pieces};
	uint64_t from, to, was;
	uint8_t *bytes;
	size_t size;

	for (int i = 0; i < NR_LABELS; i++) {
		struct mp_map_piece *piece = &pieces[map.nr_pieces];

		from = address_of(new, labels[i].name);
		to = i + 1 < NR_LABELS ? address_of(new, labels[i + 1].name) : from + 1;
		was = address_of(old, labels[i].name);
		if (from == to)
			continue;
		*piece = (struct mp_map_piece){
			.new_vaddr = from, .new_size = (uint32_t)(to - from), .old_vaddr = was};
		if (!labels[i].added)
			piece->old_size =
				i + 1 < NR_LABELS
					? (uint32_t)(address_of(old, labels[i + 1].name) - was)
					: 1;
		map.nr_pieces++;
	}
	if (mp_map_encode(&map, &bytes, &size, &err))
		die("map");
	write_bytes(path, bytes, size);
	free(bytes);
}

#define R11 11

static void write_paths(const struct mp_elf *old, const char *path)
{
	enum {
		A,
		B,
		C,
		D,
		E,
		F,
		NR
	};
	static const char *const names[NR] = {"blk_a", "blk_b", "blk_c", "blk_d", "blk_e", "blk_f"};
	struct mp_path_block blocks[NR];
	struct mp_path_edge edges[] = {
		{.from = MP_NONE, .to = A, .kind = MP_PATH_EDGE_OUTSIDE},
		{.from = E, .to = A, .kind = MP_EDGE_TAKEN},
		{.from = A, .to = B, .kind = MP_EDGE_FALL, .carries = true},
		{.from = A, .to = C, .kind = MP_EDGE_TAKEN, .carries = true},
		{.from = C, .to = D, .kind = MP_EDGE_FALL, .carries = true},
		{.from = B, .to = D, .kind = MP_EDGE_JUMP, .carries = true, .value = 1},
		{.from = D, .to = E, .kind = MP_EDGE_FALL, .carries = true},
		{.from = E, .to = F, .kind = MP_EDGE_FALL, .carries = true},
	};
	struct mp_path_func func = {.nr_blocks = NR, .nr_edges = sizeof(edges) / sizeof(edges[0])};
	struct mp_path_table table = {.funcs = &func,
				      .nr_funcs = 1,
				      .blocks = blocks,
				      .nr_blocks = NR,
				      .edges = edges,
				      .nr_edges = func.nr_edges};
	uint8_t *bytes;
	size_t size;

	for (int i = 0; i < NR; i++) {
		uint64_t vaddr = address_of(old, names[i]);
		uint32_t length = i + 1 < NR ? (uint32_t)(address_of(old, names[i + 1]) - vaddr)
					     : 1;

		blocks[i] = (struct mp_path_block){
			.vaddr = vaddr, .size = length, .term_off = length, .reg = R11};
	}
	blocks[A].reg = MP_NO_REGISTER;
	blocks[A].starts = true;
	/* The copy of D adds a constant that stays in the number until the path ends. */
	blocks[E].shift = blocks[F].shift = 100;
	if (mp_path_table_encode(&table, &bytes, &size, &err))
		die("paths");
	write_bytes(path, bytes, size);
	free(bytes);
}

static int list_output(const char *db, const char *original, const char *copy)
{
	struct mp_output output = {.paths_hash = 0};
	struct mp_elf *old, *new;
	const struct mp_section *sec;
	struct mp_path_table *table = NULL;
	struct mp_store *store;

	if (mp_elf_open(original, MP_ELF_ID, &old, &err) ||
	    mp_elf_open(copy, MP_ELF_ALL, &new, &err))
		die("list");
	output.id = new->id;
	output.original = old->id;
	sec = mp_elf_section(new, MP_PATH_TABLE_SECTION);
	/* A damaged table counts as none. */
	if (sec && !mp_path_table_decode("", new->data + sec->off, sec->size, &table, NULL))
		output.paths_hash = table->hash;
	mp_path_table_free(table);
	if (mp_store_open(db, MP_STORE_WRITE, &store, &err) ||
	    mp_store_put_output(store, &output, &err))
		die("list");
	mp_store_close(store);
	mp_elf_close(new);
	mp_elf_close(old);
	return 0;
}

int main(int argc, char **argv)
{
	struct mp_elf *old, *new;

	if (argc == 5 && !strcmp(argv[1], "--list"))
		return list_output(argv[2], argv[3], argv[4]);
	if (argc != 5)
		return 2;
	if (mp_elf_open(argv[1], MP_ELF_ALL, &old, &err) ||
	    mp_elf_open(argv[2], MP_ELF_ALL, &new, &err))
		die("open");
	write_note(old, new, argv[3]);
	write_paths(old, argv[4]);
	mp_elf_close(old);
	mp_elf_close(new);
	return 0;
}
