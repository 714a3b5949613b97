// SPDX-License-Identifier: Apache-2.0
/*
 * totals - what --stats and --json print at the end: what became of the samples, and what
 * collecting them cost. Called by collect.
 */
#ifndef MD_TOTALS_H
#define MD_TOTALS_H

#include <stdbool.h>

#include "daemon/attribute/pipeline.h"

/* @command: the value of "command" in the JSON. Return: 0 or -errno with a message. */
int md_totals_print(const struct md_pipeline *pl, bool json, const char *command,
		    struct mp_err *err);

#endif
