// SPDX-License-Identifier: Apache-2.0
/*
 * elf_fdes - reads the FDEs of .eh_frame into one sorted array. They give function bounds
 * even in stripped files. Called by elf.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/elf/eh.h"
#include "libprof/elf/elf_private.h"

static int append_fde(struct mp_elf *elf, const struct mp_eh_cie *cie, const struct mp_eh_fde *fde,
		      uint32_t *room, struct mp_err *err)
{
	if (elf->nr_fdes == *room) {
		uint32_t grow = *room / 2 + 256;

		if (elf->nr_fdes >= MP_ELF_MAX_FDES)
			return mp_err_set(err, EBADMSG, "%s: too many FDEs", elf->path);
		if (mp_resize(elf->fdes, *room + grow))
			return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
		*room += grow;
	}
	elf->fdes[elf->nr_fdes++] = (struct mp_fde){
		.start = fde->start,
		.size = fde->size,
		.lsda = fde->lsda,
		.personality = cie->personality,
		.fde_vaddr = fde->vaddr,
		.cie_vaddr = cie->vaddr,
		.personality_indirect = cie->personality_enc & MP_EH_PE_INDIRECT,
		.signal_frame = cie->signal_frame,
	};
	return 0;
}

static int cmp_fde(const void *a, const void *b)
{
	const struct mp_fde *fa = a, *fb = b;

	if (fa->start != fb->start)
		return fa->start < fb->start ? -1 : 1;
	return fa->fde_vaddr < fb->fde_vaddr ? -1 : fa->fde_vaddr > fb->fde_vaddr;
}

static void finish(struct mp_elf *elf, uint32_t room)
{
	for (uint32_t i = 1; i < elf->nr_fdes; i++) {
		if (elf->fdes[i - 1].start > elf->fdes[i].start) {
			qsort(elf->fdes, elf->nr_fdes, sizeof(*elf->fdes), cmp_fde);
			break;
		}
	}
	if (elf->nr_fdes && elf->nr_fdes < room)
		(void)mp_resize(elf->fdes, elf->nr_fdes);
}

int mp_elf_read_fdes(struct mp_elf *elf, struct mp_err *err)
{
	struct mp_cursor first, cur;
	struct mp_eh_cie cie = {0};
	struct mp_eh_table table;
	struct mp_eh_fde fde;
	uint32_t room = 0;
	bool sized;
	int ret;

	if (!mp_eh_frame_find(elf, &first, &sized))
		return 0;
	mp_eh_table_find(elf, &table);
	elf->odd_fde = table.sorted ? 0 : table.hdr_vaddr;
	cur = first;
	while (cur.p < cur.end) {
		uint64_t at = cur.vaddr;

		ret = mp_eh_next(&cur, &first, &cie, &fde);
		if (ret == 0 && !sized)
			break;
		if (ret == -EBADMSG)
			return mp_err_set(err, EBADMSG, "%s: damaged .eh_frame at 0x%" PRIx64,
					  elf->path, at);
		/*
		 * Skip entries of unknown kind, and what the linker left of code that it dropped: functions without an entry
		 * count as having no FDE.
		 */
		if (ret != 2 || !fde.start || !fde.size)
			continue;
		if (!mp_eh_table_leads(&table, &fde))
			elf->odd_fde = fde.vaddr;
		ret = append_fde(elf, &cie, &fde, &room, err);
		if (ret)
			return ret;
	}
	finish(elf, room);
	return 0;
}

const struct mp_fde *mp_elf_fde_before(const struct mp_elf *elf, uint64_t vaddr)
{
	uint32_t lo = mp_search(i, 0, elf->nr_fdes, elf->fdes[i].start <= vaddr);

	return lo ? &elf->fdes[lo - 1] : NULL;
}
