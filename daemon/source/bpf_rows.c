// SPDX-License-Identifier: Apache-2.0
/* bpf_rows - unwind rows in maps; see bpf_rows.h. */
#ifdef MORPH_BPF
#include "daemon/source/bpf_rows.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/source/row_slabs.h"
#include "libprof/unwind/rows_laid.h"

#define ALL_SLABS ((size_t)MD_WIRE_SLABS * MD_WIRE_SLAB)

struct md_bpf_rows {
	struct md_row_slabs slabs;
	int slabs_fd, files_fd;
};

/* The programs' map keeps the slab; the mapping here is to fill it, and to read the rows. */
static int add_slab(void *arg, uint32_t nr, uint8_t *at)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const struct md_bpf_rows *rows = arg;
	int fd, ret = 0;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "slab", sizeof(nr), MD_WIRE_SLAB_ROOM, 1, &opts);
	if (fd < 0)
		return fd;
	if (mmap(at, MD_WIRE_SLAB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		ret = -errno;
	if (!ret)
		ret = bpf_map_update_elem(rows->slabs_fd, &nr, &fd, BPF_ANY);
	close(fd);
	return ret;
}

struct md_bpf_rows *md_bpf_rows_new(int slabs, int files)
{
	struct md_bpf_rows *rows = calloc(1, sizeof(*rows));
	void *memory;

	if (!rows)
		return NULL;
	/* Addresses only: a slab is mapped here when it is needed. */
	memory = mmap(NULL, ALL_SLABS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		      0);
	if (memory == MAP_FAILED) {
		free(rows);
		return NULL;
	}
	rows->slabs.memory = memory;
	rows->slabs.add = add_slab;
	rows->slabs.arg = rows;
	rows->slabs_fd = slabs;
	rows->files_fd = files;
	return rows;
}

void md_bpf_rows_free(struct md_bpf_rows *rows)
{
	if (!rows)
		return;
	munmap(rows->slabs.memory, ALL_SLABS);
	free(rows);
}

static uint64_t hash_of(const struct mp_rows *rows)
{
	uint64_t hash = XXH3_64bits(rows->rules, rows->nr_rules * sizeof(rows->rules[0]));

	for (uint32_t i = 0; i < rows->nr_pages; i++) {
		const struct mp_rows_page *page = mp_rows_laid_page(rows, i);

		hash = XXH3_64bits_withSeed(page, mp_rows_page_size(page), hash + rows->base);
	}
	return hash;
}

static int describe(const struct md_source_rows *given, struct md_wire_file_key *key,
		    struct md_wire_file *file)
{
	const struct morph_mmap *mmap = given->mmap;

	if (given->nr_segments > MORPH_ROWS_SEGMENTS_MAX)
		return -EFBIG;
	file->nr_segments = given->nr_segments;
	for (uint32_t i = 0; i < given->nr_segments; i++) {
		file->segments[i] = given->segments[i];
		if (file->segments[i].off + file->segments[i].size < file->segments[i].off)
			return -EINVAL;
	}
	if (given->rows)
		file->hash = hash_of(given->rows);
	if (!mmap)
		return 0;
	key->ino = mmap->ino;
	key->dev = mmap->dev_major << 20 | mmap->dev_minor;
	if (mmap->task.flags & MORPH_MMAP_GENERATION) {
		file->flags = MD_WIRE_FILE_GENERATION;
		file->ino_generation = (uint32_t)mmap->ino_generation;
	}
	return 0;
}

/* Finds the rows in the slabs, or puts them there. */
static int place(struct md_bpf_rows *rows, const struct md_source_rows *given,
		 const struct md_wire_file_key *key, struct md_wire_file *file)
{
	struct md_wire_file old;
	struct mp_rows laid;

	if (!given->rows || md_row_slabs_find(&rows->slabs, given->rows, file))
		return 0;
	/* A file is given twice if its module was forgotten and is known again. */
	if (!bpf_map_lookup_elem(rows->files_fd, key, &old) && old.hash == file->hash &&
	    old.nr_pages) {
		file->base = old.base;
		file->nr_pages = old.nr_pages;
		file->directory = old.directory;
		file->rules = old.rules;
		return 0;
	}
	return md_row_slabs_add(&rows->slabs, given->rows, given->laid, file,
				given->laid ? given->laid : &laid);
}

int md_bpf_rows_give(struct md_bpf_rows *rows, const struct md_source_rows *given)
{
	struct md_wire_file_key key = {0};
	struct md_wire_file file = {0};
	int ret = describe(given, &key, &file);

	if (!ret)
		ret = place(rows, given, &key, &file);
	/*
	 * The system call orders what was written to the slabs before the file. A walk that is
	 * being made has the file's earlier rows, which stay where they are.
	 */
	if (ret)
		return ret;
	ret = bpf_map_update_elem(rows->files_fd, &key, &file, BPF_ANY);
	return ret == -E2BIG ? -ENOSPC : ret; /* the table is full */
}

#endif
