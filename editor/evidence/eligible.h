// SPDX-License-Identifier: Apache-2.0
/*
 * eligible - which functions may be copied, and why the others are left alone. Called
 * by optimize.
 *
 * A refusal is not an error: every function that is not moved is counted under one reason.
 */
#ifndef ME_ELIGIBLE_H
#define ME_ELIGIBLE_H

#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

enum me_refusal {
	ME_ELIGIBLE,
	/* the code analysis found a problem; the report names the enum mp_problem */
	ME_REFUSED_PROBLEM,
	ME_REFUSED_SYSCALL,	/* seccomp and ptrace may know the system call's address */
	ME_REFUSED_GET_PC,	/* reads its own address: call next; pop */
	ME_REFUSED_IFUNC,	/* a resolver runs before the program is relocated */
	ME_REFUSED_BRANCH_FORM, /* a direct branch has a prefix that a new encoding would lose */
	ME_REFUSED_STOP,	/* has an int3 in its code, which may continue after it */
	ME_REFUSED_UNWIND,	/* its unwind information cannot be carried over */
	ME_REFUSED_PROBE,	/* a probe, sled or patchable entry points into it */
	ME_REFUSED_RANGE,	/* known by the bounds of its section: see ranges.h */
	ME_REFUSED_ASKED,	/* the program may look for it in its stack: see enclosing.h */
	ME_REFUSED_ENTRIES,	/* safe but not useful: see entries.h */
	ME_REFUSED_ATTEMPT,	/* verify refused an output with its copy, or none could be made */
	ME_NR_REFUSALS
};

struct me_eligible {
	uint8_t *verdict;    /* per cfg function: enum me_refusal */
	const char **detail; /* per cfg function: the reason in words, NULL if eligible */
	uint32_t nr_funcs, nr_eligible;
};

/*
 * Does the block stay in place when its function moves? Padding does, and blocks with
 * probes. So do blocks that end in a trap: a signal handler may know the address, or
 * continue after it.
 */
static inline bool me_block_stays(const struct mp_block *block)
{
	if (block->flags & MP_BLOCK_STAYS)
		return true;
	return block->term == MP_TERM_TRAP && !(block->flags & MP_BLOCK_ENTRY);
}

/*
 * me_eligible_file - may this file be rewritten at all? Return: 0, -EPERM refused with
 * the reason in @err.
 */
int me_eligible_file(const struct mp_elf *elf, struct mp_err *err);

/*
 * me_eligible_functions - judge all functions. @nr_threads: see mp_parallel_for().
 * Return: 0, -ENOMEM. Ownership: me_eligible_fini(@out).
 */
int me_eligible_functions(const struct mp_cfg *cfg, unsigned int nr_threads,
			  struct me_eligible *out, struct mp_err *err);
void me_eligible_fini(struct me_eligible *eligible);

#endif
