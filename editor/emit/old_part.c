// SPDX-License-Identifier: Apache-2.0
/* old_part - reads the bytes of the original in an output, with little memory. Called by emit. */
#include "editor/emit/old_part.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <xxhash.h>

int me_old_part_init(struct me_old_part *part, const struct mp_elf *elf, uint8_t *bytes,
		     size_t size)
{
	*part = (struct me_old_part){.elf = elf, .bytes = bytes, .size = size};
	part->changed = calloc(size / MP_ELF_PAGE / 64 + 1, sizeof(*part->changed));
	if (!part->changed)
		return -ENOMEM;
	mp_elf_find_changed(elf, bytes, size, part->changed);
	return 0;
}

void me_old_part_note_change(struct me_old_part *part, size_t off, size_t len)
{
	for (size_t page = off / MP_ELF_PAGE; page * MP_ELF_PAGE < off + len; page++)
		part->changed[page / 64] |= 1ull << (page % 64);
}

static bool is_changed(const struct me_old_part *part, size_t off)
{
	size_t page = off / MP_ELF_PAGE;

	return part->changed[page / 64] >> (page % 64) & 1;
}

/* End of the pages at @off that are all changed, or all unchanged. */
static size_t end_of_run(const struct me_old_part *part, size_t off)
{
	bool changed = is_changed(part, off);
	size_t end = off;

	while (end < part->size && end - off < MP_ELF_READ_AT_ONCE &&
	       is_changed(part, end) == changed)
		end += MP_ELF_PAGE;
	return end < part->size ? end : part->size;
}

int me_old_part_hash(const struct me_old_part *part, uint64_t seed, uint64_t *hash)
{
	XXH3_state_t *state = XXH3_createState();
	size_t end, dropped = 0;

	if (!state)
		return -ENOMEM;
	XXH3_64bits_reset_withSeed(state, seed);
	for (size_t off = 0; off < part->size; off = end) {
		const uint8_t *from = is_changed(part, off) ? part->bytes : part->elf->data;

		end = end_of_run(part, off);
		XXH3_64bits_update(state, from + off, end - off);
		if (end - dropped < MP_ELF_READ_AT_ONCE && end < part->size)
			continue;
		mp_elf_drop_bytes(part->elf, part->elf->data + dropped, end - dropped);
		dropped = end;
	}
	*hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return 0;
}

void me_old_part_fini(struct me_old_part *part)
{
	free(part->changed);
	part->changed = NULL;
}
