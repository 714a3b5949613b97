// SPDX-License-Identifier: Apache-2.0
/*
 * heat_draw - draws the heat picture as one self-contained file. Called by "morph-stats heat".
 */
#ifndef MD_HEAT_DRAW_H
#define MD_HEAT_DRAW_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/draw/heat_lines.h"

struct md_heat_picture {
	const char *program; /* for the title */
	const struct mp_cfg *cfg;
	const uint64_t *func_samples; /* per function of @cfg */
	uint64_t nr_samples, nr_loose;
	const struct md_heat *before, *after; /* @after is NULL: draw only the original */
	struct md_heat_figures before_figures, after_figures;
};

/* Return: 0, -ENOMEM. The caller checks @out for write errors. */
int md_heat_draw_svg(const struct md_heat_picture *picture, FILE *out);
/* Draws the same picture in an HTML page. */
int md_heat_draw_html(const struct md_heat_picture *picture, FILE *out);

#endif
