// SPDX-License-Identifier: Apache-2.0
/*
 * eligible - which functions may be copied, and why the others are left alone.
 *
 * Declining is no error: every function that is not moved is counted under one reason.
 */
#ifndef ME_ELIGIBLE_H
#define ME_ELIGIBLE_H

#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"

enum me_refusal {
	ME_ELIGIBLE,
	/* what the code analysis says: enum mp_problem, told apart in the report */
	ME_REFUSED_PROBLEM,
	ME_REFUSED_SYSCALL,	/* seccomp and ptrace may know the address of the system call */
	ME_REFUSED_GET_PC,	/* reads its own address: call next; pop */
	ME_REFUSED_IFUNC,	/* a resolver runs before the program is relocated */
	ME_REFUSED_BRANCH_FORM, /* a direct branch with a prefix that an encoding anew would lose */
	ME_REFUSED_STOP,	/* int3 amid its code, which may go on behind it */
	ME_REFUSED_UNWIND,	/* its unwind information cannot be carried over */
	ME_REFUSED_PROBE,	/* a probe, sled or patchable entry points into it */
	ME_REFUSED_ENTRIES,	/* no danger, but no use: see entries.h */
	ME_NR_REFUSALS
};

struct me_eligible {
	uint8_t *verdict;    /* per cfg function: enum me_refusal */
	const char **detail; /* per cfg function: reason in words, NULL where eligible */
	uint32_t nr_funcs, nr_eligible;
};

/*
 * A block that stays where it is when its function moves: padding, probes; and one that ends in a trap,
 * where a handler of the signal may know the address, or go on behind it.
 */
static inline bool me_block_stays(const struct mp_block *block)
{
	if (block->flags & MP_BLOCK_STAYS)
		return true;
	return block->term == MP_TERM_TRAP && !(block->flags & MP_BLOCK_ENTRY);
}

/*
 * me_eligible_file - may the file as a whole be rewritten?
 * Return: 0, -EPERM refused with the reason in @err.
 */
int me_eligible_file(const struct mp_elf *elf, struct mp_err *err);

/* @nr_threads: as mp_parallel_for() takes it. Ownership: me_eligible_fini(@out). Return: 0, -ENOMEM. */
int me_eligible_functions(const struct mp_cfg *cfg, unsigned int nr_threads,
			  struct me_eligible *out, struct mp_err *err);
void me_eligible_fini(struct me_eligible *eligible);

#endif
