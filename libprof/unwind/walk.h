// SPDX-License-Identifier: Apache-2.0
/*
 * walk - finds the callers of one interrupted thread, from its registers, the unwind rows of what
 * is mapped, and the words of its stack. Reads no process itself: the caller gives both. Called by
 * the daemon; the reference for walkers inside the kernel.
 *
 * A walk is never a guess that looks like an answer: it ends with the first frame that is not
 * certain, and says why. An address in no known mapping is not given out. Only code without any
 * rows is walked along frame pointers, if they are plausible.
 */
#ifndef MP_WALK_H
#define MP_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/unwind/rows.h"
#include "libprof/unwind/walk_stop.h"

#define MP_WALK_NR_REGS 16
#define MP_WALK_RSP	4
#define MP_WALK_RBP	5

/* What is mapped at an address. */
enum mp_walk_code {
	MP_WALK_NOTHING, /* no code is known to be there */
	MP_WALK_UNREAD,	 /* code of a file that cannot be read: it may have rows or not */
	MP_WALK_BARE,	 /* code without rows, as of a JIT compiler */
	MP_WALK_ROWS,
};

struct mp_walk_ops {
	/* Gives the rows of the code at run-time address @ip, and its link-time address. */
	enum mp_walk_code (*find)(void *arg, uint64_t ip, const struct mp_rows **rows,
				  uint64_t *vaddr);
	/* Reads a word of the stack. Return: false if it is not there. */
	bool (*read)(void *arg, uint64_t address, uint64_t *word);
	void *arg;
	uint64_t *slots; /* gets where each caller's address lay, if not NULL; as many as @ips */
};

/* Registers of the interrupted code, with x86's numbers. */
struct mp_walk_start {
	uint64_t ip;
	uint64_t regs[MP_WALK_NR_REGS];
};

struct mp_walk_result {
	enum mp_walk_stop stop;
	enum mp_row_stop row_stop; /* with MP_WALK_NO_ROW and MP_WALK_RULE */
	size_t nr;		   /* callers found */
	size_t nr_by_rbp;	   /* of them: along frame pointers */
};

/*
 * mp_walk - writes the callers' addresses to @ips, innermost first, at most @max. An address is
 * where execution goes on: a return address, or behind a signal frame the interrupted instruction.
 */
void mp_walk(const struct mp_walk_ops *ops, const struct mp_walk_start *start, uint64_t *ips,
	     size_t max, struct mp_walk_result *result);

#endif
