// SPDX-License-Identifier: Apache-2.0
/* verify_unwind_private - what the parts of verify_unwind share. No other file includes this. */
#ifndef ME_VERIFY_UNWIND_PRIVATE_H
#define ME_VERIFY_UNWIND_PRIVATE_H

#include "editor/verify/verify_private.h"

struct vf_unwinding {
	const struct vf *vf;
	const struct vf_fde *old, *new; /* FDEs whose rows and call sites are loaded */
	const struct vf_fde *callee;	/* of an inlined function; its rows are loaded */
	struct vf_rows old_rows, new_rows, callee_rows;
	struct vf_lsda old_lsda, new_lsda;
};

/* End of @row. NULL: the address is before the first of @rows. */
uint64_t vf_end_of_row(const struct vf_rows *rows, const struct vf_row *row);
/* End of the row that covers @vaddr. */
uint64_t vf_row_end(const struct vf_rows *rows, uint64_t vaddr);
/* All bytes of [@new, @new + @len) must have the call site of @old. */
int vf_compare_sites(struct vf_unwinding *x, uint64_t old, uint64_t new, uint64_t len);
/* End of the nops that control runs through to the next copy. int3 is never reached. */
uint64_t vf_padding_end(const struct vf *vf, const struct mp_map_piece *p);
/* In padding that control does not run through, no row may change. */
int vf_check_unreached(struct vf_unwinding *x, const struct mp_map_piece *p);
/* All of [@at, @end) has the row of @old. */
int vf_compare_range(struct vf_unwinding *x, uint64_t old, uint64_t at, uint64_t end);
/* verify_unwind_inlined.c: compare rows and call sites of a part of code that replaces a call. */
int vf_compare_inlined(struct vf_unwinding *x, const struct mp_map_piece *p);

#endif
