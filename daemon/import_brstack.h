// SPDX-License-Identifier: Apache-2.0
/*
 * import_brstack - the entries of a branch stack as perf script prints them with the field
 * brstack: " 0x401010/0x401040/P/-/-/0", newest first, with "(FILE)" behind each address where the
 * field dso is asked for too, and with more fields at the end in later versions.
 */
#ifndef MD_IMPORT_BRSTACK_H
#define MD_IMPORT_BRSTACK_H

#include <stdbool.h>
#include <stdint.h>

struct md_brstack_entry {
	uint64_t from, to; /* run-time addresses */
	bool mispredicted;
};

/*
 * md_brstack_next - the first entry at or behind @p; what stands before it is passed over.
 * Return: what follows the entry, or NULL where there is none.
 */
const char *md_brstack_next(const char *p, struct md_brstack_entry *entry);

#endif
