// SPDX-License-Identifier: Apache-2.0
/*
 * copies - where the copies of an output lead. They call each other, so a thread whose outermost function has a copy would
 * stay in the copies of a version that is no longer in use. So calls are changed then: each leads to where the
 * original's call leads,
 *
 *	in use:		call f's copy
 *	retired:	call f		(as in the original; there, a jump to the version that is in use)
 *
 * and only what a thread has begun goes on in the old copies. Reads files, no process. Called by live.
 */
#ifndef MD_LIVE_COPIES_H
#define MD_LIVE_COPIES_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/live/change.h"
#include "libprof/base/err.h"

struct md_copies {
	uint64_t *exits; /* addresses of the original to which copies lead, or may lead when they are retired */
	size_t nr_exits;
	struct md_live_page
		*pages; /* of copies that hold such calls; ascending vaddr. @off: in the output */
	size_t nr_pages;
	uint8_t *own, *retired; /* nr_pages pages */
	size_t nr_calls;
};

/*
 * md_copies_read - of @output, a version of @original whose new segment is as @changes says. A call over the border of
 * two pages, which the kernel may write in two steps, is left out.
 * Return: 0; -EPERM: code is not understood; -ENOMEM, -EBADMSG; each with a message. Ownership: md_copies_fini(), also
 * after an error.
 */
int md_copies_read(const struct mp_elf *original, const struct mp_elf *output,
		   const struct md_changes *changes, struct md_copies *out, struct mp_err *err);
void md_copies_fini(struct md_copies *copies);

/* An address where they lead into the middle of a patch of @changes, of another version; 0: there is none. */
uint64_t md_copies_find_cut(const struct md_copies *copies, const struct md_changes *changes);

/*
 * md_copies_search_cut - the same without md_copies_read(), for large versions: decodes only pieces in which four bytes could
 * be a displacement into a patch. @own: the segment of @output's copies; @changes: of another version. *@cut: the address,
 * or 0. Return: 0; as md_copies_read().
 */
int md_copies_search_cut(const struct mp_elf *original, const struct mp_elf *output,
			 const struct md_changes *own, const struct md_changes *changes,
			 uint64_t *cut, struct mp_err *err);

#endif
