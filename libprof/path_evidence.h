// SPDX-License-Identifier: Apache-2.0
/*
 * path_evidence - what sampled paths say of each edge of a module: how many lead over it.
 *
 * Each two blocks of a path are evidence of how control came to the second; how long the blocks
 * take plays no part in it. The numbered file's blocks are finer than the cfg's: what lies inside of
 * one of the cfg's says nothing.
 */
#ifndef MP_PATH_EVIDENCE_H
#define MP_PATH_EVIDENCE_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"
#include "libprof/path_key.h"

struct mp_path_evidence {
	uint64_t *edge;	   /* per edge of the cfg: paths over it */
	uint64_t *outside; /* per block: paths that come into it from outside of its function */
	/* Per block: how often a program that was asked said that a path leads to it before it ran. It does
	 * so each time or never, so this is in proportion to how often the block runs. */
	uint64_t *told;
	uint64_t nr_paths; /* samples that had a path */
	uint64_t nr_steps; /* the sum of the above */
	/* Samples whose path the cfg does not have: no key, or between two blocks is no edge. What
	 * lies behind the last such place counts all the same. */
	uint64_t nr_strange;
};

/*
 * mp_path_evidence_build - @counts: paths of the module that @cfg is of.
 * Return: 0, -ENOMEM. Ownership: mp_path_evidence_fini(@out), which takes zeros.
 */
int mp_path_evidence_build(const struct mp_cfg *cfg, const struct mp_path_count *counts, size_t nr,
			   struct mp_path_evidence *out, struct mp_err *err);
void mp_path_evidence_fini(struct mp_path_evidence *evidence);

#endif
