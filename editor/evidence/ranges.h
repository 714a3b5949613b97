// SPDX-License-Identifier: Apache-2.0
/*
 * ranges - finds code that a program or a tool knows by a range of addresses, or by a table of places.
 * Copies lie outside of the range and are in no table. Called by eligible.
 */
#ifndef ME_RANGES_H
#define ME_RANGES_H

#include <stdbool.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

/*
 * me_ranges_file - does the program ask where its code ends, as gprof's start-up code does, or does its heap
 * begin where its memory ends? Return: 0, -EPERM with the reason in @err.
 */
int me_ranges_file(const struct mp_elf *elf, struct mp_err *err);

/* Does the program find this code by the symbols __start_NAME and __stop_NAME of its section? */
bool me_ranges_section(const struct mp_section *section);

/*
 * me_ranges_places - calls @found for each place in code that a table lists, of places that are overwritten while the
 * program runs or at which a handler looks.
 */
void me_ranges_places(const struct mp_cfg *cfg, void (*found)(void *ctx, uint64_t vaddr),
		      void *ctx);

#endif
