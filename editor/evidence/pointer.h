// SPDX-License-Identifier: Apache-2.0
/*
 * pointer - finds the functions that may change their address, and every place that holds it.
 *
 * A pointer to a function must have one value everywhere. With relocations (--emit-relocs) that
 * name every reference, all references are changed together, and indirect calls enter the copy
 * directly. If one reference cannot be changed, all stay: the old entry jumps to the copy.
 *
 * Other files know an exported function only by its dynamic symbols, which change with it. This is
 * also done in a position-independent file without relocations, if no code takes the function's
 * address. The values of labels (GNU C's &&label) change in the same way. In position-independent
 * files the loader's relocations suffice for that. label decides for which functions.
 */
#ifndef ME_POINTER_H
#define ME_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/plan.h"
#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

enum {
	ME_POINTERS_MAY_CHANGE = 1, /* all references to the function's entry are known */
	ME_POINTERS_EXPORTED = 2,   /* a dynamic symbol is its entry */
};

struct me_pointers {
	uint8_t *functions;    /* per cfg function: ME_POINTERS_... */
	struct me_site *sites; /* ascending vaddr; of functions and labels that may change */
	uint32_t nr_sites;
};

/*
 * me_pointers_find - finds the functions and labels whose addresses may change if they are copied.
 * redirect chooses among them for one plan.
 * Return: 0, -ENOMEM. Ownership: me_pointers_fini(@out).
 */
int me_pointers_find(const struct mp_cfg *cfg, struct me_pointers *out, struct mp_err *err);
/*
 * me_pointer_align_log2 - the alignment of a function at @vaddr that its new address must keep: at most 16, or that of
 * its section, for which some function may have asked. Programs keep flags in the low bits of function pointers; C++
 * uses the lowest bit for pointers to members.
 */
uint8_t me_pointer_align_log2(const struct mp_elf *elf, uint64_t vaddr);
void me_pointers_fini(struct me_pointers *pointers);

#endif
