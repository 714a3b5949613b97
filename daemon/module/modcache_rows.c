// SPDX-License-Identifier: Apache-2.0
/*
 * modcache_rows - the unwind rows of modules: compiled from a file, sent as records, and checked
 * there again. Rows only serve the walking of stacks: where they cannot be had, the module's
 * samples are attributed all the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/module/modcache_private.h"
#include "libprof/unwind/rows_compile.h"
#include "libprof/unwind/rows_laid.h"

/* Limit of .eh_frame; libLLVM-14 has 6 MiB. */
#define FRAMES_MAX (64u << 20)
#define HDR_SIZE   12 /* of .eh_frame_hdr up to the end of its first pointer */
/* Code is read in pieces: functions of more bytes are not looked into. */
#define CODE_BYTES (1u << 20)

void md_module_lay_rows(struct md_module *module, const struct mp_rows *laid)
{
	free(module->row_bytes);
	module->row_bytes = NULL;
	module->rows = *laid;
}

static int gather_rows(struct md_module *module)
{
	size_t size;
	int ret;

	module->row_bytes = mp_rows_gather(&module->rows, &size);
	if (!module->row_bytes)
		return -ENOMEM;
	ret = mp_rows_laid_open(module->path, module->row_bytes, size, &module->rows, NULL);
	return !ret && size != module->row_size ? -EBADMSG : ret;
}

void md_modcache_gather_rows(struct md_modcache *mc)
{
	for (uint32_t i = 1; i < mc->end; i++) {
		struct md_module *module = mc->modules[i];

		if (!module || !module->rows.nr_rows || module->row_bytes || !gather_rows(module))
			continue;
		/* Walks end in a module whose rows could not be kept. */
		mc->row_bytes -= module->row_size;
		md_module_drop_rows(module);
	}
}

/* ---- reading ------------------------------------------------------------------------------ */

/* Without section headers: .eh_frame begins where .eh_frame_hdr says; its end is not known. */
static bool find_through_hdr(const struct mp_elf *elf, int fd, uint64_t *vaddr)
{
	uint8_t bytes[HDR_SIZE];
	struct mp_cursor cur = {.p = bytes, .end = bytes + sizeof(bytes)};
	uint8_t enc;

	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type != PT_GNU_EH_FRAME || p->p_filesz < HDR_SIZE ||
		    pread(fd, bytes, HDR_SIZE, (off_t)p->p_offset) != HDR_SIZE)
			continue;
		cur.vaddr = p->p_vaddr;
		if (mp_cursor_u8(&cur) != 1)
			return false;
		enc = mp_cursor_u8(&cur);
		mp_cursor_skip(&cur, 2);
		*vaddr = mp_cursor_pointer(&cur, enc, p->p_vaddr);
		return !cur.bad && *vaddr && !(enc & MP_EH_PE_INDIRECT);
	}
	return false;
}

/* Finds the place of .eh_frame in the file. *@sized: its end is known. */
static bool find_frames(const struct mp_elf *elf, int fd, uint64_t *off, uint64_t *size,
			uint64_t *vaddr, bool *sized)
{
	const struct mp_section *sec = mp_elf_section(elf, ".eh_frame");

	*sized = sec && sec->type != SHT_NOBITS && sec->flags & SHF_ALLOC;
	if (*sized) {
		*off = sec->off;
		*size = sec->size;
		*vaddr = sec->vaddr;
		return true;
	}
	if (!find_through_hdr(elf, fd, vaddr))
		return false;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type != PT_LOAD || *vaddr - p->p_vaddr >= p->p_filesz)
			continue;
		*off = p->p_offset + (*vaddr - p->p_vaddr);
		*size = p->p_filesz - (*vaddr - p->p_vaddr);
		return true;
	}
	return false;
}

/* The piece of a file's code that was read last. */
struct code_piece {
	const struct mp_elf *elf;
	int fd;
	uint64_t start, size; /* link-time addresses */
	uint8_t *bytes;
};

static const uint8_t *read_code(void *arg, uint64_t vaddr, uint64_t size)
{
	struct code_piece *piece = arg;
	uint64_t nr, in;
	ssize_t got;

	if (vaddr - piece->start < piece->size && size <= piece->size - (vaddr - piece->start))
		return piece->bytes + (vaddr - piece->start);
	piece->size = 0;
	for (uint32_t i = 0; i < piece->elf->nr_phdrs && piece->bytes; i++) {
		const Elf64_Phdr *p = &piece->elf->phdrs[i];

		in = vaddr - p->p_vaddr;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || in >= p->p_filesz ||
		    size > p->p_filesz - in)
			continue;
		nr = p->p_filesz - in < CODE_BYTES ? p->p_filesz - in : CODE_BYTES;
		got = pread(piece->fd, piece->bytes, nr, (off_t)(p->p_offset + in));
		if (got < 0 || (uint64_t)got < size)
			return NULL;
		piece->start = vaddr;
		piece->size = (uint64_t)got;
		return piece->bytes;
	}
	return NULL;
}

void md_module_read_rows(struct md_module *module, const struct mp_elf *elf, int fd)
{
	struct code_piece piece = {.elf = elf, .fd = fd};
	const struct mp_code_bytes code = {read_code, &piece};
	struct mp_cursor frames = {0};
	uint64_t off, nr;
	void *bytes = NULL, *table = NULL;
	size_t size = 0;
	bool sized;

	if (!find_frames(elf, fd, &off, &nr, &frames.vaddr, &sized) || !nr || nr > FRAMES_MAX)
		return;
	bytes = malloc(nr);
	piece.bytes = malloc(CODE_BYTES);
	if (bytes && pread(fd, bytes, nr, (off_t)off) == (ssize_t)nr) {
		frames.p = bytes;
		frames.end = frames.p + nr;
		if (!mp_rows_make(&frames, sized, elf->start, &code, &table, &size, NULL) &&
		    size <= MD_ROWS_SIZE_MAX &&
		    !mp_rows_laid_open("", table, size, &module->rows, NULL)) {
			module->row_bytes = table;
			module->row_size = module->row_come = (uint32_t)size;
			table = NULL;
		}
	}
	free(table);
	free(piece.bytes);
	free(bytes);
}

/* ---- records ------------------------------------------------------------------------------ */

int md_modcache_write_rows(const struct md_modcache *mc, const struct md_file *file,
			   struct md_buf *buf)
{
	const uint32_t max = MORPH_RECORD_SIZE_MAX - sizeof(struct morph_module_unwind);
	const struct md_module *module = md_modcache_module(mc, file->module);
	struct morph_module_unwind *record;
	uint32_t off, nr;

	/* Only a reader sends rows, and no source has them. */
	if (!module || !module->row_bytes || !module->rows.rules)
		return 0;
	for (off = 0; off < module->row_size; off += nr) {
		nr = module->row_size - off < max ? module->row_size - off : max;
		record = md_record_add(buf, MORPH_REC_MODULE_UNWIND, sizeof(*record) + nr);
		if (!record)
			return -ENOMEM;
		record->module = file->number;
		record->table_size = module->row_size;
		record->off = off;
		record->nr = nr;
		memcpy(record->bytes, module->row_bytes + off, nr);
	}
	return 0;
}

/* Checks the table once all its parts have arrived, in order. */
int md_modcache_add_unwind_record(struct md_modcache *mc, const struct morph_module_unwind *record)
{
	struct md_file *file = md_modcache_file(mc, record->module);
	struct md_module *module = file ? md_modcache_module(mc, file->module) : NULL;
	uint8_t *bytes;
	int ret;

	if (!module || module->rows.rules)
		return -EBADMSG;
	if (!record->off) {
		md_module_drop_rows(module);
		if (record->table_size > MD_ROWS_SIZE_MAX)
			return -EBADMSG;
		module->row_size = record->table_size;
	}
	if (!record->nr || record->table_size != module->row_size ||
	    record->off != module->row_come)
		return -EBADMSG;
	/* Grow as parts arrive. The announced size is not trusted. */
	bytes = realloc(module->row_bytes, record->off + (size_t)record->nr);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes + record->off, record->bytes, record->nr);
	module->row_bytes = bytes;
	module->row_come += record->nr;
	if (module->row_come < module->row_size)
		return 0;
	ret = mp_rows_laid_open(module->path, bytes, module->row_size, &module->rows, NULL);
	if (ret)
		md_module_drop_rows(module);
	return ret;
}

void md_modcache_adopt_rows(struct md_modcache *mc, struct md_module *module,
			    struct md_module *from)
{
	if (!from->rows.rules || from->row_size > MD_ROWS_MAX - mc->row_bytes)
		return;
	module->rows = from->rows;
	module->row_bytes = from->row_bytes;
	module->row_size = module->row_come = from->row_size;
	mc->row_bytes += from->row_size;
	from->row_bytes = NULL;
	md_module_drop_rows(from);
}
