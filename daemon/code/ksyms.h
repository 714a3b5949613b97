// SPDX-License-Identifier: Apache-2.0
/*
 * ksyms - the functions of the running kernel, from /proc/kallsyms. Called by reports.
 *
 * Addresses are those of the store: distance from _text, plus the link-time address of _text.
 * Decides by identity whether the running kernel is the profiled one.
 */
#ifndef MD_KSYMS_H
#define MD_KSYMS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/store/store.h"

struct md_ksym {
	uint64_t vaddr, size; /* link-time; up to the next symbol */
	char *name;
};

struct md_ksyms {
	struct md_ksym *all; /* ascending by vaddr, one per address */
	size_t nr, max;
};

/*
 * md_ksyms_open - read the symbols of the kernel @module. Return: 0; -ENOENT: @module is not a
 * kernel, or not the running one; -EACCES: addresses are hidden; -ENOMEM. Ownership:
 * md_ksyms_fini().
 */
int md_ksyms_open(const struct mp_module *module, struct md_ksyms *out);
/* Reads symbols from @file, which has the form of /proc/kallsyms, for @size bytes of text. */
int md_ksyms_read(FILE *file, uint64_t size, struct md_ksyms *out);
void md_ksyms_fini(struct md_ksyms *ksyms);

/* Return: the function that holds @vaddr, or NULL. */
const struct md_ksym *md_ksyms_at(const struct md_ksyms *ksyms, uint64_t vaddr);

#endif
