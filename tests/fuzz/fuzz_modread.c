// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_modread - any bytes as the reply of a worker that a hostile file compromised: refused,
 * or used for this one file only; nothing that is known of another file changes.
 *
 * The first byte gives how the worker ended; the rest is its reply. The sandbox is not linked:
 * md_sandbox_read() is defined here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/module/modcache_private.h"
#include "daemon/module/modread.h"
#include "daemon/module/copy_transfers.h"
#include "daemon/module/sandbox.h"
#include "libprof/note/path_key.h"

#define FILE_BYTES 0x10000
#define TEXT	   0x1000 /* of the module that is already known */
#define NEW_TEXT   0x8000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *said;
static size_t nr_said;
static int ended;

int md_sandbox_read(struct md_sandbox *sandbox, int fd, uint64_t size, struct md_buf *reply,
		    struct mp_err *err)
{
	uint8_t *to;

	(void)sandbox;
	(void)fd;
	if (size != FILE_BYTES)
		abort();
	if (ended)
		return mp_err_set(err, ended, "it ended so");
	to = md_buf_add(reply, nr_said);
	if (!to)
		return -ENOMEM;
	if (nr_said)
		memcpy(to, said, nr_said);
	return 0;
}

/* ---- what is known before ------------------------------------------------------------------- */

static const struct mp_map_piece known_pieces[] = {
	{NEW_TEXT, 0x10, 0x12, TEXT + 0x40},
	{NEW_TEXT + 0x10, 5, 0, 0},
	{NEW_TEXT + 0x20, 0x20, 0x20, TEXT},
};
#define NR_KNOWN (sizeof(known_pieces) / sizeof(known_pieces[0]))

static const struct mp_id known_id = {.build_id = "copy", .build_id_len = 4, .text_hash = 7};
static const struct mp_id original_id = {.build_id = "orig", .build_id_len = 4, .text_hash = 5};

static struct md_module *put_known(struct md_modcache *mc)
{
	struct md_module *module =
		md_modcache_put_module(mc, &known_id, MP_MODULE_FILE, "/known", 0x200);
	struct mp_map *map = calloc(1, sizeof(*map));

	if (!module || !map)
		abort();
	map->original = original_id;
	map->nr_pieces = NR_KNOWN;
	map->pieces = malloc(sizeof(known_pieces));
	if (!map->pieces)
		abort();
	memcpy(map->pieces, known_pieces, sizeof(known_pieces));
	if (md_modcache_set_map(mc, module, map))
		abort();
	module->map_ends = calloc(NR_KNOWN, sizeof(uint32_t));
	if (!module->map_ends)
		abort();
	return module;
}

static void check_known(const struct md_modcache *mc, const struct md_module *known)
{
	const struct md_module *original = md_modcache_module(mc, known->original);

	if (!mp_id_equal(&known->id, &known_id) || known->text_size != 0x200 ||
	    known->map->nr_pieces != NR_KNOWN || !mp_id_equal(&known->map->original, &original_id))
		abort();
	if (memcmp(known->map->pieces, known_pieces, sizeof(known_pieces)) || known->map->nr_calls)
		abort();
	for (size_t i = 0; i < NR_KNOWN; i++)
		if (known->map_ends[i])
			abort();
	if (!original || original->map || !mp_id_equal(&original->id, &original_id))
		abort();
}

/* ---- what came of it ------------------------------------------------------------------------ */

static void check_segments(const struct md_file *file, uint64_t text_size)
{
	struct morph_mmap mmap = {.start = 0x7f0000000000, .len = FILE_BYTES};
	struct md_mapping mappings[MD_MODREAD_SEGMENTS_MAX];
	uint64_t text = 0;

	if (!file->nr_segments || file->nr_segments > MD_MODREAD_SEGMENTS_MAX)
		abort();
	for (uint32_t i = 0; i < file->nr_segments; i++) {
		const struct morph_segment *s = &file->segments[i];

		if (s->off > FILE_BYTES || s->size > FILE_BYTES - s->off ||
		    s->vaddr >= MD_VADDR_LIMIT || s->size >= MD_VADDR_LIMIT - s->vaddr)
			abort();
		text += s->size;
	}
	if (text != text_size)
		abort();
	if (md_file_mappings(file, &mmap, mappings, MD_MODREAD_SEGMENTS_MAX) >
	    MD_MODREAD_SEGMENTS_MAX)
		abort();
}

static void add_straight(void *arg, uint64_t from, uint64_t to)
{
	*(uint64_t *)arg += from ^ to;
}

/* Uses the map like the daemon does, for samples and transfers in such a module. */
static void use_map(const struct md_module *module)
{
	const struct mp_map *map = module->map;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < map->nr_pieces; i++) {
		const struct mp_map_piece *p = &map->pieces[i];
		uint64_t from = p->new_vaddr + p->new_size - 1, to = p->old_vaddr;

		if (i && p->new_vaddr < p[-1].new_vaddr + p[-1].new_size)
			abort();
		sum += mp_map_original(map, p->new_vaddr + p->new_size / 2);
		sum += mp_map_call_at(map, p->new_vaddr) != NULL;
		sum += md_copy_translate_branch(map, module->map_ends, &from, &to);
		md_copy_translate_run(map, module->map_ends, map->pieces[0].new_vaddr, p->new_vaddr,
				      add_straight, &sum);
	}
}

static void use_paths(const struct mp_path_table *table)
{
	struct mp_path path = {0};
	uint8_t key[MP_PATH_KEY_MAX];

	for (uint32_t b = 0; b < table->nr_blocks; b++) {
		mp_path_table_block_at(table, table->blocks[b].vaddr);
		if (!mp_path_decode(table, b, table->blocks[b].shift, &path) &&
		    mp_path_key_encode(table, &path, false, key) > MP_PATH_KEY_MAX)
			abort();
	}
	mp_path_fini(&path);
}

/* A replay must accept what the daemon would record. */
static void record(const struct md_modcache *mc, struct md_file *file)
{
	struct md_modcache *again = md_modcache_new();
	struct md_buf buf = {0};

	if (!again || md_modcache_write_records(mc, file, &buf))
		abort();
	if (md_modread_take(&buf, FILE_BYTES, again))
		abort();
	if (!md_modcache_file(again, 1)->module != !file->module)
		abort();
	md_buf_fini(&buf);
	md_modcache_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int ends[] = {0, 0, 0, 0, ETIMEDOUT, EFBIG, EPROTO, EAGAIN};
	static int fd = -1;
	struct md_modcache *mc = md_modcache_new();
	struct md_file *file = calloc(1, sizeof(*file));
	const struct md_module *module;
	struct md_module *known;

	if (fd < 0) {
		fd = memfd_create("file", 0);
		if (fd < 0 || ftruncate(fd, FILE_BYTES))
			abort();
	}
	if (!size || !mc || !file || !(file->path = strdup("/new")) ||
	    md_modcache_set_file(mc, 1, file)) {
		md_file_free(file);
		md_modcache_free(mc);
		return 0;
	}
	known = put_known(mc);
	ended = ends[data[0] % 8];
	said = data + 1;
	nr_said = size - 1;
	md_modcache_set_sandbox(mc, (struct md_sandbox *)&fd);
	md_modcache_read_file(mc, fd, file);
	check_known(mc, known);
	module = md_modcache_module(mc, file->module);
	if (!module != (file->why != MD_MAPPED))
		abort();
	if (module) {
		check_segments(file, module->text_size);
		if (module->map)
			use_map(module);
		if (module->paths)
			use_paths(module->paths);
	}
	record(mc, file);
	md_modcache_free(mc);
	return 0;
}
