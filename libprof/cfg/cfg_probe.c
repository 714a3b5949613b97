// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_probe - finds static probes (<sys/sdt.h>). A note tells tracers at which instruction
 * they may put a breakpoint. Control reaches that instruction as any other. It begins a
 * block, which must stay. Called by cfg and cfg_target.
 */
#include "libprof/cfg/cfg_private.h"

#define TYPE_SDT 3

static uint64_t align4(uint64_t n)
{
	return (n + 3) & ~UINT64_C(3);
}

static void walk(const struct mp_cfg_build *b, void (*probe)(const struct mp_cfg_build *, uint64_t))
{
	const struct mp_section *sec = mp_elf_section(b->elf, ".note.stapsdt");
	uint64_t off = 0;

	if (!sec || sec->type != SHT_NOTE || sec->off > b->elf->size ||
	    sec->size > b->elf->size - sec->off)
		return;
	while (off + sizeof(Elf64_Nhdr) <= sec->size) {
		const uint8_t *note = b->elf->data + sec->off + off;
		Elf64_Nhdr head;
		uint64_t desc, location;

		memcpy(&head, note, sizeof(head));
		desc = sizeof(head) + align4(head.n_namesz);
		if (desc > sec->size - off || head.n_descsz > sec->size - off - desc)
			return;
		/* The descriptor: location, base, semaphore, then three strings. */
		if (head.n_type == TYPE_SDT && head.n_namesz == sizeof("stapsdt") &&
		    head.n_descsz >= sizeof(location) &&
		    !memcmp(note + sizeof(head), "stapsdt", sizeof("stapsdt"))) {
			memcpy(&location, note + desc, sizeof(location));
			probe(b, location);
		}
		off += desc + align4(head.n_descsz);
	}
}

static void mark_target(const struct mp_cfg_build *b, uint64_t location)
{
	uint32_t at = mp_space_at(b->index, location);

	if (at != MP_NONE && mp_space_is_text(b->index, at))
		mp_bit_set(b->index->targets, at);
}

static void mark_block(const struct mp_cfg_build *b, uint64_t location)
{
	uint32_t block = mp_cfg_block_at(b->cfg, location);

	if (block != MP_NONE)
		b->cfg->blocks[block].flags |= MP_BLOCK_PROBE;
}

void mp_cfg_find_probes(struct mp_cfg_build *b)
{
	walk(b, mark_target);
}

void mp_cfg_mark_probes(struct mp_cfg_build *b)
{
	walk(b, mark_block);
}
