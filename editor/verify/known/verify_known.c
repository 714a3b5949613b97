// SPDX-License-Identifier: Apache-2.0
/*
 * verify_known - refuses copies of functions that others know by their place.
 */
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/known/verify_known.h"

/* Must the function have no copy, since the program, or a runtime, may look at it? @at: the block to blame. */
int vf_check_known(const struct vf *vf, const struct vf_fde *fde, uint64_t at)
{
	if (fde->flags & VF_FDE_NAMED_CODE)
		return vf_refuse(vf, at,
				 "a moved block lies in code that a program may copy as a whole");
	if (fde->flags & VF_FDE_KNOWN)
		return vf_refuse(vf, at,
				 "a moved function is known by a table or by its section's bounds");
	if (fde->flags & VF_FDE_ASKED)
		return vf_refuse(vf, at, "the program may look for a moved function in its stack");
	if (fde->flags & VF_FDE_RETURN_WORD)
		return vf_refuse(vf, at, "data may hold a return address in a moved function");
	if (fde->flags & VF_FDE_PLACE)
		return vf_refuse(
			vf, at,
			"data, or two operands, may know places in a moved function, as tables of "
			"faults do");
	if (fde->flags & VF_FDE_READ)
		return vf_refuse(vf, at, "the program may read the code of a moved function");
	return 0;
}
