// SPDX-License-Identifier: Apache-2.0
/*
 * change - which bytes of a running original become those of an output: pages of code and of read-only
 * data, and inside them the patches. Reads both files, no process. Called by live.
 */
#ifndef MD_LIVE_CHANGE_H
#define MD_LIVE_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/elf/elf.h"

#define MD_LIVE_PAGE  4096u
#define MD_PATCH_SIZE 5u
/* As the kernel writes it for a uprobe: int3. */
#define MD_BREAKPOINT 0xcc

/* A page of the file that changes; its bytes are those of the file's page. */
struct md_live_page {
	uint64_t vaddr; /* link-time address; a multiple of MD_LIVE_PAGE */
	uint64_t off;	/* in the original */
	size_t at;	/* of its bytes in old_bytes and new_bytes */
};

struct md_changes {
	struct md_live_page *pages; /* ascending vaddr */
	size_t nr_pages;
	/* nr_pages pages each. The old bytes are a copy: somebody may change the original's file meanwhile. */
	uint8_t *old_bytes, *new_bytes;
	uint64_t *patches; /* starts, ascending: where a jump was written over instructions */
	size_t nr_patches;
	/*
	 * of them: over first instructions of functions, as Morph once wrote them; a probe there would end the
	 * process
	 */
	size_t nr_over_first;
	size_t nr_branches; /* changed displacements of branches */
	uint32_t *words;    /* new values of words of switch tables, ascending */
	size_t nr_words;
	size_t nr_left_out; /* patches that stay out, and branches at the border of a page */
	size_t nr_bytes;    /* changed bytes */
	uint64_t segment_vaddr, segment_off, segment_size; /* of the copies */
};

/*
 * md_changes_find_segment - where the copies of @output are, and nothing else. Return: 0; -EPERM: there are none that can be
 * mapped alone.
 */
int md_changes_find_segment(const struct mp_elf *output, struct md_changes *out,
			    struct mp_err *err);
/*
 * md_changes_find - what differs between @original and @output in loaded code and read-only data. A change that reaches
 * over the border of a page, which the kernel may write in two steps, is left out; the old code stays in use there.
 * Verify has proved that no call and no system call ends inside a patch, so no return address is there.
 * Return: 0; -EPERM: the output changes anything else, or is no output of @original; -ENOMEM.
 * Ownership: md_changes_fini(), also after an error.
 */
int md_changes_find(const struct mp_elf *original, const struct mp_elf *output,
		    struct md_changes *out, struct mp_err *err);
void md_changes_fini(struct md_changes *changes);
/* Does it compare this section of the original? It compares code, and data that is not written. */
bool md_changes_compares(const struct mp_section *section);

/* Does a patch cover @vaddr? */
bool md_changes_has_patch(const struct md_changes *changes, uint64_t vaddr);
/* Does @vaddr lie strictly inside a patch? A thread that stopped there would go on in half a jump. */
bool md_changes_inside(const struct md_changes *changes, uint64_t vaddr);

/*
 * Is @value a changed word of a switch table, perhaps extended to 64 bits? A thread that has just read it goes on in a
 * copy, although no register holds an address there yet.
 */
bool md_changes_has_word(const struct md_changes *changes, uint64_t value);

#endif
