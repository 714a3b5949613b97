// SPDX-License-Identifier: Apache-2.0
/*
 * call_arguments - whether the code before a call passes the address of a function on, as callers of
 * qsort() do. Called by daemon/calls: what such a call calls may end with a jump to the function.
 */
#ifndef MP_CALL_ARGUMENTS_H
#define MP_CALL_ARGUMENTS_H

#include <stdbool.h>

#include "libprof/callgraph/call_sites.h"

/* Functions that one call passes on; further ones are not seen. */
#define MP_CALL_ARGUMENTS_MAX 16

/* Addresses that one function loads into registers; further ones are not seen. */
#define MP_CALL_LOADS_MAX 64

/* The functions whose addresses a function loads into registers that calls preserve. */
struct mp_call_loads {
	uint32_t func; /* MP_NONE: filled with nothing yet */
	uint32_t nr;
	uint32_t functions[MP_CALL_LOADS_MAX];
	uint8_t registers[MP_CALL_LOADS_MAX];
};

/*
 * mp_call_arguments - the functions of the file whose addresses the call at @site passes on, each once.
 *
 * Looks at the call's block. Where the block copies an argument from a register that calls preserve, takes
 * all addresses that the function loads into that register. Addresses that come from memory, or that an
 * earlier block puts into an argument's register, are not seen. The register that holds the pointer of the
 * call itself passes nothing on. Instructions other than moves of addresses and registers, and calls of
 * functions of the file, are taken to leave registers as they are. @loads: those of the site's function are kept here for the next call.
 * Return: how many there are in @functions.
 */
uint32_t mp_call_arguments(const struct mp_cfg *cfg, struct mp_call_loads *loads,
			   const struct mp_call_site *site,
			   uint32_t functions[MP_CALL_ARGUMENTS_MAX]);
/* Return: is @function among them? */
bool mp_call_passes(const struct mp_cfg *cfg, const struct mp_call_site *site, uint32_t function);
/* Return: does an indirect call or jump read its target from a register? */
bool mp_call_is_by_register(const struct mp_cfg *cfg, const struct mp_call_site *site);

#endif
