// SPDX-License-Identifier: Apache-2.0
/*
 * verify_fde - finds the FDE around an address. verify_eh reads the FDEs.
 */
#include "editor/verify/base/verify_fde.h"

#include <stddef.h>

#include "libprof/base/search.h"

struct vf_fde *vf_eh_find(const struct vf_eh *eh, uint64_t vaddr)
{
	uint32_t lo = 0, hi = eh->nr_fdes;
	uint64_t page = (vaddr - eh->pages_start) / VF_EH_PAGE;

	if (eh->pages && page < eh->nr_pages) {
		lo = eh->pages[page];
		hi = eh->pages[page + 1];
	}
	lo = mp_search(i, lo, hi, eh->fdes[i].start + eh->fdes[i].size <= vaddr);
	return lo < eh->nr_fdes && eh->fdes[lo].start <= vaddr ? &eh->fdes[lo] : NULL;
}
