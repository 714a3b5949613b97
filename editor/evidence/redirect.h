// SPDX-License-Identifier: Apache-2.0
/*
 * redirect - chooses the functions and labels whose addresses become those of their copies, and
 * puts them into the plan. pointer says which addresses may change at all.
 */
#ifndef ME_REDIRECT_H
#define ME_REDIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/evidence/pointer.h"
#include "editor/plan.h"
#include "libprof/base/err.h"
#include "libprof/cfg/cfg.h"

/*
 * me_redirects_choose - chooses for copies of some functions. @copied: per cfg function, its entry
 * is copied.
 * Return: 0, -ENOMEM. Ownership: me_redirects_fini(@out).
 */
int me_redirects_choose(const struct mp_cfg *cfg, const struct me_pointers *pointers,
			const uint8_t *copied, struct me_redirects *out, struct mp_err *err);

/*
 * me_redirects_plan - chooses for the copies of @plan, and sets its redirects. Nothing may change
 * the plan's blocks afterwards.
 * Return: 0, -ENOMEM.
 */
int me_redirects_plan(const struct mp_cfg *cfg, const struct me_pointers *pointers,
		      struct me_plan *plan, struct mp_err *err);

/* Does the address @vaddr, a function's entry, become that of its copy? */
bool me_redirects_function(const struct me_redirects *redirects, const struct mp_cfg *cfg,
			   uint64_t vaddr);

/* Return: index of the first site at or behind @vaddr; nr_sites: none. */
uint32_t me_redirects_lower_bound(const struct me_redirects *redirects, uint64_t vaddr);

#endif
