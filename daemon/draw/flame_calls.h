// SPDX-License-Identifier: Apache-2.0
/*
 * flame_calls - a flame graph of calling contexts: programs, below them the functions that call one
 * another. A click shows a part over the whole width; a search marks functions. Called by "morph-stats
 * flame --calls".
 */
#ifndef MD_FLAME_CALLS_H
#define MD_FLAME_CALLS_H

#include <stdio.h>

#include "daemon/calls/call_tree.h"
#include "daemon/draw/flame.h"

/* Adds the contexts to @root, with the samples and, by module, the colours. Return: 0, -ENOMEM. */
int md_flame_add_calls(struct md_flame *root, const struct md_calls *calls);
/* Draws @root, which is merged and rounded. The caller checks @out for write errors. */
void md_flame_draw_calls(const struct md_flame *root, FILE *out);

#endif
