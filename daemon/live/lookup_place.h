// SPDX-License-Identifier: Apache-2.0
/*
 * lookup_place - where the page of lookup is in a process, and the function of its C library that jumps there. Known from
 * the process alone. Called by live.
 */
#ifndef MD_LIVE_LOOKUP_PLACE_H
#define MD_LIVE_LOOKUP_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/live/lookup/lookup.h"
#include "daemon/live/process.h"
#include "daemon/live/version.h"

struct md_lookup_place {
	uint64_t ip;			  /* of _dl_find_object() */
	uint8_t function[MD_LOOKUP_READ]; /* its first bytes in the library's file */
	uint8_t now[MD_LOOKUP_READ];	  /* and in the process */
	uint64_t at;			  /* of the jump, if there is one */
	uint64_t page;			  /* 0: there is none */
	uint8_t page_now[MD_LOOKUP_PAGE]; /* its bytes in the process */
	bool jumps;			  /* the function jumps to it */
};

/*
 * md_lookup_place_find - Return: 0; -EPERM: unwinders in the process would not find the copies' rows, with the reason;
 * -errno with a message.
 */
int md_lookup_place_find(const struct md_process *process, int mem, struct md_lookup_place *out,
			 struct mp_err *err);
/* Is all still as it was found? Another run of this program may have changed it. */
bool md_lookup_place_holds(const struct md_lookup_place *place, int mem);
/* A free address for the page. Return: 0: there is none. */
uint64_t md_lookup_place_choose(const struct md_process *process,
				const struct md_lookup_place *place);
/*
 * md_lookup_place_make - the page for the @mapped versions; also for @with and without @without, if these are not NULL.
 * Return: 0; -EPERM, -errno with a message.
 */
int md_lookup_place_make(const struct md_process *process, const struct md_lookup_place *place,
			 const struct md_versions *mapped, const struct md_version *with,
			 const struct md_version *without, struct md_lookup *out,
			 struct mp_err *err);

#endif
