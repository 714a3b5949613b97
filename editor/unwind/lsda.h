// SPDX-License-Identifier: Apache-2.0
/*
 * lsda - the exception table of one function: call sites, actions, types. Read from old
 * code, written for a copy, in the form that __gxx_personality_v0, __gcc_personality_v0
 * and rust_eh_personality read. Called by unwind.
 */
#ifndef ME_LSDA_H
#define ME_LSDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/base/bytes.h"
#include "libprof/elf/elf.h"

/* A range of code. Code outside all call sites must not throw: std::terminate. */
struct me_call_site {
	uint64_t start, size;
	uint64_t pad;	 /* vaddr of the landing pad; 0: none, unwinding continues */
	uint64_t action; /* 0: cleanup only; else 1 + offset in the action table */
};

struct me_lsda {
	struct me_call_site *sites; /* ascending, disjoint */
	uint32_t nr_sites, cap_sites;
	const uint8_t *actions;
	size_t actions_size; /* only the part that call sites use */
	uint8_t base_enc;    /* of the landing pads' base; MP_EH_PE_OMIT: function's start */
	bool from_start;     /* write the copy's base as a distance from the FDE's start */
	bool baseless;	  /* write no base: landing pads as signed distances from the FDE's start */
	uint8_t type_enc; /* MP_EH_PE_OMIT: no types */
	uint32_t nr_types, cap_types;
	uint64_t *types;      /* [i] is filter i + 1: address, pointer's address or 0 */
	const uint8_t *specs; /* exception specifications, after the types */
	size_t specs_size;
};

/*
 * me_lsda_read - read the table at @vaddr for the FDE that starts at @start and has
 * @size bytes. @lsda may be reused; zero it before its first use.
 * Return: 0; -EPERM, with *@why: the reason why the table cannot be carried over; -ENOMEM.
 * Ownership: me_lsda_fini(@lsda).
 */
int me_lsda_read(const struct mp_elf *elf, uint64_t vaddr, uint64_t start, uint64_t size,
		 struct me_lsda *lsda, const char **why);
void me_lsda_fini(struct me_lsda *lsda);

/* me_lsda_site_at - index of the first call site that ends after @vaddr. */
uint32_t me_lsda_site_at(const struct me_lsda *lsda, uint64_t vaddr);

/*
 * me_lsda_put - append a table to @out, whose first byte is at @out_vaddr: @sites of
 * the copy, whose FDE starts at @start, with the actions and types of @lsda. Return:
 * false if an address is out of reach. Failed allocations set @out->failed.
 */
bool me_lsda_put(struct me_bytes *out, uint64_t out_vaddr, const struct me_lsda *lsda,
		 const struct me_call_site *sites, uint32_t nr_sites, uint64_t start);

#endif
