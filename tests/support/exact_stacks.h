// SPDX-License-Identifier: Apache-2.0
/*
 * exact_stacks - reads the exact stacks that tests/plugin/contexts.c writes, with registers and
 * memory of each sample. Documentation/lab/contexts.md has the formats. Used by tools that compare
 * walkers with them.
 */
#ifndef TESTS_EXACT_STACKS_H
#define TESTS_EXACT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

#define EXACT_RED_ZONE 128 /* the copy of the stack begins so far below rsp */

struct exact_object {
	char *path;
	struct mp_elf *elf; /* NULL: no file, or none that can be read; opened with MP_ELF_FDES */
	uint64_t bias;	    /* run-time less link-time address */
	bool is_mapped;
};

/* A file's part, or a page of code that no file has. */
struct exact_map {
	uint64_t start, end;
	size_t object;
};

/* One frame: @address: where it returns to, or the instruction that a signal interrupted. */
struct exact_frame {
	uint64_t address;
	uint64_t slot; /* address of the return address; 0: none */
	bool any;      /* the address is not known: a signal frame */
};

struct exact_sample {
	uint64_t number; /* the line in the file */
	uint64_t count;	 /* instructions that the thread had executed */
	uint32_t thread;
	uint64_t pc, regs[16]; /* by DWARF's numbers */
	const uint8_t *memory;
	size_t memory_size;
	const struct exact_frame *frames; /* innermost first */
	size_t nr_frames;
	/* An unwinder has changed a return address of its own, to enter an exception's handler. */
	bool is_changed;
};

struct exact_stacks;

/* Opens the run in directory @dir. Return: 0, -errno, -EBADMSG (not the files of a run). */
int exact_stacks_open(const char *dir, struct exact_stacks **out);
void exact_stacks_close(struct exact_stacks *stacks);

/*
 * Reads the next sample that has registers. *@sample holds until the next call.
 * Return: false at the end.
 */
bool exact_stacks_next(struct exact_stacks *stacks, struct exact_sample *sample);
/* Samples so far that have no registers. */
uint64_t exact_stacks_skipped(const struct exact_stacks *stacks);

/*
 * Return: true if @ips are the return addresses, innermost first, of an activation that any sample
 * saw, on a stack that shares no frame with that of @sample.
 */
bool exact_stacks_know(struct exact_stacks *stacks, const struct exact_sample *sample,
		       const uint64_t *ips, size_t nr);

const struct exact_object *exact_stacks_objects(const struct exact_stacks *stacks, size_t *nr);
/* Return: the mapping at run-time address @ip, or NULL. */
const struct exact_map *exact_stacks_map(const struct exact_stacks *stacks, uint64_t ip);

/* Reads a word of the sample's copy of the stack. Return: false if it is not there. */
bool exact_sample_word(const struct exact_sample *sample, uint64_t address, uint64_t *word);

#endif
