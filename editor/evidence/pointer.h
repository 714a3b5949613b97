// SPDX-License-Identifier: Apache-2.0
/*
 * pointer - decides which functions may change their address, and finds every place that holds
 * it.
 *
 * A pointer to a function must have one value everywhere. With relocations (--emit-relocs) that
 * name every reference, all references are changed together, and indirect calls enter the copy
 * directly. If one reference cannot be changed, all stay: the old entry jumps to the copy.
 *
 * Other files know an exported function only by its dynamic symbols, which change with it. This
 * is also done in a position-independent file without relocations, if no code takes the
 * function's address. Labels that are values change in the same way, also by the loader's
 * relocations; label decides which.
 */
#ifndef ME_POINTER_H
#define ME_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

enum me_site_kind {
	ME_SITE_WORD,  /* 8 bytes of data, and the addend of a dynamic relocation */
	ME_SITE_ABS32, /* 4 bytes, absolute: an immediate, or data */
	ME_SITE_REL32, /* displacement of a lea, relative to the field's end */
};

struct me_site {
	uint64_t vaddr;	 /* of the field */
	uint64_t target; /* old address of the function's entry, or of the label */
	uint8_t kind;	 /* enum me_site_kind */
};

struct me_pointers {
	uint8_t *redirected;   /* per cfg function */
	uint8_t *labels;       /* per cfg function: its labels with copies change, too */
	struct me_site *sites; /* ascending vaddr; of redirected functions and labels only */
	uint32_t nr_sites;
	uint32_t nr_redirected;
	uint32_t nr_labels; /* functions whose labels change */
};

/*
 * me_pointers_find - finds functions and labels that change. @copied: per cfg function, its
 * entry is copied.
 * Return: 0, -ENOMEM. Ownership: me_pointers_fini(@out).
 */
int me_pointers_find(const struct mp_cfg *cfg, const uint8_t *copied, struct me_pointers *out,
		     struct mp_err *err);
void me_pointers_fini(struct me_pointers *pointers);

/* Do all references to @vaddr, a function's entry, change to its copy? */
bool me_pointers_redirects(const struct me_pointers *pointers, const struct mp_cfg *cfg,
			   uint64_t vaddr);

/* Return: index of the first site at or behind @vaddr; nr_sites: none. */
uint32_t me_pointers_lower_bound(const struct me_pointers *pointers, uint64_t vaddr);

#endif
