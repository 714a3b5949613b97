// SPDX-License-Identifier: Apache-2.0
/*
 * verify_versions - checks that the versions of an audited function stay apart, and that control
 * leaves the two that are timed through a stub that ends the timing.
 */
#ifndef ME_VERIFY_VERSIONS_H
#define ME_VERIFY_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Read where the versions lie, and which pieces are exits. Needs the index of the pieces. */
int vf_read_audit(struct vf *vf);
/* Check that both versions of each function stay apart, with stubs around them. Call after the
 * pieces were checked. */
int vf_check_versions(const struct vf *vf);
/* Is @p a version's copy that ends in an indirect jump other than an exit? */
bool vf_is_switch(const struct vf *vf, const struct mp_map_piece *p);

/*
 * A walk over the copies in all versions of one audited function, in ascending order. Before the first step
 * all is zero.
 */
struct vf_version_walk {
	uint32_t range;	 /* of the function's ranges */
	uint32_t next;	 /* piece */
	uint8_t version; /* that has the last piece */
};

/* Return: the next piece of @function; NULL: there is no other. */
const struct mp_map_piece *vf_version_walk(const struct vf *vf, uint32_t function,
					   struct vf_version_walk *walk);
/* Do both addresses lie in one audited function, in different versions? */
bool vf_is_other_version(const struct vf *vf, uint64_t vaddr, uint64_t other);
/* Does a stub start at @now that enters the versions of an audited function? */
bool vf_enters_versions(const struct vf *vf, uint64_t now);

#endif
