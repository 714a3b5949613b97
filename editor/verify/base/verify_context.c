// SPDX-License-Identifier: Apache-2.0
/*
 * verify_context - lookups in what all checks know of original and output.
 */
#include "editor/verify/base/verify_context.h"

uint32_t vf_first_piece(const struct vf *vf, uint64_t new_vaddr)
{
	uint32_t lo = 0, hi = vf->map->nr_pieces;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (vf->map->pieces[mid].new_vaddr < new_vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

size_t vf_first_ref(const struct vf *vf, uint64_t base)
{
	size_t lo = 0, hi = vf->old.refs.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (vf->old.refs.list[mid].to < base)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct vf_version *vf_version_at(const struct vf *vf, uint64_t vaddr)
{
	uint32_t lo = 0, hi = vf->stubs.nr_versions;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (vf->stubs.versions[mid].end <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < vf->stubs.nr_versions && vf->stubs.versions[lo].start <= vaddr
		       ? &vf->stubs.versions[lo]
		       : NULL;
}
