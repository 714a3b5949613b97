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
	size_t lo = 0, hi = vf->refs.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (vf->refs.list[mid].to < base)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct vf_version *vf_version_at(const struct vf *vf, uint64_t vaddr)
{
	uint32_t lo = 0, hi = vf->nr_versions;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (vf->versions[mid].end <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < vf->nr_versions && vf->versions[lo].start <= vaddr ? &vf->versions[lo] : NULL;
}
