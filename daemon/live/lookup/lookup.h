// SPDX-License-Identifier: Apache-2.0
/*
 * lookup - lets unwinders find the rows of copies that were put into a running process.
 *
 * libgcc, in whichever file it is, asks _dl_find_object() of libc for the unwind information of an address, and
 * knows nothing but the answer. The loader does not know the segment of copies, so the function's second
 * instruction becomes a jump to a page of Morph's, or the first one behind endbr64. The page answers for
 * copies, and has the loader answer for all else:
 *
 *	libc:   _dl_find_object: mov slot(%rip), %rax; jmp page         (was: jmp *offset(%rax))
 *	page:   is the address in a segment of the table?
 *		no:  mov slot(%rip), %rax; jmp *offset(%rax)
 *		yes: ask in the same way for an address of the original, and put the segment's bounds and its
 *		     .eh_frame_hdr into the answer, so that the rest is the original's
 *
 * The page takes no lock and no memory, so it may be asked in signal handlers. It has unwind rows itself.
 */
#ifndef MD_LOOKUP_H
#define MD_LOOKUP_H

#include <stdint.h>

enum {
	MD_LOOKUP_PAGE = 4096,
	MD_LOOKUP_PATCH = 5, /* bytes of the jump */
	MD_LOOKUP_READ = 24, /* bytes of the function that are read */
	MD_LOOKUP_MAX = 64,  /* segments in one process */
};

/* A segment of copies; run-time addresses. */
struct md_lookup_entry {
	uint64_t start, size;
	uint64_t original;     /* an address in the original's code */
	uint64_t eh_frame_hdr; /* of the segment */
};

struct md_lookup {
	uint8_t page[MD_LOOKUP_PAGE]; /* readable and executable; no instruction writes to it */
	/* Written at @at once the page is mapped. No instruction begins strictly inside of these bytes. */
	uint64_t at;
	uint8_t patch[MD_LOOKUP_PATCH], old[MD_LOOKUP_PATCH];
};

/*
 * md_lookup_make - @function: the first bytes of _dl_find_object() at @ip, without the patch. @page: address of the
 * page, at most 2 GiB away from the function and from its slot.
 * Return: 0; -EOPNOTSUPP: the function has another form than that above; -ERANGE: the page is too far away;
 * -E2BIG: more than MD_LOOKUP_MAX segments.
 */
int md_lookup_make(const uint8_t function[MD_LOOKUP_READ], uint64_t ip, uint64_t page,
		   const struct md_lookup_entry *entries, uint32_t nr, struct md_lookup *out);

#endif
