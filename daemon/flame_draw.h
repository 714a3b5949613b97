// SPDX-License-Identifier: Apache-2.0
/*
 * flame_draw - the tree of samples as a picture that needs nothing else.
 */
#ifndef MD_FLAME_DRAW_H
#define MD_FLAME_DRAW_H

#include <stdio.h>

#include "daemon/flame.h"

struct md_flame_picture {
	const struct md_flame *root; /* merged and rounded */
	const struct md_flame *full; /* before: for the list of functions */
	uint64_t nr_samples;	     /* stored in all, what a filter leaves out too */
	const char *what;	     /* "all programs", "since ..." */
};

/* Boxes narrower than this share of the whole are merged: two pixels and a half. */
#define MD_FLAME_LEAST	     (2.5 / 1552)
#define MD_FLAME_LEAST_ABOVE (6.0 / 1552)

/* Return: 0, -ENOMEM. An error of @out is the caller's to see. */
int md_flame_draw_svg(const struct md_flame_picture *picture, FILE *out);

#endif
