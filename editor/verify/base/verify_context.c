// SPDX-License-Identifier: Apache-2.0
/*
 * verify_context - lookups in what all checks know of original and output.
 */
#include "editor/verify/base/verify_context.h"
#include "libprof/base/search.h"

uint32_t vf_first_piece(const struct vf *vf, uint64_t new_vaddr)
{
	return mp_search(i, 0, vf->map->nr_pieces, vf->map->pieces[i].new_vaddr < new_vaddr);
}

size_t vf_first_ref(const struct vf *vf, uint64_t base)
{
	return mp_search(i, 0, vf->old.refs.nr, vf->old.refs.list[i].to < base);
}

const struct vf_version *vf_version_at(const struct vf *vf, uint64_t vaddr)
{
	uint32_t lo = mp_search(i, 0, vf->stubs.nr_versions, vf->stubs.versions[i].end <= vaddr);

	return lo < vf->stubs.nr_versions && vf->stubs.versions[lo].start <= vaddr
		       ? &vf->stubs.versions[lo]
		       : NULL;
}
