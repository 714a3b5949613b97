// SPDX-License-Identifier: Apache-2.0
/* debug_section - inflates a section, and writes the changed one. Does not interpret DWARF. */
#include "editor/debug/read/debug_section.h"
#include "libprof/base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* zlib cannot inflate to more than this many times the size. */
#define MAX_INFLATION 1032

static int inflate_section(const struct mp_elf *elf, const struct mp_section *s,
			   struct me_debug_section *out)
{
	Elf64_Chdr header;
	uLongf size;

	if (s->size < sizeof(header))
		return -EPERM;
	memcpy(&header, elf->data + s->off, sizeof(header));
	if (header.ch_type != ELFCOMPRESS_ZLIB ||
	    header.ch_size > (s->size - sizeof(header)) * MAX_INFLATION + 64)
		return -EPERM;
	out->inflated = malloc(header.ch_size + 1);
	if (!out->inflated)
		return -ENOMEM;
	size = header.ch_size;
	if (uncompress(out->inflated, &size, elf->data + s->off + sizeof(header),
		       s->size - sizeof(header)) != Z_OK ||
	    size != header.ch_size)
		return -EPERM;
	out->data = out->inflated;
	out->size = size;
	return 0;
}

int me_debug_section_open(const struct mp_elf *elf, const char *name, struct me_debug_section *out)
{
	*out = (struct me_debug_section){0};
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];

		if (strcmp(s->name, name))
			continue;
		if (out->index || s->type != SHT_PROGBITS || s->flags & SHF_ALLOC)
			return -EPERM;
		out->index = i;
		out->data = elf->data + s->off;
		out->size = s->size;
	}
	if (out->index && elf->sections[out->index].flags & SHF_COMPRESSED)
		return inflate_section(elf, &elf->sections[out->index], out);
	return 0;
}

void me_debug_section_fini(struct me_debug_section *section)
{
	for (uint32_t i = 0; i < section->nr_pieces; i++)
		free(section->pieces[i].bytes);
	free(section->pieces);
	free(section->inflated);
	me_bytes_fini(&section->added);
	*section = (struct me_debug_section){0};
}

int me_debug_section_replace(struct me_debug_section *section, uint64_t off, uint8_t *bytes,
			     size_t size)
{
	if (mp_grow(section->pieces, section->cap_pieces, section->nr_pieces + 1)) {
		free(bytes);
		return -ENOMEM;
	}
	section->pieces[section->nr_pieces++] = (struct me_debug_piece){off, bytes, size};
	return 0;
}

bool me_debug_section_changed(const struct me_debug_section *section)
{
	return section->nr_pieces || section->added.size || section->replaced;
}

bool me_debug_section_has_room(const struct me_debug_section *section, uint64_t more)
{
	/* Far below the limit of the offsets: many tools cannot read sections of 2 GiB. */
	return section->size + section->added.size + more < INT32_MAX;
}

/* Walks over the section's new contents, front to back. */
struct walk {
	struct me_debug_section *section;
	uint32_t piece;
	uint64_t off;
};

static bool next_run(struct walk *w, const uint8_t **bytes, size_t *size, uint8_t **owned)
{
	struct me_debug_section *s = w->section;
	uint64_t end = s->replaced ? 0 : s->size;

	*owned = NULL;
	if (w->piece < s->nr_pieces && s->pieces[w->piece].off == w->off) {
		struct me_debug_piece *piece = &s->pieces[w->piece++];

		*bytes = piece->bytes;
		*owned = piece->bytes;
		*size = piece->size;
		w->off += piece->size;
		return true;
	}
	if (w->off < end) {
		*bytes = s->data + w->off;
		*size = (w->piece < s->nr_pieces ? s->pieces[w->piece].off : end) - w->off;
		w->off += *size;
		return true;
	}
	if (w->off == end && s->added.size) {
		*bytes = s->added.data;
		*owned = s->added.data;
		*size = s->added.size;
		w->off = UINT64_MAX;
		return true;
	}
	return false;
}

/* The fastest level keeps most of the space that compression saves. */
static int put_deflated(struct me_debug_section *section, Elf64_Shdr *header,
			struct me_output_parts *output)
{
	struct walk w = {.section = section};
	uint64_t total = section->added.size + (section->replaced ? 0 : section->size);
	Elf64_Chdr chdr = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = total, .ch_addralign = 1};
	z_stream z = {0};
	const uint8_t *bytes;
	uint8_t *owned, *out;
	size_t size, room;
	int rc = Z_OK;

	if (deflateInit(&z, Z_BEST_SPEED) != Z_OK)
		return -ENOMEM;
	room = sizeof(chdr) + deflateBound(&z, total);
	out = malloc(room);
	if (!out || room > UINT32_MAX) {
		free(out);
		deflateEnd(&z);
		return -ENOMEM;
	}
	memcpy(out, &chdr, sizeof(chdr));
	z.next_out = out + sizeof(chdr);
	z.avail_out = (uInt)(room - sizeof(chdr));
	while (rc == Z_OK && next_run(&w, &bytes, &size, &owned)) {
		z.next_in = (Bytef *)(uintptr_t)bytes;
		z.avail_in = (uInt)size;
		rc = deflate(&z, Z_NO_FLUSH);
		if (z.avail_in)
			rc = Z_BUF_ERROR;
	}
	if (rc == Z_OK)
		rc = deflate(&z, Z_FINISH);
	size = sizeof(chdr) + z.total_out;
	deflateEnd(&z);
	if (rc != Z_STREAM_END) {
		free(out);
		return -ENOMEM;
	}
	/* Give back the rest of deflateBound()'s generous estimate. */
	owned = realloc(out, size);
	header->sh_size = size;
	return me_output_parts_add(output, owned ? owned : out, size, header->sh_addralign, 1,
				   &header->sh_offset);
}

/* The output owns the bytes @own now: do not free them here. */
static void forget_owned(struct me_debug_section *section, const uint8_t *own, uint32_t piece)
{
	if (own == section->added.data)
		section->added = (struct me_bytes){0};
	else
		section->pieces[piece].bytes = NULL;
}

static int put_plain(struct me_debug_section *section, Elf64_Shdr *header,
		     struct me_output_parts *output)
{
	struct walk w = {.section = section};
	const uint8_t *bytes;
	uint8_t *owned;
	size_t size;
	uint64_t align = header->sh_addralign, off;

	header->sh_size = 0;
	while (next_run(&w, &bytes, &size, &owned)) {
		int rc;

		if (owned)
			forget_owned(section, owned, w.piece - 1);
		rc = me_output_parts_add(output, bytes, size, align, owned != NULL, &off);
		if (rc)
			return rc;
		if (!header->sh_size)
			header->sh_offset = off;
		header->sh_size += size;
		align = 1;
	}
	return 0;
}

int me_debug_section_put(struct me_debug_section *section, Elf64_Shdr *header,
			 struct me_output_parts *output)
{
	if (section->inflated)
		return put_deflated(section, header, output);
	return put_plain(section, header, output);
}
