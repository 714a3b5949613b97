// SPDX-License-Identifier: Apache-2.0
/*
 * verify_paths - checks an output that keeps path numbers in registers: its stubs of one
 * instruction set such a register and continue. verify_polls checks those that poll. Called by
 * verify_headers, verify_count and verify_rest.
 */
#include <errno.h>
#include <stdlib.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/stubs/verify_paths.h"
#include "editor/verify/stubs/verify_polls.h"
#include "editor/verify/stubs/verify_unproved.h"
#include "libprof/note/path_table.h"

/* Runs before the headers are checked, so it looks at section names alone. */
void vf_find_paths(struct vf *vf)
{
	const struct mp_section *paths = mp_elf_section(vf->n, MP_PATH_TABLE_SECTION);

	if (!paths || (!vf->stubs.counters && mp_elf_section(vf->n, ".morph.counters")) ||
	    mp_elf_section(vf->o, ".morph.counters") ||
	    mp_elf_section(vf->o, MP_PATH_TABLE_SECTION))
		return;
	vf->stubs.path_section = paths;
}

bool vf_is_path_section(const struct vf *vf, const struct mp_section *sec)
{
	return sec == vf->stubs.path_section && sec->type == SHT_PROGBITS && !sec->flags &&
	       !sec->vaddr && sec->align == 1 && !sec->link && !sec->info && !sec->entsize;
}

int vf_read_paths(struct vf *vf)
{
	int rc;

	if (!vf->stubs.path_section)
		return 0;
	rc = mp_path_table_read(vf->n, &vf->stubs.paths, vf->err);
	if (rc == -ENOMEM)
		return rc;
	if (rc)
		return vf_refuse(vf, 0,
				 "the table that says what the path numbers mean is unreadable");
	vf->marks->unproved = calloc((size_t)vf->map->nr_pieces + 1, sizeof(*vf->marks->unproved));
	return vf->marks->unproved ? 0 : -ENOMEM;
}

/*
 * Read mov $imm32, %reg32 or lea disp(%base), %reg, in the one encoding that Morph emits.
 * Return: its length; 0: it is neither.
 */
static unsigned int read_setter(const uint8_t *b, size_t avail, unsigned int *reg)
{
	unsigned int rex = 0, at = 0, mod, rm;

	if (avail && (b[0] & 0xf0) == 0x40)
		rex = b[at++];
	if (avail >= at + 5 && (b[at] & 0xf8) == 0xb8 && (!at || rex == 0x41)) {
		*reg = (b[at] & 7u) | (rex & 1u) << 3;
		return at + 5;
	}
	/* REX.W, no index register. A base of rsp or r12 takes a SIB byte. */
	if (!at || (rex & 0xfa) != 0x48 || avail < at + 3 || b[at] != 0x8d)
		return 0;
	mod = b[at + 1] >> 6;
	rm = b[at + 1] & 7u;
	*reg = (b[at + 1] >> 3 & 7u) | (rex & 4u) << 1;
	at += 2;
	if (rm == 4 && b[at++] != 0x24)
		return 0;
	if (mod != 1 && mod != 2)
		return 0;
	at += mod == 1 ? 1 : 4;
	return at <= avail ? at : 0;
}

/* Does the table say that @reg holds the number in the block behind the stub? */
static bool is_in_table(const struct vf *vf, uint64_t old_vaddr, unsigned int reg)
{
	uint32_t block = mp_path_table_block_at(vf->stubs.paths, old_vaddr);

	return block != MP_NONE && vf->stubs.paths->blocks[block].vaddr == old_vaddr &&
	       vf->stubs.paths->blocks[block].reg == reg;
}

static int check_setter(const struct vf *vf, const struct mp_map_piece *p, uint64_t at,
			unsigned int reg)
{
	if (reg == MP_REGISTER_RSP || !is_in_table(vf, p->old_vaddr, reg))
		return vf_refuse(vf, at,
				 "a stub sets a register that holds no path number at %#llx",
				 (unsigned long long)p->old_vaddr);
	return vf_check_dead(vf, p, reg);
}

int vf_check_path_stub(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b,
		       uint64_t at, uint64_t *next)
{
	const uint64_t end = p->new_vaddr + p->new_size;
	unsigned int reg = MP_NO_REGISTER, setter;
	int len = vf_check_note(vf, p, b, at), ret = 0;

	*next = at + (len > 0 ? len : 0);
	if (len)
		return len < 0 ? len : 0;
	setter = read_setter(b, end - at, &reg);
	if (setter)
		ret = check_setter(vf, p, at, reg);
	if (ret)
		return ret;
	len = vf_check_poll(vf, p, b + setter, at + setter);
	if (!len && !setter)
		return vf_refuse(vf, at, "a stub neither sets a register nor polls");
	*next = at + setter + (len > 0 ? len : 0);
	return len < 0 ? len : 0;
}
