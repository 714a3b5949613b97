// SPDX-License-Identifier: Apache-2.0
/*
 * path_evidence - counts the sampled paths over each edge of a module.
 * Two consecutive blocks of a path show how control reached the second one, independent of
 * how long the blocks take. The numbered file's blocks are finer than the cfg's; steps
 * inside one block of the cfg do not count.
 */
#ifndef MP_PATH_EVIDENCE_H
#define MP_PATH_EVIDENCE_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"
#include "libprof/note/path_key.h"

struct mp_path_evidence {
	uint64_t *edge;	   /* per edge of the cfg: paths over it */
	uint64_t *outside; /* per block: paths that enter it from outside of its function */
	/*
	 * Per block: how often a polled program reported a path that leads to it. The
	 * program reports every such path or none, so the number is proportional to how
	 * often the block runs.
	 */
	uint64_t *reported;
	uint64_t nr_paths; /* samples with a path */
	uint64_t nr_steps; /* sum of @edge and @outside */
	/*
	 * Samples whose path does not fit the cfg: the key is damaged, or a step has no
	 * edge. The steps behind the last such step count.
	 */
	uint64_t nr_strange;
};

/*
 * mp_path_evidence_build - @counts: paths of the module of @cfg.
 * Return: 0, -ENOMEM. Ownership: mp_path_evidence_fini(@out), which takes zeros.
 */
int mp_path_evidence_build(const struct mp_cfg *cfg, const struct mp_path_count *counts, size_t nr,
			   struct mp_path_evidence *out, struct mp_err *err);
void mp_path_evidence_fini(struct mp_path_evidence *evidence);

#endif
