// SPDX-License-Identifier: Apache-2.0
/*
 * flame_draw - draws the tree of samples as one self-contained SVG. Called by "morph-stats
 * flame".
 */
#ifndef MD_FLAME_DRAW_H
#define MD_FLAME_DRAW_H

#include <stdio.h>

#include "daemon/draw/flame.h"

struct md_flame_picture {
	const struct md_flame *root; /* merged and rounded */
	const struct md_flame *full; /* the complete tree, for the list of functions */
	/* all stored samples, including those that a filter leaves out */
	uint64_t nr_samples;
	const char *what; /* title part: "all programs", "since ..." */
};

/* Boxes narrower than this share of the width (2.5 pixels) are merged. */
#define MD_FLAME_LEAST	     (2.5 / 1552)
#define MD_FLAME_LEAST_ABOVE (6.0 / 1552)

/* The style of the picture, and what a click does, for flame_calls. */
extern const char md_flame_style[], md_flame_script[];

/* Return: 0, -ENOMEM. The caller checks @out for write errors. */
int md_flame_draw_svg(const struct md_flame_picture *picture, FILE *out);

#endif
