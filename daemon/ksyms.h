// SPDX-License-Identifier: Apache-2.0
/*
 * ksyms - the functions of the running kernel, from /proc/kallsyms, at the addresses that the store
 * has: distances from _text, behind the link-time address of _text.
 *
 * Decides by identity whether the running kernel is the one that was profiled. Called by reports.
 */
#ifndef MD_KSYMS_H
#define MD_KSYMS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/stats_rows.h"
#include "libprof/store.h"

struct md_ksym {
	uint64_t vaddr, size; /* link-time; up to the next symbol */
	char *name;
};

struct md_ksyms {
	struct md_ksym *all; /* ascending vaddr, one for each address */
	size_t nr, max;
};

/*
 * md_ksyms_open - the symbols of the kernel that @module is.
 * Return: 0; -ENOENT: @module is no kernel, or not the running one; -EACCES: addresses are hidden
 * from us; -ENOMEM. Ownership: md_ksyms_fini().
 */
int md_ksyms_open(const struct mp_module *module, struct md_ksyms *out);
/* The same from @file, which has the form of /proc/kallsyms, for text of @size bytes. */
int md_ksyms_read(FILE *file, uint64_t size, struct md_ksyms *out);
void md_ksyms_fini(struct md_ksyms *ksyms);

/* The function that holds @vaddr, or NULL. */
const struct md_ksym *md_ksyms_at(const struct md_ksyms *ksyms, uint64_t vaddr);

/*
 * Rows of the kernel @module: by function, or by address with the function where @addresses. Only
 * those of @function, where it is not NULL: a name or an address. Samples outside of all functions
 * are one row without a function. Return: 0, -ENOMEM.
 */
int md_rows_of_kernel(struct md_rows *rows, const struct mp_module *module,
		      const struct md_ksyms *ksyms, bool addresses, const char *function,
		      const struct mp_ip_count *counts, size_t nr);

#endif
