// SPDX-License-Identifier: Apache-2.0
/*
 * import_brstack - parses the branch stacks that perf script prints for the field brstack,
 * newest entry first: " 0x401010/0x401040/P/-/-/0". With the field dso, "(FILE)" follows each
 * address. Later versions of perf add fields at the end. Called by import_perf.
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
 * md_brstack_next - find the first entry at or after @p; other text is skipped. Return: the
 * text after the entry, or NULL: there is none.
 */
const char *md_brstack_next(const char *p, struct md_brstack_entry *entry);

#endif
