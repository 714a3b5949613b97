// SPDX-License-Identifier: Apache-2.0
/*
 * verify_wait - checks the stubs of an output that is not instrumented: they run nops, and so only
 * take time. Tests plant such stubs (`--adjust=FUNCTION:wait=N'). Called by verify_count.
 */
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/stubs/verify_wait.h"

#define NOP 0x90

/*
 * If the block begins with endbr64, so that indirect branches may lead to it, its stub may begin
 * with one, too. Return: bytes of the stub's endbr64; 0: none.
 */
static uint64_t landing_size(const struct vf *vf, const struct mp_map_piece *p, const uint8_t *b)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *old = mp_elf_bytes(vf->o, p->old_vaddr, sizeof(endbr64));

	if (!old || p->new_size < sizeof(endbr64) || memcmp(old, endbr64, sizeof(endbr64)) ||
	    memcmp(b, endbr64, sizeof(endbr64)))
		return 0;
	return sizeof(endbr64);
}

/* [endbr64], nops of one byte, then right behind them the copy of the block itself. */
int vf_check_wait(const struct vf *vf, const struct mp_map_piece *p)
{
	const uint8_t *b = mp_elf_bytes(vf->n, p->new_vaddr, p->new_size);
	const struct mp_map_piece *to = p + 1;

	if (!b || !p->new_size)
		return vf_refuse(vf, p->new_vaddr, "code that is neither a copy nor a stub");
	for (uint64_t i = landing_size(vf, p, b); i < p->new_size; i++)
		if (b[i] != NOP)
			return vf_refuse(vf, p->new_vaddr + i,
					 "added code that is no nop of one byte");
	if (to == vf->map->pieces + vf->map->nr_pieces || !to->old_size ||
	    to->old_vaddr != p->old_vaddr || to->new_vaddr != p->new_vaddr + p->new_size)
		return vf_refuse(vf, p->new_vaddr,
				 "added nops do not run on into the copy of %#llx",
				 (unsigned long long)p->old_vaddr);
	return 0;
}
