// SPDX-License-Identifier: Apache-2.0
/*
 * import_use - finds the instructions that use an imported function, and the functions that hold them. Called by
 * enclosing; emit changes the instructions.
 */
#ifndef ME_IMPORT_USE_H
#define ME_IMPORT_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"

enum {
	ME_IMPORT_SLOTS = 4,
	ME_IMPORT_SITES = 256,
};

struct me_import_use {
	uint64_t slots[ME_IMPORT_SLOTS]; /* of the GOT */
	uint32_t nr_slots;
	/* The two bytes `ff 15` (call) or `ff 25` (jmp) before a slot's displacement, in functions and in stubs. */
	uint64_t sites[ME_IMPORT_SITES];
	uint64_t stubs[ME_IMPORT_SLOTS]; /* of a PLT */
	uint32_t nr_sites, nr_stubs;
	uint32_t users
		[ME_IMPORT_SITES]; /* functions that use a slot or a stub; each perhaps more than once */
	uint32_t nr_users;
	bool unknown;	/* there may be other uses */
	bool unsure;	/* a site may be in the middle of an instruction */
	bool elsewhere; /* code that belongs to no function may use a stub */
};

/* me_import_use_find - finds the uses of the import @name. */
void me_import_use_find(const struct mp_cfg *cfg, const char *name, struct me_import_use *out);

#endif
