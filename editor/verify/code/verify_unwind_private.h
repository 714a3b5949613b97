// SPDX-License-Identifier: Apache-2.0
/* verify_unwind_private - what the parts of verify_unwind share. No other file includes this. */
#ifndef ME_VERIFY_UNWIND_PRIVATE_H
#define ME_VERIFY_UNWIND_PRIVATE_H

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_lsda.h"

/* What one thread has loaded. It stays from call to call: copies of a large function are checked in many calls. */
struct vf_unwinding {
	const struct vf *vf;
	const struct vf_fde *old, *new; /* FDEs whose rows and call sites are loaded */
	const struct vf_fde *callee;	/* of an inlined function; its rows are loaded */
	struct vf_rows old_rows, new_rows, callee_rows;
	struct vf_lsda old_lsda, new_lsda;
};

/*
 * verify_unwind_rows.c: call the first one before the rows of @fde are read for a copy, and the second behind the
 * reading of its call sites, also if they cannot be read. Copies of two functions may take turns, and what is refused is
 * read for each piece, so all that is read has a limit. Return: 0, or a refusal of the whole output.
 */
int vf_spend_rows(const struct vf *vf, const struct vf_fde *fde);
int vf_spend_sites(const struct vf *vf, const struct vf_lsda *lsda);
/* End of @row. NULL: the address is before the first of @rows. */
uint64_t vf_end_of_row(const struct vf_rows *rows, const struct vf_row *row);
/* End of the row that covers @vaddr. */
uint64_t vf_row_end(const struct vf_rows *rows, uint64_t vaddr);
/* All bytes of [@new, @new + @len) must have the call site of @old. */
int vf_compare_sites(struct vf_unwinding *x, uint64_t old, uint64_t new, uint64_t len);
/*
 * Offset k of the copy is offset k of the original, up to the branch at the end. Rows and call
 * sites cover ranges, so one comparison suffices for each range in which nothing changes.
 */
int vf_compare_same(struct vf_unwinding *x, uint64_t old, uint64_t new, uint64_t len, bool sites);
/* Check branches behind the common part: re-encoded, inverted or added. None of them can throw.
 * Their row is that of the old branch, or of the place where the block fell through. First, there may
 * be a call through a slot, with the row and the call site of the old call. */
int vf_compare_branches(struct vf_unwinding *x, const struct mp_map_piece *p, uint64_t common);
/* Compare the rows of the padding behind @p that control runs through. */
int vf_compare_padding(struct vf_unwinding *x, const struct mp_map_piece *p, uint64_t common);
/* End of the nops that control runs through to the next copy. int3 is never reached. */
uint64_t vf_padding_end(const struct vf *vf, const struct mp_map_piece *p);
/* In padding that control does not run through, no row may change. */
int vf_check_unreached(struct vf_unwinding *x, const struct mp_map_piece *p);
/* All of [@at, @end) has the row of @old. */
int vf_compare_range(struct vf_unwinding *x, uint64_t old, uint64_t at, uint64_t end);
/* verify_unwind_inlined.c: compare rows and call sites of a part of code that replaces a call. */
int vf_compare_inlined(struct vf_unwinding *x, const struct mp_map_piece *p);

#endif
