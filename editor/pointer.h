// SPDX-License-Identifier: Apache-2.0
/*
 * pointer - which functions may change their address, and every place that holds it.
 *
 * A pointer to a function must stay one value. Where relocations name every reference (the file was
 * linked with --emit-relocs) and each of them can be changed, all are changed together and an
 * indirect call goes straight to the copy. Otherwise all stay: the old entry jumps to the copy.
 * Other files know an exported function by its dynamic symbols alone: they are changed with it. So
 * they are in a file without relocations that the loader moves, where nothing in it takes the address.
 * So it is with labels that are values, by the loader's relocations, too: which functions' may change,
 * label knows.
 */
#ifndef ME_POINTER_H
#define ME_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"

enum me_site_kind {
	ME_SITE_WORD,  /* 8 bytes of data, and the addend of a dynamic relocation */
	ME_SITE_ABS32, /* 4 bytes, absolute: an immediate, or data */
	ME_SITE_REL32, /* the displacement of a lea, relative to its own end */
};

struct me_site {
	uint64_t vaddr;	 /* of the field */
	uint64_t target; /* the function's old entry, or the label's old place */
	uint8_t kind;	 /* enum me_site_kind */
};

struct me_pointers {
	uint8_t *redirected;   /* per cfg function */
	uint8_t *labels;       /* per cfg function: so are all its labels whose blocks are copied */
	struct me_site *sites; /* ascending vaddr; of redirected functions and labels only */
	uint32_t nr_sites;
	uint32_t nr_redirected;
	uint32_t nr_labels; /* functions whose labels are, of those that have any */
};

/*
 * me_pointers_find - @copied: one byte per cfg function, its entry is copied.
 * Return: 0, -ENOMEM. Ownership: me_pointers_fini(@out).
 */
int me_pointers_find(const struct mp_cfg *cfg, const uint8_t *copied, struct me_pointers *out,
		     struct mp_err *err);
void me_pointers_fini(struct me_pointers *pointers);

/* True where all who name @vaddr, a function's entry, are to name its copy. */
bool me_pointers_redirects(const struct me_pointers *pointers, const struct mp_cfg *cfg,
			   uint64_t vaddr);

/* The first site at or behind @vaddr: an index, nr_sites if there is none. */
uint32_t me_pointers_lower_bound(const struct me_pointers *pointers, uint64_t vaddr);

#endif
